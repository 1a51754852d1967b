"""`python -m dpbandit.experiments.window [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console

from dpbandit.base.files import check_writable
from dpbandit.experiments.command import Out, Quick, Replicas, chosen, start
from dpbandit.experiments.window.figures import figures
from dpbandit.experiments.window.plan import QUICK, Plan
from dpbandit.experiments.window.study import study
from dpbandit.experiments.window.tables import tables


def main(quick: Quick = False, out: Out = Path("out/window"), replicas: Replicas = None) -> None:
    """Regret where privacy expires, against W, T and epsilon, and what rounds cost.

    Resumes where it stopped.
    """
    plan = chosen(QUICK if quick else Plan(), replicas)
    check_writable(out / "summary.csv")
    findings = study(plan, out)
    for table in tables(findings):
        Console().print(table)
    for path in figures(findings, out):
        print(f"Written to {path}.")
    for name in ("summary", "slopes", "costs", "table-1"):
        print(f"Written to {out / name}.csv.")


if __name__ == "__main__":
    start(main)
