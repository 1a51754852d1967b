"""The best single set for all users so far: of all sets where they are few, else by exchange."""

from collections.abc import Callable
from itertools import combinations, product
from math import comb
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints

MOST_SETS = 10_000
"""Of which the expected margins are all added up."""
_USERS = 500
"""Of whom the exchange knows."""
_GAIN = 1e-12


class Contest(Protocol):
    """Of one episode."""

    def add(self, taste: npt.NDArray[Any]) -> None:
        """More users, (n, R, ...)."""
        ...

    def best(self) -> Ints:
        """The best set for them, as levels (R, N)."""
        ...


class Enumerated:
    """Adds up what every set earns, and knows the best exactly.

    Args:
        sets: all of them, (n_sets, N).
        worth: what they earn of users (n, R, ...) altogether, (R, n_sets).
        replicas: R.
    """

    def __init__(self, sets: Ints, worth: Callable[[Any], Floats], replicas: int) -> None:
        self._sets, self._worth = sets, worth
        self._totals = np.zeros((replicas, len(sets)))

    def add(self, taste: npt.NDArray[Any]) -> None:
        """More users, (n, R, ...)."""
        self._totals += self._worth(taste)

    def best(self) -> Ints:
        """The best set for them, (R, N)."""
        found: Ints = self._sets[self._totals.argmax(axis=1)]
        return found


class Exchanged:
    """Keeps the first 500 users, and exchanges one product at a time while that pays.

    A mixture of logits has no fast way to its best set (the problem is NP-hard); what is found is
    the best of all its neighbours.

    Args:
        weights: v of users (n, R, ...) for each product at each price, (n, R, N, P).
        margins: (N, P).
        at_most: S.
    """

    def __init__(
        self, weights: Callable[[Any], Floats], margins: Floats, at_most: int, replicas: int
    ) -> None:
        self._weights, self._margins, self._most = weights, margins, at_most
        self._kept: list[Floats] = []
        self._replicas, self._users = replicas, 0

    def add(self, taste: npt.NDArray[Any]) -> None:
        """More users, (n, R, ...); those beyond 500 are not looked at."""
        taste = taste[: _USERS - self._users]
        if len(taste):
            self._users += len(taste)
            self._kept.append(self._weights(taste))

    def best(self) -> Ints:
        """A set for them that no exchange makes better, (R, N); before there are any, the first."""
        if not self._kept:
            first = np.zeros((self._replicas, len(self._margins)), np.int64)
            first[:, 0] = 1
            return first
        users = np.concatenate(self._kept)
        return np.array([self._climb(users[:, r]) for r in range(users.shape[1])])

    def _climb(self, v: Floats) -> Ints:
        """Of users (n, N, P) of one replica: (N,)."""
        N, P = self._margins.shape
        earned = v * self._margins
        levels, worth = np.zeros(N, np.int64), 0.0
        while True:
            best = None
            members = np.flatnonzero(levels)
            rests = [members] if len(members) < self._most else []
            rests += [members[members != i] for i in members]
            for rest in rests:  # everybody in it stays, one more product may come
                at = (slice(None), rest, levels[rest] - 1)
                more = earned[at].sum(axis=1)[:, None, None] + earned
                value = (more / (1 + v[at].sum(axis=1)[:, None, None] + v)).mean(axis=0)  # (N, P)
                value[rest] = -1.0
                j, p = divmod(int(value.argmax()), P)
                if value[j, p] > worth + _GAIN:
                    worth = float(value[j, p])
                    best = np.where(np.isin(np.arange(N), rest), levels, 0)
                    best[j] = p + 1
            if best is None:
                return levels
            levels = best


def every_set(n_products: int, at_most: int, levels: int = 1) -> Ints:
    """All sets of 1 to S products at each of so many prices, as levels (n_sets, N)."""
    found = np.zeros((count_sets(n_products, at_most, levels), n_products), np.int64)
    place = 0
    for size in range(1, at_most + 1):
        for members in combinations(range(n_products), size):
            for chosen in product(range(1, levels + 1), repeat=size):
                found[place, list(members)] = chosen
                place += 1
    return found


def count_sets(n_products: int, at_most: int, levels: int = 1) -> int:
    """How many there are."""
    return sum(comb(n_products, k) * levels**k for k in range(1, at_most + 1))
