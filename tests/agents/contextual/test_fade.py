"""FADE: which model it chooses, what it refuses, and that it keeps what it promises; a baseline."""

from dataclasses import replace
from functools import partial
from math import ceil, inf, sqrt

import numpy as np
import pytest

from dpbandit import certify, play
from dpbandit.agents import FADE, BatchMoment, FadeAsking, FullBudgetFADE, RaceIMED
from dpbandit.agents.contextual.demand import Priced
from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_centred import FadeCentred, PrivatelyCentred
from dpbandit.agents.contextual.fade_curve import FadeCurve
from dpbandit.agents.contextual.fade_prices import FadePrices
from dpbandit.agents.contextual.fade_regression import (
    FadeLogistic,
    FadeRegression,
    FadeTrying,
)
from dpbandit.agents.contextual.fade_slates import FadeSlates
from dpbandit.agents.contextual.fading import link_fixes_middle
from dpbandit.agents.contextual.mapped import Mapped
from dpbandit.agents.contextual.moments import FadeMoments
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing, Recommendation
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import FadingSum, growing_batches
from dpbandit.specs import Prior
from dpbandit.specs.protocols import PriceSpec
from dpbandit.testing.checks import check_joint_dp
from tests.agents.contextual.runs import (
    COSTS,
    DISJOINT,
    OFFERS,
    PRICES,
    REWARDS,
    SHARED,
    check_refused,
    contextual,
    sums_of,
)
from tests.each import each, refused

HIGHER = replace(DISJOINT, reward_low=-0.5)
PAIR = replace(DISJOINT, n_actions=2)
VARIANTS = {
    "arms": (FADE(), DISJOINT), "arms of two": (FADE(), PAIR),
    "arms, delayed": (FADE(), replace(DISJOINT, delay=20)),
    "answers": (FADE(asks=False), replace(DISJOINT, dim=4, link="other")),
    "answers, delayed": (FADE(), replace(DISJOINT, dim=4, link="other", delay=20)),
    "level": (FADE(), HIGHER),
    "level, delayed": (FADE(), replace(HIGHER, delay=20, link="poisson")),
    "moments": (FADE(model="moments"), DISJOINT), "moments of two": (FADE(model="moments"), PAIR),
    "moments without debias": (FADE(model="moments", debias=False), DISJOINT),
    "regression of each": (FADE(model="regression"), DISJOINT), "slates": (FADE(), SHARED),
    "slates, delayed": (FADE(), replace(SHARED, delay=20, link="logistic")),
    "regression of signs": (REWARDS, SHARED),
    "regression": (FADE(model="regression", response="linear"), SHARED),
    "logistic": (FADE(model="regression", response="logistic"), SHARED), "demand": (FADE(), PRICES),
    "demand of rewards": (REWARDS, PRICES), "interactions": (FADE(features="interactions"), PRICES),
    "line": (FADE(), replace(PRICES, link="logistic")), "offers": (FADE(), OFFERS),
    "costs": (FADE(), COSTS), "additive": (FADE(features="additive"), PRICES),
    "line, delayed": (FADE(features="shrunk"), replace(PRICES, delay=20)),
    "other batches": (FADE(model="moments", first_batch=70, growth=0.0, fade=0.9), DISJOINT),
    "delayed": (FADE(), replace(PRICES, delay=20)),
    "centred": (FADE(model="moments", centring="private"), DISJOINT),
    "centred arms": (FADE(centring="private"), DISJOINT),
    "centred regression": (FADE(model="regression", centring="private"), SHARED),
    "centred slates": (FADE(centring="private"), SHARED),
}  # fmt: skip
LEVELS = ("level", "level, delayed")
"""Arms whose level is learned with them."""
every_variant = pytest.mark.parametrize("variant", VARIANTS)
LOGISTIC = FADE(model="regression", response="logistic")
NO_BUDGET = replace(REWARDS, epsilon=inf)
ARMS = replace(DISJOINT, reward_low=0.0)
CLICKS = {"dim": 5, "link": "logistic", "reward_low": 0.0}
PRIOR = Prior([0.0] * 10, 1.0)
OJ = OJPricing(horizon=200).spec


@each(
    ("config", "spec", "player"), [
        (FADE(), contextual(), FadeArms), (FADE(epsilon=inf), contextual(dim=3), FadeArms),
        (FADE(), contextual(dim=500), FadeArms), (FADE(), contextual(dim=501), FadeMoments),
        (FADE(trust="aggregated", fade=0), contextual(link="other"), FadeArms),
        (REWARDS, contextual(), FadeMoments), (REWARDS, contextual(dim=3), FadeTrying),
        (NO_BUDGET, contextual(), FadeMoments), (NO_BUDGET, contextual(dim=3), FadeTrying),
        (FADE(), contextual(shared=True), FadeSlates),
        (FADE(), contextual(dim=51, shared=True), FadeRegression),
        (REWARDS, contextual(shared=True), FadeRegression),
        (LOGISTIC, contextual(shared=True, reward_low=0.0), FadeLogistic),
        (FADE(), OJ, FadeCurve), (REWARDS, OJ, Priced), (FADE(), COSTS, FadeCurve),
        (FADE(), replace(OJ, link="logistic"), FadePrices),
        (FADE(), replace(OJ, dim=31, context_order=inf), FadePrices),
        (FADE(), OFFERS, FadePrices), (FADE(), replace(OFFERS, link="identity"), FadePrices),
        (FADE(model="regression"), contextual(), FadeTrying),
        (FADE(model="moments"), contextual(dim=3), FadeMoments),
        (FADE(model="moments", centring="public"), OJ, FadeMoments),
        (REWARDS, contextual(dim=3, horizon=1096), FadeMoments),
        (REWARDS, contextual(dim=3, horizon=1097), FadeTrying),
        (replace(REWARDS, epsilon=100.0), contextual(dim=20, horizon=8000), FadeMoments),
        (replace(REWARDS, epsilon=100.0), contextual(dim=20, horizon=8001), FadeTrying),
        (FADE(asks=False), contextual(dim=3, horizon=10_965, link="other"), FadeArms),
        (FADE(asks=False), contextual(dim=3, horizon=10_966, link="other"), FadeTrying),
        (FADE(bonus=0.0), contextual(dim=3, horizon=10_966, link="other"), FadeTrying),
        (FADE(), contextual(dim=3, horizon=2_193, link="other"), FadeArms),
        (FADE(delta=1e-6), contextual(dim=3, horizon=246, link="other"), RaceIMED),
        (FADE(), contextual(dim=3, horizon=247, link="other"), FadeArms),
        (FADE(), contextual(dim=3, horizon=246, link="other", delay=1), FadeArms),
        (FADE(epsilon=inf), contextual(dim=3, horizon=90, link="other"), FadeArms),
        (FADE(), contextual(dim=3, horizon=2_194, link="other"), FadeAsking),
        (FADE(), contextual(dim=3, horizon=10_965, link="other"), FadeAsking),
        (FADE(), contextual(dim=3, horizon=10_966, link="other"), FadeTrying),
        (FADE(), contextual(dim=1, horizon=10_966, link="other"), FadeTrying),
        (FADE(growth=0.2), contextual(dim=3, horizon=90, link="other"), FadeArms),
        (FADE(epsilon=10.0), contextual(horizon=501, **CLICKS), FadeTrying),
        (FADE(epsilon=10.0), contextual(horizon=320, **CLICKS), FadeAsking),
        (FADE(epsilon=3.0), contextual(horizon=5000, **CLICKS), FadeAsking),
        (FADE(epsilon=10.0, prior=PRIOR), contextual(horizon=501, **CLICKS), FadeArms),
        (FADE(), contextual(dim=4, horizon=5000, link="other"), FadeAsking),
        (FADE(asks=False), contextual(dim=4, horizon=1000, link="other"), FadeCentred),
        (FADE(), contextual(dim=4, horizon=328, link="other"), RaceIMED),
        (FADE(first_batch=20), contextual(dim=4, horizon=328, link="other"), FadeCentred),
        (FADE(), contextual(dim=4, horizon=329, link="other"), FadeCentred),
    ],
)  # fmt: skip
def test_choice_of_the_model(config, spec, player):
    """Golden: the table of the class. A Gram matrix pays once T / (10 K d) > 2 sqrt(2 d) / mu and
    > d: at d = 3, K = 2, mu = 0.26805 from T = 120 sqrt(6) / mu = 1096.6 on, without a link ten
    times that, or twice if users are asked; at d = 20 from 8,001 on, whatever the noise. Clicks
    with a link have a regression at d = 5 from 501 on, if 2 sqrt(10) / mu < 5, as at epsilon 10.
    Without a link, if nobody can be asked, contexts are ignored if T mu < 11 K d."""
    assert type(config.make(spec, Streams([0]))) is player


@each(("epsilon", "width"), [(1.0, 0.5), (inf, 1.0)])
def test_what_customers_share_is_drawn_wider_only_before_prices_were_tried(epsilon, width):
    """Golden: lines at a large budget, but not curves, whose first offers try all prices."""
    for features, expected in (("shrunk", width), ("curve", 0.5)):
        agent = FADE(epsilon=epsilon, features=features).make(OJ, Streams([0]))
        assert agent._shared_width == expected


@each(
    ("fields", "learned"), [
        ({}, False), ({"reward_low": 0.0}, True), ({"reward_low": 0.0, "link": "logistic"}, False),
        ({"link": "probit"}, True),
        ({"reward_low": 0.0, "reward_high": 10.0, "link": "poisson"}, True),
        ({"link": "other", "horizon": 1097}, True), ({"link": "other", "horizon": 1096}, False),
    ],
)  # fmt: skip
def test_the_level_is_learned_where_the_link_does_not_tell_it(fields, learned):
    """Golden: link(0) is 0, 1/2 or unknown; the middle of the range is it or is not."""
    spec = contextual(dim=3, **fields)
    agent = FADE(asks=False).make(spec, Streams([0]))
    assert agent.statistic.level_weight == 0.2 * learned
    if fields.get("link") == "other":
        return
    asked = FADE(centring="private").make(spec, Streams([0]))
    told = isinstance(asked, PrivatelyCentred)
    assert told == link_fixes_middle(spec)
    assert told or asked.statistic.level_weight == 0.2
    assert FADE(centring="public").make(spec, Streams([0])).statistic.level_weight == 0
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
    40 sqrt(d + 1) / mu for demand, 10 sqrt(D) / mu by residuals of D numbers, between 30 (by
    residuals 7.5) and T / 10, rounded up."""
    mu = mu_of(1.0, 1e-5)
    prices = OJPricing(horizon=20_000).spec
    for config, spec, first in (
        (FADE(), contextual(), ceil(9 * sqrt(50) / mu)),
        (FADE(), contextual(horizon=1000), 100),
        (FADE(), contextual(n_actions=5), ceil(22.5 * sqrt(50) / mu)),
        (FADE(), contextual(dim=9, shared=True), ceil(24 / mu)),
        (REWARDS, prices, ceil(80 / mu)),
        (FADE(features="additive"), prices, ceil(20 / mu)),
        (FADE(features="shrunk"), prices, ceil(10 * sqrt(8) / mu)),
        (FADE(epsilon=inf, features="shrunk"), prices, 8),
        (FADE(epsilon=inf), contextual(), 30),
        (FADE(first_batch=7), contextual(), 7),
    ):
        sums = sums_of(config.make(spec, Streams([0])))
        assert sums._ends == growing_batches(spec.horizon, first=first, growth=0.1)


def test_bad_settings_are_refused():
    words = {"model": "moment", "response": "logit", "coding": "reward", "centring": "privat"}
    words |= {"shrinkage": "soft", "trust": "shuffled"}
    check_refused(
        FADE, **words, first_batch=0, growth=-0.1, fade=1.0, shift=0.0, honest=0.5, bonus=-1
    )
    check_refused(FADE, epsilon=0.0, delta=0.0, fade=-0.1)
    check_refused(partial(FADE, anytime=True), growth=0.0)
    for kind, wrong, sentence in (
        (FullBudgetFADE, {"release_epsilon": 0.0}, r"epsilon=0\.0 to be a number > 0"),
        (
            partial(FADE, coding="rewards"), {"model": "arms"},
            "coding='rewards' without model='arms'",
        ),
        (
            partial(FADE, coding="rewards"), {"model": "slates"},
            "coding='rewards' without model='slates'",
        ),
        (FADE, {"trust": "aggregated"}, "fade=0.7 to be 0"),
    ):  # fmt: skip
        refused(sentence, kind, **wrong)


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
    demand = replace(configs[1], model="demand")
    refused("choose that, as the seller", certify, demand, "OJPricing", accountants=False)
    refused("here it is prices", certify, configs[1], "OJPricing", accountants=False)


@each(
    ("config", "spec", "sentence"),
    [
        (FADE(model="moments"), SHARED, "a parameter for each arm"),
        (FADE(centring="private"), PRICES, "model=arms or slates .*: here it is prices"),
        (FADE(shrinkage="none"), SHARED, "shrinkage='none' only with model=moments"),
        (FADE(debias=False), PRICES, "debias=False only with model=moments: here it is prices"),
        (FADE(model="moments", shift=2.0), PAIR, "shift=2.0 only with model=regression or demand"),
        (replace(LOGISTIC, centring="private"), SHARED, "here it is regression, FadeLogistic"),
        (FADE(model="slates"), DISJOINT, "one parameter for all arms, got"),
        (FADE(features="interactions"), PAIR, "model=prices or demand: here it is arms"),
        (FADE(response="linear"), SHARED, "response='linear' only with model=regression"),
        (FADE(model="arms"), SHARED, "a parameter for each arm"),
        (FADE(model="prices"), DISJOINT, "got a ContextualSpec: use model"),
        (FADE(model="demand"), DISJOINT, "got a ContextualSpec: use model"),
        (FadeArms(), contextual(dim=501), "1,000 coordinates, got 2 arms x 501 features = 1,002: "),
        (Mapped(FadeArms()), replace(DISJOINT, n_actions=4), "4 arms x 300 features"),
        (LOGISTIC, DISJOINT, "only with one shared"),
        (LOGISTIC, replace(SHARED, reward_high=2.0), "rewards in"),
        (FADE(), PriceSpec(dim=2, horizon=9, low=1.0, high=2.0), "plays finitely many arms"),
    ],
)
def test_problems_it_does_not_play_are_refused(config, spec, sentence):
    refused(sentence, config.make, spec, Streams([0]))


@each("spec", [ARMS, SHARED, OJ])
def test_each_release_of_the_baseline_has_the_noise_of_one(spec):
    """Golden: the players of FADE; a first batch of 0.3 of FADE's; noise S / mu, no fading; epsilon
    infinity, and why in words."""
    ours = FullBudgetFADE(release_epsilon=0.5).make(spec, Streams([0]))
    private = FADE(epsilon=0.5).make(spec, Streams([0]))
    assert isinstance(ours, type(private))
    looks = 3 if spec is ARMS else 0  # at the level of rewards
    lengths = [np.diff(player.sums._ends, prepend=0)[looks] for player in (ours, private)]
    assert lengths[0] == round(0.3 * lengths[1])
    assert ours.sums.fade == 1
    assert ours.sums.stddev == pytest.approx(private.sums.sensitivity / mu_of(0.5, 1e-5))
    proof = certify(FullBudgetFADE(release_epsilon=0.5), spec, accountants=False)
    assert (proof.epsilon, proof.claimed_epsilon) == (inf, inf)
    assert "a baseline" in str(proof.ledger.notion)
    assert FullBudgetFADE(release_epsilon=inf).make(spec, Streams([0])).sums.stddev == 0


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
    sums, inner = sums_of(agent), getattr(agent, "inner", agent)
    sensitivity = {
        FadeCentred: 2.0,
        FadeMoments: 2.0,
        FadeRegression: sqrt(8),
        FadeTrying: sqrt(8),
        FadeLogistic: sqrt(5),
        FadeArms: 2 * sqrt(1 + 0.15**2 + 0.2**2 * (variant in LEVELS)),
        FadeSlates: sqrt(4 * 1.09 + 2 * 0.275**2),
        FadeCurve: sqrt(4 + 4.5 * 0.5**2),
        FadePrices: sqrt(4 + 4.5 * (0.35 if variant == "additive" else 0.5) ** 2),
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


STEEP = ("arms", "answers", "slates", "logistic", "demand", "demand of rewards", "additive")


@every_variant
def test_no_two_adversaries_are_further_apart_than_the_sensitivity(variant, monkeypatch):
    """Every pair of 600 users, all meeting the same released parameter, also one so large that the
    logistic weights h reach their floor. The mechanism would see any of them, and no other."""
    config, spec = VARIANTS[variant]
    users, seen = adversaries(spec, 600, seed=3), []

    def recorded(self, *datum):
        seen.append((self.sensitivity, self.query(*datum)))

    monkeypatch.setattr(FadingSum, "__call__", recorded)
    for size in (1.0, 0.0, 30.0, 1e300) if variant in STEEP else (1.0,):
        agent = config.make(spec, Streams(range(600)))
        inner = getattr(agent, "inner", agent)
        theta = size * np.cos(np.arange(inner._theta[0].size)).reshape(inner._theta.shape[1:])
        inner._theta = np.zeros_like(inner._theta) + theta
        if hasattr(agent, "_before"):  # those who are counted have come
            agent.round = agent._before
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
    facts = {"base_margin": (*spec.base_margin, *[0.0] * 15)} if spec is COSTS else {}
    spec = replace(spec, dim=17, **facts)
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
