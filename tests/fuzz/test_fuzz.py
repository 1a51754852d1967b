"""Command lines, most of them a little wrong, more if slow: no traceback, hang or nonsense.

`line(seed, place)` makes a line again, `verdict.run` says how it went.
"""

import os
import sys
import time
import warnings
from collections import Counter
from dataclasses import replace

import pytest

from dpbandit.privacy.certificate import certificate
from tests.fuzz import verdict, world
from tests.fuzz.lines import Line, line

COMPARE = Line(["compare", "GLMBandit", "--agents", "dp-ucb", "--horizon", "3", "--replicas", "2"])
TO_FILES = COMPARE._replace(words=[*COMPARE.words, "--json", "x.json", "--out", "new"])
CERTIFY = Line(["certify", "dp-ucb", "--horizon", "3", "--json", "x.json"])


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return world.build(tmp_path_factory.mktemp("fuzz") / "world")


@pytest.fixture
def count(built, tmp_path, monkeypatch):
    """Run lines, each in a folder of its own: faults, how often of which kind; and exit codes."""
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr("dpbandit.commands.labs.find_spec", lambda name: None)  # no JupyterLab
    monkeypatch.setattr("dpbandit.base.progress.PATIENCE", 1e9)
    monkeypatch.chdir(tmp_path)

    def counted(lines, **how):
        kinds, codes, told = Counter(), Counter(), []
        for name, one in lines.items():
            folder = world.copy(built, tmp_path / str(name) / "here", one)
            os.chdir(folder)
            outcome = verdict.run(one.words, folder, **how)
            os.chdir(tmp_path)
            kinds += Counter(fault.kind for fault in outcome.faults)
            codes[one.words[0], outcome.code] += 1
            told += [(name, one, *fault) for fault in outcome.faults]
        return kinds, codes, told

    return counted


@pytest.mark.parametrize(("seed", "lines"), [(4, 90), pytest.param(0, 250, marks=pytest.mark.slow)])
def test_lines(count, seed, lines):
    """Nothing is wrong, and it was looked at: each command has succeeded and has been refused. A
    line is made again by its numbers."""
    made = {place: line(seed, place) for place in range(lines)}
    assert made == {place: line(seed, place) for place in range(lines)}
    assert made[0] != line(seed + 1, 0)
    kinds, codes, told = count(made)
    assert kinds == {}, told[:3]
    assert sum(codes.values()) == lines
    assert {code for _, code in codes} <= set(verdict.CODES)
    for command in ("compare", "certify", "reproduce", "sweep"):
        assert min(codes[command, 0], codes[command, 2]) >= lines // 60, (command, codes)


FOUND = [
    "certify ball-experts --env OnlineConvex --set dim=2000 --horizon 8",
    "certify ball-experts:reach=1e-300 --env OnlineConvex --horizon 8",
    "certify binary-tree-experts:epsilon=1e49 --env Experts --json x.json --horizon 8",
    "certify hedge --env Experts --set epsilon=5e-324 --horizon 8",
    "compare GLMBandit --agents fliphat:iterations=1000000 --replicas 1 --horizon 8",
    "compare ConvexPricing --set variety=1e49 --replicas 1 --horizon 8",
    "compare ListRecommendation --set length=1 --replicas 1 --horizon 8",
    "compare OnlineConvex --agents ball-experts:epsilon=1e49 --replicas 1 --horizon 8",
    "compare ConvexBandit --agents garber-kretzu:offset=1e308 --replicas 1 --horizon 8",
    "certify dp-tofw --env StreamingRegression --horizon 1 --plot x.png",
]
"""What thousands of lines found once."""


@pytest.mark.parametrize("found", FOUND)
def test_what_was_found_stays_away(count, found):
    """A traceback, a warning or a minute's work each, before."""
    kinds, _, told = count({"x": Line(found.split())}, limit=5.0)
    assert kinds == {}, told


def broken(*given, **how):
    raise KeyError("x")


def ended(code, said=""):
    def end(*given, **how):
        sys.stderr.write(said)
        sys.exit(code)

    return end


def overflown(*given, **how):
    warnings.warn("overflow", RuntimeWarning, stacklevel=1)
    sys.exit(0)


PLANTED = {
    "a bug": ("traceback", broken),
    "a thread's bug": ("traceback", ended(1, "Traceback (most recent call last):\n")),
    "a loop": ("hang", lambda *a, **k: all(iter(lambda: 1, 0))),
    "a wait": ("hang", lambda *a, **k: time.sleep(60)),
    "a strange end": ("exit code", ended(3)),
    "two sentences": ("no sentence", ended(2, "dpbandit: No.\nSee above.\n")),
    "silence": ("no sentence", ended(2)),
    "an overflow": ("warning", overflown),
}


@pytest.mark.parametrize("name", PLANTED)
def test_what_is_planted_in_a_command_is_counted(count, monkeypatch, name):
    """Broken on purpose: each of two lines has one fault, of its kind and of no other."""
    kind, planted = PLANTED[name]
    monkeypatch.setattr("dpbandit.running.compare.compare", planted)
    lines = {"first": COMPARE, "second": COMPARE, "third": CERTIFY}
    assert count(lines, limit=0.2 if kind == "hang" else 20.0)[0] == {kind: 2}


def certified(**changed):
    """An accountant that is wrong in a number."""
    return "dpbandit.running.compare.certificate", lambda *ledger, **how: replace(
        certificate(*ledger, **how), **changed
    )


IMPOSSIBLE = {
    "nothing": ("dpbandit.running.compare.certificate", certificate),
    "a negative standard error": ("dpbandit.results.results.standard_error", lambda values: -1.0),
    "no standard error": ("dpbandit.results.results.standard_error", lambda values: float("nan")),
    "a shown nan": ("dpbandit.commands.agents.print_results", lambda results: print("│ nan │")),
    "too large an epsilon": certified(epsilon=1.002),
    "an epsilon that is none": certified(epsilon=float("nan")),
    "a negative epsilon": certified(epsilon=-1e-9),
    "a negative delta": certified(delta=-2.5e-11),
    "a delta above one": certified(delta=1.5),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible_numbers_are_counted(count, monkeypatch, name):
    """Broken on purpose: statistics and accountants, as a table or a file shows them. What is right
    is not counted."""
    monkeypatch.setattr(*IMPOSSIBLE[name])
    kinds, codes, told = count({"compare": TO_FILES, "certify": CERTIFY, "one": COMPARE})
    assert set(kinds) <= {"impossible number"}, told
    assert bool(kinds) == (name != "nothing")
    assert {code for _, code in codes} == {0}
