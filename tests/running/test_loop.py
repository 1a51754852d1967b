"""The loop alone: six rounds whose numbers are worked out by hand, and numbers that cannot be."""

import contextlib
import re
from collections import Counter
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pytest

from dpbandit import InputError, compare
from dpbandit.agent import Arms
from dpbandit.agents import CONTEXTUAL, KLUCBSums, Uniform
from dpbandit.base import Streams
from dpbandit.domains import Ball
from dpbandit.losses import Linear
from dpbandit.privacy.ledger import no_privacy
from dpbandit.running.environments import problem_maker
from dpbandit.running.episode import BlockError, Episode
from dpbandit.running.loop import play
from dpbandit.running.user_counts import MultinomialPlay
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec
from dpbandit.specs.protocols import ContextualSpec, PriceSpec, Step
from tests.broken.blocks import KeepsTotals, PeeksAhead
from tests.each import each

ARMS = np.array([[0, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]]).T
"""Actions, (T, R)"""
SWITCHES = [[0, 0], [1, 0], [1, 0], [2, 0], [2, 1], [3, 1]]
"""Rounds so far with another arm than the round before"""
MISSED = np.array([[0.5, 0.25, 0.0]])
"""Regret of each arm in every round"""
REGRET = [[0.5, 0.25], [0.75, 0.5], [1.0, 0.75], [1.0, 1.0], [1.0, 1.5], [1.5, 2.0]]
GIVEN = np.array([[1, 2, 4, 8, 16, 32], [32, 16, 8, 4, 2, 1]]).T / 64
"""Rewards of each round, (T, R): no two sets of rounds have the same sum"""
REWARD = [[1, 32], [3, 48], [7, 56], [15, 60], [31, 62], [63, 63]]
"""Their running sums, in 64ths"""
ALL = np.arange(1, 7)


@dataclass
class Script:
    """Six rounds, two replicas; what is called is written down."""

    spec: Any
    contexts: Any = None
    rewards: Any = field(default_factory=lambda: GIVEN.copy())
    told: Any = None
    """data, where the problem tells them"""
    lacks: float = 0.0
    """regret that is known in hindsight only"""
    calls: list[str] = field(default_factory=list)

    def __post_init__(self):
        if self.contexts is None:
            t, r = np.mgrid[1:7, 0:2]
            self.contexts = (t + r / 2)[..., None] / 8  # (T, R, 1)

    def reset(self, streams):
        self.t = 0
        self.calls.append("reset")

    def context(self):
        self.calls.append(f"context {self.t + 1}")
        return self.contexts[self.t]

    def step(self, action):
        self.calls.append(f"step {self.t + 1}")
        late = self.t - self.spec.delay
        reward = self.rewards[late] if late >= 0 else np.zeros(2)
        arms = np.asarray(action).astype(int) if np.ndim(action) == 1 else np.zeros(2, int)
        missed = np.take(MISSED[0], arms, mode="clip")
        datum = None if self.told is None else self.told[self.t]
        self.t += 1
        return Step(reward, 0.75 - missed, np.full(2, 0.75), missed, datum)

    def best_fixed(self):
        return np.array([2, 2])

    def hindsight(self):
        return self.lacks


@dataclass
class Plays:
    """A config and its agent in one: plays `actions` (T, R, ...), remembers what it is told."""

    actions: Any
    calls: list[str] = field(default_factory=list)
    told: list[Any] = field(default_factory=list)

    def make(self, spec, streams):
        self.ledger, self.t = no_privacy("what it is told"), 0
        return self

    def act(self, context):
        self.calls.append(f"act {self.t + 1}")
        self.t += 1
        return self.actions[self.t - 1]

    def update(self, context, action, feedback):
        self.calls.append(f"update {len(self.told) + 1}")
        self.told.append([np.array(x) for x in (context, action, feedback)])


def arms(delay=0, **more):
    return ContextualSpec(
        **{"n_actions": 3, "dim": 1, "horizon": 6, "delay": delay, "context_bound": 2.0, **more}
    )


def points(feedback="value"):
    return ConvexSpec(horizon=6, loss=Linear(Ball(2)), feedback=feedback)


def played(problem, actions, marks=ALL):
    return play(problem, Plays(actions, problem.calls), [(0, 0), (0, 1)], marks=np.array(marks))


@pytest.mark.parametrize("marks", [[1, 2, 3, 4, 5, 6], [2, 5, 6], [6]])
def test_totals_by_hand(marks):
    """Golden. Regret and switches count from the first round, whatever rounds are logged; rewards
    when they are told, two rounds late; what is known in hindsight is added at every mark."""
    rows = np.array(marks) - 1
    for problem, reward, lacks in (
        (Script(arms()), REWARD, 0),
        (Script(arms(delay=2)), [[0, 0], [0, 0], *REWARD[:4]], 0),
        (Script(arms(), lacks=3.0), REWARD, 3),
    ):
        object.__setattr__(problem.spec, "in_hindsight", lacks > 0)
        log = played(problem, ARMS, marks)
        np.testing.assert_array_equal(log.regret, np.array(REGRET)[rows] + lacks)
        np.testing.assert_array_equal(64 * log.reward, np.array(reward)[rows])
        np.testing.assert_array_equal(log.switches, np.array(SWITCHES)[rows])
        np.testing.assert_array_equal(log.best_fixed, [2, 2])
        np.testing.assert_array_equal(log.clipped, [0, 0])
        assert log.seconds > 0


class Reuses(Script):
    """Its context is one array."""

    def context(self):
        self.shown = getattr(self, "shown", np.empty((2, 1)))
        self.shown[...] = super().context()
        return self.shown


class Again(Plays):
    """Its action is one array."""

    def act(self, context):
        self.given = getattr(self, "given", np.empty(2, np.int64))
        self.given[...] = super().act(context)
        return self.given


@pytest.mark.parametrize(("delay", "kind"), [(0, Script), (2, Reuses)])
def test_calls_come_in_order_and_triples_belong_together(delay, kind):
    """Round t is context, act, step, then the update of round t - delay, with its own context,
    action and reward; the last `delay` rewards never come. Arrays may be used again."""
    problem = kind(arms(delay))
    agent = Again(ARMS, problem.calls)
    log = play(problem, agent, [(0, 0), (0, 1)], marks=ALL)
    expected = ["reset"]
    for t in range(1, 7):
        expected += [f"context {t}", f"act {t}", f"step {t}"]
        expected += [f"update {t - delay}"] if t > delay else []
    assert problem.calls == expected
    np.testing.assert_array_equal(log.switches, SWITCHES)
    assert len(agent.told) == 6 - delay
    for t, (context, action, reward) in enumerate(agent.told):
        np.testing.assert_array_equal(context, problem.contexts[t])
        np.testing.assert_array_equal(action, ARMS[t])
        np.testing.assert_array_equal(reward, GIVEN[t])


def test_data_are_told_in_place_of_rewards():
    """Agents that observe data receive each datum. A point that moves counts as one switch, in
    however many coordinates: replica 0 moves in one, then in two, then not, then back in both;
    replica 1 never moves."""
    told, path = np.arange(24.0).reshape(6, 2, 2) / 48, np.zeros((6, 2, 2))
    path[1:, 0, 0], path[2:4, 0] = 0.5, (0.25, 0.25)
    problem = Script(points("datum"), np.zeros((6, 2, 2)), -GIVEN / 2, told)
    agent = Plays(path, problem.calls)
    log = play(problem, agent, [(0, 0), (0, 1)], marks=ALL)
    np.testing.assert_array_equal([datum for _, _, datum in agent.told], told)
    np.testing.assert_array_equal(log.switches.T, [[0, 1, 2, 2, 3, 3], [0] * 6])


@each("late", ["fade:first_batch", "dp-ucb:refresh_every", "batched-elimination:first_epoch"])
def test_a_first_release_after_half_of_the_rounds_is_said_once(late):
    """A release in round 50 of 100 is in time: a warning is an error in tests. Without a mark
    before the end blocks are as long as they can be, and one must end with round 50."""
    for marks in (None, np.array([100])):
        with pytest.warns(UserWarning, match="released nothing in the first half of 100") as said:
            play("GLMBandit", f"{late}=51", [0], horizon=100, marks=marks)
        assert len(said) == 1
        play("GLMBandit", f"{late}=50", [0], horizon=100, marks=marks)


@pytest.mark.parametrize(
    ("problem", "settings", "some"), [("GLMBandit", {"shared": True}, 5), ("OJPricing", {}, 6)]
)
def test_rounds_at_once_are_those_one_by_one(problem, settings, some, monkeypatch):
    """Every agent that has `rounds_to_release`, and of those without LinUCB, bit for bit. Would
    catch a sum in another order, a draw that is skipped, a release inside a block."""
    at_once, together = Episode._serve_block, Counter()

    def counted(episode, rounds):
        served = at_once(episode, rounds)
        together[name] += served.rounds
        return served

    monkeypatch.setattr(Episode, "_serve_block", counted)
    few = {"horizon": 400, "marks": np.array([150, 400])}
    spec = problem_maker(problem)(**settings, horizon=400).spec
    for name, kind in CONTEXTUAL.items():
        with contextlib.suppress(InputError):
            never = Arms.rounds_to_release  # more than 1
            stands = getattr(type(kind().make(spec, Streams([0]))), "rounds_to_release", never)
            if stands is never and name != "linucb":
                continue
            one, two = (
                play(problem, kind(), (3, 5), env_kwargs=settings, **few, blocks=blocks)
                for blocks in (True, False)
            )
            for part in ("regret", "reward", "switches", "best_fixed", "clipped"):
                np.testing.assert_array_equal(getattr(one, part), getattr(two, part), name)
    assert sum(rounds > 200 for rounds in together.values()) >= some, together


@each("shared", [False, True])
def test_a_round_of_a_block_is_played_by_its_own_context(shared):
    """An agent that lets the users of a block play by the next one's context is caught, in one of
    19 blocks; of its actions more than half differ (missed with probability 1e-6)."""
    how = {"horizon": 400, "marks": np.array([400]), "env_kwargs": {"shared": shared}}
    with pytest.raises(BlockError, match=r"PeeksAhead .* in a block of \d+ rounds, and alone"):
        play("GLMBandit", PeeksAhead(refresh_every=20), [0, 1], **how)
    play("GLMBandit", PeeksAhead(refresh_every=20), [0, 1], **how, blocks=False)


def test_totals_of_rounds_that_are_drawn_together_reach_no_agent(monkeypatch):
    """They go to the mechanism: an agent that would keep them has none, and plays as without."""
    made, make, drawn, once = [], KeepsTotals.make, [], MultinomialPlay.play
    monkeypatch.setattr(KeepsTotals, "make", lambda *how: made.append(make(*how)) or made[-1])
    monkeypatch.setattr(
        MultinomialPlay, "play", lambda *how, **at: drawn.append(how[1]) or once(*how, **at)
    )
    how = {"horizon": 2000, "marks": np.array([50, 2000])}
    kept, honest = (play("Arms", kind(), [0, 1], **how) for kind in (KeepsTotals, KLUCBSums))
    assert sum(drawn) > 2000  # of twice 2000
    assert not made[0].kept.any()
    np.testing.assert_array_equal(kept.regret, honest.regret)


POINTS = np.zeros((6, 2, 2))


def clipped(problem, actions=ARMS):
    return played(problem, actions).clipped.tolist()


def test_a_round_beyond_its_bounds_is_counted_once():
    """Golden: replica 0 has a long context in round 2 and in round 3, where its reward is too large
    as well; replica 1 a reward too small in rounds 3 and 6. Zeros before a late reward are none."""
    problem = Script(arms(most_outside=1))
    problem.contexts[1:3, 0], problem.rewards[2, 0], problem.rewards[2::3, 1] = 2.1, 1.1, -0.1
    assert clipped(problem) == [2 / 6, 2 / 6]
    problem.spec = replace(problem.spec, delay=2)  # rewards of rounds 3 and 6: in 5 and never
    assert clipped(problem) == [3 / 6, 1 / 6]
    assert clipped(Script(arms(delay=2, reward_low=0.01), rewards=GIVEN + 0.01)) == [0, 0]


@pytest.mark.parametrize("beyond", [1 + 2e-6, -1 - 2e-6, np.nan])
@pytest.mark.parametrize("kind", ["losses", "costs"])
def test_losses_and_data_have_bounds_too(kind, beyond):
    """Experts' losses in [0, 1]; costs of norm 1 on a ball. From round 16 on in replica 1, also
    where they are no numbers (after the first rounds); a bound that is reached is kept."""
    spec = points("datum") if kind == "costs" else ExpertsSpec(horizon=60, n_actions=2)
    spec, told = replace(spec, horizon=60, most_outside=1), np.zeros((60, 2, 2))
    told[:, 0, 0], told[15:, 1, 1] = 1.0, beyond
    shown, paid = np.zeros((60, 2, *spec.context_shape)), np.full((60, 2), spec.reward_low)
    actions = np.zeros((60, 2, 2) if kind == "costs" else (60, 2))
    log = played(Script(spec, shown, paid, told), actions, [60])
    assert log.clipped.tolist() == [0, 45 / 60]


FIRST_ROUNDS = {
    "contexts": [
        (None, lambda x: np.repeat(x, 2, axis=2), r" in round 1 of shape \(2, 1\), got \(2, 2\)"),
        (None, lambda x: x[:, :1], "got "),
        (None, lambda x: x[..., 0], "got "),
        ((3, 1, 0), np.nan, " in round 4, got nan"),
        ((3, 1, 0), np.inf, "got "),
        (None, lambda x: x.astype(str), "got "),
        (None, lambda x: x.astype(object), " in round 1 to be an array of numbers, got one of obj"),
        (None, lambda x: x.tolist(), " in round 1 to be an array of numbers, got list"),
    ],
    "rewards": [
        (None, lambda r: r[:, :1], "got "),
        (None, lambda r: r[..., None], r" of shape \(2,\), got \(2, 1\)"),
        ((3, 1), np.nan, ", got nan"),
        (None, lambda r: r.astype(object), "got "),
        (None, lambda r: r.tolist(), "got "),
    ],
    "actions": [
        ((3, 1), 3, r" in \[0, 3\), got 3,"),
        ((3, 1), 1e300, r"got 1e\+300,"),
        ((3, 1), -1, "got "),
        ((3, 1), 0.5, r", got 0\.5,"),
        ((3, 1), np.nan, "got "),
        (None, lambda a: a[:, :1], "got "),
        (None, lambda a: a[..., None], "got "),
        (None, lambda a: a[:, 0], r"got \(\)"),
        (None, lambda a: a + 0j, "got "),
        (None, lambda a: a.astype("m8[s]"), "got "),
        (None, lambda a: [[None, None]] * 6, "got "),
    ],
}
"""Arrays handed over with one entry, or all, replaced by another value -> message."""


@each(
    ("what", "where", "value", "says"),
    [(what, *row) for what, rows in FIRST_ROUNDS.items() for row in rows],
)
def test_what_breaks_its_spec_in_the_first_rounds_gets_one_sentence(what, where, value, says):
    """In `compare`: without these checks wrong arrays are broadcast, or play another arm, or pass
    unseen."""
    problem, agent = Script(arms()), Plays(ARMS)
    owner = agent if what == "actions" else problem
    array = np.array(getattr(owner, what), float)
    if where is None:
        array = value(array)
    else:
        array[where] = value
    setattr(owner, what, array)
    with pytest.raises(InputError, match=r"Expected .*got ") as told:
        compare(lambda horizon: problem, {"mine": agent}, horizon=6, replicas=2, progress=False)
    assert "\n" not in str(told.value)
    assert "round" in str(told.value)
    assert re.search(says, str(told.value))


def hundredfold(step):
    means = {name: 100 * getattr(step, name) for name in ("expected", "oracle", "regret")}
    return step._replace(**means)


def below(step):
    return step._replace(oracle=step.oracle - 1, regret=step.regret - 1)


@each(
    ("method", "wrong", "says"),
    [
        ("step", hundredfold, r"mean rewards in \[0, 1\], as rewards are, got \d+"),
        ("step", lambda step: step._replace(regret=-step.regret), "regret=.* to be oracle - "),
        ("step", lambda step: step._replace(regret=np.full(2, np.nan)), "regret"),
        ("step", below, "oracle=.* to be at least expected="),
        ("step", tuple, "step to return a Step, got a tuple"),
        ("hindsight", lambda lacks: np.nan, "hindsight to be an array of numbers, got float"),
        ("hindsight", lambda lacks: None, "hindsight to be an array of numbers, got NoneType"),
        ("hindsight", lambda lacks: np.zeros(3), r"hindsight of shape \(2,\), got \(3,\)"),
        ("best_fixed", lambda best: None, "best_fixed to be an array of 2 actions, got None"),
        ("best_fixed", lambda best: 2, "best_fixed to be an array of 2 actions, got 2"),
        ("best_fixed", lambda best: best[:1], "best_fixed to be an array of 2 actions, got array"),
    ],
)
def test_what_a_problem_says_of_itself_is_looked_at(method, wrong, says):
    """Wrong answers of a problem's methods are refused, not tabulated as negative regret or NaN."""
    problem = Script(arms())
    right = getattr(problem, method)
    setattr(problem, method, lambda *action: wrong(right(*action)))
    with pytest.raises(InputError, match=f"Expected .*{says}"):
        played(problem, ARMS)


@each(
    ("spec", "actions", "told", "says"),
    [
        (points(), np.full((6, 2, 2), np.nan), POINTS, "round 1: Expected finite actions, got n"),
        (points(), np.zeros((6, 2, 3)), POINTS, r"actions of shape \(2, 2\), got \(2, 3\)"),
        (points(), np.zeros((6, 2)), POINTS, r"actions of shape \(2, 2\), got \(2,\)"),
        (PriceSpec(dim=1, horizon=6, low=1, high=2), 3 + POINTS[0], POINTS, r"prices in \[1, 2\]"),
        (ExpertsSpec(n_actions=2, horizon=6), ARMS, POINTS, r"round 4: Expected actions in \[0, 2"),
        (points("datum"), POINTS, None, "In round 1: Expected datum to be an array of numbers"),
        (points("datum"), POINTS, np.zeros((6, 2, 3)), r"datum of shape \(2, 2\), got \(2, 3\)"),
    ],
)
def test_actions_and_data_of_other_kinds_are_looked_at_too(spec, actions, told, says):
    """The loop refuses wrong actions and data, even if the problem itself takes them."""
    shown = np.zeros((6, 2, *spec.context_shape))
    with pytest.raises(InputError, match=says):
        played(Script(spec, shown, np.full((6, 2), spec.reward_low), told), actions)


class Late(Script):
    """In round 20 a number is infinite: the reward, or what is `wild`."""

    wild = "reward"

    def context(self):
        return np.zeros((2, 1))

    def step(self, action):
        self.t += 1
        wild, zero = np.array([0, np.inf if self.t == 20 else 0]), np.zeros(2)
        return Step(*((wild, zero) if self.wild == "reward" else (zero, wild)), zero, wild)


class Overwrites(Reuses):
    """The next user's context stands where this one's was, when its reward is told."""

    def step(self, action):
        step = super().step(action)
        self.shown[...] = self.contexts[self.t % 6]
        return step


def test_what_comes_later_is_told():
    """A context that its problem overwrites in its round, infinite rewards in theirs, and regret at
    the next mark: never as a number in a table. Numbers may be of any kind."""
    with pytest.raises(InputError, match=r"In round 1: Expected act and step to leave .* alone"):
        played(Overwrites(arms()), ARMS)
    late, actions = Late(arms(horizon=40)), np.zeros((40, 2), np.int64)
    for late.wild, says in (
        ("reward", "round 20: Expected finite"),
        ("regret", "finite .* by round 25"),
    ):
        with pytest.raises(InputError, match=says):
            played(late, actions, [5, 25, 40])
    for kind in (np.int8, np.int64, np.float32, bool):
        problem = Script(arms(), np.ones((6, 2, 1), kind), np.ones((6, 2), kind))
        log = played(problem, ARMS.astype(kind) if kind is not bool else ARMS)
        np.testing.assert_array_equal(log.reward[-1], [6, 6])


def beyond(rounds, what, horizon=1000, **more):
    """A problem whose replica 1 is beyond its bound in so many rounds, evenly spread."""
    problem = Script(arms(horizon=horizon, **more), np.ones((horizon, 2, 1)))
    problem.rewards = np.zeros((horizon, 2))
    if rounds:
        spread = np.linspace(0, horizon - 1, rounds).astype(int)
        getattr(problem, what)[spread, 1] = 50.0
    return problem


def compared(problem):
    def make(horizon):
        return replace(problem, calls=[])

    return compare(make, {"Uniform": Uniform()}, horizon=1000, replicas=2, progress=False)


@pytest.mark.parametrize("what", ["contexts", "rewards"])
def test_few_rounds_beyond_the_bounds_are_counted_and_many_refused(what):
    """Half a percent of all rounds is said in every result, also where it comes first; five
    percent, data in other units, is refused, long before the end, unless that is asked for."""
    results = compared(beyond(10, what))
    assert [run.clipped.tolist() for run in results.runs] == [[0, 0.01]] * 2
    assert results.summary()["clipped"].tolist() == [0.005] * 2
    where = "beyond context_bound=2" if what == "contexts" else "outside reward_low=0 to reward"
    for rounds, most in ((100, 0.01), (11, 0.01), (1, 0.0), (51, 0.05)):
        says = rf"^Expected at most {100 * most:g} % of 1000 {what} {where}.*, got \d+ of \d+ "
        says += r"\(.* %\), the first is number 1, such as 50: .* most_outside=\.$"
        with pytest.raises(InputError, match=says) as told:
            compared(beyond(rounds, what, most_outside=most))
        assert "\n" not in str(told.value)
    for rounds, most in ((50, 0.05), (290, 0.29), (1000, 1)):
        results = compared(beyond(rounds, what, most_outside=most))
        assert results.summary()["clipped"].tolist() == [rounds / 2000] * 2
    problem = beyond(1000, what)
    with pytest.raises(InputError, match=r"got 15 of 15 \(100 %\), the first"):
        played(problem, np.zeros((1000, 2), np.int64), [1000])
    assert problem.calls[-1] == "step 15"
    both = beyond(8, "contexts")  # and 0.9 % of other rounds' rewards: neither is too much
    both.rewards[10:19, 1] = 50.0
    assert compared(both).summary()["clipped"].tolist() == [0.0085] * 2
