"""Schema of tables `[[figure]]` of `study.toml`: runs of an experiment, and how to draw them.

Functions are named MODULE:FUNCTION, relative to `dpbandit.experiments`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from functools import partial
from math import log, log2, sqrt
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias

import numpy as np
from matplotlib.ticker import NullLocator
from pydantic import BaseModel, ConfigDict

from dpbandit.base import Floats
from dpbandit.results.plots import (
    Front,
    Overlay,
    claims,
    final,
    from_zero,
    frontier,
    legend_at_the_foot,
    level,
    line,
    log_ticks,
    panels,
)
from dpbandit.results.runs import AgentRun, Slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes


RunLines: TypeAlias = Mapping[str, Sequence[AgentRun]]
"""Label of a line -> its runs, one for each value of the axis, or a single one (baseline)"""


class Strict(BaseModel):
    """Table of a TOML file in which unknown keys are refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class LineGroup(Strict):
    """Some lines of a panel, with keys that hold for these lines only."""

    agents: list[str]
    """Names of tables [agents.NAME], or labels of single agents"""
    but: list[str] = []
    """Labels of agents that are omitted, though these tables have them"""
    problem: str = ""
    """Label of the problem of these lines; by default the panel's"""
    each: dict[str, Any] = {}
    """Variable -> values; one line for each combination of values"""
    let: dict[str, Any] = {}
    run: str = ""
    """Format of names of runs, if the agent varies along the axis; by default the line's label"""
    then: str = ""
    """Label of the agent played instead of these agents at the last value of the axis"""
    last: bool = False
    """True if these lines are played at the last value of the axis only"""
    adapt: str = ""
    """Function from (configuration, variables) to another configuration, or None to drop it"""


class Guide(Strict):
    """A straight line on logarithmic axes, drawn beside a measured line to compare slopes."""

    label: str
    power: float
    through: str
    """Label of the measured line beside which the guide is drawn"""
    at: float = 1.0
    """Height of the right end of the guide, divided by the last value of the measured line"""


class Panel(Strict):
    """Panel of a figure; keys that it omits have the figure's values."""

    name: str = ""
    """Name of the panel in tables and stores; by default the problem's label"""
    title: str = ""
    """Title in the picture; by default the title in [titles], or else the name"""
    problem: str = ""
    """Label of the problem, a key of [problems]"""
    each: dict[str, Any] = {}
    """Variable -> values; one panel for each combination of values"""
    over: dict[str, Any] = {}
    """Variable of the horizontal axis -> its values"""
    let: dict[str, Any] = {}
    """Variable -> formula of sizes and of other variables that computes it"""
    lines: list[str | LineGroup] = []
    """Names of tables [agents.NAME], labels of single agents, or `LineGroup` tables"""

    x: str = "epsilon"
    """Variable of the horizontal axis, such as T, epsilon, or an argument or setting"""
    value: str = "regret"
    """Drawn value, a key of `VALUES` or the name of a function of (regret, rounds, run, lines)"""
    xlabel: str = ""
    ylabel: str = "regret"
    legend: str | int = ""
    """Title of legends below the panels, or "beside", or the columns of a legend at the foot"""


class Figure(Panel):
    """An experiment and its plot; if it lists no lines, it plots the runs of another figure."""

    file: str = ""
    """Name of the picture's file; "" if a program draws it elsewhere"""
    question: str
    """Name of the experiment to which the runs belong; by default `file`"""
    panels: list[Panel] = []
    replicas: str = "replicas"
    """Key of [sizes] with the number of replicas"""
    cell: str = ""
    """Value in the cells of tables, named as in `value`; by default the drawn value"""
    every: int = 1
    """Step n; tables have a column for every n-th value of the horizontal axis"""
    exponent: str = ""
    """Variable in which an exponent of regret is fitted, such as T, epsilon or ln d"""
    exponent_format: str = ""
    """Format of the fitted exponent `s` in the legend"""

    heading: str = ""
    size: tuple[float, float] = (7.6, 6.0)
    """Width and height in inches"""
    rows: int = 1
    axes: Literal["loglog", "log y", "base 2"] = "loglog"
    """Scales of axes; in "base 2" the vertical axis is linear if its upper limit `most` is given"""
    ticks: int = 1
    """Step n of ticks; the horizontal axis has a tick at every n-th of its values"""
    few_ticks: bool = False
    """True for ticks at 1, 2 and 5 of each decade of the vertical axis"""
    most: float | None = None
    linear: bool = False
    """True if the vertical axis over epsilon is linear and begins at 0"""
    outer: bool = False
    """True if only the outermost panels label their axes"""
    words: dict[str, str] = {}
    """Label of a line -> its name in the legend, if that differs"""
    but_last: bool = False
    """True if lines are drawn without their last value, and lines of a single run not at all"""
    hidden: list[str] = []
    """Labels that are not drawn"""
    grey: list[str] = []
    """Labels of lines that are drawn in the style of baselines"""
    beside: str = ""
    """Function of (lines of a panel, variable x of the axis) that yields bounds, as `Overlay`s"""
    guide: Guide | None = None
    labels: str = ""
    """Function of (label, runs) that returns another label for a line"""
    program: str = ""
    """Function of (path, figure, panels, lines by panel) that draws the picture instead"""

    @property
    def asks_for_runs(self) -> bool:
        """True if the figure or a panel lists lines, False if it draws another figure's runs."""
        return any(panel.lines for panel in (self, *self.panels))


class Pane(NamedTuple):
    """A panel with the values of the sizes and variables that occur in its keys."""

    name: str
    title: str
    table: Figure
    """Keys of the panel, completed by those of the figure"""
    known: Mapping[str, Any]
    """Name of a size or variable -> its value, without the variable of the axis"""
    at: Mapping[str, Any]
    """Name of a size or variable -> its value at the last value of the axis"""


_FUNCTIONS = {"sqrt": sqrt, "log": log, "log2": log2, "max": max, "min": min}  # of formulas


def computed(text: Any, known: Mapping[str, Any]) -> Any:
    """Evaluate a formula of `known` values and `_FUNCTIONS`; return other types unchanged.

    >>> computed("sqrt(d) / epsilon", {"d": 4, "epsilon": 0.5}), computed(3, {})
    (4.0, 3)
    """
    if not isinstance(text, str):
        return text
    return eval(text, {"__builtins__": {}, **_FUNCTIONS}, dict(known))


def place_of(run: AgentRun, x: str) -> float:
    """Return the value that a run has on the axis `x`.

    The axis epsilon is the claimed epsilon; others are settings of the agent or arguments of its
    problem.
    """
    if x == "T":
        return run.setup.horizon
    if x == "epsilon":
        return run.certificate.claimed_epsilon
    if x.startswith("ln "):
        return log(place_of(run, x.removeprefix("ln ")))
    return float({**run.config, **run.setup.env_kwargs}[_LETTERS.get(x, x)])


_LETTERS = {"d": "n_actions", "W": "window"}  # axis -> argument or setting
_XLABELS = {"T": "horizon T (rounds)", "d": "number of experts d"}  # axis -> its label


Value: TypeAlias = Callable[[Floats, Any, AgentRun, RunLines], Floats]


def _share(regret: Floats, rounds: Any, run: AgentRun, lines: RunLines) -> Floats:
    (uniform,) = lines["Uniform"]
    return 100 * regret / float(uniform.regret[-1].mean())


def _excess(regret: Floats, rounds: Any, run: AgentRun, lines: RunLines) -> Floats:
    (line_of_run,) = (line for line in lines.values() if any(run is other for other in line))
    return 1000 * (regret - line_of_run[-1].regret[-1]) / rounds


VALUES: Mapping[str, Value] = {
    "regret": lambda regret, rounds, run, lines: regret,
    "regret / T": lambda regret, rounds, run, lines: regret / rounds,
    "regret per 1,000": lambda regret, rounds, run, lines: 1000 * regret / rounds,
    "% of uniform": _share,
    "excess per 1,000": _excess,
}
"""Name -> function of (regret, rounds, run, lines of the panel) that returns the drawn value; an
excess is the difference from the last run of the same line, on the same users"""


def value_of(name: str, run: AgentRun, lines: RunLines) -> Floats:
    """Compute the value `name`, see `VALUES`, of a run after its last round, (R,)."""
    return _function(name)(run.regret[-1], run.setup.horizon, run, lines)


def _function(name: str) -> Value:
    return VALUES[name] if name in VALUES else named_function(name)


def named_function(name: str) -> Any:
    """Return the function with the name MODULE:FUNCTION, relative to `dpbandit.experiments`."""
    return resolve_name(f"dpbandit.experiments.{name}")


def draw(
    path: Path,
    figure: Figure,
    panes: Sequence[Pane],
    found: Mapping[str, RunLines],
    exponents: Mapping[tuple[str, str], Slope],
) -> None:
    """Draw the runs `found` by panel; the legend has the `exponents`, by (panel, label)."""
    titles = [pane.title for pane in panes]
    heading, rows = figure.heading.format(**panes[0].at), figure.rows
    with framed(path, titles, heading, figure.size, found, rows=rows) as grid:
        for axes, pane in zip(grid, panes, strict=True):
            table, lines = pane.table, found[pane.name]
            names = {label: table.words.get(label, label) for label in lines}
            for (panel, label), s in exponents.items():
                if panel == pane.name:
                    names[label] += f": {table.exponent_format.format(s=s)}"
            _draw_pane(axes, table, lines, names)
            if table.legend == "beside" and pane is panes[-1]:
                legend_beside(axes)
            elif isinstance(table.legend, str) and table.legend != "beside":
                legend_below(axes, table.legend)
        if isinstance(figure.legend, int):
            legend_at_the_foot(grid[0], figure.legend)


def framed(
    path: Path,
    titles: Sequence[str],
    heading: str,
    size: tuple[float, float],
    found: Mapping[str, RunLines],
    *,
    rows: int = 1,
) -> "AbstractContextManager[list[Axes]]":
    """Open the panels of a figure, below a heading that states the number of replicas."""
    run = next(iter(next(iter(found.values())).values()))[0]
    sample = f"mean of {len(run.replicas)} replicas, 95 % intervals"
    return panels(path, titles, heading=f"{heading}\n{sample}", size=size, rows=rows)


def _draw_pane(axes: "Axes", table: Figure, lines: RunLines, names: Mapping[str, str]) -> None:
    visible = {label: runs for label, runs in lines.items() if label not in table.hidden}
    if table.but_last:
        visible = {label: runs[:-1] for label, runs in visible.items() if len(runs) > 1}
    beside = list(named_function(table.beside)(lines, table.x)) if table.beside else []
    if table.x == "epsilon":
        value = partial(value_of, table.value, lines=lines)
        draw_frontier(axes, visible, value, names=names, log=not table.linear, overlays=beside)
    else:
        places = draw_lines(axes, visible, table, names)
        for overlay in beside:
            heights = [overlay.at(x) for x in places]
            axes.plot(places, heights, color=overlay.color, ls=overlay.dashes, label=overlay.label)
        if guide := table.guide:
            end = float(value_of(table.value, visible[guide.through][-1], lines).mean())
            slant = guide.at * end * (np.array(places) / places[-1]) ** guide.power
            axes.plot(places, slant, color="black", lw=1, label=guide.label)
        _scale(axes, table, places[:: table.ticks])
    xlabel = table.xlabel or _XLABELS.get(table.x, axes.get_xlabel())
    place: Any = axes.get_subplotspec()
    axes.set_xlabel(xlabel if place.is_last_row() or not table.outer else "")
    axes.set_ylabel(table.ylabel if place.is_first_col() or not table.outer else "")
    axes.tick_params(labelbottom=place.is_last_row() or not table.outer)


def _scale(axes: "Axes", table: Figure, ticks: Sequence[float]) -> None:
    if table.axes == "loglog":
        loglog(axes, ticks)
        if table.few_ticks:
            log_ticks(axes.yaxis)
            axes.minorticks_off()
        return
    if table.axes == "log y":
        axes.set_yscale("log")
        return
    axes.set_xscale("log", base=2)
    if table.most is None:
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter("")
    else:
        axes.set_ylim(-0.02, table.most + 0.02)


def draw_frontier(
    axes: "Axes",
    lines: RunLines,
    value: Callable[[AgentRun], Floats] = final,
    *,
    names: Mapping[str, str] | None = None,
    log: bool = False,
    overlays: Iterable[Overlay] = (),
) -> None:
    """Draw private agents against their certified epsilon, and others as horizontal lines.

    `names` replace labels in the legend; `log` makes the vertical axis logarithmic.
    """
    words = dict(names or {})
    private = {label: runs for label, runs in lines.items() if any(map(claims, runs))}
    fronts = [Front(words.get(n, n), runs, look) for look, (n, runs) in enumerate(private.items())]
    public = {label: runs[0] for label, runs in lines.items() if label not in private}
    levels = [(words.get(label, label), value(run)) for label, run in public.items()]
    frontier(axes, fronts, levels, value=value, overlays=overlays)
    if log:
        axes.set_yscale("log")
        log_ticks(axes.yaxis)
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.minorticks_off()
    else:
        from_zero(axes)


def draw_lines(
    axes: "Axes", lines: RunLines, table: Figure, names: Mapping[str, str]
) -> list[float]:
    """Draw all lines with error bars; return the sorted values of the axis.

    A single run is drawn by round if the axis is T, else as a horizontal line. Lines in
    `table.grey` have no error bars.
    """

    def end(run: AgentRun) -> Floats:
        return value_of(table.value, run, lines)

    several = {n: runs for n, runs in lines.items() if len(runs) > 1}
    places = {n: [place_of(run, table.x) for run in runs] for n, runs in several.items()}
    learners = {n: runs for n, runs in several.items() if n not in table.grey}
    for look, (label, runs) in enumerate(learners.items()):
        line(axes, places[label], [end(run) for run in runs], names[label], look)
    for number, label in enumerate(name for name in lines if name not in learners):
        runs, (shade, dashes) = lines[label], level(number)
        how: dict[str, Any] = {"color": shade, "ls": dashes, "lw": 1.4, "label": names[label]}
        if len(runs) > 1:
            axes.plot(places[label], [end(run).mean() for run in runs], **how)
        elif table.x == "T":
            first = min(places[name][0] for name in learners)
            marks, regret = runs[0].marks, runs[0].regret
            values = _function(table.value)(regret, marks[:, None], runs[0], lines)
            axes.plot(marks[marks >= first], values[marks >= first].mean(axis=1), **how)
        else:
            axes.axhline(end(runs[0]).mean(), **how)
    return sorted({place for line in places.values() for place in line})


def legend_beside(axes: "Axes", title: str | None = None) -> None:
    """Draw the legend to the right of the axes."""
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    axes.legend(title=title, frameon=False, handlelength=3.5, alignment="left", **where)


def legend_below(axes: "Axes", title: str) -> None:
    """Draw the legend under the axes, in two columns."""
    axes.legend(
        title=title,
        loc="upper center",
        bbox_to_anchor=(0.48, -0.16),
        ncols=2,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        handlelength=2.6,
        columnspacing=1.5,
    )


def loglog(axes: "Axes", ticks: Sequence[float]) -> None:
    """Make both axes logarithmic, and set the ticks of the horizontal one."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(ticks), [f"{tick:,g}" if tick < 1e6 else f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter("{x:,.6g}")
