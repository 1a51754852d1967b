"""Domains by word, with their sizes: `partition-matroid:groups=5:take=2`."""

from collections.abc import Callable, Mapping
from typing import Any

from dpbandit.base import InputError, abbrev, one_of, parse_settings, positive, whole
from dpbandit.domains.balls import Ball, Box, L1Ball, Simplex, Spectrahedron
from dpbandit.domains.domain import Domain
from dpbandit.shelf import open_shelves

MOST_COORDINATES = 500
"""Coordinates of a domain made of groups, edges or a matrix; its basis takes seconds beyond."""


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
    open_shelves("domains.words")
    word, *behind = text.split(":") if isinstance(text, str) else [text]
    one_of("domain", word, WORDS)
    make, usual = WORDS[word]
    if any("," in size and "[" not in size for size in behind):
        raise InputError(f"Expected domain={abbrev(text)} to be {word}:KEY=VALUE, with colons.")
    sizes = parse_settings(behind)
    for name in sizes:
        one_of(f"size of {word}", name, usual)
    for name, value in beside.items():
        if name in sizes:
            raise InputError(f"Expected {name} once, got {name}={value} and domain={abbrev(text)}.")
        if name not in usual:
            raise InputError(
                f"Expected domain={abbrev(text)} without {name}={value}: its sizes are "
                f"{', '.join(usual)}."
            )
    return make(**{**usual, **sizes, **beside})


def _box(dim: Any, radius: Any) -> Domain:
    positive("radius", radius)
    return Box(dim, radius)


def _spectrahedron(order: Any) -> Domain:
    whole("order", order, 2, int(MOST_COORDINATES**0.5))
    return Spectrahedron(order)


_ROUND = {"dim": 5, "radius": 1.0}
WORDS: dict[str, tuple[Callable[..., Domain], Mapping[str, Any]]] = {
    "ball": (Ball, _ROUND),
    "box": (_box, _ROUND),
    "l1-ball": (L1Ball, _ROUND),
    "simplex": (Simplex, {"dim": 5}),
    "spectrahedron": (_spectrahedron, {"order": 3}),
}
"""word -> what makes the domain, and its sizes with the usual ones; shelves add theirs."""
