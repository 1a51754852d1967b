"""`python -m dpbandit.experiments.labs --build DIR [--no-solutions] [--overwrite]`."""

from pathlib import Path
from typing import Annotated

import typer

from dpbandit.experiments.labs import labs, write_or_keep
from dpbandit.experiments.labs.progress import begin
from dpbandit.experiments.study import start


def main(
    build: Annotated[Path, typer.Option(help="Folder for the notebooks.")],
    solutions: Annotated[bool, typer.Option(help="Folded, or left out.")] = True,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Files that are there.")] = False,
) -> None:
    """Build every lab as a notebook for Jupyter; existing notebooks are not replaced."""
    for lab in labs():
        print(write_or_keep(lab, build, solutions=solutions, overwrite=overwrite)[1])
    begin(build)


if __name__ == "__main__":
    start(main)
