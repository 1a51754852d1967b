"""The runs of study.toml: regret against epsilon and against rounds, above a lower bound."""

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from math import log
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpbandit.base import write_atomically
from dpbandit.envs.arms.arms import MEANS
from dpbandit.experiments.questions import (
    Found,
    RunLines,
    command,
    draw_frontier,
    draw_lines,
    grouped,
    horizon,
    name_of,
    panes,
    start,
    swept,
)
from dpbandit.results.plots import Overlay, legend_at_the_foot, log_ticks, loglog
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun


def lower_bound(means: Iterable[float], epsilon: float) -> float:
    """What regret over log T cannot stay below, for any consistent epsilon-DP agent, as T grows.

    Azize and Basu, NeurIPS 2022, Theorem 2, for rewards of 0 or 1: the sum of D / min(kl(mu, mu*),
    6 epsilon D) over arms of gap D > 0.

    >>> round(lower_bound((0.6, 0.4), 1.0), 3), round(lower_bound((0.6, 0.4), 0.01), 2)
    (2.466, 16.67)
    """
    m = np.array(list(means))
    best = m.max()
    m = m[m < best]
    kl = m * np.log(m / best) + (1 - m) * np.log((1 - m) / (1 - best))
    return float(((best - m) / np.minimum(kl, 6 * epsilon * (best - m))).sum())


def instance(run: AgentRun) -> str:
    """The name of its means."""
    return str(run.setup.env_kwargs["means"])


def table(results: Results) -> pd.DataFrame:
    """The summary with the name of the means."""
    return results.summary().assign(means=[instance(run) for run in results.runs])


def figures(results: Results, out: Path) -> Iterator[Path]:
    """Write epsilon.png and rounds.png into `out`."""
    longest = max(run.setup.horizon for run in results.runs)
    at_end = [run for run in results.runs if run.setup.horizon == longest]
    yield write_atomically(out / "epsilon.png", partial(_epsilon, runs=at_end, T=longest))
    # one private line for each agent, at epsilon 1
    shown = [run for run in results.runs if run.certificate.claimed_epsilon in (0.0, 1.0)]
    yield write_atomically(out / "rounds.png", partial(_rounds, runs=shown))


def _by_instance(runs: Iterable[AgentRun]) -> Mapping[str, RunLines]:
    """Instance -> name -> runs; the best arm loses nothing."""
    some = (run for run in runs if run.name != "BestFixed")
    return {name: grouped(of, name_of) for name, of in grouped(some, instance).items()}


def _epsilon(path: Path, runs: Iterable[AgentRun], T: int) -> None:
    found = _by_instance(runs)
    with panes(path, found, f"Arms: regret in {T:,} rounds", (11, 7.4), rows=2) as grid:
        for axes, (name, lines) in zip(grid, found.items(), strict=True):
            bound = partial(_bound, MEANS[name], T)
            draw_frontier(axes, lines, log=True, overlays=[Overlay("lower bound", bound)])
            axes.set_ylabel("regret")
        legend_at_the_foot(grid[0], 4)


def _bound(means: tuple[float, ...], T: int, epsilon: float) -> float:
    return lower_bound(means, epsilon) * log(T)


def _rounds(path: Path, runs: Iterable[AgentRun]) -> None:
    found = _by_instance(runs)
    rounds = sorted({run.setup.horizon for lines in found.values() for run in lines["Uniform"]})
    with panes(path, found, "Arms: regret at epsilon 1", (11, 7.4), rows=2) as grid:
        for axes, (name, lines) in zip(grid, found.items(), strict=True):
            draw_lines(axes, lines, horizon, grey=["Uniform"])
            bound = [_bound(MEANS[name], T, 1.0) for T in rounds]
            axes.plot(rounds, bound, color="black", label="lower bound")
            loglog(axes, rounds)
            log_ticks(axes.yaxis)
            axes.minorticks_off()
            axes.set(xlabel="rounds", ylabel="regret")
        legend_at_the_foot(grid[0], 4)


QUICK = {"horizons": [60, 90], "replicas": 2, "epsilons": [1.0, 4.0]}


def run(sizes: Mapping[str, Any], out: Path) -> Found:
    """Instances x epsilon x rounds. Resumes where it stopped."""
    results = swept(Path(__file__).with_name("study.toml"), sizes, out)
    found = table(results)
    shown = found[["means", "horizon", "agent", "claimed_epsilon", "mean", "se"]].to_string()
    return Found({"summary": found}, figures(results, out), [shown])


main = command("arms", run, {}, QUICK)

if __name__ == "__main__":
    start(main)
