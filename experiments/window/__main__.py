"""The study of privacy that expires, and what rounds cost: milliseconds and operations."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpbandit.base import write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.study import Found, Sizes, command, grouped, mean, read, start
from dpbandit.experiments.window import (
    COUNTED,
    READINGS,
    Selection,
    Size,
    Timing,
    measure,
    shown,
    timings,
)
from dpbandit.results.plots import legend_below, line, loglog, panels
from dpbandit.results.runs import AgentRun, protected

if TYPE_CHECKING:
    from matplotlib.axes import Axes

STUDY = read("window")
_TITLES = {"simplex": "simplex: an exact projection", "flows": "flows: no exact projection"}


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
            mean(timing.run.regret[-1]),
        )
    return table


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


def run(sizes: Sizes, out: Path) -> Found:
    """Regret where privacy expires, against W, T and epsilon, and what rounds cost.

    Resumes where it stopped.
    """
    found, known = STUDY.measure(sizes, out), {**STUDY.sizes, **sizes}
    timed = timings(known, out / "costs")
    size = Size(known["horizon"], known["fixed_windows"][-1], known["epsilon"], known["delta"])
    where, how = out / "table-1", {"replicas": known["replicas"], "seed": 0}
    entries = measure(Selection(size=size), READINGS, where, **how)
    frames = {
        "summary": found.table(_more),
        "slopes": STUDY.slopes(found),
        "costs": pd.DataFrame([timing.row() for timing in timed]),
        "table-1": pd.DataFrame([entry.record() for entry in entries]),
    }
    costs = write_atomically(out / "costs.png", partial(_costs, timed))
    tables = [*STUDY.tables(found, sizes), _costs_table(timed), *shown(entries)]
    return Found(frames, [*STUDY.draw(found, sizes, out), costs], tables)


def _more(run: AgentRun) -> dict[str, str]:
    return {"algorithm": run.config["agent"], "protected": protected(run)}


main = command("window", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
