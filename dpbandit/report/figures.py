"""The figures of a report: regret by round, by certified epsilon and by horizon; switches; time."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, LogLocator

from dpbandit.arrays import Floats
from dpbandit.comparisons import bootstrap_band
from dpbandit.files import write_atomically
from dpbandit.plots import Curve, regret_curves, save_figure, style
from dpbandit.results import Results, as_text, label
from dpbandit.runs import AgentRun
from dpbandit.slopes import slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = "osD^vPXp*h"
_DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))
_MOST_TARGETS = 3
_MOST_MARKS = 150
_NARROW = 40
"""Letters of a label, two of which stand side by side"""


class Picture(NamedTuple):
    """One figure and what it shows."""

    name: str
    """of its file, without ending"""
    caption: str
    draw: Callable[[Path], None]

    def save(self, folder: Path, ending: str) -> Path:
        """The figure as `folder`/`name` + `ending`; atomically."""
        return write_atomically(folder / f"{self.name}{ending}", self.draw)


class Problem(NamedTuple):
    """The runs on one problem, all horizons and targets."""

    number: int
    name: str
    results: Results

    @property
    def longest(self) -> Results:
        """Those of the largest horizon."""
        return self.results.where(horizon=max(run.setup.horizon for run in self.results.runs))


def problems(results: Results) -> list[Problem]:
    """The results, problem by problem, in the order of their names."""
    names = sorted({run.setup.problem for run in results.runs})
    return [Problem(n, name, results.where(problem=name)) for n, name in enumerate(names, 1)]


def pictures(problem: Problem) -> Iterator[Picture]:
    """All figures of one problem that its runs allow."""
    longest = problem.longest
    T = longest.runs[0].setup.horizon
    names = sorted({run.name for run in problem.results.runs})
    looks = {name: place for place, name in enumerate(names)}
    yield from _curves(problem, looks)
    if len(_targets(longest)) > 1:
        yield Picture(
            f"frontier-{problem.number}",
            f"Regret after {T:,} rounds against the certified epsilon, not the claimed one. "
            "Bars: 95 % bootstrap intervals of the mean. Levels: what has no epsilon.",
            partial(_frontier, runs=longest.runs, looks=looks, title=problem.name),
        )
    horizons = sorted({run.setup.horizon for run in problem.results.runs})
    if len(horizons) > 2:
        yield Picture(
            f"horizons-{problem.number}",
            "Regret against the horizon, of private agents for their largest claim. Exponents are "
            "fitted to the larger half of the horizons, with twice their jackknife standard error.",
            partial(_horizons, runs=problem.results.runs, looks=looks, title=problem.name),
        )
    yield Picture(
        f"cost-{problem.number}",
        f"Changes of action in {T:,} rounds, and microseconds of one replica's round "
        "(environment, agent and log).",
        partial(_cost, runs=longest.runs, title=problem.name),
    )


def _targets(results: Results) -> list[float]:
    """The epsilons that somebody claims."""
    claims = {run.certificate.claimed_epsilon for run in results.runs}
    return sorted(claim for claim in claims if 0 < claim < inf)


def _curves(problem: Problem, looks: dict[str, int]) -> Iterator[Picture]:
    """Regret by round at the largest horizon: a figure for each epsilon, for three at most."""
    longest = problem.longest
    every = targets = _targets(longest)
    if len(every) > _MOST_TARGETS:
        targets = [every[0], every[len(every) // 2], every[-1]]
    left_out = [f"{epsilon:g}" for epsilon in every if epsilon not in targets]
    note = f" Not drawn: epsilon {', '.join(left_out)}." if left_out else ""
    public = [run for run in longest.runs if not 0 < run.certificate.claimed_epsilon < inf]
    for place, target in enumerate(targets or [inf], 1):
        private = [run for run in longest.runs if run.certificate.claimed_epsilon == target < inf]
        claim = f"claims of epsilon {target:g}" if private else "not private"
        yield Picture(
            f"regret-{problem.number}-{place}",
            f"Mean cumulative regret, {claim}; pointwise 95 % bootstrap bands. In the legend: what "
            f"is certified.{note}",
            partial(
                _regret,
                runs=[*private, *public],
                looks=looks,
                title=f"{problem.name}: {claim}",
            ),
        )


def _regret(path: Path, runs: Sequence[AgentRun], looks: dict[str, int], title: str) -> None:
    marks = runs[0].marks
    some = np.unique(np.linspace(0, len(marks) - 1, _MOST_MARKS).round().astype(int))
    curves = [Curve(label(run), run.regret[some], looks[run.name]) for run in runs]
    unit = runs[0].setup.reward_unit
    regret_curves(path, marks[some], curves, title=as_text(title), unit=unit, band=bootstrap_band)


def _frontier(path: Path, runs: Sequence[AgentRun], looks: dict[str, int], title: str) -> None:
    certified = [run for run in runs if 0 < run.certificate.epsilon < inf]
    with _drawn(path, title) as axes:
        for name in sorted({run.name for run in certified}):
            own = sorted(
                (run for run in certified if run.name == name), key=lambda r: r.certificate.epsilon
            )
            where = [run.certificate.epsilon for run in own]
            _line(axes, where, [run.regret[-1] for run in own], _name(own[0]), looks[name])
        levels = [run for run in runs if not 0 < run.certificate.epsilon < inf]
        for place, run in enumerate(levels):
            gray, dashes = str(0.15 + 0.2 * (place % 3)), _DASHES[place % len(_DASHES)]
            axes.axhline(run.regret[-1].mean(), color=gray, lw=1.4, ls=dashes, label=label(run))
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axes.xaxis.set_major_formatter("{x:g}")
        axes.minorticks_off()
        axes.set_xlabel("certified epsilon")
        axes.set_ylabel(f"regret ({runs[0].setup.reward_unit})")
        axes.set_ylim(bottom=0)


def _horizons(path: Path, runs: Sequence[AgentRun], looks: dict[str, int], title: str) -> None:
    lines: dict[tuple[str, float, float], list[AgentRun]] = {}
    for run in sorted(runs, key=lambda run: run.setup.horizon):
        proof = run.certificate
        lines.setdefault((run.name, proof.claimed_epsilon, proof.claimed_delta), []).append(run)
    most: dict[str, tuple[str, float, float]] = {}
    for key in lines:
        if 0 < key[1] < inf:
            most[key[0]] = max(key, most.get(key[0], key))
    shown = {key for key in lines if not 0 < key[1] < inf} | set(most.values())
    with _drawn(path, title) as axes:
        for key in sorted(shown):
            own = lines[key]
            where = [run.setup.horizon for run in own]
            values = [run.regret[-1] for run in own]
            if min(value.mean() for value in values) <= 0:
                axes.plot([], [], " ", label=f"{_name(own[0])}: not drawn, a mean is not positive")
                continue
            fitted = _exponent(where, values)
            target = f", claims {key[1]:g}" if 0 < key[1] < inf else ""
            _line(axes, where, values, f"{_name(own[0])}{target}{fitted}", looks[key[0]])
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("horizon (rounds)")
        axes.set_ylabel(f"regret ({runs[0].setup.reward_unit})")
        axes.xaxis.set_major_locator(FixedLocator(sorted({run.setup.horizon for run in runs})))
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter("{x:,.6g}")
        axes.minorticks_off()


def _exponent(horizons: Sequence[int], values: Sequence[Floats]) -> str:
    if len(horizons) < 3 or len(values[0]) < 2 or len({len(value) for value in values}) > 1:
        return ""
    found = slope(horizons, values)
    return f": exponent {found.value:.2f} ± {2 * found.se:.2f}"


def _cost(path: Path, runs: Sequence[AgentRun], title: str) -> None:
    ranked = sorted(runs, key=lambda run: (run.name, run.certificate.claimed_epsilon))
    names = [label(run) for run in ranked]
    switches = [run.switches[-1].mean() for run in ranked]
    rounds = [run.setup.horizon * len(run.replicas) for run in ranked]
    micros = [1e6 * run.seconds / n for run, n in zip(ranked, rounds, strict=True)]
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=(10.5, 1.4 + 0.36 * len(ranked)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        blue, orange = sns.color_palette("colorblind", 2)
        left.barh(range(len(names)), switches, color=blue)
        left.set_yticks(range(len(names)), names)
        left.set_xlabel("changes of action (mean)")
        left.xaxis.set_major_formatter("{x:,.6g}")
        right.barh(range(len(names)), micros, color=orange)
        right.set_xlabel("microseconds a round")
        left.invert_yaxis()
        for axes in (left, right):
            axes.grid(axis="x", alpha=0.35)
            sns.despine(ax=axes)
        figure.suptitle(as_text(title), x=0.01, ha="left")
        save_figure(figure, path)


class _drawn:
    """One pair of axes with the legend below, saved to `path` at the end."""

    def __init__(self, path: Path, title: str) -> None:
        self._path, self._title = path, title
        self._styles: list[Any] = [sns.axes_style("ticks"), sns.plotting_context("notebook")]

    def __enter__(self) -> "Axes":
        for setting in self._styles:
            setting.__enter__()
        self._figure = Figure(figsize=(9.5, 6.2), layout="constrained")
        self._axes = self._figure.add_subplot()
        return self._axes

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self._axes.grid(alpha=0.35)
            self._axes.set_title(as_text(self._title), loc="left", pad=12)
            sns.despine(ax=self._axes)
            _, labels = self._axes.get_legend_handles_labels()
            columns = 2 if max(map(len, labels), default=0) < _NARROW else 1
            self._figure.set_figheight(5.2 + 0.26 * len(labels) / columns)
            how: dict[str, Any] = {"ncols": columns, "frameon": False, "handlelength": 3.2}
            self._figure.legend(loc="outside lower left", **how)
            save_figure(self._figure, self._path)
        for setting in reversed(self._styles):
            setting.__exit__(*error)


def _line(
    axes: "Axes", where: Sequence[float], values: Sequence[Floats], name: str, look: int
) -> None:
    mean = np.array([one.mean() for one in values])
    if len(values[0]) > 1:
        ends = np.array([bootstrap_band(one) for one in values]).T
        error = np.abs(ends - mean)
    else:
        error = None
    color, dashes = style(look)
    axes.errorbar(
        where,
        mean,
        yerr=error,
        color=color,
        ls=dashes,
        marker=_MARKERS[look % len(_MARKERS)],
        ms=6,
        lw=1.8,
        capsize=3,
        label=name,
    )


def _name(run: AgentRun) -> str:
    """Without the epsilon, but never without what restricts it."""
    brief = run.certificate.ledger.brief
    return as_text(f"{run.name} ({brief})" if brief else run.name)
