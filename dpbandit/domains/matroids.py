"""Uniform, partition and graphic matroids: mixtures of their bases and independent sets."""

from dataclasses import dataclass, field
from functools import cached_property, partial
from math import isqrt, sqrt
from typing import TypeAlias

import numpy as np

from dpbandit.base import MOST_DIM, Bools, Floats, InputError, Ints, Streams, at_least, rows, whole
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


def onto_capped_simplex(q: Floats, total: int) -> Floats:
    """Return the nearest point with 0 <= x <= 1 and sum x = total, 0 < total < N, (R, N) -> (R, N).

    x = clip(q - lambda, 0, 1), whose sum decreases in lambda and is linear between the 2 N numbers
    q_i - 1 and q_i: binary search among these, then one interpolation. With q shifted so that its
    total-th largest entry is 0 there is a lambda in [-1, 0] (the sum is >= total at -1 and
    < total at 0), hence q may be cut off at +-1.

    >>> onto_capped_simplex(np.array([[5.0, 0.9, 0.7, -3.0]]), 2).round(3)
    array([[1. , 0.6, 0.4, 0. ]])
    """
    q = finite(q)
    pivot = np.sort(q, axis=-1)[..., -total, None]
    y = np.clip(q - pivot, -1.0, 1.0)
    corners = np.sort(np.clip(np.concatenate([y - 1, y], axis=-1), -1.0, 0.0), axis=-1)

    def cut(index: Ints) -> tuple[Floats, Floats]:
        corner = np.take_along_axis(corners, index, axis=-1)
        return corner, np.clip(y - corner, 0.0, 1.0).sum(axis=-1, keepdims=True)

    low = np.zeros((*q.shape[:-1], 1), dtype=np.int64)
    high = np.full_like(low, corners.shape[-1] - 1)
    for _ in range(corners.shape[-1].bit_length()):
        middle = (low + high) // 2
        enough = cut(middle)[1] >= total
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    (left, most), (right, least) = cut(low), cut(high)
    share = (most - total) / np.where(most > least, most - least, 1.0)
    return np.clip(y - (left + share * (right - left)), 0.0, 1.0)


def separated(domain: Domain, q: Floats, tolerance: float, budget: int = 200) -> Bools:
    """Return True for rows of q surely farther than `tolerance` from the domain C, (R, N) -> (R,).

    Frank-Wolfe steps move a point x of C towards q until all of C is more than `tolerance` behind q
    in the direction q - x. False means that this did not happen within `budget` steps.
    """
    q = finite(q)
    x = np.broadcast_to(domain.centre, q.shape)
    apart = np.zeros(len(q), dtype=np.bool_)
    for _ in range(budget):
        slope = x - q
        s = domain.lowest(slope)
        length = np.sqrt(np.vecdot(slope, slope))
        apart |= np.vecdot(slope, s - q) > tolerance * length
        span = np.vecdot(x - s, x - s)
        step = np.vecdot(slope, x - s) / np.where(span > 0, span, 1.0)
        x = x + np.clip(step, 0.0, 1.0)[:, None] * (s - x)
    return apart


@dataclass(frozen=True)
class Product(Domain):
    """Product C_1 x ... x C_m: a point is the concatenation of one point of each part.

    Squares of diameter and outer radius are sums over the parts; the inner radius is the minimum.

    >>> from dpbandit.domains.balls import Ball
    >>> from dpbandit.domains.balls import Box
    >>> Product((Ball(2), Box(1))).lowest(np.array([[3.0, 4.0, -1.0]]))
    array([[-0.6, -0.8,  1. ]])
    """

    parts: tuple[Domain, ...]
    dim: int = field(init=False, repr=False)
    has_projection: bool = field(init=False, repr=False)

    def __post_init__(self) -> None:
        parts = self.parts
        if not (isinstance(parts, tuple) and parts and all(isinstance(p, Domain) for p in parts)):
            raise InputError(f"Expected parts={parts!r} to be a tuple of at least one domain.")
        object.__setattr__(self, "dim", sum(part.dim for part in parts))
        object.__setattr__(self, "has_projection", all(part.has_projection for part in parts))

    @cached_property
    def centre(self) -> Floats:
        return constant(np.concatenate([part.centre for part in self.parts]))

    @cached_property
    def basis(self) -> Floats | None:
        # The parts' bases along the diagonal; None where all parts are full-dimensional
        if all(part.basis is None for part in self.parts):
            return None
        basis = np.zeros((self.dim, sum(part.affine_dim for part in self.parts)))
        row = column = 0
        for part in self.parts:
            block = np.eye(part.dim) if part.basis is None else part.basis
            basis[row : row + part.dim, column : column + part.affine_dim] = block
            row, column = row + part.dim, column + part.affine_dim
        return constant(basis)

    @cached_property
    def diameter(self) -> float:
        return sqrt(sum(part.diameter**2 for part in self.parts))

    @cached_property
    def outer_radius(self) -> float:
        return sqrt(sum(part.outer_radius**2 for part in self.parts))

    @cached_property
    def inner_radius(self) -> float:
        return min(part.inner_radius for part in self.parts)

    def lowest(self, v: Floats) -> Floats:
        return np.concatenate([p.lowest(w) for p, w in self._split(v)], axis=-1)

    def project(self, q: Floats) -> Floats:
        return np.concatenate([p.project(w) for p, w in self._split(q)], axis=-1)

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        return np.all([part.contains(w, tolerance) for part, w in self._split(x)], axis=0)

    def sampler(self, streams: Streams, name: str) -> Points:
        # The parts' samplers, independent: as exact as they are
        draws = [part.sampler(streams, f"{name} {i}") for i, part in enumerate(self.parts)]
        return partial(_joined, draws)

    def _split(self, v: Floats) -> list[tuple[Domain, Floats]]:
        ends = np.cumsum([part.dim for part in self.parts])[:-1]
        return list(zip(self.parts, np.split(v, ends, axis=-1), strict=True))


def _joined(draws: list[Points]) -> Floats:
    return np.concatenate([draw() for draw in draws], axis=-1)


@dataclass(frozen=True)
class Hypersimplex(Domain):
    """The polytope {0 <= x <= 1, sum x = rank}: mixtures of the sets of exactly `rank` of N items.

    With q = rank and m = min(q, N - q): diameter sqrt(2 m), outer radius sqrt(q (N - q) / N), inner
    radius m / sqrt(N (N - 1)).

    >>> import numpy as np
    >>> Hypersimplex(4, 2).lowest(np.array([[3.0, -4.0, 0.0, 1.0]]))
    array([[0., 1., 1., 0.]])
    """

    dim: int
    rank: int

    def __post_init__(self) -> None:
        whole("dim", self.dim, 2, MOST_DIM)
        whole("rank", self.rank, 1, self.dim - 1)

    @cached_property
    def centre(self) -> Floats:
        return constant(np.full(self.dim, self.rank / self.dim))

    @cached_property
    def basis(self) -> Floats | None:
        return sum_zero_basis(self.dim)

    @property
    def diameter(self) -> float:
        # sqrt(2 m), between two sets that share as little as possible
        return sqrt(2 * min(self.rank, self.dim - self.rank))

    @property
    def geometry(self) -> float:
        return self.diameter

    @property
    def outer_radius(self) -> float:
        # sqrt(q (N - q) / N), to any set
        return sqrt(self.rank * (self.dim - self.rank) / self.dim)

    @property
    def inner_radius(self) -> float:
        # m / sqrt(N (N - 1)), to the facet x_i = 0 or x_i = 1
        return min(self.rank, self.dim - self.rank) / sqrt(self.dim * (self.dim - 1))

    def lowest(self, v: Floats) -> Floats:
        return _least(finite(v), self.rank)

    def project(self, q: Floats) -> Floats:
        return onto_capped_simplex(q, self.rank)

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        return (
            (x >= -tolerance).all(axis=-1)
            & (x <= 1 + tolerance).all(axis=-1)
            & (np.abs(x.sum(axis=-1) - self.rank) <= tolerance)
        )

    def sampler(self, streams: Streams, name: str) -> Points:
        # Hit-and-run from the centre, a step a call: a Markov chain, stationary law uniform
        return Walk(self, self._chord, streams, name)

    def _chord(self, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        return between(np.concatenate([x, 1 - x], axis=-1), np.concatenate([-u, u], axis=-1))


@dataclass(frozen=True)
class IndependentSets(Domain):
    """The polytope {0 <= x <= 1, sum x <= rank}: mixtures of the sets of at most `rank` of N items.

    Entries of the centre are min(1/2, q / (N + sqrt N)), with q = rank: it is as far from x_i = 0
    as from sum x = q, or in the middle of the cube, and this number is also the inner radius. The
    diameter is sqrt(min(N, 2 q)).

    >>> import numpy as np
    >>> IndependentSets(4, 2).lowest(np.array([[3.0, -4.0, 0.0, 1.0]]))
    array([[0., 1., 0., 0.]])
    """

    dim: int
    rank: int

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1, MOST_DIM)
        whole("rank", self.rank, 1, self.dim)

    @cached_property
    def centre(self) -> Floats:
        return constant(np.full(self.dim, self.inner_radius))

    @property
    def diameter(self) -> float:
        # sqrt(min(N, 2 q)), between two disjoint sets
        return sqrt(min(self.dim, 2 * self.rank))

    @property
    def outer_radius(self) -> float:
        # sqrt(q (1 - a)^2 + (N - q) a^2); the full sets are farthest, because a <= 1/2
        a, q = self.inner_radius, self.rank
        return sqrt(q * (1 - a) ** 2 + (self.dim - q) * a**2)

    @property
    def inner_radius(self) -> float:
        return min(0.5, self.rank / (self.dim + sqrt(self.dim)))

    def lowest(self, v: Floats) -> Floats:
        v = finite(v)
        return np.where(v < 0, _least(v, self.rank), 0.0)

    def project(self, q: Floats) -> Floats:
        # clip(q, 0, 1) where its sum is at most rank; else the projection on sum x = rank
        clipped = np.clip(finite(q), 0.0, 1.0)
        if self.rank == self.dim:
            return clipped
        light = clipped.sum(axis=-1, keepdims=True) <= self.rank
        return np.where(light, clipped, onto_capped_simplex(q, self.rank))

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        return (
            (x >= -tolerance).all(axis=-1)
            & (x <= 1 + tolerance).all(axis=-1)
            & (x.sum(axis=-1) <= self.rank + tolerance)
        )

    def sampler(self, streams: Streams, name: str) -> Points:
        # Hit-and-run from the centre, a step a call: a Markov chain, stationary law uniform
        return Walk(self, self._chord, streams, name)

    def _chord(self, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        room = self.rank - x.sum(axis=-1, keepdims=True)
        slope = u.sum(axis=-1, keepdims=True)
        return between(
            np.concatenate([x, 1 - x, room], axis=-1), np.concatenate([-u, u, slope], axis=-1)
        )


def _least(v: Floats, count: int) -> Floats:
    """Return a mask (0, 1) of the `count` smallest entries of each row; of equal ones the first."""
    order = v.argsort(axis=-1, kind="stable")
    chosen = np.zeros(v.shape)
    np.put_along_axis(chosen, order[..., :count], 1.0, axis=-1)
    return chosen


def partition_base(blocks: tuple[tuple[int, int], ...]) -> Product:
    """Return the polytope of mixtures of sets with exactly q of the N items of each block, where
    `blocks` is ((q, N), ...).

    The result is a product of hypersimplices. Omit blocks that leave no choice (q = 0 or q = N).

    >>> partition_base(((1, 3), (2, 4))).affine_dim
    5
    """
    if not blocks:
        raise InputError("Expected blocks=() to hold at least one pair (q, N).")
    for pair in blocks:
        if len(pair) != 2:
            raise InputError(f"Expected the block {pair!r} to be a pair (q, N).")
    return Product(tuple(Hypersimplex(dim=N, rank=q) for q, N in blocks))


Edges: TypeAlias = tuple[tuple[int, int], ...]
"""Edges of a graph as pairs of its vertices 0..n-1."""


def complete(vertices: int) -> Edges:
    """Return the edges of the complete graph, pairs of vertices a < b in lexicographic order."""
    return tuple((a, b) for a in range(vertices) for b in range(a + 1, vertices))


def check_connected(edges: Edges, vertices: int) -> None:
    """Raise `InputError` unless the edges are simple and connect the vertices 0..n-1."""
    if not isinstance(edges, tuple):
        raise InputError(f"Expected edges={edges!r} to be a tuple of pairs of vertices.")
    seen = set()
    for edge in edges:
        ends = frozenset(edge)
        if not isinstance(edge, tuple) or len(edge) != 2 or len(ends) != 2 or ends in seen:
            raise InputError(f"Expected the edge {edge!r} to join two vertices, and only once.")
        for vertex in edge:
            whole("vertex", vertex, 0, vertices - 1)
        seen.add(ends)
    reached = {0}
    for _ in range(vertices):
        reached.update(v for edge in edges if reached & set(edge) for v in edge)
    if len(reached) < vertices:
        raise InputError(f"Expected the edges to connect all {vertices} vertices.")


def kruskal(weights: Floats, edges: Ints, vertices: int) -> Floats:
    """Return a spanning tree of least weight, 1 on its edges, for each row of edge weights.

    Kruskal (1956), all rows at once: take the next lightest edge if it joins two components.
    Weights (R, m), edges (m, 2) -> (R, m); a spanning forest if the graph is not connected.
    """
    R, m = weights.shape
    order = weights.argsort(axis=-1, kind="stable")
    tree, component = np.zeros((R, m)), np.tile(np.arange(vertices), (R, 1))
    for step in range(m):
        edge = order[:, step]
        a, b = component[rows(R), edges[edge, 0]], component[rows(R), edges[edge, 1]]
        tree[rows(R), edge] = a != b
        component = np.where(component == b[:, None], a[:, None], component)
    return tree


def mean_tree(edges: Ints, vertices: int) -> Floats:
    """Return the mean of all spanning trees, (m,), the edges' effective resistances (Kirchhoff)."""
    incidence = _incidence(edges, vertices)
    inverse = np.linalg.pinv(incidence @ incidence.T, hermitian=True)
    return np.einsum("ve,vw,we->e", incidence, inverse, incidence)


def blocks(edges: Ints, vertices: int) -> Ints:
    """Return a number for each edge, (m,), equal for two edges exactly if a cycle contains both.

    A bridge has its own number. Fundamental cycles of one spanning tree are joined if they share
    edges; with B the incidence matrix, the cycle of edge f has the tree's edges e with y_e != 0 in
    the solution of B_tree y = B_f, columns of B.
    """
    incidence = _incidence(edges, vertices)
    tree = kruskal(np.zeros((1, len(edges))), edges, vertices)[0] > 0
    cycles = np.abs(np.linalg.lstsq(incidence[:, tree], incidence, rcond=None)[0]) > 0.5
    shared = (cycles.T.astype(float) @ cycles) > 0
    label = np.arange(len(edges))
    while True:
        lowest = np.where(shared, label, len(edges)).min(axis=-1)
        if (lowest == label).all():
            return label
        label = lowest


def inner_edges(edges: Ints, vertices: int) -> tuple[Bools, Ints]:
    """Return masks (M, m) of edges inside, and sizes (M,), of vertex sets with an edge inside."""
    codes = np.arange(2**vertices)[:, None]
    members = (codes >> np.arange(vertices)) & 1 > 0  # (2^n, n)
    inner = members[:, edges[:, 0]] & members[:, edges[:, 1]]
    some = inner.any(axis=-1)
    return inner[some], members[some].sum(axis=-1)


def _incidence(edges: Ints, vertices: int) -> Floats:
    """Return the incidence matrix: +1 and -1 at the ends of every edge, (n, m)."""
    incidence = np.zeros((vertices, len(edges)))
    incidence[edges[:, 0], np.arange(len(edges))] = 1.0
    incidence[edges[:, 1], np.arange(len(edges))] = -1.0
    return incidence


MAX_LISTED = 12
"""Largest number of vertices whose subsets are all listed (4,096 inequalities)."""


@dataclass(frozen=True)
class SpanningTrees(Domain):
    """Mixtures of the spanning trees of a connected graph, with one coordinate per edge.

    The polytope (Edmonds, 1971) is x >= 0, sum x = n - 1 with n = `vertices`, and for all vertex
    sets S the sum of x over edges inside S is at most `|S| - 1`. Without `edges` the graph is
    complete, with edges (0, 1), (0, 2), ...

    The polytope is a product over the blocks of the graph (edges on common cycles), so the sum of x
    is constant on every block, and x is always 1 on a bridge. The centre is the mean of all trees.

    `inner_radius` is computed, by a formula on a complete graph and else over all vertex sets for
    up to 12 vertices. On larger incomplete graphs the caller must give it, and it is not checked.
    `diameter` is exact on a complete graph, else a bound; its square is at most the sum over the
    blocks of 2 min(rank, edges - rank).

    >>> SpanningTrees(3).lowest(np.array([[5.0, -4.0, 0.0]]))
    array([[0., 1., 1.]])
    """

    vertices: int
    edges: Edges | None = None
    inner_radius: float = 0.0
    """Radius of a ball around the centre that the polytope contains; computed if 0"""
    dim: int = field(init=False, repr=False)
    has_projection = False

    def __post_init__(self) -> None:
        whole("vertices", self.vertices, 3, isqrt(2 * MOST_DIM))
        if self.edges is not None:
            check_connected(self.edges, self.vertices)
        object.__setattr__(self, "dim", len(self._pairs))
        if (self._block_sizes == 1).all():
            raise InputError("Expected the edges to hold a cycle: a tree is a single point.")
        at_least("inner_radius", self.inner_radius, 0)
        if self._complete or self._small:
            r = self._radius()
            if self.inner_radius > r * (1 + 1e-9):
                raise InputError(f"Expected inner_radius={self.inner_radius} <= {r}, a facet's.")
            object.__setattr__(self, "inner_radius", self.inner_radius or r)
        elif self.inner_radius == 0:
            raise InputError(
                f"Expected inner_radius=0.0 > 0: with vertices={self.vertices} > {MAX_LISTED} "
                "it is computed for a complete graph alone."
            )

    @cached_property
    def _pairs(self) -> Ints:
        return np.array(complete(self.vertices) if self.edges is None else self.edges)

    @property
    def _complete(self) -> bool:
        return len(self._pairs) == self.vertices * (self.vertices - 1) // 2

    @property
    def _small(self) -> bool:
        return self.vertices <= MAX_LISTED

    @cached_property
    def _blocks(self) -> Ints:
        n = self.vertices
        return np.zeros(self.dim, np.int64) if self._complete else blocks(self._pairs, n)

    @cached_property
    def _members(self) -> Floats:
        """Mask of the edges that belong to each block, 0 or 1, (blocks, m)."""
        return (np.unique(self._blocks)[:, None] == self._blocks).astype(float)

    @property
    def _block_sizes(self) -> Floats:
        return self._members.sum(axis=-1)

    @cached_property
    def _ranks(self) -> Floats:
        """Number of edges that a spanning tree has in each block."""
        tree = kruskal(np.zeros((1, self.dim)), self._pairs, self.vertices)[0]
        return np.matvec(self._members, tree)

    @cached_property
    def _inequalities(self) -> tuple[Floats, Floats]:
        """Rows (M, m) and bounds (M,) of the inequalities for edges inside M vertex sets."""
        inner, sizes = inner_edges(self._pairs, self.vertices)
        return inner.astype(float), sizes - 1.0

    @cached_property
    def centre(self) -> Floats:
        # The mean of all trees; 2 / n everywhere on a complete graph
        if self._complete:
            return constant(np.full(self.dim, 2 / self.vertices))
        return constant(mean_tree(self._pairs, self.vertices))

    @cached_property
    def basis(self) -> Floats | None:
        one = len(self._members) == 1
        return sum_zero_basis(self.dim) if one else null_basis(self._members)

    @cached_property
    def diameter(self) -> float:
        # sqrt(2 min(n - 1, m - n + 1)) on a complete graph; else a bound
        ranks = self._ranks
        bound = sqrt(2 * np.minimum(ranks, self._block_sizes - ranks).sum())
        return bound if self._complete else min(bound, 2 * self.outer_radius)

    @cached_property
    def outer_radius(self) -> float:
        # To the farthest tree; `|1_T - c|^2 = |c|^2 + sum_T (1 - 2 c)`, so one tree suffices
        farthest = self.lowest(2 * self.centre[None] - 1)[0]
        return float(np.linalg.norm(farthest - self.centre))

    def _radius(self) -> float:
        """Return the distance from the centre to the nearest facet of the polytope."""
        if self._complete:
            s, n, m = np.arange(2, self.vertices), self.vertices, self.dim
            q = s * (s - 1) / 2
            walls = (s - 1) * (n - s) / (n * np.sqrt(q * (1 - q / m)))
            return float(min(2 / n / sqrt(1 - 1 / m), walls.min()))
        rows, bounds = self._inequalities
        rows = np.concatenate([rows, -np.eye(self.dim)])
        room = np.append(bounds, np.zeros(self.dim)) - rows @ self.centre
        inside = rows @ self._members.T  # sum of the inequality's weights in each block
        squares = (rows**2).sum(axis=-1) - (inside**2 / self._block_sizes).sum(axis=-1)
        moving = squares > 1e-9  # else the inequality holds with equality on all of C
        return float((room[moving] / np.sqrt(squares[moving])).min())

    def lowest(self, v: Floats) -> Floats:
        # Kruskal's tree
        return kruskal(finite(v), self._pairs, self.vertices)

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        # All inequalities within tolerance, up to 12 vertices.
        #
        # Beyond there are too many: False is proved by a hyperplane between x and all trees that
        # Frank-Wolfe found in 200 steps; True says that it found none
        x = finite(x, np.inf)
        sums = np.matvec(self._members, x)
        fine: Bools = (x >= -tolerance).all(axis=-1) & (
            np.abs(sums - self._ranks) <= tolerance
        ).all(axis=-1)
        if not self._small:
            return fine & ~separated(self, x, tolerance)
        rows, bounds = self._inequalities
        return fine & (np.matvec(rows, x) <= bounds + tolerance).all(axis=-1)

    def sampler(self, streams: Streams, name: str) -> Points:
        # Hit-and-run from the centre, a step a call: a Markov chain, stationary law uniform.
        #
        # Up to 12 vertices: with more, the inequalities are not listed
        if not self._small:
            raise InputError(f"Expected vertices={self.vertices} <= {MAX_LISTED} for a sampler.")
        return Walk(self, self._chord, streams, name)

    def _chord(self, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        rows, bounds = self._inequalities
        room = np.concatenate([x, bounds - np.matvec(rows, x)], axis=-1)
        return between(room, np.concatenate([-u, np.matvec(rows, u)], axis=-1))
