"""Forgetting a user: exact on one bit, told apart where data are kept, and who is nobody."""

from dataclasses import replace
from math import exp, inf, tanh

import numpy as np
import pytest

import dpbandit
from dpbandit import InputError, forget
from dpbandit.agent import Agent, Positive
from dpbandit.auditing.forgetting import _others, _pair
from dpbandit.base import Streams
from dpbandit.envs import Arms, Experts, ReturningUsers
from dpbandit.privacy import Ledger
from dpbandit.privacy.pure import PureSpend
from dpbandit.specs import ContextualSpec, begin
from tests.each import each

EVERYBODY_ANSWERS_1 = {"means": (1.0, 1.0)}


class OneBit(Agent[ContextualSpec]):
    """Asks user 1 for a bit, by randomised response, and plays it ever after."""

    plays = ContextualSpec
    epsilon: Positive = 1.0
    lies = True

    def start(self):
        self.ledger = Ledger((PureSpend.of("a bit", [self.epsilon]),))
        self._coin, self._arm = self.streams.uniforms("bit"), None

    def act(self, context):
        return np.zeros(self.R, dtype=np.int64) if self._arm is None else self._arm

    def update(self, context, action, reward):
        if self._arm is None:
            lie = (self._coin() < 1 / (1 + exp(self.epsilon))) & self.lies
            self._arm = ((reward > 0.5) ^ lie).astype(np.int64)


class KeepsTheBit(OneBit):
    """Says it lies, and does not."""

    lies = False


def one_bit(agent, runs):
    how = {"env_kwargs": EVERYBODY_ANSWERS_1, "runs": runs, "failure": 1e-6}
    return forget(agent, "Arms", user=1, horizon=5, **how)


def test_one_bit():
    """Golden: each arm is played with e^epsilon : 1 odds, and the best advantage is tanh(epsilon /
    2), which the certificate says and the interval has (wrong once in a million). Who keeps her
    exact bit refutes what its ledger allows."""
    found = one_bit(OneBit(epsilon=1.0), 2000)
    assert found.bound == pytest.approx(tanh(0.5), rel=1e-9)
    assert found.low < tanh(0.5) < found.high
    assert 0 < found.high - found.low < 0.35
    assert (found.later, found.same_noise, found.same_noise_se) == (4, 4.0, 0.0)
    p = 1 / (1 + exp(1.0))
    assert abs(found.fresh_noise - 4 * (p**2 + (1 - p) ** 2)) < 6 * 4 * 0.5 / 10
    assert abs(found.with_her - 4 * 2 * p * (1 - p)) < 6 * 4 * 0.5 / 10
    assert not one_bit(OneBit(epsilon=1.0), 400).refuted
    kept = one_bit(KeepsTheBit(epsilon=1.0), 400)
    assert (kept.advantage, kept.with_her, kept.refuted) == (1.0, 0.0, True)
    assert "REFUTED" in str(kept)


def test_what_is_promised_is_said():
    """Who follows the leader follows her datum: certain, and no certificate says less. POCP's holds
    if losses are as its paper wants them."""
    found = forget("linucb", "TwoArms", user=2, horizon=20, runs=400)
    assert (found.bound, found.epsilon) == (1.0, inf)
    assert "promises nothing" in str(found)
    found = forget("pocp", "OnlineConvex", user=2, horizon=4, runs=400)
    assert ", conditional)" in str(found)
    assert found.low < 0  # an observer may err more often than not


@each(
    ("make", "user", "hers"),
    [
        (lambda: Arms(horizon=12), 4, [3]),
        (lambda: Experts(horizon=12), 4, [3]),
        (lambda: ReturningUsers(horizon=12, people=3, visits=4), 1, None),
    ],
)
def test_only_her_rounds_are_gone(make, user, hers):
    """Property: contexts and answers of both worlds are those of the environment, but for hers, who
    is nobody; a datum is also shown a round later."""
    spec, seed = make().spec, 3
    pair = _pair(make, spec, user, seed)
    rounds = [*pair.rounds]
    assert hers is None or rounds == hers
    problem, action = make(), np.arange(4) % 2
    begin(problem, Streams([seed] * 4))
    for t in range(spec.horizon):
        context, step = problem.context(), problem.step(action)
        told = step.reward if step.datum is None else step.datum
        first, second = (world.answers[t](action) for world in (pair.first, pair.second))
        np.testing.assert_array_equal(pair.first.context[t], context[0])
        np.testing.assert_array_equal(first, told)
        np.testing.assert_array_equal(second, told * (t not in rounds))
        changed = t - spec.full_information in rounds
        gone = np.zeros_like(context[0])
        gone[0] = -1.0 * spec.returning
        wanted = gone if changed else pair.first.context[t]
        np.testing.assert_array_equal(pair.second.context[t], wanted)
    if spec.returning:
        assert {*rounds} == {*np.flatnonzero(pair.first.context[:, 0] == user)}


LOYAL = {"people": 4, "visits": 5, "arrivals": "loyal"}


@pytest.mark.parametrize(
    ("env", "how", "sentence"),
    [
        ("TwoArms", {"user": 0}, "Expected user=0 to be a whole number >= 1 and <= 20."),
        ("TwoArms", {"user": 20}, "Expected others to come after user=20, in 20 rounds."),
        ("TwoArms", {"runs": 10}, "Expected runs=10 to be a whole number >= 400 "),
        ("ReturningUsers", {"env_kwargs": LOYAL}, "users who do not depend on earlier actions"),
        ("GLMBandit", {"env_kwargs": {"delay": 2}}, "Expected a problem with answers that come at"),
    ],
)
def test_bad_input(env, how, sentence):
    agent = "memory-alone" if env == "ReturningUsers" else "linucb"
    with pytest.raises(InputError, match=sentence):
        dpbandit.forget(agent, env, **{"user": 3, "horizon": 20, "runs": 400, **how})


@each("pattern", ["private", "public"])
def test_who_is_nobody_where_people_return(pattern):
    """Her slots are empty where that is covered, else hers, and say nothing; of the others' slots
    empty ones are not counted."""

    def make():
        problem = ReturningUsers(horizon=36, people=3, visits=12, empty=0.5)
        problem.spec = replace(problem.spec, visits=replace(problem.spec.visits, pattern=pattern))
        return problem

    spec = make().spec
    pair = _pair(make, spec, 1, 0)
    gone = pair.second.context[[*pair.rounds]]
    assert (gone[:, 0] == (1 if pattern == "public" else -1)).all()
    assert not gone[:, 1:].any()
    after = pair.first.context[pair.round :, 0]
    later = _others(spec, pair.first.context, pair.rounds)
    assert len(later) == ((after == 0) | (after == 2)).sum()
    assert (after == -1).any()
