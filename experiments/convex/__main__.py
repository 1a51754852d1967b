"""`python -m dpbandit.experiments.convex [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console

from dpbandit.base import check_writable, write_csv
from dpbandit.experiments.convex import QUICK, Sizes, figures, questions, slopes, tables
from dpbandit.experiments.questions import (
    Out,
    Quick,
    Replicas,
    answers,
    chosen,
    slopes_table,
    start,
)


def main(quick: Quick = False, out: Out = Path("out/convex"), replicas: Replicas = None) -> None:
    """Regret against T and epsilon on convex problems. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas)
    check_writable(out / "summary.csv")
    found = answers("Points of a convex domain", questions(sizes), out, replicas=sizes.replicas)
    write_csv(out / "summary.csv", found.table())
    write_csv(out / "slopes.csv", slopes_table(slopes(found)))
    for table in tables(found):
        Console().print(table)
    for path in figures(found, out):
        print(f"Written to {path}.")
    print(f"Written to {out / 'summary.csv'} and {out / 'slopes.csv'}.")


if __name__ == "__main__":
    start(main)
