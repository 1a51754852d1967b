"""Privacy loss distributions on grids, rounded up, and their composition.

For neighbours with laws P and Q of a release o, the loss is L = log P(o) / Q(o) where o comes from
P. The law of L determines the privacy curve::

    delta(epsilon) = sup P(S) - e^epsilon Q(S) = P(L = inf) + E (1 - e^(epsilon - L))+ .

**On a grid.** A loss between two grid points is split between them such that its mass and the mean
of e^-L stay the same: delta is then a straight line in e^epsilon from grid point to grid point, and
as it is convex, no smaller anywhere (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the
dots", PETS 2022). `connected` does so with a curve of deltas, `split` with discrete laws. Rounding
errors are added to the masses, so that no mass is too small for its curve.

**Composed.** The delta of a sum has a small relative error, however small delta is. The sum L of n
independent losses is convolved by FFT, whose errors are about 1e-16 of the LARGEST numbers for
every mechanism: at n = 3e5 they exceed a delta of 1e-12. So the convolved losses are tilted by
e^(t L), with the t >= 0 that puts their mean at epsilon (Esscher's transform; Alghamdi, Gomez,
Asoodeh, Calmon, Kosut and Sankar, "The saddle-point method in differential privacy", ICML 2023)::

    delta(epsilon) = M e^(-t epsilon) E_t[e^(-t (L - epsilon)) (1 - e^(epsilon - L))+],
    M = E e^(t L).

**Never below the truth.** Any t is valid. The expectation has a factor in [0, 1], so that its error
is at most the l_1 error of the convolved law. Parseval's identity and `_ROUNDING_SLACK` bound that
error: the relative error of each frequency is a few units of rounding per mechanism. Mass above the
window, less than e^-39 by Chernoff's bound, is added; mass below is folded into the window, which
can only raise delta. A window of more than `WINDOW` cells is made coarser, pessimistically.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, expm1, floor, inf, log, log1p, log2, pi, sqrt
from typing import NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import scipy

from dpbandit.base import Floats, Ints, one_thread, positive

CELLS = 2**16
"""Largest number of grid cells on one side of 0; a grid that needs more is made coarser"""
_MACHINE_EPSILON = 2.0**-52
"""Distance from 1 to the next double, twice the largest relative error of rounding"""
_MAX_INDEX = 2**62
"""Largest factor by which a grid is coarsened in 64-bit integers; above it, in floating point"""


@dataclass(frozen=True, eq=False)
class PrivacyLoss:
    """Law of each of `count` independent losses: mass masses[i] at (first + i) x step."""

    step: float
    first: int
    masses: Floats
    infinite: float = 0.0
    """mass of an infinite loss"""
    count: int = 1

    def coarser(self, factor: int) -> "PrivacyLoss":
        """Return the losses rounded up onto a grid of `factor` times the step."""
        if factor == 1:
            return self
        place = self.first + np.arange(len(self.masses))
        index, beyond = np.divmod(place, factor if factor < _MAX_INDEX else float(factor))
        step = factor * self.step
        share = np.expm1(-beyond * self.step) / expm1(-step)
        index = index.astype(np.int64)
        return _placed(index, share, self.masses, step, self.infinite, self.count)


def affordable(step: float, reach: float) -> float:
    """Return grid `step`, doubled until `CELLS` cells of that width cover losses up to `reach`."""
    positive("step", step)
    while reach / step > CELLS:
        step *= 2
    return step


def split(losses: Floats, masses: Floats, *, step: float, count: int = 1) -> PrivacyLoss:
    """Return the law of losses[i] with probability masses[i], split onto a grid."""
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
    rounding: float = 8 * _MACHINE_EPSILON,
) -> PrivacyLoss:
    """Return the symmetric loss whose delta is curve(epsilon) at the grid points from 0 to `reach`.

    A loss is symmetric if its two laws may be exchanged: the mass at -l is e^-l times that at l.
    All of `curve` beyond `reach` becomes an infinite loss. `rounding` bounds the relative error of
    the curve, without the rounding of epsilon.
    """
    step = affordable(step, reach)
    cells = ceil(reach / step + 1e-9)  # where it just reaches the last grid point, one more
    off = rounding + 2 * _MACHINE_EPSILON * cells
    deltas = np.minimum(curve(step * np.arange(cells + 1)) * (1 + off), 1.0)
    shrink = exp(-step)
    slopes = -np.diff(deltas) / -expm1(-step)
    upper = slopes - shrink * np.append(slopes[1:], 0.0) + 4 * _MACHINE_EPSILON * np.abs(slopes)
    upper = np.maximum(upper, 0.0)
    middle = max(0.0, 1 - deltas[1] - (1 + shrink) * slopes[0]) + 8 * _MACHINE_EPSILON
    lower = upper * np.exp(-step * np.arange(1, cells + 1))
    masses = np.concatenate([lower[::-1], [middle], upper])
    return PrivacyLoss(step, -cells, masses, float(deltas[-1]), count)


def constant(loss: float, *, step: float, count: int = 1) -> PrivacyLoss:
    """Return the law of a deterministic loss, which may be infinite."""
    if loss == np.inf:
        return PrivacyLoss(step, 0, np.ones(1), 1.0, count)
    return PrivacyLoss(step, ceil(loss / step), np.ones(1), 0.0, count)


def _placed(
    index: Ints, share: Floats, masses: Floats, step: float, infinite: float, count: int
) -> PrivacyLoss:
    """Return the loss with a `share` of each mass at cell index + 1 and the rest at cell index."""
    first = int(index.min())
    place, size = index - first, int(index.max()) - first + 2
    moved = np.zeros(size)
    moved += np.bincount(place, masses * (1 - share), minlength=size)
    moved += np.bincount(place + 1, masses * share, minlength=size)
    return PrivacyLoss(step, first, moved, infinite, count)


Complex: TypeAlias = npt.NDArray[np.complex128]
WINDOW = 2**18
"""Largest number of grid cells of a convolution"""
_LOG_TAIL_MASS, _LOG_NEGLIGIBLE = 39.0, 50.0
"""Minus log of the mass omitted on a side of the window, and of a Fourier coefficient taken as 0"""
_ROUNDING_SLACK = 2e-15
"""Rounding error of a mechanism's Fourier coefficient, about log2(WINDOW) units of rounding"""
_RUNGS_PER_OCTAVE, _MAX_RUNG = 4, 60 * 4
"""Number of exponential tilts per factor 2 on a grid from 2^-60 to 2^60, and largest index"""
_RUNG_RATIO = 2.0 ** (-1 / _RUNGS_PER_OCTAVE)  # ratio of a tilt t of e^(t L) to the next one
_MAX_TILT_STEP = 700.0
"""Largest product of tilt and grid step; a larger tilt leaves the mass of a single cell"""
_LOG_DELTA_PRECISION, _MAX_NEWTON_STEPS = 1e-7, 60
"""Precision of log delta in the search for epsilon, and largest number of its steps"""
_CHERNOFF_WIDTHS = 2.0 ** np.arange(1, -7, -1)
"""Exponents tried in Chernoff's bound, divided by the best exponent for a normal law"""
_CACHED_CELLS = 2 * WINDOW
"""Largest total number of grid cells of the convolutions cached when another is added"""


class _Moments(NamedTuple):
    """Moments of the tilted sum of losses."""

    log_mass: float
    """log of E e^(t L), for the tilt t and the sum L of losses"""
    mean: float


class _Tilted(NamedTuple):
    """Tilted law of the sum of losses on a window of the grid."""

    losses: Floats
    masses: Floats
    log_mass: float
    """log of E e^(t L), for the tilt t and the sum L of losses, rounded up"""
    slack: float
    """largest error of a sum of masses with factors in [0, 1]"""


class Composition:
    """Sum of independent privacy losses, on grids whose steps differ by powers of 2.

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
        self._part_of_cell = np.repeat(np.arange(len(sizes)), sizes)
        places = [part.first + np.arange(len(part.masses)) for part in self._parts]
        self._losses: Floats = self.step * np.concatenate(places)
        with np.errstate(divide="ignore"):
            self._logs: Floats = np.log(np.concatenate([part.masses for part in self._parts]))
        self._rounded = 1 + np.abs(np.maximum(self._logs, -1e3))  # units of rounding of a mass
        self._laws: dict[float, _Tilted] = {}
        self._moments_of: dict[float, _Moments] = {}

    @cached_property
    def infinite(self) -> float:
        """Probability that at least one loss is infinite."""
        if any(part.infinite >= 1 for part in self._parts):
            return 1.0
        return -expm1(sum(part.count * log1p(-part.infinite) for part in self._parts))

    @cached_property
    def largest(self) -> float:
        """Largest finite value of the sum."""
        return self.step * sum(p.count * (p.first + len(p.masses) - 1) for p in self._parts)

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at `epsilon`, as tight as the grid."""
        with one_thread():
            return self._delta_and_slope(epsilon)[0]

    def least_epsilon(self, delta: float) -> float:
        """Return the least epsilon >= 0 at `delta`, rounded up; infinity if there is none."""
        if self.infinite > delta or delta <= 0:
            return inf
        with one_thread():
            return self._newton(delta)

    def _newton(self, delta: float) -> float:
        low, high, goal = -1.0, max(self.largest, 0.0), log(delta)  # 0 has not been tried
        # from the end of Chernoff's bound, M e^(-t epsilon), by Newton's method for log delta
        t = self._tilt(lambda t, m: t * m.mean - m.log_mass >= -goal)
        ends = [(self._moments(x).log_mass - goal) / x for x in (t, t * _RUNG_RATIO) if x > 0]
        epsilon = min(ends, default=0.0)  # t is 0 where delta exceeds the mass of all finite losses
        for _ in range(_MAX_NEWTON_STEPS):
            if not max(low, 0.0) < epsilon < high:
                epsilon = (low + high) / 2 if low >= 0 else 0.0
            found, fall = self._delta_and_slope(epsilon)
            low, high = (low, epsilon) if found <= delta else (epsilon, high)
            if high == 0:
                break
            away = log(found) - goal if found > 0 else -inf
            if -_LOG_DELTA_PRECISION <= away <= 0 or high - low <= 1e-12 * high:
                break
            epsilon += (away + _LOG_DELTA_PRECISION / 2) / fall if fall > 0 and away > -inf else inf
        return high

    def _delta_and_slope(self, epsilon: float) -> tuple[float, float]:
        """Return delta at `epsilon`, and minus the derivative of log delta."""
        if epsilon >= self.largest:
            return self.infinite, 0.0
        above = self._tilt(lambda t, m: m.mean >= epsilon)
        below = above * _RUNG_RATIO  # the mean of a law with two modes may jump
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
        """Return the tilt of the grid next to where `reached` turns true, or 0 if true at 0."""
        if reached(0.0, self._moments(0.0)):
            return 0.0
        low, high = -_MAX_RUNG, _MAX_RUNG
        while high - low > 1:
            middle = (low + high) // 2
            t = 2.0 ** ((middle + 0.5) / _RUNGS_PER_OCTAVE)  # half way to the next
            enough = t * self.step > _MAX_TILT_STEP or reached(t, self._moments(t))
            low, high = (low, middle) if enough else (middle, high)
        return float(2.0 ** (high / _RUNGS_PER_OCTAVE))

    def _sum_by_part(self, values: Floats) -> Floats:
        """Return the sum of `values` over grid cells, for each part (composed privacy loss)."""
        return np.add.reduceat(values, self._starts)

    def _to_cells(self, values: Floats) -> Floats:
        """Return the parts' values, each repeated for the cells of its part."""
        return values[self._part_of_cell] if len(values) > 1 else values

    def _tilted(self, t: float) -> tuple[Floats, Floats, Floats]:
        """Return each part's rescaled tilted masses, their sum, and the log of the unscaled sum."""
        exponents = t * self._losses
        exponents += self._logs
        peaks = np.maximum.reduceat(exponents, self._starts)
        exponents -= self._to_cells(peaks)
        weights = np.exp(exponents, out=exponents)
        totals = self._sum_by_part(weights)
        return weights, totals, peaks + np.log(totals)

    def _moments(self, t: float) -> _Moments:
        if t not in self._moments_of:
            weights, totals, logs = self._tilted(t)
            weights *= self._losses
            means = self._sum_by_part(weights) / totals
            self._moments_of[t] = _Moments(self._total(logs), self._total(means))
        return self._moments_of[t]

    def _total(self, values: Floats) -> float:
        """Return the sum over all mechanisms of values given for one mechanism of each part."""
        return float(np.dot(self._counts, values))

    def _law(self, t: float) -> _Tilted:
        if t not in self._laws:
            while sum(len(law.masses) for law in self._laws.values()) > _CACHED_CELLS:
                del self._laws[next(iter(self._laws))]
            self._laws[t] = self._convolved(t)
        return self._laws[t]

    def _window(self, t: float, log_mass: float, variance: float) -> tuple[int, int]:
        """Return first cell and number of cells of the window around the tilted law's bulk."""
        low = self.step * sum(part.count * part.first for part in self._parts)
        unit = sqrt(2 * _LOG_TAIL_MASS / max(variance, self.step**2))
        high = min(self.largest, self._reach(t, log_mass, unit))
        low = max(low, -self._reach(t, log_mass, -unit))
        first = floor(low / self.step)
        return first, ceil(high / self.step) - first + 1

    def _reach(self, t: float, log_mass: float, unit: float) -> float:
        """Return the window's upper end by Chernoff's bound; if `unit` < 0, minus its lower end."""
        least = inf
        for width in _CHERNOFF_WIDTHS:
            s = width * unit
            bound = (self._total(self._tilted(t + s)[2]) - log_mass + _LOG_TAIL_MASS) / abs(s)
            if bound >= least:  # the bound is unimodal in s
                break
            least = bound
        return least

    def _convolved(self, t: float) -> _Tilted:
        weights, totals, logs = self._tilted(t)
        weights /= self._to_cells(totals)
        log_mass, sizes = self._total(logs), np.abs(t * self._losses) + self._rounded
        means = self._sum_by_part(weights * self._losses)
        variances = self._sum_by_part(weights * np.square(self._losses - self._to_cells(means)))
        first, wanted = self._window(t, log_mass, self._total(variances))
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
            present = logs.real > -_LOG_NEGLIGIBLE  # few frequencies remain after some parts
            frequencies, logs = frequencies[present], logs[present]
        spectrum = np.zeros(size // 2 + 1, dtype=complex)
        turns = frequencies * (offset % size) % size
        spectrum[frequencies] = np.exp(logs - 2j * pi / size * turns)
        masses = scipy.fft.irfft(spectrum, size)
        count = float(self._counts.sum())
        off = _ROUNDING_SLACK * sqrt(size) * (1 + count * float(np.linalg.norm(masses)))
        return _Tilted(
            self.step * (first + np.arange(size)),
            masses,
            log_mass + 1e-15 * self._total(self._sum_by_part(weights * sizes)),
            off + 2 * exp(-_LOG_TAIL_MASS) + size * exp(-_LOG_NEGLIGIBLE),
        )


def _middle(weights: Floats) -> int:
    """Return the cell nearest to the mean of a law on cells 0, 1, 2 and so on."""
    return round(float(np.dot(np.arange(len(weights)), weights)))


def _spread(pair: tuple[PrivacyLoss, Floats]) -> float:
    """Return the variance that one part adds to the sum, in squared cells."""
    part, weights = pair
    away = np.arange(len(weights)) - _middle(weights)
    return part.count * float(np.dot(np.square(away), weights))


def _transformed(places: Ints, masses: Floats, frequencies: Ints, size: int) -> Complex:
    """Return the Fourier transform at `frequencies` of masses at cells `places` modulo `size`."""
    if len(places) * len(frequencies) > size:
        whole: Complex = scipy.fft.rfft(np.bincount(places, masses, minlength=size))[frequencies]
        return whole
    turns = np.exp(-2j * pi / size * (places[:, None] * frequencies % size))
    return masses @ turns
