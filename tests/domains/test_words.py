"""Domains by word: each is the class it says. What makes no sense gets one clear sentence, and a
single point is no domain."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest

from dpbandit.base import InputError, Streams, parse_setting
from dpbandit.domains import (
    DOMAINS,
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
    domain_named,
    partition_base,
)
from dpbandit.envs import ConvexBandit, OnlineConvex
from dpbandit.studies import Sweep, plan
from tests.each import each, refused

_CROSSING = (("s", "0.0"), ("s", "0.1"), ("0.0", "t"), ("0.1", "t"))
SAID = {
    "ball:dim=2:radius=3": Ball(2, 3), "box:radius=2": Box(5, 2), "l1-ball": L1Ball(5, 1.0),
    "simplex:dim=3": Simplex(3), "hypersimplex:rank=2": Hypersimplex(5, 2),
    "uniform-matroid:dim=6:rank=3": Hypersimplex(6, 3),
    "independent-sets:rank=2": IndependentSets(5, 2),
    "partition-matroid:groups=2:take=1": partition_base(((1, 4), (1, 4))),
    "graphic-matroid:vertices=4": SpanningTrees(4),
    "spanning-trees:edges=[x-y,y-z,x-z,z-w]": SpanningTrees(4, ((0, 1), (1, 2), (0, 2), (2, 3))),
    "base-polytope:marginals=[3,1.5,1]": ConcaveBase((3, 1.5, 1)),
    "permutations:dim=3": ConcaveBase((3, 2, 1)),
    "flows:layers=1:width=2": Flows(_CROSSING, "s", "t"),
    "flows:edges=[s-a,a-t,s-t]": Flows((("s", "a"), ("a", "t"), ("s", "t")), "s", "t"),
    "spectrahedron:order=2": Spectrahedron(2),
}  # fmt: skip


def test_every_word_is_the_domain_it_says():
    """In Python, on the command line and in a sweep. It would catch a size that goes elsewhere, a
    text that another parser takes apart, and a word that nobody tried."""
    assert all(domain_named(text) == domain for text, domain in SAID.items())
    assert {text.partition(":")[0] for text in SAID} == set(DOMAINS)  # with those of shelves
    for text, domain in SAID.items():
        assert parse_setting(f"domain={text}") == ("domain", text)
        assert ConvexBandit(domain=text).spec.loss.domain == domain
    assert ConvexBandit(domain="permutations", dim=3).spec.loss.domain == ConcaveBase((3, 2, 1))
    mixed = ConvexBandit(domain="uniform-matroid:dim=6", rank=2)
    assert mixed.spec.loss.domain == Hypersimplex(6, 2)
    sweep = {"agents": [{"id": "garber-kretzu"}], "horizons": [50], "replicas": 2}
    entry = {"id": "ConvexBandit", "grid": {"domain": [*SAID]}}
    planned = plan(Sweep.of({**sweep, "environments": [entry]}))
    played = {one.setup.env_kwargs["domain"] for one in planned.configurations}
    assert played == set(SAID)


@each("word", DOMAINS)
def test_the_usual_sizes_make_an_episode(word):
    """Of plain words, told values and data: points drawn are points of the domain."""
    env = gym.make("dpbandit/ConvexBandit-v0", domain=word, horizon=5)
    env.reset(seed=1)
    assert [env.step(env.action_space.sample())[3] for _ in range(5)] == [False] * 4 + [True]
    domain = OnlineConvex(domain=word, horizon=5).spec.loss.domain
    draw = domain.sampler(Streams([0, 1]), "points")
    points = np.concatenate([draw() for _ in range(5)])
    assert domain.contains(points).all()
    assert np.ptp(points) > 0


@each(
    ("wrong", "sentence"),
    [
        ({"domain": "partition"}, r"\(did you mean partition-matroid\?\) to be one of ball, box"),
        ({"domain": 7}, "domain=7 to be one of"),
        ({"domain": "flows:layer=3"}, r"size of flows='layer' \(did you mean layers\?\)"),
        ({"domain": "flows:layers=2,width=3"}, "to be flows:KEY=VALUE, with colons"),
        ({"domain": "flows:3"}, "KEY=VALUE, got '3'"),
        ({"domain": "flows:layers=0"}, "layers=0 to be a whole number >= 1"),
        ({"domain": "flows:layers=10:width=10"}, "layers=10 to be .* <= 5"),
        ({"domain": "flows:edges=[s-t]"}, "two paths"),
        ({"domain": "flows:edges=[s]"}, "pairs such as"),
        ({"domain": "flows:edges=[s-a,a-t,s-t]:width=2"}, "without layers and width"),
        ({"domain": "partition-matroid:take=4"}, "take=4 to be a whole number >= 1 and <= 3"),
        ({"domain": "partition-matroid:groups=1000000000"}, "groups=1000000000 to be .* <= 125"),
        ({"domain": "graphic-matroid:vertices=50"}, "vertices=50 to be .* <= 12"),
        ({"domain": "graphic-matroid:edges=[a-b]"}, "to join 3 to 12 vertices"),
        ({"domain": "graphic-matroid:edges=[a-b,b-c,a-c]:vertices=3"}, "without vertices=3"),
        ({"domain": "base-polytope:marginals=[1,2]"}, "to fall"),
        ({"domain": "base-polytope:marginals=2"}, "marginals=2 to be a list"),
        ({"domain": "permutations:dim=100000"}, "dim=100000 to be .* <= 500"),
        ({"domain": "spectrahedron:order=1000"}, "order=1000 to be .* <= 22"),
        ({"domain": "box:radius=-1"}, "radius=-1 to be a finite number > 0"),
        ({"domain": "box:dim=3", "dim": 4}, "dim once, got dim=4 and domain='box:dim=3'"),
        ({"domain": "simplex", "radius": 2.0}, "without radius=2.0: its sizes are dim"),
    ],
    ids=str,
)
def test_what_makes_no_sense_gets_one_sentence(wrong, sentence):
    refused(sentence, ConvexBandit, **wrong)


pairs = partial(SubmodularBase, lambda items: min(len(items), 2.0), 3)
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
    "too round": (lambda: pairs(0.9), "inner_radius=0.9"),
    "a centre of two": (lambda: pairs(0.0, (1.0, 1.0)), "given_centre"),
    "a centre outside": (lambda: pairs(0.0, (2.0, 0.0, 0.0)), r"given_centre=\(2.0, 0.0, 0.0\)"),
    "many items": (lambda: SubmodularBase(lambda s: len(s) ** 0.5, 13), "given_centre"),
}


@each(("make", "words"), WRONG.values(), ids=WRONG)
def test_one_clear_sentence(make, words):
    with pytest.raises(InputError, match=words) as error:
        make()
    assert str(error.value).startswith("Expected ")
    assert str(error.value).endswith(".")
    assert "\n" not in str(error.value)
