"""Messages of `check_agent` and `check_problem` on broken agents and problems."""

import ast
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from dpbandit import compare
from dpbandit.agents import (
    DPHDB,
    DPUCB,
    DPHDBChoices,
    LinUCB,
    ListFADE,
    PerPerson,
    SparseVectorExperts,
)
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import GLMBandit, Recommendation
from dpbandit.envs.contextual.problems import ContextualProblem, Users
from dpbandit.privacy import Ledger, PrefixSum
from dpbandit.privacy.mechanism import PersonalMemory
from dpbandit.specs.protocols import ContextualSpec
from dpbandit.testing import check_agent, check_problem
from tests.broken.blocks import CountsRecords, PeeksAhead, ReadsCounts, RemembersBlocks, SumsBlocks
from tests.broken.leaks import MECHANISM, STATE, Broken, HalfTheNoise, OneByOne
from tests.broken.ledgers import Bookkeeper, PromisesAlone
from tests.each import each
from tests.harness import DELAYED, DISJOINT, EXPERTS, READERS, SHARED


class SharesNoise(DPUCB):
    """Agent all of whose replicas draw the random numbers of the first."""

    def make(self, spec, streams):
        return super().make(spec, Streams(streams._seeds[:1] * len(streams)))


class PaysForLess(DPUCB):
    """Agent with half the noise that its ledger states."""

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


class Doubles(OneByOne):
    """Feeds each user twice."""

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        self.sums._used -= 1
        super().update(context, action, feedback)


class Remembers(OneByOne):
    """The reward of user 3, who is neither the first nor the last of anything."""

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        if self.sums._used == 4:
            self._favourite = feedback.copy()


class KeepsADrawer(OneByOne):
    """All rewards, in a memory of people, of whom the problem has none who return."""

    def update(self, context, action, feedback):
        super().update(context, action, feedback)
        if "_drawer" not in vars(self):
            self._drawer = PersonalMemory(len(feedback), people=1, shape=(1,))
        self._drawer.add(np.zeros(len(feedback), np.int64), feedback[:, None])


class Scribbles(OneByOne):
    """Writes on what it is shown."""

    def act(self, context):
        context *= 1.0
        return super().act(context)


class PlaysHalves(OneByOne):
    """Arms that there are not."""

    def act(self, context):
        return super().act(context) + 0.5


class SharesAllIts(DPUCB):
    """State with its copies."""

    def __deepcopy__(self, memo):
        return self


class GoesQuiet(PrefixSum):
    """Adds no noise from its third release on."""

    needs = PrefixSum.needs

    def _release(self, *datum):
        self._total = getattr(self, "_total", 0.0) + self.query(*datum)
        release = super()._release(*datum)
        late = release is not None and self._used > 8
        return self._total * self._statistic.units if late else release


class Deafens(OneByOne):
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
    """Agent whose calibration has a name of its own, and whose epsilon is twice its claim."""

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
        (Broken(agent=KeepsADrawer), "one user of each replica .* is remembered of other people"),
        (Broken(agent=Scribbles), "Expected Scribbles not to write on a context"),
        (Broken(agent=PlaysHalves), "PlaysHalves: Expected whole numbers as actions, got "),
        (Broken(agent=SharesAllIts), "Expected its deep copy to have its own mechanisms"),
        (Broken(agent=Deafens), "to last, got .* in a release"),
        (PromisesAlone(), "the same ledger for any number of replicas"),
        (ClaimsNothing(), "one user of each replica to enter PrefixSum in no other round"),
        (OwnWord(), "Expected the claim to hold, the noise buys epsilon 2 at delta 1e-05"),
        (SharesNoise(), "Expected replicas not to know each other: 1 to 2 of six"),
        (DPUCB(refresh_every=30), "within rounds=24: nothing was checked"),
        (PeeksAhead(refresh_every=6), "PeeksAhead to choose every round of a block by its own"),
        (RemembersBlocks(refresh_every=6), "one user of each replica .* what the agent remembers"),
        (ReadsCounts(refresh_every=6), "one user of each replica .* what the agent remembers"),
        (CountsRecords(refresh_every=6), "CountsRecords to play, feed and release in blocks"),
        (SumsBlocks(refresh_every=6), "SumsBlocks to play, feed and release in blocks what it"),
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
        check_agent(Bookkeeper(with_ledger=lambda streams: (None, None)), DISJOINT)


@each(
    ("config", "spec", "checks"),
    [
        (LinUCB(), DISJOINT, ""),
        (DPHDB(), DELAYED, " ledger sensitivity billboard noise"),
        (DPUCB(refresh_every=4), DISJOINT, " blocks ledger sensitivity billboard noise"),
        (PerPerson(ListFADE()), READERS, " ledger sensitivity billboard noise"),  # null is not 0
        (SparseVectorExperts(), EXPERTS, " ledger sensitivity billboard admission"),
    ],
)
def test_what_it_returns_is_what_was_checked(config, spec, checks):
    found = " ".join(line.partition(":")[0] for line in check_agent(config, spec))
    assert found == f"certificate replicas copies{checks}"


def test_it_checks_under_python_o_too():
    """The checks use no `assert`, which `python -O` leaves out."""
    for file in (Path(__file__).parents[2] / "dpbandit/testing").glob("*.py"):
        assert not [n for n in ast.walk(ast.parse(file.read_text())) if isinstance(n, ast.Assert)]


@dataclass(kw_only=True, eq=False)
class Coins(ContextualProblem):
    """Two arms that pay 1 with chances of 0.3 and 0.6."""

    delay: int = 0
    spec = ContextualSpec(n_actions=2, dim=1, horizon=50)

    def _start(self, streams):
        self._uniforms = streams.uniforms("luck")

    def _users(self, count):
        mean = np.broadcast_to([0.3, 0.6], (count, *(u := self._uniforms.take(count)).shape[1:], 2))
        return Users(np.ones((*mean.shape[:2], 1)), mean, 1.0 * (u[..., None] < mean))


def coins(name, **methods):
    """Coins with other methods."""
    return type(name, (Coins,), {**methods, "__module__": __name__})


def changed(name, change):
    """Coins whose users are changed."""
    return coins(name, _users=lambda coins, count: change(Coins._users(coins, count)))


WrongMeans = changed("WrongMeans", lambda u: u._replace(mean=np.full_like(u.mean, 0.6)))
FlatContexts = coins("FlatContexts", context=lambda coins: Coins.context(coins)[:, 0])
NegativeHindsight = coins("NegativeHindsight", hindsight=lambda coins: -5.0)
NeverBest = coins("NeverBest", best_fixed=lambda coins: np.zeros(len(coins._offset), int))
FarContexts = changed("FarContexts", lambda u: u._replace(context=3.0 * u.context))
FlatUsers = changed("FlatUsers", lambda u: u._replace(mean=u.mean[..., 0]))
MoreArms = changed("MoreArms", lambda u: u._replace(reward=np.repeat(u.reward, 2, axis=-1)))
Percent = changed("Percent", lambda u: u._replace(mean=100 * u.mean))


class SharedLuck(Coins):
    def _start(self, streams):
        super()._start(Streams(streams._seeds[:1] * len(streams)))


class NoSeed(Coins):
    def _start(self, streams):
        super()._start(Streams([(1, r) for r in range(len(streams))]))


class AnyAction(Coins):
    def step(self, action):
        try:
            return super().step(action)
        except InputError:
            return super().step(np.zeros(len(self._offset), dtype=np.int64))


class WorseOracle(Coins):
    def step(self, action):
        step = super().step(action)
        return step._replace(oracle=step.oracle - 0.2, regret=step.oracle - 0.2 - step.expected)


class LaterColumns(Coins):
    steps = 0

    def step(self, action):
        step, self.steps = super().step(action), self.steps + 1
        return step._replace(reward=step.reward[:, None]) if self.steps > 12 else step


class Forgets(Coins):
    def __deepcopy__(self, memo):
        return type(self)()

    def context(self):
        if not hasattr(self, "_offset"):
            self.reset(Streams(range(6)))
        return super().context()


@each(
    ("problem", "sentence"),
    [
        (WrongMeans, "on average what is expected, got -0.1"),
        (SharedLuck, "replicas not to know each other: 1 to 2 of six"),
        (FarContexts, "1.00% of contexts beyond context_bound=1 in the l_2 norm, got 100.00%"),
        (FlatContexts, r"contexts in round 1 of shape \(6, 1\), got \(6,\)"),
        (LaterColumns, r"reward of shape \(6,\), got \(6, 1\)"),
        (NoSeed, "other seeds to bring other users"),
        (AnyAction, "to be refused"),
        (WorseOracle, r"oracle=\[.*\] to be at least expected="),
        (NegativeHindsight, "hindsight=-5.0 to be 0: a ContextualSpec measures regret round by"),
        (NeverBest, "best_fixed.* the best of all fixed actions, one earns 7.2 more"),
        (Forgets, "its deep copy in mid-episode to go on"),
    ],
)
def test_broken_problems_are_caught(problem, sentence):
    with pytest.raises(AssertionError, match=sentence):
        check_problem(problem())


def test_rewards_may_all_come_later_than_is_played():
    """Then none is held against its bounds, and nothing is divided by their number."""
    assert len(check_problem(Coins())) == 9  # nothing is broken
    assert "bounds: are kept" in check_problem(GLMBandit(horizon=60, delay=50))


@each(
    ("problem", "sentence"),
    [
        (FlatUsers, r"mean of Users of FlatUsers of shape \(\d+, 2, 2\), got \(\d+, 2\)"),
        (MoreArms, r"reward of Users of MoreArms of shape \(\d+, 2, 2\), got \(\d+, 2, 4\)"),
        (Percent, r"mean rewards in \[0, 1\], as rewards are, got 30"),
        (LaterColumns, r"In round 13: Expected reward of shape \(2,\), got \(2, 1\)"),
        (NegativeHindsight, "hindsight=-5.0 to be 0"),
    ],
)
def test_comparisons_tell_an_author_what_is_wrong(problem, sentence):
    """Without, they end in a traceback, or with a regret of thousands."""
    how = {"horizon": 50, "replicas": 2, "progress": False}
    with pytest.raises(InputError, match=sentence):
        compare(lambda horizon: problem(), {"LinUCB": LinUCB()}, **how)
