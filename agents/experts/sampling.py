"""Points of an N-dimensional ball drawn prop. to exp(-rate max(S, floor)), S the total loss::

    sampler        losses                   law      work of a draw after t rounds
    KinkSampler    one kink at most, N = 1  exact    sorting t kinks, inverse CDF
    LinearSampler  linear, any N            exact    the sum of slopes, adaptive rejection in 1-D
    CellSampler    convex, N <= 3           exact    some hundred trials of t losses each
    HitAndRun      convex                   not      a fixed number of steps of t losses each

Losses are counted in units of their range: S adds up (f - low) / (high - low), each in [0, 1].
"Exact" is for real numbers; the number of trials is not capped, so that run time depends on data.
A sampler stores raw data: it belongs inside a mechanism.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dpbandit.base import Floats, InputError
from dpbandit.losses.decisions import Kink, Linear, OffsetQuadratic, Quadratic, TiltedQuadratic
from dpbandit.losses.loss import Loss
from dpbandit.losses.predictions import Absolute, Hinge, Logistic, Ramp, Squared

LogDensity: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Function from points (n,) to an unnormalised concave log density and its slope, (n,) each."""

_MIN_RISE = 1e-9
"""Rise of a log density over a piece below which the density counts as constant."""
_MIN_ROOM = 2.0**-53
"""Floor on 1 - u^2 in case u rounds to 1; smaller than 1 - u^2 of every double u inside (-1, 1)."""
_WALK_STEPS = 100
"""Number of steps of a hit-and-run walk, which starts at a uniform point."""


def piecewise_exponential(
    x: Floats, log_density: Floats, shares: Floats | tuple[float, float]
) -> float:
    """Draw from the density exp(h), h piecewise linear through (x_i, h_i) on [x_0, x_n].

    Args:
        x: ascending points, (n + 1,); some may be equal.
        log_density: h at the points, finite, up to a constant.
        shares: two uniform numbers, which choose the piece and the position in it.

    >>> round(piecewise_exponential(np.array([0.0, 1.0]), np.zeros(2), (0.3, 0.25)), 6)
    0.25
    """
    width, rise = np.diff(x), np.diff(log_density)
    steep = np.maximum(np.abs(rise), _MIN_RISE)
    top = np.maximum(log_density[:-1], log_density[1:])
    mass = np.exp(top - top.max()) * width * (-np.expm1(-steep) / steep)
    total = np.cumsum(mass)
    i = int(np.searchsorted(total, shares[0] * total[-1], side="right"))
    i = min(i, int(np.flatnonzero(mass)[-1]))  # rounding
    part = along(rise[i : i + 1], np.array([shares[1]]))[0]
    return float(x[i] + part * width[i])


def along(rise: Floats, shares: Floats) -> Floats:
    """Draw s from densities prop. to exp(rise s) on [0, 1], by inversion of the uniforms `shares`.

    >>> along(np.array([0.0, -50.0, 50.0]), np.array([0.5, 0.5, 0.5])).round(3)
    array([0.5  , 0.014, 0.986])
    """
    steep = np.maximum(np.abs(rise), _MIN_RISE)
    down = np.where(rise > 0, 1 - shares, shares)  # measured from the end of higher density
    fallen = -np.log1p(down * np.expm1(-steep)) / steep
    place = np.where(rise > 0, 1 - fallen, fallen)
    return np.clip(np.where(np.abs(rise) < _MIN_RISE, shares, place), 0.0, 1.0)


def log_concave(
    log_density: LogDensity, low: float, high: float, rng: np.random.Generator
) -> float:
    """Draw from exp(h) on [low, high], h concave and finite inside, by adaptive rejection.

    Args:
        log_density: function that returns h and its slope.
        low, high: the interval.
        rng: source of uniforms; the number of draws varies.

    >>> rng = np.random.default_rng(0)
    >>> bell = lambda x: (-50 * x**2, -100 * x)
    >>> draws = [log_concave(bell, -1.0, 1.0, rng) for _ in range(1000)]
    >>> bool(abs(np.std(draws) - 0.1) < 0.01)
    True
    """
    x = low + (high - low) * np.array((0.25, 0.5, 0.75))  # of the first tangents
    h, slope = log_density(x)
    while True:
        corners = _corners(x, h, slope, low, high)
        touching = np.concatenate([[0], np.arange(len(x))])
        roof = h[touching] + slope[touching] * (corners - x[touching])
        draw = piecewise_exponential(corners, roof, rng.random(2))
        new = np.array([draw])
        height, tilt = log_density(new)
        i = min(max(int(np.searchsorted(corners, draw)) - 1, 0), len(x) - 1)
        if -rng.standard_exponential() <= height[0] - (h[i] + slope[i] * (draw - x[i])):
            return draw
        order = np.argsort(np.concatenate([x, new]), kind="stable")
        x = np.concatenate([x, new])[order]
        h, slope = np.concatenate([h, height])[order], np.concatenate([slope, tilt])[order]


def _corners(x: Floats, h: Floats, slope: Floats, low: float, high: float) -> Floats:
    """Return (n + 1,) points: `low`, then where tangents at neighbouring x meet, then `high`."""
    falls = slope[:-1] - slope[1:]
    apart = x[1:] - x[:-1]
    gap = h[1:] - h[:-1] - slope[1:] * apart
    meets = x[:-1] + np.where(falls > 0, gap / np.where(falls > 0, falls, 1.0), apart / 2)
    inner = np.clip(meets, x[:-1], x[1:])
    return np.concatenate([[low], inner, [high]])


class UnitLosses:
    """Losses in units of their range, for n points and t data at once."""

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.low, high = loss.value_range
        self.width = high - self.low

    @property
    def slope(self) -> float:
        """Lipschitz constant of the scaled losses."""
        return self.loss.lipschitz / self.width

    def each(self, points: Floats, data: Floats) -> Floats:
        """Return the losses of points (..., N) at data `(..., *datum_shape)`, broadcast."""
        return (self.loss.value(points, data) - self.low) / self.width

    def total(self, points: Floats, data: Floats) -> Floats:
        """Return the total losses (n,) of points (n, N) over t data `(t, *datum_shape)`."""
        return np.asarray(self.each(points[:, None], data[None]).sum(axis=1))

    def gradient(self, points: Floats, data: Floats) -> Floats:
        """Return the gradient (n, N) of the total loss over t data at points (n, N)."""
        each = self.loss.gradient(points[:, None], data[None])  # for linear losses (1, t, N)
        shape = (len(points), len(data), points.shape[1])
        return np.broadcast_to(each, shape).sum(axis=1) / self.width


class Sampler(ABC):
    """Base class of samplers, which add up losses in R replicas and draw points."""

    def __init__(self, loss: Loss, replicas: int) -> None:
        self._losses = UnitLosses(loss)
        self._ball, self._replicas = loss.domain, replicas

    @abstractmethod
    def add(self, data: Floats) -> None:
        """Add one round of admissible data, `(R, *datum_shape)`."""

    @abstractmethod
    def draw(self, r: int, rate: float, floor: float, rng: np.random.Generator) -> Floats:
        """Draw a point (N,) for replica r, prop. to exp(-rate max(S, floor)), S the total loss."""

    def _uniform(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw uniform points of the N-dimensional ball, (count, N)."""
        N = self._ball.dim
        g = rng.standard_normal((count, N))
        lengths = self._ball.outer_radius * rng.random((count, 1)) ** (1 / N)
        return np.asarray(g * (lengths / np.linalg.norm(g, axis=1, keepdims=True)))


class _StoringSampler(Sampler):
    """Base class of samplers that store all data."""

    def __init__(self, loss: Loss, replicas: int) -> None:
        super().__init__(loss, replicas)
        self._samples, self._count = np.empty((replicas, 16, *loss.datum_shape)), 0

    def add(self, data: Floats) -> None:
        if self._count == self._samples.shape[1]:
            self._samples = np.concatenate([self._samples, np.empty_like(self._samples)], axis=1)
        self._samples[:, self._count] = data
        self._count += 1

    def _data(self, r: int) -> Floats:
        return self._samples[r, : self._count]


class KinkSampler(_StoringSampler):
    """Sampler in one dimension for losses of at most two linear pieces.

    The density is piecewise exponential. Values and slopes at both ends of the ball give each
    loss's kink; max(S, floor), S the total loss, is linear between these and where S = floor.
    """

    def draw(self, r: int, rate: float, floor: float, rng: np.random.Generator) -> Floats:
        x, S = self.polygon(r)
        x, S = _cut(x, S, floor)
        return np.array([piecewise_exponential(x, -rate * S, rng.random(2))])

    def polygon(self, r: int) -> tuple[Floats, Floats]:
        """Return ascending points (t + 2,) and the total loss at them; it is linear in between."""
        losses, R, data = self._losses, self._ball.outer_radius, self._data(r)
        ends = np.array([[-R], [R]])
        left, right = losses.each(ends[:, None], data[None])  # (t,)
        along = np.ones(1)
        rises = [np.vecdot(losses.loss.gradient(end[None], data), along) for end in ends]
        falling, rising = (np.broadcast_to(rise / losses.width, left.shape) for rise in rises)
        bend = np.maximum(rising - falling, 0.0)
        met = (left - right + R * (falling + rising)) / np.where(bend > 0, bend, 1.0)
        kinks = np.clip(np.where(bend > 0, met, -R), -R, R)
        order = np.argsort(kinks, kind="stable")
        x = np.concatenate([[-R], kinks[order], [R]])
        slopes = falling.sum() + np.concatenate([[0.0], np.cumsum(bend[order])])
        steps = np.concatenate([[left.sum()], slopes * np.diff(x)])
        return x, np.cumsum(steps)


class LinearSampler(Sampler):
    """Sampler for linear losses, whose total S depends on the coordinate of x along one direction.

    With g the sum of slopes and R the radius, u = `<x, g> / (R |g|)` has the log-concave density
    prop. to (1 - u^2)^((N-1)/2) exp(-rate max(S(u), floor)); given u the rest of x is uniform in
    the (N-1)-dimensional ball of radius R sqrt(1 - u^2).
    """

    def __init__(self, loss: Loss, replicas: int) -> None:
        super().__init__(loss, replicas)
        self._slope, self._count = np.zeros((replicas, self._ball.dim)), 0

    def add(self, data: Floats) -> None:
        # The sum of slopes is sufficient
        self._slope = self._slope + data
        self._count += 1

    def draw(self, r: int, rate: float, floor: float, rng: np.random.Generator) -> Floats:
        # Draw u by adaptive rejection, then the direction orthogonal to g
        N, R, t = self._ball.dim, self._ball.outer_radius, self._count
        length = float(np.sqrt(np.vecdot(self._slope[r], self._slope[r])))
        g = self._slope[r] / length if length > 0 else np.eye(N)[0]

        def log_density(u: Floats) -> tuple[Floats, Floats]:
            S = (t + length * u) / 2  # each loss is (<a, x> + R) / (2 R)
            room = np.maximum(1 - u * u, _MIN_ROOM)
            h = (N - 1) / 2 * np.log(room) - rate * np.maximum(S, floor)
            return h, -(N - 1) * u / room - rate * length / 2 * (floor < S)

        u = log_concave(log_density, -1.0, 1.0, rng)
        z = rng.standard_normal(N)
        z = z - np.vecdot(z, g) * g
        across = rng.random() ** (1 / max(N - 1, 1)) / np.sqrt(np.vecdot(z, z))
        return np.asarray(R * (u * g + np.sqrt(1 - u * u) * across * z))


class CellSampler(_StoringSampler):
    """Sampler by adaptive rejection in a few dimensions, with cubes that cover the ball.

    For total loss S, -rate max(S, floor) is concave. So its tangent plane at a cube's centre lies
    above it, and exp of the plane is a product of exponentials on the cube. A point drawn from
    these is accepted with probability density / exp(plane), and never outside the ball; a rejection
    cuts its cube into 2^N of half the side. Accepted points have exactly the density's law.
    """

    def draw(self, r: int, rate: float, floor: float, rng: np.random.Generator) -> Floats:
        data, R, N = self._data(r), self._ball.outer_radius, self._ball.dim
        corners = np.stack(np.meshgrid(*[[-0.5, 0.5]] * N, indexing="ij"), axis=-1).reshape(-1, N)

        def tangents(points: Floats) -> tuple[Floats, Floats]:
            S = self._losses.total(points, data)
            slope = self._losses.gradient(points, data) * (floor < S)[:, None]
            return -rate * np.maximum(S, floor), -rate * slope

        centre, half = np.zeros((1, N)), np.array([R])
        height, slope = tangents(centre)
        while True:
            mass = height + _log_cube(slope * half[:, None], half)
            outside = np.linalg.norm(np.maximum(np.abs(centre) - half[:, None], 0.0), axis=1) > R
            mass = np.cumsum(np.where(outside, 0.0, np.exp(mass - mass[~outside].max())))
            i = int(np.searchsorted(mass, rng.random() * mass[-1], side="right"))
            away = half[i] * (2 * along(2 * half[i] * slope[i], rng.random(N)) - 1)
            x = centre[i] + away
            roof = height[i] + np.vecdot(slope[i], away)
            level = -rate * max(self._losses.total(x[None], data)[0], floor)
            uniform = -rng.standard_exponential()
            if np.linalg.norm(x) <= R and uniform <= level - roof:
                return np.asarray(x)
            new = centre[i] + half[i] * corners
            smaller = np.full(len(new), half[i] / 2)
            centre = np.concatenate([np.delete(centre, i, axis=0), new])
            half = np.concatenate([np.delete(half, i), smaller])
            heights, slopes = tangents(new)
            height = np.concatenate([np.delete(height, i), heights])
            slope = np.concatenate([np.delete(slope, i, axis=0), slopes])


class HitAndRun(_StoringSampler):
    """Sampler by a hit-and-run walk: 100 uniform directions, with an exact draw along each chord.

    Lovasz and Vempala, "Hit-and-run from a corner", SIAM Journal on Computing 2006. A finite walk
    only approaches the law, so this certifies no privacy.
    """

    def draw(self, r: int, rate: float, floor: float, rng: np.random.Generator) -> Floats:
        losses, R, data = self._losses, self._ball.outer_radius, self._data(r)
        x = self._uniform(1, rng)[0]
        for _ in range(_WALK_STEPS):
            v = rng.standard_normal(len(x))
            v = v / np.linalg.norm(v)
            middle = -np.vecdot(x, v)
            half = np.sqrt(max(middle**2 + R**2 - np.vecdot(x, x), 0.0))

            def log_density(s: Floats, x: Floats = x, v: Floats = v) -> tuple[Floats, Floats]:
                points = x + s[:, None] * v
                S = losses.total(points, data)
                slope = np.vecdot(losses.gradient(points, data), v)
                return -rate * np.maximum(S, floor), -rate * slope * (floor < S)

            x = x + log_concave(log_density, float(middle - half), float(middle + half), rng) * v
        return x * min(1.0, R / np.linalg.norm(x))  # rounding


VERIFIED: tuple[type[Loss], ...] = (
    Linear,
    Quadratic,
    TiltedQuadratic,
    OffsetQuadratic,
    Kink,
    Absolute,
    Hinge,
    Logistic,
    Squared,
    Ramp,
)
"""Loss families whose values on a ball are tested to be convex and within `value_range`."""


def exact_sampler(loss: Loss) -> type[Sampler] | None:
    """Return the exact sampler for a loss on a ball; None if only `HitAndRun` is fast enough.

    Raises `InputError` for a loss outside `VERIFIED`: the value range bounds the sensitivity, and
    clipped values would not be convex.
    """
    if type(loss) not in VERIFIED:
        raise InputError(
            f"The value range of {type(loss).__name__} is not verified, and privacy rests on it: "
            "choose another agent or environment, or one of "
            f"{', '.join(family.__name__ for family in VERIFIED)}."
        )
    N = loss.domain.dim
    if N == 1 and isinstance(loss, Linear | Absolute | Hinge | Ramp):
        return KinkSampler
    if isinstance(loss, Linear):
        return LinearSampler
    return CellSampler if N <= 3 else None


def _log_cube(rise: Floats, half: Floats) -> Floats:
    """Return log integrals of exp(<slope, x>) over n cubes [-half, half]^N; rise = slope x half."""
    steep = np.maximum(np.abs(rise), 1e-9)
    sides = steep + np.log(-np.expm1(-2 * steep) / (2 * steep))  # log(sinh(rise) / rise)
    return np.asarray(sides.sum(axis=1) + rise.shape[1] * np.log(2 * half))


def _cut(x: Floats, S: Floats, floor: float) -> tuple[Floats, Floats]:
    """Return nodes and values of max(S, floor), S linear between nodes x; S = floor adds nodes."""
    above = floor < S
    i = np.flatnonzero(above[:-1] != above[1:])
    crossing = x[i] + (floor - S[i]) / (S[i + 1] - S[i]) * (x[i + 1] - x[i])
    x = np.insert(x, i + 1, np.clip(crossing, x[i], x[i + 1]))
    return x, np.insert(np.maximum(S, floor), i + 1, floor)
