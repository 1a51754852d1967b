"""Privacy loss distributions on grids, rounded up, and their composition.

For neighbours with laws P and Q of a release o, the loss is log P(o) / Q(o) where o comes from P.
Its law says all about privacy: with L for the loss::

    delta(epsilon) = sup P(S) - e^epsilon Q(S) = P(L = inf) + E (1 - e^(epsilon - L))+ .

**On a grid.** A loss between two grid points is split between them such that its mass and the mean
of e^-L stay: delta is then a straight line in e^epsilon from grid point to grid point, and as it
is convex, no smaller anywhere (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots",
PETS 2022). `connected` does so with a curve, `split` with atoms. Rounding errors are added to the
masses: a mass is never too small for its curve.

**Composed.** Delta of a sum has a small relative error at any size.
The sum L of n independent losses is convolved by FFT, whose errors are about 1e-16 of the LARGEST
numbers for every mechanism: at n = 3e5 more than a delta of 1e-12. So what is convolved are the
losses tilted by e^(t L), with the t >= 0 that puts their mean where delta is asked for (Esscher's
transform; Alghamdi, Gomez, Asoodeh, Calmon, Kosut and Sankar, "The saddle-point method in
differential privacy", ICML 2023)::

    delta(epsilon) = M e^(-t epsilon) E_t[e^(-t (L - epsilon)) (1 - e^(epsilon - L))+],
    M = E e^(t L).

**Never below the truth.** Any t is right. The expectation has a factor in [0, 1], so that it is off
by at most what the convolved law is off by in l_1, which `_SLACK` bounds by Parseval: frequencies
are off by some units of rounding for each mechanism, relatively. What lies above the window, less
than e^-39 by Chernoff's bound, is added; what lies below is folded into the window, and only adds.
A window of more than `WINDOW` cells is made coarser, pessimistically.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, floor, inf, log, log1p, log2, pi, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from dpbandit.base import Floats, Ints, positive
from dpbandit.base.arrays import one_thread

CELLS = 2**16
"""On one side of 0; where a mechanism needs more, its grid is made coarser by powers of 2."""
_UNIT = 2.0**-52
_LONG = 2**62
"""Beyond, no integer of an array."""


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """`count` independent losses: (first + i) step has masses[i], and infinity the rest."""

    step: float
    first: int
    masses: Floats
    infinite: float = 0.0
    count: int = 1

    def coarser(self, factor: int) -> "PrivacyLoss":
        """On the grid of `factor` steps, up; the same for 1."""
        if factor == 1:
            return self
        place = self.first + np.arange(len(self.masses))
        index, beyond = np.divmod(place, factor if factor < _LONG else float(factor))
        step = factor * self.step
        share = np.expm1(-beyond * self.step) / expm1(-step)
        index = index.astype(np.int64)
        return _placed(index, share, self.masses, step, self.infinite, self.count)


def affordable(step: float, reach: float) -> float:
    """`step`, or as many times twice as much as `CELLS` of it need to reach so far."""
    positive("step", step)
    while reach / step > CELLS:
        step *= 2
    return step


def split(losses: Floats, masses: Floats, *, step: float, count: int = 1) -> PrivacyLoss:
    """The loss that is losses[i] with probability masses[i]."""
    step = affordable(step, float(np.abs(losses).max()))
    index = np.floor(losses / step)
    share = np.expm1(-np.maximum(losses - index * step, 0.0)) / expm1(-step)
    return _placed(index.astype(np.int64), np.minimum(share, 1.0), masses, step, 0.0, count)


def connected(
    curve: Callable[[Floats], Floats],
    *,
    reach: float,
    step: float,
    count: int = 1,
    rounding: float = 8 * _UNIT,
) -> PrivacyLoss:
    """The symmetric loss whose delta is curve(epsilon) at the grid points from 0 to `reach`.

    Symmetric is a pair of laws that may be exchanged: then the mass of -l is e^-l times that of l.
    All of `curve` beyond `reach` becomes an infinite loss. `rounding` bounds what the curve is off
    by, relatively, beside the rounding of epsilon.
    """
    step = affordable(step, reach)
    cells = ceil(reach / step + 1e-9)  # where it just reaches the last grid point, one more
    off = rounding + 2 * _UNIT * cells
    deltas = np.minimum(curve(step * np.arange(cells + 1)) * (1 + off), 1.0)
    shrink = exp(-step)
    slopes = -np.diff(deltas) / -expm1(-step)
    upper = slopes - shrink * np.append(slopes[1:], 0.0) + 4 * _UNIT * np.abs(slopes)
    upper = np.maximum(upper, 0.0)
    middle = max(0.0, 1 - deltas[1] - (1 + shrink) * slopes[0]) + 8 * _UNIT
    lower = upper * np.exp(-step * np.arange(1, cells + 1))
    masses = np.concatenate([lower[::-1], [middle], upper])
    return PrivacyLoss(step, -cells, masses, float(deltas[-1]), count)


def constant(loss: float, *, step: float, count: int = 1) -> PrivacyLoss:
    """A loss that is certain, infinity allowed."""
    if loss == np.inf:
        return PrivacyLoss(step, 0, np.ones(1), 1.0, count)
    return PrivacyLoss(step, ceil(loss / step), np.ones(1), 0.0, count)


def _placed(
    index: Ints, share: Floats, masses: Floats, step: float, infinite: float, count: int
) -> PrivacyLoss:
    """`share` of each mass at index + 1, the rest at index."""
    first = int(index.min())
    place, size = index - first, int(index.max()) - first + 2
    moved = np.zeros(size)
    moved += np.bincount(place, masses * (1 - share), minlength=size)
    moved += np.bincount(place + 1, masses * share, minlength=size)
    return PrivacyLoss(step, first, moved, infinite, count)


Complex: TypeAlias = npt.NDArray[np.complex128]
WINDOW = 2**18
"""The most cells of a convolution."""
_TAIL, _FAINT = 39.0, 50.0
"""-log of what is left out on a side of the window, and of a frequency that is taken for 0."""
_SLACK = 2e-15
"""Units of rounding for one mechanism and one frequency, times log2 of the window."""
_RUNGS, _FINEST = 4, 60 * 4
"""t is a power of 2^(1/4), from 2^-60 to 2^60, or 0."""
_RUNG = 2.0 ** (-1 / _RUNGS)
_STEEPEST = 700.0
"""Times step: a larger t leaves one cell."""
_CLOSE, _STEPS = 1e-7, 60
"""How near log delta comes in a search for epsilon, and when it ends."""
_WIDTHS = 2.0 ** np.arange(1, -7, -1)
"""Tried for Chernoff's bound, in units of a normal law's; tails made by sampling ask for less."""
_CACHED_CELLS = 2 * WINDOW
"""Cells of the convolutions that are remembered."""


class _Moments(NamedTuple):
    """Of the sum, tilted."""

    log_mass: float
    """log E e^(t L)"""
    mean: float


class _Tilted(NamedTuple):
    """A tilted law on a window."""

    losses: Floats
    masses: Floats
    log_mass: float
    """log E e^(t L), rounded up"""
    slack: float
    """largest error of a sum of masses with factors in [0, 1]"""


class Composition:
    """The sum of independent privacy losses, each on its grid; steps are powers of 2 apart.

    >>> from dpbandit.privacy.loss_distributions import split
    >>> coin = split(np.array([-0.1, 0.1]), np.array([0.475, 0.525]), step=0.1, count=100)
    >>> round(Composition([coin]).delta(2.0), 4)
    0.0202
    """

    def __init__(self, parts: Sequence[PrivacyLoss]) -> None:
        self.step = max(part.step for part in parts)
        self._parts = [part.coarser(round(self.step / part.step)) for part in parts]
        self._counts = np.array([part.count for part in self._parts], dtype=float)
        sizes = [len(part.masses) for part in self._parts]
        self._starts = np.cumsum([0, *sizes[:-1]])
        self._whose = np.repeat(np.arange(len(sizes)), sizes)
        places = [part.first + np.arange(len(part.masses)) for part in self._parts]
        self._losses: Floats = self.step * np.concatenate(places)
        with np.errstate(divide="ignore"):
            self._logs: Floats = np.log(np.concatenate([part.masses for part in self._parts]))
        self._rounded = 1 + np.abs(np.maximum(self._logs, -1e3))  # units of rounding of a mass
        self._laws: dict[float, _Tilted] = {}
        self._known: dict[float, _Moments] = {}

    @cached_property
    def infinite(self) -> float:
        """The probability that one of the losses is infinite."""
        if any(part.infinite >= 1 for part in self._parts):
            return 1.0
        return -expm1(sum(part.count * log1p(-part.infinite) for part in self._parts))

    @cached_property
    def largest(self) -> float:
        """The largest finite loss."""
        return self.step * sum(p.count * (p.first + len(p.masses) - 1) for p in self._parts)

    def delta(self, epsilon: float) -> float:
        """An upper bound of delta at `epsilon`, as tight as the grid."""
        with one_thread():
            return self._at(epsilon)[0]

    def least_epsilon(self, delta: float) -> float:
        """The least epsilon >= 0 at `delta`, rounded up; infinity where there is none."""
        if self.infinite > delta or delta <= 0:
            return inf
        with one_thread():
            return self._searched(delta)

    def _searched(self, delta: float) -> float:
        low, high, goal = -1.0, max(self.largest, 0.0), log(delta)  # 0 has not been tried
        # from the end of Chernoff's bound, M e^(-t epsilon), by Newton's method for log delta
        t = self._tilt(lambda t, m: t * m.mean - m.log_mass >= -goal)
        ends = [(self._moments(x).log_mass - goal) / x for x in (t, t * _RUNG) if x > 0]
        epsilon = min(ends, default=0.0)  # t is 0 where delta is more than all finite losses weigh
        for _ in range(_STEPS):
            if not max(low, 0.0) < epsilon < high:
                epsilon = (low + high) / 2 if low >= 0 else 0.0
            found, fall = self._at(epsilon)
            low, high = (low, epsilon) if found <= delta else (epsilon, high)
            if high == 0:
                break
            away = log(found) - goal if found > 0 else -inf
            if -_CLOSE <= away <= 0 or high - low <= 1e-12 * high:
                break
            epsilon += (away + _CLOSE / 2) / fall if fall > 0 and away > -inf else inf
        return high

    def _at(self, epsilon: float) -> tuple[float, float]:
        """delta at `epsilon`, and how fast its logarithm falls."""
        if epsilon >= self.largest:
            return self.infinite, 0.0
        above = self._tilt(lambda t, m: m.mean >= epsilon)
        below = above * _RUNG  # of a law of two modes the mean may jump
        t = min(above, below, key=lambda t: self._moments(t).log_mass - t * epsilon)
        law = self._law(t)
        first = int(np.searchsorted(law.losses, epsilon, side="right"))
        away = law.losses[first:] - epsilon
        tilted = law.masses[first:] * np.exp(-t * away)
        share = max(float(np.dot(tilted, -np.expm1(-away))), 0.0) + law.slack
        exponent = law.log_mass - t * epsilon * (1 - 1e-15)
        delta = exp(min(exponent + log(share), 0.0)) + self.infinite
        slope = float(np.dot(tilted, np.exp(-away))) + t * law.slack
        falling = exp(min(exponent, 700.0)) * slope
        return min(1.0, delta), falling / delta if delta else 0.0

    def _tilt(self, reached: Callable[[float, _Moments], bool]) -> float:
        """The t of the ladder next to where it is `reached`; 0 where that is enough."""
        if reached(0.0, self._moments(0.0)):
            return 0.0
        low, high = -_FINEST, _FINEST
        while high - low > 1:
            middle = (low + high) // 2
            t = 2.0 ** ((middle + 0.5) / _RUNGS)  # half way to the next
            enough = t * self.step > _STEEPEST or reached(t, self._moments(t))
            low, high = (low, middle) if enough else (middle, high)
        return float(2.0 ** (high / _RUNGS))

    def _sums(self, values: Floats) -> Floats:
        """Over the cells of every part."""
        return np.add.reduceat(values, self._starts)

    def _each(self, values: Floats) -> Floats:
        """One for every part -> for all of its cells."""
        return values[self._whose] if len(values) > 1 else values

    def _tilted(self, t: float) -> tuple[Floats, Floats, Floats]:
        """Masses of every part, up to a factor; their sums; the logs of what these were before."""
        exponents = t * self._losses
        exponents += self._logs
        peaks = np.maximum.reduceat(exponents, self._starts)
        exponents -= self._each(peaks)
        weights = np.exp(exponents, out=exponents)
        totals = self._sums(weights)
        return weights, totals, peaks + np.log(totals)

    def _moments(self, t: float) -> _Moments:
        if t not in self._known:
            weights, totals, logs = self._tilted(t)
            weights *= self._losses
            means = self._sums(weights) / totals
            self._known[t] = _Moments(self._added(logs), self._added(means))
        return self._known[t]

    def _added(self, values: Floats) -> float:
        """Of one mechanism of every part -> of all."""
        return float(np.dot(self._counts, values))

    def _law(self, t: float) -> _Tilted:
        if t not in self._laws:
            while sum(len(law.masses) for law in self._laws.values()) > _CACHED_CELLS:
                del self._laws[next(iter(self._laws))]
            self._laws[t] = self._convolved(t)
        return self._laws[t]

    def _window(self, t: float, log_mass: float, variance: float) -> tuple[int, int]:
        """The first cell and the number of cells that hold all of the tilted law but its tails."""
        low = self.step * sum(part.count * part.first for part in self._parts)
        unit = sqrt(2 * _TAIL / max(variance, self.step**2))
        high = min(self.largest, self._reach(t, log_mass, unit))
        low = max(low, -self._reach(t, log_mass, -unit))
        first = floor(low / self.step)
        return first, ceil(high / self.step) - first + 1

    def _reach(self, t: float, log_mass: float, unit: float) -> float:
        """Chernoff's bound of the tilted law, of its negative if `unit` < 0; unimodal in s."""
        least = inf
        for width in _WIDTHS:
            s = width * unit
            bound = (self._added(self._tilted(t + s)[2]) - log_mass + _TAIL) / abs(s)
            if bound >= least:
                break
            least = bound
        return least

    def _convolved(self, t: float) -> _Tilted:
        weights, totals, logs = self._tilted(t)
        weights /= self._each(totals)
        log_mass, sizes = self._added(logs), np.abs(t * self._losses) + self._rounded
        means = self._sums(weights * self._losses)
        variances = self._sums(weights * np.square(self._losses - self._each(means)))
        first, wanted = self._window(t, log_mass, self._added(variances))
        if wanted > WINDOW:
            factor = 2 ** ceil(log2(wanted / WINDOW))
            return Composition([part.coarser(factor) for part in self._parts])._convolved(t)
        size = scipy.fft.next_fast_len(wanted, real=True)
        frequencies, logs = np.arange(size // 2 + 1), np.zeros(size // 2 + 1, dtype=complex)
        pieces = np.split(weights, self._starts[1:])
        offset = -first
        for part, piece in sorted(zip(self._parts, pieces, strict=True), key=_spread, reverse=True):
            middle = _middle(piece)
            places = (np.arange(len(piece)) - middle) % size
            offset += part.count * (part.first + middle)
            transform = _transformed(places, piece, frequencies, size)
            logs += part.count * np.log(transform + 1e-300)
            audible = logs.real > -_FAINT  # most of them are not, soon
            frequencies, logs = frequencies[audible], logs[audible]
        spectrum = np.zeros(size // 2 + 1, dtype=complex)
        turns = frequencies * (offset % size) % size
        spectrum[frequencies] = np.exp(logs - 2j * pi / size * turns)
        masses = scipy.fft.irfft(spectrum, size)
        count = float(self._counts.sum())
        off = _SLACK * sqrt(size) * (1 + count * float(np.linalg.norm(masses)))
        return _Tilted(
            self.step * (first + np.arange(size)),
            masses,
            log_mass + 1e-15 * self._added(self._sums(weights * sizes)),
            off + 2 * exp(-_TAIL) + size * exp(-_FAINT),
        )


def _middle(weights: Floats) -> int:
    """The mean's cell."""
    return round(float(np.dot(np.arange(len(weights)), weights)))


def _spread(pair: tuple[PrivacyLoss, Floats]) -> float:
    """What one part adds to the variance, in cells."""
    part, weights = pair
    away = np.arange(len(weights)) - _middle(weights)
    return part.count * float(np.dot(np.square(away), weights))


def _transformed(places: Ints, masses: Floats, frequencies: Ints, size: int) -> Complex:
    """The Fourier transform of masses at `places` of a circle of `size`, where it is wanted."""
    if len(places) * len(frequencies) > size:
        whole: Complex = scipy.fft.rfft(np.bincount(places, masses, minlength=size))[frequencies]
        return whole
    turns = np.exp(-2j * pi / size * (places[:, None] * frequencies % size))
    return masses @ turns
