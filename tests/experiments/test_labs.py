"""The labs: written in one form, built as notebooks, and run from beginning to end.

The fast tests read the text; the slow one runs each lab as a script, with warnings as errors.
"""

import ast
import re
import runpy
import symtable
import sys
from collections import defaultdict
from contextlib import suppress
from functools import cache
from itertools import pairwise
from math import inf
from time import process_time
from types import SimpleNamespace

import matplotlib.pyplot as plt
import nbformat
import numpy as np
import pytest
from matplotlib import rc_context

from dpbandit import InputError
from dpbandit.commands import labs as command
from dpbandit.experiments.labs import (
    Lab,
    __main__ as build,
    against,
    check,
    checks,
    curves,
    find,
    labs,
    notebook,
    sliders,
    write,
)
from dpbandit.experiments.labs.checks import NO, WORDS, YES, answer_names, checks_of, outcome_of
from dpbandit.privacy import Fact
from tests.each import by_rota, refused

LABS = labs()
every_lab = pytest.mark.parametrize("lab", LABS, ids=lambda lab: f"lab-{lab.number}")


@cache
def cells(lab):
    import jupytext

    return jupytext.reads(lab.text, fmt="py:percent").cells


def tagged(lab, tag):
    return [cell for cell in cells(lab) if tag in cell.metadata.get("tags", [])]


def is_solution(cell):
    return "solution" in cell.metadata.get("tags", [])


def exercises(lab):
    """(name, what follows it up to the next exercise or section: tags, in order) of each."""
    found = []
    for cell in cells(lab):
        headings = r"^(?:\*\*(Exercise \d+\.\d)\.\*\*|## )"
        names = re.findall(headings, cell.source, re.MULTILINE)
        if cell.cell_type == "markdown" and names:
            found += [(name, []) for name in names]
        elif found:
            found[-1][1].extend(cell.metadata.get("tags", ["untagged"]))
    return [(name, tags) for name, tags in found if name]


def asked(lab):
    """The checks of a lab: by the exercise, the names of the results that it gets."""
    calls = [n for n in nodes(tagged(lab, "check")) if isinstance(n, ast.Call)]
    assert {call.func.id for call in calls} == {"check"}
    return {call.args[0].value: tuple(arg.id for arg in call.args[1:]) for call in calls}


def answers(lab):
    return {name for names in asked(lab).values() for name in names}


@every_lab
def test_a_lab_has_the_form_of_all(lab):
    """Goal, time, exercises with hint, solution and check, one picture, and what to remember.
    Solutions may be left out: no name that only they define is used elsewhere; and a check asks for
    no name that the lab itself assigns, which would be checked in place of the answer."""
    assert lab is LABS[lab.number - 1]
    assert lab.goal
    assert lab.needs
    assert 25 <= lab.minutes <= 90
    names = [name for name, _ in exercises(lab)]
    assert [f"Exercise {name}" for name in asked(lab)] == names
    assert asked(lab) == {name: answer_names(name) for name in checks_of(lab.number)}
    assert len(names) >= 3
    assert names == [f"Exercise {lab.number}.{k}" for k in range(1, len(names) + 1)]
    for name, tags in exercises(lab):
        assert tags[0] == "hint", name
        begin, end = tags.index("solution"), tags.index("check")
        assert set(tags[begin:end]) == {"solution"}, name
    assert len(tagged(lab, "picture")) == 1
    headings = re.findall(r"^# ## (.+)", lab.text, re.MULTILINE)
    assert headings[-1] == "What to remember"
    inside = [cell for cell in cells(lab) if is_solution(cell)]
    outside = [cell for cell in cells(lab) if not is_solution(cell)]
    rest = [cell for cell in outside if cell not in tagged(lab, "check")]
    assert (set(defined(inside)) - set(defined(outside))) & used(rest) == set()
    table = symtable.symtable(code_of(outside), "lab", "exec")
    assigned = {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned()}
    assert assigned & answers(lab) == set()


def defined(cells):
    """Names that these cells bind, at any depth."""
    for node in nodes(cells):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.alias):
            yield node.asname or node.name.split(".")[0]
        elif isinstance(node, ast.arg):
            yield node.arg


def used(cells):
    return {n.id for n in nodes(cells) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}


def code_of(cells):
    return "\n".join(cell.source for cell in cells if cell.cell_type == "code")


def nodes(cells):
    return ast.walk(ast.parse(code_of(cells)))


@every_lab
def test_a_lab_becomes_a_valid_notebook_twice_the_same(lab):
    folded, bare = notebook(lab), notebook(lab, solutions=False)
    for made in (folded, bare):
        nbformat.validate(made)
        assert f"About {lab.minutes} minutes, an estimate" in made.cells[0].source
    assert nbformat.writes(folded) == nbformat.writes(notebook(lab))
    for cell in filter(is_solution, folded.cells):
        if cell.cell_type == "code":
            assert cell.metadata.jupyter.source_hidden
            assert "hide-cell" in cell.metadata.tags
            assert cell.source.startswith("# solution\n")
        else:
            assert cell.source.startswith("<details>")
    for made, tag in ((folded, "hint"), (bare, "hint"), (folded, "check"), (bare, "check")):
        kept = [cell for cell in made.cells if tag in cell.metadata.get("tags", [])]
        assert len(kept) == len(tagged(lab, tag))
        texts = [cell.source for cell in kept if cell.cell_type == "markdown"]
        assert all(text.startswith("<details>\n<summary>") for text in texts)
    own = [cell for cell in bare.cells if own_attempt(cell)]
    assert len(own) == len(exercises(lab))
    empty = {line.removesuffix(" = ...") for cell in own for line in cell.source.splitlines()[1:]}
    assert empty == answers(lab)
    assert not any(map(is_solution, bare.cells))
    for one, other in pairwise(folded.cells):
        if is_solution(other) and not is_solution(one):
            assert own_attempt(one)


def own_attempt(cell):
    return cell.source.startswith(("# your own attempt\n", "*your own answer, in words*\n"))


def test_checks_never_raise_and_never_tell(capsys):
    """Exercise 1.3 by hand: every kind of answer gets one sentence, none of them the value."""

    def said(*call):
        check(*call)
        return capsys.readouterr().out

    for answer in (42.2, np.array([42.2]), [42.2], "42.2", " $42.20"):
        assert said("1.3", answer) == "1.3: right.\n"
    assert said("11.4", " C") == "11.4: right.\n"
    for answer in ("four", None, np.array([3, 42]), [], float("nan"), 2.0, 200):
        line = said("1.3", answer)
        assert line.startswith("1.3: not yet. ")
        assert line.count("\n") == 1
        assert "4" not in line
    assert said("1.3", ...) == "1.3: no answer yet: give `learning_cost` a value in a cell above.\n"
    assert said("1.3") == "1.3: expected `check('1.3', learning_cost)`, got 0 answers.\n"
    assert said("4.3").startswith("4.3: in words, for a person to read. A good answer says that ")
    for name in ("1.9", "99.1", "one", "", "-1.2", "1"):
        assert said(name, 3).startswith(f"{name}: no such exercise; ")


def test_other_types_are_right_or_get_a_hint_on_their_type():
    """Lab 17 by hand: sets and arrays of dishes, facts by name, a pair that is not in a set."""
    dishes = {"not dish 1": set(), "not dish 0": np.array([1])}
    assert outcome_of("17.3", [dishes, Fact.CELL]).right == YES
    assert "Give a fact" in outcome_of("17.3", [dishes, "CELL"]).sentence
    assert "two lists" in outcome_of("17.3", [{**dishes, "not dish 0": 1}, Fact.CELL]).sentence
    assert outcome_of("17.4", [["DP-UCB", "FADE"]]).right == YES
    assert "set of names" in outcome_of("17.4", [{"FADE": True, "DP-UCB": True}]).sentence
    pair = ("AllocationTS", "private")
    for pairs in ({pair}, [pair], [[*pair]]):
        assert outcome_of("17.6", [pairs, Fact.PRESENCE]).right == YES
    assert "set of pairs" in outcome_of("17.6", [pair, Fact.PRESENCE]).sentence


def test_delta_is_wrong_without_its_factor():
    """Exercise 17.2 at the notebook's frequencies, 0.148 and 0.895."""
    assert outcome_of("17.2", [0.895 - np.exp(0.5) * 0.148]).right == YES
    for wrong in (0.895 - 0.148, 0.895, 0.895 - 0.5 * 0.148, 0.148 - np.exp(0.5) * 0.895):
        assert outcome_of("17.2", [wrong]).right == NO


def constants(lab):
    """Every constant that a student reads: of code and text of the notebook, and of hints."""
    made = notebook(lab, solutions=False)
    code = [cell.source for cell in made.cells if cell.cell_type == "code"]
    texts = [cell.source for cell in made.cells if cell.cell_type == "markdown"]
    rows = [rows for rows in checks_of(lab.number).values() if not isinstance(rows, str)]
    texts += [hint for tests in rows for _, hint in tests]
    texts += [n.value for n in ast.walk(ast.parse("\n".join(code))) if is_text(n)]
    for node in ast.walk(ast.parse("\n".join(code))):
        with suppress(ValueError):
            yield ast.literal_eval(node)
    for text in texts:
        text = re.sub(r"Exercise \d+\.\d", "", text)
        for number in re.findall(r"\d[\d,_]*(?:\.\d+)?(?:e-?\d+)?|\.\d+", text):
            yield float(number.rstrip(",_").replace(",", "").replace("_", ""))
            yield -float(number.rstrip(",_").replace(",", "").replace("_", ""))


def is_text(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


@pytest.mark.parametrize("number", by_rota([lab.number for lab in LABS], 5, slow=False))
def test_no_constant_of_a_notebook_or_a_hint_passes(number):
    """Neither alone, nor as all entries of a list or a dict, nor as what a function returns; but
    for a letter of a choice whose exercise names all. Every exercise tells nonsense wrong, and no
    answer, in one line."""
    lab = find(number)
    found = {repr(value): value for value in constants(lab) if value is not ...}
    assert len(found) > 50
    for name, names in asked(lab).items():
        assert outcome_of(name, [...] * len(names)).right == (WORDS if not names else "")
        if not names:
            continue
        for wrong in (None, "nonsense", float("nan"), [], -1e9, object(), np.zeros(3), len):
            told = outcome_of(name, [wrong] * len(names))
            assert told.right == NO, (name, wrong)
            assert "\n" not in told.sentence
        text = next(cell.source for cell in cells(lab) if f"Exercise {name}.**" in cell.source)
        for value in found.values():
            forms = [value, lambda *_, value=value: value, defaultdict(lambda value=value: value)]
            forms += [[value] * length for length in (2, 3, 4, 6, 9, 20, 100)]
            passed = [f for f in forms if outcome_of(name, [f] * len(names)).right == YES]
            choice = isinstance(value, str) and len(value) == 1 and f"({value})" in text
            assert passed == [value] * choice or not passed, (name, value)


def test_sliders_begin_where_a_script_draws(monkeypatch):
    """In a notebook each argument has its values, labelled, and begins at its default; moving one
    draws again, and shows no return value. Elsewhere, the defaults are drawn, once."""
    drawn, made = [], {}

    def draw(users=2_000, epsilon=inf):
        drawn.append((users, epsilon))
        return "not shown"

    def interact(show, **widgets):
        made.update(widgets)
        assert show(**{name: widget.value for name, widget in widgets.items()}) is None
        assert show(users=10, epsilon=1) is None

    widgets = SimpleNamespace(interact=interact, SelectionSlider=lambda **kw: SimpleNamespace(**kw))
    choices = {"users": [10, 2_000], "epsilon": [0.1, inf]}
    sliders(draw, **choices)
    assert drawn == [(2_000, inf)]
    monkeypatch.setitem(sys.modules, "ipywidgets", widgets)
    shell = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None))
    monkeypatch.setitem(sys.modules, "IPython", shell)
    sliders(draw, **choices)
    assert drawn[1:] == [(2_000, inf), (10, 1)]
    assert made["users"].options == [("10", 10), ("2,000", 2_000)]
    assert made["epsilon"].options == [("0.1", 0.1), ("∞", inf)]


def test_pictures_say_of_how_many_runs_they_are():
    """Zero and infinity have places on a logarithmic axis; words have no line between them."""
    runs = {"one": np.ones((4, 30)), "two": np.ones((4, 20))}
    axes = against(runs, {"privacy": [0, 0.1, 1, inf]})
    assert axes.get_xlabel() == "privacy\n(means of 20 and 30, with 95 % intervals)"
    assert axes.get_xscale() == "log"
    assert axes.get_xticks() == pytest.approx([0.1 / 3, 0.1, 1, 3])
    assert [label.get_text() for label in axes.get_xticklabels()] == ["0", "0.1", "1", "∞"]
    axes = against(runs, {"trust": ["all", "some", "few", "none"]})
    assert axes.get_xscale() == "linear"
    assert {container[0].get_linestyle() for container in axes.containers} == {"None"}
    axes = curves(runs, rounds=[1, 10, 100, 1_000], xscale="log", yscale="log", ylabel="dollars")
    assert axes.get_xlim() == (1, 1_000)
    assert axes.get_ylabel() == "dollars"
    plt.close("all")


def test_mistakes_are_one_sentence(tmp_path, monkeypatch):
    path = tmp_path / "lab_07_nothing.py"
    path.write_text("# %% [markdown]\n# # Lab 7: Nothing\n")
    lab = Lab(path)
    assert (lab.number, lab.title) == (7, "Nothing")
    with pytest.raises(InputError, match="first cell of lab_07_nothing"):
        _ = lab.goal
    refused("Expected lab 99 to be one of 1", find, 99)
    monkeypatch.setitem(sys.modules, "jupytext", None)
    refused(r"pip install 'dpbandit\[labs\]'", write, find(1), tmp_path)


def test_what_was_built_already_stays_and_the_rest_is_built(tmp_path, capsys):
    """A notebook that is there stays as it is, unless it may be overwritten; the rest is built."""
    folder = tmp_path / "deep" / "er"
    mine = write(find(3), folder)
    mine.write_text("my work")
    refused("Expected no file", write, find(3), folder)
    build.main(folder, solutions=False)
    said = capsys.readouterr().out.splitlines()
    assert [line for line in said if not line.startswith("Written to")] == [
        f"{mine} is there already and stays as it is (--overwrite starts afresh)."
    ]
    assert mine.read_text() == "my work"
    assert sorted(path.stem for path in folder.glob("*.ipynb")) == [lab.path.stem for lab in LABS]
    assert len(said) == len(LABS)
    build.main(folder, overwrite=True)
    assert nbformat.read(mine, as_version=4).cells


def test_labs_are_listed_and_opened(run, tmp_path, monkeypatch):
    """A notebook is written, kept if it is there, and opened where JupyterLab is installed."""
    started, installed = [], []

    def popen(words):
        started.append(words)
        return SimpleNamespace(wait=lambda: 0)

    monkeypatch.setattr(command, "find_spec", lambda name: installed or None)
    monkeypatch.setattr(command, "subprocess", SimpleNamespace(Popen=popen))
    monkeypatch.setattr(command.signal, "signal", lambda *args: None)
    assert all(lab.title in run("lab")[1] for lab in LABS)
    words = ["lab", "open", 1, "--out", tmp_path]
    said = run(*words, columns=300)[1]
    target = tmp_path / f"{find(1).path.stem}.ipynb"
    assert f"Written to {target}." in said
    assert "pip install 'dpbandit[labs]'" in said
    target.write_text("my work")
    installed.append("jupyterlab")
    assert run(*words, "--no-jupyter")[::2] == (0, "")
    assert started == []
    assert "stays as it is" in run(*words, "--no-browser", columns=300)[1]
    assert target.read_text() == "my work"
    assert started == [[sys.executable, "-m", "jupyterlab", str(target), "--no-browser"]]
    run(*words, "--overwrite", "--no-solutions", "--no-jupyter")
    written = nbformat.read(target, as_version=4)
    assert not any(map(is_solution, written.cells))


def ran(lab, solutions, tmp_path, monkeypatch, capfd):
    """Run a lab's code without a warning, in a minute of processor time, no file left; return the
    outcomes of its checks."""
    outcomes, before = [], process_time()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(checks, "listeners", [outcomes.append])
    path = lab.path
    if not solutions:
        made = notebook(lab, solutions=False)
        code = [cell.source for cell in made.cells if cell.cell_type == "code"]
        path = tmp_path / "lab.py"
        path.write_text("\n".join(code), encoding="utf-8")
    with rc_context({"backend": "agg"}):
        runpy.run_path(str(path), run_name="__main__")
        plt.close("all")
    progress = re.compile(r"(?m)^(.*: done after \d+ s)?\n")  # of what takes longer than 2 s
    assert progress.sub("", capfd.readouterr()[1]) == ""
    assert process_time() - before < 60
    assert {*tmp_path.iterdir()} <= {path}
    return {outcome.exercise: outcome.right for outcome in outcomes}


@pytest.mark.parametrize("number", by_rota([lab.number for lab in LABS], 5))
def test_a_lab_runs_from_beginning_to_end(number, tmp_path, monkeypatch, capfd):
    """Every answer of the lab's own solutions is right."""
    outcomes = ran(find(number), True, tmp_path, monkeypatch, capfd)
    assert outcomes == {
        name: YES if names else WORDS for name, names in asked(find(number)).items()
    }


@pytest.mark.parametrize("number", by_rota([lab.number for lab in LABS[::-1]], 5))
def test_a_lab_runs_without_solutions(number, tmp_path, monkeypatch, capfd):
    """Nothing needs a solution; every check says that there is no answer yet."""
    outcomes = ran(find(number), False, tmp_path, monkeypatch, capfd)
    assert outcomes == {name: "" if names else WORDS for name, names in asked(find(number)).items()}
