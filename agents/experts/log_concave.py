"""Exact draws from log-concave densities on an interval: piecewise exponential ones, and others.

The second kind by adaptive rejection: Gilks and Wild, "Adaptive rejection sampling for Gibbs
sampling", Applied Statistics 1992. A tangent of a concave function lies above it, so the lowest
of some tangents is the logarithm of an envelope, piecewise exponential; a draw from the envelope
is accepted with probability density / envelope, and a rejected one brings a tangent of its own.
Whatever is accepted has the density's law exactly. There is no cap on the number of trials.
"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats

LogDensity: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Points (n,) -> a concave function there and a slope of it, (n,) each; no normaliser needed."""

_FLAT = 1e-9
"""Below this the rise over a piece is as good as none."""


def piecewise_exponential(
    x: Floats, log_density: Floats, shares: Floats | tuple[float, float]
) -> float:
    """A draw from the density that is exp of the line through (x_i, h_i), on [x_0, x_n].

    Args:
        x: ascending points, (n + 1,); equal ones are fine.
        log_density: h at the points, finite, up to a constant.
        shares: two uniforms, for the piece and the place in it.

    >>> round(piecewise_exponential(np.array([0.0, 1.0]), np.zeros(2), (0.3, 0.25)), 6)
    0.25
    """
    width, rise = np.diff(x), np.diff(log_density)
    steep = np.maximum(np.abs(rise), _FLAT)
    top = np.maximum(log_density[:-1], log_density[1:])
    mass = np.exp(top - top.max()) * width * (-np.expm1(-steep) / steep)
    total = np.cumsum(mass)
    i = int(np.searchsorted(total, shares[0] * total[-1], side="right"))
    i = min(i, int(np.flatnonzero(mass)[-1]))  # rounding
    part = along(rise[i : i + 1], np.array([shares[1]]))[0]
    return float(x[i] + part * width[i])


def along(rise: Floats, shares: Floats) -> Floats:
    """Draws s from densities prop. to exp(rise s) on [0, 1], by their inverse distribution.

    >>> along(np.array([0.0, -50.0, 50.0]), np.array([0.5, 0.5, 0.5])).round(3)
    array([0.5  , 0.014, 0.986])
    """
    steep = np.maximum(np.abs(rise), _FLAT)
    down = np.where(rise > 0, 1 - shares, shares)  # from the high end
    fallen = -np.log1p(down * np.expm1(-steep)) / steep
    place = np.where(rise > 0, 1 - fallen, fallen)
    return np.clip(np.where(np.abs(rise) < _FLAT, shares, place), 0.0, 1.0)


def log_concave(
    log_density: LogDensity,
    low: float,
    high: float,
    rng: np.random.Generator,
    *,
    start: tuple[float, ...] = (0.25, 0.5, 0.75),
) -> float:
    """A draw from exp(h) on [low, high], h concave and finite inside, by adaptive rejection.

    Args:
        log_density: h and its slope.
        low, high: the interval.
        rng: where uniforms come from, as many as it takes.
        start: where the first tangents touch, as shares of the interval.

    >>> rng = np.random.default_rng(0)
    >>> bell = lambda x: (-50 * x**2, -100 * x)
    >>> draws = [log_concave(bell, -1.0, 1.0, rng) for _ in range(1000)]
    >>> bool(abs(np.std(draws) - 0.1) < 0.01)
    True
    """
    x = low + (high - low) * np.array(start)
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
    """Where neighbouring tangents meet, (n + 1,), with the ends of the interval."""
    falls = slope[:-1] - slope[1:]
    apart = x[1:] - x[:-1]
    gap = h[1:] - h[:-1] - slope[1:] * apart
    meets = x[:-1] + np.where(falls > 0, gap / np.where(falls > 0, falls, 1.0), apart / 2)
    inner = np.clip(meets, x[:-1], x[1:])
    return np.concatenate([[low], inner, [high]])
