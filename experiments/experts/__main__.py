"""`python -m dpbandit.experiments.experts [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console

from dpbandit.base.files import check_writable
from dpbandit.experiments.command import Out, Quick, Replicas, chosen, start
from dpbandit.experiments.experts.figures import figures
from dpbandit.experiments.experts.plan import QUICK, Plan
from dpbandit.experiments.experts.study import study
from dpbandit.experiments.experts.tables import tables


def main(quick: Quick = False, out: Out = Path("out/experts"), replicas: Replicas = None) -> None:
    """Regret against T, d and epsilon where one expert never errs. Resumes where it stopped."""
    plan = chosen(QUICK if quick else Plan(), replicas)
    check_writable(out / "summary.csv")
    findings = study(plan, out)
    for table in tables(findings):
        Console().print(table)
    for path in figures(findings, out):
        print(f"Written to {path}.")
    print(f"Written to {out / 'summary.csv'} and {out / 'slopes.csv'}.")


if __name__ == "__main__":
    start(main)
