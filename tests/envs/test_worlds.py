"""Worlds that move, by formula and whatever the blocks, worlds that stay (parameters come from
`world_seed`, users from `seed`), and worlds whose actions come and go."""

import json
from dataclasses import replace
from itertools import permutations, product
from unittest.mock import patch

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import expit

from dpbandit import InputError, certify, compare, play
from dpbandit.agents import DPUCB, AllocationTS, LinUCB, ListFADE, RankedLinUCB, Uniform
from dpbandit.base import Streams
from dpbandit.clients import Foreign, FromGymnasium, Player, record
from dpbandit.envs import (
    Arms,
    AssortmentBandit,
    CameraOffer,
    CameraPricing,
    Experts,
    GLMBandit,
    ListRecommendation,
    Minority,
    OJContinuousPricing,
    OJPricing,
    PricingFromLog,
    Recommendation,
    ReferencePricing,
    ReturningLists,
    ReturningPricing,
    ReturningUsers,
    SyntheticPricing,
    TwoPhase,
)
from dpbandit.envs.adapters import make_problem
from dpbandit.envs.choice.assortments import every_set
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.envs.nonstationarity import Tides
from dpbandit.offline import evaluate, replay, snapshot
from dpbandit.results.problems import as_words
from dpbandit.specs import ContextualSpec
from dpbandit.specs.premises import Premises
from dpbandit.testing import check_agent, check_problem
from tests.each import each, refused
from tests.envs.contextual.logs import SHOP, shop


def test_tides_follow_their_formulas():
    """Oracle: a walk that is turned round at every step beyond the range, whatever the blocks;
    seasons and shocks."""
    tides, walk, by_hand = Tides(drift=(0.3, 1.0)), 0.0, []
    whole = tides.start(Streams([5])).take(300)
    parts = tides.start(Streams([5]))
    np.testing.assert_array_equal(whole, np.concatenate([parts.take(7), parts.take(293)]))
    for step in 0.3 * Streams([5]).normals("drift").take(300)[:, 0]:
        walk, by_hand = walk + step, [*by_hand, walk + step]
        while abs(by_hand[-1]) > 1:
            by_hand[-1] = np.copysign(2, by_hand[-1]) - by_hand[-1]
    np.testing.assert_allclose(whole[:, 0], by_hand, atol=1e-12)
    assert whole.max() > 0.9 > -0.9 > whole.min()
    found = Tides(season=(0.5, 8), shock=(3, -2)).start(Streams([0])).take(4)[:, 0]
    np.testing.assert_allclose(found, 0.5 * np.sin(np.pi * np.arange(1, 5) / 4) - [0, 0, 2, 2])


TIDES = {"season": (1.0, 7), "drift": (0.2, 1.0), "shock": (4, -1.5)}
SHOPS = {
    "orange juice": OJPricing,
    "cameras": CameraPricing,
    "offers": CameraOffer,
    "own log": lambda **facts: PricingFromLog(shop(), **SHOP, **facts),
}


@pytest.mark.parametrize("name", SHOPS)
def test_logits_of_purchases_move_with_them(name):
    """Margins of a round from those without a tide; catches one that is left out, or late. Whoever
    is shown a clock is shown it with the season that is added, and stays as long as promised."""
    made = SHOPS[name]
    assert len(check_problem(made(horizon=30, **TIDES))) == 9
    static, moved, clock = made(), made(**TIDES), made(clock=True, **TIDES)
    for one in (static, moved, clock):
        one.reset(Streams([0, 1]))
    tide = Tides(**TIDES).start(Streams([0, 1])).take(9)  # (9, 2)
    margin_of_shop = static._margins
    for t in range(9):
        x, _, shown = (one.context() for one in (static, moved, clock))
        angle = 2 * np.pi * (t + 1) / 7
        turned = np.tile([np.sin(angle), np.cos(angle)], (2, 1))
        np.testing.assert_allclose(shown, np.hstack([x, turned]) / np.sqrt(2), atol=1e-12)
        mean = static._table.mean[t]
        expected = margin_of_shop * expit(np.log(mean / (margin_of_shop - mean)) + tide[t][:, None])
        arm = np.full(2, t)
        for one in (moved, clock):
            step = one.step(arm)
            np.testing.assert_allclose(step.expected, expected[:, t], rtol=1e-9)
            np.testing.assert_allclose(step.oracle, expected.max(axis=1), rtol=1e-9)
        static.step(arm)
    assert (static.spec.dim, clock.spec.dim - 2) == (moved.spec.dim, moved.spec.dim)
    refused("with clock=True, got none", made, clock=True)


def test_any_price_and_assortments_move_with_them():
    """The oracle against a grid of prices, and one round's margin by the frozen coefficients; a
    shock makes the oracle of a constant world better from its round on, and not before."""
    assert len(check_problem(OJContinuousPricing(horizon=30, **TIDES))) == 9
    problem = OJContinuousPricing(**TIDES)
    problem.reset(Streams([0, 1]))
    tide = Tides(**TIDES).start(Streams([0, 1])).take(9)
    D, grid = problem._demand, np.linspace(1.19, 2.29, 20_001)
    for t in range(9):
        problem.context()
        utility = D.utility[problem._row] + tide[t]
        step = problem.step(np.full(2, 1.5))
        np.testing.assert_allclose(step.expected, 0.7 * expit(utility - D.slope * 1.5))
        margins = (grid - D.cost) * expit(utility[:, None] - D.slope * grid)
        np.testing.assert_allclose(step.oracle, margins.max(axis=1), rtol=1e-7)
    problem = AssortmentBandit(horizon=30, season=(1.0, 10), drift=(0.1, 1.0), shock=(5, 1.0))
    assert len(check_problem(problem)) == 9
    oracles = []
    for tide in ({}, {"shock": (2, 5.0)}):
        one = AssortmentBandit(horizon=30, contexts="constant", **tide)
        one.reset(Streams([0]))
        draw = one.spec.uniform(Streams([1]))
        oracles.append([(one.context(), one.step(draw()))[1].oracle[0] for _ in range(3)])
    assert oracles[0][0] == oracles[1][0]
    assert oracles[0][1] < oracles[1][1]


# What is best of all

SLOTS = {"people": 6, "visits": 10, "horizon": 60}
ARMS_OF = [
    GLMBandit(drift="walk", drift_rate=0.3), GLMBandit(link="poisson", shared=True, noise=0.5),
    Recommendation(n_items=20), OJPricing(**TIDES), SyntheticPricing(season=(1.0, 9)),
    ReferencePricing(list_price=1.5, weight=4.0), ReferencePricing(reference="paid", weight=4.0),
    TwoPhase(horizon=60), Minority(share=0.3), Arms(means="steps", drift="piecewise", horizon=60),
    Arms(means="close", adversary="stochastically-constrained", horizon=400), Arms(means="ten"),
    Arms(law="table", table=np.random.default_rng(1).random((60, 4)), horizon=60),
    Experts(kind="switching", n_actions=5, best_loss=0.2, horizon=60), Experts(kind="policies"),
    ReturningUsers(link="logistic", **SLOTS), ReturningUsers(empty=0.4, **SLOTS),
    ReturningPricing(**SLOTS), ReturningPricing(arrivals="exactly", empty=0.3, **SLOTS),
]  # fmt: skip
MENUS = {"n_products": 4, "at_most": 2}
SETS = [
    (AssortmentBandit(**MENUS, **TIDES), 1), (AssortmentBandit(**MENUS, contexts="constant"), 1),
    (AssortmentBandit(**MENUS, prices=(1.0, 1.5, 3.0), season=(1.0, 9)), 3),
]  # fmt: skip
LISTS = {"n_items": 5, "length": 2, "taste": 3, "appeal": 2.0}
PEOPLE = ReturningLists(**LISTS, clicks="position", **SLOTS, tastes=1.5)
ALIKE = ListRecommendation(**LISTS, clicks="position", common=3)
FOR_ALL_THERE_MAY_BE = [
    ListRecommendation(**LISTS, clicks="cascade"), ListRecommendation(**LISTS, clicks="dependent"),
    ReturningLists(**LISTS, **SLOTS),
]  # fmt: skip
"""Their best fixed list is for all kinds of users, not for those who came, or not the best."""


def every_action():
    """Problems, and all that can be played there, (actions, ...)."""
    for problem in ARMS_OF:
        yield problem, np.arange(getattr(problem.spec, "visit", problem.spec).n_actions)
    for problem, levels in SETS:
        yield problem, every_set(4, 2, levels)
    free = AssortmentBandit(n_products=1, at_most=1, price_range=(1.0, 3.0), price_weight=2.0)
    yield free, np.linspace(1.0, 3.0, 100)[:, None]
    yield OJContinuousPricing(**TIDES), np.arange(119, 230) / 100
    for problem in (PEOPLE, ALIKE, *FOR_ALL_THERE_MAY_BE):
        yield problem, np.array(list(permutations(range(5), 2)))


@each(("problem", "actions"), every_action)
def test_what_is_best_is_the_best_of_all(problem, actions):
    """Brute force: every action in a replica of its own, all of which meet the same users. None
    beats the oracle in any round, one attains it; none beats the best fixed one, whenever that is
    asked for, and each replica knows it, whatever it played."""
    problem.reset(Streams([3] * len(actions)))
    total, spec = 0.0, problem.spec
    for t in range(60):
        context = problem.context()
        assert (context == context[0]).all()
        assert not (spec.returning and context[0, 0] < 0 and context[:, 1:].any())  # nobody's
        step = problem.step(actions)
        total = total + step.expected
        if not (spec.in_hindsight or getattr(spec, "followed", False)):
            best = step.expected.max()
            rounding = 1e-3 if len(actions) > 99 else 1e-12  # of prices to those of a list
            assert best - 1e-12 <= step.oracle.min() <= step.oracle.max() < best + rounding
        if t in (29, 59) and problem not in FOR_ALL_THERE_MAY_BE:
            fixed = problem.best_fixed()
            found = total[(actions == fixed[0]).reshape(len(actions), -1).all(axis=1)]
            assert found == pytest.approx(total.max(), abs=1e-12)
            assert (fixed == fixed[0]).all()
    if spec.in_hindsight:
        np.testing.assert_allclose(problem.hindsight(), total.max())


@each(("problem", "actions"), every_action)
def test_what_was_best_is_each_replicas_own(problem, actions):
    """Three replicas together know what each of them knows alone, from parameters of its own."""

    def best(seeds):
        problem.reset(Streams(seeds))
        for _ in range(20):
            problem.context()
            problem.step(np.repeat(actions[:1], len(seeds), axis=0))
        lacks = np.broadcast_to(problem.hindsight(), len(seeds))
        return np.column_stack([problem.best_fixed(), lacks])

    np.testing.assert_array_equal(best([3, 4, 5]), np.concatenate([best([s]) for s in (3, 4, 5)]))


# Worlds that stay

PARAMETERS = {
    "AssortmentBandit": ("_theta",), "GLMBandit": ("_theta",), "ListRecommendation": ("_theta",),
    "Minority": ("_of_kinds",), "Recommendation": ("_items",),
    "StreamingRegression": ("population_minimiser",), "TwoArms": ("_of_kinds",),
    "TwoPhase": ("_of_kinds",),
}  # fmt: skip
FURTHER = {"StreamingRegression": {"theta": "gaussian"}}


def parameters(env, name):
    value = env.unwrapped.problem
    for part in PARAMETERS[name]:
        value = getattr(value, part)
    return value.copy()


@each("name", PARAMETERS)
def test_parameters_stay_and_users_change(name):
    """With one `world_seed` parameters stay and users change from seed to seed. Catches parameters
    that are drawn from the users' streams, or users from those of the parameters."""
    further = {"horizon": 4, **FURTHER.get(name, {})}
    env = gym.make(f"dpbandit/{name}-v0", world_seed=5, **further)
    met = [(env.reset(seed=seed)[0], parameters(env, name)) for seed in (1, 2)]
    np.testing.assert_array_equal(met[0][1], met[1][1])
    env.action_space.seed(0)
    arm, rewards = env.action_space.sample(), []
    for seed in range(3):
        env.reset(seed=seed)
        rewards.append([env.step(arm)[1] for _ in range(4)])
    assert len({tuple(r) for r in rewards}) > 1
    several = gym.make_vec(f"dpbandit/{name}-v0", num_envs=3, world_seed=5, **further)
    several.reset(seed=9)
    for row in parameters(several, name):
        np.testing.assert_array_equal(row, met[0][1][0])
    free = gym.make(f"dpbandit/{name}-v0", **further)
    drawn = [(free.reset(seed=seed), parameters(free, name))[1] for seed in range(9)]
    assert any((p != drawn[0]).any() for p in drawn)


@each("kind", ["bernoulli", "halving", "lower-bound"])
def test_the_best_expert_stays(kind):
    told = {"env_kwargs": {"world_seed": 2, "n_actions": 8, "kind": kind}, "horizon": 300}
    assert len(set(play("Experts", "hedge", range(6), **told).best_fixed)) == 1
    told["env_kwargs"].pop("world_seed")
    assert len(set(play("Experts", "hedge", range(6), **told).best_fixed)) > 1


def test_the_world_is_of_its_seed_alone():
    """All replicas of a comparison, and the loop alone, meet the parameters that gym.make shows."""
    streams = Streams([1, 2]).child("environment").in_world(7)
    first, second = streams.world.normals("theta", 3)()
    np.testing.assert_array_equal(first, second)
    other = Streams([5]).child("environment").in_world(7)
    np.testing.assert_array_equal(other.world.normals("theta", 3)()[0], first)
    alone = Streams([1, 2]).child("environment")
    assert alone.world is alone
    env = gym.make("dpbandit/GLMBandit-v0", horizon=30, world_seed=4)
    told = compare("GLMBandit", "linucb", horizon=30, replicas=2, env_kwargs={"world_seed": 4})
    same = compare(env, "linucb", replicas=2)
    assert told.runs[0].setup.env_kwargs["world_seed"] == 4
    np.testing.assert_array_equal(told.runs[0].regret, same.runs[0].regret)
    free = compare("GLMBandit", "linucb", horizon=30, replicas=2)
    assert (free.runs[0].regret != same.runs[0].regret).any()
    thetas = []
    for seed in (0, 1):
        problem = env.unwrapped.problem
        play(problem, "uniform", [seed], marks=np.array([5]))
        thetas.append(problem._theta)
    np.testing.assert_array_equal(*thetas)
    for wrong in (-1, 1.5, "a", True):
        refused("Expected world_seed=", gym.make, "dpbandit/GLMBandit-v0", world_seed=wrong)
    with pytest.raises(TypeError, match="world_seed"):  # told to what makes a problem, not to it
        GLMBandit(world_seed=3)


# Actions that come and go

MEANS, SCHEDULE = (0.3, 0.6, 0.9), ["0:-5", "2:2-3", "2:6-"]


def there(arm, t):
    """Return True if the schedule has the arm in round t, by hand."""
    return (t <= 5, True, t in (2, 3) or t >= 6)[arm]


ROUNDS = range(1, 7)
BEST = sum(max(MEANS[a] for a in range(3) if there(a, t)) for t in ROUNDS)


def average(t):
    return np.mean([MEANS[a] for a in range(3) if there(a, t)])


FIXED = [sum(MEANS[a] if there(a, t) else average(t) for t in ROUNDS) for a in range(3)]
"""Total mean reward of each arm; in rounds where it is absent, a random other one is played."""


def test_regret_is_against_the_best_arm_that_is_there():
    """Brute force: all plays of six rounds that the schedule allows, a replica each; other plays
    are refused. Uniform and BestFixed within 5 standard errors of what is enumerated, of 1,000."""
    plays = np.array(list(product(*([a for a in range(3) if there(a, t)] for t in ROUNDS)))).T
    problem = make_problem(Arms, means=MEANS, horizon=6, available=SCHEDULE)
    problem.reset(Streams(range(plays.shape[1])))
    regret = 0.0
    for t, action in zip(ROUNDS, plays, strict=True):
        problem.context()
        assert (problem.mask() == [there(a, t) for a in range(3)]).all()
        for gone in [a for a in range(3) if not there(a, t)]:
            refused(f"there in this round, got {gone}", problem.step, np.full_like(action, gone))
        regret = regret + problem.step(action).regret
    np.testing.assert_allclose(regret, BEST - np.array(MEANS)[plays].sum(axis=0), atol=1e-12)
    assert (problem.best_fixed() == np.argmax(FIXED)).all()
    problem = make_problem(Arms, means=MEANS, horizon=6, available=SCHEDULE)
    found = compare(problem, {}, replicas=1000, progress=False)
    regret = {run.name: run.regret[-1] for run in found.runs}
    uniform, fixed = BEST - sum(average(t) for t in ROUNDS), BEST - max(FIXED)
    for name, mean in (("Uniform", uniform), ("BestFixed", fixed)):
        error = regret[name].std() / 1000**0.5
        assert abs(regret[name].mean() - mean) < 5 * error < abs(uniform - fixed)


def test_oracle_of_lists_is_the_best_of_all_lists_that_are_there():
    problem = make_problem(
        ListRecommendation, n_items=5, length=2, taste=3, horizon=30, absent=0.5, available="4:9-"
    )
    problem.reset(Streams(range(3)))
    seen = set()
    for t in range(1, 31):
        u, mask = problem.context(), problem.mask()
        assert (mask.sum(axis=1) >= 2).all()
        assert t >= 9 or not mask[:, 4].any()
        assert problem._attracts(np.ones(5)).tolist() == [1, 1, 1, 1, t >= 9]  # of fixed lists
        seen |= set(mask.sum(axis=1).tolist())
        attraction, model = problem._attraction(u), problem._model
        lists = np.array(list(permutations(range(5), 2)))
        for r in range(3):
            allowed = mask[r][lists].all(axis=1)
            expected = model.expected(attraction[r][lists])
            best = expected[allowed].max()
            action = np.array([np.flatnonzero(row)[:2] for row in mask])
            oracle = problem.step(action).oracle if r == 2 else None
        assert oracle[2] == pytest.approx(best)
    assert seen >= {2, 3}


def test_blocks_give_the_same_bits():
    """Would catch masks that are drawn, or agents that draw, otherwise in blocks than in rounds."""
    kwargs = {"n_actions": 4, "dim": 3, "available": ["3:150-", "0:-225"]}
    for agent, absent in (
        ("dp-ucb:refresh_every=50", 0.3), ("fade:first_batch=50", 0.0), (Uniform(), 0.3),
    ):  # fmt: skip
        kwargs["absent"] = absent
        logs = [
            play("GLMBandit", agent, range(3), horizon=300, env_kwargs=kwargs, blocks=blocks)
            for blocks in (True, False)
        ]
        for name in ("regret", "reward", "switches", "best_fixed"):
            np.testing.assert_array_equal(getattr(logs[0], name), getattr(logs[1], name))


class OwnMasks(ContextualProblem):
    """Users who may be offered arm 1 only where their feature is positive."""

    spec = ContextualSpec(n_actions=2, dim=1, horizon=40, masks="user")

    def _start(self, streams):
        self._uniforms = streams.uniforms("users", 2)

    def _users(self, count):
        uniforms = self._uniforms.take(count)
        x = 2 * uniforms[..., :1] - 1
        mean = np.broadcast_to([0.3, 0.6], (*x.shape[:2], 2))
        mask = np.concatenate([np.ones_like(x, dtype=bool), x > 0], axis=2)
        return Users(x, mean, 1.0 * (uniforms[..., 1:] < mean), mask)


class NoMasks(OwnMasks):
    def _users(self, count):
        return super()._users(count)._replace(mask=None)


class Followed(OwnMasks):
    spec = replace(OwnMasks.spec, masks="public")

    def _users(self, count):
        users = super()._users(count)
        yes = np.repeat(users.reward[..., :1], 2, axis=2)
        return users._replace(mean=np.full(yes.shape, 0.3), reward=yes)

    def step(self, action):
        step = super().step(action)
        self._mask = self._mask.copy()
        self._mask[self._next :, action == 0] = True
        return step


class Unheeding(LinUCB):
    def act_among(self, context, mask):
        return self.act(context)


class Remembering(DPUCB):
    def act_among(self, context, mask):
        self.last = mask.copy()
        return super().act_among(context, mask)


ARMS = ContextualSpec(n_actions=4, dim=2, horizon=24, masks="user")


def test_checks_pass_ours_and_catch_what_is_broken():
    """Public masks, of lists, problems of ours and somebody's own, reach the agents; wrong ones are
    refused. Masks of users are tested for all agents in the conformance tests."""
    lists = make_problem(ListRecommendation, n_items=9, length=3, horizon=24, absent=0.2).spec
    for config, spec in (
        (AllocationTS(first=1.0, draws=50), replace(ARMS, masks="public")),
        (RankedLinUCB(), lists),
        (ListFADE(first_batch=2), lists),
    ):
        assert check_agent(config, spec, rounds=12)
    for broken, sentence in (
        (Unheeding(), "Unheeding: Expected an action that is there"),
        (Remembering(), "replacing her changed what the agent remembers"),
        (AllocationTS(first=1.0, draws=50), "to enter CountedSums in no other round"),
    ):
        no_promises = patch.object(Premises, "promises", False)  # which refuses the last one unseen
        with no_promises, pytest.raises(AssertionError, match=sentence):
            check_agent(broken, ARMS)
    told = check_problem(OwnMasks())
    assert any(line.startswith("masks: user, 0.7") for line in told)
    for kind, kwargs in (
        (GLMBandit, {"available": ["2:5-"]}),
        (ListRecommendation, {"n_items": 9, "length": 3, "available": ["2-4:5-"], "absent": 0.2}),
    ):
        assert check_problem(make_problem(kind, horizon=30, **kwargs))

    with pytest.raises(AssertionError, match="public masks not to depend on what is played"):
        check_problem(Followed())
    with pytest.raises(AssertionError, match="_users of NoMasks to bring a mask"):
        check_problem(NoMasks())


def test_refusals_and_whose_data_masks_are():
    """Masks of the users' own stay theirs with a schedule on top, or an empty one; certificates say
    whose data masks are."""
    assert json.dumps(as_words({"absent": np.float32(0.5)})) == '{"absent": 0.5}'  # no digest
    for agent, said in (
        ("glm-ucb", "Expected an agent that plays only what is there .*, got GLMUCB"),
        ("fade:model=arms", "got FADE"),
        ("guarded:dp-ucb", "got Guard"),
        ("squarecb", "got SquareCB"),  # whose `act` is not that of what it is built on
        (
            "allocation-ts",
            "which action was played.*'Laplace sums.*masks='user' does not",
        ),
    ):
        refused(said, certify, agent, ARMS)
    for env, kwargs, said in (
        ("Arms", {"available": "0:5-3"}, "available='0:5-3' to name actions from 0 to 1"),
        ("Arms", {"available": "2:5-"}, "available='2:5-' to name actions from 0 to 1"),
        ("Arms", {"available": 3}, "available="),
        ("Arms", {"available": "1:9-", "horizon": 8}, "'1:9-' to begin within horizon=8"),
        ("Arms", {"available": "first"}, "words such as '3:200-'"),
        ("Arms", {"absent": 1.5}, "absent=1.5"),
        ("Arms", {"available": ["0:-5", "1:7-"]}, "at least 1 of 2 actions .* 0 in round 6"),
        ("Arms", {"absent": 0.1, "drift": "walk"}, "a ChangingArmsSpec without masks"),
        ("Experts", {"absent": 0.1}, "available= and absent= with arms or lists"),
        ("ReturningLists", {"absent": 0.1}, "a ReturningSpec without masks"),
    ):
        refused(said, make_problem, gym.spec(f"dpbandit/{env}-v0").kwargs["problem"], **kwargs)
    for available in ([], "0:-", ["1:5-"]):
        assert make_problem(OwnMasks, available=available).spec.masks == "user"
    said = {masks: certify("dp-ucb", replace(ARMS, masks=masks)) for masks in ("public", "user")}
    assert str(said["public"].notion).endswith("; which actions there are in a round is public")
    assert str(said["user"].notion).endswith(
        "; which actions there are for her is part of her round"
    )
    assert "own data reach her own actions" in str(certify("uniform", ARMS).notion)
    OwnMasks.spec, told = replace(OwnMasks.spec, masks="none"), OwnMasks.spec
    try:
        refused("whose _users bring masks, got 'none'", play, OwnMasks(), LinUCB(), [0])
    finally:
        OwnMasks.spec = told


def test_gymnasium_shows_masks():
    kwargs = {"n_actions": 4, "dim": 2, "horizon": 5, "available": ["3:3-"], "absent": 0.3}
    env = gym.make("dpbandit/GLMBandit-v0", **kwargs)
    several = gym.make_vec("dpbandit/GLMBandit-v0", num_envs=2, **kwargs)
    (_, info), (_, infos) = env.reset(seed=0), several.reset(seed=0)
    for t in range(1, 6):
        mask = info["action_mask"]
        assert mask.dtype == np.int8
        assert mask[3] == 0 or t >= 3
        np.testing.assert_array_equal(infos["action_mask"][0], mask)
        if not mask.all():  # as in the first two rounds
            with pytest.raises(InputError, match="which the mask forbids"):
                env.step(int(mask.argmin()))
        assert env.action_space.contains(int(env.action_space.sample(mask)))
        actions = infos["action_mask"].argmax(axis=1)
        *_, over, info = env.step(int(actions[0]))
        *_, infos = several.step(actions)
    assert over


def test_clients_and_logs_know_masks():
    """Would catch a player, a bridge or a foreign policy that is not told, or does not listen. The
    log's own policy has weights of 1, whatever the masks; a replay and a snapshot play what is
    there."""
    kwargs = {"n_actions": 4, "dim": 2, "available": ["3:10-"], "absent": 0.3, "horizon": 40}
    env = gym.make("dpbandit/GLMBandit-v0", **kwargs)
    bounds = {"reward_range": (-1.4, 1.4), "context_bound": 1.0, "masks": "user"}
    player = Player("dp-ucb:refresh_every=4", env, horizon=40, **bounds)
    observation, info = env.reset(seed=0)
    refused("an action_mask of 4 ones and zeros", player.act, observation)
    for _ in range(40):
        action, shown = player.act(observation, info["action_mask"]), observation.copy()
        observation, reward, _, _, info = env.step(action)  # which refuses others
        player.update(shown, action, reward)

    class First:
        def act(self, context, mask):
            return mask.argmax()

        def update(self, context, action, reward): ...

    bridge = FromGymnasium(lambda: gym.make(env.spec.id, **kwargs), regret="info:regret", **bounds)
    first = Foreign(policy=lambda spec, seed: First())
    assert compare(bridge, {"first": first, "linucb": LinUCB()}, horizon=60, replicas=2)
    kwargs = {"n_actions": 4, "dim": 2, "available": ["3:200-"], "absent": 0.3}
    log = record("GLMBandit", horizon=400, env_kwargs=kwargs)

    class Same:
        def probabilities(self, context, mask):
            return mask / mask.sum(axis=1, keepdims=True)

    ips = evaluate(Same(), log).set_index("estimator")["estimate"]["ips"]
    assert ips == pytest.approx(log.reward.mean())
    agent = LinUCB().make(log.spec, Streams([0]))
    law = snapshot(agent, log.spec).probabilities(log.context, log.mask)
    assert not law[~log.mask].any()
    assert replay(LinUCB(), log).retained.min() > 0
    refused("to have been possible", evaluate, np.full((400, 4), 0.25), log)
    taught = record("GLMBandit", horizon=400, agent="linucb", explore=0.5, env_kwargs=kwargs)
    assert (taught.propensity >= 0.125).all()
    refused("probabilities= of all arms", replace, taught, probabilities=None, lowest=None)
