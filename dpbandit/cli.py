"""The command line: `dpbandit COMMAND`."""

import sys
from concurrent.futures import BrokenExecutor
from io import TextIOWrapper
from typing import Annotated, NoReturn

import typer

from dpbandit.base import InputError, shown_path, warnings_said
from dpbandit.commands.agents import agents, audit, certify, compare, envs
from dpbandit.commands.logs import evaluate, fit
from dpbandit.commands.options import Once, UsageError, sentence
from dpbandit.commands.studies import app as lab, report, reproduce, sweep
from dpbandit.version import VERSION

_INTERRUPTED = 130
"""Exit code of a program that SIGINT ended, 128 + 2."""

_LONGEST = 2000
"""Characters of a sentence; an argument that it repeats may have many."""

app = typer.Typer(
    name="dpbandit",
    help="What does joint differential privacy cost a bandit, in regret?",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _command in (envs, agents, fit, evaluate, compare, certify, audit, reproduce, sweep, report):
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
