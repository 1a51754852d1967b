"""`python -m dpbandit.experiments.sgd [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console

from dpbandit.base import check_writable, write_csv
from dpbandit.experiments.questions import Out, Quick, Replicas, chosen, start
from dpbandit.experiments.sgd import QUICK, SCALES, Sizes, entries, measure, summary, tables
from dpbandit.experiments.sgd.figures import figures


def main(quick: Quick = False, out: Out = Path("out/sgd"), replicas: Replicas = None) -> None:
    """Table 5.1 as printed, as stated, without privacy and as certified; three figures.

    Resumes where it stopped.
    """
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas)
    check_writable(out / "summary.csv")
    found = measure(sizes, out)
    beside = entries(sizes, found)
    for table in tables(beside):
        Console().print(table)
    for path in figures(beside, found.runs[SCALES], out):
        print(f"Written to {path}.")
    print(f"Written to {write_csv(out / 'summary.csv', summary(beside))}.")


if __name__ == "__main__":
    start(main)
