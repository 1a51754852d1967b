"""What agents reach at the privacy they certifiably have."""

import re
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.results.drawing import Band, level, line, log_ticks, student_band
from dpbandit.results.labels import restricted, short
from dpbandit.results.runs import AgentRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SMALLEST, _LARGEST = 1e-9, 1e9
"""Epsilons that have a place on an axis; less is none at all, and more is no privacy"""
_STEPS = 25
"""Of an overlay"""
_EPSILON = re.compile(r":epsilon=[^:]*")
"""In the name of an agent that is an id with settings"""


class Front(NamedTuple):
    """One agent's line: a run for each of its claims."""

    label: str
    runs: Sequence[AgentRun]
    look: int
    """place in palette, dashes and markers, to look alike in several figures"""


class Overlay(NamedTuple):
    """A line that nobody measured: a bound, or the shape of one."""

    label: str
    at: Callable[[float], float]
    """epsilon, at the figure's delta -> regret"""
    dashes: Any = "solid"
    color: Any = "black"


def final(run: AgentRun) -> Floats:
    """Regret after the last round, (R,)."""
    last: Floats = run.regret[-1]
    return last


def placed(run: AgentRun) -> bool:
    """Whether its certified epsilon can be a place on an axis."""
    return _SMALLEST < run.certificate.epsilon < _LARGEST


def fronts_of(runs: Iterable[AgentRun]) -> tuple[list[Front], list[tuple[str, Floats]]]:
    """A line for each name that claims an epsilon, with what restricts it; all others as levels.

    Names of ids that differ in epsilon alone, fade:epsilon=1 and fade:epsilon=3, are one line.
    """
    lines: dict[str, list[AgentRun]] = {}
    for run in runs:
        lines.setdefault(_EPSILON.sub("", run.name), []).append(run)
    private = {name: line for name, line in lines.items() if any(map(claims, line))}
    levels = [
        (name, final(run)) for name, line in lines.items() if name not in private for run in line
    ]
    fronts = [
        Front(restricted(name, line), line, look)
        for look, (name, line) in enumerate(private.items())
    ]
    return fronts, levels


def frontier(
    axes: "Axes",
    fronts: Iterable[Front],
    levels: Iterable[tuple[str, Floats]] = (),
    *,
    value: Callable[[AgentRun], Floats] = final,
    band: Band = student_band,
    overlays: Iterable[Overlay] = (),
) -> None:
    """Draw what agents reach over the epsilon that is certified, never over the one claimed.

    Runs for which none is certified stand on the right, at infinity, apart from the lines; those at
    0 are levels.

    Args:
        axes: where; its label below says what epsilon is of.
        fronts: one for each agent.
        levels: labels and values (R,) of what has no epsilon, each a horizontal line.
        value: run -> what is drawn of it, (R,).
        band: 95 % intervals of the mean.
        overlays: bounds, or shapes of them.
    """
    shown = [front._replace(runs=sorted(front.runs, key=_epsilon)) for front in fronts]
    every = [run for front in shown for run in front.runs]
    beyond = 2.5 * max((_epsilon(run) for run in every if placed(run)), default=1.0)
    none = [(one.label, value(run)) for one in shown for run in one.runs if _nothing(run)]
    axes.set_xscale("log")
    for front in shown:
        label = front.label
        within = [run for run in front.runs if placed(run)]
        without = [run for run in front.runs if not (placed(run) or _nothing(run))]
        for runs, where in (
            (within, list(map(_epsilon, within))),
            (without, [beyond] * len(without)),
        ):
            if runs:
                line(axes, where, [value(run) for run in runs], label, front.look, band=band)
                label = "_the same"  # in no legend
    for place, (label, values) in enumerate([*none, *levels]):
        shade, dashes = level(place)
        axes.axhline(values.mean(), color=shade, lw=1.4, ls=dashes, label=label)
    _draw_overlays(axes, overlays, [_epsilon(run) for run in every if placed(run)])
    log_ticks(axes.xaxis)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:,.6g}")
    axes.minorticks_off()
    if any(_epsilon(run) >= _LARGEST for run in every):
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if low <= tick < beyond / 1.4]
        axes.set_xticks([*ticks, beyond], [*(f"{tick:g}" for tick in ticks), "∞"])
        axes.set_xlim(low, high)
    axes.set_xlabel(_what_epsilon(list(filter(placed, every))))


def _draw_overlays(axes: "Axes", overlays: Iterable[Overlay], epsilons: Sequence[float]) -> None:
    """From the least to the largest epsilon that somebody has."""
    for overlay in overlays:
        where = np.geomspace(min(epsilons), max(epsilons), _STEPS)
        values = [overlay.at(float(epsilon)) for epsilon in where]
        how: dict[str, Any] = {"color": overlay.color, "ls": overlay.dashes, "lw": 1.8}
        axes.plot(where, values, label=overlay.label, **how)


def claims(run: AgentRun) -> bool:
    """Whether it claims an epsilon between none and infinity."""
    return 0 < run.certificate.claimed_epsilon < inf


def _epsilon(run: AgentRun) -> float:
    return run.certificate.epsilon


def _nothing(run: AgentRun) -> bool:
    return _epsilon(run) <= _SMALLEST


def _what_epsilon(runs: Sequence[AgentRun]) -> str:
    """Of what, and at which delta, where that is one."""
    notions = {run.certificate.ledger.scope.partition(",")[0] for run in runs}
    deltas = {run.certificate.claimed_delta for run in runs}
    at = f" at delta {short(deltas.pop())}" if len(deltas) == 1 else ""
    of = f",\n{notions.pop()}" if len(notions) == 1 else ""
    return f"certified epsilon{at}{of}"
