"""What an auditor hears at the door: releases, and what is left of sums without other users."""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from dpbandit.arrays import Floats
from dpbandit.privacy.fading import FadingSum
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.prefix_sums import PrefixSum, TreeNoise

_SUMS = (PrefixSum, FadingSum)


class Part(NamedTuple):
    """Columns of one kind, of all runs of both worlds."""

    family: str
    categorical: bool
    values: Floats
    """(2 R, p)"""


class Left(NamedTuple):
    """One release of a sum, without what others added to it."""

    values: Floats
    """(2 R, n)"""
    weight: float
    """of the differing user's part, by now"""


class Sum:
    """What is known of a mechanism, and seen of it if it releases a sum."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism  # kept alive, so that its id stays its own
        self.released = isinstance(mechanism, _SUMS)
        self.is_tree = isinstance(getattr(mechanism, "_noise", None), TreeNoise)
        self.sensitivity = mechanism.sensitivity
        self.hers: Floats | None = None
        """what the differing user added, (2 R, n)"""
        self.left: list[Left] = []
        self._others: Floats | float = 0.0
        self._weight, self._fade = 0.0, getattr(mechanism, "fade", 1.0)

    def add(self, query: Floats, *, hers: bool) -> None:
        """One user's (2 R, ...)."""
        flat = query.reshape(len(query), -1)
        if hers:
            self.hers, self._weight = flat if self.hers is None else self.hers + flat, 1.0
        else:
            self._others = self._others + flat

    def release(self, release: Floats) -> None:
        """The sum in the statistic's units."""
        self.left.append(Left(release.reshape(len(release), -1) - self._others, self._weight))
        self._others, self._weight = self._others * self._fade, self._weight * self._fade

    def nodes(self) -> Iterator[Left]:
        """The nodes of a tree that she is in: release t less release t - lowbit(t)."""
        for t, left in enumerate(self.left, start=1):
            below = t & (t - 1)
            less = self.left[below - 1] if below else Left(np.zeros(1), 0.0)
            if left.weight > less.weight:
                yield Left(left.values - less.values, 1.0)


class Witness:
    """Listens to the calls of mechanisms, while one user at a time is learned from."""

    def __init__(self) -> None:
        self.differs = False
        """whether the differing user's round is being learned from"""
        self.sums: list[Sum] = []
        """mechanisms in the order of first use"""
        self.others: list[Part] = []
        """releases that are no sums"""
        self._places = dict[int, int]()

    def __call__(self, mechanism: Mechanism, datum: Any, release: Any) -> None:
        """One call of the door."""
        place = self._places.setdefault(id(mechanism), len(self._places))
        if place == len(self.sums):
            self.sums.append(Sum(mechanism))
        known = self.sums[place]
        if known.released or self.differs:
            known.add(mechanism.query(*datum), hers=self.differs)
        if release is None:
            return
        if isinstance(mechanism, _SUMS):
            known.release(release / mechanism._statistic.units)
            return
        flat = np.asarray(release).reshape(len(release), -1)
        kind = not np.issubdtype(flat.dtype, np.floating)
        self.others.append(Part("releases", kind, flat.astype(float)))
        if not kind:
            self.others.append(Part("support", False, (flat != 0).astype(float)))
