"""`dpbandit lab list` and `dpbandit lab open N`: the teaching labs."""

import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from dpbandit.commands.options import Once
from dpbandit.commands.tables import screen
from dpbandit.experiments.labs.catalogue import find, labs
from dpbandit.experiments.labs.notebook import INSTALL, write_or_keep

app = typer.Typer(help="Teaching labs: what there is, and one of them as a notebook.")


@app.command("list", cls=Once)
def show() -> None:
    """The labs: number, title, minutes, and what one can do afterwards.

    Example: `dpbandit lab list`
    """
    table = Table("lab", "title", "minutes", "goal", box=None, pad_edge=False)
    for lab in labs():
        table.add_row(str(lab.number), lab.title, str(lab.minutes), lab.goal)
    screen().print(table)


@app.command("open", cls=Once)
def start(
    number: Annotated[int, typer.Argument(help="See `dpbandit lab list`.")],
    out: Annotated[Path, typer.Option(help="Folder for the notebook.")] = Path("."),
    solutions: Annotated[bool, typer.Option(help="Folded below the exercises, or none.")] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace the notebook that is there.")
    ] = False,
    browser: Annotated[bool, typer.Option(help="Let JupyterLab open one.")] = True,
    jupyter: Annotated[
        bool, typer.Option(help="Start JupyterLab, or write the file alone.")
    ] = True,
) -> None:
    """Write lab NUMBER as a notebook and open it in JupyterLab.

    A notebook that is there already, with your work in it, is opened as it is.

    Example: `dpbandit lab open 1 --out labs`
    """
    target, said = write_or_keep(find(number), out, solutions=solutions, overwrite=overwrite)
    print(said)
    if jupyter and find_spec("jupyterlab") is None:
        print(f"JupyterLab is not installed. To have it: {INSTALL}")
    elif jupyter:
        options = [] if browser else ["--no-browser"]
        server = subprocess.Popen([sys.executable, "-m", "jupyterlab", str(target), *options])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for JupyterLab, which asks back
        server.wait()
