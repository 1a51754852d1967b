"""The command of the study of gradual expiration."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from dpbandit.base.tables import Table
from dpbandit.experiments.gradual import table
from dpbandit.experiments.study import Found, Sizes, command, read, start, tabulated

STUDY = read("gradual")  # contents of the folder's study.toml


def report(found: pd.DataFrame) -> Iterator[Table]:
    """Format the rows of `table` at the middle epsilon as a table of the console."""
    epsilons = sorted(set(found["epsilon"]))
    middle = epsilons[len(epsilons) // 2]
    for problem, rows in found.query("epsilon == @middle").groupby("problem", sort=False):
        cells = []
        for row in rows.to_dict("records"):
            regret = f"{row['mean']:,.4g} ± {row['se']:,.2g}"
            cells.append((row["agent"], row["watched"], regret, f"{row['ever']:.3g}"))
        title, headings = (
            f"{problem}, epsilon {middle:g}",
            ("sum", "watched", "regret", "epsilon ever"),
        )
        yield tabulated(title, headings, cells, left=headings[:2], keys=2)


def run(sizes: Sizes, out: Path) -> Found:
    """Measure regret against the epsilon of a user's first rounds. Resumes where it stopped."""
    found = STUDY.measure(sizes, out)
    rows = table(STUDY.panes(STUDY.questions["gradual"], sizes), found.runs["gradual"])
    return Found({"gradual": rows}, STUDY.draw(found, sizes, out), report(rows))


main = command("gradual", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
