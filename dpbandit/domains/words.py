"""Domains by word, with their sizes: `partition-matroid:groups=5:take=2`."""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from dpbandit.base import InputError, one_of, parse_settings, positive, shown, whole
from dpbandit.domains.balls import Ball, Box, L1Ball, Simplex, Spectrahedron
from dpbandit.domains.domain import Domain
from dpbandit.domains.flows import Flows
from dpbandit.domains.matroids import Hypersimplex, IndependentSets, SpanningTrees, partition_base
from dpbandit.domains.submodular import ConcaveBase

_MOST = 500
"""Coordinates of a domain made of groups, edges or a matrix; its basis takes seconds beyond."""
_VERTICES = 12
"""Of a graph; beyond, spanning trees have no sampler."""


def domain_named(text: Any, **beside: Any) -> Domain:
    """The domain that a word stands for, of the sizes that stand behind it.

    Args:
        text: a word of `WORDS`, then `:SIZE=VALUE` for each size that is not the usual one.
        beside: sizes that are said elsewhere than in the text.

    Raises:
        InputError: a word or size that there is none, a size said twice, one that makes no sense.

    >>> domain_named("uniform-matroid:dim=6:rank=3")
    Hypersimplex(dim=6, rank=3)
    >>> domain_named("flows:edges=[s-a,a-t,s-t]").dim
    3
    """
    word, *behind = text.split(":") if isinstance(text, str) else [text]
    one_of("domain", word, WORDS)
    make, usual = WORDS[word]
    if any("," in size and "[" not in size for size in behind):
        raise InputError(f"Expected domain={shown(text)} to be {word}:KEY=VALUE, with colons.")
    sizes = parse_settings(behind)
    for name in sizes:
        one_of(f"size of {word}", name, usual)
    for name, value in beside.items():
        if name in sizes:
            raise InputError(f"Expected {name} once, got {name}={value} and domain={shown(text)}.")
        if name not in usual:
            raise InputError(
                f"Expected domain={shown(text)} without {name}={value}: its sizes are "
                f"{', '.join(usual)}."
            )
    return make(**{**usual, **sizes, **beside})


def _box(dim: Any, radius: Any) -> Domain:
    positive("radius", radius)
    return Box(dim, radius)


def _partition(groups: Any, items: Any, take: Any) -> Domain:
    whole("items", items, 2, _MOST)
    whole("groups", groups, 1, _MOST // items)
    whole("take", take, 1, items - 1)
    return partition_base(((take, items),) * groups)


def _spanning_trees(vertices: Any, edges: Any) -> Domain:
    if edges is None:
        vertices = 5 if vertices is None else vertices
        whole("vertices", vertices, 3, _VERTICES)
        return SpanningTrees(vertices)
    if vertices is not None:
        raise InputError(f"Expected edges={shown(edges)} without vertices={shown(vertices)}.")
    pairs = _pairs(edges)
    number = {name: n for n, name in enumerate(dict.fromkeys(end for p in pairs for end in p))}
    if not 3 <= len(number) <= _VERTICES:
        raise InputError(f"Expected edges={shown(edges)} to join 3 to {_VERTICES} vertices.")
    return SpanningTrees(len(number), tuple((number[a], number[b]) for a, b in pairs))


def _flows(layers: Any, width: Any, edges: Any) -> Domain:
    if edges is not None:
        if not (layers is None and width is None):
            raise InputError(f"Expected edges={shown(edges)} without layers and width.")
        return Flows(_pairs(edges), "s", "t")
    layers, width = 2 if layers is None else layers, 3 if width is None else width
    whole("width", width, 2, _MOST // 2)
    whole("layers", layers, 1, 1 + (_MOST - 2 * width) // width**2)
    nodes = [["s"], *([f"{n}.{m}" for m in range(width)] for n in range(layers)), ["t"]]
    ways = [(a, b) for tails, heads in pairwise(nodes) for a in tails for b in heads]
    return Flows(tuple(ways), "s", "t")


def _pairs(edges: Any) -> tuple[tuple[str, str], ...]:
    """[a-b,b-c] as pairs of names."""
    found = [edge.split("-") if isinstance(edge, str) else [] for edge in _several("edges", edges)]
    if any(len(edge) != 2 or "" in edge for edge in found):
        raise InputError(f"Expected edges={shown(edges)} to be pairs such as [a-b,b-c,a-c].")
    return tuple((a, b) for a, b in found)


def _base_polytope(marginals: Any) -> Domain:
    return ConcaveBase(tuple(_several("marginals", marginals)))


def _several(name: str, values: Any) -> Sequence[Any]:
    if not isinstance(values, list) or len(values) > _MOST:
        raise InputError(f"Expected {name}={shown(values)} to be a list, [..], of at most {_MOST}.")
    return values


def _permutations(dim: Any) -> Domain:
    whole("dim", dim, 2, _MOST)
    return ConcaveBase(tuple(range(dim, 0, -1)))


def _spectrahedron(order: Any) -> Domain:
    whole("order", order, 2, int(_MOST**0.5))
    return Spectrahedron(order)


_ROUND = {"dim": 5, "radius": 1.0}
_UNIFORM = {"dim": 5, "rank": 1}
_GRAPHIC = {"vertices": None, "edges": None}
WORDS: Mapping[str, tuple[Callable[..., Domain], Mapping[str, Any]]] = {
    "ball": (Ball, _ROUND),
    "box": (_box, _ROUND),
    "l1-ball": (L1Ball, _ROUND),
    "simplex": (Simplex, {"dim": 5}),
    "hypersimplex": (Hypersimplex, _UNIFORM),
    "uniform-matroid": (Hypersimplex, _UNIFORM),
    "independent-sets": (IndependentSets, _UNIFORM),
    "partition-matroid": (_partition, {"groups": 3, "items": 4, "take": 2}),
    "graphic-matroid": (_spanning_trees, _GRAPHIC),
    "spanning-trees": (_spanning_trees, _GRAPHIC),
    "base-polytope": (_base_polytope, {"marginals": [8, 4, 2, 1]}),
    "permutations": (_permutations, {"dim": 5}),
    "flows": (_flows, {"layers": None, "width": None, "edges": None}),
    "spectrahedron": (_spectrahedron, {"order": 3}),
}
"""word -> what makes the domain, and its sizes with the usual ones."""
