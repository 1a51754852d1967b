"""A test that asserts nothing fails, unless it is marked `smoke`; one so marked may not assert.

Counted are the assertions that a test reaches in its own module and in the tests' helpers, those
of NumPy's, pandas' and dpbandit's `testing`, and `pytest.raises` and `pytest.warns`.

pytest's own hook, `pytest_assertion_pass`, writes out every passing assertion, which takes 2.6
times as long. So what is replaced is the question, before each such text, whether anybody wants it:
it counts, and nobody does. Modules that are compiled to ask it have caches of their own.
"""

import functools
import os
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from _pytest.assertion import rewrite
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from threadpoolctl import ThreadpoolController

from dpbandit import cli
from dpbandit.testing import tapes

HERE = Path(__file__).parent
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
sys.dont_write_bytecode = False  # commands and workers are started a hundred times: compile once
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
rewrite._check_if_assertion_pass_impl, rewrite.PYC_TAIL = count, f".counted{rewrite.PYC_TAIL}"
for path in HERE.rglob("*.py"):
    pytest.register_assert_rewrite(".".join(path.relative_to(HERE.parent).with_suffix("").parts))
for module in (np.testing, pd.testing):
    for name in [name for name in dir(module) if name.startswith("assert_")]:
        setattr(module, name, counting(getattr(module, name)))
pytest.raises, pytest.warns = counting(pytest.raises), counting(pytest.warns)


SAVE = Figure.savefig


def save_once(figure, path, *, dpi=None, **how):
    """Save without the search for a layout, which draws everything twice."""
    kind = {".png": FigureCanvasAgg, ".svg": FigureCanvasSVG}.get(Path(path).suffix)
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
        patch.setattr("dpbandit.report.page._ENDINGS", (".svg",))
        yield


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    before = passed, tapes.held
    outcome = yield
    smoke = item.get_closest_marker("smoke")
    asserted = (passed, tapes.held) != before
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
