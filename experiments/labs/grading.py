"""Grade the notebooks that students hand in: a folder with a notebook for each of them.

Every notebook is run from the beginning, in a process of its own (`execution`), with a time limit.
An exercise is right if the last check of it was passed; what goes wrong in a notebook is said in a
sentence, and does not end the grading. The number of tries is what the handed-in notebook shows in
the outputs of its checks, and unknown if the student cleared them, or had no sheet.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit.base import InputError, not_installed, short_path
from dpbandit.experiments.labs.checks import NO, checks_of

GRADE_COLUMNS = ("student", "exercise", "right", "tries")
_CHECK = re.compile(r"""\bcheck\(\s*["'](\d+)\.\d+["']""")  # a call in a cell; its lab
_TRIES = re.compile(r"(?m)^(\d+\.\d+): .*\((\d+) (?:try|tries)\)$")  # a check's output


class Submission(NamedTuple):
    """A notebook that was handed in; `lab` is 0 and `trouble` says why if it cannot be read."""

    path: Path
    lab: int
    tries: Mapping[str, int]
    trouble: str = ""

    @property
    def student(self) -> str:
        """Name of the student, which is the name of the file."""
        return self.path.stem


class Graded(NamedTuple):
    """Grades of a student: for each exercise yes, no or words; and a sentence on each trouble."""

    submission: Submission
    right: Mapping[str, str]
    troubles: Sequence[str]

    def rows(self) -> Iterator[tuple[str, str, str, int | str]]:
        """Yield a row of `GRADE_COLUMNS` for each exercise."""
        for exercise, right in self.right.items():
            yield self.submission.student, exercise, right, self.submission.tries.get(exercise, "")


def submissions(folder: Path) -> list[Submission]:
    """Return the notebooks of a folder, sorted by student; raise `InputError` if there is none."""
    if find_spec("IPython") is None or find_spec("nbformat") is None:
        raise not_installed("ipykernel", "what runs cells", "labs")
    if not folder.is_dir():
        raise InputError(f"Expected a folder of notebooks, got {short_path(folder)}.")
    paths = sorted(path for path in folder.glob("*.ipynb") if path.is_file())
    if not paths:
        raise InputError(
            f"Expected notebooks in {short_path(folder)}, one for each student: NAME.ipynb."
        )
    return [_read(path) for path in paths]


def _read(path: Path) -> Submission:
    """Return a submission; its lab is told by the notebook's metadata, or else by its checks."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of older formats
            made = import_module("nbformat").read(path, as_version=4)
        code = [cell for cell in made.cells if cell.cell_type == "code"]
        named = [lab for cell in code for lab in _CHECK.findall(cell.source)]
        known = made.metadata.get("dpbandit", {}).get("lab")
        lab = int(known or (Counter(named).most_common(1) or [(0, 0)])[0][0])
        printed = "\n".join(_text(output) for cell in code for output in cell.get("outputs", ()))
        return Submission(path, lab, {name: int(n) for name, n in _TRIES.findall(printed)})
    except Exception as error:  # a file may hold anything
        return Submission(path, 0, {}, f"it cannot be read as a notebook ({type(error).__name__}).")


def _text(output: Any) -> str:
    """Return what a cell printed."""
    text = output.get("text", "")
    return text if isinstance(text, str) else "".join(text)


def lab_of(handed_in: Sequence[Submission]) -> int:
    """Return the lab that most notebooks are of."""
    found = Counter(submission.lab for submission in handed_in if checks_of(submission.lab))
    if not found:
        raise InputError("Expected notebooks with checks of a lab; if they are, name it by --lab.")
    return max(found, key=lambda lab: (found[lab], -lab))


def grade(submission: Submission, lab: int, *, seconds: float) -> Graded:
    """Run a notebook for so many seconds at most, and return its grades for the exercises of a lab.

    This runs the student's code with all rights of whoever calls it.
    """
    right = dict.fromkeys(checks_of(lab), NO)
    if submission.trouble:
        return Graded(submission, right, [submission.trouble])
    if submission.lab not in (0, lab):
        return Graded(submission, right, [f"it is a notebook of lab {submission.lab}."])
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        code = _run(submission.path.resolve(), Path(place), seconds)
        outcomes = Path(place, "outcomes")
        text = outcomes.read_text(encoding="utf-8", errors="replace") if outcomes.exists() else ""
    events = [*_events(text)]
    checked = {name: verdict for kind, name, verdict in events if kind == "check"}
    right |= {name: checked[name] or NO for name in right if name in checked}
    return Graded(submission, right, [*_troubles(events, code, seconds, bool(checked))])


def _run(notebook: Path, place: Path, seconds: float) -> int | None:
    """Run a notebook in a folder; return the exit code, or None if its time ended first."""
    words = [sys.executable, "-m", "dpbandit.experiments.labs.execution"]
    (place / "files").mkdir()
    settings = {"MPLBACKEND": "Agg", "PYTHONHASHSEED": "0", "IPYTHONDIR": str(place / "ipython")}
    found = os.pathsep.join(os.path.abspath(path) for path in sys.path)
    child = subprocess.Popen(
        [*words, str(notebook), str(place / "outcomes")],
        cwd=place / "files",
        env={**os.environ, **settings, "PYTHONPATH": found},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # so that what it started ends with it
    )
    try:
        return child.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with suppress(OSError):
            os.killpg(child.pid, signal.SIGKILL) if hasattr(os, "killpg") else child.kill()
        child.wait()


def _events(text: str) -> Iterator[tuple[Any, Any, Any]]:
    """Yield what the process wrote, three entries each; a student's code may write there, too."""
    for line in text.splitlines():
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, list) and all(isinstance(fact, str | int) for fact in event):
                kind, first, second, *_ = [*event, "", "", ""]
                yield kind, first, second


def _troubles(
    events: Sequence[tuple[Any, Any, Any]], code: int | None, seconds: float, checked: bool
) -> Iterator[str]:
    """Yield a sentence for each thing that went wrong in a run."""
    kinds = [kind for kind, *_ in events]
    cell = next((place for kind, place, _ in reversed(events) if kind == "cell"), 0)
    errors = [(place, text) for kind, place, text in events if kind == "error"]
    if errors:
        place, text = errors[0]
        cells = "a cell" if len(errors) == 1 else f"{len(errors)} cells"
        yield f"{cells} raised an exception, code cell {place}: {text.rstrip('.')}."
    if code is None:
        yield f"it was stopped after {seconds:g} s, in code cell {cell}."
    elif "end" not in kinds:
        yield f"its process ended in code cell {cell}, with exit code {code}."
    if not checked:
        yield "no check was run."
