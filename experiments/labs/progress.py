"""A student's sheet: `lab_progress.csv` beside the notebooks, a row for each exercise.

`dpbandit lab open` writes an empty sheet. Checks count in it if it lies in the folder in which they
run, which for a notebook is the notebook's; without the file nothing is counted. It is plain text,
and whoever wants to begin again deletes its rows.
"""

import csv
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from dpbandit.base import InputError, in_one_sentence, short_path, write_atomically
from dpbandit.experiments.labs.checks import NO, WORDS, YES, Outcome

SHEET = "lab_progress.csv"  # name of the file
_COLUMNS = ("exercise", "right", "tries")


class Mark(NamedTuple):
    """Result of an exercise: `right` is yes, no or words; `tries` counts to the first yes."""

    right: str
    tries: int


def begin(folder: Path) -> None:
    """Write an empty sheet into a folder that has none."""
    if not (folder / SHEET).exists():
        _write(folder, {})


def marks(folder: Path) -> dict[str, Mark]:
    """Return the marks of a folder's sheet, in the order of its rows."""
    path = folder / SHEET
    if not path.is_file():
        raise InputError(
            f"Expected {short_path(path)}, in which checks of notebooks beside it count: "
            "`dpbandit lab open` writes it."
        )
    with in_one_sentence("read", path), path.open(newline="", encoding="utf-8") as lines:
        rows = [*csv.reader(lines)]
        if not rows or tuple(rows[0]) != _COLUMNS:
            raise ValueError(f"its first line is not {','.join(_COLUMNS)}")
        found = {}
        for row in rows[1:]:
            if len(row) != len(_COLUMNS) or not row[2].isdecimal():
                raise ValueError(f"no exercise, right and tries in {','.join(row)[:60]!r}")
            found[row[0]] = Mark(row[1], int(row[2]))
        return found


def count(outcome: Outcome) -> str | None:
    """Count the outcome of a check in the sheet of the current folder, and return its tries."""
    folder = Path()
    if not outcome.right or not (folder / SHEET).is_file():
        return None
    try:
        found = marks(folder)
        before = found.get(outcome.exercise, Mark(NO, 0))
        if before.right != YES:
            tries = before.tries + (outcome.right != WORDS)
            found[outcome.exercise] = before = Mark(outcome.right, tries)
            _write(folder, found)
    except InputError as error:
        return f"(Not counted. {error})"
    if outcome.right == WORDS:
        return None
    return f"({before.tries} {'try' if before.tries == 1 else 'tries'})"


def _write(folder: Path, found: Mapping[str, Mark]) -> None:
    rows: Iterable[Iterable[object]] = [_COLUMNS, *((name, *found[name]) for name in found)]

    def fill(path: Path) -> None:
        with path.open("w", newline="", encoding="utf-8") as lines:
            csv.writer(lines, lineterminator="\n").writerows(rows)

    write_atomically(folder / SHEET, fill)
