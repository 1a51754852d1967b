"""Many privacy losses added up: their delta, with a small relative error at any size.

The sum L of n independent losses is convolved by FFT, whose errors are about 1e-16 of the LARGEST
numbers for every mechanism: at n = 3e5 more than a delta of 1e-12. So what is convolved are the
losses tilted by e^(t L), with the t >= 0 that puts their mean where delta is asked for (Esscher's
transform; Alghamdi, Gomez, Asoodeh, Calmon, Kosut and Sankar, "The saddle-point method in
differential privacy", ICML 2023):

    delta(epsilon) = M e^(-t epsilon) E_t[e^(-t (L - epsilon)) (1 - e^(epsilon - L))+],
    M = E e^(t L).

**Never below the truth.** Any t is right. The expectation has a factor in [0, 1], so that it is off
by at most what the convolved law is off by in l_1, which `_SLACK` bounds by Parseval: frequencies
are off by some units of rounding for each mechanism, relatively. What lies above the window, less
than e^-39 by Chernoff's bound, is added; what lies below is folded into the window, and only adds.
A window of more than `WINDOW` cells is made coarser, pessimistically.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from math import ceil, exp, expm1, floor, inf, log, log1p, log2, pi, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
from scipy.fft import irfft, next_fast_len, rfft

from dpbandit.base.arrays import Floats, Ints
from dpbandit.privacy.accounting.privacy_loss import PrivacyLoss

Complex: TypeAlias = npt.NDArray[np.complex128]
WINDOW = 2**18
"""Cells of a convolution."""
_TAIL, _FAINT = 39.0, 50.0
"""-log of what is left out on a side of the window, and of a frequency that is taken for 0."""
_SLACK = 2e-15
"""Units of rounding for one mechanism and one frequency, times log2 of the window."""
_RUNGS, _FINEST = 4, 60 * 4
"""t is a power of 2^(1/4), from 2^-60 to 2^60, or 0."""
_STEEPEST = 700.0
"""Times step: a larger t leaves one cell."""
_CLOSE, _STEPS = 1e-7, 60
"""How near log delta comes in a search for epsilon, and when it ends."""
_WIDTHS = 2.0 ** np.arange(-6, 2)
"""Tried for Chernoff's bound, in units of a normal law's; tails made by sampling ask for less."""
_KEPT = 4 * WINDOW
"""Cells of the convolutions that are remembered."""


class _Moments(NamedTuple):
    """Of the sum, tilted."""

    log_mass: float
    """log E e^(t L)"""
    mean: float
    variance: float
    error: float
    """what rounding may have done to `log_mass`"""


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

    >>> from dpbandit.privacy.accounting.privacy_loss import split
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
        self._kept: dict[float, _Tilted] = {}
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
        return self._at(epsilon)[0]

    def least_epsilon(self, delta: float) -> float:
        """The least epsilon >= 0 at `delta`, rounded up; infinity where there is none."""
        if self.infinite > delta or delta <= 0:
            return inf
        if self.delta(0.0) <= delta:
            return 0.0
        low, high, goal = 0.0, self.largest, log(delta)
        # from the end of Chernoff's bound, M e^(-t epsilon), by Newton's method for log delta
        t = self._tilt(lambda t, m: t * m.mean - m.log_mass >= -goal)
        epsilon = self._moments(t).mean
        for _ in range(_STEPS):
            if not low < epsilon < high:
                epsilon = (low + high) / 2
            found, fall = self._at(epsilon)
            low, high = (low, epsilon) if found <= delta else (epsilon, high)
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
        below = above * 2.0 ** (-1 / _RUNGS)  # of a law of two modes the mean may jump
        t = min(above, below, key=lambda t: self._moments(t).log_mass - t * epsilon)
        law = self._law(t)
        first = int(np.searchsorted(law.losses, epsilon, side="right"))
        away = law.losses[first:] - epsilon
        tilted = law.masses[first:] * np.exp(-t * away)
        share = max(float(np.dot(tilted, -np.expm1(-away))), 0.0) + law.slack
        exponent = law.log_mass - t * epsilon * (1 - 1e-15)
        delta = exp(min(exponent + log(share), 0.0)) + self.infinite
        falling = exp(min(exponent, 700.0)) * float(np.dot(tilted, np.exp(-away)))
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

    def _weights(self, t: float) -> tuple[Floats, Floats]:
        """Tilted masses of every part, which add up to 1, and the logs of what they did before."""
        exponents = t * self._losses + self._logs
        peaks = np.maximum.reduceat(exponents, self._starts)
        weights = np.exp(exponents - peaks[self._whose])
        totals = np.add.reduceat(weights, self._starts)
        return weights / totals[self._whose], peaks + np.log(totals)

    def _moments(self, t: float) -> _Moments:
        if t not in self._known:
            weights, logs = self._weights(t)
            means = np.add.reduceat(weights * self._losses, self._starts)
            squares = np.square(self._losses - means[self._whose])
            variances = np.add.reduceat(weights * squares, self._starts)
            size = 1 + np.abs(t * self._losses) + np.abs(np.maximum(self._logs, -1e3))
            errors = 1e-15 * np.add.reduceat(weights * size, self._starts)
            found = (float(np.dot(self._counts, x)) for x in (logs, means, variances, errors))
            self._known[t] = _Moments(*found)
        return self._known[t]

    def _law(self, t: float) -> _Tilted:
        if t not in self._kept:
            while sum(len(law.masses) for law in self._kept.values()) > _KEPT:
                del self._kept[next(iter(self._kept))]
            self._kept[t] = self._convolved(t)
        return self._kept[t]

    def _window(self, t: float) -> tuple[int, int]:
        """The first cell and the number of cells that hold all of the tilted law but its tails."""
        here = self._moments(t)
        low = self.step * sum(part.count * part.first for part in self._parts)
        high = self.largest
        for width in _WIDTHS:
            s = width * sqrt(2 * _TAIL / max(here.variance, self.step**2))
            high = min(high, (self._moments(t + s).log_mass - here.log_mass + _TAIL) / s)
            low = max(low, (here.log_mass - self._moments(t - s).log_mass - _TAIL) / s)
        first = floor(low / self.step)
        return first, ceil(high / self.step) - first + 1

    def _convolved(self, t: float) -> _Tilted:
        first, wanted = self._window(t)
        if wanted > WINDOW:
            factor = 2 ** ceil(log2(wanted / WINDOW))
            return Composition([part.coarser(factor) for part in self._parts])._convolved(t)
        size = next_fast_len(wanted, real=True)
        frequencies, logs = np.arange(size // 2 + 1), np.zeros(size // 2 + 1, dtype=complex)
        weights, _ = self._weights(t)
        pieces = np.split(weights, self._starts[1:])
        offset = -first
        for part, piece in sorted(zip(self._parts, pieces, strict=True), key=_spread, reverse=True):
            middle = _middle(piece)
            places = (np.arange(len(piece)) - middle) % size
            offset += part.count * (part.first + middle)
            transform = _transformed(places, piece, frequencies, size)
            logs += part.count * np.log(transform + 1e-300)
            heard = logs.real > -_FAINT  # most of them are not, soon
            frequencies, logs = frequencies[heard], logs[heard]
        spectrum = np.zeros(size // 2 + 1, dtype=complex)
        turns = frequencies * (offset % size) % size
        spectrum[frequencies] = np.exp(logs - 2j * pi / size * turns)
        masses = irfft(spectrum, size)
        count = float(self._counts.sum())
        off = _SLACK * sqrt(size) * (1 + count * float(np.linalg.norm(masses)))
        here = self._moments(t)
        return _Tilted(
            self.step * (first + np.arange(size)),
            masses,
            here.log_mass + here.error,
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
        whole: Complex = rfft(np.bincount(places, masses, minlength=size))[frequencies]
        return whole
    turns = np.exp(-2j * pi / size * (places[:, None] * frequencies % size))
    return masses @ turns
