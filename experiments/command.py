"""What the commands of all studies share: three options, and one clear sentence."""

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from dpbandit.base.inputs import InputError

Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")]
Out: TypeAlias = Annotated[Path, typer.Option(help="Where results go, and are taken up again.")]
Replicas: TypeAlias = Annotated[int | None, typer.Option(help="Independent repetitions, >= 2.")]

PlanT = TypeVar("PlanT", bound=Any)


def chosen(plan: PlanT, replicas: int | None) -> PlanT:
    """The plan, with as many replicas as asked for."""
    chosen: PlanT = plan if replicas is None else replace(plan, replicas=replicas)
    return chosen


def start(main: Callable[..., None]) -> None:
    """Run a command; bad input becomes one sentence and exit code 2."""
    try:
        typer.run(main)
    except InputError as mistake:
        print(f"dpbandit: {mistake}", file=sys.stderr)
        sys.exit(2)
