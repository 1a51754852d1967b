"""What `check_agent` says of broken agents; that honest ones pass, the conformance tests show."""

import ast
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpbandit.agents import DPHDB, DPUCB, DPHDBChoices, LinUCB, SparseVectorExperts
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import Recommendation
from dpbandit.privacy import Ledger, PrefixSum
from dpbandit.testing import check_agent
from tests.broken.leaks import MECHANISM, STATE, Broken, HalfTheNoise
from tests.broken.ledgers import Bookkeeper
from tests.each import each
from tests.harness import DELAYED, DISJOINT, EXPERTS, SHARED


class SharesNoise(DPUCB):
    """All replicas draw the numbers of the first."""

    def make(self, spec, streams):
        return super().make(spec, Streams(streams._seeds[:1] * len(streams)))


class PaysForLess(DPUCB):
    """Half the noise that its ledger names."""

    def make(self, spec, streams):
        agent, quiet = (DPUCB(epsilon=e).make(spec, streams.child(str(e))) for e in (1.0, 2.0))
        quiet.sums.spend = agent.sums.spend
        quiet.ledger = agent.ledger
        return quiet


class NamesNothing(DPUCB):
    """Has an empty ledger."""

    def make(self, spec, streams):
        agent = super().make(spec, streams)
        agent.ledger = Ledger()
        return agent


class Local(DPUCB):
    """Cannot be pickled."""

    def __reduce_ex__(self, protocol):
        raise TypeError("made of glass")


class Doubles(DPUCB):
    """Feeds each user twice."""

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        self.sums._used -= 1
        super().update(context, action, feedback)


class Remembers(DPUCB):
    """The reward of user 3, who is neither the first nor the last of anything."""

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        if self.sums._used == 4:
            self._favourite = feedback.copy()


class Scribbles(DPUCB):
    """Writes on what it is shown."""

    def act(self, context):
        context *= 1.0
        return super().act(context)


class PlaysHalves(DPUCB):
    """Arms that there are not."""

    def act(self, context):
        return super().act(context) + 0.5


class SharesAllIts(DPUCB):
    """State with its copies."""

    def __deepcopy__(self, memo):
        return self


class PromisesByCompany(DPUCB):
    """Another ledger for six than for one."""

    def make(self, spec, streams):
        agent = super().make(spec, streams)
        agent.ledger = Ledger(agent.ledger.spends * (1 + len(streams) // 6))
        return agent


class GoesQuiet(PrefixSum):
    """Adds no noise from its third release on."""

    def _release(self, *datum):
        self._total = getattr(self, "_total", 0.0) + self.query(*datum)
        release = super()._release(*datum)
        late = release is not None and self._used > 8
        return self._total * self._statistic.units if late else release


class Deafens(DPUCB):
    """Its noise goes away."""

    def act(self, context):
        self.sums.__class__ = GoesQuiet
        return super().act(context)


@dataclass(frozen=True, kw_only=True)
class ClaimsNothing:
    """Noise, but no epsilon that would be claimed; and a leak."""

    def make(self, spec, streams):
        return STATE[1].make(spec, streams)


class OwnWord(DPUCB):
    """Believes that its own calibration need not keep what it claims."""

    calibration: str = "mine"

    def make(self, spec, streams):
        return DPUCB(epsilon=2.0).make(spec, streams)


@each(
    ("config", "sentence"),
    [
        (STATE[1], "one user of each replica to enter PrefixSum in no other round"),
        (MECHANISM[0], "to move the inputs of PrefixSum by no more than their sensitivity, got"),
        (PaysForLess(), "as large as its spend says, got 0.2"),
        (NamesNothing(), "ledger of NamesNothing to name .*, which it calls"),
        (Broken(agent=Local), r"Expected a tests\..*\.Local to be picklable, got: made of glass"),
        (Broken(agent=Doubles), "got .* times as far: .* feed each of them to a mechanism once"),
        (Broken(agent=Remembers), "data of one user of each replica .* what the agent remembers"),
        (Broken(agent=Scribbles), "Expected Scribbles not to write on a context"),
        (Broken(agent=PlaysHalves), "PlaysHalves: Expected whole numbers as actions, got "),
        (Broken(agent=SharesAllIts), "Expected its deep copy to have its own mechanisms"),
        (Broken(agent=Deafens), "to last, got .* in a release"),
        (PromisesByCompany(), "the same ledger for any number of replicas"),
        (ClaimsNothing(), "one user of each replica to enter PrefixSum in no other round"),
        (OwnWord(), "Expected the claim to hold, the noise buys epsilon 2 at delta 1e-05"),
        (SharesNoise(), "Expected replicas not to know each other: 1 to 2 of six"),
        (DPUCB(refresh_every=30), "within rounds=24: nothing was checked"),
    ],
)
def test_broken_agents_are_caught(config, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_agent(config, DISJOINT)


def test_a_mechanism_that_is_no_sum_needs_a_test_of_its_own(monkeypatch):
    monkeypatch.setattr("dpbandit.agents.contextual.dp_hdb.NoisyVertex", HalfTheNoise)
    with pytest.raises(AssertionError, match="tested= to name HalfTheNoise"):
        check_agent(DPHDBChoices(), SHARED)
    assert "admission: " in check_agent(DPHDBChoices(), SHARED, tested=(HalfTheNoise,))[-1]


def test_what_is_no_spec_and_no_ledger_is_refused_in_a_sentence():
    with pytest.raises(InputError, match=r"Expected spec=Recommendation.* to be a Spec"):
        check_agent(DPUCB(), Recommendation())
    with pytest.raises(InputError, match="rounds=0 to be a whole number >= 1"):
        check_agent(DPUCB(), DISJOINT, rounds=0)
    with pytest.raises(InputError, match="agent of Bookkeeper to have a Ledger, got ledger=None"):
        check_agent(Bookkeeper(books=lambda streams: (None, None)), DISJOINT)


@each(
    ("config", "spec", "checks"),
    [
        (LinUCB(), DISJOINT, ""),
        (DPHDB(), DELAYED, " ledger sensitivity billboard noise"),
        (SparseVectorExperts(), EXPERTS, " ledger sensitivity billboard admission"),
    ],
)
def test_what_it_returns_is_what_was_checked(config, spec, checks):
    found = " ".join(line.partition(":")[0] for line in check_agent(config, spec))
    assert found == f"certificate replicas copies{checks}"


def test_it_checks_under_python_o_too():
    """Which leaves out `assert`."""
    for file in (Path(__file__).parents[2] / "dpbandit/testing").glob("*.py"):
        assert not [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Assert)]
