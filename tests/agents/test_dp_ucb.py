"""DP-UCB: the non-private limit, the paper's constants, and what privacy costs."""

from dataclasses import replace
from itertools import pairwise
from math import ceil, inf, log, log2, sqrt

import numpy as np
import pytest

from dpbandit import BadInput, certify, compare
from dpbandit.agents import DPUCB, LinUCB
from dpbandit.evaluate import log_marks, play, problem_maker
from dpbandit.privacy.gdp import epsilon_of
from dpbandit.protocols import ContextualSpec
from dpbandit.streams import Streams
from tests.harness import variants

SEEDS = [(0, r) for r in range(10)]


def regret(config, environment="GLMBandit", horizon=600, **env_kwargs):
    problem = problem_maker(environment)(horizon=horizon, **env_kwargs)
    return play(problem, config, SEEDS, marks=log_marks(horizon)).regret


def counterpart(config, horizon):
    """LinUCB on the same batches, exact, with no noise process anywhere."""
    paper = config.calibration == "paper"
    return LinUCB(
        alpha=config.alpha if config.alpha is not None else "theory" if paper else 1.0,
        regularization=config.regularization,
        refresh_every=config.refresh_every or (1 if paper else ceil(horizon / 100)),
        arms=config.arms or ("joint" if paper else "disjoint"),
    )


@pytest.mark.parametrize("environment", ["GLMBandit", "Recommendation", "OJPricing"])
@pytest.mark.parametrize("config", dict.fromkeys(variants(DPUCB)), ids=repr)
def test_without_privacy_it_is_linucb_bit_for_bit(config, environment):
    """epsilon = inf draws its noise and scales it by 0; LinUCB has no noise: difference 0.0."""
    private = regret(replace(config, epsilon=inf), environment, horizon=150)
    public = regret(counterpart(config, 150), environment, horizon=150)
    np.testing.assert_array_equal(private, public)


def test_without_privacy_it_is_the_rank_one_linucb_with_that_shift():
    """Oracle: refitting from sums and Sherman-Morrison are two ways to the same numbers."""
    private = regret(DPUCB(epsilon=inf, refresh_every=1, alpha=0.7, regularization=3.0))
    online = regret(LinUCB(alpha=0.7, regularization=3.0))
    np.testing.assert_allclose(private, online, rtol=0, atol=1e-9)


def test_paper_constants_by_hand():
    """Golden: s^2 = 16 m L^4 ln(4/delta)^2 / eps^2 with L^2 = 1 + 1, m = 1 + ceil(log2 n).

    A node's Gram noise has off-diagonal stddev s; in unit scale its diagonal sqrt(2) s moves by
    mu^2 = |change|^2 / (2 s^2), and a user is in bit_length(n - 1) nodes. With w^2 = 2 the
    sensitivity is sqrt((2 + 2)^2 / 2) = sqrt(8), that of the whole matrix over rows (x, r).
    """
    n, epsilon, delta = 10_000, 1.0, 1e-4
    spec = ContextualSpec(n_actions=2, dim=3, horizon=n)
    s = 4 * sqrt(1 + ceil(log2(n))) * 2 * log(4 / delta) / epsilon
    mu = sqrt((n - 1).bit_length()) * sqrt(8) / (sqrt(2) * s)
    proof = certify(DPUCB(epsilon=epsilon, delta=delta, calibration="paper"), spec)
    assert proof.mu == pytest.approx(mu, rel=1e-12)
    assert proof.epsilon == pytest.approx(epsilon_of(mu, delta), rel=1e-9)
    assert proof.holds
    assert proof.epsilon < 0.1  # a claim of 1 that is over-noised


def test_certified_noise_of_the_reference_table():
    """Golden: stochastic_and_contextual.md c5, 'With C=3.2, c_u=.8 on P1: Gram 179.2, moment
    21.76' (tree, n = 10^4, delta = 1e-4): off-diagonal stddev C^2 s / sqrt(2) times ... at w^2 =
    B / A = 0.8276 the budget is split as there. 10^4 releases need horizon 10^4 + 1."""
    spec = ContextualSpec(n_actions=2, dim=50, horizon=10_001, context_order=inf, reward_high=1.2)
    config = DPUCB(
        epsilon=1.0,
        delta=1e-4,
        prefix_sums="tree",
        refresh_every=1,
        context_clip=3.2,
        moment_clip=0.8,
        moment_weight=sqrt(0.8276),
    )
    statistic = config._statistic(spec)
    node = config._node_stddev(spec, statistic)
    assert 3.2**2 * node / sqrt(2) == pytest.approx(179.2, rel=2e-3)
    assert 0.8 * node / statistic.moment_weight == pytest.approx(21.76, rel=2e-3)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-6, 1e-3])
@pytest.mark.parametrize("fields", [{}, {"prefix_sums": "tree"}, {"moment_weight": 1.7}])
def test_gaussian_certificate_equals_the_claim(epsilon, delta, fields):
    spec = ContextualSpec(n_actions=2, dim=3, horizon=1000)
    proof = certify(DPUCB(epsilon=epsilon, delta=delta, **fields), spec, accountants=False)
    assert proof.epsilon <= epsilon
    assert proof.epsilon == pytest.approx(epsilon, rel=1e-3)


def test_wishart_certificate_is_within_the_claim_and_close():
    """The least whole number of degrees: at most 2 % of epsilon is left."""
    spec = ContextualSpec(n_actions=2, dim=3, horizon=1000)
    proof = certify(DPUCB(noise="wishart"), spec)
    assert 0.98 < proof.epsilon <= 1.0


def test_regret_falls_as_epsilon_grows():
    """Paired over 30 replicas on a bandit that DP-UCB can learn: each step down in regret is at
    least 3 standard errors of the paired difference (false alarm about 1e-3 a step if equal)."""
    agents = {str(e): DPUCB(epsilon=e, delta=1e-4) for e in (0.3, 1.0, 3.0, 10.0, inf)}
    results = compare(
        "GLMBandit",
        agents,
        horizon=10_000,
        replicas=30,
        env_kwargs={"n_actions": 3, "dim": 3},
        progress=False,
    )
    final = {run.name: run.regret[-1] for run in results.runs}
    order = ["Uniform", *agents]
    for worse, better in pairwise(order):
        gain = final[worse] - final[better]
        assert gain.mean() > 3 * gain.std(ddof=1) / sqrt(30), (worse, better)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0 to be a number > 0"),
        ({"delta": 1.0}, r"delta=1.0 to be a number in \[0, 1\)"),
        ({"delta": 0.0}, "no pure epsilon-DP"),
        ({"prefix_sums": "blt", "noise": "wishart"}, "only with certified Gaussian noise"),
        ({"prefix_sums": "fenwick"}, "one of tree, blt"),
        ({"refresh_every": 0}, "refresh_every=0 to be a whole number >= 1"),
        ({"moment_clip": 0.5, "noise": "wishart"}, "only with certified Gaussian noise"),
    ],
)
def test_bad_input_gets_one_sentence(fields, sentence):
    with pytest.raises(BadInput, match=sentence):
        DPUCB(**fields)


def test_short_horizons_have_nothing_to_protect():
    """One round: no release can influence an action, so nothing is spent; T = 2 spends."""
    assert certify(DPUCB(), ContextualSpec(n_actions=2, dim=2, horizon=1)).epsilon == 0.0
    assert certify(DPUCB(), ContextualSpec(n_actions=2, dim=2, horizon=2)).epsilon > 0.9
    agent = DPUCB().make(ContextualSpec(n_actions=2, dim=2, horizon=2), Streams([0]))
    x = np.zeros((1, 2))
    for _ in range(2):
        agent.update(x, agent.act(x), np.zeros(1))
    with pytest.raises(BadInput, match="longer horizon"):
        agent.update(x, agent.act(x), np.zeros(1))
