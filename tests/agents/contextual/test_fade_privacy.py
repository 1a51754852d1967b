"""FADE keeps what it promises: certificates, noise, sensitivities, replays."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import FADE, BatchMoment
from dpbandit.agents.contextual.centred_arms import CentredArms
from dpbandit.agents.contextual.centring import PrivatelyCentred
from dpbandit.agents.contextual.fading_regression import (
    LogisticPlayer,
    RegressionPlayer,
    TryingPlayer,
)
from dpbandit.agents.contextual.moments import MomentPlayer
from dpbandit.agents.contextual.residual_arms import ResidualArms
from dpbandit.agents.contextual.residual_pricing import CurvedPricing, ResidualPricing
from dpbandit.agents.contextual.residual_slates import ResidualSlates
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import FadingSum
from dpbandit.testing.checks import check_joint_dp
from tests.agents.contextual.fade_variants import (
    LEVELS,
    VARIANTS,
    contextual,
    every_variant,
    sums_of,
)


def test_nothing_released_is_nothing_spent():
    for kind in (FADE, BatchMoment):
        for config, horizon in ((kind(), 1), (kind(first_batch=100), 100)):
            assert certify(config, contextual(horizon=horizon), accountants=False).epsilon == 0.0
    answers = contextual(horizon=1, delay=1, link="other")  # the only user would be in the mean
    assert certify(FADE(), answers, accountants=False).holds


@every_variant
def test_noise_in_units_of_what_a_user_moves(variant):
    """Golden: mu-GDP of a first user seen with weights 1, f, f^2, .. needs noise of stddev
    sensitivity sqrt(1 + f^2 + ...) / mu; sensitivities 2, sqrt(8), clipped apart sqrt(5), and of
    residuals 2 sqrt(1 + c^2), sqrt(4 (1 + c^2) + 2 w^2) and sqrt(4 + 4.5 w^2). A private centre
    has 4 % of mu^2."""
    config, spec = VARIANTS[variant]
    agent = config.make(spec, Streams([0]))
    sums, inner = sums_of(agent), getattr(agent, "_inner", agent)
    sensitivity = {
        CentredArms: 2.0,
        MomentPlayer: 2.0,
        RegressionPlayer: sqrt(8),
        TryingPlayer: sqrt(8),
        LogisticPlayer: sqrt(5),
        ResidualArms: 2 * sqrt(1 + 0.15**2 + 0.2**2 * (variant in LEVELS)),
        ResidualSlates: sqrt(4 * 1.09 + 2 * 0.275**2),
        CurvedPricing: sqrt(4 + 4.5 * 0.35**2),
        ResidualPricing: sqrt(4 + 4.5 * (0.5 if variant == "interactions" else 0.35) ** 2),
    }[type(inner)]
    seen = sqrt(sum(config.fade ** (2 * k) for k in range(len(sums._ends))))
    share = 1.0
    if type(agent) is PrivatelyCentred:
        share, centre = 0.96, agent.ledger.spends[1].mu
        assert centre**2 == pytest.approx(0.04 * mu_of(1.0, 1e-5) ** 2, rel=1e-3)
    assert len(sums._ends) >= 2
    assert sums.sensitivity == pytest.approx(sensitivity, rel=1e-12)
    stddev = sensitivity * seen / (mu_of(1.0, 1e-5) * sqrt(share))
    assert sums.stddev == pytest.approx(stddev, rel=2e-6)


@every_variant
def test_joint_dp(variant):
    """Where sums are made in blocks and many releases shape the policy, for variants that no
    registered test meets."""
    config, spec = VARIANTS[variant]
    _, first = check_joint_dp(config, replace(spec, horizon=150), (0, 65), replicas=3)
    assert sum(release is not None for release in first.releases) >= 2


def adversaries(spec, count, seed):
    """Users of all sizes from 1e-320 to 1e300, sparse and dense, with all sorts of rewards."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((count, *spec.context_shape))
    x *= rng.random(x.shape) < rng.choice([0.3, 1.0], size=(count, *[1] * (x.ndim - 1)))
    powers = [0, 0, 0, -1, 1, 9, -9, -100, -155, -161, -162, -200, -307, -320, 150, 160, 300]
    with np.errstate(all="ignore"):
        x *= 10.0 ** rng.choice(powers, size=(count, *[1] * (x.ndim - 1)))
    low, high = spec.reward_low, spec.reward_high
    odd = [low, high, (low + high) / 2, 0.3, 5e-324, 1e9, -1e9, 1e308, np.nan, np.inf, -np.inf]
    return x, rng.integers(0, spec.n_actions, count), rng.choice(odd, count)


STEEP = ("arms", "answers", "slates", "logistic", "demand", "demand of rewards", "interactions")


@every_variant
def test_no_two_adversaries_are_further_apart_than_the_sensitivity(variant, monkeypatch):
    """Every pair of 600 users, all meeting the same released parameter, also one so large that the
    logistic weights h reach their floor. The mechanism would see any of them, and no other."""
    config, spec = VARIANTS[variant]
    users, seen = adversaries(spec, 600, seed=3), []

    def watched(self, *datum):
        seen.append((self.sensitivity, self.query(*datum)))

    monkeypatch.setattr(FadingSum, "__call__", watched)
    for size in (1.0, 0.0, 30.0, 1e300) if variant in STEEP else (1.0,):
        agent = config.make(spec, Streams(range(600)))
        inner = getattr(agent, "_inner", agent)
        theta = size * np.cos(np.arange(inner._theta[0].size)).reshape(inner._theta.shape[1:])
        inner._theta = np.zeros_like(inner._theta) + theta
        if hasattr(agent, "_before"):  # those who are counted have come
            agent._round = agent._before
        seen.clear()
        with np.errstate(all="ignore"):
            agent.update(*users)
        assert len(seen) == (2 if type(agent) is PrivatelyCentred else 1)
        for sensitivity, query in seen:
            query = query.reshape(600, -1)
            assert np.isfinite(query).all()
            furthest = max(np.linalg.norm(query - one, axis=1).max() for one in query)
            assert 0.7 * sensitivity <= furthest <= sensitivity * (1 + 1e-9)  # nor is it idle


@every_variant
def test_replicas_do_not_know_each_other(variant):
    """Scores of four replicas equal those of a lone one and a run of three, difference exactly 0.0,
    at lengths and dimensions where BLAS has choices."""
    config, spec = VARIANTS[variant]
    spec = replace(spec, dim=17)
    rng = np.random.default_rng(5)
    contexts = rng.standard_normal((70, 4, *spec.context_shape))
    contexts /= np.linalg.norm(contexts, axis=-1, keepdims=True)
    rewards = np.where(rng.random((70, 4)) < 0.5, spec.reward_low, spec.reward_high)

    def scores(mine):
        agent, seen = config.make(spec, Streams(range(4)[mine])), []
        for x, r in zip(contexts[:, mine], rewards[:, mine], strict=True):
            agent.update(x, agent.act(x), r)
            seen.append(agent.scores(x))
        return np.array(seen)

    apart = np.concatenate([scores(slice(0, 1)), scores(slice(1, 4))], axis=1)
    np.testing.assert_array_equal(scores(slice(4)), apart)
