"""What all problems of choice share: who comes is drawn ahead, what she buys depends on the set.

A round's user is a context and her chances of buying each product of any set. One uniform number a
round, held against the added-up chances in the order of the products, says what she buys, so that
agents who offer the same set sell the same.

The best single set for all users so far is found among all sets where they are few, else by
exchange. Under a multinomial logit users buy at prices of a list, one of them perhaps, or at any.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from itertools import combinations, product
from math import comb
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpbandit.base import AnyArray, Floats, Ints, Streams, rows
from dpbandit.envs.dynamics import Delay
from dpbandit.losses.click_models import chances, weights
from dpbandit.specs.choice import (
    AssortmentSpec,
    ChoiceSpec,
    FreelyPricedSpec,
    best_levels,
    best_prices,
)
from dpbandit.specs.protocols import Step

MOST_SETS = 10_000
"""Of which the expected margins are all added up."""
_USERS = 500
"""Of whom the exchange knows."""
_GAIN = 1e-12


class Contest(Protocol):
    """Of one episode."""

    def add(self, taste: AnyArray) -> None:
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

    def add(self, taste: AnyArray) -> None:
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

    def add(self, taste: AnyArray) -> None:
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


_VALUES_AHEAD = 1 << 15
"""Of contexts, drawn at once for all replicas. Changes speed, never values."""


class Crowd(NamedTuple):
    """n rounds of users for R replicas."""

    context: Floats
    """`(n, R, *context_shape)`"""
    taste: AnyArray
    """(n, R, ...), what decides what they buy"""
    oracle: Floats
    """(n, R), the largest expected margin of any set"""


class ChoiceProblem(ABC):
    """A `Problem` of assortments; a subclass sets `spec`, says who comes, and what she buys."""

    spec: ChoiceSpec

    @abstractmethod
    def _start(self, streams: Streams) -> None: ...

    @abstractmethod
    def _users(self, count: int) -> Crowd: ...

    @abstractmethod
    def _sales(self, taste: AnyArray, action: AnyArray) -> tuple[Floats, Floats]:
        """Chances of buying each product of sets (R, N), and its margins, both (R, N)."""

    @abstractmethod
    def _contest(self, replicas: int) -> Contest:
        """Of fixed sets, for one episode."""

    def _fixed(self, levels: Ints) -> AnyArray:
        """Sets (R, N) of a contest as actions."""
        return levels

    def reset(self, streams: Streams) -> None:
        """Start an episode, one replica for each stream."""
        R = len(streams)
        self._start(streams)
        self._luck = streams.uniforms("purchases")
        self._ahead = max(1, _VALUES_AHEAD // (R * int(np.prod(self.spec.context_shape))))
        self._sets_so_far, self._replicas = self._contest(R), R
        self._next = self._drawn = self._counted = 0
        self._late = [Delay(self.spec.delay, R) for _ in range(2)]

    def context(self) -> Floats:
        """The current users' contexts, `(R, *context_shape)`."""
        if self._next == self._drawn:
            self._count()
            self._crowd = self._users(self._ahead)
            self._next = self._counted = 0
            self._drawn = self._ahead
        context: Floats = self._crowd.context[self._next]
        return context

    def step(self, action: AnyArray) -> Step:
        """Offer a set (R, N) to the current users and move on to the next."""
        offered = self.spec.validate(action, self._replicas)
        i = self._next
        self._next = i + 1
        chance, margin = self._sales(self._crowd.taste[i], offered)
        expected = np.vecdot(chance, margin)
        choice = (self._luck()[:, None] >= chance.cumsum(axis=1)).sum(axis=1)  # N is nothing
        reward = np.where(
            choice < self.spec.n_products,
            margin[rows(len(choice)), np.minimum(choice, self.spec.n_products - 1)],
            0.0,
        )
        oracle = np.maximum(self._crowd.oracle[i], expected)  # but for rounding it is
        reward, told = (late(x) for late, x in zip(self._late, (reward, 1.0 * choice), strict=True))
        return Step(reward, expected, oracle, oracle - expected, told)

    def best_fixed(self) -> AnyArray:
        """The set (R, N) with the largest expected total over the rounds so far."""
        self._count()
        return self._fixed(self._sets_so_far.best())

    def hindsight(self) -> float:
        """0: every user has a best set of her own."""
        return 0.0

    def _count(self) -> None:
        """Tell the contest of the rounds that it does not know yet."""
        if self._counted < self._next:
            self._sets_so_far.add(self._crowd.taste[self._counted : self._next])
            self._counted = self._next


_FINEST, _COARSEST = 100, 5
"""Prices of the list from which the best fixed ones are taken where any may be asked."""
_AT_ONCE = 1 << 20
"""Products of rounds and sets. Changes speed and last bits of totals, never regret."""


class ListedSales:
    """Utility of product j at level p is appeal_j - lost_p.

    Args:
        margins: what sales earn, (N, P).
        lost: what each price takes of the utility, (P,); a single 0 where there are no prices.
        at_most: S.
    """

    def __init__(self, margins: Floats, lost: Floats, at_most: int) -> None:
        self._margins, self._lost, self._most = margins, lost, at_most
        N, P = margins.shape
        self._sets = None
        if count_sets(N, at_most, P) <= MOST_SETS:
            self._sets = every_set(N, at_most, P)
            chosen = self._sets[:, :, None] == np.arange(1, P + 1)  # (n_sets, N, P)
            self._chosen = np.ascontiguousarray(1.0 * chosen.reshape(len(self._sets), -1).T)

    @classmethod
    def of(cls, spec: AssortmentSpec, lost: Floats) -> "ListedSales":
        """Of the products of a spec."""
        return cls(spec.margin_table, lost, spec.at_most)

    def best(self, appeal: Floats) -> Floats:
        """The largest expected margin of users (..., N), (...)."""
        return best_levels(self._weights(appeal), self._margins, self._most)[1]

    def sales(self, appeal: Floats, action: Ints) -> tuple[Floats, Floats]:
        """Chances and margins of sets (R, N), both (R, N)."""
        level = np.maximum(action - 1, 0)
        chance = chances(weights(appeal - self._lost[level]), action > 0)
        margin = np.take_along_axis(self._margins[None], level[..., None], axis=-1)[..., 0]
        return chance, margin

    def contest(self, replicas: int) -> Contest:
        """Of fixed sets, in one episode."""
        if self._sets is None:
            return Exchanged(self._weights, self._margins, self._most, replicas)
        return Enumerated(self._sets, self._worth, replicas)

    def fixed(self, levels: Ints) -> Ints:
        """Sets (R, N) of a contest as actions."""
        return levels

    def _worth(self, appeal: Floats) -> Floats:
        total = np.zeros((appeal.shape[1], self._chosen.shape[1]))
        at_once = max(1, _AT_ONCE // total.size)
        for first in range(0, len(appeal), at_once):
            w = self._weights(appeal[first : first + at_once])
            earned = (w * self._margins).reshape(*w.shape[:2], -1) @ self._chosen
            total += (earned / (1 + w.reshape(*w.shape[:2], -1) @ self._chosen)).sum(axis=0)
        return total

    def _weights(self, appeal: Floats) -> Floats:
        return weights(appeal[..., None] - self._lost)


class FreeSales:
    """Utility of product j at price p is appeal_j - slope (p - the middle of the range).

    The best fixed set is looked for on a list of 5 to 100 prices, as many as there may be sets.
    """

    def __init__(self, spec: FreelyPricedSpec, slope: float) -> None:
        self._spec, self._slope, self._middle = spec, slope, (spec.low + spec.high) / 2
        self._costs = np.array(spec.unit_costs)
        N, S, fine = spec.n_products, spec.at_most, _COARSEST
        while fine < _FINEST and count_sets(N, S, fine + 1) <= MOST_SETS:
            fine += 1
        self._list = np.linspace(spec.low, spec.high, fine)
        self._listed = ListedSales(
            self._list - self._costs[:, None], slope * (self._list - self._middle), S
        )

    def best(self, appeal: Floats) -> Floats:
        """The largest expected margin of users (..., N), (...)."""
        S, b = self._spec, np.array(self._slope)
        at_zero = appeal + self._slope * self._middle
        return best_prices(at_zero, b, self._costs, S.low, S.high, S.at_most)[1]

    def sales(self, appeal: Floats, action: Floats) -> tuple[Floats, Floats]:
        """Chances and margins of sets (R, N), both (R, N)."""
        w = weights(appeal - self._slope * (action - self._middle))
        return chances(w, action > 0), action - self._costs

    def contest(self, replicas: int) -> Contest:
        """Of fixed sets at prices of the list, in one episode."""
        return self._listed.contest(replicas)

    def fixed(self, levels: Ints) -> Floats:
        """Sets (R, N) of a contest as actions."""
        return np.where(levels > 0, self._list[np.maximum(levels - 1, 0)], 0.0)
