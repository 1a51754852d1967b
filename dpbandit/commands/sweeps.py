"""`dpbandit sweep` and `report`: make many runs and report on them."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dpbandit.base import InputError
from dpbandit.commands.options import Jobs, Minutes, say

_LISTED_FILES = 3
"""Number of files that a message lists by name."""


def sweep(
    file: Annotated[
        Path | None, typer.Argument(help="TOML file that says what to run, see the example.")
    ] = None,
    out: Annotated[  # text: as a path '' would be the current folder
        str | None, typer.Option(help="Folder for the results.", metavar="<path>")
    ] = None,
    backend: Annotated[
        str, typer.Option(help="loky (processes), threading or dask (a cluster).")
    ] = "loky",
    jobs: Jobs = None,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:8786.")
    ] = None,
    block: Annotated[
        int | None, typer.Option(help="Replicas in one task; changes the speed, not the numbers.")
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the results in --out and run what is missing.")
    ] = False,
    minutes: Minutes = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of sweep files.")
    ] = False,
) -> None:
    """Run every agent on every environment, for every epsilon, delta and horizon.

    The numbers do not depend on the backend, on `--jobs`, or on interruptions; after one, run the
    same command with `--resume`. `dpbandit report` draws the results. Exit code 1 if an agent
    raised an error, which is reported in a sentence; all others are played.

    Example: `dpbandit sweep experiments/sweeps/prices.toml --out out --jobs 2`
    """
    from dpbandit.running.foreign import limit_of
    from dpbandit.studies import Sweep, run_sweep

    if schema:
        print(json.dumps(Sweep.model_json_schema(), indent=2))
        return
    if file is None or out is None:
        raise InputError("Expected FILE and --out DIR (or --schema).")
    study = Sweep.read(file)
    try:
        done = run_sweep(
            study,
            out,
            backend=backend,
            jobs=jobs,
            scheduler=scheduler,
            block=block,
            resume=resume,
            limit=limit_of(minutes),
        )
    except KeyboardInterrupt:
        print("dpbandit: what is written is kept, go on with --resume.", file=sys.stderr)
        raise
    say(f"{done.configurations} configurations: {done.run} replicas run, {done.reused} kept.")
    _say_files("Corrupt, moved aside and run anew", done.found.corrupt)
    _say_files("Not of this sweep, left alone", done.found.foreign)
    for failure in done.failed:
        print(f"dpbandit: {failure}", file=sys.stderr)
    say(f"Written to {done.folder}. Next: dpbandit report {done.folder}")
    if done.failed:
        raise typer.Exit(1)


def _say_files(what: str, files: Sequence[Path]) -> None:
    if files:
        more = f" and {len(files) - _LISTED_FILES} more" if len(files) > _LISTED_FILES else ""
        say(f"{what}: {', '.join(map(str, files[:_LISTED_FILES]))}{more}")


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a sweep, or of `compare --out`.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for the report; default FOLDER/report.")
    ] = None,
    baseline: Annotated[
        str, typer.Option(help="The agent that all others are compared with.")
    ] = "Uniform",
    problem: Annotated[
        str | None, typer.Option(help="Label of the only problem to report; default: all of them.")
    ] = None,
) -> None:
    """Write the results of a sweep as one self-contained HTML page, and its figures as PNG and SVG.

    With more than twelve problems each has one figure, as SVG; `--problem` draws all of one.

    Example: `dpbandit report out`
    """
    from dpbandit.report import write_report

    written = write_report(folder, out=out, baseline=baseline, problem=problem)
    for sentence in written.answer:
        say(sentence)
    say(f"{len(written.figures)} figures beside it.")
    say(f"Written to {written.page}.")
