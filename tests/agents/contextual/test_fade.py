"""FADE: which model it chooses, what it does not need to know, and what it refuses."""

from dataclasses import replace
from math import ceil, inf, sqrt

import numpy as np
import pytest

from dpbandit import certify, play
from dpbandit.agents import FADE
from dpbandit.agents.contextual.centred_arms import CentredArms
from dpbandit.agents.contextual.centring import PrivatelyCentred
from dpbandit.agents.contextual.demand import DemandPricing
from dpbandit.agents.contextual.fade_learners import middle_is_told
from dpbandit.agents.contextual.fading_regression import (
    LogisticPlayer,
    RegressionPlayer,
    TryingPlayer,
)
from dpbandit.agents.contextual.moments import MomentPlayer
from dpbandit.agents.contextual.residual_arms import ResidualArms
from dpbandit.agents.contextual.residual_pricing import ResidualPricing
from dpbandit.agents.contextual.residual_slates import ResidualSlates
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing, Recommendation
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import growing_batches
from dpbandit.specs.protocols import PriceSpec
from tests.agents.contextual.fade_variants import (
    DISJOINT,
    PAIR,
    PRICES,
    REWARDS,
    SHARED,
    VARIANTS,
    contextual,
    sums_of,
)
from tests.each import each


@each(
    ("config", "spec", "player"),
    [
        (FADE(), contextual(), ResidualArms),
        (FADE(epsilon=inf), contextual(dim=3), ResidualArms),
        (FADE(), contextual(dim=500), ResidualArms),
        (FADE(), contextual(dim=501), MomentPlayer),
        (REWARDS, contextual(), MomentPlayer),
        (REWARDS, contextual(dim=3), TryingPlayer),
        (replace(REWARDS, epsilon=inf), contextual(), MomentPlayer),
        (replace(REWARDS, epsilon=inf), contextual(dim=3), TryingPlayer),
        (FADE(), contextual(shared=True), ResidualSlates),
        (FADE(), contextual(dim=51, shared=True), RegressionPlayer),
        (REWARDS, contextual(shared=True), RegressionPlayer),
        (
            FADE(model="regression", response="logistic"),
            contextual(shared=True, reward_low=0.0),
            LogisticPlayer,
        ),
        (FADE(), OJPricing(horizon=100).spec, ResidualPricing),
        (REWARDS, OJPricing(horizon=100).spec, DemandPricing),
        (FADE(model="regression"), contextual(), TryingPlayer),
        (FADE(model="moments"), contextual(dim=3), MomentPlayer),
        (FADE(model="moments", centring="public"), OJPricing(horizon=100).spec, MomentPlayer),
    ],
)
def test_choice_of_the_model(config, spec, player):
    """Golden: the table of the class. A Gram matrix pays once T / (10 K d) > 2 sqrt(2 d) / mu and
    > d: 166.7 against 18.3 and 3 for d = 3, 10 against 74.6 and 50 for d = 50."""
    assert type(config.make(spec, Streams([0]))) is player


def test_choice_turns_where_the_gram_matrix_is_worth_its_noise():
    """Golden: at d = 3, K = 2, mu = 0.26805 the two sides meet at T = 120 sqrt(6) / mu = 1096.6."""
    assert 120 * sqrt(6) / mu_of(1.0, 1e-5) == pytest.approx(1096.6, abs=0.1)
    for horizon, player in ((1096, MomentPlayer), (1097, TryingPlayer)):
        agent = REWARDS.make(contextual(dim=3, horizon=horizon), Streams([0]))
        assert type(agent) is player


def test_no_budget_alone_chooses_the_gram_matrix():
    """Golden: at d = 20, K = 2, T / (10 K d) > d from T = 8,001 on, whatever the noise."""
    for horizon, player in ((8000, MomentPlayer), (8001, TryingPlayer)):
        agent = replace(REWARDS, epsilon=100.0).make(
            contextual(dim=20, horizon=horizon), Streams([0])
        )
        assert type(agent) is player


@each(
    ("fields", "learned"),
    [
        ({}, False),
        ({"reward_low": 0.0}, True),
        ({"reward_low": 0.0, "link": "logistic"}, False),
        ({"link": "probit"}, True),
        ({"reward_low": 0.0, "reward_high": 10.0, "link": "poisson"}, True),
    ],
)
def test_the_level_is_learned_where_the_link_does_not_tell_it(fields, learned):
    """Golden: link(0) is 0, 1/2 or unknown; the middle of the range is it or is not."""
    spec = contextual(dim=3, **fields)
    assert bool(FADE().make(spec, Streams([0]))._statistic.level_weight) == learned
    asked = FADE(centring="private").make(spec, Streams([0]))
    told = isinstance(asked, PrivatelyCentred)
    assert told == middle_is_told(spec)
    assert told or asked._statistic.level_weight == 0.2
    assert FADE(centring="public").make(spec, Streams([0]))._statistic.level_weight == 0
    for centring in ("auto", "private"):  # another mechanism, which nobody has unasked
        moments = FADE(model="moments", centring=centring).make(spec, Streams([0]))
        assert isinstance(moments, PrivatelyCentred) == (centring == "private")


def test_clicks_of_very_few_features_are_regressed_and_of_many_told_apart_from_their_mean():
    """Golden: at d = 3, K = 2, mu = 0.26805 few begins at T = 1096.58, and ten times that is
    10,965.8; at d = 50 features are not few."""
    for horizon, player in ((10_965, ResidualArms), (10_966, TryingPlayer)):
        spec = contextual(dim=3, horizon=horizon, link="other")
        assert type(FADE().make(spec, Streams([0]))) is player
    for horizon, weight in ((1097, 0.2), (1096, 0.0)):
        spec = contextual(dim=3, horizon=horizon, link="other")
        assert FADE().make(spec, Streams([0]))._statistic.level_weight == weight
    for dim, player in ((3, ResidualArms), (4, CentredArms), (50, CentredArms)):
        spec = contextual(dim=dim, horizon=1000, link="other")
        assert type(FADE().make(spec, Streams([0]))) is player
    aggregated = FADE(trust="aggregated", fade=0)
    assert type(aggregated.make(contextual(link="other"), Streams([0]))) is ResidualArms


@pytest.mark.parametrize("variant", ["arms", "demand", "demand of rewards", "centred regression"])
def test_anytime_agents_do_not_see_the_horizon(variant):
    """Horizons of 20 and of 5,000: the same actions, past the shorter one, and the noise of
    endlessly many releases, S / (mu sqrt(1 - fade^2))."""
    config, spec = VARIANTS[variant]
    config = replace(config, anytime=True, fade=0.9, growth=1.0)
    rng = np.random.default_rng(0)
    users = [(rng.standard_normal((2, *spec.context_shape)), rng.random(2)) for _ in range(300)]

    def played(horizon):
        agent = config.make(replace(spec, horizon=horizon), Streams([1, 2]))
        actions = []
        for context, reward in users:
            actions.append(agent.act(context))
            agent.update(context, actions[-1], reward)
        return agent, np.array(actions)

    (agent, long), (_, short) = played(5000), played(20)
    np.testing.assert_array_equal(long, short)
    if variant == "arms":
        sums = sums_of(agent)
        endless = sums.sensitivity / (mu_of(1.0, 1e-5) * sqrt(1 - 0.9**2))
        assert 0.99 * endless < sums.stddev < endless


def test_batches_grow_by_a_tenth():
    """Golden: first batches 4.5 sqrt(d) K / mu for moments, 8 sqrt(d) blocks / mu for regression,
    40 sqrt(d + 1) / mu for demand and a quarter of that by residuals, between 30 (by residuals 7.5)
    and T / 10, rounded up."""
    mu = mu_of(1.0, 1e-5)
    table = [
        (FADE(), contextual(), ceil(9 * sqrt(50) / mu)),
        (FADE(), contextual(horizon=1000), 100),
        (FADE(), contextual(n_actions=5), ceil(22.5 * sqrt(50) / mu)),
        (FADE(), contextual(dim=9, shared=True), ceil(24 / mu)),
        (REWARDS, OJPricing(horizon=20_000).spec, ceil(80 / mu)),
        (FADE(), OJPricing(horizon=20_000).spec, ceil(20 / mu)),
        (FADE(epsilon=inf), OJPricing(horizon=20_000).spec, 8),
    ]
    for config, spec, first in table:
        sums = sums_of(config.make(spec, Streams([0])))
        assert sums._ends == growing_batches(spec.horizon, first=first, growth=0.1)
    assert sums_of(FADE(epsilon=inf).make(contextual(), Streams([0])))._ends[0] == 30
    assert sums_of(FADE(first_batch=7).make(contextual(), Streams([0])))._ends[:2] == (7, 15)


@each(
    ("fields", "sentence"),
    [
        ({"epsilon": 0.0}, "epsilon=0.0 to be a number > 0"),
        ({"delta": 0.0}, "no pure epsilon-DP"),
        ({"model": "moment"}, "did you mean moments"),
        ({"response": "logit"}, "response='logit'"),
        ({"coding": "reward"}, "did you mean rewards"),
        ({"coding": "rewards", "model": "arms"}, "coding='rewards' without model='arms'"),
        ({"coding": "rewards", "model": "slates"}, "coding='rewards' without model='slates'"),
        ({"centring": "privat"}, "did you mean private"),
        ({"shrinkage": "soft"}, "shrinkage='soft'"),
        ({"first_batch": 0}, "first_batch=0 to be a whole number >= 1"),
        ({"growth": -0.1}, "growth=-0.1"),
        ({"growth": 0.0, "anytime": True}, "growth=0.0 >= 0.01 with anytime=True"),
        ({"fade": 1.0}, r"fade=1.0 to be a number in \[0, 0.999\]"),
        ({"fade": -0.1}, "fade=-0.1"),
        ({"shift": 0.0}, "shift=0.0 to be a finite number > 0"),
        ({"trust": "aggregated"}, "fade=0.7 to be 0"),
        ({"trust": "shuffled"}, "trust='shuffled'"),
        ({"honest": 0.5}, "honest=0.5 to be 1"),
    ],
)
def test_bad_input_gets_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        FADE(**fields)


def test_devices_carry_the_noise_of_a_server():
    """With fade 0 a release is the sum of a batch: aggregated by honest devices it is the central
    one, to the last bit; if half are honest there is sqrt(2) as much noise, at the same promise."""
    problem = Recommendation(horizon=300)
    configs = [FADE(fade=0.0), FADE(fade=0.0, trust="aggregated")]
    central, devices = (play(problem, config, [0, 1]) for config in configs)
    np.testing.assert_array_equal(central.regret, devices.regret)
    half = FADE(fade=0.0, trust="aggregated", honest=0.5)
    proof = certify(half, problem.spec, accountants=False)
    assert proof.ledger.brief == "aggregated, 50 % honest"
    stddev = [sums_of(c.make(contextual(), Streams([0]))).stddev for c in (configs[1], half)]
    assert stddev[1] == pytest.approx(sqrt(2) * stddev[0])
    with pytest.raises(InputError, match="choose that, as the seller"):
        certify(configs[1], "OJPricing", accountants=False)


@each(
    ("config", "spec", "sentence"),
    [
        (FADE(model="moments"), SHARED, "only where each arm has its own parameter"),
        (
            FADE(centring="private"),
            PRICES,
            "only with model=arms or slates or moments or regression: here it is prices",
        ),
        (FADE(shrinkage="none"), SHARED, "shrinkage='none' only with model=moments"),
        (FADE(debias=False), PRICES, "debias=False only with model=moments: here it is prices"),
        (FADE(model="moments", shift=2.0), PAIR, "shift=2.0 only with model=regression or demand"),
        (
            FADE(model="regression", response="logistic", centring="private"),
            SHARED,
            "not for a logistic response",
        ),
        (FADE(model="slates"), DISJOINT, "only where arms share one parameter"),
        (
            FADE(features="interactions"),
            PAIR,
            "features='interactions' only with model=prices or demand: here it is arms",
        ),
        (FADE(response="linear"), SHARED, "response='linear' only with model=regression"),
        (FADE(model="arms"), SHARED, "only where each arm has its own parameter"),
        (FADE(model="prices"), DISJOINT, "got a ContextualSpec: use model"),
        (FADE(model="demand"), DISJOINT, "got a ContextualSpec: use model"),
        (FADE(model="regression", response="logistic"), DISJOINT, "only with one shared"),
        (
            FADE(model="regression", response="logistic"),
            replace(SHARED, reward_high=2.0),
            "rewards in",
        ),
        (FADE(), PriceSpec(dim=2, horizon=9, low=1.0, high=2.0), "plays finitely many arms"),
    ],
)
def test_problems_it_does_not_play_are_refused(config, spec, sentence):
    with pytest.raises(InputError, match=sentence):
        config.make(spec, Streams([0]))
