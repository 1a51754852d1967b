"""Panels of a study, with its lines of runs: learners in colour and baselines in grey."""

from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dpbandit.base.arrays import Floats
from dpbandit.experiments.questions import Place, RunLines, horizon
from dpbandit.results.plots import (
    Front,
    Overlay,
    claims,
    final,
    from_zero,
    frontier,
    level,
    line,
    log_ticks,
    panels,
)
from dpbandit.results.runs import AgentRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def panes(
    path: Path,
    found: Mapping[str, RunLines],
    heading: str,
    size: tuple[float, float],
    titles: Mapping[str, str] | None = None,
    *,
    rows: int = 1,
) -> "AbstractContextManager[list[Axes]]":
    """A panel for each of `found`, in rows, under a heading that says of how many replicas."""
    run = next(iter(next(iter(found.values())).values()))[0]
    sample = f"mean of {len(run.replicas)} replicas, 95 % intervals"
    names = [(titles or {}).get(name, name) for name in found]
    return panels(path, names, heading=f"{heading}\n{sample}", size=size, rows=rows)


def draw_frontier(
    axes: "Axes",
    lines: RunLines,
    value: Callable[[AgentRun], Floats] = final,
    *,
    names: Mapping[str, str] | None = None,
    log: bool = False,
    overlays: Iterable[Overlay] = (),
) -> None:
    """Whoever claims an epsilon over what is certified, all others as levels, beside `overlays`.

    `names` are the legend's words, where these are others; `log` is of the values.
    """
    words = dict(names or {})
    private = {label: runs for label, runs in lines.items() if any(map(claims, runs))}
    fronts = [Front(words.get(n, n), runs, look) for look, (n, runs) in enumerate(private.items())]
    levels = [(label, value(runs[0])) for label, runs in lines.items() if label not in private]
    frontier(axes, fronts, levels, value=value, overlays=overlays)
    if log:
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.minorticks_off()
    else:
        from_zero(axes)


def regret(values: Floats, rounds: Any) -> Floats:
    """As it is."""
    return values


def draw_lines(
    axes: "Axes",
    lines: RunLines,
    place: Place,
    value: Callable[[Floats, Any], Floats] = regret,
    *,
    names: Mapping[str, str] | None = None,
    grey: Collection[str] = (),
) -> None:
    """Every line with its bars; one run alone over its rounds if these are the axis, else a level.

    Args:
        axes: where.
        lines: label -> runs.
        place: where a run stands; `horizon` where rounds are the axis.
        value: (regret, rounds) -> what is drawn.
        names: label -> the legend's words, where these are others.
        grey: labels of further lines that are drawn as baselines.
    """
    words = dict(names or {})
    learners = {n: runs for n, runs in lines.items() if len(runs) > 1 and n not in grey}
    for look, (label, runs) in enumerate(learners.items()):
        values = [_end(run, value) for run in runs]
        line(axes, [place(run) for run in runs], values, words.get(label, label), look)
    for number, label in enumerate(name for name in lines if name not in learners):
        runs, (shade, dashes) = lines[label], level(number)
        how: dict[str, Any] = {"color": shade, "ls": dashes, "lw": 1.4}
        how["label"] = words.get(label, label)
        if len(runs) > 1:
            means = [_end(run, value).mean() for run in runs]
            axes.plot([place(run) for run in runs], means, **how)
        elif place is horizon:
            first = min(place(run[0]) for run in learners.values())
            marks, table = runs[0].marks, value(runs[0].regret, runs[0].marks[:, None])
            axes.plot(marks[marks >= first], table[marks >= first].mean(axis=1), **how)
        else:
            axes.axhline(_end(runs[0], value).mean(), **how)


def _end(run: AgentRun, value: Callable[[Floats, Any], Floats]) -> Floats:
    return value(run.regret[-1], run.setup.horizon)
