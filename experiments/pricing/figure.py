"""The runs of study.toml as a table, and as figures: what is lost to the best without privacy."""

from collections.abc import Callable, Iterator
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.files import write_atomically
from dpbandit.experiments.drawing import draw_frontier
from dpbandit.results.plots import final, legend_beside, panels
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, standard_error

_BASELINES = ("Uniform", "BestFixed")


def best_public(results: Results) -> AgentRun:
    """The run without privacy that has the least mean regret, private agents at infinity too.

    Picked after the fact: it may owe a little of its lead to luck, the price of privacy too.
    """
    public = [run for run in results.where(epsilon=inf).runs if run.name not in _BASELINES]
    return min(public, key=lambda run: float(final(run).mean()))


def called(run: AgentRun, results: Results) -> str:
    """Its name, which for a private agent does not say that nothing is private here."""
    several = len(results.where(agent=run.name).runs) > 1
    return f"{run.name} at infinity" if several else run.name


def lost(run: AgentRun, best: AgentRun) -> Floats:
    """What 1,000 users bring less than with the best public agent, on average, (R,).

    In expectation over the users' answers and paired: all agents meet the same users.
    """
    return 1000 * (final(run) - final(best)) / run.setup.horizon


def lead_from(marks: Ints, regret: Floats, uniform: Floats) -> int | None:
    """The first mark from which on `regret` stays below `uniform`, both (marks, R), or None.

    Below: by two standard errors of the mean of the paired difference.

    >>> ahead = np.array([[-1.0, -1.1], [2.0, 2.1], [3.0, 3.1]])
    >>> lead_from(np.array([1, 10, 100]), -ahead, np.zeros((3, 2)))
    10
    """
    gain = uniform - regret
    error = gain.std(axis=1, ddof=1) / np.sqrt(gain.shape[1])
    behind = np.flatnonzero(gain.mean(axis=1) <= 2 * error)
    first = behind[-1] + 1 if len(behind) else 0
    return int(marks[first]) if first < len(marks) else None


def table(results: Results) -> pd.DataFrame:
    """The summary of all runs on one problem, with what they lose and since when they lead."""
    best, (uniform,) = best_public(results), results.where(agent="Uniform").runs
    rows: list[dict[str, Any]] = []
    for run in results.runs:
        values = lost(run, best)
        start = lead_from(run.marks, run.regret, uniform.regret)
        found = {"lost_per_1000": values.mean(), "lost_per_1000_se": standard_error(values)}
        rows.append({**found, "unit": run.setup.reward_unit, "beats_uniform_from": start})
    more = pd.DataFrame(rows).astype({"beats_uniform_from": "Int64"})
    return pd.concat([results.summary(), more], axis=1)


def figures(results: Results, out: Path) -> Iterator[Path]:
    """Write regret-PROBLEM.png and lost-PROBLEM.png into `out`."""
    one, best = results.runs[0], best_public(results)
    problem, unit, T = one.setup.problem, one.setup.reward_unit, one.setup.horizon
    sample = f"{T:,} users, mean of {len(one.replicas)} replicas, 95 % intervals"
    name = called(best, results)
    draw = partial(_draw, results=results)
    for what, value, title, ylabel in (
        ("regret", final, f"what privacy costs; {name} is the best without", f"regret ({unit})"),
        (
            "lost",
            partial(lost, best=best),
            f"lost to {name}, the best without privacy",
            f"{unit} lost per 1,000 users",
        ),
    ):
        drawn = partial(draw, value=value, title=f"{problem}: {title}\n{sample}", ylabel=ylabel)
        yield write_atomically(out / f"{what}-{problem}.png", drawn)


def _draw(
    path: Path, results: Results, value: Callable[[AgentRun], Floats], title: str, ylabel: str
) -> None:
    by_name: dict[str, list[AgentRun]] = {}
    for run in results.runs:
        by_name.setdefault(run.name, []).append(run)
    best = best_public(results)
    lines = {name: runs for name, runs in by_name.items() if len(runs) > 1 or name in _BASELINES}
    lines.setdefault(called(best, results), [best])
    with panels(path, [title], size=(11, 5.6)) as (axes,):
        draw_frontier(axes, lines, value)
        axes.set_ylabel(ylabel)
        legend_beside(axes)
