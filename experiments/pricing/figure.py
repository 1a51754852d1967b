"""The figures: regret and lost money against epsilon, one pair for each environment."""

from collections.abc import Callable, Mapping
from pathlib import Path

from dpbandit.base.arrays import Floats
from dpbandit.base.files import write_atomically
from dpbandit.experiments.grid import Outcome
from dpbandit.experiments.pricing.study import PRIVATE, Findings, final
from dpbandit.results.plots import Frontier, frontier


def figures(found: Findings, out: Path) -> list[Path]:
    """Write regret-ENVIRONMENT.png and lost-ENVIRONMENT.png into `out`."""
    replicas = len(final(found.baselines["uniform"]))
    size = f"{found.horizon:,} users, mean of {replicas} replicas, 95 % bands"
    best, run = found.best_public
    references = {**found.baselines, f"{best}:\nbest without privacy": run}
    return [
        _draw(
            out / f"regret-{found.environment}.png",
            found,
            references,
            final,
            title=f"{found.environment}: what privacy costs\n{size}",
            ylabel=f"cumulative regret ({found.unit})",
        ),
        _draw(
            out / f"lost-{found.environment}.png",
            found,
            found.baselines,
            found.lost,
            title=f"{found.environment}: lost to {best}, the best without privacy\n{size}",
            ylabel=f"{found.unit} lost per 1,000 users",
        ),
    ]


def _draw(
    path: Path,
    found: Findings,
    references: Mapping[str, Outcome],
    value: Callable[[Outcome], Floats],
    *,
    title: str,
    ylabel: str,
) -> Path:
    lines = [
        Frontier(agent, list(line), [value(run) for run in line.values()], look)
        for look, agent in enumerate(PRIVATE)
        if (line := found.private.get(agent))
    ]
    levels = {name: value(run) for name, run in references.items()}
    return write_atomically(path, lambda p: frontier(p, lines, levels, title=title, ylabel=ylabel))
