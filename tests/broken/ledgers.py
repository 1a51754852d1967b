"""Agents whose ledger does not tell all: their certificates must not be believed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpbandit.privacy.batches import LocalValues
from dpbandit.privacy.ledger import Ledger, no_privacy
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.spends import Parallel


def mechanism(streams: Any, epsilon: float = 0.5) -> LocalValues:
    """A mechanism that releases each reward with noise of its own."""
    return LocalValues(streams, low=0.0, high=1.0, noise_multiplier=1 / epsilon)


class Wrapping(Mechanism):
    """Opens a mechanism inside itself for every user, and pays for it."""

    def __init__(self, streams: Any) -> None:
        self._streams, self._inner = streams, mechanism(streams)
        self.spend, self.sensitivity, self.uses = self._inner.spend, 1.0, 10**6

    def query(self, *datum: Any) -> Any:
        return self._inner.query(*datum)

    def _release(self, *datum: Any) -> Any:
        self._inner = mechanism(self._streams.child(f"user {self._used}"))
        return self._inner(*datum)


class Agent:
    """Plays arm 0; `mechanisms` says which mechanisms hear user t (from 1)."""

    def __init__(self, ledger: Ledger, mechanisms: Callable[[int], list[Mechanism]]) -> None:
        self.ledger, self._mechanisms, self._round = ledger, mechanisms, 0

    def act(self, context: Any) -> Any:
        return np.zeros(len(context), np.int64)

    def update(self, context: Any, action: Any, feedback: Any) -> None:
        self._round += 1
        for one in self._mechanisms(self._round):
            one(feedback)


@dataclass(frozen=True, kw_only=True)
class Bookkeeper:
    """A config of such an agent: `books` makes its ledger and its mechanisms of streams."""

    books: Callable[[Any], Any]

    def make(self, spec: Any, streams: Any) -> Agent:
        return Agent(*self.books(streams))


def _two(streams: Any, one: float = 0.5, two: float = 0.5) -> tuple[LocalValues, LocalValues]:
    return mechanism(streams.child("one"), one), mechanism(streams.child("two"), two)


def names_nothing(streams: Any) -> Any:
    one = mechanism(streams)
    return Ledger(), lambda t: [one]


def names_one_of_two(streams: Any) -> Any:
    one, two = _two(streams, two=0.6)
    return Ledger((one.spend,)), lambda t: [one, two]


def names_one_for_two_alike(streams: Any) -> Any:
    one, two = _two(streams)
    return Ledger((one.spend,)), lambda t: [one, two]


def opens_one_late(streams: Any) -> Any:
    one, two = _two(streams, two=0.6)
    return Ledger((one.spend,)), lambda t: [one] if t < 40 else [two]


def calls_parallel_what_is_not(streams: Any) -> Any:
    one, two = _two(streams)
    return Ledger((Parallel((one.spend,)),)), lambda t: [one, two]


def a_spend_less_than_there_is(streams: Any) -> Any:
    one = mechanism(streams)
    return Ledger((replace(one.spend, epsilon=0.4),)), lambda t: [one]


def parallel_with_another(streams: Any) -> Any:
    one, two = _two(streams, two=0.6)
    return Ledger((Parallel((one.spend, two.spend)),)), lambda t: [one, two] if t == 9 else [one]


def names_both(streams: Any) -> Any:
    one, two = _two(streams)
    return Ledger((one.spend, two.spend)), lambda t: [one, two]


def truly_parallel(streams: Any) -> Any:
    one, two = _two(streams, two=0.6)
    return Ledger((Parallel((one.spend, two.spend)),)), lambda t: [one if t % 2 else two]


def a_mechanism_for_every_user(streams: Any) -> Any:
    ledger = Ledger((Parallel((mechanism(streams).spend,)),))
    return ledger, lambda t: [mechanism(streams.child(f"user {t}"))]


def mechanisms_behind_a_mechanism(streams: Any) -> Any:
    one = Wrapping(streams)
    return Ledger((one.spend,)), lambda t: [one]


def promises_nothing(streams: Any) -> Any:
    one = mechanism(streams)
    return no_privacy("whatever it likes"), lambda t: [one, one]


LIARS = {
    "names nothing": (names_nothing, "which it calls"),
    "names one of two": (names_one_of_two, "which it calls"),
    "names one for two alike": (names_one_for_two_alike, "once for each"),
    "opens one late": (opens_one_late, "which it calls"),
    "less than there is": (a_spend_less_than_there_is, "which it calls"),
    "parallel mechanisms that hear the same users": (
        calls_parallel_what_is_not,
        "hear no user twice",
    ),
    "parallel mechanisms that hear one user twice": (parallel_with_another, "hear no user twice"),
}
"""What their ledger does, and a part of the sentence that tells it."""
HONEST = (
    names_both,
    truly_parallel,
    a_mechanism_for_every_user,
    mechanisms_behind_a_mechanism,
    promises_nothing,
)
