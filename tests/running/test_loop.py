"""The loop alone: problems and agents of six rounds whose every number is worked out by hand."""

import contextlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.agent import Arms
from dpbandit.agents import CONTEXTUAL
from dpbandit.base import Streams
from dpbandit.domains import Ball
from dpbandit.losses import Linear
from dpbandit.privacy.ledger import no_privacy
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.running.still import Block
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.protocols import ContextualSpec, Step
from tests.each import each

ARMS = np.array([[0, 1, 1, 2, 2, 0], [1, 1, 1, 1, 0, 0]]).T
"""What is played, (T, R)"""
SWITCHES = [[0, 0], [1, 0], [1, 0], [2, 0], [2, 1], [3, 1]]
"""Rounds so far with another arm than the round before"""
MISSED = np.array([[0.5, 0.25, 0.0]])
"""What each arm lacks of the best, in every round"""
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
    """And a point that moves in any coordinate has switched once: replica 0 moves in one, then in
    both, then not, and back; replica 1 in none."""
    told, path = np.arange(24.0).reshape(6, 2, 2) / 48, np.zeros((6, 2, 2))
    path[1:, 0, 0], path[2:4, 0] = 0.5, (0.25, 0.25)
    problem = Script(points("datum"), np.zeros((6, 2, 2)), -GIVEN / 2, told)
    agent = Plays(path, problem.calls)
    log = play(problem, agent, [(0, 0), (0, 1)], marks=ALL)
    np.testing.assert_array_equal([datum for _, _, datum in agent.told], told)
    np.testing.assert_array_equal(log.switches.T, [[0, 1, 2, 2, 3, 3], [0] * 6])


@each("late", ["fade:first_batch", "dp-ucb:refresh_every", "batched-elimination:first_epoch"])
def test_a_first_release_after_half_of_the_rounds_is_said_once(late):
    """One in round 50 of 100 is in time: a warning is an error in tests."""
    with pytest.warns(UserWarning, match="released nothing in the first half of 100") as said:
        play("GLMBandit", f"{late}=51", [0], horizon=100)
    assert len(said) == 1
    play("GLMBandit", f"{late}=50", [0], horizon=100)


@pytest.mark.parametrize(
    ("problem", "settings", "some"),
    [("GLMBandit", {"shared": True}, 5), ("OJPricing", {}, 6)],
)
def test_rounds_at_once_are_those_one_by_one(problem, settings, some, monkeypatch):
    """Every agent that says how long its policy stands, and of those that never do LinUCB, bit for
    bit. Would catch a sum in another order, a draw that is skipped, a release inside a block."""
    at_once, together = Block.play, Counter()

    def counted(block, *arguments):
        rounds = at_once(block, *arguments)
        together[name] += rounds
        return rounds

    monkeypatch.setattr(Block, "play", counted)
    few = {"horizon": 400, "marks": np.array([150, 400])}
    spec = problem_maker(problem)(**settings, horizon=400).spec
    for name, kind in CONTEXTUAL.items():
        with contextlib.suppress(InputError):
            stands = getattr(type(kind().make(spec, Streams([0]))), "standing", Arms.standing)
            if stands is Arms.standing and name != "linucb":
                continue
            one, two = (
                play(problem, kind(), (3, 5), env_kwargs=settings, **few, blocks=blocks)
                for blocks in (True, False)
            )
            for part in ("regret", "reward", "switches", "best_fixed", "clipped"):
                np.testing.assert_array_equal(getattr(one, part), getattr(two, part), name)
    assert sum(rounds > 200 for rounds in together.values()) >= some, together
