"""`dpbandit report`: a sweep as a page and figures."""

from pathlib import Path
from typing import Annotated

import typer

from dpbandit.commands.options import say


def report(
    folder: Annotated[Path, typer.Argument(help="Folder of a sweep, or of `compare --out`.")],
    out: Annotated[Path | None, typer.Option(help="Folder of the report; DIR/report.")] = None,
    baseline: Annotated[
        str, typer.Option(help="The agent that all others are compared with.")
    ] = "Uniform",
) -> None:
    """One HTML page that needs nothing else, and every figure as PNG and SVG.

    Example: `dpbandit report out`
    """
    from dpbandit.report import write_report

    written = write_report(folder, out=out, baseline=baseline)
    say(f"{len(written.figures)} figures beside it.")
    say(f"Written to {written.page}.")
