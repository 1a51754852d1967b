"""Ordered lists and other people's code: river's models, one's own policy, repaired actions."""

import gymnasium as gym
import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agents import RankedLinUCB
from dpbandit.clients import Foreign, RiverRanking

SETTINGS = {"horizon": 300, "replicas": 3, "progress": False}
WORLD = {"n_items": 20, "length": 3, "taste": 3, "base_rate": 0.2, "appeal": 2.0}


def logistic(seed):
    from river import linear_model, optim

    return linear_model.LogisticRegression(optim.SGD(0.5))


ONE = logistic(0)


class Counts:
    """Shows the items that were clicked most often when shown; 300 users are too few for that."""

    def __init__(self, spec, seed):
        self.clicks, self.shown, self.length = (
            np.zeros(spec.n_items),
            np.ones(spec.n_items),
            spec.length,
        )

    def act(self, context):
        return np.argsort(-self.clicks / self.shown, kind="stable")[: self.length]

    def update(self, context, action, reward):
        assert action.shape == reward.shape == (self.length,)
        self.clicks[action] += reward
        self.shown[action] += 1


def test_rivers_model_learns_to_rank():
    """With a catalogue of each replica's own; better than the best fixed list, not than LinUCB;
    replicas do not depend on each other."""
    agents = {
        "river": RiverRanking(logistic),
        "mine": Foreign(policy=Counts),
        "linucb": RankedLinUCB(),
    }
    results = compare("ListRecommendation", agents, env_kwargs=WORLD, **SETTINGS)
    mean = results.summary().set_index("agent")["mean"]
    assert mean["linucb"] < mean["river"] < mean["BestFixed"]
    river = {"river": agents["river"]}
    again = compare("ListRecommendation", river, env_kwargs=WORLD, **{**SETTINGS, "replicas": 2})
    np.testing.assert_array_equal(results.runs[0].regret[:, :2], again.runs[0].regret)
    assert np.isinf(results.runs[0].certificate.epsilon)


def test_what_sends_any_sample_of_the_box_is_served():
    """As Stable-Baselines3 does of a MultiDiscrete space: repetitions are repaired."""
    env = gym.make("dpbandit/ListRecommendation-v0", **WORLD, horizon=50)
    env.reset(seed=0)
    env.action_space.seed(0)
    for _ in range(50):
        *_, truncated, info = env.step(env.action_space.sample())
    assert truncated
    env.reset(seed=0)
    *_, info = env.step(np.zeros(3, dtype=int))  # 0, 1, 2
    assert 0 <= info["expected_reward"] <= info["oracle_reward"]


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (lambda: RiverRanking(logistic(0)), "to be a function that returns a new model"),
        (lambda: RiverRanking(logistic, explore=2.0), "explore=2.0"),
        (lambda: played(RiverRanking(lambda seed: "model")), "a model from every call"),
        (lambda: played(RiverRanking(lambda seed: ONE)), "got one twice"),
        (lambda: played(RiverRanking(logistic), "GLMBandit"), "ordered lists of items"),
        (lambda: played(Foreign(policy=Counts, act=lambda p, x: 1)), "a list of 5 item numbers"),
        (lambda: played(Foreign(policy=Counts, act=lambda p, x: [1] * 5)), "different items"),
    ],
)
def test_mistakes_get_one_sentence(config, sentence):
    with pytest.raises(InputError, match=sentence):
        config()


def played(config, env="ListRecommendation"):
    compare(env, {"mine": config}, horizon=3, replicas=2, progress=False)
