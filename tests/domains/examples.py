"""One small domain of every kind; for the polytopes, their corners found without the package."""

from itertools import combinations, permutations, product
from typing import NamedTuple

import numpy as np

from dpbandit.domains import (
    Ball,
    Box,
    ConcaveBase,
    Domain,
    Flows,
    Hypersimplex,
    IndependentSets,
    L1Ball,
    LpBall,
    Product,
    Simplex,
    SpanningTrees,
    Spectrahedron,
    SubmodularBase,
    partition_base,
)


class Polytope(NamedTuple):
    domain: Domain
    corners: np.ndarray
    """(M, N)"""
    bounds: bool = False
    """the diameter (and outer radius) are bounds only"""


def sets(items, sizes):
    chosen = [c for size in sizes for c in combinations(range(items), size)]
    return np.array([[float(i in c) for i in range(items)] for c in chosen])


def trees(vertices, edges):
    """All sets of n - 1 edges without a cycle: repeated merging of ends."""
    found = []
    for chosen in combinations(range(len(edges)), vertices - 1):
        group = list(range(vertices))
        for e in chosen:
            a, b = (group[end] for end in edges[e])
            group = [a if g == b else g for g in group]
        if len(set(group)) == 1:
            found.append([float(e in chosen) for e in range(len(edges))])
    return np.array(found)


def paths(edges, source, sink):
    def from_node(node):
        if node == sink:
            yield ()
        for e, (tail, head) in enumerate(edges):
            if tail == node:
                yield from ((e, *rest) for rest in from_node(head))

    return np.array([[float(e in p) for e in range(len(edges))] for p in from_node(source)])


def greedy(function, items):
    """The corners of a base polytope: the gains of all orders."""
    found = set()
    for order in permutations(range(items)):
        x = [0.0] * items
        for n, i in enumerate(order):
            x[i] = function(frozenset(order[: n + 1])) - function(frozenset(order[:n]))
        found.add(tuple(x))
    return np.array(sorted(found))


def stacked(*corners):
    return np.array([np.concatenate(parts) for parts in product(*corners)])


def coverage(items):
    """How much of {0..5} the items cover together, with different weights."""
    covered = set().union(*({i, (2 * i + 1) % 6, (3 * i) % 6} for i in items))
    return sum(1.0 + 0.25 * c for c in covered)


def two_parts(items):
    """min(|items|, 2) on the first three, sqrt(|items|) on the last two: not connected."""
    return min(len(items & {0, 1, 2}), 2) + len(items & {3, 4}) ** 0.5


K4 = tuple(combinations(range(4), 2))
K5 = tuple(combinations(range(5), 2))
KITE = ((0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 6), (6, 3))
"""A triangle, a bridge, a square"""
WHEEL = ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2), (2, 3), (3, 4), (4, 1))
LADDER = (
    *(("s", "a"), ("s", "b"), ("a", "b"), ("a", "c"), ("b", "c"), ("b", "d"), ("c", "d")),
    *(("c", "t"), ("d", "t"), ("a", "lost"), ("strange", "b"), ("t", "end")),
)
PARALLEL = (("s", "a"), ("s", "a"), ("a", "b"), ("b", "t"), ("b", "t"), ("b", "t"))
"""Parallel edges on either side of one that all paths use"""
MARKS = (3.0, 2.5, 1.0, -1.0)

POLYTOPES = {
    "box": Polytope(Box(3, 0.5), np.array(list(product((-0.5, 0.5), repeat=3)))),
    "interval": Polytope(Box(1, 2.0), np.array([[-2.0], [2.0]])),
    "l1 ball": Polytope(L1Ball(3, 2.0), 2 * np.concatenate([np.eye(3), -np.eye(3)])),
    "two experts": Polytope(Simplex(2), np.eye(2)),
    "simplex": Polytope(Simplex(5), np.eye(5)),
    "one item": Polytope(IndependentSets(1, 1), np.array([[0.0], [1.0]])),
    "free sets": Polytope(IndependentSets(3, 3), sets(3, range(4))),
    "graph with bridge": Polytope(SpanningTrees(7, KITE), trees(7, KITE), True),
    "wheel": Polytope(SpanningTrees(5, WHEEL), trees(5, WHEEL), True),
    "triangle": Polytope(SpanningTrees(3), trees(3, K4[:2] + K4[3:4])),
    "K4": Polytope(SpanningTrees(4), trees(4, K4)),
    "K5": Polytope(SpanningTrees(5), trees(5, K5)),
    "ranks": Polytope(ConcaveBase(MARKS), np.array(sorted(set(permutations(MARKS))))),
    "marks": Polytope(
        ConcaveBase((2.0, 2.0, 0.0, 0.0, 0.0)),
        np.array(sorted(set(permutations((2.0, 2.0, 0.0, 0.0, 0.0))))),
    ),
    "coverage": Polytope(SubmodularBase(coverage, 5), greedy(coverage, 5), True),
    "two parts": Polytope(SubmodularBase(two_parts, 5), greedy(two_parts, 5), True),
    "ladder": Polytope(Flows(LADDER, "s", "t"), paths(LADDER, "s", "t")),
    "parallel": Polytope(Flows(PARALLEL, "s", "t"), paths(PARALLEL, "s", "t")),
    "partition": Polytope(partition_base(((1, 3), (2, 4))), stacked(sets(3, [1]), sets(4, [2]))),
    "product": Polytope(
        Product((Simplex(3), Box(2, 0.5))),
        stacked(np.eye(3), np.array(list(product((-0.5, 0.5), repeat=2)))),
    ),
    **{
        f"U({q},{N})": Polytope(Hypersimplex(N, q), sets(N, [q]))
        for N, q in ((2, 1), (5, 1), (6, 3), (5, 4))
    },
    **{
        f"I({q},{N})": Polytope(IndependentSets(N, q), sets(N, range(q + 1)))
        for N, q in ((4, 1), (5, 2), (4, 3))
    },
}
DOMAINS: dict[str, Domain] = {
    **{name: case.domain for name, case in POLYTOPES.items()},
    "ball": Ball(3, 2.0),
    "l_1.5 ball": LpBall(3, 1.5, 2.0),
    "l_5 ball": LpBall(4, 5, 0.5),
    "spectrahedron": Spectrahedron(3),
    "experts and matrices": Product((SpanningTrees(4), Spectrahedron(2), Ball(2))),
}
