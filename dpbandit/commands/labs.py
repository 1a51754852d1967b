"""`dpbandit lab`: list and open the teaching labs, show a student's sheet, and grade a class."""

import csv
import signal
import subprocess
import sys
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from dpbandit.base import check_writable, installed_by, positive, short_path, write_atomically
from dpbandit.base.tables import Table
from dpbandit.commands.options import say, screen
from dpbandit.commands.usage import Once
from dpbandit.experiments.labs import find, labs, write_or_keep
from dpbandit.experiments.labs.checks import WORDS, YES, checks_of
from dpbandit.experiments.labs.grading import GRADE_COLUMNS, Graded, grade, lab_of, submissions
from dpbandit.experiments.labs.progress import Mark, begin, marks

app = typer.Typer(
    add_completion=False, help="List the teaching labs, write one as a notebook, or grade a class."
)


@app.callback(invoke_without_command=True)
def _alone(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        show()
        screen().print("`dpbandit lab open 1` writes the first as a notebook.", highlight=False)


@app.command("list", cls=Once)
def show() -> None:
    """List the labs: number, title, minutes, and what you can do afterwards.

    Example: `dpbandit lab list`
    """
    table = Table("lab", "title", "minutes", "goal", box=None, pad_edge=False)
    for lab in labs():
        table.add_row(str(lab.number), lab.title, str(lab.minutes), lab.goal)
    screen().print(table)


@app.command("open", cls=Once)
def start(
    number: Annotated[int, typer.Argument(help="Number of the lab, see `dpbandit lab list`.")],
    out: Annotated[Path, typer.Option(help="Folder for the notebook.")] = Path("."),
    solutions: Annotated[
        bool, typer.Option(help="Include solutions, folded below the exercises.")
    ] = True,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace a notebook that is already there.")
    ] = False,
    browser: Annotated[bool, typer.Option(help="Let JupyterLab open a browser.")] = True,
    jupyter: Annotated[bool, typer.Option(help="Start JupyterLab after writing the file.")] = True,
) -> None:
    """Write lab NUMBER as a notebook and open it in JupyterLab.

    If the notebook already exists, with your work in it, it is opened unchanged. Checks count your
    tries in lab_progress.csv beside it, which `dpbandit lab progress` shows.

    Example: `dpbandit lab open 1 --out labs`
    """
    target, sentence = write_or_keep(find(number), out, solutions=solutions, overwrite=overwrite)
    begin(out)
    print(sentence)
    if jupyter and find_spec("jupyterlab") is None:
        print(f"JupyterLab is not installed. To have it: {installed_by('labs')}")
    elif jupyter:
        options = [] if browser else ["--no-browser"]
        server = subprocess.Popen([sys.executable, "-m", "jupyterlab", str(target), *options])
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for JupyterLab, which asks back
        server.wait()


@app.command("progress", cls=Once)
def progress(
    folder: Annotated[Path, typer.Argument(help="Folder of the notebooks.")] = Path("."),
) -> None:
    """Show which exercises are right so far, and after how many tries.

    Checks in notebooks count in lab_progress.csv of their folder, until the first right answer.

    Example: `dpbandit lab progress labs`
    """
    found = marks(folder)
    table = Table("exercise", "right", "tries", box=None, pad_edge=False)
    sums = []
    for lab in labs():
        exercises = checks_of(lab.number)
        if found.keys().isdisjoint(exercises):
            continue
        rows = {name: found.get(name, Mark("", 0)) for name in exercises}
        for name, (right, tries) in rows.items():
            table.add_row(name, right or "not tried", str(tries or ""))
        sums.append(f"lab {lab.number}: {_score([right for right, _ in rows.values()])}")
    if not sums:
        sums = ["Nothing was checked yet: run the check below an exercise."]
    else:
        screen().print(table)
    for line in sums:
        print(line)


@app.command("grade", cls=Once)
def grade_class(
    folder: Annotated[Path, typer.Argument(help="Folder of notebooks, NAME.ipynb of a student.")],
    out: Annotated[Path, typer.Option(help="CSV file: student, exercise, right, tries.")],
    lab: Annotated[
        int | None, typer.Option(help="Number of the lab; else the one of most notebooks.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="Time limit of each notebook.")] = 300.0,
) -> None:
    """Grade the notebooks of a class. This runs the students' code, with all your rights.

    Every notebook is run from the beginning, in a process of its own. Right is yes, no, or words
    for answers that a person has to read. Solutions are in the package: this does not find cheats.

    Example: `dpbandit lab grade handed_in --out grades.csv`
    """
    positive("--seconds", seconds)
    check_writable(out)
    handed_in, others = submissions(folder)
    number = lab_of(handed_in) if lab is None else find(lab).number
    print(
        f"Grading lab {number}. This runs the code of {len(handed_in)} students, with all your "
        f"rights, for at most {seconds:g} s each.",
        flush=True,
    )
    if others := [name for name in others if (folder / name).resolve() != out.resolve()]:
        more = f" and {len(others) - 5} more" if len(others) > 5 else ""
        print(f"No notebooks, and not graded: {', '.join(others[:5])}{more}.", flush=True)
    grades: list[Graded] = []
    for place, submission in enumerate(handed_in, 1):
        graded = grade(submission, number, seconds=seconds)
        score = _score([*graded.right.values()])
        print(f"{place} of {len(handed_in)}, {submission.student}: {score}", flush=True)
        for trouble in graded.troubles:
            print(f"    {submission.student}: {trouble}", flush=True)
        grades.append(graded)
        write_atomically(out, partial(_fill, grades))  # what is graded survives an interruption
    say(f"Written to {short_path(out)}.")


def _fill(grades: Sequence[Graded], path: Path) -> None:
    """Write the rows of grades."""
    with path.open("w", newline="", encoding="utf-8") as lines:
        rows = [GRADE_COLUMNS, *(row for graded in grades for row in graded.rows())]
        csv.writer(lines, lineterminator="\n").writerows(rows)


def _score(found: list[str]) -> str:
    """Return in words how many exercises are right, of those that a program can check."""
    words = found.count(WORDS)
    read = f", and {words} in words" if words else ""
    return f"{found.count(YES)} of {len(found) - words} right{read}."
