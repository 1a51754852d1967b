"""Four readings of Table 5.1: who plays, with which noise, and which step scales are tried::

    printed     the laws of Table 5.1's program: the printed radius Gamma(d/2, 2 sigma_+); for p < 2
                also its norm index and directions
    stated      the laws that the theorems need, at the same stated constants
    public      no privacy; beside it the floor, least squares on the same data
    certified   what is truly (1, 1/T)-DP

The first three take the best step scale of the grid that the authors' program took, chosen after
looking, as the paper did. What is certified has one fixed configuration for all rows.
"""

from collections.abc import Callable, Iterator, Mapping
from math import inf
from typing import Any, NamedTuple

from dpbandit.agents import (
    AGENTS,
    DPTOFW,
    LeastSquares,
    LocalisedTOFW,
    NoisySFW,
    NoisySGD,
    RecursiveFrankWolfe,
)
from dpbandit.agents.streams.frank_wolfe import Bounds
from dpbandit.base.inputs import one_of
from dpbandit.experiments.sgd.printed import Row, Setting
from dpbandit.specs.protocols import AgentConfig

READINGS = ("printed", "stated", "public", "certified")
DP_TOFW, LOCALISED, FLOOR = "DP-TOFW, certified", "DP-TOFW, localised", "least squares"
COMPETITORS: Mapping[str, Mapping[str, Any]] = {
    "noisy-sfw": {},
    "noisy-sgd": {"refit": "once"},
    "phased-sgd": {},
    "snowball-sgd": {"refit": "once"},
    "local-md": {},
    "dp-ftrl": {},
}
"""Command-line ids and settings of who else is (1, 1/T)-DP."""

STATED = Bounds(lipschitz=4.0, smoothness=1.0, diameter=4.0)
"""L, beta and D of the authors' program, whatever the data; L is 6.5 and beta 2."""
_LITERAL = {"norm_index": "printed", "direction": "printed"}
_ONE = 1.0
"""The step scale of a line that has nothing to choose."""
FRANK_WOLFE_SCALES = {1.5: (0.4, 0.6, 1.0), inf: (0.6, 0.7, 0.8, 1.0)}
_MORE_SCALES = (0.2, 0.4, 0.6, 0.8, 1.0)
BATCH_SCALES = (0.01, 0.02, 0.04, 0.06, 0.08, 0.1)
"""The step scales that the authors' program tried."""


class Line(NamedTuple):
    """A column of the table."""

    label: str
    reading: str
    configs: Mapping[float, AgentConfig]
    """step scale -> the agent; the best one counts, in hindsight"""

    @property
    def tried(self) -> bool:
        """There are several step scales to choose from."""
        return len(self.configs) > 1

    @property
    def reads_table(self) -> bool:
        """It is what a reading makes of the printed row, and no other agent beside it."""
        return self.reading != "certified" and self.label != FLOOR


def lines(row: Row, readings: tuple[str, ...]) -> list[Line]:
    """What is run beside a printed row.

    The rows of OFW, one for each setting, also show the competitors.
    """
    for reading in readings:
        one_of("reading", reading, READINGS)
    made = _OF_ALGORITHM[row.algorithm](row.setting)
    return [line for line in made if line.reading in readings]


def varied_lines(setting: Setting) -> list[Line]:
    """All that take Frank-Wolfe's steps, over a wider grid of scales."""
    return [
        Line(label, reading, {c: make(setting, c) for c in _MORE_SCALES})
        for label, (reading, make) in _STEPPING.items()
    ]


def printed_agent(algorithm: str, setting: Setting, scale: float) -> AgentConfig:
    """DP-TOFW or NoisySFW under the laws of the authors' program."""
    if algorithm == "NoisySFW":
        return _sfw(setting.delta, scale, **_laws(setting.p))
    return _paper(setting, scale, **_laws(setting.p))


def _frank_wolfe(setting: Setting) -> Iterator[Line]:
    delta = setting.delta
    for label, (reading, make) in _STEPPING.items():
        if reading != "certified":
            scales = FRANK_WOLFE_SCALES[setting.p]
            yield Line(label, reading, {c: make(setting, c) for c in scales})
    yield Line(FLOOR, "public", {_ONE: LeastSquares()})
    yield Line(DP_TOFW, "certified", {_ONE: DPTOFW(delta=delta)})
    yield Line(LOCALISED, "certified", {_ONE: LocalisedTOFW(delta=delta)})
    for name, settings in COMPETITORS.items():
        yield Line(name, "certified", {_ONE: AGENTS[name](delta=delta, **settings)})


def _batches(setting: Setting) -> Iterator[Line]:
    p, delta = setting.p, setting.delta
    for reading, laws in (("printed", _laws(p)), ("stated", {})):
        configs = {c: _sfw(delta, c, **laws) for c in BATCH_SCALES}
        yield Line(f"NoisySFW, {reading}", reading, configs)
    yield Line("noisy-sfw", "certified", {_ONE: NoisySFW(delta=delta)})


def _descent(setting: Setting) -> Iterator[Line]:
    yield Line(
        "noisy-sgd", "certified", {_ONE: NoisySGD(delta=setting.delta, **COMPETITORS["noisy-sgd"])}
    )


def _paper(setting: Setting, scale: float, **laws: Any) -> DPTOFW:
    return DPTOFW(
        delta=setting.delta,
        calibration="paper",
        step=scale,
        **STATED._asdict(),
        **laws,
    )


_STEPPING: Mapping[str, tuple[str, Callable[[Setting, float], AgentConfig]]] = {
    "DP-TOFW, printed": ("printed", lambda at, c: _paper(at, c, **_laws(at.p))),
    "DP-TOFW, stated": ("stated", _paper),
    "online Frank-Wolfe": ("public", lambda at, c: RecursiveFrankWolfe(step=c)),
    DP_TOFW: ("certified", lambda at, c: DPTOFW(delta=at.delta, step=c)),
    LOCALISED: ("certified", lambda at, c: LocalisedTOFW(delta=at.delta, step=c)),
}
"""label -> reading, and the agent of a problem and a step scale"""
_OF_ALGORITHM = {"OFW": _frank_wolfe, "NoisySFW": _batches, "NoisySGD": _descent}


def _laws(p: float) -> dict[str, Any]:
    """What the authors' program drew; for p > 2 the noise is normal, and kappa cancels."""
    return {"radius": "printed", **(_LITERAL if p < 2 else {})}


def _sfw(delta: float, scale: float, **laws: Any) -> NoisySFW:
    return NoisySFW(
        delta=delta,
        calibration="paper",
        scale=scale,
        lipschitz=STATED.lipschitz,
        smoothness=STATED.smoothness,
        **laws,
    )
