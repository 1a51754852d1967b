"""The interface of a convex decision set, uniform sampling, and projections on a simplex.

A domain C is a compact convex subset of R^N. Its affine hull is centre + V with V a subspace of
dimension k. Noise and exploration live in V, in coordinates of an orthonormal basis, so a set that
is flat in R^N (a simplex, flows) costs k dimensions and not N.

Uniform points come from a random walk where no direct construction is known.

Smith, "Efficient Monte Carlo procedures for generating points uniformly distributed over bounded
regions", Operations Research 1984: go in a uniform direction of V to a uniform point of the chord.
The uniform law is stationary. The walk starts at the centre, so its first points are not uniform,
and successive points are correlated.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.base import Bools, Floats, InputError, Streams, norms

Points: TypeAlias = Callable[[], Floats]
"""Sampler of points of a domain; each call returns one for each replica, (R, N). Copies (deep, or
pickled) continue with the same draws."""

_MAX_ENTRY = 1e100
"""Bound on entries of vectors, whose squares, sums and differences then stay finite."""


def finite(v: Floats, nan: float = 0.0) -> Floats:
    """Return `v` as rows of finite floats: NaN becomes `nan`, entries are clipped to +-1e100.

    The result may be `v` itself, so callers must not write to it.
    """
    v = np.ascontiguousarray(v, dtype=np.float64)
    if (np.abs(v) <= _MAX_ENTRY).all():  # the usual case; False if there is a NaN
        return v
    return np.clip(np.where(np.isnan(v), nan, v), -_MAX_ENTRY, _MAX_ENTRY)


def constant(values: npt.ArrayLike) -> Floats:
    """Return a read-only array, so that public values are computed once and shared."""
    array: Floats = np.array(values, dtype=np.float64)
    array.flags.writeable = False
    return array


class Domain(ABC):
    """A compact convex set in R^N; subclasses are frozen dataclasses, so they hash and print.

    Methods take and return one row per replica, and no row depends on another.
    """

    has_projection: bool = True
    """True if `project` is exact; else use `dpbandit.domains.projections`"""
    dim: int
    """N, the length of a point"""

    @property
    @abstractmethod
    def centre(self) -> Floats:
        """Public point of the domain's relative interior, (N,)."""

    @property
    @abstractmethod
    def diameter(self) -> float:
        """Largest distance between two points."""

    @property
    @abstractmethod
    def outer_radius(self) -> float:
        """Largest distance from the centre to a point; at least half of `diameter`."""

    @property
    @abstractmethod
    def inner_radius(self) -> float:
        """Radius of a ball within the affine hull, around the centre, that the domain contains."""

    @property
    def geometry(self) -> float | None:
        """Constant mu of a polytope's local oracle, with steps <= sqrt(N) mu radius; or None."""
        return None

    @property
    def twin(self) -> "Domain | None":
        """The same set as a domain with closed forms, if there is one."""
        return None

    @cached_property
    def basis(self) -> Floats | None:
        """Orthonormal columns that span the affine hull's k directions, (N, k); None for R^N."""
        return None

    @property
    def affine_dim(self) -> int:
        """Dimension k of the domain's affine hull."""
        return self.dim if self.basis is None else self.basis.shape[1]

    def coordinates(self, v: Floats) -> Floats:
        """Return coordinates in `basis` of projections of v on its span, (..., N) -> (..., k)."""
        return v if self.basis is None else np.vecmat(np.ascontiguousarray(v), self.basis)

    def embedded(self, u: Floats) -> Floats:
        """Return the vectors with coordinates u in `basis`, (..., k) -> (..., N)."""
        return u if self.basis is None else np.matvec(self.basis, np.ascontiguousarray(u))

    @abstractmethod
    def lowest(self, v: Floats) -> Floats:
        """Return the domain's point x with the least <v, x> (linear oracle), (R, N) -> (R, N)."""

    def project(self, q: Floats) -> Floats:
        """Return the nearest point of the domain, (R, N) -> (R, N)."""
        raise InputError(f"{type(self).__name__} has no exact projection: use Frank-Wolfe.")

    @abstractmethod
    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        """Return True for points that meet all inequalities to `tolerance`, (R, N) -> (R,)."""

    @abstractmethod
    def sampler(self, streams: Streams, name: str) -> Points:
        """Return a sampler of uniform points of the domain; it draws from the stream `name`."""


def sum_zero_basis(dim: int) -> Floats:
    """Return Helmert's basis of {v: sum v = 0}, (N, N - 1).

    Column j has 1 in the first j entries and -j in the next, all divided by sqrt(j (j + 1)).

    >>> sum_zero_basis(3).round(3)
    array([[ 0.707,  0.408],
           [-0.707,  0.408],
           [ 0.   , -0.816]])
    """
    j = np.arange(1, dim)
    columns = np.triu(np.ones((dim, dim - 1)))
    columns[j, j - 1] = -j
    return constant(columns / np.sqrt(j * (j + 1.0)))


def null_basis(equations: Floats) -> Floats:
    """Return an orthonormal basis of the v with `equations @ v = 0`, (M, N) -> (N, N - rank)."""
    _, singular, right = np.linalg.svd(equations)
    rank = int((singular > 1e-10 * max(singular[0], 1.0)).sum())
    return constant(right[rank:].T)


def onto_simplex(q: Floats, total: float = 1.0) -> Floats:
    """Return the nearest point with x >= 0 and sum x = total, (R, N) -> (R, N).

    Held, Wolfe & Crowder (1974): x = max(q - lambda, 0), lambda from the sorted entries. Entries of
    q more than `total` below the largest are 0 in x; they are raised to that limit first, which
    keeps the sums exact if q is huge.

    >>> onto_simplex(np.array([[0.8, 0.6, -9.0]])).round(3)
    array([[0.6, 0.4, 0. ]])
    """
    q = finite(q)
    y = np.maximum(q - q.max(axis=-1, keepdims=True), -total)
    falling = -np.sort(-y, axis=-1)
    thresholds = (falling.cumsum(axis=-1) - total) / np.arange(1, q.shape[-1] + 1)
    support = (falling > thresholds).sum(axis=-1, keepdims=True)
    return np.maximum(y - np.take_along_axis(thresholds, support - 1, axis=-1), 0.0)


Chord: TypeAlias = Callable[[Floats, Floats], tuple[Floats, Floats]]
"""Function that maps points x and unit directions u, (R, N) each, to the ends (R,), (R,) of the
intervals of t for which x + t u is in the domain."""

_MIN_SLOPE = 1e-12
"""Slope below which an inequality does not cut a line; smaller slopes are rounding errors."""


class Walk:
    """Hit-and-run sampler of a domain, started at the centre; its stationary law is uniform."""

    def __init__(self, domain: Domain, chord: Chord, streams: Streams, name: str) -> None:
        self._domain, self._chord = domain, chord
        k = domain.affine_dim
        self._directions = streams.normals(f"{name} direction", k)
        self._shares = streams.uniforms(f"{name} share")
        self._place = np.zeros((len(streams), k))  # in V, so that it cannot drift off the hull

    def __call__(self) -> Floats:
        """Make one step of the walk and return the new point of each replica, (R, N)."""
        domain, g = self._domain, self._directions()
        unit = g / norms(g)
        x = domain.centre + domain.embedded(self._place)
        low, high = self._chord(x, domain.embedded(unit))
        self._place = self._place + (low + self._shares() * (high - low))[:, None] * unit
        return domain.centre + domain.embedded(self._place)


def between(room: Floats, slopes: Floats) -> tuple[Floats, Floats]:
    """Return the ends (R,), (R,) of the interval of t where `t slopes <= room`, arrays (R, M)."""
    room = np.maximum(room, 0.0)
    times = room / np.where(np.abs(slopes) > _MIN_SLOPE, slopes, 1.0)
    low = np.where(slopes < -_MIN_SLOPE, times, -np.inf).max(axis=-1)
    high = np.where(slopes > _MIN_SLOPE, times, np.inf).min(axis=-1)
    return low, high
