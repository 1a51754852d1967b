"""What spanning trees need of a graph: least trees, mean trees, blocks, and vertex subsets."""

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import InputError, whole

Edges: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs of vertices 0..n-1."""


def complete(vertices: int) -> Edges:
    """All pairs a < b, in the order of reading."""
    return tuple((a, b) for a in range(vertices) for b in range(a + 1, vertices))


def check_connected(edges: Edges, vertices: int) -> None:
    """`InputError` unless the edges are simple and connect the vertices 0..n-1."""
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
    """A spanning tree of least weight for each row, the first of equals, as 0 and 1.

    Kruskal (1956), all rows in step: take the next lightest edge if it joins two components.
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
    """The mean of all spanning trees, (m,): Kirchhoff, the resistance between an edge's ends."""
    incidence = _incidence(edges, vertices)
    inverse = np.linalg.pinv(incidence @ incidence.T, hermitian=True)
    return np.einsum("ve,vw,we->e", incidence, inverse, incidence)


def blocks(edges: Ints, vertices: int) -> Ints:
    """A number for each edge, (m,), equal for two edges if and only if a cycle holds both.

    A bridge is alone. The blocks are the components of the edges' cycle space: one tree, its
    fundamental cycles (column f of the solution of B_tree y = B_f), and joining what they share.
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


def inner_edges(edges: Ints, vertices: int) -> tuple[npt.NDArray[np.bool_], Ints]:
    """For every vertex subset with an edge inside: which edges those are (M, m), its size (M,)."""
    codes = np.arange(2**vertices)[:, None]
    members = (codes >> np.arange(vertices)) & 1 > 0  # (2^n, n)
    inner = members[:, edges[:, 0]] & members[:, edges[:, 1]]
    some = inner.any(axis=-1)
    return inner[some], members[some].sum(axis=-1)


def _incidence(edges: Ints, vertices: int) -> Floats:
    """+1 and -1 at the ends of every edge, (n, m)."""
    incidence = np.zeros((vertices, len(edges)))
    incidence[edges[:, 0], np.arange(len(edges))] = 1.0
    incidence[edges[:, 1], np.arange(len(edges))] = -1.0
    return incidence
