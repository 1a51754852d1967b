"""Tables and figures: regret against W and T, dollars against epsilon, what rounds cost."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.base import write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.questions import (
    Answers,
    Found,
    RunLines,
    along,
    answers,
    claim,
    command,
    draw_frontier,
    draw_lines,
    grouped,
    horizon,
    mean,
    panes,
    per_1000,
    slopes_table,
    start,
)
from dpbandit.experiments.window import COUNTED, QUICK, Sizes, Timing, questions, timings
from dpbandit.experiments.window.table_1 import READINGS, Selection, Size, measure, shown
from dpbandit.results.plots import legend_below, legend_beside, line, loglog, panels
from dpbandit.results.runs import AgentRun, Slope, protected

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "cocop-ball": r"quadratic losses on the unit ball of $\mathbf{R}^5$",
    "cocol-simplex": r"quadratic losses on the simplex of $\mathbf{R}^{10}$",
    "pricing": "ConvexPricing: three goods",
    "simplex": "simplex: an exact projection",
    "flows": "flows: no exact projection",
}


class Findings(NamedTuple):
    """What was found, but for Table I."""

    answers: Answers
    timings: Sequence[Timing]


def promised(answers: Answers) -> Answers:
    """The same, under labels that say what is protected: never window-DP as if it were DP."""
    return Answers(
        {
            question: {
                panel: {_with_promise(label, line): line for label, line in lines.items()}
                for panel, lines in panels.items()
            }
            for question, panels in answers.runs.items()
        }
    )


def _with_promise(label: str, runs: Sequence[AgentRun]) -> str:
    promises = {protected(run): None for run in runs if protected(run)}
    if not promises:
        return label
    promise = promises.popitem()[0] if len(promises) == 1 else "window-DP, last W"
    return f"{label.partition(', W = ')[0]} ({promise})"


def slopes(answers: Answers) -> dict[tuple[str, str], Slope]:
    """(problem, label) -> the exponent of growth in T."""
    return answers.slopes("horizons", horizon)


def tables(found: Findings) -> Iterator[Table]:
    """One for each problem of each question."""
    runs, exponents = found.answers.runs, slopes(found.answers)
    for problem, lines in runs["windows"].items():
        yield along(f"{problem}: regret against the window W", lines, _w, _regret)
    for problem, lines in runs["horizons"].items():
        own = {label: str(s) for (p, label), s in exponents.items() if p == problem}
        title = f"{problem}: regret against T"
        yield along(title, lines, _t, _regret, last=("exponent", own), every=2)
    title = "pricing: dollars lost per 1,000 customers"
    yield along(title, runs["retention"]["pricing"], claim, lambda run: mean(per_1000(run)))
    yield _costs_table(found.timings)


def _regret(run: AgentRun) -> str:
    return mean(run.regret[-1])


def _w(run: AgentRun) -> str:
    return f"W = {window(run):,}" if "window" in run.config else ""


def _t(run: AgentRun) -> str:
    return f"T = {run.setup.horizon:,}"


def window(run: AgentRun) -> int:
    """W."""
    return int(run.config["window"])


def _costs_table(timings: Sequence[Timing]) -> Table:
    table = Table(title="What a round costs", keys=3)
    for name in ("agent", "domain", "N"):
        table.add_column(name, no_wrap=True)
    for name in ("projections", "linear minimisations", "milliseconds", "regret"):
        table.add_column(name, justify="right")
    for timing in timings:
        promise, measures = protected(timing.run), timing.run.measures
        table.add_row(
            f"{timing.run.name} ({promise})" if promise else timing.run.name,
            timing.kind,
            f"{timing.size:,}",
            *(f"{measures[name].mean():.2f}" for name in COUNTED),
            f"{1000 * np.median(measures['seconds']):.3f}",
            _regret(timing.run),
        )
    return table


def figures(found: Findings, out: Path) -> Iterator[Path]:
    """Write all of them into `out`."""
    runs = found.answers.runs
    drawings: dict[str, Callable[[Path], None]] = {
        "windows": partial(_windows, runs["windows"]),
        "horizons": partial(_horizons, found.answers),
        "retention": partial(_retention, runs["retention"]),
        "costs": partial(_costs, found.timings),
    }
    for name, draw in drawings.items():
        yield write_atomically(out / f"{name}.png", draw)


def _windows(found: Mapping[str, RunLines], path: Path) -> None:
    with panes(path, found, f"What a window saves, {_claims(found)}", (14, 8.6), _TITLES) as row:
        for axes, lines in zip(row, found.values(), strict=True):
            draw_lines(axes, lines, window)
            loglog(axes, [window(run) for run in max(lines.values(), key=len)])
            axes.set_xlabel("window W (rounds for which a user is protected; W = T: for ever)")
            axes.set_ylabel("regret (loss)")
            legend_below(axes, "noise and tree, and the privacy it is for")


def _horizons(answers: Answers, path: Path) -> None:
    found, exponents = answers.runs["horizons"], slopes(answers)
    heading = f"Growth with the horizon, {_claims(found)}"
    with panes(path, found, heading, (16, 8.6), _TITLES) as row:
        for axes, (problem, lines) in zip(row, found.items(), strict=True):
            own = {label: s for (p, label), s in exponents.items() if p == problem}
            names = {label: f"{label}: {s.value:.3f}" for label, s in own.items()}
            draw_lines(axes, lines, horizon, names=names)
            runs = max(lines.values(), key=len)
            loglog(axes, [horizon(run) for run in runs[::2]])
            axes.set(xlabel="horizon T (rounds)", ylabel="regret after T rounds (loss)")
            legend_below(axes, "agent (its privacy): exponent on the larger half of T")


def _retention(found: Mapping[str, RunLines], path: Path) -> None:
    customers = found["pricing"]["list prices"][0].setup.horizon
    heading = f"Prices where customers expire, {customers:,} customers"
    with panes(path, found, heading, (13, 6), _TITLES) as (axes,):
        draw_frontier(axes, found["pricing"], per_1000, log=True)
        axes.set_ylabel("dollars lost per 1,000 customers")
        legend_beside(axes)


def _costs(timings: Sequence[Timing], path: Path) -> None:
    kinds = list(dict.fromkeys(timing.kind for timing in timings))
    heading = f"What a round costs: mean of {len(timings[0].run.replicas)} runs, 95 % intervals"
    with panels(path, [_TITLES[k] for k in kinds], heading=heading, size=(13, 6.6)) as row:
        for axes, kind in zip(row, kinds, strict=True):
            _seconds(axes, [timing for timing in timings if timing.kind == kind])


def _seconds(axes: "Axes", timings: Sequence[Timing]) -> None:
    by_agent = grouped(timings, lambda timing: timing.run.name)
    for look, (agent, several) in enumerate(by_agent.items()):
        sizes = [timing.size for timing in several]
        values = [1000 * timing.run.measures["seconds"] for timing in several]
        promise = protected(several[0].run) or "no privacy"
        line(axes, sizes, values, f"{agent} ({promise})", look)
    loglog(axes, sizes)
    axes.set(xlabel="coordinates N of a point", ylabel="milliseconds a round, one replica")
    legend_below(axes, "agent (its privacy)")


def _claims(found: Mapping[str, RunLines]) -> str:
    run = next(iter(next(iter(found.values())).values()))[0]
    return f"epsilon {run.certificate.claimed_epsilon:g}"


def run(sizes: Sizes, out: Path) -> Found:
    """Regret where privacy expires, against W, T and epsilon, and what rounds cost.

    Resumes where it stopped.
    """
    found = answers("Privacy that expires", questions(sizes), out, replicas=sizes.replicas)
    findings = Findings(promised(found), timings(sizes, out / "costs"))
    size = Size(sizes.horizon, sizes.fixed_windows[-1], sizes.epsilon, sizes.delta)
    where = out / "table-1"
    entries = measure(Selection(size=size), READINGS, where, replicas=sizes.replicas, seed=0)
    frames = {
        "summary": findings.answers.table(_more),
        "slopes": slopes_table(slopes(findings.answers)),
        "costs": pd.DataFrame([timing.row() for timing in findings.timings]),
        "table-1": pd.DataFrame([entry.record() for entry in entries]),
    }
    return Found(frames, figures(findings, out), [*tables(findings), *shown(entries)])


def _more(run: AgentRun) -> dict[str, str]:
    return {"algorithm": run.config["agent"], "protected": protected(run)}


main = command("window", run, Sizes(), QUICK)

if __name__ == "__main__":
    start(main)
