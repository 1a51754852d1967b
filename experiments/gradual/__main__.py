"""What is gradual expiration worth: regret against the epsilon of a user's first rounds."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from math import nan
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from dpbandit.base import whole, write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.questions import (
    Found,
    agent_of,
    command,
    panes,
    runs_of,
    start,
)
from dpbandit.privacy.curves import epsilon_of, mu_of
from dpbandit.results.plots import final, legend_at_the_foot, level, line, log_ticks, loglog
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.studies import Configuration, setup_of
from dpbandit.studies.configurations import certificate_of

SUMS = ("gradual sum", "binary tree", "BLT", "window of 64 rounds", "no privacy")
"""What each line is called; its place is its look"""
EVER = "watched to the end"
Key = tuple[str, str, str, float]
"""Problem, who watches, sum, epsilon then"""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of the study."""

    horizon: int = 2048
    ages: Sequence[int] = (1, 32)
    """for which epsilon is fixed; and for ever"""
    epsilons: Sequence[float] = (0.25, 1.0, 4.0)
    replicas: int = 20

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors


QUICK = Sizes(horizon=256, epsilons=(1.0, 4.0), replicas=3)

_GLM = "dp-moments:refresh_every=1:delta=1e-5"
_BALL = "pftal:noise=laplace"
PROBLEMS: Mapping[str, tuple[str, dict[str, Any], Mapping[str, str]]] = {
    "GLMBandit, dp-moments": (
        "GLMBandit",
        {"n_actions": 5, "dim": 5},
        {
            "gradual sum": f"{_GLM}:prefix_sums=gradual",
            "binary tree": f"{_GLM}:prefix_sums=tree",
            "BLT": f"{_GLM}:prefix_sums=blt",
            "no privacy": f"{_GLM}:epsilon=inf",
        },
    ),
    "cocop-ball, pftal": (
        "OnlineConvex",
        {"instance": "cocop-ball"},
        {
            "gradual sum": f"{_BALL}:prefix_sums=gradual",
            "binary tree": _BALL,
            "window of 64 rounds": "wdp-cocop:noise=laplace:window=64",
        },
    ),
}
"""Name -> environment, its arguments, agents in words; Gaussian noise first, then Laplace noise"""


def claim(one: Configuration, age: int, epsilon: float) -> float | None:
    """What its agent has to claim for those who watch to the end, so that those who leave `age`
    rounds after a user know her with `epsilon`; None where a window ends before."""
    proof = certificate_of(one)
    ledger, seen = proof.ledger, proof.ledger.within(age)
    if ledger.notion.window is not None and age >= ledger.notion.window:
        return None
    if ledger.mu is None or seen.mu is None:
        return epsilon * (ledger.pure / seen.pure)
    mu = mu_of(epsilon, proof.claimed_delta)
    return epsilon_of(mu * ledger.mu / seen.mu, proof.claimed_delta)


def asked(sizes: Sizes) -> dict[Key, Configuration]:
    """All runs: without privacy an age and an epsilon do not matter."""
    found: dict[Key, Configuration] = {}
    for problem, (environment, arguments, agents) in PROBLEMS.items():
        setup = setup_of(environment, arguments, horizon=sizes.horizon, label=problem)
        for watched, age in ages(sizes).items():
            for name, words in agents.items():
                plain = Configuration(setup, name, agent_of(words))
                for epsilon in sizes.epsilons:
                    one, config = plain, cast(Any, plain.config)
                    if name != "no privacy":
                        claimed = claim(plain, age, epsilon)
                        if claimed is None:
                            continue
                        title = f"{name}, {epsilon:g} {watched}"
                        one = Configuration(setup, title, replace(config, epsilon=claimed))
                    found[problem, watched, name, epsilon] = one
    return found


def ages(sizes: Sizes) -> dict[str, int]:
    """Who watches -> how many rounds after a user's own."""
    return {f"watched to age {age}": age for age in sizes.ages} | {EVER: sizes.horizon}


def table(runs: Mapping[Key, AgentRun], sizes: Sizes) -> pd.DataFrame:
    """A row for each run."""
    rows = []
    for (problem, watched, name, epsilon), run in runs.items():
        proof = run.certificate
        rows.append(
            {
                "problem": problem,
                "watched": watched,
                "agent": name,
                "epsilon": epsilon,
                "then": proof.by_age(ages(sizes)[watched]),
                "ever": proof.by_age(sizes.horizon),
                "mean": final(run).mean(),
                "se": standard_error(final(run)),
            }
        )
    return pd.DataFrame(rows)


def figure(path: Path, runs: Mapping[Key, AgentRun], sizes: Sizes) -> None:
    """A row of panels for each age, a column for each problem."""
    panels = {
        f"{problem.split(',')[0]}, {watched}": {"": [run]}
        for watched in ages(sizes)
        for (problem, when, _, _), run in runs.items()
        if when == watched
    }
    heading = "Regret against the epsilon of those who watch so long"
    with panes(path, panels, heading, (8.6, 10.5), rows=len(ages(sizes))) as grid:
        places = product(ages(sizes), PROBLEMS)
        for axes, (watched, problem) in zip(grid, places, strict=True):
            for look, name in enumerate(SUMS):
                asked_for = (problem, watched, name)
                mine = {key[3]: run for key, run in runs.items() if key[:3] == asked_for}
                values = [final(run) for run in mine.values()]
                if name == "no privacy" and mine:
                    shade, dashes = level(0)
                    axes.axhline(values[0].mean(), color=shade, ls=dashes, lw=1.4, label=name)
                elif name != "no privacy":  # what is not here is in the legend all the same
                    line(axes, list(mine) or [nan], values or [np.array([nan])], name, look)
            loglog(axes, list(sizes.epsilons))
            log_ticks(axes.yaxis)
            axes.minorticks_off()
            axes.set_ylabel("regret" if problem == next(iter(PROBLEMS)) else "")
        for axes in grid[-len(PROBLEMS) :]:
            axes.set_xlabel("epsilon of those who watch so long")
        legend_at_the_foot(grid[0], 3)


def shown(found: pd.DataFrame) -> Iterator[Table]:
    """`table` at the middle epsilon for a console."""
    epsilons = sorted(set(found["epsilon"]))
    middle = epsilons[len(epsilons) // 2]
    for problem, rows in found.query("epsilon == @middle").groupby("problem", sort=False):
        drawn = Table(title=f"{problem}, epsilon {middle:g}", keys=2)
        for column in ("sum", "watched", "regret", "epsilon ever"):
            drawn.add_column(column, justify="left" if column in ("sum", "watched") else "right")
        for row in rows.to_dict("records"):
            regret = f"{row['mean']:,.4g} ± {row['se']:,.2g}"
            drawn.add_row(row["agent"], row["watched"], regret, f"{row['ever']:.3g}")
        yield drawn


def run(sizes: Sizes, out: Path) -> Found:
    """Regret against the epsilon of a user's first rounds. Resumes where it stopped."""
    every = asked(sizes)
    done = runs_of("gradual expiration", every.values(), out, replicas=sizes.replicas)
    runs = {key: done[one.key] for key, one in every.items()}
    found = table(runs, sizes)
    drawn = write_atomically(out / "gradual.png", partial(figure, runs=runs, sizes=sizes))
    return Found({"gradual": found}, [drawn], shown(found))


main = command("gradual", run, Sizes(), QUICK)

if __name__ == "__main__":
    start(main)
