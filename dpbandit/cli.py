"""The command line."""

import sys
from typing import Annotated

import typer

from dpbandit.commands.audit import audit
from dpbandit.commands.certify import certify
from dpbandit.commands.compare import compare
from dpbandit.commands.lab import app as lab
from dpbandit.commands.listings import agents, envs
from dpbandit.commands.options import Once
from dpbandit.commands.report import report
from dpbandit.commands.reproduce import reproduce
from dpbandit.commands.sweep import sweep
from dpbandit.inputs import BadInput
from dpbandit.version import VERSION

_INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, 128 + 2."""

app = typer.Typer(
    name="dpbandit",
    help="What does joint differential privacy cost a bandit, in regret?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
)
for _command in (envs, agents, compare, certify, audit, reproduce, sweep, report):
    app.command(cls=Once)(_command)
app.add_typer(lab, name="lab")


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
    """Entry point: one plain sentence, and exit code 2 on bad input, 130 on Ctrl-C.

    Modules in the current folder can be named, as with `python -m`; what is installed comes first.
    """
    if "" not in sys.path:
        sys.path.append("")
    try:
        app()
    except BadInput as mistake:
        print(f"dpbandit: {mistake}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:  # Typer's answer to a KeyboardInterrupt, in silence
            print("dpbandit: interrupted.", file=sys.stderr)
        raise
