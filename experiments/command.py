"""What the commands of all studies share: three options, one store, and one clear sentence."""

import sys
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from dpbandit.base.inputs import InputError, whole
from dpbandit.results.results import Results
from dpbandit.studies import Study, Sweep, run_sweep

Quick: TypeAlias = Annotated[bool, typer.Option("--quick", help="Seconds instead of minutes.")]
Out: TypeAlias = Annotated[Path, typer.Option(help="Where results go, and are taken up again.")]
Replicas: TypeAlias = Annotated[int | None, typer.Option(help="Independent repetitions, >= 2.")]


def sized(sizes: Mapping[str, Any], replicas: int | None) -> dict[str, Any]:
    """The sizes of a study, with as many replicas as asked for: two at least."""
    chosen = dict(sizes) if replicas is None else {**sizes, "replicas": replicas}
    if "replicas" in chosen:
        whole("replicas", chosen["replicas"], 2)  # there are standard errors
    return chosen


def chosen(plan: Any, replicas: int | None) -> Any:
    """The plan, with as many replicas as asked for."""
    return plan if replicas is None else replace(plan, replicas=replicas)


def measured(study: Study | Sweep, out: Path, *, progress: bool = True) -> Results:
    """Run what is missing of a study in the folder `out`, and load all of it.

    Raises:
        InputError: whatever `run_sweep` refuses, such as blocks that another program has made.
    """
    done = run_sweep(study, out, backend="threading", resume=True, progress=progress)
    if done.found.corrupt:
        files = ", ".join(map(str, done.found.corrupt))
        warnings.warn(f"Corrupt, moved aside and run anew: {files}.", stacklevel=2)
    return Results.load(out)


def start(main: Callable[..., None]) -> None:
    """Run a command; bad input becomes one sentence and exit code 2, warnings are sentences."""
    warnings.showwarning = lambda message, *where, **how: print(message)
    try:
        typer.run(main)
    except InputError as mistake:
        print(f"dpbandit: {mistake}", file=sys.stderr)
        sys.exit(2)
