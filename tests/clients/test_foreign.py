"""Other people's policies: one copy a replica, told its own users only; river against river itself;
ordered lists."""

import random
from functools import cache

import gymnasium as gym
import numpy as np
import pytest
from scipy.stats import chisquare

import dpbandit
from dpbandit import InputError, compare
from dpbandit.agents import LinUCB, RankedLinUCB, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.clients import (
    Foreign,
    RiverRanking,
    mabwiser_policy,
    read_log,
    record,
    river_history,
    river_policy,
)
from dpbandit.envs import GLMBandit
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each, refused
from tests.envs.contextual.ratings_files import ARGUMENTS
from tests.lazy import Lazy

SPEC = ContextualSpec(n_actions=3, dim=2, horizon=20)
SHARED = ContextualSpec(n_actions=3, dim=2, horizon=20, shared=True)


class Alone:
    """Agent of ours as somebody else would write it: for one user at a time."""

    def __init__(self, config, spec, seed):
        self.agent = config.make(spec, Streams([seed]))

    def act(self, context):
        return self.agent.act(context[None])[0]

    def update(self, *told):
        self.agent.update(*(np.array([part]) for part in told))


class Recorder:
    """Plays arm `seed` % 3 and writes on all it is shown."""

    def __init__(self, spec, seed):
        self.seed, self.told = seed, []

    def act(self, context):
        context[...] = np.nan
        return self.seed % 3

    def update(self, context, action, feedback):
        self.told.append((context.copy(), action, feedback))
        context[...] = np.nan


def run(agents, env="GLMBandit", **more):
    settings = {"horizon": 60, "replicas": 3, "progress": False, **more}
    return {run.name: run for run in compare(env, agents, **settings).runs}


@pytest.mark.parametrize("env", ["GLMBandit", "Recommendation"])
def test_a_scalar_copy_for_each_replica_is_the_batched_agent(env):
    """Oracle: LinUCB, run one replica at a time by the wrapper; difference exactly 0.0. With
    rows of features for arms, the policy is shown all of them."""
    config = LinUCB()
    alone = Foreign(policy=lambda spec, seed: Alone(config, spec, seed))
    runs = run({"batched": config, "alone": alone}, env)
    np.testing.assert_array_equal(runs["alone"].regret, runs["batched"].regret)


def test_names_of_methods_are_free():
    """Seeded by (seed, replica), and each replica differently."""

    class Other:
        def __init__(self, seed):
            self.choose = np.random.default_rng(seed).integers

        def learn(self, arm, gain):
            assert (type(arm), type(gain)) == (int, float)

    config = Foreign(
        policy=lambda spec, seed: Other(seed),
        act=lambda other, context: other.choose(5),
        update=lambda other, context, action, reward: other.learn(action, reward),
    )
    first, again = run({"other": config})["other"], run({"other": config})["other"]
    np.testing.assert_array_equal(first.regret, again.regret)
    assert len(set(first.regret[-1])) == 3


def test_every_replica_is_told_its_own_rounds_and_cannot_write_on_them():
    """It claims nothing, prints, hashes, and is made of functions."""
    agent = Foreign(policy=Recorder).make(SPEC, Streams([1, 2]))
    context = np.arange(4.0).reshape(2, 2)
    before = context.copy()
    actions = agent.act(context)
    agent.update(context, actions, np.array([0.25, 0.75]))
    np.testing.assert_array_equal(context, before)
    one, two = agent._policies
    assert one.seed != two.seed
    assert [p.told[0][0].tolist() for p in (one, two)] == before.tolist()
    assert [p.told[0][1:] for p in (one, two)] == [(one.seed % 3, 0.25), (two.seed % 3, 0.75)]
    config = Foreign(policy=Recorder)
    assert run({"mine": config})["mine"].certificate.epsilon == np.inf
    assert "Recorder" in repr(config)
    assert len({config, Foreign(policy=Recorder), Uniform()}) == 2
    refused("finitely many arms", run, {"mine": config}, "OJContinuousPricing")
    for name in ("policy", "act", "update"):
        refused(f"{name}=3 to be a function", Foreign, **{"policy": Recorder, name: 3})


class Pulls:
    """Has the methods of river and mabwiser, and an attribute `inner` of its own."""

    inner, is_contextual = "shared by all", False
    act = update = pull = predict = lambda *told, **more: 0


@each("wrap", [mabwiser_policy, river_policy, lambda policy: Foreign(policy=policy)])
def test_a_shared_policy_is_refused(wrap):
    """Also behind a wrapper, which is new every time."""
    same = Pulls()
    with pytest.raises(InputError, match="a new object from every call of policy"):
        wrap(lambda *told: same).make(SPEC, Streams([1, 2]))
    wrap(lambda *told: Pulls()).make(SPEC, Streams([1, 2]))


@each("wrong", [1.5, "x", None, 99, -1, np.nan, np.inf, [0]], ids=repr)
def test_what_is_no_arm_is_refused_in_its_round(wrong):
    """Also one that makes answers ragged, which no array could hold."""
    answers = iter([0, 1, wrong, 2])
    config = Foreign(
        policy=lambda spec, seed: object(),
        act=lambda *asked: next(answers),
        update=lambda *told: None,
    )
    refused("In round 2: Expected", run, {"wrong": config}, replicas=2)


class Stub:
    """The surface of mabwiser's MAB, 2.7: remembers what it was told."""

    def __init__(self, arms, seed, contextual):
        self.arms, self.is_contextual, self.calls = arms, contextual, []

    def fit(self, decisions, rewards, contexts=None):
        self.calls.append(("fit", decisions, rewards, contexts))

    def partial_fit(self, decisions, rewards, contexts=None):
        assert self.calls, "mabwiser: call fit before partial_fit"
        self.calls.append(("partial_fit", decisions, rewards, contexts))

    def predict(self, contexts=None):
        assert self.calls, "mabwiser: call fit before predict"
        assert (contexts is not None) == self.is_contextual
        return self.arms[-1]


@pytest.mark.parametrize("contextual", [True, False])
def test_mabwiser_is_fitted_before_it_predicts(contextual):
    """All arms in turn, the first by fit; contexts as one row of a table, or none."""
    config = mabwiser_policy(lambda arms, seed: Stub(arms, seed, contextual))
    agent = config.make(SPEC, Streams([0]))
    context, played = np.array([[0.5, -0.5]]), []
    for t in range(5):
        action = agent.act(context)
        agent.update(context, action, np.array([t / 4]))
        played.append(int(action[0]))
    assert played == [0, 1, 2, 2, 2]
    calls = agent._policies[0].inner.calls
    assert [name for name, *_ in calls] == ["fit"] + ["partial_fit"] * 4
    assert [(a, r) for _, a, r, _ in calls] == [([a], [t / 4]) for t, a in enumerate(played)]
    for *_, shown in calls:
        assert (shown.tolist() == context.tolist()) if contextual else shown is None
    if contextual:
        refused("one context for all arms", config.make, SHARED, Streams([0]))
    else:
        config.make(SHARED, Streams([0]))


bandit, linear_model, optim = (
    Lazy(f"river.{name}") for name in ("bandit", "linear_model", "optim")
)
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
    one, _, two = ([row["reward"] for row in rows if row["policy_idx"] == i] for i in range(3))
    assert one == two
    assert rows == trace(seed=4) != trace(seed=5)
    env.reset(seed=random.Random(4).randint(0, 2**32))
    assert one[:T] == [env.step(1)[1] for _ in range(T)]


def test_rivers_policies_and_models_in_compare():
    """The contextual one learns from contexts, the other cannot; a model learns to rank better than
    the best fixed list, not than LinUCB; replicas are told apart."""
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
    river = {"river": RiverRanking(logistic)}
    agents = {**river, "mine": Foreign(policy=Counts), "linucb": RankedLinUCB()}
    results = compare("ListRecommendation", agents, env_kwargs=RANKED, **SETTINGS)
    mean = results.summary().set_index("agent")["mean"]
    assert mean["linucb"] < mean["river"] < mean["BestFixed"]
    again = compare("ListRecommendation", river, env_kwargs=RANKED, **{**SETTINGS, "replicas": 2})
    np.testing.assert_array_equal(results.runs[0].regret[:, :2], again.runs[0].regret)
    assert np.isinf(results.runs[0].certificate.epsilon)


def test_histories_of_uniform_logs_are_the_logs():
    """Rounds, contexts and rewards as recorded; what a fixed arm earns, counted by hand. Oracle of
    recorded rounds: without noise a reward is the mean of the arm logged at the context logged."""
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
    made = []

    def bandit_without_noise(**arguments):
        made.append(GLMBandit(n_actions=3, dim=2, noise=0.0, **arguments))
        return made[0]

    logged = record(bandit_without_noise, horizon=100)
    theta = made[0]._theta[0, logged.action]  # (100, 2)
    np.testing.assert_allclose(logged.reward, np.vecdot(theta, logged.context), atol=1e-12)
    assert np.bincount(logged.action).min() > 10


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
    """Both arms earn 1/2, and given the context are 50:50, within 5 standard errors and by chi-
    square (p > 1e-6). Power: of the log as it is replay says 0.8 and the test p < 1e-6."""
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


SETTINGS = {"horizon": 300, "replicas": 3, "progress": False}
RANKED = {"n_items": 20, "length": 3, "taste": 3, "base_rate": 0.2, "appeal": 2.0}


def logistic(seed):
    return linear_model.LogisticRegression(optim.SGD(0.5))


@cache
def same():
    return logistic(0)


class Counts:
    """Shows the items that were clicked most often when shown; 300 users are too few for that."""

    def __init__(self, spec, seed):
        self.clicks, self.shown = np.zeros(spec.n_items), np.ones(spec.n_items)
        self.length = spec.length

    def act(self, context):
        return np.argsort(-self.clicks / self.shown, kind="stable")[: self.length]

    def update(self, context, action, reward):
        assert action.shape == reward.shape == (self.length,)
        self.clicks[action] += reward
        self.shown[action] += 1


@each(
    ("config", "sentence"),
    [
        (lambda: record("OJPricing", horizon=5, env_kwargs={"delay": 3}), "delay=3"),
        (lambda: record("OJContinuousPricing", horizon=5, agent="uniform"), "finitely many arms"),
        (lambda: river_history(record("OJPricing", horizon=50), arms="ab"), "12 arms, got 2"),
        (lambda: RiverRanking(logistic(0)), "to be a function that returns a new model"),
        (lambda: RiverRanking(logistic, explore=2.0), "explore=2.0"),
        (lambda: played(RiverRanking(lambda seed: "model")), "a model from every call"),
        (lambda: played(RiverRanking(lambda seed: same())), "got one twice"),
        (lambda: played(RiverRanking(logistic), "GLMBandit"), "ordered lists of items"),
        (lambda: played(Foreign(policy=Counts, act=lambda p, x: 1)), "a list of 5 item numbers"),
        (lambda: played(Foreign(policy=Counts, act=lambda p, x: [1] * 5)), "different items"),
    ],
)
def test_mistakes_get_one_sentence(config, sentence):
    refused(sentence, config)


def played(config, env="ListRecommendation"):
    compare(env, {"mine": config}, horizon=3, replicas=2, progress=False)
