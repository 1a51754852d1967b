"""Exact log-ratios of mechanisms that draw by losses, for audits.

The log-ratio of each release, given what was released before::

    mechanism                        a release                    its law, given all losses
    OneShotTopK and its kind         candidates, best first       softmax, without replacement
    SegmentAboveThreshold            whether the segment ends     an integral over threshold noise
    RedrawBit                        whether to draw anew         (1 - p) e^(-h loss) to keep

Everything but the differing user's losses is known, and what her other losses had made of a total
is the total plus their difference. Laws are those that are claimed, Gumbel's for noisy maxima.
"""

from math import inf
from typing import Any

import numpy as np
from scipy.special import log_softmax

from dpbandit.auditing.bounds import NOISES
from dpbandit.auditing.users import twin
from dpbandit.auditing.witness import LISTENERS, Ear
from dpbandit.base import Floats, Ints
from dpbandit.privacy import Mechanism, OneShotTopK, SegmentAboveThreshold
from dpbandit.privacy.choices import CumulativeLosses, EpochSelection
from dpbandit.privacy.sparse_vector import RedrawBit

_MOST_CANDIDATES = 256
"""Where experts stand for points there may be thousands, and draws are not weighed."""
_LEAST = 1e-300
_ENDS = np.concatenate([np.arange(-8.0, 8.5, 0.5), [16.0, 40.0]])
_ENDS = np.unique(np.concatenate([-_ENDS, _ENDS]))
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(4)
_NODES = (_ENDS[:-1, None] + np.diff(_ENDS)[:, None] / 2 * (1 + _NODES)).ravel()
_WEIGHTS = (np.diff(_ENDS)[:, None] / 2 * _WEIGHTS).ravel()


class Draws:
    """Listens to a mechanism that draws candidates by their total losses."""

    def __init__(self, mechanism: OneShotTopK, runs: int) -> None:
        self._mechanism, self._differed = mechanism, False
        self._sums, self._gap = np.zeros((2, runs, mechanism.source.n))  # of an epoch
        self._drawn, self._found = np.zeros(runs, dtype=int), np.zeros(runs)

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        losses, chosen = self._mechanism.query(*datum), release.reshape(len(release), -1)
        self._sums += losses
        if differs:
            self._gap, self._differed = twin(losses) - losses, True
        drawing = np.flatnonzero(chosen[:, 0] >= 0)
        if self._differed and len(drawing):
            sums, scale = self._sums[drawing], self._mechanism.scale[self._drawn[drawing], None]
            laws = [
                log_order(self._mechanism.scores(S, drawing, *datum[2:]) / scale, chosen[drawing])
                for S in (sums + self._gap[drawing], sums)
            ]
            self._found[drawing] += np.subtract(*laws)
        self._drawn[drawing] += 1
        if isinstance(self._mechanism, EpochSelection):  # a new epoch is without her
            ends = datum[3]
            self._sums[ends], self._gap[ends], self._drawn[ends] = 0.0, 0.0, 0

    def ratios(self) -> Floats | None:
        return self._found[:, None] if self._differed else None


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
        self._here, self._there = np.ones((2, runs, len(self._r)))
        self._sum, self._gap, self._found = np.zeros((3, runs))
        self._ended, self._differed = np.ones(runs, dtype=bool), False

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        loss, begins = self._mechanism.query(*datum), self._ended.copy()
        if len(datum) > 2:
            begins |= datum[2]
        self._found += np.where(begins & ~self._ended, self._lasted(), 0.0)
        self._here[begins], self._there[begins] = 1.0, 1.0
        self._sum[begins], self._gap[begins] = 0.0, 0.0
        self._sum += loss
        if differs:
            self._gap, self._differed = twin(loss) - loss, True
        z = (datum[1] - self._sum)[:, None] + self._r
        here, there = z / self._scale, (z - self._gap[:, None]) / self._scale
        fires = self._ratio(
            self._there * self._law.above(there), self._here * self._law.above(here)
        )
        self._found += np.where(release, fires, 0.0)
        self._here, self._there = (
            self._here * self._law.cdf(here),
            self._there * self._law.cdf(there),
        )
        self._ended = release

    def ratios(self) -> Floats | None:
        found = self._found + np.where(self._ended, 0.0, self._lasted())
        return found[:, None] if self._differed else None

    def _lasted(self) -> Floats:
        """Of a segment that has not fired."""
        return self._ratio(self._there, self._here)

    def _ratio(self, there: Floats, here: Floats) -> Floats:
        """log of both integrals over r, (2 R, nodes) -> (2 R,)."""
        integrals = np.maximum([there @ self._weights, here @ self._weights], _LEAST)
        return np.subtract(*np.log(integrals))


class Bits:
    """Listens to bits that say whether to draw anew: the differing user decides one of them."""

    def __init__(self, mechanism: RedrawBit) -> None:
        self._mechanism = mechanism
        self._found: Floats | None = None

    def observe(self, datum: Any, release: Any, *, differs: bool) -> None:
        if not differs:
            return
        loss, active = self._mechanism.query(*datum), datum[1]
        keeps = self._mechanism.keeps(np.stack([twin(loss), loss]))
        with np.errstate(divide="ignore"):
            there, here = np.log(np.where(release, 1 - keeps, keeps))
        self._found = np.where(active, there - here, 0.0)[:, None]

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


def listener(mechanism: Mechanism, runs: int) -> Ear | None:
    """An ear for a mechanism that draws by losses, with noise."""
    if isinstance(mechanism, RedrawBit) and mechanism.rate < inf:
        return Bits(mechanism)
    if isinstance(mechanism, SegmentAboveThreshold) and min(mechanism.scales) > 0:
        return Segments(mechanism, runs)
    if isinstance(mechanism, OneShotTopK) and (mechanism.scale > 0).all():
        source = mechanism.source
        if isinstance(source, CumulativeLosses) and source.n <= _MOST_CANDIDATES:
            return Draws(mechanism, runs)
    return None


LISTENERS.append(listener)
