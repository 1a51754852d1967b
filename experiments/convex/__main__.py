"""`python -m dpbandit.experiments.convex [--quick] [--out DIR] [--replicas R]`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from dpbandit.experiments.convex.figures import figures
from dpbandit.experiments.convex.plan import QUICK, Plan
from dpbandit.experiments.convex.study import study
from dpbandit.experiments.convex.tables import tables
from dpbandit.inputs import BadInput
from dpbandit.results import check_writable


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Where results go, and are taken up again.")] = Path(
        "out/convex"
    ),
    replicas: Annotated[int | None, typer.Option(help="Independent repetitions, >= 2.")] = None,
) -> None:
    """Regret against T and epsilon on convex problems. Resumes where it stopped."""
    plan = QUICK if quick else Plan()
    if replicas is not None:
        plan = replace(plan, replicas=replicas)
    check_writable(out / "summary.csv")
    findings = study(plan, out)
    for table in tables(findings):
        Console().print(table)
    for path in figures(findings, out):
        print(f"Written to {path}.")
    print(f"Written to {out / 'summary.csv'} and {out / 'slopes.csv'}.")


if __name__ == "__main__":
    try:
        typer.run(main)
    except BadInput as mistake:
        print(f"dpbandit: {mistake}", file=sys.stderr)
        sys.exit(2)
