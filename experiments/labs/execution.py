"""Run one student's notebook, in a process of its own: `python -m ... NOTEBOOK OUTCOMES`.

`grading` starts it and may end it at any time, so what happened is written down line by line, as
JSON lists: `["cell", 3]` when a cell begins, `["check", "1.2", "yes"]` after a check that ends
otherwise than the last one of its exercise, `["error", 3, "NameError: ..."]` if a cell raised an
exception, and `["end"]`. The answers to checks are the student's own: whoever wants to cheat here
can.
"""

import json
import logging
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from dpbandit.experiments.labs.checks import Outcome, listeners

_MAX_LETTERS = 200  # of an exception, which may have any text


def code_cells(notebook: Path) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return a notebook's metadata and its code cells; parts that a valid one has may be missing.

    A byte order mark at the beginning, which some editors write, is no part of the notebook.
    """
    made = json.loads(notebook.read_text(encoding="utf-8-sig"))
    for part in (made, *made.get("cells", ())):
        part.setdefault("metadata", {})
    logging.getLogger("traitlets").setLevel(logging.CRITICAL)  # it prints what is not valid
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of notebooks in an older format
        read = import_module("nbformat").reads(json.dumps(made), as_version=4)
    return read.metadata, [cell for cell in read.cells if cell.get("cell_type") == "code"]


def text_of(part: Any, name: str) -> str:
    """Return a text of a cell or an output, which may be a list of lines, or missing."""
    text = part.get(name, "")
    return text if isinstance(text, str) else "".join(map(str, text))


def described(error: BaseException) -> str:
    """Return an exception in one line of at most 200 letters."""
    try:
        text = f"{type(error).__name__}: {error}"
    except Exception:  # its own method for that may be wrong, too
        text = type(error).__name__
    return " ".join(text.split())[:_MAX_LETTERS]


def shell() -> Any:
    """Return an IPython without a screen, for which `%matplotlib inline` changes nothing."""
    base = import_module("IPython.core.interactiveshell").InteractiveShell
    kind: Any = type("Shell", (base,), {"enable_gui": lambda self, gui=None: None})
    made = kind.instance()
    made.history_manager.enabled = False
    return made


def main(notebook: Path, outcomes: Path) -> None:
    """Run all code cells, as Jupyter does: an exception ends its cell, and the next one begins."""
    _, cells = code_cells(notebook)
    last: dict[str, str] = {}
    with outcomes.open("a", encoding="utf-8", buffering=1) as lines:

        def tell(*facts: Any) -> None:
            lines.write(json.dumps(facts) + "\n")

        def listen(outcome: Outcome) -> None:
            if last.get(outcome.exercise) != outcome.right:  # a loop may check for ever
                last[outcome.exercise] = outcome.right
                tell("check", outcome.exercise, outcome.right)

        listeners[:] = [listen]
        run_cell = shell().run_cell
        for place, cell in enumerate(cells, 1):
            tell("cell", place)
            result = run_cell(text_of(cell, "source"))
            error = result.error_before_exec or result.error_in_exec
            if error is not None:
                tell("error", place, described(error))
        tell("end")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
