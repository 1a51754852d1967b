"""Generator of problems for questions about choices: a seed draws 30 problems of all kinds.

It was written before the agents that are measured on it were changed; the reader chooses the seed.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
import typer

from dpbandit.base import InputError
from dpbandit.results.problems import Setup
from dpbandit.studies import setup_of

_WORLDS = "dpbandit.experiments.choosing.worlds:"
HORIZONS: Mapping[str, tuple[int, int]] = {"short": (1_000, 4_000), "long": (8_000, 16_000)}
"""Smallest and largest number of rounds of a problem, by size"""
COUNT = 30
"""Number of problems of a seed, by default"""


class Draws:
    """Random numbers of one problem, rounded to three digits as they are arguments to be read."""

    def __init__(self, *seed: int) -> None:
        self._g = np.random.default_rng(seed)

    def between(self, low: float, high: float) -> float:
        """Draw a number uniformly."""
        return float(f"{self._g.uniform(low, high):.3g}")

    def scale(self, low: float, high: float) -> float:
        """Draw a positive number whose logarithm is uniform."""
        return float(f"{np.exp(self._g.uniform(np.log(low), np.log(high))):.3g}")

    def whole(self, low: int, high: int) -> int:
        """Draw an integer uniformly; both ends are possible."""
        return int(self._g.integers(low, high, endpoint=True))

    def world(self) -> int:
        """Draw a seed for all other numbers of an environment."""
        return self.whole(0, 2**31 - 1)


def _symmetric_clicks(draw: Draws) -> tuple[str, dict[str, Any]]:
    arms, dim = draw.whole(3, 8), draw.whole(4, 10)
    signal = draw.between(2, 6)
    return "GLMBandit", {"n_actions": arms, "dim": dim, "link": "logistic", "signal": signal}


def _rare_clicks(draw: Draws) -> tuple[str, dict[str, Any]]:
    items, base_rate = draw.whole(6, 14), draw.scale(0.04, 0.2)
    return _WORLDS + "ClickLog", {"n_items": items, "base_rate": base_rate, "world": draw.world()}


def _numbers(
    draw: Draws, dims: tuple[int, int] = (3, 10), **more: Any
) -> tuple[str, dict[str, Any]]:
    arms, dim = draw.whole(3, 8), draw.whole(*dims)
    return _WORLDS + "Numbers", {"n_actions": arms, "dim": dim, **more, "world": draw.world()}


def _wide_numbers(draw: Draws) -> tuple[str, dict[str, Any]]:
    # means lie within a third of the range, above or below its middle
    width, place = draw.scale(0.1, 200), draw.between(0.2, 0.4)
    low, place = -draw.between(0, 0.5), place if draw.whole(0, 1) else 1 - place
    shares = {"low": low, "high": low + 1, "level": low + place}
    shares |= {"spread": draw.between(0.08, 0.16), "noise": draw.between(0.05, 0.2)}
    scaled: dict[str, Any] = {name: round(width * share, 6) for name, share in shares.items()}
    return _numbers(draw, law="uniform", **scaled)


def _scores(draw: Draws) -> tuple[str, dict[str, Any]]:
    return _numbers(draw, law="scores", level=draw.between(3, 7), spread=draw.between(1.5, 2.8))


def _binary(draw: Draws) -> tuple[str, dict[str, Any]]:
    return _numbers(draw, level=draw.between(0.2, 0.7), spread=draw.between(0.15, 0.2))


def _skewed_contexts(draw: Draws) -> tuple[str, dict[str, Any]]:
    spread = draw.between(0.25, 0.4)
    return _numbers(draw, contexts="skewed", level=draw.between(0.42, 0.58), spread=spread)


def _factors(draw: Draws) -> tuple[str, dict[str, Any]]:
    spread = draw.between(0.15, 0.25)
    dims = (4, 12)
    return _numbers(draw, dims, contexts="factors", level=draw.between(0.3, 0.7), spread=spread)


def _units(draw: Draws) -> tuple[str, dict[str, Any]]:
    return _numbers(draw, law="units", level=draw.between(-1.5, 0), spread=draw.between(0.3, 1.2))


def _friedman(draw: Draws) -> tuple[str, dict[str, Any]]:
    contexts, dims = "cube", (5, 10)
    if draw.whole(0, 1):
        return _numbers(draw, dims, contexts=contexts, level=0.5, spread=draw.between(0.3, 0.45))
    noise, spread = draw.between(0.1, 0.3), draw.between(0.4, 0.8)
    more: dict[str, Any] = {
        "law": "uniform",
        "low": -1.0,
        "high": 1.0,
        "level": 0.0,
        "noise": noise,
    }
    return _numbers(draw, dims, contexts=contexts, spread=spread, **more)


def _student(draw: Draws) -> tuple[str, dict[str, Any]]:
    room, noise = draw.between(5, 20), draw.between(0.3, 1)
    more: dict[str, Any] = {
        "law": "student",
        "low": -room,
        "high": room,
        "level": 0.0,
        "spread": 1.0,
    }
    return _numbers(draw, noise=noise, **more)


def _prices(shape: str, buyers: tuple[float, float] = (1, 1)) -> "Maker":
    def make(draw: Draws) -> tuple[str, dict[str, Any]]:
        prices, dim, lowest = draw.whole(7, 13), draw.whole(3, 6), draw.scale(0.5, 20)
        return _WORLDS + "Prices", {
            "shape": shape,
            "n_actions": prices,
            "dim": dim,
            "lowest": lowest,
            "cost": round(lowest * draw.between(0.2, 0.9), 4),
            "buyers": draw.scale(*buyers),
            "world": draw.world(),
        }

    return make


def _offers(draw: Draws) -> tuple[str, dict[str, Any]]:
    products, levels, dim = draw.whole(3, 4), draw.whole(4, 5), draw.whole(6, 12)
    of_world = {"products": products, "levels": levels, "dim": dim, "world": draw.world()}
    return _WORLDS + "Offers", of_world


def _arms(draw: Draws) -> tuple[str, dict[str, Any]]:
    low, high = (0.02, 0.15) if draw.whole(0, 1) else (0.2, 0.8)
    return "Arms", {"means": [draw.between(low, high) for _ in range(draw.whole(3, 15))]}


def _slates(draw: Draws) -> tuple[str, dict[str, Any]]:
    arms, base_rate = draw.whole(4, 15), draw.between(0.05, 0.5)
    more: dict[str, Any]
    if draw.whole(0, 1):
        more = {"taste": draw.whole(2, 5), "appeal": draw.between(0.7, 1.5)}
        return "Recommendation", {"n_actions": arms, "base_rate": base_rate, **more}
    dim, signal = draw.whole(5, 15), draw.between(2, 6)
    more = {"shared": True, "link": "logistic", "signal": signal}
    return "GLMBandit", {"n_actions": arms, "dim": dim, **more}


Maker = Callable[[Draws], tuple[str, dict[str, Any]]]
"""Function that draws an environment and its arguments"""
KINDS: Mapping[str, Maker] = {
    "symmetric clicks": _symmetric_clicks,
    "rare clicks": _rare_clicks,
    "wide numbers": _wide_numbers,
    "scores": _scores,
    "binary": _binary,
    "skewed contexts": _skewed_contexts,
    "factors": _factors,
    "units": _units,
    "Friedman": _friedman,
    "Student noise": _student,
    "two kinds of buyers": _prices("kinds"),
    "plateau": _prices("plateau"),
    "luxury": _prices("luxury"),
    "elastic": _prices("elastic"),
    "linear prices": _prices("linear"),
    "few sales": _prices("linear", (0.03, 0.15)),
    "offers": _offers,
    "arms": _arms,
    "slates": _slates,
}
"""Kind of problem -> function that draws one of it"""


class Drawn(NamedTuple):
    """A generated problem."""

    kind: str
    size: str
    """"short" or "long", see `HORIZONS`"""
    environment: str
    arguments: dict[str, Any]
    horizon: int

    @property
    def name(self) -> str:
        """Kind and number of rounds."""
        return f"{self.kind}, {self.horizon:,} rounds"

    def setup(self, seed: int) -> Setup:
        """Return the setup with users of `seed`."""
        how: dict[str, Any] = {"horizon": self.horizon, "seed": seed, "label": self.name}
        return setup_of(self.environment, self.arguments, **how)


def problems(seed: int, count: int = COUNT) -> tuple[Drawn, ...]:
    """Draw problems: one of every kind, then second ones, of the other size, of random kinds.

    The same seed gives the same problems, and the first ones of a larger `count`. At most two of
    each kind are drawn, so `count` is limited to twice the number of kinds.
    """
    g, kinds = np.random.default_rng(seed), list(KINDS)
    long_first = g.permutation(len(kinds)) % 2
    order = [*range(len(kinds)), *g.permutation(len(kinds)).tolist()]
    found = []
    for place, number in enumerate(order[:count]):
        size = list(HORIZONS)[(long_first[number] + (place >= len(kinds))) % 2]
        draw = Draws(seed, place)
        environment, arguments = KINDS[kinds[number]](draw)
        low, high = HORIZONS[size]
        found.append(
            Drawn(
                kinds[number],
                size,
                environment,
                arguments,
                100 * draw.whole(low // 100, high // 100),
            )
        )
    return tuple(found)


Thing = TypeVar("Thing")
Seed: TypeAlias = Annotated[int, typer.Option(help="Seed of the generated problems.")]
Part: TypeAlias = Annotated[str, typer.Option(help="I/N: each N-th problem from I = 0, 1, ... on.")]


def part_of(things: Sequence[Thing], part: str) -> Sequence[Thing]:
    """Return every N-th thing from number I on, where `part` is "I/N"."""
    found = re.fullmatch(r"(\d+)/([1-9]\d*)", part)
    if found is None or int(found[1]) >= int(found[2]):
        raise InputError(f"Expected part={part!r} to be I/N, such as 0/6, with I from 0 to N - 1.")
    return things[int(found[1]) :: int(found[2])]


def folder_of(name: str) -> str:
    """Return the name of the folder in which a problem's runs are stored."""
    return re.sub(r"\W+", "-", name)
