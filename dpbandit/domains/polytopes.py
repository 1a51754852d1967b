"""Command-line names of matroids, flows and base polytopes, with their sizes."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from dpbandit.base import InputError, abbrev, whole
from dpbandit.domains.domain import Domain
from dpbandit.domains.flows import Flows
from dpbandit.domains.matroids import Hypersimplex, IndependentSets, SpanningTrees, partition_base
from dpbandit.domains.submodular import ConcaveBase
from dpbandit.domains.words import DOMAINS, MAX_COORDINATES

_MAX_VERTICES = 12
"""Largest number of vertices of a graph; with more, spanning trees have no sampler."""


def _partition(groups: Any, items: Any, take: Any) -> Domain:
    whole("items", items, 2, MAX_COORDINATES)
    whole("groups", groups, 1, MAX_COORDINATES // items)
    whole("take", take, 1, items - 1)
    return partition_base(((take, items),) * groups)


def _spanning_trees(vertices: Any, edges: Any) -> Domain:
    if edges is None:
        vertices = 5 if vertices is None else vertices
        whole("vertices", vertices, 3, _MAX_VERTICES)
        return SpanningTrees(vertices)
    if vertices is not None:
        raise InputError(f"Expected edges={abbrev(edges)} without vertices={abbrev(vertices)}.")
    pairs = _pairs(edges)
    number = {name: n for n, name in enumerate(dict.fromkeys(end for p in pairs for end in p))}
    if not 3 <= len(number) <= _MAX_VERTICES:
        raise InputError(f"Expected edges={abbrev(edges)} to join 3 to {_MAX_VERTICES} vertices.")
    return SpanningTrees(len(number), tuple((number[a], number[b]) for a, b in pairs))


def _flows(layers: Any, width: Any, edges: Any) -> Domain:
    if edges is not None:
        if not (layers is None and width is None):
            raise InputError(f"Expected edges={abbrev(edges)} without layers and width.")
        return Flows(_pairs(edges), "s", "t")
    layers, width = 2 if layers is None else layers, 3 if width is None else width
    whole("width", width, 2, MAX_COORDINATES // 2)
    whole("layers", layers, 1, 1 + (MAX_COORDINATES - 2 * width) // width**2)
    nodes = [["s"], *([f"{n}.{m}" for m in range(width)] for n in range(layers)), ["t"]]
    ways = [(a, b) for tails, heads in pairwise(nodes) for a in tails for b in heads]
    return Flows(tuple(ways), "s", "t")


def _pairs(edges: Any) -> tuple[tuple[str, str], ...]:
    """Parse [a-b,b-c] as pairs of names."""
    found = [edge.split("-") if isinstance(edge, str) else [] for edge in _list_of("edges", edges)]
    if any(len(edge) != 2 or "" in edge for edge in found):
        raise InputError(f"Expected edges={abbrev(edges)} to be pairs such as [a-b,b-c,a-c].")
    return tuple((a, b) for a, b in found)


def _base_polytope(marginals: Any) -> Domain:
    return ConcaveBase(tuple(_list_of("marginals", marginals)))


def _list_of(name: str, values: Any) -> Sequence[Any]:
    if not isinstance(values, list) or len(values) > MAX_COORDINATES:
        raise InputError(
            f"Expected {name}={abbrev(values)} to be a list, [..], of at most {MAX_COORDINATES}."
        )
    return values


def _permutations(dim: Any) -> Domain:
    whole("dim", dim, 2, MAX_COORDINATES)
    return ConcaveBase(tuple(range(dim, 0, -1)))


_UNIFORM = {"dim": 5, "rank": 1}  # default sizes of uniform matroids
_GRAPHIC = {"vertices": None, "edges": None}  # sizes of spanning trees; 5 vertices by default
# name on the command line -> constructor and default sizes
DOMAINS |= {
    "hypersimplex": (Hypersimplex, _UNIFORM),
    "uniform-matroid": (Hypersimplex, _UNIFORM),
    "independent-sets": (IndependentSets, _UNIFORM),
    "partition-matroid": (_partition, {"groups": 3, "items": 4, "take": 2}),
    "graphic-matroid": (_spanning_trees, _GRAPHIC),
    "spanning-trees": (_spanning_trees, _GRAPHIC),
    "base-polytope": (_base_polytope, {"marginals": [8, 4, 2, 1]}),
    "permutations": (_permutations, {"dim": 5}),
    "flows": (_flows, {"layers": None, "width": None, "edges": None}),
}
