"""A world that stays: parameters come from `world_seed`, users from `seed`."""

import gymnasium as gym
import numpy as np
import pytest

from dpbandit import InputError, compare, play
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit
from tests.each import each

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


@pytest.mark.parametrize("kind", ["bernoulli", "halving", "lower-bound"])
def test_the_best_expert_stays(kind):
    told = {"env_kwargs": {"world_seed": 2, "n_actions": 8, "kind": kind}, "horizon": 300}
    assert len(set(play("Experts", "hedge", range(6), **told).best_fixed)) == 1
    told["env_kwargs"].pop("world_seed")
    assert len(set(play("Experts", "hedge", range(6), **told).best_fixed)) > 1


def test_the_world_is_of_its_seed_alone():
    streams = Streams([1, 2]).child("environment").in_world(7)
    first, second = streams.world.normals("theta", 3)()
    np.testing.assert_array_equal(first, second)
    other = Streams([5]).child("environment").in_world(7)
    np.testing.assert_array_equal(other.world.normals("theta", 3)()[0], first)
    alone = Streams([1, 2]).child("environment")
    assert alone.world is alone


def test_a_comparison_in_one_world():
    """All replicas and the loop alone meet the parameters that gym.make shows."""
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


@pytest.mark.parametrize("wrong", [-1, 1.5, "a", True])
def test_what_is_no_seed_is_refused(wrong):
    with pytest.raises(InputError, match="Expected world_seed="):
        gym.make("dpbandit/GLMBandit-v0", world_seed=wrong)


def test_a_problem_itself_has_no_world_seed():
    """Its class keeps to its own arguments: the seed is told to what makes it."""
    with pytest.raises(TypeError, match="world_seed"):
        GLMBandit(world_seed=3)
