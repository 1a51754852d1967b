"""The command line."""

import sys
from typing import Annotated

import typer

from dpbandit.commands.audit import audit
from dpbandit.commands.certify import certify
from dpbandit.commands.compare import compare
from dpbandit.commands.listings import agents, envs
from dpbandit.commands.reproduce import reproduce
from dpbandit.inputs import BadInput
from dpbandit.version import VERSION

app = typer.Typer(
    name="dpbandit",
    help="What does joint differential privacy cost a bandit, in regret?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for _command in (envs, agents, compare, certify, audit, reproduce):
    app.command()(_command)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"dpbandit {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """What does joint differential privacy cost a bandit, in regret?"""


def main() -> None:
    """Entry point: one plain sentence and exit code 2 on bad input."""
    try:
        app()
    except BadInput as mistake:
        print(f"dpbandit: {mistake}", file=sys.stderr)
        sys.exit(2)
