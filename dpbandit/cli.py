"""Entry point of the command line, `dpbandit COMMAND`."""

import sys
from concurrent.futures import BrokenExecutor
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer

from dpbandit.base import AgentError, InputError, exit_with, short_path, warnings_on_stderr
from dpbandit.commands.usage import Once, UsageError, sentence
from dpbandit.lazy import catalogue
from dpbandit.version import VERSION

COMMANDS = {
    "envs": ("agents", "List the environments, or show the arguments and units of one."),
    "agents": ("agents", "List the agents and their privacy, or show the settings of one."),
    "fit": ("fit", "Make an environment from your own table of offers, clicks or choices."),
    "compare": ("agents", "Compare agents by cumulative regret, with a certificate for each."),
    "certify": ("agents", "Compute the epsilon that an agent's noise gives, beside its claim."),
    "audit": ("agents", "Try to refute an agent's certificate by running it many times."),
    "frontier": (
        "frontier",
        "Compute the least epsilon at which an agent loses no more than so much.",
    ),
}
"""Command -> its module in `dpbandit.commands`, and its line in `dpbandit --help`."""
SHELF_COMMANDS = {
    row["names"]: (row["module"].removeprefix("commands."), row["line"])
    for row in catalogue("dpbandit", "shelves.csv")
    if row["package"] == "commands"
}
"""Commands of optional modules ("shelves"), which `dpbandit --help` lists after `COMMANDS`."""

_INTERRUPTED_CODE = 130
"""Exit code of a program ended by SIGINT, 128 + 2."""

_MAX_MESSAGE_LETTERS = 2000
"""Largest number of letters of an error message, which may quote an argument of any length."""


class _Lazy(typer.core.TyperGroup):
    """Group of commands whose modules are imported when a command is used.

    Its help imports none of them, and is plain text: importing Rich would take half as long again.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.commands = {
            name: typer.core.TyperCommand(name, help=line)
            for name, (_, line) in (COMMANDS | SHELF_COMMANDS).items()
        }
        self.loaded: dict[str, Any] = {}

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *SHELF_COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Import and return a command."""
        if cmd_name not in self.commands:
            return None
        if cmd_name not in self.loaded:
            self.loaded[cmd_name] = _loaded(cmd_name)
        return self.loaded[cmd_name]

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        for title, commands in ("Commands", COMMANDS), ("More", SHELF_COMMANDS):
            if not commands:  # no optional module is here
                continue
            with formatter.section(title):
                formatter.write_dl([(name, line) for name, (_, line) in commands.items()])


def _loaded(name: str) -> Any:
    """Import the module of a command, and make a Typer command of its function or app."""
    module = import_module(f"dpbandit.commands.{(COMMANDS | SHELF_COMMANDS)[name][0]}")
    if not hasattr(module, name):  # a group with commands of its own
        return typer.main.get_command(module.app)
    alone = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        add_completion=False,
        context_settings=_HELP,
    )
    alone.command(name, cls=Once)(getattr(module, name))
    return typer.main.get_command(alone)


_HELP = {"help_option_names": ["-h", "--help"]}  # settings of Typer for all commands

app = typer.Typer(
    name="dpbandit",
    help="Compare bandit agents with and without differential privacy, and certify their privacy.",
    cls=_Lazy,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings=_HELP,
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"dpbandit {VERSION}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
) -> None:
    """Compare bandit agents with and without differential privacy, and certify their privacy."""


def main() -> None:
    """Run the command line; errors become one sentence on stderr.

    Exit codes: 1 if an agent raised an exception, 2 on bad input, 130 on Ctrl-C, 141 if a reader
    closed standard output. Arguments may name modules in the current folder; installed ones win.
    """
    if "" not in sys.path:
        sys.path.append("")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # paths may hold bytes that are no valid text
            stream.reconfigure(errors="backslashreplace")
    exit_with(_ended)


def _ended() -> int:
    """Run the command, print an error as one sentence on stderr, and return the exit code."""
    try:
        with warnings_on_stderr():
            return _run()
    except AgentError as error:
        return _refuse(str(error), 1)
    except InputError as mistake:
        return _refuse(str(mistake))
    except MemoryError as error:
        why = f": {error}" if str(error) else ""
        return _refuse(f"Not enough memory{why}. Choose smaller sizes.")
    except RecursionError:
        return _refuse("Expected input that is nested less deeply.")
    except BrokenExecutor:
        return _refuse(
            "A worker process was killed, perhaps for want of memory: choose fewer --jobs."
        )
    except OSError as error:
        where = f"use {short_path(error.filename)}" if error.filename else "go on"
        return _refuse(f"Cannot {where}: {error.strerror or error}.")
    except UnicodeError as error:
        return _refuse(f"Cannot write what is no text: {error}.")


def _run() -> int:
    """Run the command in `sys.argv`, and return its exit code."""
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return 2
        return _refuse(sentence(error, sys.argv[1:]))
    except typer.Abort:
        code = _INTERRUPTED_CODE
    if code == _INTERRUPTED_CODE:  # Typer returns this on a KeyboardInterrupt, and prints nothing
        print("dpbandit: interrupted.", file=sys.stderr)
    return int(code or 0)


def _refuse(sentence: str, code: int = 2) -> int:
    """Print a message as one line on stderr, unprintable letters escaped; return the exit code."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)
    if len(line) > _MAX_MESSAGE_LETTERS:
        half = _MAX_MESSAGE_LETTERS // 2
        line = f"{line[:half]} ... {line[-half:]}"
    print(f"dpbandit: {line}", file=sys.stderr)
    return code
