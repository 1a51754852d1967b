"""Teaching labs: numbered notebooks with exercises, stored as text. See README.md."""

import re
from dataclasses import dataclass
from importlib import import_module
from os.path import exists
from pathlib import Path
from typing import Any

from dpbandit.base import InputError, not_installed, write_atomically
from dpbandit.experiments.labs import checks
from dpbandit.experiments.labs.checks import check
from dpbandit.experiments.labs.drawing import against, curves, sliders
from dpbandit.experiments.labs.ends import at_end, plus_minus
from dpbandit.experiments.labs.progress import count

__all__ = [
    "FOLDER",
    "Lab",
    "against",
    "at_end",
    "check",
    "curves",
    "estimated_minutes",
    "find",
    "labs",
    "notebook",
    "plus_minus",
    "sliders",
    "write",
    "write_or_keep",
]
checks.listeners.append(count)

FOLDER = Path(__file__).resolve().parent / "notebooks"  # of all labs
_NAME = re.compile(r"lab_(\d\d)_\w+")  # of a lab's file


@dataclass(frozen=True)
class Lab:
    """A lab: a jupytext file in the py:percent format, `notebooks/lab_NN_subject.py`.

    Its first cell is text: the heading `# Lab N: title`, then paragraphs that begin with
    **Goal.** and **You need.** (earlier labs). The notebook states the minutes between them.
    """

    path: Path

    @property
    def number(self) -> int:
        """Number of the lab, from the name of its file."""
        return int(self.path.stem.split("_")[1])

    @property
    def title(self) -> str:
        """Title of the lab, from its heading."""
        return self._found(rf"# Lab {self.number}: (.+)")

    @property
    def goal(self) -> str:
        """Skills that the lab teaches, a sentence or two."""
        return self._found(r"\*\*Goal\.\*\* (.+)")

    @property
    def minutes(self) -> int:
        """Estimated working time in minutes, see `estimated_minutes`."""
        return estimated_minutes(self.text)

    @property
    def needs(self) -> str:
        """Earlier labs and knowledge that the lab requires."""
        return self._found(r"\*\*You need\.\*\* (.+)")

    @property
    def text(self) -> str:
        """Text of the file."""
        return self.path.read_text(encoding="utf-8")

    def _found(self, pattern: str) -> str:
        """Return the first match of a pattern among the paragraphs of the first notebook cell."""
        _, _, after = self.text.partition("# %% [markdown]\n")
        first = after.partition("\n# %%")[0]
        lines = [line.removeprefix("#").strip() for line in first.splitlines()]
        for paragraph in re.split(r"\n\n+", "\n".join(lines)):
            if match := re.match(pattern, paragraph.replace("\n", " ")):
                return match[1]
        raise InputError(f"Expected the first cell of {self.path.name} to have {pattern!r}.")


_WORDS_PER_MINUTE, _LINES_PER_MINUTE, _MINUTES_PER_EXERCISE = 120, 6, 5  # a guess, not measured
_CELL = re.compile(r"(?m)^# %%(?: (\[markdown\]))?(?: tags=\[(.*)\])?$")  # head of a cell


def estimated_minutes(text: str) -> int:
    r"""Estimate the working time of a lab from words to read, lines of code and exercises.

    Hints, checks and solutions do not count. The estimate is a multiple of 5 minutes.

    >>> estimated_minutes("# %% [markdown]\n# **Exercise 1.1.** Add it up.\n\n# %%\nx = 1\n" * 2)
    10
    """
    minutes, parts = 0.0, _CELL.split(text)[1:]
    for markdown, tags, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if any(f'"{tag}"' in (tags or "") for tag in _SUMMARIES):
            continue
        lines = [line for line in body.splitlines() if line.strip("# ")]
        if markdown:
            minutes += sum(len(line.split()) - 1 for line in lines) / _WORDS_PER_MINUTE
            minutes += _MINUTES_PER_EXERCISE * body.count("**Exercise ")
        else:
            minutes += len(lines) / _LINES_PER_MINUTE
    return 5 * max(1, round(minutes / 5))


def labs() -> tuple[Lab, ...]:
    """Return all labs, sorted by number."""
    return tuple(Lab(p) for p in sorted(FOLDER.glob("lab_*.py")) if _NAME.fullmatch(p.stem))


def find(number: int) -> Lab:
    """Return the lab with this number.

    >>> find(1).title
    'Bandits and regret'
    """
    known = {lab.number: lab for lab in labs()}
    if number not in known:
        raise InputError(f"Expected lab {number!r} to be one of {', '.join(map(str, known))}.")
    return known[number]


_TIME = "**Time.** About {} minutes, an estimate from words, lines of code and exercises.\n\n"
_CHECKED = (
    "\n\nThe check below an exercise says whether your result is right, or gives a hint. It counts "
    "your tries in `lab_progress.csv` beside this notebook, if that file is there. Checks and "
    "solutions are in the installed package: out of sight, not secret."
)
_HINT = "\n\nSolutions are folded: click the three dots, or the triangle, below an exercise."
_FOLDED = {"jupyter": {"source_hidden": True, "outputs_hidden": True}}  # metadata of folded code
_DETAILS = "<details>\n<summary>{}</summary>\n\n{}\n\n</details>"  # folded text
_SUMMARIES = {"hint": "Hint", "check": "Check yourself", "solution": "Solution"}  # by tag


def notebook(lab: Lab, *, solutions: bool = True) -> Any:
    """Return the lab as an `nbformat` notebook without outputs, deterministically.

    1. Before each sequence of cells tagged `solution` comes an empty code cell, for an attempt.
    2. Solutions are folded (code by `source_hidden` (JupyterLab) and the tag `hide-cell` (myst-nb),
       text by an HTML `details` element) or, without `solutions`, left out.
    3. Text and code tagged `hint` or `check` are folded and never left out.
    4. Cells have numbers in place of random ids, and the first one states the lab's minutes.

    Raises `InputError` if jupytext is not installed.
    """
    try:
        jupytext = import_module("jupytext")
    except ImportError:
        raise not_installed("jupytext", "notebooks", "labs") from None
    made = jupytext.reads(lab.text, fmt="py:percent")
    made.metadata.pop("jupytext", None)
    before, need, after = made.cells[0].source.partition("**You need.**")
    made.cells[0].source = before + _TIME.format(lab.minutes) + need + after
    made.metadata["dpbandit"] = {"lab": lab.number}  # for `dpbandit lab grade`
    made.cells[0].source += _CHECKED + (_HINT if solutions else "")
    cells: list[Any] = []
    solving, exercise = False, ""
    for cell in made.cells:
        begun, solving = solving, _tagged(cell, "solution")
        headings = re.findall(r"\*\*Exercise (\d+\.\d+)\.\*\*", cell.source)
        exercise = headings[-1] if headings else exercise
        if solving and not begun:
            cells.append(_own_attempt(exercise))
        if solutions or not solving:
            cells.append(_folded(cell))
    for place, cell in enumerate(cells):
        cell["id"] = f"lab-{lab.number}-{place}"
    made.cells = cells
    return made


def write_or_keep(
    lab: Lab, folder: Path, *, solutions: bool = True, overwrite: bool = False
) -> tuple[Path, str]:
    """Write the notebook unless its file exists; return the path, and a sentence on the outcome."""
    target = folder / f"{lab.path.stem}.ipynb"
    if exists(target) and not overwrite:
        return target, f"{target} is there already and stays as it is (--overwrite starts afresh)."
    write(lab, folder, solutions=solutions, overwrite=overwrite)
    return target, f"Written to {target}."


def write(lab: Lab, folder: Path, *, solutions: bool = True, overwrite: bool = False) -> Path:
    """Write the notebook; an existing file may hold a student's work and is not replaced.

    Raises `InputError` if the file exists, unless `overwrite`.
    """
    target = folder / f"{lab.path.stem}.ipynb"
    if exists(target) and not overwrite:
        raise InputError(
            f"Expected no file {target} yet: move it away, or overwrite it on purpose."
        )
    made = notebook(lab, solutions=solutions)
    text: str = import_module("nbformat").writes(made)
    return write_atomically(target, lambda path: path.write_text(text + "\n", encoding="utf-8"))


def _own_attempt(exercise: str) -> Any:
    """Return a cell for the student's attempt: every answer is `...` until it has a value."""
    new = import_module("nbformat").v4
    known = checks.checks_of(exercise.partition(".")[0])
    if isinstance(known.get(exercise), str):
        return new.new_markdown_cell("*your own answer, in words*\n")
    names = checks.answer_names(exercise) if exercise in known else ()
    return new.new_code_cell("\n".join(["# your own attempt", *(f"{n} = ..." for n in names), ""]))


def _tagged(cell: Any, tag: str) -> bool:
    return tag in cell.metadata.get("tags", [])


def _folded(cell: Any) -> Any:
    if cell.cell_type == "markdown":
        for tag, summary in _SUMMARIES.items():
            if _tagged(cell, tag):
                cell.source = _DETAILS.format(summary, cell.source)
    elif _tagged(cell, "solution"):
        cell.source = f"# solution\n{cell.source}"  # JupyterLab shows the first line of a fold
        cell.metadata.update(_FOLDED)
        cell.metadata["tags"] = [*cell.metadata["tags"], "hide-cell"]
    return cell
