"""Domains on the command line, with their sizes: `partition-matroid:groups=5:take=2`."""

from collections.abc import Callable, Mapping
from typing import Any

from dpbandit.base import InputError, abbrev, one_of, parse_settings, positive, whole
from dpbandit.domains.balls import Ball, Box, L1Ball, Simplex, Spectrahedron
from dpbandit.domains.domain import Domain
from dpbandit.shelf import open_shelves

MAX_COORDINATES = 500
"""Largest dimension of domains of groups, edges or matrices; beyond, a basis takes seconds."""


def domain_named(text: Any, **beside: Any) -> Domain:
    """Return the domain that `text` describes.

    Args:
        text: a key of `DOMAINS`, then `:SIZE=VALUE` for each size that is not the default.
        beside: further sizes by name.

    Raises:
        InputError: an unknown domain or size, a size given twice, or a value out of range.

    >>> domain_named("uniform-matroid:dim=6:rank=3")
    Hypersimplex(dim=6, rank=3)
    >>> domain_named("flows:edges=[s-a,a-t,s-t]").dim
    3
    """
    open_shelves("domains.words")
    word, *behind = text.split(":") if isinstance(text, str) else [text]
    one_of("domain", word, DOMAINS)
    make, defaults = DOMAINS[word]
    if any("," in size and "[" not in size for size in behind):
        raise InputError(f"Expected domain={abbrev(text)} to be {word}:KEY=VALUE, with colons.")
    sizes = parse_settings(behind)
    for name in sizes:
        one_of(f"size of {word}", name, defaults)
    for name, value in beside.items():
        if name in sizes:
            raise InputError(f"Expected {name} once, got {name}={value} and domain={abbrev(text)}.")
        if name not in defaults:
            raise InputError(
                f"Expected domain={abbrev(text)} without {name}={value}: its sizes are "
                f"{', '.join(defaults)}."
            )
    return make(**{**defaults, **sizes, **beside})


def _box(dim: Any, radius: Any) -> Domain:
    positive("radius", radius)
    return Box(dim, radius)


def _spectrahedron(order: Any) -> Domain:
    whole("order", order, 2, int(MAX_COORDINATES**0.5))
    return Spectrahedron(order)


_BALL_SIZES = {"dim": 5, "radius": 1.0}  # default sizes of balls
DOMAINS: dict[str, tuple[Callable[..., Domain], Mapping[str, Any]]] = {
    "ball": (Ball, _BALL_SIZES),
    "box": (_box, _BALL_SIZES),
    "l1-ball": (L1Ball, _BALL_SIZES),
    "simplex": (Simplex, {"dim": 5}),
    "spectrahedron": (_spectrahedron, {"order": 3}),
}
"""Domain name -> its constructor and default sizes; dpbandit.domains.polytopes adds entries."""
