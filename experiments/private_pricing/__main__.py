"""`python -m dpbandit.experiments.private_pricing [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console

from dpbandit.base import check_writable, write_csv
from dpbandit.experiments.private_pricing import QUICK, Sizes, figures, questions, slopes, tables
from dpbandit.experiments.questions import (
    Out,
    Quick,
    Replicas,
    answers,
    chosen,
    slopes_table,
    start,
)


def main(
    quick: Quick = False, out: Out = Path("out/private_pricing"), replicas: Replicas = None
) -> None:
    """Regret of private pricing against T, beside proved rates. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas)
    check_writable(out / "summary.csv")
    found = answers("Private pricing", questions(sizes), out, replicas=sizes.replicas)
    write_csv(out / "summary.csv", found.table())
    write_csv(out / "slopes.csv", slopes_table(slopes(found)))
    for table in tables(found):
        Console().print(table)
    for path in figures(found, out):
        print(f"Written to {path}.")
    print(f"Written to {out / 'summary.csv'} and {out / 'slopes.csv'}.")


if __name__ == "__main__":
    start(main)
