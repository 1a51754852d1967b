"""The command line: `dpbandit COMMAND`."""

import sys
from concurrent.futures import BrokenExecutor
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from dpbandit.base import (
    AgentError,
    InputError,
    exit_with,
    short_path,
    warnings_on_stderr,
)
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
    "reproduce": (
        "studies",
        "Run a reference case or a published table again, beside its numbers.",
    ),
    "sweep": ("frontier", "Run every agent on every environment of a TOML file; can be resumed."),
    "report": ("frontier", "Write the results of a sweep as one HTML page with figures."),
    "frontier": (
        "frontier",
        "Compute the least epsilon at which an agent loses no more than so much.",
    ),
    "lab": ("studies", "List the teaching labs, or write one as a notebook."),
}
"""For each command its module in `dpbandit.commands`, imported when the command is used, and its
line in `dpbandit --help`."""
MORE = {
    row["names"]: (row["module"].removeprefix("commands."), row["line"])
    for row in catalogue("dpbandit", "shelves.csv")
    if row["package"] == "commands"
}
"""The commands of shelves, which `dpbandit --help` lists after those of the core"""

_INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, 128 + 2."""

_LONGEST = 2000
"""Characters of a sentence; an argument that it repeats may have many."""


class _Lazy(TyperGroup):
    """Commands that are imported one by one; the list of them needs none."""

    listing = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.loaded: dict[str, Any] = {}
        self.commands = {
            name: TyperCommand(name, help=line, rich_help_panel="More" if name in MORE else None)
            for name, (_, line) in (COMMANDS | MORE).items()
        }

    def list_commands(self, ctx: Any) -> list[str]:
        return [*COMMANDS, *MORE]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, or of a list its name and its line."""
        if cmd_name not in self.commands:
            return None
        if self.listing:
            return self.commands[cmd_name]
        if cmd_name not in self.loaded:
            self.loaded[cmd_name] = _loaded(cmd_name)
        return self.loaded[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False


def _loaded(name: str) -> Any:
    """A command of Typer's from the function of that name."""
    module = import_module(f"dpbandit.commands.{(COMMANDS | MORE)[name][0]}")
    if not hasattr(module, name):  # it has commands of its own
        return typer.main.get_command(module.app)
    alone = typer.Typer(
        pretty_exceptions_enable=False,
        rich_markup_mode="markdown",
        add_completion=False,
        context_settings=_HELP,
    )
    alone.command(name, cls=Once)(getattr(module, name))
    return typer.main.get_command(alone)


_HELP = {"help_option_names": ["-h", "--help"]}

app = typer.Typer(
    name="dpbandit",
    help="Compare bandit agents with and without differential privacy, and certify their privacy.",
    cls=_Lazy,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
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
    """Entry point: one plain sentence, and exit code 2 on bad input, 130 on Ctrl-C.

    Exit code 1 is for agents that raised something, 141 for output that is not read to its end.

    Modules in the current folder can be named, as with `python -m`; what is installed comes first.
    """
    if "" not in sys.path:
        sys.path.append("")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a path may hold bytes that are no text
            stream.reconfigure(errors="backslashreplace")
    exit_with(_ended)


def _ended() -> int:
    """The exit code, after what went wrong is said."""
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
    """The exit code of the command that was asked for."""
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return 2
        return _refuse(sentence(error, sys.argv[1:]))
    except typer.Abort:
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # Typer's answer to a KeyboardInterrupt, in silence
        print("dpbandit: interrupted.", file=sys.stderr)
    return int(code or 0)


def _refuse(sentence: str, code: int = 2) -> int:
    """Print it on one line, whatever names are in it; returns the exit code."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    print(f"dpbandit: {line}", file=sys.stderr)
    return code
