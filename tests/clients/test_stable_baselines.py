"""The rules of Stable-Baselines3's `check_env`, as code: torch is too heavy for most tests."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces

import dpbandit
from tests.each import each
from tests.envs.contextual.ratings_files import ARGUMENTS

every_env = pytest.mark.parametrize("name", dpbandit.ENVIRONMENTS)


def broken_rules(env):
    """The rules of check_env (version 2.9) that an environment breaks; flat spaces only."""
    found = []

    def rule(kept, words):
        if not kept:
            found.append(words)

    seen, arms = env.observation_space, env.action_space
    rule(isinstance(env, gym.Env), "a gymnasium.Env")
    rule(not hasattr(env.unwrapped, "compute_reward"), "no goal environment")
    rule(isinstance(seen, spaces.Box | spaces.Discrete), "one array or number is observed")
    several = spaces.MultiBinary | spaces.MultiDiscrete
    rule(isinstance(arms, spaces.Box | spaces.Discrete | several), "one array or number is played")
    for name, space in (("observation", seen), ("action", arms)):
        if isinstance(space, spaces.Box):
            rule(np.isfinite([space.low, space.high]).all(), f"finite box: {name}")
        elif not isinstance(space, spaces.MultiBinary):
            rule(np.all(space.start == 0), f"counts from 0: {name}")
    started = env.reset(seed=0)
    rule(isinstance(started, tuple) and len(started) == 2, "reset returns two things")
    observation, info = started
    _check(rule, seen, observation, info)
    for _ in range(10):
        answer = env.step(arms.sample())
        rule(len(answer) == 5, "step returns five things")
        observation, reward, terminated, truncated, info = answer
        _check(rule, seen, observation, info)
        rule(isinstance(reward, float | int), "reward is a Python number")
        rule(np.isfinite(reward), "reward is finite")
        rule(isinstance(terminated, bool) and isinstance(truncated, bool), "flags are bools")
        if terminated or truncated:
            env.reset()
    again = [env.reset(seed=3)[0] for _ in range(2)]
    rule(np.array_equal(*again), "seeds decide the start")
    return set(found)


def _check(rule, space, observation, info):
    rule(isinstance(info, dict), "info is a dict")
    rule(not isinstance(observation, tuple), "an observation is no tuple")
    if isinstance(space, spaces.Box):
        rule(isinstance(observation, np.ndarray), "an observation is an array")
        observation = np.asarray(observation)
        rule(observation.shape == space.shape, "shape as declared")
        rule(np.can_cast(observation.dtype, space.dtype), "dtype as declared")
        rule(np.isfinite(observation).all(), "observations are finite")
    rule(observation in space, "observations within their space")


@every_env
def test_every_environment_keeps_the_rules(name):
    """Through episode ends, too: four rounds an episode."""
    assert broken_rules(gym.make(name, horizon=4, **ARGUMENTS.get(name, {}))) == set()


class Breaker(gym.Wrapper):
    """Changes one thing in what an environment answers."""

    def __init__(self, env, change):
        super().__init__(env)
        self.change = change

    def step(self, action):
        return tuple(self.change(list(self.env.step(action))))

    def reset(self, **more):
        observation, info = self.env.reset(**more)
        return self.change([observation, 0.0, False, False, info])[0], info


@pytest.mark.parametrize("offered", [0, 1])
def test_masks_that_are_no_assortments_are_repaired(offered):
    """What a policy of Stable-Baselines3 may send: every product, or none."""
    env = gym.make("dpbandit/AssortmentBandit-v0", horizon=4, n_products=5, at_most=2)
    env.reset(seed=0)
    spec = env.unwrapped.problem.spec
    _, _, _, _, info = env.unwrapped.step(np.full(5, offered))
    assert info["choice"] in ((0, 1, 5) if offered else (0, 5))
    repaired = spec.repaired(np.full((1, 5), offered))
    assert repaired.tolist() == [[1, 1 * offered, 0, 0, 0]]
    assert spec.repaired("x") == "x"


def put(place, value):
    def change(answer):
        answer[place] = value(answer[place]) if callable(value) else value
        return answer

    return change


@each(
    ("change", "rule"),
    [
        (put(1, np.float32(0.5)), "reward is a Python number"),
        (put(1, float("nan")), "reward is finite"),
        (put(2, np.False_), "flags are bools"),
        (put(3, int), "flags are bools"),
        (put(4, None), "info is a dict"),
        (put(0, lambda x: x.tolist()), "an observation is an array"),
        (put(0, lambda x: 2 + x), "observations within their space"),
        (put(0, lambda x: x * np.nan), "observations are finite"),
        (put(0, lambda x: x[:2]), "shape as declared"),
        (put(0, lambda x: x.astype(np.complex128)), "dtype as declared"),
        (put(0, lambda x: x * np.random.default_rng().random()), "seeds decide the start"),
    ],
)
def test_the_rules_have_teeth(change, rule):
    assert rule in broken_rules(Breaker(gym.make("dpbandit/GLMBandit-v0", horizon=4), change))


@pytest.mark.slow
@pytest.mark.filterwarnings("error::UserWarning")
def test_dqn_learns_in_a_world_that_stays():
    """Where it is installed: less than a tenth of the best fixed arm's regret (measured: 0.2 %)."""
    stable_baselines3 = pytest.importorskip("stable_baselines3")
    from stable_baselines3.common.env_util import make_vec_env

    world = {"n_actions": 3, "dim": 3, "horizon": 500, "world_seed": 11}
    envs = make_vec_env("dpbandit/GLMBandit-v0", n_envs=4, seed=0, env_kwargs=world)
    model = stable_baselines3.DQN("MlpPolicy", envs, gamma=0.0, seed=0).learn(10_000)
    env = gym.make("dpbandit/GLMBandit-v0", **world)

    def regret(act):
        observation, _ = env.reset(seed=1)
        total = 0.0
        for _ in range(500):
            observation, *_, info = env.step(act(observation))
            total += info["regret"]
        return total

    learned = regret(lambda seen: int(model.predict(seen, deterministic=True)[0]))
    assert learned < 0.1 * min(regret(lambda _, arm=arm: arm) for arm in range(3))
