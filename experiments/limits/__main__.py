"""`python -m dpbandit.experiments.limits [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

import pandas as pd
from rich.console import Console

from dpbandit.base import check_writable, write_csv
from dpbandit.experiments.limits import QUICK, Sizes, figures, questions, shown, table
from dpbandit.experiments.questions import Out, Quick, Replicas, answers, chosen, start


def main(quick: Quick = False, out: Out = Path("out/limits"), replicas: Replicas = None) -> None:
    """Regret against epsilon, above a bound that no agent is below. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas)
    check_writable(out / "summary.csv")
    name = "Distance from the limit"
    found = answers(name, {"limits": questions(sizes)}, out, replicas=sizes.replicas)
    panels = found.runs["limits"]
    tables = {title: table(lines) for title, lines in panels.items()}
    for title, one in tables.items():
        Console().print(shown(title, one))
    for path in figures(panels, out):
        print(f"Written to {path}.")
    for file, frame in (("limits", pd.concat(tables.values())), ("summary", found.table())):
        print(f"Written to {write_csv(out / f'{file}.csv', frame)}.")


if __name__ == "__main__":
    start(main)
