"""Noise of every discovered agent: added to what was fed, as large as paid for, one for each."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

from dpbandit.agents import FADE
from dpbandit.base.random_streams import Draws
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.sums.one_point import LocalValues
from dpbandit.privacy.sums.staggered import StaggeredNoise
from dpbandit.privacy.sums.unknown_horizon import DoublingSum
from tests.broken.leaks import KeepsTheWhole, PaysForOneRelease
from tests.broken.shared_draws import one_for_all
from tests.harness import SHARED, SUMS, extreme_users, label, noises, run
from tests.noise_laws import HEAVY, TESTED, first_stddev
from tests.pairs import ALIKE, CERTIFICATES, PRIVATE, SUMMING, mechanisms

ROOT = Path(__file__).parents[2]


def concrete(kind=Mechanism):
    """All mechanisms of the package."""
    for sub in kind.__subclasses__():
        if sub.__module__.startswith("dpbandit.") and not inspect.isabstract(sub):
            yield sub
        yield from concrete(sub)


def test_every_mechanism_states_its_noise_or_has_a_test_of_its_own():
    """Neither in `SUMS` nor in `TESTED`: nobody would know if it added no noise at all."""
    assert set(concrete()) - set(SUMS) == set(TESTED)
    for test in set(TESTED.values()):
        path, name = test.split("::")
        body = ast.parse((ROOT / path).read_text()).body
        assert name in [item.name for item in body if isinstance(item, ast.FunctionDef)], test


@pytest.mark.slow
def test_tests_of_noise_fail_with_a_fifth_less_of_it():
    """Each of `TESTED` has the power to see that. What a `DoublingSum` adds is its inner sums'."""
    wanted = set(TESTED.values()) - {TESTED[DoublingSum]}
    options = ["-n", "0", "-q", "--tb=no", "-p", "no:cacheprovider", "-p", "tests.broken.quieter"]
    command = [sys.executable, "-m", "pytest", *options, *wanted]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    failed = re.findall(r"(?m)^FAILED ([^\s\[]+)", done.stdout)
    assert set(failed) == wanted, done.stdout


@pytest.mark.parametrize("pair", [pair for pair in PRIVATE if pair in SUMMING], ids=label)
def test_noise_is_added_to_what_was_fed_and_knows_no_data(pair):
    """Two live runs with equal seeds and different users: release minus everything that was fed is
    the same noise in both. So what `query` shows is what enters the sum, and neither the size of
    the noise nor the number of draws depends on data."""
    config, spec = pair
    with np.errstate(all="ignore"):
        worlds = (extreme_users(spec, 8, seed) for seed in (1, 2))
        one, two = (run(config, spec, world, remember=False) for world in worlds)
    assert noises(one)
    for a, b in zip(noises(one), noises(two), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * max(1.0, np.abs(a).max()))


class Drawn(NamedTuple):
    """The noise of one sum."""

    sums: Any
    first: Any
    """of its first release, (R, rows, ..), 6,000 numbers or more; of rows that have some then"""
    last: Any
    """of a later one, in which all rows have some, (R, coordinates)"""


def drawn_by(pair):
    """Of every noisy sum that one agent opens, in the order of their first releases."""
    config, spec = pair
    with np.errstate(all="ignore"):
        alone = run(config, spec, extreme_users(spec, 1, seed=7), remember=False)
        calls, until, size = releases_of_sums(alone), 0, 6000
        for sums, (first, *_), (noise, *_) in calls.values():
            users = next(n for n, made in enumerate(alone.marks) if made > first)
            rows = _rows(noise, sums)
            if isinstance(process := getattr(sums, "_noise", None), StaggeredNoise):
                users = noise.shape[1] * process._turns + 2
            until, size = max(until, users + spec.delay), min(size, rows.size)
        heavy = any(isinstance(sums.spend, HEAVY) for sums, _, _ in calls.values())
        replicas = max(400, (8400 if heavy else 6000) // size)
        tape = run(config, spec, extreme_users(spec, replicas, seed=7).until(until), remember=False)
    return [
        Drawn(sums, _rows(noises[0], sums), noises[-1].reshape(replicas, -1))
        for sums, _, noises in releases_of_sums(tape).values()
    ]


def releases_of_sums(tape):
    """Of each sum: itself, the numbers of the calls that released, and their noises."""
    found, shown = {}, iter(noises(tape))
    for i, (sums, release) in enumerate(zip(tape.mechanisms, tape.releases, strict=True)):
        if release is not None and isinstance(sums, SUMS):
            _, calls, added = found.setdefault(id(sums), (sums, [], []))
            calls.append(i)
            added.append(next(shown))
    return found


def _rows(noise, sums):
    """(R, rows, ..), of staggered rows only the first, which the others wait for."""
    rows = noise.reshape(len(noise), -1, *noise.shape[2:])
    return rows[:, :1] if isinstance(getattr(sums, "_noise", None), StaggeredNoise) else rows


@pytest.fixture(
    scope="module", params=[pair for pair in ALIKE if pair in SUMMING], ids=label, name="drawn"
)
def _drawn(request):
    return request.param, drawn_by(request.param)


def check_size(pair, drawn):
    spends = CERTIFICATES[pair].ledger.spends
    paid = [part for spend in spends for part in getattr(spend, "parts", [spend])]
    for sums, noise, _ in drawn:
        assert sums.spend in paid
        ratio = np.square(noise / first_stddev(sums))
        error = 5 * ratio.mean(axis=tuple(range(1, ratio.ndim))).std() / len(ratio) ** 0.5
        assert abs(ratio.mean() - 1) < error < (0.16 if isinstance(sums.spend, HEAVY) else 0.1)


def test_noise_is_as_large_as_the_ledger_says(drawn):
    """Statistical: the first release of each noisy sum, 6,000 numbers in all replicas (8,400 with
    heavy tails), has, in units, the variance that the ledger's spend was computed from, for as many
    nodes as a user is in; false alarm 6e-7 a sum (5 errors of the mean square), 10 % off in
    variance is caught (asserted), with heavy tails 16 %."""
    check_size(*drawn)


def check_rows(pair, drawn):
    for _, _, noise in drawn:
        assert noise.any(axis=0).all()
        product = noise.T @ noise / np.sqrt((noise**2).T @ noise**2)
        assert np.abs(np.triu(product, 1)).max() < 7


def test_rows_have_noise_of_their_own(drawn):
    """Statistical: arms, blocks and coordinates are uncorrelated in pairs, by their mean product in
    its own standard errors; false alarm 1e-8 for all 20,000 pairs. A shared draw is 9 errors or
    more (next test): the difference of two rows would be free of noise."""
    check_rows(*drawn)


ONE_OF_EACH = {
    type(getattr(m, "_noise", m)): pair
    for pair in reversed(ALIKE)
    if pair in SUMMING
    for m in mechanisms(pair)
    if isinstance(m, SUMS) and not isinstance(m, LocalValues)  # which are numbers
}
"""A pair for each process."""


@pytest.mark.parametrize("pair", ONE_OF_EACH.values(), ids=label)
def test_rows_that_share_a_draw_are_caught(pair, monkeypatch):
    monkeypatch.setattr(Draws, "fill", one_for_all)
    drawn = drawn_by(pair)
    with pytest.raises(AssertionError):
        check_rows(pair, drawn)


def test_wrong_prices_and_wrong_sums_are_caught(monkeypatch):
    """The checks have power: agents that pay for one release of many, and one that never
    fades."""
    pair = FADE(), SHARED
    monkeypatch.setattr("dpbandit.privacy.sums.fading.FadingSum", PaysForOneRelease)
    drawn = drawn_by(pair)
    with pytest.raises(AssertionError):
        check_size(pair, drawn)
    monkeypatch.setattr("dpbandit.privacy.sums.fading.FadingSum", KeepsTheWhole)
    with pytest.raises(AssertionError):
        test_noise_is_added_to_what_was_fed_and_knows_no_data(pair)
