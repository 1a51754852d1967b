"""`python -m dpbandit.experiments.figure_5_1 [--quick] [--out DIR] [--replicas R]`."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from dpbandit.experiments.figure_5_1.figure import draw
from dpbandit.experiments.figure_5_1.study import QUICK, Plan, study
from dpbandit.inputs import BadInput
from dpbandit.results import check_writable


def main(
    quick: Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")] = False,
    out: Annotated[Path, typer.Option(help="Where results go, and are taken up again.")] = Path(
        "out/figure_5_1"
    ),
    replicas: Annotated[int | None, typer.Option(help="Independent repetitions, >= 2.")] = None,
) -> None:
    """Figure 5.1 as printed, as specified and as certified. Resumes where it stopped."""
    plan = QUICK if quick else Plan()
    if replicas is not None:
        plan = replace(plan, replicas=replicas)
    check_writable(out / "figure_5_1.png")
    found = study(plan, out)
    for name, (_, outcome, proof) in found.items():
        regret = outcome.regret[-1].mean()
        print(f"{name:14} regret {regret:7.1f}   certified epsilon {proof.epsilon:.3g}")
    print(f"Written to {out / 'certificates.json'}.")
    print(f"Written to {draw(out / 'figure_5_1.png', found)}.")


if __name__ == "__main__":
    try:
        typer.run(main)
    except BadInput as mistake:
        print(f"dpbandit: {mistake}", file=sys.stderr)
        sys.exit(2)
