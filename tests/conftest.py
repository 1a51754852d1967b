"""A test that asserts nothing fails, unless it is marked `smoke`; one so marked may not assert.

Counted are the assertions that a test reaches in its own module and in the tests' helpers, those
of NumPy's, pandas' and dpbandit's `testing`, and `pytest.raises` and `pytest.warns`.

A test whose source asserts on every path (`always`, four of five) needs no count: once it passes,
it has asserted. For the others alone pytest's hook `pytest_assertion_pass` is there, until it is
called: pytest writes out an assertion that passes for it, and every array in it.
"""

import ast
import functools
import inspect
import os
import sys
from contextlib import suppress
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _pytest.assertion import util
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from threadpoolctl import ThreadpoolController

from dpbandit import cli
from dpbandit.testing import tapes
from tools.measures import statements

HERE = Path(__file__).parent
DEFINITION = (ast.FunctionDef, ast.AsyncFunctionDef)
passed = 0
"""Assertions of this process so far."""


def count():
    global passed
    passed += 1


def counting(check):
    """The same check, counted."""

    @functools.wraps(check)
    def counted(*args, **kwargs):
        count()
        return check(*args, **kwargs)

    return counted


os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of what tests start
ThreadpoolController().limit(limits=1)  # workers beside each other need no threads of their own
for path in HERE.rglob("*.py"):
    pytest.register_assert_rewrite(".".join(path.relative_to(HERE.parent).with_suffix("").parts))
for module in (np.testing, pd.testing):
    for name in [name for name in dir(module) if name.startswith("assert_")]:
        setattr(module, name, counting(getattr(module, name)))
pytest.raises, pytest.warns = counting(pytest.raises), counting(pytest.warns)


SAVE = Figure.savefig


def save_once(figure, path, *, dpi=None, **how):
    """Save without the search for a layout, which draws everything twice."""
    named = isinstance(path, str | Path)  # else a buffer, for a picture as it is
    kind = named and {".png": FigureCanvasAgg, ".svg": FigureCanvasSVG}.get(Path(path).suffix)
    if not kind:
        return SAVE(figure, path, dpi=dpi, **how)
    figure.set_layout_engine("none")
    figure.set_dpi(dpi or figure.dpi)
    canvas = figure.canvas if isinstance(figure.canvas, kind) else kind(figure)
    draw = canvas.print_png if kind is FigureCanvasAgg else canvas.print_svg
    return draw(path, metadata=how.get("metadata"))


@pytest.fixture(scope="session", autouse=True)
def coarse():
    """Figures have a sixteenth of their dots and no layout, and those of reports are in one format;
    `tests/report/test_report.py` has one in all formats, and laid out."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Figure, "savefig", save_once)
        patch.setattr("dpbandit.results.plots.DOTS", 40)
        with suppress(ImportError):  # the shelf of sweeps is not here
            patch.setattr("dpbandit.report.page._ENDINGS", (".svg",))
        yield


class Counter:
    """Plugin of pytest that counts the first assertion that passes, and the first after `listen`.

    If pytest renames the private `util._assertion_pass`, all are counted, which takes longer.
    """

    hook = None
    """pytest's call of the plugin, while assertions are not counted."""

    def pytest_assertion_pass(self):
        count()
        Counter.hook, util._assertion_pass = getattr(util, "_assertion_pass", None), None


def listen():
    """Count the next assertion of a test, too."""
    if Counter.hook:
        Counter.hook, util._assertion_pass = None, Counter.hook


def always(body):
    """Return True if statements assert whenever they run to their end."""
    for node in body:
        if isinstance(node, ast.Assert):
            return True
        if isinstance(node, ast.With) and always(node.body):
            return not any("suppress" in ast.unparse(item) for item in node.items)
        if any(isinstance(inner, ast.Return) for inner in ast.walk(node)):
            return False
    return False


@functools.cache
def functions(file):
    """Line of the first decorator, or of `def` -> function, of a file."""
    body = ast.parse(Path(file).read_text()).body
    found = [node for node in statements(body) if isinstance(node, DEFINITION)]
    return {min(part.lineno for part in (n, *n.decorator_list)): n for n in found}


def surely_asserts(test):
    """Return True if a test asserts on every path; blocks `asserting` are counted one by one."""
    code = inspect.unwrap(test).__code__
    node = functions(code.co_filename)[code.co_firstlineno]
    return "asserting" not in code.co_names and always(node.body)


def pytest_configure(config):
    """Run tests with the mark `rota`, too, where the command line names files or tests."""
    config.addinivalue_line("markers", "turn: with a turn of its own (tests/each.py), which it has")
    named = config.args_source is config.ArgsSource.ARGS
    if named and not hasattr(config, "workerinput"):
        config.option.markexpr = config.option.markexpr.replace(" and not rota", "")


SHELVES = ("choice", "clients", "fuzz", "limits", "lists", "messages", "offline", "people")
SHELVES += ("report", "suite")
"""Folders whose files come in turns: a commit runs the tests of one in three (`tests/each.py`)."""
ALONE = ("agents/contextual/test_epochs", "agents/contextual/test_fliphat")
ALONE += ("agents/contextual/test_guard", "agents/contextual/test_mapped")
ALONE += ("agents/experts/test_ball", "auditing/test_exact", "envs/contextual/test_people_of_log")
ALONE += ("privacy/accounting/test_people", "privacy/choices/test_hard_thresholding")
ALONE += ("privacy/sums/test_filters",)
"""Tests of shelves in folders of the core, which do so, too."""
FAMILIES = ("agents/arms", "agents/contextual", "agents/convex", "agents/experts", "agents/streams")
FAMILIES += ("docs", "domains", "envs", "envs/contextual", "envs/convex", "envs/experts")
FAMILIES += ("envs/streams", "experiments", "losses", "results", "studies")
"""Folders of the core and of streams whose files do so, too, but for their tests of privacy."""
PRIVACY = {"audit", "certificate", "certify", "check_agent", "check_billboard", "check_joint_dp"}
PRIVACY |= {"check_noise_knows_no_data", "check_sensitivity", "check_size", "largest_move"}
PRIVACY |= {"ledger", "rho", "sensitivity", "spend", "two_worlds"}
"""Words of a test of privacy"""


def words_of(code):
    """Return the names that a function uses, and those that functions within it use."""
    inner = [words_of(const) for const in code.co_consts if inspect.iscode(const)]
    return {*code.co_names}.union(*inner)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Run `tests/suite` first: near the end workers take tests from each other, and modules are set
    up a second and a third time; theirs take longest. Mark files of other commits, unless what they
    look at has changed; tests with a turn of their own, or `slow`, are left as they are."""
    from tests.each import marks, touched

    shelves = [file for name in SHELVES for file in sorted(HERE.rglob(f"{name}/test_*.py"))]
    shelves += [HERE / f"{name}.py" for name in ALONE]
    core = [file for name in FAMILIES for file in sorted((HERE / name).glob("test_*.py"))]
    files = [file for file in dict.fromkeys([*shelves, *core]) if file.name != "test_answers.py"]
    places = {file: place for place, file in enumerate(files) if not touched(file)}
    for item in items:
        if item.path not in places or any(map(item.get_closest_marker, ("slow", "rota", "turn"))):
            continue
        private = words_of(inspect.unwrap(item.function).__code__) & PRIVACY
        if item.path in shelves or not private:
            for mark in marks(places[item.path], 3, slow=False):
                item.add_marker(mark)
    items.sort(key=lambda item: item.path.parent != HERE / "suite")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item):
    if surely_asserts(item.function):
        return (yield)
    counter = Counter()
    item.config.pluginmanager.register(counter)
    try:
        return (yield)
    finally:
        Counter.hook = None
        item.config.pluginmanager.unregister(counter)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = passed, tapes.held
    outcome = yield
    smoke = item.get_closest_marker("smoke")
    asserted = surely_asserts(item.function) or (passed, tapes.held) != before
    if not (smoke or asserted):
        pytest.fail("Asserted nothing: see tests/conftest.py.", pytrace=False)
    if smoke and asserted:
        pytest.fail("Asserted something, and is marked smoke.", pytrace=False)
    return outcome


@pytest.fixture
def run(monkeypatch, capsys):
    """Run a command line in this process: exit code, stdout, stderr."""

    def command(*words, columns=200):
        monkeypatch.setattr(sys, "argv", ["dpbandit", *map(str, words)])
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("dpbandit.base.progress.PATIENCE", 1e9)  # no bar on a busy machine
        code = 0
        try:
            cli.main()
        except SystemExit as stop:
            code = stop.code or 0
        return code, *capsys.readouterr()

    return command
