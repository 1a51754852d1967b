"""Run one student's notebook, in a process of its own: `python -m ... NOTEBOOK OUTCOMES`.

`grading` starts it and may end it at any time, so what happened is written down line by line, as
JSON lists: `["cell", 3]` when a cell begins, `["check", "1.2", "yes"]` after a check, `["error", 3,
"NameError: ..."]` if a cell raised an exception, and `["end"]`. The answers to checks are
the student's own: whoever wants to cheat here can.
"""

import json
import sys
import warnings
from importlib import import_module
from pathlib import Path
from typing import Any

from dpbandit.experiments.labs.checks import Outcome, listeners

_MAX_LETTERS = 200  # of an exception, which may have any text


def main(notebook: Path, outcomes: Path) -> None:
    """Run all code cells, as Jupyter does: an exception ends its cell, and the next one begins."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of notebooks in an older format
        read = import_module("nbformat").read(notebook, as_version=4)
    sources = [cell.source for cell in read.cells if cell.cell_type == "code"]
    shell: Any = import_module("IPython.core.interactiveshell").InteractiveShell.instance()
    shell.history_manager.enabled = False
    with outcomes.open("a", encoding="utf-8", buffering=1) as lines:

        def tell(*facts: Any) -> None:
            lines.write(json.dumps(facts) + "\n")

        def listen(outcome: Outcome) -> None:
            tell("check", outcome.exercise, outcome.right)

        listeners[:] = [listen]
        for place, source in enumerate(sources, 1):
            tell("cell", place)
            result = shell.run_cell(source)
            error = result.error_before_exec or result.error_in_exec
            if error is not None:
                text = " ".join(f"{type(error).__name__}: {error}".split())
                tell("error", place, text[:_MAX_LETTERS])
        tell("end")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
