"""A wrong argument gets one clear sentence, and a single point is no domain."""

import pytest

from dpbandit.base.inputs import InputError
from dpbandit.domains import (
    Ball,
    Box,
    ConcaveBase,
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
from tests.each import each

CHAIN = (("s", "a"), ("a", "t"))
PATH = tuple((i, i + 1) for i in range(12))
WRONG = {
    "no dimension": (lambda: Ball(0), "dim=0"),
    "no width": (lambda: Box(2, 0.0), "half_width=0.0"),
    "infinite radius": (lambda: L1Ball(2, float("inf")), "radius=inf"),
    "half a norm": (lambda: LpBall(2, 0.5), "p=0.5"),
    "no norm": (lambda: LpBall(2, float("nan")), "p=nan"),
    "no radius": (lambda: LpBall(2, 3.0, 0.0), "radius=0.0"),
    "one expert": (lambda: Simplex(1), "dim=1"),
    "all items": (lambda: Hypersimplex(3, 3), "rank=3"),
    "no items": (lambda: IndependentSets(3, 0), "rank=0"),
    "no blocks": (lambda: partition_base(()), "blocks"),
    "a block of three": (lambda: partition_base(((1, 2, 3),)), "block"),
    "a block without choice": (lambda: partition_base(((1, 2), (4, 4))), "rank=4"),
    "no parts": (lambda: Product(()), "parts"),
    "a part that is none": (lambda: Product((Ball(2), 3)), "parts"),
    "a number": (lambda: Spectrahedron(1), "order=1"),
    "an edge": (lambda: SpanningTrees(2), "vertices=2"),
    "a tree": (lambda: SpanningTrees(3, ((0, 1), (1, 2))), "cycle"),
    "a loop": (lambda: SpanningTrees(3, ((0, 0), (1, 2))), r"\(0, 0\)"),
    "an edge twice": (lambda: SpanningTrees(3, ((0, 1), (1, 2), (1, 0))), r"\(1, 0\)"),
    "a vertex too many": (lambda: SpanningTrees(3, ((0, 1), (1, 3))), "vertex=3"),
    "a list": (lambda: SpanningTrees(3, [(0, 1), (1, 2), (2, 0)]), "edges"),
    "a list of flows": (lambda: Flows([["s", "t"]], "s", "t"), "pairs"),
    "two pieces": (lambda: SpanningTrees(5, ((0, 1), (1, 2), (2, 0), (3, 4))), "connect all 5"),
    "many vertices": (lambda: SpanningTrees(13, (*PATH, (12, 0))), "inner_radius=0.0"),
    "too large a radius": (lambda: SpanningTrees(4, None, 0.5), "inner_radius=0.5"),
    "a negative radius": (lambda: SpanningTrees(4, None, -1.0), "inner_radius=-1.0"),
    "one mark": (lambda: ConcaveBase((1.0,)), "marginals"),
    "rising marks": (lambda: ConcaveBase((1.0, 2.0)), "marginals"),
    "equal marks": (lambda: ConcaveBase((1.0, 1.0)), "marginals"),
    "no number": (lambda: ConcaveBase((float("nan"), 1.0)), "marginals"),
    "one path": (lambda: Flows(CHAIN, "s", "t"), "two paths"),
    "no path": (lambda: Flows(CHAIN, "t", "s"), "two paths"),
    "nowhere": (lambda: Flows(CHAIN, "s", "q"), "sink='q'"),
    "a cycle": (lambda: Flows((*CHAIN, ("a", "s")), "s", "t"), "cycle"),
    "three ends": (lambda: Flows((("s", "a", "t"),), "s", "t"), "pairs"),
    "supermodular": (lambda: SubmodularBase(lambda s: len(s) ** 2.0, 3), "submodular"),
    "additive": (lambda: SubmodularBase(lambda s: float(len(s)), 3), "additive"),
    "not from zero": (lambda: SubmodularBase(lambda s: 1.0, 3), "empty set"),
    "not finite": (lambda: SubmodularBase(lambda s: float("inf") if s else 0.0, 3), "finite"),
    "too round": (lambda: SubmodularBase(lambda s: min(len(s), 2.0), 3, 0.9), "inner_radius=0.9"),
    "a centre of two": (
        lambda: SubmodularBase(lambda s: min(len(s), 2.0), 3, 0.0, (1.0, 1.0)),
        "given_centre",
    ),
    "a centre outside": (
        lambda: SubmodularBase(lambda s: min(len(s), 2.0), 3, 0.0, (2.0, 0.0, 0.0)),
        r"given_centre=\(2.0, 0.0, 0.0\)",
    ),
    "many items": (lambda: SubmodularBase(lambda s: len(s) ** 0.5, 13), "given_centre"),
}


@each(("make", "words"), WRONG.values(), ids=WRONG)
def test_one_clear_sentence(make, words):
    with pytest.raises(InputError, match=words) as error:
        make()
    assert str(error.value).startswith("Expected ")
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)
