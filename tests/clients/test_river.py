"""river against river itself: its two evaluations, its environments, its policies."""

import random

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import chisquare

import dpbandit
from dpbandit import InputError, compare
from dpbandit.agents import LinUCB
from dpbandit.clients import (
    FromGymnasium,
    read_log,
    record,
    river_history,
    river_policy,
)
from dpbandit.envs import GLMBandit
from tests.each import each
from tests.envs.contextual.ratings_files import ARGUMENTS
from tests.lazy import Lazy

bandit = Lazy("river.bandit")
TESTBED = "river.bandit:river_bandits/KArmedTestbed-v0"
T = 25


def always(arm=1):
    """A policy that pulls one arm."""

    class Always(bandit.base.Policy):
        def _pull(self, arm_ids):
            return arm

    return Always()


def discrete():
    for name in dpbandit.ENVIRONMENTS:
        space = gym.make(name, **ARGUMENTS.get(name, {})).action_space
        if isinstance(space, gym.spaces.Discrete):
            yield name


@each("name", discrete)
def test_every_discrete_environment_runs_in_rivers_evaluate(name):
    """All rounds of all episodes; equal policies meet equal users; seeds decide everything; the
    trace of an episode is what a loop by hand on the same seed earns."""

    env = gym.make(name, horizon=T, **ARGUMENTS.get(name, {}))

    def trace(seed):
        policies = [always(), bandit.UCB(delta=1, seed=3), always()]
        return list(bandit.evaluate(policies, env, n_episodes=2, seed=seed))

    rows = trace(seed=4)
    assert len(rows) == 3 * 2 * T
    assert {type(row["reward"]) for row in rows} == {float}
    rewards = {i: [row["reward"] for row in rows if row["policy_idx"] == i] for i in range(3)}
    assert rewards[0] == rewards[2]
    assert rows == trace(seed=4) != trace(seed=5)
    env.reset(seed=random.Random(4).randint(0, 2**32))
    assert rewards[0][:T] == [env.step(1)[1] for _ in range(T)]


def test_rivers_evaluate_shows_no_context():
    """As documented: its contextual policies fail there. If this test fails, river has learned."""
    env = gym.make("dpbandit/GLMBandit-v0", horizon=T)
    with pytest.raises(AttributeError, match="NoneType"):
        list(bandit.evaluate([bandit.LinUCBDisjoint(seed=1)], env, n_episodes=1))


def test_rivers_policies_in_compare():
    """The contextual one learns from contexts, the other cannot; replicas are told apart."""
    agents = {
        "contextual": river_policy(lambda seed: bandit.LinUCBDisjoint(seed=seed)),
        "blind": river_policy(lambda seed: bandit.UCB(delta=1, seed=seed)),
    }
    settings = {"env_kwargs": {"n_actions": 3, "dim": 3}, "progress": False}
    results = compare("GLMBandit", agents, horizon=150, replicas=3, **settings)
    mean = results.summary().set_index("agent")["mean"]
    assert mean["contextual"] < mean["Uniform"] / 3
    assert mean["blind"] > mean["Uniform"] / 2
    again = compare("GLMBandit", agents, horizon=150, replicas=2, **settings)
    np.testing.assert_array_equal(results.runs[1].regret[:, :2], again.runs[1].regret)
    with pytest.raises(InputError, match="LinUCBDisjoint has a model for each arm"):
        compare("Recommendation", agents, horizon=5, progress=False)


@pytest.mark.parametrize("exact", [True, False])
def test_rivers_testbed_in_compare(exact):
    """Ten normal arms without contexts: LinUCB with the constant context is UCB, and learns. With
    only the best arm's mean regret is noisier, by rewards of variance 1; same mean."""
    bed = FromGymnasium(
        TESTBED,
        oracle=lambda env: (
            env.unwrapped._actual_rewards if exact else max(env.unwrapped._actual_rewards)
        ),
        reward_range=(-6, 6),
        contexts="none",
    )
    policy = river_policy(lambda seed: bandit.UCB(delta=1, seed=seed))
    results = compare(
        bed, {"LinUCB": LinUCB(reward_noise=1.0), "UCB": policy}, horizon=300, replicas=4
    )
    mean = results.summary().set_index("agent")["mean"]
    assert mean["LinUCB"] < mean["Uniform"] / 2
    assert mean["UCB"] < mean["Uniform"] / 2
    assert mean["BestFixed"] == 0 if exact else abs(mean["BestFixed"]) < 6 * 300**0.5
    assert results.environment == "river_bandits/KArmedTestbed-v0"


def test_histories_of_uniform_logs_are_the_logs():
    """Rounds, contexts and rewards as recorded; what a fixed arm earns, counted by hand."""
    logged = record("GLMBandit", horizon=200, seed=2, env_kwargs={"n_actions": 3, "dim": 2})
    history = river_history(logged, arms=["a", "b", "c"])
    assert len(history) == 200
    assert history[7] == (
        ["a", "b", "c"],
        {"x0": logged.context[7, 0], "x1": logged.context[7, 1]},
        "abc"[logged.action[7]],
        logged.reward[7],
    )
    total, kept = bandit.evaluate_offline(always("b"), history)
    assert kept == (logged.action == 1).sum()
    assert total.get() == pytest.approx(logged.reward[logged.action == 1].sum())
    contextual, n = bandit.evaluate_offline(bandit.LinUCBDisjoint(seed=1), history)
    assert contextual.get() / n > logged.reward.mean() + 0.2  # a gap of 0.5, its error is 0.06


def uneven(n, seed):
    """Arm 1 is shown to half of all users with probability 0.8, to the others with 0.2; those of
    the first half always click, the others never."""
    generator = np.random.default_rng(seed)
    first = generator.random(n) < 0.5
    chance = np.where(first, 0.8, 0.2)
    shown = generator.random(n) < chance
    return {
        "first": 1.0 * first,
        "shown": np.where(shown, "new", "old"),
        "click": 1.0 * first,
        "chance": np.where(shown, chance, 1 - chance),
    }


def test_uneven_logs_are_thinned_to_uniform_ones():
    """Both arms earn 1/2. River's replay of the thinned log agrees, within 5 standard errors (false
    alarm 6e-7 per change of seed), and given the context arms are 50:50 (chi-square, p > 1e-6).
    Power: of the log as it is, propensities kept back, replay says 0.8 and the test p < 1e-6."""
    table = uneven(4000, seed=0)
    columns = {"action": "shown", "reward": "click", "context": ["first"]}
    bounds = {"context_bound": 1.0, "reward_range": (0, 1)}
    for propensity, value, even in (("chance", 0.5, True), (None, 0.8, False)):
        logged = read_log(table, propensity=propensity, **columns, **bounds)
        history = river_history(logged, arms=["new", "old"])
        total, n = bandit.evaluate_offline(always("new"), history)
        assert abs(total.get() / n - value) < 5 * 0.5 / n**0.5 < 0.15
        shown = [arm for _, context, arm, _ in history if context["x0"] == 1]
        assert (chisquare([shown.count("new"), shown.count("old")]).pvalue > 1e-6) == even


@each(
    ("change", "match"),
    [
        ({"action": "arm"}, "a column 'arm', the table has"),
        ({"reward": "shown"}, "column 'shown' to hold numbers"),
        ({"propensity": "p"}, "a column 'p'"),
        ({"arms": ["old", "newer"]}, "among arms=.* got 'new'"),
        ({"propensity": 2.0}, "propensities in"),
        ({"lowest": "a"}, "lowest='a'"),
        ({"context": ["shown"]}, "column 'shown' to hold numbers"),
        ({"arms": ["old", "new", "old"]}, "every arm once .* got 'old' twice"),
    ],
    ids=str,
)
def test_tables_that_are_no_logs(change, match):
    settings = {"action": "shown", "reward": "click", "propensity": "chance", **change}
    with pytest.raises(InputError, match=match):
        read_log(uneven(100, seed=1), **settings, reward_range=(0, 1))


def test_what_cannot_be_recorded():
    with pytest.raises(InputError, match="delay=3"):
        record("OJPricing", horizon=5, env_kwargs={"delay": 3})
    with pytest.raises(InputError, match="finitely many arms"):
        record("OJContinuousPricing", horizon=5, agent="uniform")
    with pytest.raises(InputError, match="Expected 12 arms, got 2"):
        river_history(record("OJPricing", horizon=50), arms="ab")


@each(
    ("played", "says"),
    [
        (["a", 1, "a", 1], "got 1 in row 1"),
        (["a", "b", None, "b"], "no missing entries in column 'a', got 1 of 4"),
        ([0, 1, np.nan, 1], "no missing entries in column 'a', got 1 of 4"),
        ([None] * 4, "no missing entries in column 'a', got 4 of 4"),
        ([[0], [0, 1], [1], [1]], r"got \[0\] in row 0"),
        ([[0], [1], [1], [1]], "column 'a' to hold one entry"),
    ],
    ids=str,
)
@each("arms", [None, ["a", "b", "1", 0, 1]])
def test_actions_are_all_text_or_all_numbers(played, says, arms):
    """Broken on purpose: as an array, ["a", 1] is ["a", "1"]."""
    with pytest.raises(InputError, match=says) as caught:
        read_log({"a": played, "r": [0, 0, 1, 1]}, action="a", reward="r", arms=arms)
    assert "\n" not in str(caught.value)


def test_without_propensities_all_arms_were_equally_likely():
    table = {"a": [0, 1, 2.0], "r": [0, 1, 1]}
    logged = read_log(table, action="a", reward="r", reward_range=(0, 1))
    assert logged.propensity.tolist() == [1 / 3] * 3
    assert logged.lowest_is_public


def test_a_recorded_round_holds_the_reward_of_its_own_action():
    """Oracle: without noise a reward is the mean of the arm logged at the context logged."""
    made = []

    def bandit_without_noise(**arguments):
        made.append(GLMBandit(n_actions=3, dim=2, noise=0.0, **arguments))
        return made[0]

    logged = record(bandit_without_noise, horizon=100)
    theta = made[0]._theta[0, logged.action]  # (100, 2)
    np.testing.assert_allclose(logged.reward, np.vecdot(theta, logged.context), atol=1e-12)
    assert np.bincount(logged.action).min() > 10
