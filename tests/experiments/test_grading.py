"""A student's sheet, and a class whose notebooks go wrong in every way."""

import csv
import json
import os

import nbformat
import pytest

from dpbandit.experiments.labs import check, find, grading, progress, write
from dpbandit.experiments.labs.checks import checks_of
from tests.each import refused

GOOD = {
    "13.1": "import numpy as np\ndef any_click(a): return 1 - np.prod(1 - np.asarray(a))",
    "13.2": "bound = lambda g: (2 + 2 * g**2) ** 0.5",
    "13.3": "more = 10**0.5",
    "13.4": "real_mu, real_epsilon = 2 / bound(0.5), 1.29",
}
CALLS = {
    "13.1": "check('13.1', any_click)",
    "13.2": "check('13.2', bound)",
    "13.3": "check('13.3', more)",
    "13.4": "check('13.4', real_mu, real_epsilon)",
}


UNSAYABLE = "class Why(Exception):\n    def __str__(self): 1 / 0\nraise Why"


def test_a_sheet_counts_tries_until_an_answer_is_right(run, tmp_path, monkeypatch, capsys):
    """Only where the sheet lies, and no answers that are not there."""

    def said(*call):
        check(*call)
        return capsys.readouterr().out.rstrip("\n")

    monkeypatch.chdir(tmp_path)
    refused("Expected .*lab_progress.csv, in which", progress.marks, tmp_path)
    assert said("13.3", 4).endswith("that of the other.")
    assert [*tmp_path.iterdir()] == []
    progress.begin(tmp_path)
    assert "Nothing was checked yet" in run("lab", "progress", tmp_path)[1]
    assert said("13.3", ...).endswith("above.")
    assert said("13.3", 4).endswith("that of the other. (1 try)")
    assert said("13.3", 10**0.5) == "13.3: right. (2 tries)"
    assert said("13.3", 4).endswith("(2 tries)")
    check("4.3")
    progress.begin(tmp_path)
    assert progress.marks(tmp_path) == {"13.3": ("yes", 2), "4.3": ("words", 0)}
    code, shown, _ = run("lab", "progress", tmp_path)
    lines = [line.split() for line in shown.splitlines()]
    assert code == 0
    assert ["13.3", "yes", "2"] in lines
    assert ["13.1", "not", "tried"] in lines
    assert "lab 13: 1 of 6 right." in shown
    assert "lab 4: 0 of 4 right, and 1 in words." in shown
    for wrong in (
        "",
        "a,b\n",
        "exercise,right,tries\n13.3,yes\n",
        "exercise,right,tries\n1,yes,-\n",
    ):
        (tmp_path / progress.SHEET).write_text(wrong)
        refused("Cannot read .*lab_progress.csv", progress.marks, tmp_path)
        assert said("13.3", 10**0.5).startswith("13.3: right. (Not counted. Cannot read ")


def hand_in(folder, student, *cells, **metadata):
    """Write a notebook with these cells, of which each may be its source or an exercise."""
    made = nbformat.v4.new_notebook(metadata=metadata)
    sources = [f"{GOOD[cell]}\n{CALLS[cell]}" if cell in GOOD else cell for cell in cells]
    made.cells = [nbformat.v4.new_code_cell(source) for source in sources]
    nbformat.write(made, folder / f"{student}.ipynb")
    return made


def test_every_notebook_is_found_and_read(tmp_path):
    """In folders, with other endings, names that no screen shows, and parts that are missing or
    wrong; copies of Jupyter are none, and a file that is no notebook is named."""
    cell = {"cell_type": "code", "source": ["check('13.3', more)\n", "more"]}
    counted = {"output_type": "stream", "text": ["13.3: right. (2 tries)\n"]}
    made = {
        "bare": {"cells": [cell], "nbformat": 4, "nbformat_minor": 5},
        "odd": {"metadata": {"dpbandit": "x"}, "cells": [cell | {"outputs": [counted]}]},
        "lab": {"metadata": {"dpbandit": {"lab": 13}}, "cells": [], "nbformat": 4},
        "broken": {"metadata": [], "cells": [3]},
    }
    (tmp_path / ".ipynb_checkpoints").mkdir()
    (tmp_path / ".ipynb_checkpoints" / "copy.ipynb").write_text("{}")
    (tmp_path / "essay.txt").touch()
    (tmp_path / "gone.ipynb").symlink_to("nowhere")
    for path, kind in {
        "anna/lab.ipynb": "bare",
        "bo/lab.ipynb": "lab",
        "cy.IPYNB": "odd",
        os.fsdecode(b"d\xff\n\x1b[2J.ipynb"): "lab",
        "eve.ipynb": "broken",
    }.items():
        text = json.dumps({"nbformat": 4, "nbformat_minor": 2} | made[kind])
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text("\N{BYTE ORDER MARK}" * (kind == "bare") + text, "utf-8")
    found, others = grading.submissions(tmp_path)
    assert others == ["essay.txt", "gone.ipynb"]
    assert {one.student: (one.lab, dict(one.tries)) for one in found} == {
        "anna/lab": (13, {}),
        "bo/lab": (13, {}),
        "cy": (13, {"13.3": 2}),
        "d???[2J": (13, {}),
        "eve": (0, {}),
    }
    assert [one.trouble for one in found if one.trouble] == [
        "it cannot be read as a notebook (AttributeError)."
    ]


@pytest.mark.slow
def test_a_class_is_graded_whatever_is_handed_in(run, tmp_path):
    """Each notebook goes wrong in its own way, is told in a sentence, and ends nothing else; what
    was right before counts; and the same notebooks have the same grades again."""
    start, lab = "from dpbandit.experiments.labs import check", {"dpbandit": {"lab": 13}}
    folder = tmp_path / "class"
    folder.mkdir()
    made = hand_in(folder, "anna", f"%matplotlib inline\n{start}", *GOOD)
    shown = "13.1: not yet. A hint. (1 try)\n13.1: right. (2 tries)\n"
    made.cells[1].outputs = [nbformat.v4.new_output("stream", text=shown)]
    nbformat.write(made, folder / "anna.ipynb")
    hand_in(folder, "bo", start, "13.2", "more = = 3", "check('13.3', 1)", "13.3", "1 / 0", "13.4")
    hand_in(folder, "cy", start, "13.1", "import time\nwhile True: time.sleep(1)", "13.2")
    hand_in(folder, "di", start, "more = ...", CALLS["13.3"], "check('13.1', any_click)")
    hand_in(folder, "ed", "print('hello')", **lab)
    hand_in(folder, "flo", start, "13.3", "import os; os._exit(3)", "13.2")
    hand_in(folder, "gil", start, "13.3", "check('13.3', 2)", "input()", UNSAYABLE)
    (folder / "essay.txt").touch()
    hand_in(folder, "ida", "pass", dpbandit={"lab": 1})
    (folder / "hal.ipynb").write_text("not a notebook")
    out = tmp_path / "grades.csv"
    words = ["lab", "grade", folder, "--out", out, "--seconds", 40]
    code, said, errors = run(*words, columns=300)
    assert code == 0, errors
    assert "Grading lab 13. This runs the code of 9 students, with all your rights" in said
    grades = [*csv.reader(out.read_text().splitlines())]
    assert grades[0] == ["student", "exercise", "right", "tries"]
    assert len(grades) == 1 + 9 * len(checks_of(13))
    right = {(student, exercise) for student, exercise, right, _ in grades if right == "yes"}
    good = {("anna", name) for name in GOOD}
    good |= {("bo", "13.2"), ("bo", "13.3"), ("bo", "13.4"), ("cy", "13.1"), ("flo", "13.3")}
    assert right == good
    tries = {(student, exercise): n for student, exercise, _, n in grades[1:] if n}
    assert tries == {("anna", "13.1"): "2"}
    for sentence in (
        "1 of 9, anna: 4 of 6 right.",
        "bo: 2 cells raised an exception, first code cell 3: SyntaxError: invalid syntax",
        "cy: it was stopped after 40 s, in code cell 3.",
        "di: a cell raised an exception, code cell 4: NameError: name 'any_click' is not defined.",
        "ed: no check was run.",
        "flo: its process ended in code cell 3, with exit code 3.",
        "gil: 2 cells raised an exception, first code cell 4: ",
        "No notebooks, and not graded: essay.txt.",
        "hal: it cannot be read as a notebook (JSONDecodeError).",
        "ida: it is a notebook of lab 1.",
    ):
        assert sentence in said
    for path in folder.iterdir():
        if path.stem not in ("anna", "bo"):
            path.unlink()
    again = tmp_path / "again.csv"
    assert run("lab", "grade", folder, "--out", again)[0] == 0
    rows = [*csv.reader(again.read_text().splitlines())]
    assert rows == [row for row in grades if row[0] in ("student", "anna", "bo")]


def test_a_class_that_cannot_be_graded_is_refused(run, tmp_path):
    write(find(1), tmp_path)
    out = tmp_path / "grades.csv"
    for words, sentence in {
        (tmp_path / "none",): "Expected a folder of notebooks",
        (tmp_path, "--lab", 99): "Expected lab 99 to be one of",
        (tmp_path, "--seconds", 0): "Expected --seconds=0.0 to be a finite number > 0.",
    }.items():
        code, _, errors = run("lab", "grade", *words, "--out", out)
        assert code == 2
        assert sentence in errors
    (tmp_path / "empty").mkdir()
    assert "Expected notebooks in" in run("lab", "grade", tmp_path / "empty", "--out", out)[2]
    hand_in(tmp_path / "empty", "eve", "1 + 1")
    errors = run("lab", "grade", tmp_path / "empty", "--out", out)[2]
    assert "name it by --lab" in errors
    assert not out.exists()
