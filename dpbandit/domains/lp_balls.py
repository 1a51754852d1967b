"""Balls of l_p norms."""

from dataclasses import dataclass
from functools import cache, cached_property, partial
from math import inf, log, pi

import numpy as np
import scipy

from dpbandit.base import Bools, Draws, Floats, Streams, inside, positive
from dpbandit.domains.balls import Ball, Box, Centred, L1Ball
from dpbandit.domains.domain import Domain, Points, finite

_MIN_BOX_P = 1e20
"""Smallest p at which an l_p ball is treated as a box, because dim^(1/p) is rounded to 1."""
_MIN_POSITIVE = float(np.finfo(np.float64).tiny)  # smallest positive normal double
_EPS = float(np.finfo(np.float64).eps)  # distance from 1 to the next double
_NORM_GOAL = 2e-15
"""Largest `|log |x|_p|` at which Newton's iteration accepts x as a point of l_p norm 1."""
_BRACKET_MARGIN = 1e-6
"""Margin added to both ends of a root's bracket, because rounding may leave the root outside."""
_NEWTON_STEPS = 100
"""Largest number of Newton steps; 10 are usual, dozens if p - 1 is as small as rounding errors."""


@dataclass(frozen=True)
class LpBall(Centred):
    """The ball `{x: |x|_p <= radius}` in R^dim; see `L1Ball`, `Ball`, `Box` for p = 1, 2, inf.

    Outer radius `radius max(1, dim^(1/2 - 1/p))`, inner radius `radius min(1, dim^(1/2 - 1/p))`: on
    the sphere, vectors with one nonzero entry are longest and vectors of equal entries shortest if
    p < 2, and the reverse if p > 2.

    >>> import numpy as np
    >>> LpBall(2, 3.0).lowest(np.array([[1e300, -4e300]])).round(3)
    array([[-0.481,  0.961]])
    >>> LpBall(2, 3.0).project(np.array([[0.5, 1.0]])).round(3)
    array([[0.489, 0.959]])
    """

    p: float
    radius: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        inside("p", self.p, 1, inf, ends=True)
        positive("radius", self.radius)

    @cached_property
    def twin(self) -> Domain | None:
        # an `L1Ball`, `Ball` or `Box`; None for other p
        if self.p == 1:
            return L1Ball(self.dim, self.radius)
        if self.p == 2:
            return Ball(self.dim, self.radius)
        return Box(self.dim, self.radius) if self.p >= _MIN_BOX_P else None

    @property
    def outer_radius(self) -> float:
        # The radius if p <= 2, times dim^(1/2 - 1/p) else
        if self.twin is not None:
            return self.twin.outer_radius
        return self.radius * max(1.0, self.dim ** (1 / 2 - 1 / self.p))

    @property
    def inner_radius(self) -> float:
        # The radius if p >= 2, times dim^(1/2 - 1/p) else
        if self.twin is not None:
            return self.twin.inner_radius
        return self.radius * min(1.0, self.dim ** (1 / 2 - 1 / self.p))

    def lowest(self, v: Floats) -> Floats:
        # `x_i = -radius sign(v_i) |v_i|^(q-1) / |v|_q^(q-1)`; `<v, x> = -radius |v|_q`.
        #
        # 1/p + 1/q = 1. The powers are taken of `|v_i| / max |v|`, so no finite v is too large or
        # too small. v = 0 gives -radius times the first unit vector; p = 1, 2 and infinity use the
        # twin's closed form.
        if self.twin is not None and self.p >= _MIN_BOX_P:
            return self.twin.lowest(v)  # uses signs only
        v = np.ascontiguousarray(v, dtype=np.float64)
        if not np.isfinite(v).all():
            v = np.nan_to_num(v)
        most = np.abs(v).max(axis=-1, keepdims=True)
        if self.twin is not None:  # a power of 2 rounds nothing
            return self.twin.lowest(np.ldexp(v, -np.frexp(most)[1]))
        if not most.all():
            v = np.where(most > 0, v, np.arange(self.dim) == 0)
            most = np.where(most > 0, most, 1.0)
        share = np.abs(v) / most
        powers = share ** (1 / (self.p - 1))  # q - 1; p (q - 1) = q, so powers^p = powers share
        length = (powers * share).sum(axis=-1, keepdims=True) ** (1 / self.p)
        return np.sign(v) * powers * (-self.radius / length)

    def project(self, q: Floats) -> Floats:
        # Closed forms at p = 1, 2 and infinity, else Newton on the multiplier, to about 1e-12.
        #
        # The error is rounding: like a last digit changed in q, which turns x by up to
        # 1e-16 / (p - 1) where `|q|` is far beyond the radius and p is close to 1
        if self.twin is not None:
            return self.twin.project(q)
        q = finite(q)
        lengths = self._norms(q)
        outside = lengths[..., 0] > self.radius
        nearest = np.array(q)
        if outside.any():
            nearest[outside] = self._onto_sphere(q[outside], lengths[outside])
        return nearest

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        if self.twin is not None:
            return self.twin.contains(x, tolerance)
        within: Bools = self._norms(finite(x, np.inf)) <= self.radius + tolerance
        return within[..., 0]

    def sampler(self, streams: Streams, name: str) -> Points:
        # g_i of density ~ `exp(-|g|^p)` over `(|g|_p^p + an exponential)^(1/p)`: exact.
        #
        # Barthe, Guedon, Mendelson & Naor, "A probabilistic approach to the geometry of the l_p^n
        # ball", arXiv math/0503650. g_i is a uniform on [-1, 1) times the p-th root of a
        # Gamma(1 + 1/p): nothing underflows when p is large.
        if self.twin is not None:
            return self.twin.sampler(streams, name)
        gammas = streams.gammas(f"{name} size", 1 + 1 / self.p, self.dim)
        uniforms = streams.uniforms(f"{name} share", self.dim)
        return partial(self._drawn, gammas, uniforms, streams.exponentials(f"{name} depth", 1))

    def _drawn(self, gammas: Draws, uniforms: Draws, depths: Draws) -> Floats:
        u, size = 2 * uniforms() - 1, gammas()
        total = (np.abs(u) ** self.p * size).sum(axis=-1, keepdims=True) + depths()
        return self.radius * u * (size / total) ** (1 / self.p)

    def _norms(self, x: Floats) -> Floats:
        """Return the norms `|x|_p` of rows x without overflow, (..., N) -> (..., 1)."""
        most = np.abs(x).max(axis=-1, keepdims=True)
        share = np.abs(x) / np.where(most > 0, most, 1.0)
        total = (share**self.p).sum(axis=-1, keepdims=True)
        return np.asarray(most * total ** (1 / self.p))

    def _onto_sphere(self, q: Floats, lengths: Floats) -> Floats:
        """Return the points of the sphere nearest to rows q of l_p norm `lengths` > radius.

        In units of the radius and up to the signs of q, the nearest point x has `|x|_p = 1` and
        `x_i + mu x_i^(p-1) = |q_i|` with a multiplier mu. With k = `log(mu / max |q|)`, Newton's
        method finds the root k of `log |x(k)|_p`, which decreases in k.

        mu is the dual norm of q - x = mu x^(p-1). The Euclidean norm of q - x is at most that of
        `q - q / |q|_p`, and `|q - x|_p >= e` with e = `|q|_p - 1`. As l_p norms differ at most by
        powers of dim, mu is between e and dim^(1 - 2/p) e, the bracket.
        """
        p = self.p
        most = np.abs(q).max(axis=-1, keepdims=True)
        logs = np.log(np.maximum(np.abs(q) / most, _MIN_POSITIVE))
        scale = -np.log(np.maximum(self.radius / most, _MIN_POSITIVE))
        near = np.log((lengths - self.radius) / lengths) + np.log(lengths / most)
        far = near + (1 - 2 / p) * log(self.dim)
        low, high = np.minimum(near, far) - _BRACKET_MARGIN, np.maximum(near, far) + _BRACKET_MARGIN
        k, start = high, np.full_like(q, inf)
        y, last = start, np.full_like(k, inf)
        going = np.ones_like(k, dtype=np.bool_)
        for _ in range(_NEWTON_STEPS):
            solved, rates = self._entries(k, start, logs, scale)
            y = np.where(going, solved, y)  # solved replicas stay
            top = solved.max(axis=-1, keepdims=True)
            weights = np.exp(p * (solved - top))
            total = weights.sum(axis=-1, keepdims=True)
            excess = top + np.log(total) / p
            slope = np.minimum((weights * rates).sum(axis=-1, keepdims=True) / total, -1e-200)
            step, size = -excess / slope, np.abs(excess)
            going &= (size > _NORM_GOAL) & (np.abs(step) > 4 * _EPS * np.maximum(1.0, np.abs(k)))
            if not going.any():
                break
            low, high = np.where(excess > 0, k, low), np.where(excess > 0, high, k)
            good = (low < k + step) & (k + step < high) & (size < last / 2)
            new = np.where(good, k + step, (low + high) / 2)
            start, k, last = solved + rates * (new - k), new, size
        x = self.radius * np.sign(q) * np.exp(y)
        return x * (self.radius / self._norms(x))

    def _entries(
        self, k: Floats, start: Floats, logs: Floats, scale: Floats
    ) -> tuple[Floats, Floats]:
        """Solve log(exp(y - scale) + exp(k + (p - 1) y)) = logs for y; return y and dy / dk.

        In `_onto_sphere`, y is log x_i, k the log of the multiplier of x^(p-1), `logs` are
        `log(|q_i| / max |q|)`, and `scale` is log(max |q| / radius). The left side is convex and
        increases in y, so Newton's method started above descends to the root. y is concave in k, so
        its tangent `start` is an upper bound, as is the root of either term alone.
        """
        slow = self.p - 1
        y = np.minimum(np.minimum(start, logs + scale), (logs - k) / slow)
        last, going = np.full_like(y, inf), np.ones_like(y, dtype=np.bool_)
        for _ in range(_NEWTON_STEPS):
            plain, curved = y - scale, k + slow * y
            excess = np.logaddexp(plain, curved) - logs
            share = scipy.special.expit(curved - plain)
            slope = scipy.special.expit(plain - curved) + slow * share
            going &= (excess > _EPS) & (excess < last / 2)  # it more than halves, but for rounding
            if not going.any():
                break
            y, last = np.where(going, y - excess / slope, y), excess
        return y, -share / slope


@cache
def second_moment(dim: int, order: float) -> float:
    """Return s = E x_1^2 for x = g / |g|_q, with `dim` standard normals g and q = `order`.

    The error is about 1e-12. With N = `dim`, the integrand factorises in
    `|g|_q^-2 = 2 / Gamma(1 + 2/q) int_0^inf t exp(-(t |g|_q)^q) dt`::

        s = 2 / Gamma(1 + 2/q) int_0^inf t A(t) M(t)^(N-1) dt,
        M(t) = E exp(-(t |g_1|)^q),   A(t) = E g_1^2 exp(-(t |g_1|)^q),

    If q is infinite, the indicator of t |g_1| < 1 replaces exp(-(t |g_1|)^q).

    >>> second_moment(7, 2), second_moment(1, 3.0)                      # 1/N on the sphere
    (0.142857142857, 1.0)
    """
    log_t, weight = _gauss(np.arange(-20.0, 39.0), 12)
    t = np.exp(log_t)
    # in units of 1/t the exponential falls from 1 to 0 within these
    edges = np.exp(np.array([-36, -18, -6, -2, 0, 1, 2, 3, np.log(40)]) / order)
    corners = np.minimum(np.append(0, edges) / t[:, None], 12.0)  # no normal is larger
    z, weights = _gauss(corners, 40)
    law = weights * np.sqrt(2 / pi) * np.exp(-(z**2) / 2 - (t[:, None] * z) ** order)
    M, A = law.sum(axis=1), (z**2 * law).sum(axis=1)
    total = (weight * t**2 * A * M ** (dim - 1)).sum()
    return round(float(2 / scipy.special.gamma(1 + 2 / order) * total), 12)


def _gauss(corners: Floats, count: int) -> tuple[Floats, Floats]:
    """Return `count` Gauss-Legendre nodes and weights in each interval between `corners`."""
    node, weight = np.polynomial.legendre.leggauss(count)
    low, half = corners[..., :-1, None], np.diff(corners)[..., None] / 2
    shape = (*corners.shape[:-1], -1)
    return (low + half * (1 + node)).reshape(shape), (half * weight).reshape(shape)
