"""FADE: which model it chooses, what it does not need to know, what it refuses; and a baseline."""

from dataclasses import replace
from math import ceil, inf, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify, play
from dpbandit.agents import FADE, FullBudgetFADE
from dpbandit.agents.contextual.centred_arms import CentredArms
from dpbandit.agents.contextual.centring import PrivatelyCentred
from dpbandit.agents.contextual.demand import DemandPricing
from dpbandit.agents.contextual.fade_residuals import middle_is_told
from dpbandit.agents.contextual.fading_regression import (
    LogisticPlayer,
    RegressionPlayer,
    TryingPlayer,
)
from dpbandit.agents.contextual.moments import MomentPlayer
from dpbandit.agents.contextual.residual_arms import ResidualArms
from dpbandit.agents.contextual.residual_pricing import ResidualPricing
from dpbandit.agents.contextual.residual_slates import ResidualSlates
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

LOGISTIC = FADE(model="regression", response="logistic")
NO_BUDGET = replace(REWARDS, epsilon=inf)
ARMS = replace(DISJOINT, reward_low=0.0)
OJ = OJPricing(horizon=200).spec


@each(
    ("config", "spec", "player"),
    [
        (FADE(), contextual(), ResidualArms),
        (FADE(epsilon=inf), contextual(dim=3), ResidualArms),
        (FADE(), contextual(dim=500), ResidualArms),
        (FADE(), contextual(dim=501), MomentPlayer),
        (FADE(trust="aggregated", fade=0), contextual(link="other"), ResidualArms),
        (REWARDS, contextual(), MomentPlayer),
        (REWARDS, contextual(dim=3), TryingPlayer),
        (NO_BUDGET, contextual(), MomentPlayer),
        (NO_BUDGET, contextual(dim=3), TryingPlayer),
        (FADE(), contextual(shared=True), ResidualSlates),
        (FADE(), contextual(dim=51, shared=True), RegressionPlayer),
        (REWARDS, contextual(shared=True), RegressionPlayer),
        (LOGISTIC, contextual(shared=True, reward_low=0.0), LogisticPlayer),
        (FADE(), OJ, ResidualPricing),
        (REWARDS, OJ, DemandPricing),
        (FADE(model="regression"), contextual(), TryingPlayer),
        (FADE(model="moments"), contextual(dim=3), MomentPlayer),
        (FADE(model="moments", centring="public"), OJ, MomentPlayer),
        (REWARDS, contextual(dim=3, horizon=1096), MomentPlayer),
        (REWARDS, contextual(dim=3, horizon=1097), TryingPlayer),
        (replace(REWARDS, epsilon=100.0), contextual(dim=20, horizon=8000), MomentPlayer),
        (replace(REWARDS, epsilon=100.0), contextual(dim=20, horizon=8001), TryingPlayer),
        (FADE(), contextual(dim=3, horizon=10_965, link="other"), ResidualArms),
        (FADE(), contextual(dim=3, horizon=10_966, link="other"), TryingPlayer),
        (FADE(), contextual(dim=3, horizon=1000, link="other"), ResidualArms),
        (FADE(), contextual(dim=4, horizon=1000, link="other"), CentredArms),
        (FADE(), contextual(horizon=1000, link="other"), CentredArms),
    ],
)
def test_choice_of_the_model(config, spec, player):
    """Golden: the table of the class. A Gram matrix pays once T / (10 K d) > 2 sqrt(2 d) / mu and
    > d: at d = 3, K = 2, mu = 0.26805 from T = 120 sqrt(6) / mu = 1096.6 on, for clicks ten times
    that; at d = 20 from 8,001 on, whatever the noise."""
    assert type(config.make(spec, Streams([0]))) is player


@each(
    ("fields", "learned"),
    [
        ({}, False),
        ({"reward_low": 0.0}, True),
        ({"reward_low": 0.0, "link": "logistic"}, False),
        ({"link": "probit"}, True),
        ({"reward_low": 0.0, "reward_high": 10.0, "link": "poisson"}, True),
        ({"link": "other", "horizon": 1097}, True),
        ({"link": "other", "horizon": 1096}, False),
    ],
)
def test_the_level_is_learned_where_the_link_does_not_tell_it(fields, learned):
    """Golden: link(0) is 0, 1/2 or unknown; the middle of the range is it or is not."""
    spec = contextual(dim=3, **fields)
    assert FADE().make(spec, Streams([0]))._statistic.level_weight == 0.2 * learned
    if fields.get("link") == "other":
        return
    asked = FADE(centring="private").make(spec, Streams([0]))
    told = isinstance(asked, PrivatelyCentred)
    assert told == middle_is_told(spec)
    assert told or asked._statistic.level_weight == 0.2
    assert FADE(centring="public").make(spec, Streams([0]))._statistic.level_weight == 0
    for centring in ("auto", "private"):  # another mechanism, which nobody has unasked
        moments = FADE(model="moments", centring=centring).make(spec, Streams([0]))
        assert isinstance(moments, PrivatelyCentred) == (centring == "private")


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
    prices = OJPricing(horizon=20_000).spec
    for config, spec, first in (
        (FADE(), contextual(), ceil(9 * sqrt(50) / mu)),
        (FADE(), contextual(horizon=1000), 100),
        (FADE(), contextual(n_actions=5), ceil(22.5 * sqrt(50) / mu)),
        (FADE(), contextual(dim=9, shared=True), ceil(24 / mu)),
        (REWARDS, prices, ceil(80 / mu)),
        (FADE(), prices, ceil(20 / mu)),
        (FADE(epsilon=inf), prices, 8),
        (FADE(epsilon=inf), contextual(), 30),
        (FADE(first_batch=7), contextual(), 7),
    ):
        sums = sums_of(config.make(spec, Streams([0])))
        assert sums._ends == growing_batches(spec.horizon, first=first, growth=0.1)


@each(
    ("make", "sentence"),
    [
        (lambda: FADE(epsilon=0.0), "epsilon=0.0 to be a number > 0"),
        (lambda: FullBudgetFADE(release_epsilon=0.0), r"epsilon=0\.0 to be a number > 0"),
        (lambda: FADE(delta=0.0), "no pure epsilon-DP"),
        (lambda: FADE(model="moment"), "did you mean moments"),
        (lambda: FADE(response="logit"), "response='logit'"),
        (lambda: FADE(coding="reward"), "did you mean rewards"),
        (lambda: FADE(coding="rewards", model="arms"), "coding='rewards' without model='arms'"),
        (lambda: FADE(coding="rewards", model="slates"), "='rewards' without model='slates'"),
        (lambda: FADE(centring="privat"), "did you mean private"),
        (lambda: FADE(shrinkage="soft"), "shrinkage='soft'"),
        (lambda: FADE(first_batch=0), "first_batch=0 to be a whole number >= 1"),
        (lambda: FADE(growth=-0.1), "growth=-0.1"),
        (lambda: FADE(growth=0.0, anytime=True), "growth=0.0 >= 0.01 with anytime=True"),
        (lambda: FADE(fade=1.0), r"fade=1.0 to be a number in \[0, 0.999\]"),
        (lambda: FADE(fade=-0.1), "fade=-0.1"),
        (lambda: FADE(shift=0.0), "shift=0.0 to be a finite number > 0"),
        (lambda: FADE(trust="aggregated"), "fade=0.7 to be 0"),
        (lambda: FADE(trust="shuffled"), "trust='shuffled'"),
        (lambda: FADE(honest=0.5), "honest=0.5 to be 1"),
    ],
)
def test_bad_input_gets_one_sentence(make, sentence):
    with pytest.raises(InputError, match=sentence):
        make()


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
        (FADE(centring="private"), PRICES, "model=arms or slates .*: here it is prices"),
        (FADE(shrinkage="none"), SHARED, "shrinkage='none' only with model=moments"),
        (FADE(debias=False), PRICES, "debias=False only with model=moments: here it is prices"),
        (FADE(model="moments", shift=2.0), PAIR, "shift=2.0 only with model=regression or demand"),
        (replace(LOGISTIC, centring="private"), SHARED, "not for a logistic response"),
        (FADE(model="slates"), DISJOINT, "only where arms share one parameter"),
        (FADE(features="interactions"), PAIR, "model=prices or demand: here it is arms"),
        (FADE(response="linear"), SHARED, "response='linear' only with model=regression"),
        (FADE(model="arms"), SHARED, "only where each arm has its own parameter"),
        (FADE(model="prices"), DISJOINT, "got a ContextualSpec: use model"),
        (FADE(model="demand"), DISJOINT, "got a ContextualSpec: use model"),
        (LOGISTIC, DISJOINT, "only with one shared"),
        (LOGISTIC, replace(SHARED, reward_high=2.0), "rewards in"),
        (FADE(), PriceSpec(dim=2, horizon=9, low=1.0, high=2.0), "plays finitely many arms"),
    ],
)
def test_problems_it_does_not_play_are_refused(config, spec, sentence):
    with pytest.raises(InputError, match=sentence):
        config.make(spec, Streams([0]))


@each("spec", [ARMS, SHARED, OJ])
def test_each_release_of_the_baseline_has_the_noise_of_one(spec):
    """Golden: the players of FADE; a first batch of 0.3 of FADE's; noise S / mu, no fading; epsilon
    infinity, and why in words."""
    ours = FullBudgetFADE(release_epsilon=0.5).make(spec, Streams([0]))
    private = FADE(epsilon=0.5).make(spec, Streams([0]))
    assert type(ours) is type(private)
    looks = 3 if spec is ARMS else 0  # at the level of rewards
    lengths = [np.diff(player._sums._ends, prepend=0)[looks] for player in (ours, private)]
    assert lengths[0] == round(0.3 * lengths[1])
    assert ours._sums.fade == 1
    assert ours._sums.stddev == pytest.approx(private._sums.sensitivity / mu_of(0.5, 1e-5))
    proof = certify(FullBudgetFADE(release_epsilon=0.5), spec, accountants=False)
    assert (proof.epsilon, proof.claimed_epsilon) == (inf, inf)
    assert "a baseline" in proof.ledger.notion
    assert FullBudgetFADE(release_epsilon=inf).make(spec, Streams([0]))._sums.stddev == 0
