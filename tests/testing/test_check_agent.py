"""What `check_agent` says of broken agents; that honest ones pass, the conformance tests show."""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpbandit.agents import DPHDB, DPUCB, DPHDBChoices, LinUCB, SparseVectorExperts
from dpbandit.agents.contextual.optimism import BatchedUCB
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy import Ledger
from dpbandit.testing import check_agent
from tests.broken.leaks import MECHANISM, STATE, Broken, HalfTheNoise
from tests.harness import DELAYED, DISJOINT, EXPERTS, SHARED


@dataclass(frozen=True, kw_only=True)
class SharesNoise(DPUCB):
    """All replicas draw the numbers of the first."""

    def make(self, spec, streams):
        return super().make(spec, Streams(streams._seeds[:1] * len(streams)))


@dataclass(frozen=True, kw_only=True)
class PaysForLess(DPUCB):
    """Half the noise that its ledger names."""

    def make(self, spec, streams):
        agent, quiet = (DPUCB(epsilon=e).make(spec, streams.child(str(e))) for e in (1.0, 2.0))
        quiet._sums.spend = agent._sums.spend
        quiet.ledger = agent.ledger
        return quiet


@dataclass(frozen=True, kw_only=True)
class NamesNothing(DPUCB):
    """Has an empty ledger."""

    def make(self, spec, streams):
        agent = super().make(spec, streams)
        agent.ledger = Ledger()
        return agent


class Local(BatchedUCB):
    """Cannot be pickled."""

    def __reduce_ex__(self, protocol):
        raise TypeError("made of glass")


@pytest.mark.parametrize(
    ("config", "sentence"),
    [
        (STATE[1], "data of user 0 to reach the future through mechanisms only"),
        (MECHANISM[0], "to move the inputs of PrefixSum by no more than their sensitivity, got"),
        (PaysForLess(), "as large as its spend says, got 0.2"),
        (NamesNothing(), "ledger of NamesNothing to name .*, which it calls"),
        (Broken(agent=Local), "to be picklable, got: made of glass"),
        (SharesNoise(), "Expected replicas not to know each other: 1 to 2 of six"),
        (DPUCB(refresh_every=30), "within rounds=24: nothing was checked"),
    ],
)
def test_broken_agents_are_caught(config, sentence):
    with pytest.raises((AssertionError, InputError), match=sentence):
        check_agent(config, DISJOINT)


def test_a_mechanism_that_is_no_sum_needs_a_test_of_its_own(monkeypatch):
    monkeypatch.setattr("dpbandit.agents.contextual.dp_hdb_choices.NoisyVertex", HalfTheNoise)
    config = DPHDBChoices()
    with pytest.raises(AssertionError, match="tested= to name HalfTheNoise"):
        check_agent(config, SHARED)
    assert "admission: " in check_agent(config, SHARED, tested=(HalfTheNoise,))[-1]


@pytest.mark.parametrize(
    ("config", "spec", "checks"),
    [
        (LinUCB(), DISJOINT, "certificate replicas copies"),
        (DPHDB(), DELAYED, "certificate replicas copies ledger sensitivity billboard noise"),
        (
            SparseVectorExperts(),
            EXPERTS,
            "certificate replicas copies ledger sensitivity billboard admission",
        ),
    ],
)
def test_what_it_returns_is_what_was_checked(config, spec, checks):
    assert [line.partition(":")[0] for line in check_agent(config, spec)] == checks.split()


def test_it_checks_under_python_o_too():
    """Which leaves out `assert`."""
    for file in (Path(__file__).parents[2] / "dpbandit/testing").glob("*.py"):
        assert not [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Assert)]
