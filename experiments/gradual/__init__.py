"""Regret of agents whose privacy loss grows gradually with a user's age. See README.md."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from math import nan
from pathlib import Path
from typing import Any, cast

import numpy as np
import pandas as pd

from dpbandit.experiments.figure import Figure, Pane, RunLines, framed, loglog
from dpbandit.privacy.curves import epsilon_of, mu_of
from dpbandit.results.plots import final, legend_at_the_foot, level, line, log_ticks
from dpbandit.results.runs import standard_error
from dpbandit.studies import Configuration, certificate_of

SUMS = ("gradual sum", "binary tree", "BLT", "window of 64 rounds")
"""Labels of agents, by their kind of private sum, in the order of line styles"""
PUBLIC = "no privacy"  # label of the agent without privacy


def claim(one: Configuration, age: int, epsilon: float) -> float | None:
    """Return the claim with which a user's epsilon is `epsilon`, `age` rounds after her visit.

    The claim covers observers of all rounds. None is returned if a privacy window is at most `age`.
    """
    proof = certificate_of(one)
    ledger, seen = proof.ledger, proof.ledger.within(age)
    if ledger.notion.window is not None and age >= ledger.notion.window:
        return None
    if ledger.mu is None or seen.mu is None:
        return epsilon * (ledger.pure / seen.pure)
    mu = mu_of(epsilon, proof.claimed_delta)
    return epsilon_of(mu * ledger.mu / seen.mu, proof.claimed_delta)


def claiming(one: Configuration, known: Mapping[str, Any]) -> Configuration | None:
    """Return the configuration with the epsilon of `claim`; non-private agents are unchanged."""
    epsilon, config = known["epsilon"], cast(Any, one.config)
    if one.name == PUBLIC:
        return one
    if (claimed := claim(one, known["age"], epsilon)) is None:
        return None
    title = f"{one.name}, {epsilon:g} {known['watched']}"
    return Configuration(one.setup, title, replace(config, epsilon=claimed))


def table(panes: Sequence[Pane], found: Mapping[str, RunLines]) -> pd.DataFrame:
    """Tabulate regret, and a user's epsilon some rounds after her visit and after all, by agent."""
    return pd.DataFrame(
        [
            {
                "problem": pane.known["problem"],
                "watched": pane.at["watched"],
                "agent": label,
                "epsilon": epsilon,
                "then": run.certificate.by_age(pane.known["age"]),
                "ever": run.certificate.by_age(pane.known["horizon"]),
                "mean": final(run).mean(),
                "se": standard_error(final(run)),
            }
            for pane in panes
            for label, runs in found[pane.name].items()
            for epsilon, run in _places(pane, runs)
        ]
    )


def _places(pane: Pane, runs: Sequence[Any]) -> Iterator[tuple[float, Any]]:
    """Yield pairs of an epsilon and its run; a single run is paired with every epsilon."""
    epsilons = pane.known["epsilons"]
    yield from zip(epsilons, runs if len(runs) > 1 else [*runs] * len(epsilons), strict=True)


def draw_regret(
    path: Path, figure: Figure, panes: Sequence[Pane], found: Mapping[str, RunLines]
) -> None:
    """Draw a row of panels for each age, and a column for each problem."""
    titles = [pane.title for pane in panes]
    columns = len({pane.known["problem"] for pane in panes})
    how = {"rows": len(panes) // columns}
    with framed(path, titles, figure.heading, figure.size, found, **how) as grid:
        for place, (axes, pane) in enumerate(zip(grid, panes, strict=True)):
            lines = {name: [*_places(pane, runs)] for name, runs in found[pane.name].items()}
            for look, name in enumerate(SUMS):  # absent agents are in the legend, too
                mine = lines.get(name, [(nan, None)])
                values = [np.array([nan, nan]) if run is None else final(run) for _, run in mine]
                line(axes, [epsilon for epsilon, _ in mine], values, name, look)
            if PUBLIC in lines:
                shade, dashes = level(0)
                height = final(lines[PUBLIC][0][1]).mean()
                axes.axhline(height, color=shade, ls=dashes, lw=1.4, label=PUBLIC)
            loglog(axes, pane.known["epsilons"])
            log_ticks(axes.yaxis)
            axes.minorticks_off()
            axes.set_ylabel("regret" if place % columns == 0 else "")
            if place >= len(panes) - columns:
                axes.set_xlabel("epsilon of those who watch so long")
        legend_at_the_foot(grid[0], 3)
