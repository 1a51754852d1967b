"""The command line: `dpbandit COMMAND`."""

import sys
from concurrent.futures import BrokenExecutor
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from dpbandit.base import InputError, shown_path, warnings_said
from dpbandit.commands.usage import Once, UsageError, sentence
from dpbandit.version import VERSION

COMMANDS = {
    "envs": ("agents", "The environments, their ids and what they are; of one its arguments."),
    "agents": ("agents", "The agents by what they play, with their privacy; of one its settings."),
    "fit": ("logs", "Make an environment of a table of yours, and say what its fit cannot know."),
    "evaluate": ("logs", "Estimate what a frozen policy would have earned on a log of arms."),
    "compare": ("agents", "Compare agents by cumulative regret, with certificates and a plot."),
    "certify": ("agents", "What an agent's noise really buys, beside what it claims."),
    "audit": ("agents", "Try to refute a certificate: a lower bound on epsilon, measured."),
    "reproduce": ("studies", "A published table, or a reference case, beside what we measure."),
    "sweep": ("studies", "Run a study from a TOML file; what was killed goes on with --resume."),
    "report": ("studies", "A sweep as one page with figures and tables."),
    "lab": ("studies", "Teaching labs: what there is, and one of them as a notebook."),
}
"""Of each command its module in `dpbandit.commands`, which is imported when it is asked for, and
what `dpbandit --help` says of it."""

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
            name: TyperCommand(name, help=line) for name, (_, line) in COMMANDS.items()
        }

    def list_commands(self, ctx: Any) -> list[str]:
        """In the order of the table."""
        return [*COMMANDS]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The command itself, or of a list its name and its line."""
        if cmd_name not in COMMANDS:
            return None
        if self.listing:
            return self.commands[cmd_name]
        if cmd_name not in self.loaded:
            self.loaded[cmd_name] = _loaded(cmd_name)
        return self.loaded[cmd_name]

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """As Typer does it, of names and lines."""
        self.listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self.listing = False


def _loaded(name: str) -> Any:
    """A command of Typer's from the function of that name."""
    module = import_module(f"dpbandit.commands.{COMMANDS[name][0]}")
    if name == "lab":
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
    help="What does joint differential privacy cost a bandit, in regret?",
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
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # a path may hold bytes that are no text
            stream.reconfigure(errors="backslashreplace")
    try:
        with warnings_said():
            sys.exit(_run())
    except InputError as mistake:
        _refuse(str(mistake))
    except MemoryError as error:
        _refuse(f"Not enough memory{f': {error}' if str(error) else ''}. Choose smaller sizes.")
    except RecursionError:
        _refuse("Expected input that is nested less deeply.")
    except BrokenExecutor:
        _refuse("A worker process was killed, perhaps for want of memory: choose fewer --jobs.")
    except OSError as error:
        where = f"use {shown_path(error.filename)}" if error.filename else "go on"
        _refuse(f"Cannot {where}: {error.strerror or error}.")
    except UnicodeError as error:
        _refuse(f"Cannot write what is no text: {error}.")


def _run() -> int:
    """The exit code of the command that was asked for."""
    try:
        code = app(standalone_mode=False)
    except UsageError as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()
            return 2
        _refuse(sentence(error, sys.argv[1:]))
    except typer.Abort:
        code = _INTERRUPTED
    if code == _INTERRUPTED:  # Typer's answer to a KeyboardInterrupt, in silence
        print("dpbandit: interrupted.", file=sys.stderr)
    return int(code or 0)


def _refuse(sentence: str) -> NoReturn:
    """Print it on one line, whatever names are in it, and end."""
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in sentence)
    if len(line) > _LONGEST:
        line = f"{line[: _LONGEST // 2]} ... {line[-_LONGEST // 2 :]}"
    print(f"dpbandit: {line}", file=sys.stderr)
    sys.exit(2)
