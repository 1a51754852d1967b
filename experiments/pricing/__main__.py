"""`python -m dpbandit.experiments.pricing [--quick] [--out DIR] [--replicas R]`."""

from functools import partial
from math import inf
from pathlib import Path

import pandas as pd
from rich.console import Console
from rich.table import Table

from dpbandit.base import check_writable, write_atomically, write_csv
from dpbandit.experiments.pricing.figure import (
    MARKETS,
    best_public,
    called,
    draw_money,
    figures,
    money,
    table,
)
from dpbandit.experiments.questions import Out, Quick, Replicas, measured, sized, start
from dpbandit.studies import Sweep

STUDIES = {"study.toml": "", "cameras.toml": "cameras"}
"""Files of sweeps, and the folders of their runs in `out`."""
QUICK = {"horizons": [2_000], "replicas": 3, "epsilons": [0.5, 5.0, inf]}


def main(quick: Quick = False, out: Out = Path("out/pricing"), replicas: Replicas = None) -> None:
    """Regret against epsilon: orange juice, cameras, recommendation; dollars lost on four markets.

    Resumes where it stopped.
    """
    update, tables = sized(QUICK if quick else {}, replicas), []
    check_writable(out / "summary.csv")
    studies = {
        folder: Sweep.read(Path(__file__).with_name(name)).model_copy(update=update)
        for name, folder in STUDIES.items()
    }
    for results in [measured(study, out / folder) for folder, study in studies.items()]:
        for problem in dict.fromkeys(run.setup.problem for run in results.runs):
            found = results.where(problem=problem)
            tables.append(table(found))
            best = called(best_public(found), found)
            _print(tables[-1], f"{problem}: lost to {best}, the best agent without privacy")
            for path in figures(found, out):
                print(f"Written to {path}.")
    print(f"Written to {write_csv(out / 'summary.csv', pd.concat(tables))}.")
    study = Sweep.read(Path(__file__).with_name("money.toml")).model_copy(update=update)
    found = measured(study, out / "money")
    markets = {problem: found.where(problem=problem) for problem in MARKETS}
    lost = {problem: money(results) for problem, results in markets.items()}
    ideal = {problem: one["dollars_at_best"].iloc[0] for problem, one in lost.items()}
    drawn = partial(draw_money, found=markets, best=ideal)
    print(f"Written to {write_atomically(out / 'money.png', drawn)}.")
    print(f"Written to {write_csv(out / 'money.csv', pd.concat(lost.values()))}.")


def _print(found: pd.DataFrame, title: str) -> None:
    shown = Table(title=title, title_justify="left")
    shown.add_column("agent", no_wrap=True)
    (unit,) = set(found["unit"])
    for column in ("epsilon", "regret", f"{unit} lost per 1,000", "beats uniform from round"):
        shown.add_column(column, justify="right")
    for row in found.to_dict("records"):
        start = row["beats_uniform_from"]
        shown.add_row(
            row["agent"],
            f"{row['certified_epsilon']:.3g}",
            f"{row['mean']:.0f} ± {row['se']:.0f}",
            f"{row['lost_per_1000']:.1f} ± {row['lost_per_1000_se']:.1f}",
            "-" if pd.isna(start) else f"{start:,.0f}",
        )
    Console().print(shown)


if __name__ == "__main__":
    start(main)
