"""Listen to mechanisms: their releases, and what is left of sums without other users."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpbandit.base import Floats
from dpbandit.privacy import FadingSum, Mechanism, PrefixSum, Tree
from dpbandit.privacy.batches import CountedSums, RestartingTrees
from dpbandit.privacy.prefix_sums import Padded
from dpbandit.shelf import open_shelves

_SUMS = (PrefixSum, FadingSum, RestartingTrees)


class Part(NamedTuple):
    """Columns of one kind, of all runs of both worlds."""

    family: str
    categorical: bool
    values: Floats
    """(2 R, p)"""


class WithoutOthers(NamedTuple):
    """One release of a sum, without what others added to it."""

    values: Floats
    """(2 R, n)"""
    contribution: Floats
    """the differing user's part of it, by now, (2 R, n)"""


class Ear(Protocol):
    """Listens to a mechanism whose law is known."""

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        """One call of the mechanism; `differs`: it is fed the differing user's round."""
        ...

    def ratios(self) -> Floats | None:
        """log P_other - log P_own of what was released, (2 R, p), if she moved any of it."""
        ...


LISTENERS: list[Callable[[Mechanism, int], Ear | None]] = []
"""Make an ear for a mechanism of a run, or None; shelves add theirs. What no ear listens to is
scored by its releases as they are."""


class Sum:
    """What is known of a mechanism, and seen of it if it releases a sum."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism  # kept alive, so that its id stays its own
        self.released = isinstance(mechanism, _SUMS)
        noise = getattr(mechanism, "_noise", None)
        self._padded = noise if isinstance(noise, Padded) else None
        self.is_tree = isinstance(noise, Tree)
        self.is_tree |= isinstance(mechanism, RestartingTrees)
        self.sensitivity = mechanism.sensitivity
        self.contribution: Floats | None = None
        """what the differing user added, (2 R, n)"""
        self.without_others: list[WithoutOthers] = []
        self._unpadded: list[WithoutOthers] = []
        self._others: Floats | float = 0.0
        self._part: Floats = np.zeros((1, 1))

    def add(self, datum: Any, *, differs: bool) -> None:
        """One user's round."""
        query = self._mechanism.entered(*datum)
        flat = query.reshape(len(query), -1)
        if isinstance(self._mechanism, RestartingTrees):
            self._fade(~datum[2][:, None])
        if differs:
            self.contribution = flat if self.contribution is None else self.contribution + flat
            self._part = self._part + flat
        else:
            self._others = self._others + flat

    def release(self, release: Floats) -> None:
        """Take the released sum, noise included."""
        units = getattr(getattr(self._mechanism, "_statistic", None), "units", 1.0)
        self.without_others.append(self._without_others(release / units))
        if self._padded is not None:
            self._unpadded.append(self._without_others(release / units - self._padded.padding))
        self._fade(getattr(self._mechanism, "fade", 1.0))

    def _without_others(self, release: Floats) -> WithoutOthers:
        flat = release.reshape(len(release), -1)
        return WithoutOthers(flat - self._others, np.broadcast_to(self._part, flat.shape))

    def _fade(self, factor: Any) -> None:
        self._others, self._part = self._others * factor, self._part * factor

    def nodes(self) -> Iterator[WithoutOthers]:
        """The nodes of a tree that she is in: release t less release t - lowbit(t)."""
        releases = self._unpadded or self.without_others
        for t, item in enumerate(releases, start=1):
            below = t & (t - 1)
            less = releases[below - 1] if below else WithoutOthers(np.zeros(1), np.zeros((1, 1)))
            contribution = item.contribution - less.contribution
            if contribution.any():
                yield WithoutOthers(item.values - less.values, contribution)


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
        self._ears = dict[int, Ear]()

    def attach(self, mechanism: Mechanism, runs: int) -> None:
        """Listen closely, where that is known how; before the first call."""
        open_shelves("auditing")
        found = (ear for listener in LISTENERS if (ear := listener(mechanism, runs)) is not None)
        if (ear := next(found, None)) is not None:
            self._ears[id(mechanism)] = ear

    def ratios(self) -> Iterator[Floats]:
        """log P_B - log P_A of what mechanisms of known law released, (2 R, p) each."""
        for ear in self._ears.values():
            if (found := ear.ratios()) is not None:
                one, two = np.split(found, 2)
                yield np.concatenate([one, -two])

    def __call__(self, mechanism: Mechanism, datum: Any, release: Any) -> None:
        """Record one call of a mechanism."""
        place = self._places.setdefault(id(mechanism), len(self._places))
        if place == len(self.sums):
            self.sums.append(Sum(mechanism))
        known = self.sums[place]
        if known.released or self.differs:
            known.add(datum, differs=self.differs)
        if ear := self._ears.get(id(mechanism)):
            ear.observe(datum, release, differs=self.differs)
        if release is None and isinstance(mechanism, CountedSums):
            release = np.zeros(datum[2].shape)  # a run sees that, whatever counts of others say
        if release is None:
            return
        if known.released:
            known.release(release)
            return
        flat = np.asarray(release).reshape(len(release), -1)
        kind = not np.issubdtype(flat.dtype, np.floating)
        self.others.append(Part("releases", kind, flat.astype(float)))
        if not kind:
            self.others.append(Part("support", False, (flat != 0).astype(float)))
