"""Mean and tail of the regret of the newest private agents on arms without contexts::

    python -m dpbandit.experiments.arms.tails [--quick] [--out DIR] [--replicas R]

Runs are stored in blocks, and a second start continues where the first one stopped.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd

from dpbandit.base import Floats
from dpbandit.base.tables import Table
from dpbandit.envs.arms.arms import MEANS
from dpbandit.experiments.study import Found, Sizes, command, runs_of, start, tabulated
from dpbandit.results.runs import standard_error
from dpbandit.running.settings import parse_agent
from dpbandit.studies import setup_of
from dpbandit.suite.candidates import Cell

Instances: TypeAlias = Mapping[str, tuple[int, Iterable[float], int]]
AGENTS = ("race-imed", "dp-imed", "dp-klucb")
RARE_AGENTS = AGENTS[:2]
FULL_SIZES: Sizes = {  # name of the means -> rounds, values of pure epsilon, most replicas
    "means": {
        "close": (1_000_000, (1.0, 0.1), 400),
        "steps": (1_000_000, (1.0, 0.1, 0.01), 400),
        "hundred": (1_000_000, (1.0, 0.1), 40),
    },
    "rare": {
        "close": (1_000_000, (0.1,), 10_000),
        "two": (20_000, (0.1,), 10_000),
        "ten": (65_536, (0.1,), 10_000),
    },
    "replicas": 10_000,
    "seed": 31415,
}
QUICK_SIZES: Sizes = {
    **FULL_SIZES,
    "means": {"two": (2000, (1.0, 0.1), 2)},
    "rare": {"two": (2000, (0.1,), 50)},
}
FAR_MEDIANS = 5.0
"""The regret of a run is far off if it exceeds this number of medians."""
LINEAR_SHARE = 0.2
"""The regret of a run is linear if it exceeds this share of that of the second best arm alone."""


def tail(regret: Floats, second: float) -> dict[str, float]:
    """Return mean, quantiles and tail of final regrets (R,), shares with standard errors.

    `second` is the regret of the second best arm in all rounds.

    >>> found = tail(np.array([10.0, 10.0, 10.0, 60.0]), second=400.0)
    >>> found["far"], round(found["far_se"], 3), found["linear"]
    (0.25, 0.217, 0.0)
    """
    median = np.median(regret)
    found: dict[str, Any] = {"mean": regret.mean(), "se": standard_error(regret), "median": median}
    found |= {"q95": np.quantile(regret, 0.95), "worst": regret.max()}
    rare = {"far": regret > FAR_MEDIANS * median, "linear": regret > LINEAR_SHARE * second}
    for name, these in rare.items():
        share = these.mean()
        found |= {name: share, f"{name}_se": np.sqrt(share * (1 - share) / len(regret))}
    return {name: float(value) for name, value in found.items()}


def measured(instances: Instances, agents: Iterable[str], sizes: Sizes, out: Path) -> pd.DataFrame:
    """Play the missing replicas of agents on instances in the folder `out`, and tabulate all.

    Runs log two rounds, so that rounds of a batch are drawn together.
    """
    rows = []
    for means, (horizon, epsilons, most) in instances.items():
        setup = setup_of("Arms", {"means": means}, horizon=horizon, seed=sizes["seed"], label=means)
        cells = [
            Cell(setup, agent, parse_agent(agent, epsilon=epsilon, delta=0.0))
            for epsilon in epsilons
            for agent in agents
        ]
        replicas = min(most, sizes["replicas"])
        runs = runs_of("tails", cells, out / means, replicas=replicas)
        best, second = sorted(MEANS[means])[:-3:-1]
        for one in cells:
            run = runs[one.key]
            facts = {
                "problem": means,
                "agent": one.name,
                "horizon": horizon,
                "replicas": replicas,
                "epsilon": run.certificate.epsilon,
            }
            rows.append(facts | tail(run.regret[-1], horizon * (best - second)))
    return pd.DataFrame(rows)


def report(title: str, rows: pd.DataFrame) -> Table:
    """Format rows of `measured` for the console."""
    heads = ("problem", "agent", "epsilon", "mean", "se", "q95", "worst", "far", "linear")
    texts = rows[[*heads]].map(lambda x: f"{x:.4g}" if isinstance(x, float) else str(x))
    return tabulated(title, heads, texts.itertuples(index=False), left=heads[:2])


def run(sizes: Sizes, out: Path) -> Found:
    """Measure means, and rare runs, of regret on arms without contexts. Resumes where it
    stopped."""
    frames = {
        "means": measured(sizes["means"], AGENTS, sizes, out / "means"),
        "tails": measured(sizes["rare"], RARE_AGENTS, sizes, out / "tails"),
    }
    return Found(frames, [], [report(name, rows) for name, rows in frames.items()])


main = command("tails", run, FULL_SIZES, QUICK_SIZES)

if __name__ == "__main__":
    start(main)
