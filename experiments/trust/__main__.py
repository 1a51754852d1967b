"""What trust costs, and what returning costs. See README.md."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd

from dpbandit.base import write_atomically
from dpbandit.experiments.questions import (
    Found,
    RunLines,
    along,
    claim,
    command,
    draw_frontier,
    draw_lines,
    grouped,
    mean,
    panes,
    start,
    swept,
)
from dpbandit.results.plots import final, legend_at_the_foot, log_ticks, loglog
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun
from dpbandit.studies import Sweep

_LEVELS = {
    "Uniform": "uniform play",
    "BestFixed": "best fixed arm",
    "memory-alone": "memory alone, epsilon 0",
    "mixed-effects": "mixed effects, no privacy",
    "logistic-ts": "logistic-ts, no privacy",
}
"""Runs without an epsilon, and what they are called"""


def by_problem(results: Results) -> dict[str, RunLines]:
    """Problem -> label -> its runs, all problems in the order of the sweep."""
    found = grouped(results.runs, lambda run: run.setup.problem)
    return {problem: lines(runs) for problem, runs in found.items()}


def lines(runs: Iterable[AgentRun]) -> dict[str, list[AgentRun]]:
    """Label -> its runs."""
    return grouped(runs, lambda run: _LEVELS.get(run.name, run.name))


def by_visits(results: Results) -> dict[str, list[AgentRun]]:
    """Label -> its runs, those first in which people come seldom."""
    return lines(sorted(results.runs, key=visits))


def visits(run: AgentRun) -> float:
    """How often everybody comes."""
    return float(run.setup.env_kwargs["visits"])


def figures(trust: Results, returning: Results, out: Path) -> Iterator[Path]:
    """Write trust.png and returning.png into `out`."""
    yield write_atomically(out / "trust.png", partial(_trust, found=by_problem(trust)))
    yield write_atomically(out / "returning.png", partial(_returning, found=by_visits(returning)))


def _trust(path: Path, found: Mapping[str, RunLines]) -> None:
    heading, size = "Who sees the data: regret by epsilon", (4.4 * len(found), 5.6)
    with panes(path, found, heading, size) as grid:
        for axes, panel in zip(grid, found.values(), strict=True):
            draw_frontier(axes, panel, log=True)
        legend_at_the_foot(grid[0], 3)


def _returning(path: Path, found: RunLines) -> None:
    panel = {"10,000 visits at epsilon 1, for a person": found}
    grey = [label for label in found if label in _LEVELS.values()]
    with panes(path, panel, "What returning costs", (7.2, 5.6)) as (axes,):
        draw_lines(axes, found, visits, grey=grey)
        loglog(axes, sorted({visits(run) for runs in found.values() for run in runs}))
        axes.set_xlabel("visits of each person")
        log_ticks(axes.yaxis)
        axes.set_ylabel("regret")
        legend_at_the_foot(axes, 2)


HERE = Path(__file__).parent
QUICK: Mapping[str, Any] = {
    "replicas": 2,
    "trust": {"horizons": [400], "epsilons": [1.0, inf]},
    "people": {"people": 20, "visits": 20},
}


def run(sizes: Mapping[str, Any], out: Path) -> Found:
    """Regret under four models of trust, and of people who return. Resumes where it stopped."""
    update = {key: value for key, value in sizes.items() if key == "replicas"}
    trust = swept(HERE / "study.toml", {**update, **sizes.get("trust", {})}, out)
    if few := sizes.get("people"):
        problem, *_ = Sweep.read(HERE / "returning.toml").environments
        update["environments"] = [problem.model_copy(update={"arguments": few})]
        update["horizons"] = [few["people"] * few["visits"]]
    returning = swept(HERE / "returning.toml", update, out / "returning")
    tables = [  # a terminal holds three columns
        along(f"regret, {name}", found, claim, _regret, every=2)
        for name, found in by_problem(trust).items()
    ]
    title = "regret of people who return, epsilon 1"
    tables.append(along(title, by_visits(returning), _often, _regret))
    rows = pd.concat([trust.summary(), returning.summary()])
    return Found({"summary": rows}, figures(trust, returning, out), tables)


def _regret(run: AgentRun) -> str:
    return mean(final(run))


def _often(run: AgentRun) -> str:
    return f"{visits(run):g} visits"


main = command("trust", run, {}, QUICK)

if __name__ == "__main__":
    start(main)
