"""Figure 5.1 of Han et al. as printed, as specified and as certified. See README.md.

This is a program of its own because agents are configured as in `contextual/figure-5-1` of
cases.toml, lines run over rounds, two are read off a picture, and insets magnify close lines.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from math import inf, isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandit.base import Floats, Ints, whole, write_atomically
from dpbandit.experiments import CASES
from dpbandit.experiments.figure import legend_beside
from dpbandit.experiments.study import Found, command, measured, start
from dpbandit.results.plots import (
    COLOURS,
    DASHES,
    Band,
    panels,
    rounds,
    student_band,
)
from dpbandit.results.runs import AgentRun
from dpbandit.studies import Configuration, Study, setup_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CASE = CASES["contextual/figure-5-1"]  # problem and agents of Figure 5.1 of Han et al. (2022)


class Published(NamedTuple):
    """A regret curve of the authors' picture, approximated by a straight line from 0."""

    label: str
    regret: float
    """Regret after `HORIZON` rounds"""
    reading: float
    """Largest error of `regret`, which is estimated from a picture"""


HORIZON = 10_000  # rounds of Figure 5.1
PUBLISHED = (Published("DP-UCB", 940, 80), Published("DP-HDB", 62, 10))
"""Curves read off the picture in the authors' public notebook, which has no numbers"""


class Line(NamedTuple):
    """An agent, and the panels that show it."""

    label: str
    panels: str
    """Letters of the panels in which the line is drawn"""
    agent: str
    """Id of the agent on the command line"""
    settings: Mapping[str, Any] = {}
    """Settings that override those of the case"""
    context_order: float = inf
    """Order p of the l_p norm in which contexts have length 1"""


_PRINTED = {"calibration": "paper"}  # settings of agents with the noise of the paper
_CLIPPED = {"residual_clip": 0.3, "radius": 0.2}  # settings of DP-HDB with private choices
_SMALL_BALL = {"gradient_clip": 0.4, "radius": 0.2}  # settings of DP-HDB with noisy sums

LINES = {
    "uniform": Line("uniform play", "abc", "uniform"),
    "uniform-l1": Line(r"uniform play, contexts of $\ell_1$ norm 1", "a", "uniform", {}, 1),
    "dp-ucb-paper": Line("DP-UCB", "b", "shariff-sheffet-ucb", _PRINTED),
    "dp-hdb-paper": Line("DP-HDB", "b", "dp-hdb-choices", _PRINTED),
    "dp-ucb": Line("DP-UCB, theory radius", "c", "dp-ucb"),
    "dp-ucb-greedy": Line("DP-UCB, greedy", "c", "dp-ucb", {"alpha": 0}),
    "dp-ucb-moment": Line("DP-UCB, moments alone", "c", "dp-moments"),
    "dp-hdb-gumbel": Line("DP-HDB, Gumbel choices", "c", "dp-hdb-choices", _CLIPPED),
    "dp-hdb": Line("DP-HDB, Gaussian sums", "c", "dp-hdb", _SMALL_BALL),
    "fliphat": Line("FLIPHAT", "c", "fliphat"),
    "batch-moment": Line("BatchMoment", "c", "batch-moment"),
    "fade": Line("FADE", "c", "fade"),
    "online-frank-wolfe": Line("online Frank-Wolfe", "ac", "online-frank-wolfe"),
    "linucb": Line("LinUCB", "c", "linucb"),
}
"""Name of a run -> the line of the figure in which it is drawn"""


def study(*, horizon: int = HORIZON, replicas: int = 50) -> Study:
    """Return the study of all lines; delta is 1 / horizon, as in the paper."""
    whole("replicas", replicas, 2)  # there are confidence bands
    whole("horizon", horizon, 100)  # there is room for the warm-up
    configurations = tuple(configuration(name, horizon) for name in LINES)
    return Study(name="Figure 5.1, again", configurations=configurations, replicas=replicas)


def configuration(name: str, horizon: int) -> Configuration:
    """Return the configuration of the run with this name in `LINES`."""
    line = LINES[name]
    target = {"epsilon": 1.0, "delta": 1 / horizon}
    target = {key: value for key, value in target.items() if key in CASE.agents[line.agent]}
    per_arm = horizon / CASE.env_kwargs["n_actions"]
    config = CASE.config(line.agent, {**target, **line.settings}, rounds_an_arm=per_arm)
    arguments = {**CASE.env_kwargs, "context_order": line.context_order}
    label = f"contexts of l_{line.context_order:g} norm 1"
    setup = setup_of(CASE.environment, arguments, horizon=horizon, label=label)
    return Configuration(setup, name, config)


_COLORS = [COLOURS[place] for place in (0, 1, 2, 3, 4, 5, 6, 9)]  # of agents' lines
_CERTIFIED = r"regret in the end; $\epsilon$ certified at $\delta$ = 1/T"  # title of a legend
_HEADINGS = {"a": "regret in the end", "b": _CERTIFIED, "c": _CERTIFIED}  # panel -> legend title
_TITLES = {  # letter of a panel -> its title
    "a": "(a) As printed: straight lines that coincide with uniform play,\n"
    r"DP-UCB's over contexts of $\ell_\infty$ norm 1, DP-HDB's of $\ell_1$ norm 1",
    "b": "(b) As specified, with the paper's constants: neither differs from uniform play",
    "c": r"(c) As certified: what is possible at the same ($\epsilon$, $\delta$)",
}


class Curve(NamedTuple):
    """Values of a line of the figure, measured or printed, and how it is drawn."""

    label: str
    marks: Ints
    values: Floats
    """Cumulative regret at the logged rounds, (marks, R)"""
    color: Any = "black"
    dashes: Any = "solid"
    band: Band = student_band

    @property
    def end(self) -> float:
        """Mean regret after the last round."""
        return float(self.values[-1].mean())


def draw(runs: Mapping[str, AgentRun], path: Path) -> None:
    """Draw Figure 5.1 with all panels to the file `path` (.png, .svg or .pdf)."""
    some = next(iter(runs.values()))
    heading = (
        "Figure 5.1, private bandits in high dimension, examined again\n"
        rf"d = 50, 2 arms, claim $\epsilon$ = 1, $\delta$ = 1/T;  "
        f"mean of {len(some.replicas)} runs with 95 % bands of the mean"
    )
    how: dict[str, Any] = {"size": (12, 13), "rows": 3, "heights": (1, 1, 1.5)}
    with panels(path, list(_TITLES.values()), heading=heading, **how) as column:
        for letter, axes in zip("abc", column, strict=True):
            _panel(axes, letter, {n: run for n, run in runs.items() if letter in LINES[n].panels})
        column[-1].set_xlim(0, int(some.marks[-1]))
        column[-1].set_xlabel("round (one user each)")
        column[-1].xaxis.set_major_formatter("{x:,.0f}")


def _panel(axes: "Axes", letter: str, runs: Mapping[str, AgentRun]) -> None:
    lines = list(_styled(sorted(_curves(runs), key=lambda one: -one.end)))
    worst = lines[0]
    if letter == "a":
        lines += _published(worst.marks)
    _draw_lines(axes, lines)
    axes.set_ylim(bottom=0)
    if letter == "a":
        lower = [line for line in lines if line.end < worst.end / 2]
        _inset(axes, "the lower ones", lower).set_ylim(bottom=0)
    if letter == "b":
        title, uniform = "less uniform play, which meets the same users", runs["uniform"].regret
        _inset(axes, title, [line._replace(values=line.values - uniform) for line in lines])
    if letter == "c":
        axes.set_yscale("log")
        axes.set_yticks([3, 10, 30, 100, 300, 1000])
        axes.minorticks_off()
        axes.set_ylim(2, 1.5 * worst.end)
    axes.yaxis.set_major_formatter("{x:,.6g}")
    axes.set_ylabel("cumulative regret (reward)" + (", log scale" if letter == "c" else ""))
    legend_beside(axes, _HEADINGS[letter])


def _curves(runs: Mapping[str, AgentRun]) -> Iterator[Curve]:
    for name, run in runs.items():
        label, epsilon = LINES[name].label, run.certificate.epsilon
        if epsilon > 0:
            label += " (not private)" if isinf(epsilon) else rf" ($\epsilon$ = {epsilon:.2g})"
        yield Curve(f"{label}: {run.regret[-1].mean():.3g}", run.marks, run.regret)


def _styled(curves: Sequence[Curve]) -> Iterator[Curve]:
    """Yield the curves with styles: baselines in black, others in different colours and dashes."""
    colors, public = iter(_COLORS), iter((DASHES[3], DASHES[1]))
    for place, curve in enumerate(curves):
        if curve.label.startswith("uniform"):
            yield curve._replace(dashes=DASHES[2] if "ell_1" in curve.label else "solid")
        elif "not private" in curve.label:
            yield curve._replace(dashes=next(public))
        else:
            yield curve._replace(color=next(colors), dashes=DASHES[place % 3])


def _published(marks: Ints) -> Iterator[Curve]:
    """Yield the published straight lines, with bands as wide as the error of reading a picture."""
    for (name, regret, reading), color in zip(PUBLISHED, _COLORS, strict=False):
        label = f"{name}, published (read off): {regret:.0f} ± {reading:.0f}"
        values = marks[:, None] / HORIZON * np.array([regret - reading, regret + reading])
        yield Curve(label, marks, values, color, DASHES[1], lambda v: (v[:, 0], v[:, 1]))


def _inset(axes: "Axes", title: str, lines: Iterable[Curve]) -> "Axes":
    """Draw lines in an inset at a larger scale; return its axes."""
    inset = axes.inset_axes((0.08, 0.54, 0.38, 0.38))
    _draw_lines(inset, lines)
    inset.margins(x=0)
    inset.set_xticks([])
    inset.tick_params(labelsize="small")
    inset.set_title(title, fontsize="small", loc="left", pad=3)
    return inset


def _draw_lines(axes: "Axes", lines: Iterable[Curve]) -> None:
    for label, marks, values, color, dashes, band in lines:
        rounds(axes, marks, values, label, color=color, dashes=dashes, band=band)


QUICK_SIZES = {"horizon": 500, "replicas": 3}  # of a quick run (`--quick`)


def run(sizes: Mapping[str, int], out: Path) -> Found:
    """Draw Figure 5.1 as printed, as specified and as certified. Resumes where it stopped."""
    results = measured(study(**sizes), out)
    runs = {run.name: run for run in results.runs}
    lines = {name: runs[name] for name in LINES}
    lines_of_text = [
        f"{name:14} regret {run.regret[-1].mean():7.1f}   "
        f"certified epsilon {run.certificate.epsilon:.3g}"
        for name, run in lines.items()
    ]
    drawn = write_atomically(out / "figure_5_1.png", partial(draw, lines))
    return Found({"summary": results.summary()}, [drawn], lines_of_text)


main = command("figure_5_1", run, {}, QUICK_SIZES)

if __name__ == "__main__":
    start(main)
