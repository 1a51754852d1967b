"""Unit flows: mixtures of the paths from a source to a sink."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import sqrt
from typing import TypeAlias

import numpy as np

from dpbandit.base import Bools, Floats, InputError, Ints, Streams, rows
from dpbandit.domains.domain import Domain, Points, Walk, between, constant, finite, null_basis

Arcs: TypeAlias = Sequence[tuple[int, int]]
"""Edges as pairs (tail, head) of nodes, numbered so that tail < head."""


def numbered(edges: Sequence[tuple[Hashable, Hashable]]) -> dict[Hashable, int]:
    """Number nodes so that edges go to higher numbers; raise `InputError` if there is a cycle."""
    waiting = dict.fromkeys(node for edge in edges for node in edge)
    number: dict[Hashable, int] = {}
    while waiting:
        blocked = {head for tail, head in edges if tail in waiting}
        free = [node for node in waiting if node not in blocked]
        if not free:
            raise InputError(
                f"Expected no cycle in the edges, and there is one in {list(waiting)}."
            )
        for node in free:
            number[node] = len(number)
            del waiting[node]
    return number


def path_counts(arcs: Arcs, source: int, sink: int, nodes: int) -> tuple[list[int], int]:
    """Return the number of paths from source to sink that use each edge, and of all paths."""
    to, onward = [0] * nodes, [0] * nodes
    to[source] = onward[sink] = 1
    for tail, head in sorted(arcs):
        to[head] += to[tail]
    for tail, head in sorted(arcs, reverse=True):
        onward[tail] += onward[head]
    return [to[tail] * onward[head] for tail, head in arcs], to[sink]


def leaving(arcs: Arcs, used: Sequence[bool], nodes: int) -> list[Ints]:
    """Return the edges out of every node that are on a path from source to sink."""
    out: list[list[int]] = [[] for _ in range(nodes)]
    for e, (tail, _) in enumerate(arcs):
        if used[e]:
            out[tail].append(e)
    return [np.array(edges, dtype=np.int64) for edges in out]


def even_split(heads: Ints, out: Sequence[Ints], source: int) -> Floats:
    """Return the unit flow through the m edges, (m,), that every node splits evenly."""
    at, flow = np.zeros(len(out)), np.zeros(len(heads))
    at[source] = 1.0
    for node, edges in enumerate(out):
        for e in edges:
            flow[e] = at[node] / len(edges)
            at[heads[e]] += flow[e]
    return flow


def farthest_paths(heads: Ints, out: Sequence[Ints], source: int) -> int:
    """Return the largest number of edges that are on exactly one of two paths.

    Dynamic programme over the end nodes u and v of two paths: the path with the lower end node is
    extended, at a common node both are, and an edge that both take counts 0. best[u, v] is the
    largest count from u and v to the sink.
    """
    nodes = len(out)
    best = np.zeros((nodes, nodes), dtype=np.int64)
    for u in reversed(range(source, nodes)):
        edges = out[u]
        if len(edges):
            after = heads[edges]
            best[u, u + 1 :] = best[u + 1 :, u] = 1 + best[after, u + 1 :].max(axis=0)
            apart = 2 * (edges[:, None] != edges)
            best[u, u] = (apart + best[after[:, None], after]).max()
    return int(best[source, source])


def shortest_paths(
    weights: Floats, heads: Ints, out: Sequence[Ints], source: int, sink: int
) -> Floats:
    """Return the lightest path, 1 on its edges, for each row of edge weights, (R, m) -> (R, m).

    Bellman's recursion from sink to source; weights may be negative. At ties the first edge wins.
    """
    R, m = weights.shape
    to_go, choice = np.zeros((R, len(out))), np.zeros((R, len(out)), dtype=np.int64)
    for node in reversed(range(source, sink)):
        if len(out[node]):
            costs = weights[:, out[node]] + to_go[:, heads[out[node]]]
            best = costs.argmin(axis=-1)
            choice[:, node], to_go[:, node] = out[node][best], costs[rows(R), best]
    path, at = np.zeros((R, m)), np.full(R, source)
    for node in range(source, sink):
        here = at == node
        path[here, choice[here, node]] = 1.0
        at = np.where(here, heads[choice[:, node]], at)
    return path


_MIN_SQUARE = 1e-9
"""Squared norm of a row of `basis` below which the row's coordinate counts as constant."""


@dataclass(frozen=True)
class Flows(Domain):
    """Flows of one unit from source to sink, x >= 0, on a directed graph without cycles.

    There is one coordinate per edge (parallel edges allowed): always 0 on an edge that no path
    uses, always 1 on an edge that all paths use. Its affine hull has dimension m - n + 1, with m
    edges and n nodes on paths.

    The centre c is the mean of all paths or the flow that splits evenly at every node, whichever
    has the larger inner radius min_e c_e / sqrt(P_ee), with P the projector on the hull's
    directions. Diameter and outer radius are exact.

    >>> Flows((("s", "a"), ("a", "t"), ("s", "t")), "s", "t").lowest(np.array([[1.0, 1.0, 3.0]]))
    array([[1., 1., 0.]])
    """

    edges: tuple[tuple[Hashable, Hashable], ...]
    source: Hashable
    sink: Hashable
    dim: int = field(init=False, repr=False)
    has_projection = False

    def __post_init__(self) -> None:
        pairs = isinstance(self.edges, tuple) and all(isinstance(e, tuple) for e in self.edges)
        if not pairs or any(len(edge) != 2 for edge in self.edges):
            raise InputError(f"Expected edges={self.edges!r} to be a tuple of pairs (tail, head).")
        for name in ("source", "sink"):
            if getattr(self, name) not in self._number:
                raise InputError(f"Expected {name}={getattr(self, name)!r} to be on an edge.")
        if self._counts[1] < 2:
            raise InputError(f"Expected two paths from source to sink, not {self._counts[1]}.")
        object.__setattr__(self, "dim", len(self.edges))

    @cached_property
    def _number(self) -> dict[Hashable, int]:
        return numbered(self.edges)

    @cached_property
    def _arcs(self) -> Arcs:
        return [(self._number[tail], self._number[head]) for tail, head in self.edges]

    @property
    def _ends(self) -> tuple[int, int]:
        return self._number[self.source], self._number[self.sink]

    @cached_property
    def _counts(self) -> tuple[list[int], int]:
        return path_counts(self._arcs, *self._ends, len(self._number))

    @cached_property
    def _used(self) -> list[bool]:
        """Mask of the edges that are on a path from source to sink, (m,)."""
        return [count > 0 for count in self._counts[0]]

    @cached_property
    def _network(self) -> tuple[Ints, list[Ints]]:
        """Heads of the edges, and the used edges out of every node."""
        heads = np.array([head for _, head in self._arcs])
        return heads, leaving(self._arcs, self._used, len(self._number))

    @cached_property
    def _balances(self) -> tuple[Floats, Floats]:
        """Matrix A and vector b of the equations A x = b of net outflows and of unused edges."""
        nodes, m = len(self._number), self.dim
        balance = np.zeros((nodes, m))
        for e, (tail, head) in enumerate(self._arcs):
            balance[tail, e], balance[head, e] = 1.0, -1.0
        supply = np.zeros(nodes)
        supply[list(self._ends)] = 1.0, -1.0
        idle = np.eye(m)[~np.array(self._used)]
        return np.concatenate([balance, idle]), np.concatenate([supply, np.zeros(len(idle))])

    @cached_property
    def basis(self) -> Floats | None:
        return null_basis(self._balances[0])

    @cached_property
    def _centres(self) -> tuple[Floats, float]:
        """Centre of the flows, and the radius of a ball around it that contains flows only."""
        assert self.basis is not None
        squares = np.vecdot(self.basis, self.basis)
        counts, total = self._counts
        mean = np.array([count / total for count in counts])
        even = even_split(*self._network, self._ends[0])
        moving = squares > _MIN_SQUARE
        radii = [float((c[moving] / np.sqrt(squares[moving])).min()) for c in (mean, even)]
        return constant(mean if radii[0] >= radii[1] else even), max(radii)

    @property
    def centre(self) -> Floats:
        return self._centres[0]

    @cached_property
    def diameter(self) -> float:
        # Between the two paths that share the least; `|x - y|^2` counts the edges of one
        return sqrt(farthest_paths(*self._network, self._ends[0]))

    @cached_property
    def outer_radius(self) -> float:
        # To the farthest path; `|1_P - c|^2 = |c|^2 + sum_P (1 - 2 c)`, so one path suffices
        farthest = self.lowest(2 * self.centre[None] - 1)[0]
        return float(np.linalg.norm(farthest - self.centre))

    @property
    def inner_radius(self) -> float:
        return self._centres[1]

    def lowest(self, v: Floats) -> Floats:
        return shortest_paths(finite(v), *self._network, *self._ends)

    def contains(self, x: Floats, tolerance: float = 1e-9) -> Bools:
        x = finite(x, np.inf)
        matrix, supply = self._balances
        balanced = (np.abs(np.matvec(matrix, x) - supply) <= tolerance).all(axis=-1)
        return (x >= -tolerance).all(axis=-1) & balanced

    def sampler(self, streams: Streams, name: str) -> Points:
        # Hit-and-run from the centre, a step a call: a Markov chain, stationary law uniform
        return Walk(self, self._chord, streams, name)

    def _chord(self, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        return between(x, -u)
