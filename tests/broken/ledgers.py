"""Agents whose ledger does not tell all: their certificates must not be believed."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpbandit.agents import DPUCB
from dpbandit.privacy.batches import LocalValues
from dpbandit.privacy.ledger import Ledger, no_privacy
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.spends import Parallel


def mechanism(streams: Any, epsilon: float = 0.5) -> LocalValues:
    """A mechanism that releases each reward with noise of its own."""
    return LocalValues(streams, low=0.0, high=1.0, noise_multiplier=1 / epsilon)


class Wrapping(Mechanism):
    """Opens a mechanism inside itself for every user, and pays for it."""

    needs = LocalValues.needs

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
    """A config of such an agent: `with_ledger` makes its ledger and its mechanisms of streams."""

    with_ledger: Callable[[Any], Any]

    def make(self, spec: Any, streams: Any) -> Agent:
        return Agent(*self.with_ledger(streams))


class PromisesAlone(DPUCB):
    """Epsilon 1 for a single replica, which is what is certified, and 20 for several."""

    def make(self, spec: Any, streams: Any) -> Any:
        return DPUCB(epsilon=1.0 if len(streams) == 1 else 20.0).make(spec, streams)


def keeping(
    spends: Callable[..., tuple[Any, ...]], user_calls: Callable[..., list[Any]], two=0.5
) -> Any:
    """Ledger of two mechanisms, of epsilon 0.5 and `two`: the ledger's spends, and who hears user t
    (from 1)."""

    def with_ledger(streams: Any) -> Any:
        pair = mechanism(streams.child("one")), mechanism(streams.child("two"), two)
        return Ledger(spends(*(made.spend for made in pair))), lambda t: user_calls(t, *pair)

    return with_ledger


def a_mechanism_for_every_user(streams: Any) -> Any:
    ledger = Ledger((Parallel((mechanism(streams).spend,)),))
    return ledger, lambda t: [mechanism(streams.child(f"user {t}"))]


def mechanisms_behind_a_mechanism(streams: Any) -> Any:
    one = Wrapping(streams)
    return Ledger((one.spend,)), lambda t: [one]


def promises_nothing(streams: Any) -> Any:
    one = mechanism(streams)
    return no_privacy("whatever it likes"), lambda t: [one, one]


def first(a: Any, b: Any) -> tuple[Any, ...]:
    return (a,)


def both(t: int, one: Any, two: Any) -> list[Any]:
    return [one, two]


LIARS = {
    "names nothing": (keeping(lambda a, b: (), lambda t, one, two: [one]), "which it calls"),
    "names one of two": (keeping(first, both, two=0.6), "which it calls"),
    "names one for two alike": (keeping(first, both), "once for each"),
    "opens one late": (
        keeping(first, lambda t, one, two: [one] if t < 40 else [two], two=0.6),
        "which it calls",
    ),
    "less than there is": (
        keeping(lambda a, b: (replace(a, epsilon=0.4),), lambda t, one, two: [one]),
        "which it calls",
    ),
    "parallel mechanisms that hear the same users": (
        keeping(lambda a, b: (Parallel((a,)),), both),
        "hear no user twice",
    ),
    "parallel mechanisms that hear one user twice": (
        keeping(
            lambda a, b: (Parallel((a, b)),),
            lambda t, one, two: [one, two] if t == 9 else [one],
            two=0.6,
        ),
        "hear no user twice",
    ),
    "parallel mechanisms that both hear every second user": (
        keeping(
            lambda a, b: (Parallel((a, b)),),
            lambda t, one, two: [one, two] if t % 2 == 0 else [],
            two=0.6,
        ),
        "hear no user twice",
    ),
}
"""What their ledger does, and a part of the sentence that tells it."""
HONEST = (
    keeping(lambda a, b: (a, b), both),
    keeping(lambda a, b: (Parallel((a, b)),), lambda t, one, two: [one if t % 2 else two], two=0.6),
    a_mechanism_for_every_user,
    mechanisms_behind_a_mechanism,
    promises_nothing,
)
