"""Records of mechanisms in audits: all releases, and sums without other users' contributions."""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from dpbandit.base import Floats
from dpbandit.privacy import FadingSum, Mechanism, PrefixSum, Tree
from dpbandit.privacy.batches import CountedSums, RestartingTrees
from dpbandit.privacy.prefix_sums import Padded
from dpbandit.shelf import open_shelves

_SUM_MECHANISMS = (PrefixSum, FadingSum, RestartingTrees)  # they release noisy sums


class Part(NamedTuple):
    """Columns of an adversary's view, all of one family, for all runs on both streams."""

    family: str
    categorical: bool
    values: Floats
    """numbers of all runs, R on stream A and R on stream B, in p columns, (2 R, p)"""


class WithoutOthers(NamedTuple):
    """Noisy release of a sum, less the contributions of all users but the differing one."""

    values: Floats
    """release less other users' contributions, (2 R, n)"""
    contribution: Floats
    """the differing user's contribution to the release, (2 R, n)"""


class Listener(Protocol):
    """Observer of the calls of one mechanism, which scores releases by their known law."""

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        """Observe one call of the mechanism; `differs` if the round is the differing user's."""
        ...

    def ratios(self) -> Floats | None:
        """Return log-ratios (2 R, p), other to own stream; None before the differing round."""
        ...


LISTENERS: list[Callable[[Mechanism, int], Listener | None]] = []
"""Functions (mechanism, runs) -> a `Listener` that scores the mechanism's releases, or None.

Optional modules add functions. With None, scores are learned from the releases themselves."""


class Sum:
    """Record of a mechanism's calls and, if it releases sums, the differing user's part of them."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism  # kept alive, so that its id stays its own
        self.released = isinstance(mechanism, _SUM_MECHANISMS)
        noise = getattr(mechanism, "_noise", None)
        self._padded = noise if isinstance(noise, Padded) else None
        self.is_tree = isinstance(noise, Tree)
        self.is_tree |= isinstance(mechanism, RestartingTrees)
        self.sensitivity = mechanism.sensitivity
        self.contribution: Floats | None = None
        """all that the differing user added, (2 R, n)"""
        self.without_others: list[WithoutOthers] = []
        self._unpadded: list[WithoutOthers] = []
        self._others: Floats | float = 0.0
        self._part: Floats = np.zeros((1, 1))

    def add(self, datum: Any, *, differs: bool) -> None:
        """Add one user's round to the contribution of the differing user or of all others."""
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
        """Record a released sum, noise included."""
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
        """Yield the released sums over tree nodes (spans of rounds) with the differing round."""
        releases = self._unpadded or self.without_others
        for t, item in enumerate(releases, start=1):
            below = t & (t - 1)  # t less its lowest bit: node t is the sum of rounds below + 1 to t
            less = releases[below - 1] if below else WithoutOthers(np.zeros(1), np.zeros((1, 1)))
            contribution = item.contribution - less.contribution
            if contribution.any():
                yield WithoutOthers(item.values - less.values, contribution)


class Witness:
    """Record of all calls of mechanisms, made while an agent learns from one user at a time."""

    def __init__(self) -> None:
        self.differs = False
        """True while the agent learns from the differing user's round"""
        self.sums: list[Sum] = []
        """records of all mechanisms, in the order of first use"""
        self.others: list[Part] = []
        """releases that are no sums"""
        self._places = dict[int, int]()
        self._listeners = dict[int, Listener]()

    def attach(self, mechanism: Mechanism, runs: int) -> None:
        """Give a mechanism the first `Listener` that `LISTENERS` make, before its first call."""
        open_shelves("auditing")
        made = (make(mechanism, runs) for make in LISTENERS)
        if (listener := next(filter(None, made), None)) is not None:
            self._listeners[id(mechanism)] = listener

    def ratios(self) -> Iterator[Floats]:
        """Yield the log-ratios (2 R, p), stream B to A, of each mechanism that has a `Listener`."""
        for listener in self._listeners.values():
            if (found := listener.ratios()) is not None:
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
        if listener := self._listeners.get(id(mechanism)):
            listener.observe(datum, release, differs=self.differs)
        if release is None and isinstance(mechanism, CountedSums):
            release = np.zeros(datum[2].shape)  # a run sees that nothing is released
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
