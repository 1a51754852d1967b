"""Mean and tail of the regret of the newest private agents on arms without contexts.

python -m dpbandit.experiments.arms.tails [--quick] [--out DIR] [--replicas R]
"""

from collections.abc import Iterable, Iterator
from pathlib import Path

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

AGENTS = ("race-imed", "dp-imed", "dp-klucb")
TAIL_AGENTS, TAIL_EPSILON = AGENTS[:2], 0.1
"""Agents, and pure epsilon, with `TAIL_FACTOR` times as many replicas, to count rare runs."""
TAIL_FACTOR = 25
INSTANCES = {  # name of the means -> number of rounds, and values of epsilon
    "close": (1_000_000, (1.0, 0.1)),
    "steps": (1_000_000, (1.0, 0.1, 0.01)),
    "ten": (65_536, (1.0, 0.1)),
    "two": (20_000, (1.0, 0.1)),
    "hundred": (1_000_000, (1.0, 0.1)),
}
TAIL_INSTANCES = ("close", "steps", "ten", "two")
FULL_SIZES: Sizes = {"instances": INSTANCES, "replicas": 400, "seed": 31415}
QUICK_SIZES: Sizes = {"instances": {"two": (2000, (0.1,))}, "replicas": 2, "seed": 31415}
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
    found = {"mean": regret.mean(), "se": standard_error(regret), "median": median}
    found |= {"q95": np.quantile(regret, 0.95), "worst": regret.max()}
    rare = {"far": regret > FAR_MEDIANS * median, "linear": regret > LINEAR_SHARE * second}
    for name, these in rare.items():
        share = these.mean()
        found |= {name: share, f"{name}_se": np.sqrt(share * (1 - share) / len(regret))}
    return {name: float(value) for name, value in found.items()}


def cells(sizes: Sizes, *, rare: bool = False) -> Iterator[Cell]:
    """Yield agents on instances, whose runs log two rounds; if `rare`, those with long tails."""
    for means, (horizon, epsilons) in sizes["instances"].items():
        setup = setup_of("Arms", {"means": means}, horizon=horizon, seed=sizes["seed"], label=means)
        for epsilon in epsilons:
            if rare and (means not in TAIL_INSTANCES or epsilon != TAIL_EPSILON):
                continue
            for agent in TAIL_AGENTS if rare else AGENTS:
                yield Cell(setup, agent, parse_agent(agent, epsilon=epsilon, delta=0.0))


def measured(some: Iterable[Cell], out: Path, replicas: int) -> pd.DataFrame:
    """Play the missing replicas of configurations in the folder `out`, and tabulate all."""
    every = [*some]
    runs = runs_of("tails", every, out, replicas=replicas)
    rows = []
    for one in every:
        name, T = str(one.setup.problem), one.setup.horizon
        best, second = sorted(MEANS[name])[:-3:-1]
        facts = {"problem": name, "agent": one.name, "horizon": T, "replicas": replicas}
        facts["certified_epsilon"] = runs[one.key].certificate.epsilon
        rows.append(facts | tail(runs[one.key].regret[-1], T * (best - second)))
    return pd.DataFrame(rows)


def report(title: str, rows: pd.DataFrame) -> Table:
    """Format rows of `measured` for the console."""
    heads = ("problem", "agent", "certified_epsilon", "mean", "se", "q95", "worst", "far", "linear")
    texts = rows[[*heads]].map(lambda x: f"{x:.4g}" if isinstance(x, float) else str(x))
    return tabulated(title, heads, texts.itertuples(index=False), left=heads[:2])


def run(sizes: Sizes, out: Path) -> Found:
    """Measure means, and rare runs, of regret on arms without contexts. Resumes where it
    stopped."""
    replicas = sizes["replicas"]
    frames = {
        "means": measured(cells(sizes), out / "means-blocks", replicas),
        "tails": measured(cells(sizes, rare=True), out / "tails-blocks", TAIL_FACTOR * replicas),
    }
    return Found(frames, [], [report(name, rows) for name, rows in frames.items()])


main = command("tails", run, FULL_SIZES, QUICK_SIZES)

if __name__ == "__main__":
    start(main)
