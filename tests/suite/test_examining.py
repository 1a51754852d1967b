"""Tests of the suite find agents that are honest for as long as short tests look."""

import json
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from dpbandit.agents import DPMoments
from dpbandit.base import InputError
from dpbandit.privacy.batches import LocalValues
from dpbandit.privacy.ledger import Ledger, no_data
from dpbandit.running.settings import parse_agent
from dpbandit.suite import run_suite, verify
from dpbandit.suite.catalogue import Suite, SuiteProblem, assignment_of
from dpbandit.suite.examining import examined, long_enough
from dpbandit.suite.playing import FINDINGS
from dpbandit.testing import check_agent

HERE = "tests.suite.test_examining"
ROUNDS = 400


class LearnsLate(DPMoments):
    """Feeds a second mechanism, too, once 30 rounds are over; what it feeds is not clipped."""

    begins: ClassVar[int] = 30
    rounds_to_release = 1

    def target(self, usual=None):
        """Half of the claim, the rest is for the other one."""
        return super().target(usual)._replace(epsilon=self.epsilon / 2)

    def start(self):
        """Pay for both."""
        super().start()
        self.late = Raw(self.streams.child("late"), low=0, high=1, noise_multiplier=1e3)
        self.ledger = Ledger((*self.ledger.spends, self.late.spend))

    def learn(self, context, action, feedback):
        """Learn as the base class does, and also from late rounds."""
        super().learn(context, action, feedback)
        if self.round > self.begins:
            self.late(feedback)


class Raw(LocalValues):
    """Forgets to clip."""

    needs = LocalValues.needs

    def query(self, *datum):
        """Return the datum itself, without noise."""
        return np.nan_to_num(np.asarray(datum[0]), posinf=9.0, neginf=-9.0)


class NeverLearns(LearnsLate):
    """Has a mechanism that it never calls."""

    begins: ClassVar[int] = 10**9


class LeaksLate(DPMoments):
    """Plays, once 300 rounds are over, by what the users before were worth."""

    earned = 0.0

    def learn(self, context, action, feedback):
        """Learn as the base class does, and from late rounds without the mechanism."""
        super().learn(context, action, feedback)
        if self.round > 300:
            self.earned = self.earned + np.nan_to_num(feedback.reshape(-1, self.R)).sum(axis=0)

    def scores(self, context):
        """The first arm looks better to those who come after the content."""
        return super().scores(context) + self.earned_by_arm()

    def earned_by_arm(self):
        """Return the sum of rewards of each arm, (R, K)."""
        return np.multiply.outer(
            self.earned + np.zeros(self.R), np.arange(self.spec.n_actions) == 0
        )


class SumsLate:
    """Promises to use no data, and does, once 300 rounds are over."""

    def __init__(self, spec, streams):
        """Nothing is known of any arm."""
        self.ledger, self.round = no_data(), 0
        self.sums = np.zeros((len(streams), spec.n_actions))

    def act(self, context):
        """The arm that brought in most."""
        return self.sums.argmax(axis=1)

    def update(self, context, action, reward):
        """Add up what came, late."""
        self.round += 1
        if self.round > 300:
            self.sums[np.arange(len(action)), action] += np.nan_to_num(reward)


@dataclass(frozen=True, kw_only=True)
class NoTarget:
    """Config without a setting `epsilon`."""

    def make(self, spec, streams):
        """The agent that is certified at epsilon 0."""
        if not hasattr(spec, "n_actions"):
            raise InputError("Expected arms.")
        return SumsLate(spec, streams)


def _tiny():
    horizon = {"small": ROUNDS, "full": ROUNDS}
    linear = SuiteProblem(
        name="tiny examined",
        capability="a",
        environment="GLMBandit",
        horizon=horizon,
        baseline="greedy",
    )
    return Suite(
        version=1,
        selection_seed=2,
        seed=3,
        epsilons=(1.0,),
        delta=1e-5,
        replicas={"small": 3, "full": 3},
        variants=(),
        problems=(linear,),
    )


@pytest.fixture(autouse=True)
def tiny(monkeypatch):
    """A suite of one problem of 400 rounds, none of whose results are shipped; tests without
    audits, which test_suite.py has."""
    monkeypatch.setattr("dpbandit.suite.catalogue.suite", _tiny)
    for module in ("playing", "verifying"):
        monkeypatch.setattr(f"dpbandit.suite.{module}.frozen", lambda size: ())
    monkeypatch.setattr("dpbandit.suite.examining.audited", lambda config, size, **how: None)


def _said_in_24_rounds(kind):
    spec = assignment_of(f"{HERE}:{kind}", "small").configurations[0].problem().spec
    return check_agent(parse_agent(f"{HERE}:{kind}"), spec)


@pytest.mark.parametrize(
    ("kind", "sentence"),
    [
        ("LearnsLate", "as far: clip all that users say"),
        ("NeverLearns", "nothing was checked of local laplace values"),
        ("LeaksLate", "what the agent remembers"),
        ("NoTarget", "what the agent remembers"),
    ],
)
def test_what_begins_late_is_found(kind, sentence):
    """A clip that is forgotten from round 31 on, a mechanism that is never called, a leak from
    round 301 on: tests of 24 rounds pass, so that rounds are doubled until all mechanisms have
    released, and a whole episode of the suite is replayed, of whatever certifies an epsilon."""
    assert "billboard" in " ".join(_said_in_24_rounds(kind))
    assert sentence in examined(f"{HERE}:{kind}", "small")["failed"]


def test_an_honest_agent_is_examined_until_it_plays_from_releases():
    """allocation-ts releases first in the second half of 24 rounds, so it needs 96; a whole
    episode of 400 is replayed."""
    spec = assignment_of("allocation-ts", "small").configurations[0].problem().spec
    assert long_enough(parse_agent("allocation-ts"), spec).horizon == 96
    found = examined("dp-ucb", "small")
    assert not found["failed"]
    assert "replay: in 400 rounds of tiny" in found["tests"][-1]


def test_an_agent_whose_tests_fail_is_refused_whatever_the_file_says(tmp_path, monkeypatch):
    """An agent that leaks late is refused if its file says so, or says that its tests pass."""
    agent = f"{HERE}:LeaksLate"
    found = examined(agent, "small")
    for module in ("playing", "verifying"):
        monkeypatch.setattr(f"dpbandit.suite.{module}.examined", lambda *one, **how: {**found})
    done = run_suite([agent], tmp_path, progress=False)
    assert done.findings[agent]["failed"]
    passed = done.findings[agent] | {"failed": ""}
    for told in (done.findings[agent], passed):
        document = {"version": 1, "size": "small", "agents": {agent: told}}
        (tmp_path / FINDINGS).write_text(json.dumps(document))
        verdict = verify(tmp_path, trust=True, progress=False)
        assert f"Tests of {agent} fail here" in verdict.refused[0]
        assert verdict.played is None


@pytest.mark.parametrize("kind", ["PeeksAhead", "SumsBlocks"])
def test_an_agent_that_is_honest_in_single_rounds_alone_is_found(kind):
    """Users of a block play by the context of the next one, or are fed in another order."""
    assert examined(f"tests.broken.blocks:{kind}", "small")["failed"]
