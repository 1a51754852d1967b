"""Agents and declarations that break a rule of premises: each must be refused, or caught."""

from dataclasses import dataclass, replace
from threading import Thread
from types import MappingProxyType
from typing import Any

import numpy as np

from dpbandit.agents import AllocationTS
from dpbandit.agents.contextual.fade_curve import FadeCurve
from dpbandit.privacy import ALL_FACTS, SUMMED, ClippedVectors, Fact, FadingSum, Ledger
from dpbandit.privacy.batches import CountedSums
from dpbandit.privacy.spends import Parallel
from tests.broken.ledgers import Wrapping


def sums(streams: Any, horizon: int, kind: type[FadingSum] = FadingSum, **settings: Any) -> Any:
    """A sum of rewards, released after every third round."""
    statistic = settings.pop("statistic", ClippedVectors(1))
    batches = {"ends": range(3, horizon, 3), "horizon": horizon, "fade": 0.0}
    return kind(statistic, streams, **batches, noise_multiplier=1.0, **settings)


class SaysNothing(Wrapping):
    """A mechanism that overrides what its base class has proved, and declares nothing."""

    def query(self, *datum: Any) -> Any:
        return super().query(*datum)


class Inherits(FadingSum):
    """Releases otherwise, on the premises of a fading sum."""

    def _release(self, *datum: Any) -> Any:
        return super()._release(*datum)


class InheritsAHelper(FadingSum):
    """Changes a step of the release that is a method of its own."""

    def _release_sum(self) -> Any:
        return super()._release_sum()


class Undeclared(ClippedVectors):
    """A statistic that sums otherwise."""

    def total(self, *batch: Any) -> Any:
        return super().total(*batch)


class Words(FadingSum):
    """Declares a word in place of a set of facts."""

    needs = "SUMMED"  # type: ignore[assignment]


class Property(FadingSum):
    """Declares by a property, which may say another thing each time."""

    @property
    def needs(self) -> Any:  # type: ignore[override]
        return SUMMED


class Everything(FadingSum):
    """Needs every fact to be public, but no problem provides all facts."""

    needs = ALL_FACTS


class Cheap(FadingSum):
    """Pays for a hundredth of what it releases."""

    @property
    def spend(self) -> Any:  # type: ignore[override]
        return replace(self._paid, mu=self._paid.mu / 100)

    @spend.setter
    def spend(self, paid: Any) -> None:
        self._paid = paid


class Short(ClippedVectors):
    """Says that a user moves it by a hundredth."""

    @property
    def sensitivity(self) -> float:
        return super().sensitivity / 100


class Player:
    """Plays the first arm and feeds a mechanism with each reward, (R, 1)."""

    def __init__(self, made: Any) -> None:
        self.made, self.ledger = made, Ledger((made.spend,))

    def act(self, context: Any) -> Any:
        return np.zeros(len(context), np.int64)

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self.made(np.asarray(feedback, float)[:, None])


@dataclass(frozen=True, kw_only=True)
class With:
    """A config of a `Player` with a mechanism that `make_one` makes of streams and a horizon."""

    make_one: Any

    def make(self, spec: Any, streams: Any) -> Player:
        return Player(self.make_one(streams, spec.horizon))


def patched(streams: Any, horizon: int) -> Any:
    """An honest sum into which another release was put."""
    made = sums(streams, horizon)
    made._release = lambda *datum: made.query(*datum)
    return made


def said_by_the_instance(streams: Any, horizon: int) -> Any:
    """A sum of an undeclared kind whose instance declares."""
    made = sums(streams, horizon, Inherits)
    made.needs = SUMMED
    return made


REFUSED = {
    "says nothing": (With(make_one=lambda s, T: SaysNothing(s)), "SaysNothing .*to declare"),
    "inherits": (With(make_one=lambda s, T: sums(s, T, Inherits)), "Inherits .*to declare"),
    "inherits a helper": (
        With(make_one=lambda s, T: sums(s, T, InheritsAHelper)),
        "InheritsAHelper .*to declare",
    ),
    "an undeclared statistic": (
        With(make_one=lambda s, T: sums(s, T, statistic=Undeclared(1))),
        "Undeclared .*to declare",
    ),
    "another spend": (With(make_one=lambda s, T: sums(s, T, Cheap)), "Cheap .*to declare"),
    "another sensitivity": (
        With(make_one=lambda s, T: sums(s, T, statistic=Short(1))),
        "Short .*to declare",
    ),
    "words": (With(make_one=lambda s, T: sums(s, T, Words)), "needs='SUMMED' of Words"),
    "a property": (With(make_one=lambda s, T: sums(s, T, Property)), "of Property to be"),
    "everything": (
        With(make_one=lambda s, T: sums(s, T, Everything)),
        "public what contexts are .*which 'fading sum.*finitely many arms and",
    ),
    "patched": (With(make_one=patched), "FadingSum .*to declare"),
    "said by the instance": (With(make_one=said_by_the_instance), "Inherits .*to declare"),
}
"""A config with an undeclared or falsely declared mechanism, and a part of the sentence."""


@dataclass(frozen=True, kw_only=True)
class Opens:
    """Opens a mechanism in its tenth round, and keeps it nowhere."""

    kind: type[FadingSum]

    def make(self, spec: Any, streams: Any) -> Any:
        return OpensLate(self.kind, spec, streams)


class OpensLate(Player):
    """See `Opens`."""

    def __init__(self, kind: Any, spec: Any, streams: Any) -> None:
        super().__init__(sums(streams, spec.horizon))
        self.late = sums, (streams.child("late"), spec.horizon, kind)
        self.ledger = Ledger((self.made.spend, self.made.spend))
        self.round = 0

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        super().update(context, action, feedback)
        self.round += 1
        if self.round == 10:
            make, how = self.late
            make(*how)(np.asarray(feedback, float)[:, None])


@dataclass(frozen=True, kw_only=True)
class OpensWarm(Opens):
    """The same, and calls its first mechanism before the first round."""

    def make(self, spec: Any, streams: Any) -> Any:
        agent = OpensLate(self.kind, replace(spec, horizon=spec.horizon + 1), streams)
        agent.made(np.zeros((len(streams), 1)))
        return agent


class Passing:
    """Passes all on, and declares nothing."""

    def __init__(self, inner: Any) -> None:
        self.inner, self.ledger = inner, inner.ledger

    def act(self, context: Any) -> Any:
        return self.inner.act(context)

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self.inner.update(context, action, feedback)


class Declared(Passing):
    """Passes all on, and says so."""

    hands_on = ALL_FACTS


class Overrides(Declared):
    """Keeps what it says, though it plays another arm for some contexts."""

    def act(self, context: Any) -> Any:
        return np.where(context[:, 0] > 0, 0, self.inner.act(context))


class Slot:
    """Holds one thing, in a slot."""

    __slots__ = "held"

    def __init__(self, held: Any) -> None:
        self.held = held


class PrivateSlot:
    """The same, by a private name."""

    __slots__ = ("__held",)

    def __init__(self, held: Any) -> None:
        self.__held = held

    def __call__(self) -> Any:
        return self.__held


class Listed(list[Any]):
    """A list with attributes."""


def in_a_list(held: Any) -> Listed:
    """An empty list that holds it in an attribute."""
    found = Listed()
    found.held = held  # type: ignore[attr-defined]
    return found


HIDING = (Slot, PrivateSlot, in_a_list, lambda held: [held].append)
"""What holds something, elsewhere than in a plain attribute or a container"""


class Vetoes(Overrides):
    """Says that what is played is not what the agent inside chose."""

    hands_on = ALL_FACTS - {Fact.AS_CHOSEN}

    def act(self, context: Any) -> Any:
        return super().act(context)


class GivesBack(Vetoes):
    """Says it by halves: vetoes are no harm where contexts are public."""

    hands_on = ALL_FACTS - {Fact.AS_CHOSEN}
    hands_on_if = MappingProxyType({Fact.AS_CHOSEN: Fact.CONTEXT})


@dataclass(frozen=True, kw_only=True)
class Around:
    """A config of an agent around another one."""

    config: Any
    kind: Any
    epsilon: float = 1.0
    delta: float = 0.2

    def make(self, spec: Any, streams: Any) -> Any:
        return self.kind(self.config.make(spec, streams))


class ChoosesASum(Player):
    """Feeds one of two sums, by what all users of a round say."""

    def __init__(self, streams: Any, spec: Any) -> None:
        batches = {"ends": range(1, spec.horizon), "horizon": spec.horizon, "fade": 0.0}
        self.sums = [
            FadingSum(ClippedVectors(1), streams.child(name), **batches, noise_multiplier=1.0)
            for name in ("one", "two")
        ]
        self.ledger = Ledger((Parallel(tuple(one.spend for one in self.sums)),))

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self.made = self.sums[int((feedback > 0.5).sum() % 2)]
        super().update(context, action, feedback)


class Elsewhere(Player):
    """Feeds its mechanism in another thread, where no roll is kept, and pays for nothing."""

    def __init__(self, streams: Any, spec: Any) -> None:
        super().__init__(sums(streams, spec.horizon))
        self.ledger = Ledger()

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        thread = Thread(target=super().update, args=(context, action, feedback))
        thread.start()
        thread.join()


class DueByData(Player):
    """Agent that releases a sum when a reward exceeds 0.9: release times are functions of data."""

    def __init__(self, streams: Any, spec: Any) -> None:
        super().__init__(CountedSums(streams, 1, low=0, high=1, epsilon=1.0, uses=spec.horizon))

    blind = True

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self.made(feedback, np.zeros(len(feedback), np.int64), (feedback > 0.9)[:, None])


@dataclass(frozen=True, kw_only=True)
class Making:
    """A config of such an agent."""

    kind: Any

    def make(self, spec: Any, streams: Any) -> Any:
        return self.kind(streams, spec)


class LooksAtTheContext(AllocationTS):
    """Agent that plays the last arm for some contexts, although it claims to be `blind`."""

    blind = True

    def act(self, context: Any) -> Any:
        return np.where(context[:, 0] > 0, self.K - 1, super().act(context))


class CountsWhatItIsTold(FadeCurve):
    """Counts a sale for the price that it is told, which a veto may have chosen."""

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self._in_turn = lambda round: action  # type: ignore[method-assign]
        super().update(context, action, feedback)
        del self._in_turn
