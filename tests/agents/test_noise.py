"""Noise of every discovered agent: added to what was fed, as large as paid for, one for each."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dpbandit import certify
from dpbandit.agents import FADE
from dpbandit.base import Draws
from dpbandit.privacy import LocalValues, Mechanism
from dpbandit.testing.noise import check_noise_knows_no_data, check_rows, check_size, drawn_by
from tests.broken.leaks import KeepsTheWhole, PaysForOneRelease
from tests.broken.shared_draws import one_for_all
from tests.each import asserting, in_turn
from tests.harness import KINDS, SHARED, label
from tests.noise_laws import TESTED
from tests.pairs import (
    alike,
    certificate,
    distinct,
    every_third,
    kinds_in_turn,
    mechanisms,
    some,
    sums,
)

ROOT = Path(__file__).parents[2]


def concrete(kind=Mechanism):
    """All mechanisms of the package."""
    for sub in kind.__subclasses__():
        if sub.__module__.startswith("dpbandit.") and not inspect.isabstract(sub):
            yield sub
        yield from concrete(sub)


def test_every_mechanism_states_its_noise_or_has_a_test_of_its_own():
    """Neither a sum nor in `TESTED`: nobody would know if it added no noise at all."""
    assert {kind for kind in concrete() if not kind.releases_sum} == set(TESTED)
    for test in set(TESTED.values()):
        path, name = test.split("::")
        body = ast.parse((ROOT / path).read_text()).body
        assert name in [item.name for item in body if isinstance(item, ast.FunctionDef)], test


@in_turn(0, slow=True)
def test_tests_of_noise_fail_with_a_fifth_less_of_it():
    """Each of `TESTED` has the power to see that."""
    wanted = set(TESTED.values())
    options = ["-n", "0", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "tests.broken.quieter"]
    command = [sys.executable, "-m", "pytest", *options, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    failed = re.findall(r"(?m)^FAILED ([^\s\[]+)", done.stdout)
    assert set(failed) == wanted, done.stdout


@kinds_in_turn(4)
@every_third
def test_noise(kind, part):
    """Added to what was fed, knowing no data; as large as the ledger says; of every row its own.
    Who adds none to a sum calls other mechanisms, or none. Behind the front row one agent in four:
    the sums themselves are measured in tests/privacy."""
    measured = alike(kind)
    for pair in some(distinct(kind), part):
        with asserting(label(pair)):
            if not sums(pair):
                assert {type(mechanism) for mechanism in mechanisms(pair)} <= set(TESTED)
                continue
            check_noise_knows_no_data(*pair)
            if pair in measured:
                drawn = drawn_by(*pair)
                check_size(certificate(pair).ledger, drawn)
                check_rows(drawn)


@in_turn(1)
def test_rows_that_share_a_draw_are_caught(monkeypatch):
    """For each process that makes up the noise of several rows."""
    processes = {
        type(getattr(made, "_noise", made)): pair
        for kind in KINDS
        for pair in reversed(alike(kind))
        for made in sums(pair)
        if not isinstance(made, LocalValues)  # which are numbers
        if getattr(getattr(made, "_statistic", None), "shape", (2,))[0] > 1
    }
    assert len(processes) > 5
    monkeypatch.setattr(Draws, "fill", one_for_all)
    for pair in processes.values():
        drawn = drawn_by(*pair)
        with asserting(label(pair)), pytest.raises(AssertionError, match="noise of its own"):
            check_rows(drawn)


def test_wrong_prices_and_wrong_sums_are_caught(monkeypatch):
    """The checks have power: broken that pays for one release of many, and broken that never
    fades."""
    pair = FADE(), SHARED
    monkeypatch.setattr("dpbandit.agents.contextual.fading.FadingSum", PaysForOneRelease)
    with pytest.raises(AssertionError, match="as large as its spend says"):
        check_size(certify(*pair, accountants=False).ledger, drawn_by(*pair))
    monkeypatch.setattr("dpbandit.agents.contextual.fading.FadingSum", KeepsTheWhole)
    with pytest.raises(AssertionError, match="noise that knows no data"):
        check_noise_knows_no_data(*pair)
