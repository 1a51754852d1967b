"""Base polytopes of submodular functions, and of concave functions of the cardinality.

Functions of this module list the values of a set function F on all 2^N subsets of N items: a set is
a number whose bits are its items, and a table holds F at 0..2^N - 1.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from itertools import pairwise
from math import factorial, isfinite, sqrt
from typing import TypeAlias

import numpy as np

from dpbandit.base import Bools, Floats, InputError, Ints, Streams, at_least, inside, whole
from dpbandit.domains.domain import (
    Domain,
    Points,
    Walk,
    between,
    constant,
    finite,
    null_basis,
    sum_zero_basis,
)
from dpbandit.domains.matroids import separated


@dataclass(frozen=True)
class ConcaveBase(Domain):
    """Mixtures of rankings, the polytope `{x: sum_S x <= g(|S|) for all S, sum x = g(N)}` with g
    concave.

    `marginals`, m, are the decreasing differences g(i) - g(i - 1); the corners are all orders of m
    (a permutahedron), for example of (N, ..., 2, 1) for ranks. The diameter is
    sqrt(2 (<m, m> - <m, reversed m>)), the outer radius `|m - mean m|`.

    >>> ConcaveBase((3.0, 2.0, 1.0)).lowest(np.array([[5.0, -4.0, 0.0]]))
    array([[1., 3., 2.]])
    """

    marginals: tuple[float, ...]
    dim: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        m = self.marginals
        if not isinstance(m, tuple) or len(m) < 2:
            raise InputError(f"Expected marginals={m!r} to be a tuple of at least two numbers.")
        for mark in m:
            inside("marginals", mark, -1e9, 1e9, ends=True)
        if any(a < b for a, b in pairwise(m)) or m[0] == m[-1]:
            raise InputError(f"Expected marginals={m!r} to fall, and not all to be equal.")
        object.__setattr__(self, "dim", len(m))

    @cached_property
    def centre(self) -> Floats:
        return constant(np.full(self.dim, np.mean(self.marginals)))

    @cached_property
    def basis(self) -> Floats | None:
        return sum_zero_basis(self.dim)

    @cached_property
    def diameter(self) -> float:
        m = np.array(self.marginals)
        return sqrt(2 * (m @ m - m @ m[::-1]))

    @cached_property
    def outer_radius(self) -> float:
        return float(np.linalg.norm(np.array(self.marginals) - self.centre))

    @cached_property
    def inner_radius(self) -> float:
        # min_s (g(s) - s g(N) / N) / sqrt(s (1 - s / N)), to the facet of a set of s items
        s = np.arange(1, self.dim)
        room = np.cumsum(self.marginals)[:-1] - s * np.mean(self.marginals)
        return float((room / np.sqrt(s * (1 - s / self.dim))).min())

    def lowest(self, v: Floats) -> Floats:
        # Edmonds' greedy: the least entry gets the largest mark, the first of equals first
        v = finite(v)
        x = np.zeros(v.shape)
        order = v.argsort(axis=-1, kind="stable")
        np.put_along_axis(x, order, np.broadcast_to(self.marginals, v.shape), axis=-1)
        return x

    def project(self, q: Floats) -> Floats:
        # q minus an isotonic fit: exact (Lim & Wright, "Efficient Bregman projections onto the
        # permutahedron and related polytopes", AISTATS 2016).
        #
        # With q sorted falling, x = q - f, f the falling sequence nearest to q - marginals, here by
        # the formula f_i = max over b >= i of the min over a <= i of the mean of entries a..b.
        # A gap of sorted q that is wider than all marks may be narrowed to that without moving x:
        # this keeps the means exact where q is huge
        q = finite(q)
        order = (-q).argsort(axis=-1, kind="stable")
        falling = np.take_along_axis(q, order, axis=-1)
        gaps = np.diff(falling, axis=-1, prepend=falling[..., :1])
        falling = np.cumsum(np.maximum(gaps, self.marginals[-1] - self.marginals[0]), axis=-1)
        sums = np.cumsum(falling - self.marginals, axis=-1)
        ends = np.concatenate([np.zeros((*q.shape[:-1], 1)), sums], axis=-1)
        a, b = np.arange(self.dim)[:, None], np.arange(self.dim)
        length = b - a + 1
        means = (ends[..., None, 1:] - ends[..., :-1, None]) / np.where(length > 0, length, 1)
        least = np.minimum.accumulate(np.where(length > 0, means, np.inf), axis=-2)
        fit = np.maximum.accumulate(least[..., ::-1], axis=-1)[..., ::-1]
        chosen = np.diagonal(fit, axis1=-2, axis2=-1)
        x = np.zeros(q.shape)
        np.put_along_axis(x, order, falling - chosen, axis=-1)
        return x

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        bounds = np.cumsum(self.marginals)
        sums = np.cumsum(-np.sort(-x, axis=-1), axis=-1)
        return (sums <= bounds + tolerance).all(axis=-1) & (
            np.abs(sums[..., -1] - bounds[-1]) <= tolerance
        )

    def sampler(self, streams: Streams, name: str) -> Points:
        # Hit-and-run from the centre, a step a call: a Markov chain, stationary law uniform
        return Walk(self, self._chord, streams, name)

    def _chord(self, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        return -self._reach(x, -u), self._reach(x, u)

    def _reach(self, x: Floats, u: Floats) -> Floats:
        """Return the largest t for which x + t u stays in the polytope, (R,).

        Discrete Newton method from above: the most violated inequality at x + t u is that of its j
        largest entries, for some j; reduce t until these N inequalities hold, and repeat.
        """
        bounds, t = np.cumsum(self.marginals), np.full(len(x), self.diameter)
        while True:
            order = (-(x + t[:, None] * u)).argsort(axis=-1, kind="stable")
            room = bounds - np.cumsum(np.take_along_axis(x, order, axis=-1), axis=-1)
            slopes = np.cumsum(np.take_along_axis(u, order, axis=-1), axis=-1)
            shorter = np.minimum(t, between(room, slopes)[1])
            if (shorter == t).all():
                return t
            t = shorter


SetFunction: TypeAlias = Callable[[frozenset[int]], float]


@lru_cache(maxsize=2**16)
def value(function: SetFunction, mask: int) -> float:
    """Return F of one set, a number whose bits are its items; values are cached.

    >>> value(len, 0b1011)
    3.0
    """
    items = frozenset(i for i in range(mask.bit_length()) if mask >> i & 1)
    found = float(function(items))
    if not isfinite(found):
        raise InputError(f"Expected the function to be finite, not {found} at {set(items)}.")
    return found


def values(function: SetFunction, masks: Ints) -> Floats:
    """Return F of each set in `masks`, numbers whose bits are the sets' items, in their shape."""
    flat = [value(function, mask) for mask in masks.ravel().tolist()]
    return np.array(flat).reshape(masks.shape)


def members(dim: int) -> Floats:
    """Return the items (columns) of all sets (rows) as 0 and 1, (2^N, N)."""
    return (np.arange(2**dim)[:, None] >> np.arange(dim) & 1).astype(float)


def check_submodular(table: Floats, dim: int, tolerance: float) -> None:
    """Raise `InputError` unless F(S + i) + F(S + j) >= F(S + i + j) + F(S) for all S, i, j."""
    masks = np.arange(2**dim)
    for i in range(dim):
        for j in range(i):
            joint = table[masks | 1 << i | 1 << j] + table
            if (table[masks | 1 << i] + table[masks | 1 << j] - joint).min() < -tolerance:
                raise InputError(f"Expected the function to be submodular: see items {j}, {i}.")


def shapley(table: Floats, dim: int) -> Floats:
    """Return the Shapley value of F = `table`, (N,): mean gains of items over all their orders.

    Item i has the sum over sets S without i of `|S|! (N - |S| - 1)! / N! (F(S + i) - F(S))`.
    """
    masks = np.arange(2**dim)
    weights = [factorial(s) * factorial(dim - s - 1) / factorial(dim) for s in range(dim)]
    share = np.append(weights, 0.0)[members(dim).sum(axis=-1).astype(int)]
    return np.array([share @ (table[masks | 1 << i] - table) for i in range(dim)])


def farthest_order(table: Floats, centre: Floats) -> float:
    """Return the largest distance from `centre` to a corner, the gains of F along an order.

    Squared distance, set by set: best[S + i] = max_i best[S] + (F(S + i) - F(S) - centre_i)^2.
    """
    dim = len(centre)
    masks, sizes, best = np.arange(2**dim), members(dim).sum(axis=-1), np.zeros(2**dim)
    for size in range(1, dim + 1):
        now = masks[sizes == size]
        for i in range(dim):
            last = now[now >> i & 1 > 0]
            before = last ^ 1 << i
            step = (table[last] - table[before] - centre[i]) ** 2
            best[last] = np.maximum(best[last], best[before] + step)
    return sqrt(best[-1])


MAX_LISTED_ITEMS = 12
"""Largest number N of items whose 2^N subsets are all listed."""
_RELATIVE_TOLERANCE = 1e-9  # tolerance of inequalities, as a share of the largest value


@dataclass(frozen=True)
class SubmodularBase(Domain):
    """The base polytope {x: x(S) <= F(S) for all S, x(all) = F(all)}, F submodular with F({}) = 0.

    `function` F takes a frozenset of items 0..N-1; F(A | B) + F(A & B) <= F(A) + F(B).

    Up to 12 items all subsets are listed: F is checked, the centre is the Shapley value (the mean
    corner over all orders), and the radii are exact. With more items the caller must give
    `given_centre` and `inner_radius`, which are not checked; they imply that the affine hull is
    sum x = F(all). The outer radius is then a bound from F(all) - F(all but i) <= x_i <= F({i}).
    The diameter is always a bound.

    >>> domain = SubmodularBase(lambda items: float(min(len(items), 2)), 3)
    >>> domain.lowest(np.array([[5.0, -4.0, 0.0]]))
    array([[0., 1., 1.]])
    """

    function: SetFunction
    dim: int
    inner_radius: float = 0.0
    """Radius of a ball around the centre; if 0, it is computed from the listed subsets"""
    given_centre: tuple[float, ...] | None = None
    has_projection = False

    def __post_init__(self) -> None:
        whole("dim", self.dim, 2, 62)
        at_least("inner_radius", self.inner_radius, 0)
        if value(self.function, 0) != 0:
            raise InputError("Expected the function to be 0 at the empty set.")
        if self.given_centre is not None and len(self.given_centre) != self.dim:
            raise InputError(f"Expected given_centre={self.given_centre!r} of length {self.dim}.")
        if self._listed:
            self._check()
        elif self.given_centre is None or self.inner_radius == 0:
            raise InputError(
                f"Expected given_centre and inner_radius with dim={self.dim} > {MAX_LISTED_ITEMS}."
            )

    def _check(self) -> None:
        """Check F, the centre and `inner_radius` on all subsets; if the radius is 0, compute it."""
        check_submodular(self._table, self.dim, _RELATIVE_TOLERANCE * self._scale)
        if self.affine_dim == 0:
            raise InputError("Expected the function not to be additive: its base is one point.")
        lengths = np.linalg.norm(self.coordinates(self._members), axis=-1)
        facing = lengths > _RELATIVE_TOLERANCE
        away = self._members[~facing] @ self.centre - self._table[~facing]
        room = (self._table - self._members @ self.centre)[facing] / lengths[facing]
        r = float(room.min())
        if r < _RELATIVE_TOLERANCE or np.abs(away).max() > _RELATIVE_TOLERANCE * self._scale:
            raise InputError(f"Expected given_centre={self.given_centre} inside the base polytope.")
        if self.inner_radius > r * (1 + _RELATIVE_TOLERANCE):
            raise InputError(
                f"Expected inner_radius={self.inner_radius} <= {r}, the nearest facet."
            )
        if self.inner_radius == 0:
            object.__setattr__(self, "inner_radius", r)

    @property
    def _listed(self) -> bool:
        return self.dim <= MAX_LISTED_ITEMS

    @cached_property
    def _table(self) -> Floats:
        return values(self.function, np.arange(2**self.dim))

    @property
    def _scale(self) -> float:
        return max(1.0, float(np.abs(self._table).max()))

    @cached_property
    def _members(self) -> Floats:
        return members(self.dim)

    @cached_property
    def _shapley(self) -> Floats:
        return constant(shapley(self._table, self.dim))

    @cached_property
    def centre(self) -> Floats:
        return self._shapley if self.given_centre is None else constant(self.given_centre)

    @cached_property
    def basis(self) -> Floats | None:
        # V: vectors of sum 0 on every S with x(S) = F(S) on all of C; unless F has parts, S = all
        if not self._listed:
            return sum_zero_basis(self.dim)
        slack = self._table - self._members @ self._shapley
        return null_basis(self._members[slack <= _RELATIVE_TOLERANCE * self._scale])

    @cached_property
    def _ranges(self) -> tuple[Floats, Floats]:
        """Least and largest value of each coordinate."""
        everything, single = (1 << self.dim) - 1, 1 << np.arange(self.dim)
        rest = values(self.function, everything - single)
        return value(self.function, everything) - rest, values(self.function, single)

    @cached_property
    def diameter(self) -> float:
        low, high = self._ranges
        return min(2 * self.outer_radius, float(np.linalg.norm(high - low)))

    @cached_property
    def outer_radius(self) -> float:
        # To the farthest corner; or a bound
        if not self._listed:
            low, high = self._ranges
            return float(np.linalg.norm(np.maximum(high - self.centre, self.centre - low)))
        return farthest_order(self._table, self.centre)

    def lowest(self, v: Floats) -> Floats:
        # Edmonds' greedy: items by rising v, each gets what it adds to F
        order = finite(v).argsort(axis=-1, kind="stable")
        masks = np.cumsum(np.int64(1) << order, axis=-1)
        totals = self._table[masks] if self._listed else values(self.function, masks)
        x = np.zeros(order.shape)
        np.put_along_axis(x, order, np.diff(totals, axis=-1, prepend=0.0), axis=-1)
        return x

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        # All inequalities within tolerance, up to 12 items.
        #
        # Beyond there are too many: False is proved by a hyperplane between x and the domain that
        # Frank-Wolfe found in 200 steps; True says that it found none
        x = finite(x, np.inf)
        if not self._listed:
            return ~separated(self, x, tolerance)
        sums = np.matvec(self._members, x)
        return (sums <= self._table + tolerance).all(axis=-1) & (
            np.abs(sums[..., -1] - self._table[-1]) <= tolerance
        )

    def sampler(self, streams: Streams, name: str) -> Points:
        # Hit-and-run from the centre, a step a call: a Markov chain, stationary law uniform.
        #
        # Up to 12 items: with more, the inequalities are not listed
        if not self._listed:
            raise InputError(f"Expected dim={self.dim} <= {MAX_LISTED_ITEMS} for a sampler.")
        return Walk(self, self._chord, streams, name)

    def _chord(self, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        room = self._table - np.matvec(self._members, x)
        return between(room, np.matvec(self._members, u))
