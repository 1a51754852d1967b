"""The figures of a report: regret by round, by certified epsilon and by horizon; switches; time."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import filterfalse
from math import inf
from pathlib import Path
from typing import NamedTuple

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator

from dpbandit.base.arrays import Floats
from dpbandit.base.files import write_atomically
from dpbandit.results.comparisons import bootstrap_band
from dpbandit.results.plots import (
    Curve,
    Front,
    drawn,
    final,
    from_zero,
    frontier,
    line,
    line_count,
    log_ticks,
    placed,
    regret_curves,
    save_figure,
)
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, as_text, label, restricted, short, slope

_MOST_TARGETS = 3
_MOST_MARKS = 150
_ROUNDING = 1e-9
"""Of the largest mean regret: one as small as that is zero but for rounding"""


class Picture(NamedTuple):
    """One figure and what it shows."""

    name: str
    """of its file, without ending"""
    caption: str
    draw: Callable[[Path], None]

    def save(self, folder: Path, ending: str) -> Path:
        """The figure as `folder`/`name` + `ending`; atomically."""
        return write_atomically(folder / f"{self.name}{ending}", self.draw)


class Look(NamedTuple):
    """What looks alike in every figure of a problem, whatever its epsilon and horizon."""

    name: str
    private: bool
    """claims an epsilon between none and infinity"""
    delta: float
    """claimed"""

    @classmethod
    def of(cls, run: AgentRun) -> "Look":
        """Colour, dashes and label of a run."""
        proof = run.certificate
        return cls(run.name, 0 < proof.claimed_epsilon < inf, proof.claimed_delta)


Looks = dict[Look, int]
"""Places in palette, dashes and markers"""


class ProblemRuns(NamedTuple):
    """The runs on one problem, all horizons and targets."""

    number: int
    name: str
    results: Results
    looks: Looks
    """of all problems of a report, in each of which an agent looks alike"""

    @property
    def longest(self) -> Results:
        """Those of the largest horizon."""
        return self.results.where(horizon=max(run.setup.horizon for run in self.results.runs))


def problems(results: Results, order: Sequence[str] = ()) -> list[ProblemRuns]:
    """The results, problem by problem, as the first of their runs come in `order`, a list of keys;
    the others by name."""
    places = {key: place for place, key in enumerate(order)}
    first: dict[str, int] = {}
    for run in results.runs:
        name = run.setup.problem
        first[name] = min(first.get(name, len(places)), places.get(run.key, len(places)))
    looks = {look: n for n, look in enumerate(sorted(set(map(Look.of, results.runs))))}
    names = sorted(first, key=lambda name: (first[name], name))
    return [
        ProblemRuns(n, name, results.where(problem=name), looks) for n, name in enumerate(names, 1)
    ]


def pictures(problem: ProblemRuns) -> Iterator[Picture]:
    """All figures of one problem that its runs allow."""
    longest = problem.longest
    T = longest.runs[0].setup.horizon
    looks = problem.looks
    yield from _curves(problem, looks)
    if len(_targets(longest)) > 1 and any(map(placed, longest.runs)):
        yield Picture(
            f"frontier-{problem.number}",
            f"Regret after {T:,} rounds against the certified epsilon, not the claimed one. "
            "Bars: 95 % bootstrap intervals of the mean. Levels: epsilon 0 or infinity, or nearly.",
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


def _curves(problem: ProblemRuns, looks: Looks) -> Iterator[Picture]:
    """Regret by round at the largest horizon: a figure for each epsilon, for three at most."""
    longest = problem.longest
    if longest.runs[0].marks[0] > 1:  # its last round alone is logged
        return
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


def _regret(path: Path, runs: Sequence[AgentRun], looks: Looks, title: str) -> None:
    marks = runs[0].marks
    some = np.unique(np.linspace(0, len(marks) - 1, _MOST_MARKS).round().astype(int))
    curves = [Curve(label(run), run.regret[some], looks[Look.of(run)]) for run in runs]
    unit = runs[0].setup.reward_unit
    regret_curves(path, marks[some], curves, title=as_text(title), unit=unit, band=bootstrap_band)


def _frontier(path: Path, runs: Sequence[AgentRun], looks: Looks, title: str) -> None:
    lines: dict[Look, list[AgentRun]] = {}
    for run in filter(placed, runs):
        lines.setdefault(Look.of(run), []).append(run)
    several = len({look.delta for look in lines}) > 1
    fronts = [
        Front(_name(own[0], delta=several), own, looks[look]) for look, own in sorted(lines.items())
    ]
    levels = [(label(run), final(run)) for run in filterfalse(placed, runs)]
    with drawn(path, title) as axes:
        frontier(axes, fronts, levels, band=bootstrap_band)
        from_zero(axes)
        axes.set_ylabel(f"regret ({runs[0].setup.reward_unit})")


def _horizons(path: Path, runs: Sequence[AgentRun], looks: Looks, title: str) -> None:
    lines: dict[tuple[Look, float], list[AgentRun]] = {}
    for run in sorted(runs, key=lambda run: run.setup.horizon):
        lines.setdefault((Look.of(run), run.certificate.claimed_epsilon), []).append(run)
    most = dict(sorted(lines))  # of each look the largest epsilon, which comes last
    several = len({look.delta for look in most if look.private}) > 1
    least = _ROUNDING * max(run.regret[-1].mean() for run in runs)
    with drawn(path, title) as axes:
        for look, epsilon in most.items():
            own = lines[look, epsilon]
            where = [run.setup.horizon for run in own]
            values = [run.regret[-1] for run in own]
            claim = f", claims {epsilon:g}" if look.private else ""
            name = _name(own[0], claim, delta=several)
            if min(value.mean() for value in values) <= least:
                axes.plot([], [], " ", label=f"{name}: not drawn, a mean is ≤ 0")
                continue
            name += _exponent(where, values)
            line(axes, where, values, name, looks[look], band=bootstrap_band)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("horizon (rounds)")
        axes.set_ylabel(f"regret ({runs[0].setup.reward_unit})")
        axes.xaxis.set_major_locator(FixedLocator(sorted({run.setup.horizon for run in runs})))
        log_ticks(axes.yaxis)
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
        slot = 0.16 + 0.2 * max(line_count([name]) for name in names)
        figure = Figure(figsize=(10.5, 1.4 + slot * len(names)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        blue, orange = sns.color_palette("colorblind", 2)
        left.barh(range(len(names)), switches, color=blue)
        left.set_yticks(range(len(names)), names)
        left.set_xlabel("changes of action (mean)")
        left.xaxis.set_major_formatter("{x:,.6g}")
        right.barh(range(len(names)), micros, color=orange)
        right.set_xlabel("microseconds a round")
        left.set_ylim(len(names) - 0.4, -0.6)  # the first on top
        for axes in (left, right):
            axes.grid(axis="x", alpha=0.35)
            sns.despine(ax=axes)
        figure.suptitle(as_text(title), x=0.01, ha="left")
        save_figure(figure, path)


def _name(run: AgentRun, claim: str = "", *, delta: bool) -> str:
    """Without what is certified, but never without what restricts it."""
    proof = run.certificate
    name = restricted(run.name, [run])
    at = f", δ = {short(proof.claimed_delta)}" if delta and Look.of(run).private else ""
    none = ", not private" if proof.claimed_epsilon == inf else ""
    return f"{as_text(name)}{claim}{at}{none}"
