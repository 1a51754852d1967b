"""Every environment can be shown, as text and as one picture, without a warning."""

import warnings

import gymnasium as gym
import numpy as np
import pytest

import dpbandit
from dpbandit import InputError
from tests.each import each
from tests.envs.contextual.ratings_files import ARGUMENTS


def rendered(name, mode, rounds=3):
    """As Stable-Baselines3's `make_vec_env` makes one: every warning is an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(name, render_mode=mode, horizon=5, **ARGUMENTS.get(name, {}))
        env.reset(seed=0)
        env.action_space.seed(0)
        regret = 0.0
        for _ in range(rounds):
            *_, info = env.step(env.action_space.sample())
            regret += info.get("regret", 0.0)
        return env.render(), regret


@each("name", dpbandit.ENVIRONMENTS)
def test_every_environment_is_shown_as_text(name):
    text, regret = rendered(name, "ansi")
    first, total, actions, _ = text.split("\n")
    assert first == "round 3 of 5"
    assert len(actions) > len("last actions ")
    assert total == f"total regret {regret:.6g}" or total.startswith("total reward ")


@pytest.mark.parametrize(
    "kind", ["OJPricing", "OJContinuousPricing", "OnlineConvex", "ListRecommendation"]
)
def test_a_picture_of_each_kind_of_action(kind):
    """It is there before the first round, changes with the rounds, and is no blank page."""
    empty, picture = (
        rendered(f"dpbandit/{kind}-v0", "rgb_array", rounds=rounds)[0] for rounds in (0, 5)
    )
    assert picture.shape == (360, 480, 3)
    assert picture.dtype == np.uint8
    assert len(np.unique(picture)) > 50
    assert (picture != empty).any()


def test_many_at_once_and_a_new_episode():
    envs = gym.make_vec("dpbandit/GLMBandit-v0", num_envs=2, render_mode="ansi", horizon=3)
    envs.reset(seed=0)
    for _ in range(3):
        envs.step(np.array([1, 2]))
    first, second = envs.render()
    assert "last actions 1 1 1\n" in first
    assert "last actions 2 2 2\n" in second
    envs.reset()
    assert "round 0 of 3\ntotal regret 0\nlast actions (none)" in envs.render()[0]


def test_wrong_modes_are_refused():
    with pytest.raises(InputError, match="render_mode"):
        dpbandit.envs.adapters.BanditEnv(problem="dpbandit.envs:GLMBandit", render_mode="video")
    env = gym.make("dpbandit/GLMBandit-v0")
    env.reset()
    with pytest.raises(InputError, match="Expected render_mode='ansi' or 'rgb_array'"):
        env.unwrapped.render()
