"""Scalar policies in `compare`: one copy a replica, told its own users only."""

import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agents import LinUCB, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.clients import Foreign, mabwiser_policy, river_policy
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each

SPEC = ContextualSpec(n_actions=3, dim=2, horizon=20)
SHARED = ContextualSpec(n_actions=3, dim=2, horizon=20, shared=True)


class Alone:
    """One of our agents as somebody else would write it: for one user at a time."""

    def __init__(self, config, spec, seed):
        self.agent = config.make(spec, Streams([seed]))

    def act(self, context):
        return self.agent.act(context[None])[0]

    def update(self, context, action, feedback):
        self.agent.update(context[None], np.array([action]), np.array([feedback]))


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
    class Other:
        def __init__(self, seed):
            self.generator = np.random.default_rng(seed)

        def choose(self, features):
            return self.generator.integers(5)

        def learn(self, arm, gain):
            assert type(arm) is int
            assert type(gain) is float

    config = Foreign(
        policy=lambda spec, seed: Other(seed),
        act=lambda other, context: other.choose(context),
        update=lambda other, context, action, reward: other.learn(action, reward),
    )
    first, again = run({"other": config})["other"], run({"other": config})["other"]
    np.testing.assert_array_equal(first.regret, again.regret)  # seeded by (seed, replica)
    assert len(set(first.regret[-1])) == 3  # and each replica differently


def test_every_replica_is_told_its_own_rounds_and_cannot_write_on_them():
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


def test_a_shared_policy_is_refused():
    same = Recorder(SPEC, 0)
    with pytest.raises(InputError, match="a new object from every call of policy"):
        run({"same": Foreign(policy=lambda spec, seed: same)})


@pytest.mark.parametrize("wrap", [mabwiser_policy, river_policy])
def test_a_shared_policy_behind_a_wrapper_is_refused(wrap):
    """The wrapper is new every time, what it wraps is not; also: a policy's own `inner` is free."""

    class Pulls(Stub):
        inner = "shared by all"

        def pull(self, arms):
            return 0

        def act(self, context):
            return 0

        def update(self, *told):
            pass

    same = Pulls([0, 1, 2], 0, False)
    with pytest.raises(InputError, match="a new object from every call of policy"):
        wrap(lambda *told: same).make(SPEC, Streams([1, 2]))
    wrap(lambda *told: Pulls([0, 1, 2], 0, False)).make(SPEC, Streams([1, 2]))
    Foreign(policy=lambda *told: Pulls([0, 1, 2], 0, False)).make(SPEC, Streams([1, 2]))


def test_one_answer_that_is_no_arm_among_good_ones_is_refused():
    """Ragged answers: no array could hold them."""
    answers = iter([0, 1, [0], 2, 0, 0])
    config = Foreign(
        policy=lambda spec, seed: object(),
        act=lambda *asked: next(answers),
        update=lambda *told: None,
    )
    agent = config.make(SPEC, Streams([1, 2]))
    assert agent.act(np.zeros((2, 2))).tolist() == [0, 1]
    with pytest.raises(InputError, match=r"In round 2: Expected an arm, .* got \[0\]"):
        agent.act(np.zeros((2, 2)))


@pytest.mark.parametrize("name", ["policy", "act", "update"])
def test_what_is_no_function_is_refused_at_once(name):
    with pytest.raises(InputError, match=f"{name}=3 to be a function"):
        Foreign(**{"policy": Recorder, name: 3})


@each("wrong", [1.5, "x", None, 99, -1, np.nan, np.inf, [0]], ids=repr)
def test_what_is_no_arm_is_refused_in_its_round(wrong):
    config = Foreign(
        policy=lambda spec, seed: object(),
        act=lambda policy, context: wrong,
        update=lambda *told: None,
    )
    with pytest.raises(InputError, match="In round 1: Expected"):
        run({"wrong": config})


def test_it_claims_nothing_prints_and_hashes():
    config = Foreign(policy=Recorder)
    assert run({"mine": config})["mine"].certificate.epsilon == np.inf
    assert "Recorder" in repr(config)
    assert len({config, Foreign(policy=Recorder), Uniform()}) == 2
    with pytest.raises(InputError, match="finitely many arms"):
        run({"mine": config}, "OJContinuousPricing")


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


def test_contextual_mabwiser_needs_one_context_for_all_arms():
    with pytest.raises(InputError, match="one context for all arms"):
        mabwiser_policy(lambda arms, seed: Stub(arms, seed, True)).make(SHARED, Streams([0]))
    mabwiser_policy(lambda arms, seed: Stub(arms, seed, False)).make(SHARED, Streams([0]))
