"""Grade the notebooks that students hand in: a folder with a notebook for each of them.

A notebook may lie in a folder of its own; its student is its path without the ending.
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
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from dpbandit.base import InputError, not_installed, short_path
from dpbandit.experiments.labs.checks import NO, WORDS, YES, checks_of
from dpbandit.experiments.labs.execution import code_cells, text_of

GRADE_COLUMNS = ("student", "exercise", "right", "tries")
_CHECK = re.compile(r"""\bcheck\(\s*["'](\d+)\.\d+["']""")  # a call in a cell; its lab
_TRIES = re.compile(r"(?m)^(\d+\.\d+): .*\((\d{1,9}) (?:try|tries)\)$")  # a check's output
_MAX_OUTCOMES = 10_000_000  # letters that are read of what a process wrote


class Submission(NamedTuple):
    """A notebook that was handed in; `lab` is 0 and `trouble` says why if it cannot be read."""

    path: Path
    student: str
    lab: int
    tries: Mapping[str, int]
    trouble: str = ""


class Graded(NamedTuple):
    """Grades of a student: for each exercise yes, no or words; and a sentence on each trouble."""

    submission: Submission
    right: Mapping[str, str]
    troubles: Sequence[str]

    def rows(self) -> Iterator[tuple[str, str, str, int | str]]:
        """Yield a row of `GRADE_COLUMNS` for each exercise."""
        for exercise, right in self.right.items():
            yield self.submission.student, exercise, right, self.submission.tries.get(exercise, "")


def submissions(folder: Path) -> tuple[list[Submission], list[str]]:
    """Return the notebooks of a folder and of those in it, sorted, and the names of other files.

    Copies that Jupyter keeps, and hidden files, are left out. Raises `InputError` if there is none.
    """
    if find_spec("IPython") is None or find_spec("nbformat") is None:
        raise not_installed("ipykernel", "what runs cells", "labs")
    if not folder.is_dir():
        raise InputError(f"Expected a folder of notebooks, got {short_path(folder)}.")
    found = sorted(path.relative_to(folder) for path in folder.rglob("*"))
    found = [path for path in found if not any(part.startswith(".") for part in path.parts)]
    names = [path for path in found if is_notebook(folder / path)]
    if not names:
        raise InputError(
            f"Expected notebooks in {short_path(folder)}, one for each student: NAME.ipynb."
        )
    others = [path for path in found if path not in names and not (folder / path).is_dir()]
    return [_read(folder, path) for path in names], [printable(str(path)) for path in others]


def is_notebook(path: Path) -> bool:
    """Return whether a path is a file that ends as notebooks do."""
    return path.suffix.lower() == ".ipynb" and path.is_file()


def printable(text: str) -> str:
    """Return a text of a student for a screen and a table, whatever letters it has."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)


def _read(folder: Path, name: Path) -> Submission:
    """Return a submission; its lab is told by the notebook's metadata, or else by its checks."""
    path, student = folder / name, printable(name.with_suffix("").as_posix())
    try:
        metadata, cells = code_cells(path)
        known = metadata.get("dpbandit")
        lab = known.get("lab") if isinstance(known, dict) else None
        if not isinstance(lab, int):
            calls = Counter(n for cell in cells for n in _CHECK.findall(text_of(cell, "source")))
            lab = int(max(calls, key=lambda number: calls[number], default=0))
        outputs = [output for cell in cells for output in cell.get("outputs", ())]
        counts = [pair for output in outputs for pair in _TRIES.findall(text_of(output, "text"))]
        tries = {exercise: int(count) for exercise, count in counts}
    except Exception as error:  # a file may hold anything
        why = f"it cannot be read as a notebook ({type(error).__name__})."
        return Submission(path, student, 0, {}, why)
    return Submission(path, student, lab, tries)


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
        text = _written(Path(place, "outcomes"))
    events = [*_events(text)]
    checked = {name: verdict for kind, name, verdict in events if kind == "check"}
    right |= {name: checked[name] for name in right if checked.get(name) in (YES, WORDS)}
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


def _written(outcomes: Path) -> str:
    """Return what the process wrote; a student's code may have put anything else in its place."""
    if not outcomes.is_file():
        return ""
    with outcomes.open(encoding="utf-8", errors="replace") as lines:
        return lines.read(_MAX_OUTCOMES)


def _events(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield what the process wrote, three entries each; a student's code may write there, too."""
    for line in text.splitlines():
        with suppress(ValueError):
            event = json.loads(line)
            if isinstance(event, list) and all(isinstance(fact, str | int) for fact in event):
                kind, first, second, *_ = [*(printable(str(fact)) for fact in event), "", "", ""]
                yield kind, first, second


def _troubles(
    events: Sequence[tuple[str, str, str]], code: int | None, seconds: float, checked: bool
) -> Iterator[str]:
    """Yield a sentence for each thing that went wrong in a run."""
    kinds = [kind for kind, *_ in events]
    cell = next((place for kind, place, _ in reversed(events) if kind == "cell"), "0")
    errors = [(place, text) for kind, place, text in events if kind == "error"]
    if errors:
        place, text = errors[0]
        cells = "a cell" if len(errors) == 1 else f"{len(errors)} cells"
        first = "" if len(errors) == 1 else "first "
        yield f"{cells} raised an exception, {first}code cell {place}: {text.rstrip('.')}."
    if code is None:
        yield f"it was stopped after {seconds:g} s, in code cell {cell}."
    elif "end" not in kinds:
        yield f"its process ended in code cell {cell}, with exit code {code}."
    if not checked:
        yield "no check was run."
