"""`dpbandit sweep`: a study from a file, which may be interrupted."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from dpbandit.base.inputs import InputError
from dpbandit.commands.options import say

_SOME = 3
"""The most files that are told by name."""


def sweep(
    file: Annotated[Path | None, typer.Argument(help="TOML file, see the example.")] = None,
    out: Annotated[  # text: as a path '' would be the current folder
        str | None, typer.Option(help="Folder of the results.", metavar="<path>")
    ] = None,
    backend: Annotated[
        str, typer.Option(help="loky (processes), threading or dask (a cluster).")
    ] = "loky",
    jobs: Annotated[int, typer.Option(help="Workers, 1 to 1024.")] = 1,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of a Dask scheduler, tcp://HOST:8786.")
    ] = None,
    block: Annotated[
        int | None, typer.Option(help="Replicas of a task. Changes speed, never values.")
    ] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on: keep what is there.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of sweep files.")
    ] = False,
) -> None:
    """Run every agent on every environment, for every epsilon, delta and horizon.

    Numbers do not depend on the backend, the jobs or an interruption; `dpbandit report` draws them.

    Example: `dpbandit sweep experiments/sweeps/prices.toml --out out --jobs 2`
    """
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
        )
    except KeyboardInterrupt:
        print("dpbandit: what is written is kept, go on with --resume.", file=sys.stderr)
        raise
    say(f"{done.configurations} configurations: {done.run} replicas run, {done.kept} kept.")
    _say_some("Corrupt, moved aside and run anew", done.found.corrupt)
    _say_some("Not of this sweep, left alone", done.found.foreign)
    say(f"Written to {done.folder}. Next: dpbandit report {done.folder}")


def _say_some(what: str, files: Sequence[Path]) -> None:
    if files:
        more = f" and {len(files) - _SOME} more" if len(files) > _SOME else ""
        say(f"{what}: {', '.join(map(str, files[:_SOME]))}{more}")
