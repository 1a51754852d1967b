"""`python -m dpbandit.experiments.lists [--quick] [--out DIR] [--replicas R]`."""

from math import inf
from pathlib import Path

import pandas as pd
from rich.table import Table

from dpbandit.base import check_writable
from dpbandit.experiments.lists import by_size, figures, table
from dpbandit.experiments.questions import Out, Quick, Replicas, measured, sized, start, tell
from dpbandit.studies import Sweep

QUICK = {"horizons": [200], "replicas": 2, "epsilons": [1.0, inf]}


def main(quick: Quick = False, out: Out = Path("out/lists"), replicas: Replicas = None) -> None:
    """Catalogue size x list length x epsilon, in a cascade. Resumes where it stopped."""
    update = sized(QUICK if quick else {}, replicas)
    check_writable(out / "summary.csv")
    study = Sweep.read(Path(__file__).with_name("study.toml")).model_copy(update=update)
    results = measured(study, out)
    tables = {size: table(runs) for size, runs in by_size(results).items()}
    drawn = (
        _drawn(found, f"Lists of {length} of {items:,} items")
        for (length, items), found in tables.items()
    )
    tell(drawn, figures(results, out), {"summary": pd.concat(tables.values())}, out)


def _drawn(found: pd.DataFrame, title: str) -> Table:
    shown = Table(title=title, title_justify="left")
    shown.add_column("agent", no_wrap=True)
    for column in ("epsilon", "regret", "% of uniform lists'"):
        shown.add_column(column, justify="right")
    for row in found.to_dict("records"):
        shown.add_row(
            row["agent"],
            f"{row['certified_epsilon']:.3g}",
            f"{row['mean']:,.0f} ± {row['se']:,.0f}",
            f"{row['share']:.1f} ± {row['share_se']:.1f}",
        )
    return shown


if __name__ == "__main__":
    start(main)
