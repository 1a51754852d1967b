"""Worlds that move, by formula and whatever the blocks, and worlds that stay: parameters come from
`world_seed`, users from `seed`."""

import gymnasium as gym
import numpy as np
import pytest
from scipy.special import expit

from dpbandit import InputError, compare, play
from dpbandit.base.random_streams import Streams
from dpbandit.envs import (
    AssortmentBandit,
    CameraOffer,
    CameraPricing,
    GLMBandit,
    OJContinuousPricing,
    OJPricing,
    PricingFromLog,
)
from dpbandit.envs.dynamics import Tides
from dpbandit.testing import check_problem
from tests.each import each
from tests.envs.contextual.logs import SHOP, shop


def test_tides_follow_their_formulas():
    """By hand: a walk that is turned round at every step beyond the range, whatever the blocks;
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


def test_assortments_move_with_them():
    """A shock makes the oracle of a constant world better from its round on, and not before."""
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
    still, moved, clock = made(), made(**TIDES), made(clock=True, **TIDES)
    for one in (still, moved, clock):
        one.reset(Streams([0, 1]))
    tide = Tides(**TIDES).start(Streams([0, 1])).take(9)  # (9, 2)
    worth = still._worth
    for t in range(9):
        x, _, shown = (one.context() for one in (still, moved, clock))
        angle = 2 * np.pi * (t + 1) / 7
        turned = np.tile([np.sin(angle), np.cos(angle)], (2, 1))
        np.testing.assert_allclose(shown, np.hstack([x, turned]) / np.sqrt(2), atol=1e-12)
        mean = still._table.mean[t]
        expected = worth * expit(np.log(mean / (worth - mean)) + tide[t][:, None])
        arm = np.full(2, t)
        for one in (moved, clock):
            step = one.step(arm)
            np.testing.assert_allclose(step.expected, expected[:, t], rtol=1e-9)
            np.testing.assert_allclose(step.oracle, expected.max(axis=1), rtol=1e-9)
        still.step(arm)
    assert (still.spec.dim, clock.spec.dim - 2) == (moved.spec.dim, moved.spec.dim)
    with pytest.raises(InputError, match="to be said with clock=True"):
        made(clock=True)


def test_any_price_of_orange_juice_moves_with_them():
    """The oracle against a grid of prices, and one round's margin by the frozen coefficients."""
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


# Worlds that stay

PARAMETERS = {
    "AssortmentBandit": ("_theta",),
    "GLMBandit": ("_theta",),
    "ListRecommendation": ("_theta",),
    "Minority": ("_of_kinds",),
    "Recommendation": ("_items",),
    "StreamingRegression": ("population_minimiser",),
    "TwoArms": ("_of_kinds",),
    "TwoPhase": ("_of_kinds",),
}
FURTHER = {"StreamingRegression": {"theta": "gaussian"}}


def parameters(env, name):
    value = env.unwrapped.problem
    for part in PARAMETERS[name]:
        value = getattr(value, part)
    return value.copy()


@each("name", PARAMETERS)
def test_parameters_stay_and_users_change(name):
    """Would catch parameters that are drawn from the users' streams, or users from the world's."""
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
        with pytest.raises(InputError, match="Expected world_seed="):
            gym.make("dpbandit/GLMBandit-v0", world_seed=wrong)
    with pytest.raises(TypeError, match="world_seed"):  # told to what makes a problem, not to it
        GLMBandit(world_seed=3)
