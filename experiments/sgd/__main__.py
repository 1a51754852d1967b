"""`python -m dpbandit.experiments.sgd [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console

from dpbandit.base.files import check_writable
from dpbandit.experiments.command import Out, Quick, Replicas, chosen, start
from dpbandit.experiments.sgd.figures import figures
from dpbandit.experiments.sgd.study import FULL, QUICK, study
from dpbandit.experiments.sgd.tables import tables


def main(quick: Quick = False, out: Out = Path("out/sgd"), replicas: Replicas = None) -> None:
    """Table 5.1 as printed, as stated, without privacy and as certified; three figures.

    Resumes where it stopped.
    """
    plan = chosen(QUICK if quick else FULL, replicas)
    check_writable(out / "summary.csv")
    findings = study(plan, out)
    for table in tables(findings):
        Console().print(table)
    for path in figures(findings, out):
        print(f"Written to {path}.")
    print(f"Written to {out / 'summary.csv'}.")


if __name__ == "__main__":
    start(main)
