"""What an auditor hears at the mechanism: releases, and what is left of sums without other users.

What draws by losses show: the log-ratio of each, given what was released before::

    mechanism                        a release                    its law, given all losses
    OneShotTopK and its kind         candidates, best first       softmax, without replacement
    SegmentAboveThreshold            whether the segment ends     an integral over threshold noise
    RedrawBit                        whether to draw anew         (1 - p) e^(-h loss) to keep

Everything but the differing user's losses is known, and what her other losses had made of a total
is the total plus their difference. Laws are those that are claimed, Gumbel's for noisy maxima.

What private hard thresholding shows on its way: the coordinates that it picks, and their values.

Its proof counts every iterate as released, so that an auditor may look at them all, though an agent
is handed the last one only. Given the iterate before and everybody else's data, v of either world
is known, and so are the log-ratios of what came of it::

    picks    the set S of the s largest |v_i| + Gumbel noise of scale c: coordinate i arrives after
             an exponential time of rate w_i = e^(|v_i| / c), and S first, with probability
             int e^-t prod_{i in S} (1 - e^(-t w_i / W)) dt,  W the sum of w outside S
    values   Gaussian or Laplace noise on v_i, i in S

The laws are those that the mechanism's spend pays for; for Laplace picks, whose law has no such
form, a Gumbel law of the same epsilon is a score as good as any that is no ratio.

users.
"""

from collections.abc import Iterator
from math import inf
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.special import log_softmax, logsumexp

from dpbandit.auditing.bounds import NOISES
from dpbandit.auditing.users import twin
from dpbandit.base import Floats, Ints
from dpbandit.privacy import (
    FadingSum,
    Mechanism,
    NoisyHardThresholding,
    OneShotTopK,
    PrefixSum,
    PureSpend,
    SegmentAboveThreshold,
    Tree,
)
from dpbandit.privacy.batches import CountedSums, RestartingTrees
from dpbandit.privacy.choices import CumulativeLosses, EpochSelection
from dpbandit.privacy.peeling import Peeled
from dpbandit.privacy.prefix_sums import Padded
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.sparse_vector import RedrawBit
from dpbandit.privacy.spends import Spend

_LEAST = 1e-300
_ENDS = np.concatenate([np.arange(-8.0, 8.5, 0.5), [16.0, 40.0]])
_ENDS = np.unique(np.concatenate([-_ENDS, _ENDS]))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_NODES = (_ENDS[:-1, None] + np.diff(_ENDS)[:, None] / 2 * (1 + _NODES)).ravel()
_WEIGHTS = (np.diff(_ENDS)[:, None] / 2 * _WEIGHTS).ravel()


class Draws:
    """Listens to a mechanism that draws candidates by their total losses."""

    def __init__(self, mechanism: OneShotTopK, runs: int) -> None:
        self._mechanism, self._met = mechanism, False
        self._sums, self._gap = np.zeros((2, runs, mechanism.source.n))  # of an epoch
        self._drawn, self._found = np.zeros(runs, dtype=int), np.zeros(runs)

    def hear(self, datum: Any, release: Any, *, hers: bool) -> None:
        losses, chosen = self._mechanism.query(*datum), release.reshape(len(release), -1)
        self._sums += losses
        if hers:
            self._gap, self._met = twin(losses) - losses, True
        due = np.flatnonzero(chosen[:, 0] >= 0)
        if self._met and len(due):
            sums, scale = self._sums[due], self._mechanism.scale[self._drawn[due], None]
            laws = [
                log_order(self._mechanism.scores(S, due, *datum[2:]) / scale, chosen[due])
                for S in (sums + self._gap[due], sums)
            ]
            self._found[due] += np.subtract(*laws)
        self._drawn[due] += 1
        if isinstance(self._mechanism, EpochSelection):  # a new epoch is without her
            ends = datum[3]
            self._sums[ends], self._gap[ends], self._drawn[ends] = 0.0, 0.0, 0

    def ratios(self) -> Floats | None:
        return self._found[:, None] if self._met else None


class Segments:
    """Listens to a sparse vector on segments: how long the differing user's segment lasts.

    Given the threshold noise r, tests are independent: a segment that fires at its k-th test has
    probability int p(r) prod_{i < k} F(z_i) (1 - F(z_k)) dr, z_i = threshold + r - sum.
    """

    def __init__(self, mechanism: SegmentAboveThreshold, runs: int) -> None:
        self._mechanism = mechanism
        r, self._scale = mechanism.scales
        self._law = NOISES[mechanism.noise]
        self._r, self._weights = r * _NODES, _WEIGHTS * self._law.pdf(_NODES)
        self._own, self._other = np.ones((2, runs, len(self._r)))
        self._sum, self._gap, self._found = np.zeros((3, runs))
        self._ended, self._met = np.ones(runs, dtype=bool), False

    def hear(self, datum: Any, release: Any, *, hers: bool) -> None:
        loss, begins = self._mechanism.query(*datum), self._ended.copy()
        if len(datum) > 2:
            begins |= datum[2]
        self._found += np.where(begins & ~self._ended, self._lasted(), 0.0)
        self._own[begins], self._other[begins] = 1.0, 1.0
        self._sum[begins], self._gap[begins] = 0.0, 0.0
        self._sum += loss
        if hers:
            self._gap, self._met = twin(loss) - loss, True
        z = (datum[1] - self._sum)[:, None] + self._r
        here, there = z / self._scale, (z - self._gap[:, None]) / self._scale
        fires = self._ratio(self._other * self._law.above(there), self._own * self._law.above(here))
        self._found += np.where(release, fires, 0.0)
        self._own, self._other = self._own * self._law.cdf(here), self._other * self._law.cdf(there)
        self._ended = release

    def ratios(self) -> Floats | None:
        found = self._found + np.where(self._ended, 0.0, self._lasted())
        return found[:, None] if self._met else None

    def _lasted(self) -> Floats:
        """Of a segment that has not fired."""
        return self._ratio(self._other, self._own)

    def _ratio(self, other: Floats, own: Floats) -> Floats:
        """log of both integrals over r, (2 R, nodes) -> (2 R,)."""
        integrals = np.maximum([other @ self._weights, own @ self._weights], _LEAST)
        return np.subtract(*np.log(integrals))


class Bits:
    """Listens to bits that say whether to draw anew: the differing user decides one of them."""

    def __init__(self, mechanism: RedrawBit) -> None:
        self._mechanism = mechanism
        self._found: Floats | None = None

    def hear(self, datum: Any, release: Any, *, hers: bool) -> None:
        if not hers:
            return
        loss, active = self._mechanism.query(*datum), datum[1]
        keeps = self._mechanism.keeps(np.stack([twin(loss), loss]))
        with np.errstate(divide="ignore"):
            other, own = np.log(np.where(release, 1 - keeps, keeps))
        self._found = np.where(active, other - own, 0.0)[:, None]

    def ratios(self) -> Floats | None:
        return self._found


def log_order(scores: Floats, chosen: Ints) -> Floats:
    """log P that Gumbel noise of scale 1 puts the `chosen` (R, k) first, in this order; -1: none.

    >>> log_order(np.log([[1.0, 2.0, 3.0]]), np.array([[2, 0]])).round(6) == np.log(1 / 6).round(6)
    array([ True])
    """
    left, found = scores.copy(), np.zeros(len(scores))
    for pick in chosen.T:
        there = pick >= 0
        of_all = log_softmax(left[there], axis=1)
        found[there] += of_all[np.arange(len(of_all)), pick[there]]
        left[there, pick[there]] = -np.inf
    return found


_STEP = 0.25
_TIMES = np.exp(np.arange(-20.0, 4.0, _STEP))
"""The trapezoid rule for log t: exact to 1e-8, as what is integrated is analytic and falls fast."""
_TIME_WEIGHTS = _STEP * _TIMES * np.exp(-_TIMES)


class Peelings:
    """Listens to the peelings of a mechanism, and weighs those of the differing user's episode."""

    def __init__(self, mechanism: NoisyHardThresholding) -> None:
        self._mechanism, mechanism.on_peeled = mechanism, self._hear_one
        self._now: list[Peeled] = []
        self._hers: Any = None
        self._found: Floats | None = None

    def _hear_one(self, peeled: Peeled) -> None:
        self._now.append(peeled)

    def hear(self, datum: Any, release: Any, *, hers: bool) -> None:
        if hers:
            self._hers = datum
        if release is not None:
            if self._hers is not None and self._found is None:
                self._found = np.sum([self._weighed(peeled) for peeled in self._now], axis=0)
            self._now = []

    def ratios(self) -> Floats | None:
        return self._found

    def _weighed(self, heard: Peeled) -> Floats:
        """Of one peeling, (2 R, 2)."""
        chosen, released = self._mechanism.spend.parts
        moved = self._mechanism.term(heard.beta, *map(twin, self._hers))
        moved = moved - self._mechanism.term(heard.beta, *self._hers)
        own, kept = heard.v, heard.kept != 0
        other = own + heard.move / self._mechanism.sensitivity * moved.reshape(own.shape)
        scale = 2 / _dearest(chosen) * heard.move
        picks = [log_chosen(abs(v) / scale, kept).sum(axis=-1) for v in (other, own)]
        misses = [np.where(kept, heard.kept - v, 0.0) for v in (own, other)]
        if isinstance(released, LaplaceSpend):
            sizes = [abs(miss) * released.epsilon / heard.move for miss in misses]
        else:  # one peeling's share of mu
            mu = (released.mu or 0.0) / len(self._now) ** 0.5
            sizes = [(miss * mu / heard.move_2) ** 2 / 2 for miss in misses]
        return np.stack([np.subtract(*picks), np.subtract(*sizes).sum(axis=(-2, -1))], axis=-1)


def _dearest(spend: Spend) -> float:
    """epsilon of one pick."""
    return spend.groups[-1][0] if isinstance(spend, PureSpend) and spend.groups else 0.0


def log_chosen(scores: Floats, chosen: Any) -> Floats:
    """log P that Gumbel noise of scale 1 puts the `chosen` (..., D) first, in whatever order.

    As many in every row.

    >>> scores, chosen = np.log([1.0, 2.0, 3.0]), np.array([True, False, False])
    >>> np.exp(log_chosen(scores, chosen)).round(6).item()
    0.166667
    """
    rest = logsumexp(np.where(chosen, -np.inf, scores), axis=-1, keepdims=True)
    taken = np.argsort(~chosen, axis=-1, kind="stable")[..., : chosen.sum(axis=-1).max()]
    with np.errstate(over="ignore", divide="ignore"):
        rate = np.exp(np.take_along_axis(scores, taken, axis=-1) - rest)  # w_i / W, inf if W = 0
        first = -np.expm1(-rate[..., None] * _TIMES)  # (..., s, times)
        found: Floats = np.log(first.prod(axis=-2) @ _TIME_WEIGHTS)
    return np.where(np.isneginf(rest[..., 0]), 0.0, found)


_SUMS = (PrefixSum, FadingSum, RestartingTrees)
_MOST_CANDIDATES = 256
"""Where experts stand for points there may be thousands, and draws are not weighed."""


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
    hers: Floats
    """the differing user's part of it, by now, (2 R, n)"""


class Ear(Protocol):
    """Listens to a mechanism whose law is known."""

    def hear(self, datum: Any, release: Any, *, hers: bool) -> None:
        """One call of the mechanism; `hers`: it is fed the differing user's round."""
        ...

    def ratios(self) -> Floats | None:
        """log P_other - log P_own of what was released, (2 R, p), if she moved any of it."""
        ...


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
        self.hers: Floats | None = None
        """what the differing user added, (2 R, n)"""
        self.left: list[Left] = []
        self._unpadded: list[Left] = []
        self._others: Floats | float = 0.0
        self._part: Floats = np.zeros((1, 1))

    def add(self, datum: Any, *, hers: bool) -> None:
        """One user's round."""
        query = self._mechanism.entered(*datum)
        flat = query.reshape(len(query), -1)
        if isinstance(self._mechanism, RestartingTrees):
            self._fade(~datum[2][:, None])
        if hers:
            self.hers = flat if self.hers is None else self.hers + flat
            self._part = self._part + flat
        else:
            self._others = self._others + flat

    def release(self, release: Floats) -> None:
        """Take the released sum, noise included."""
        units = getattr(getattr(self._mechanism, "_statistic", None), "units", 1.0)
        self.left.append(self._without_others(release / units))
        if self._padded is not None:
            self._unpadded.append(self._without_others(release / units - self._padded.padding))
        self._fade(getattr(self._mechanism, "fade", 1.0))

    def _without_others(self, release: Floats) -> Left:
        flat = release.reshape(len(release), -1)
        return Left(flat - self._others, np.broadcast_to(self._part, flat.shape))

    def _fade(self, factor: Any) -> None:
        self._others, self._part = self._others * factor, self._part * factor

    def nodes(self) -> Iterator[Left]:
        """The nodes of a tree that she is in: release t less release t - lowbit(t)."""
        releases = self._unpadded or self.left
        for t, left in enumerate(releases, start=1):
            below = t & (t - 1)
            less = releases[below - 1] if below else Left(np.zeros(1), np.zeros((1, 1)))
            hers = left.hers - less.hers
            if hers.any():
                yield Left(left.values - less.values, hers)


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

    def meet(self, mechanism: Mechanism, runs: int) -> None:
        """Listen closely, where that is known how; before the first call."""
        if (ear := _ear_for(mechanism, runs)) is not None:
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
            known.add(datum, hers=self.differs)
        if ear := self._ears.get(id(mechanism)):
            ear.hear(datum, release, hers=self.differs)
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


def _ear_for(mechanism: Mechanism, runs: int) -> Ear | None:
    """None: its releases are scored as they are, or it has no noise."""
    if isinstance(mechanism, NoisyHardThresholding):
        return Peelings(mechanism) if 0 < mechanism.spend.parts[0].pure < inf else None
    if isinstance(mechanism, RedrawBit) and mechanism.rate < inf:
        return Bits(mechanism)
    if isinstance(mechanism, SegmentAboveThreshold) and min(mechanism.scales) > 0:
        return Segments(mechanism, runs)
    if isinstance(mechanism, OneShotTopK) and (mechanism.scale > 0).all():
        source = mechanism.source
        if isinstance(source, CumulativeLosses) and source.n <= _MOST_CANDIDATES:
            return Draws(mechanism, runs)
    return None
