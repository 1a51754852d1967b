"""Noise of every discovered agent: added to what was fed, as large as paid for, one for each."""

import ast
import inspect
from pathlib import Path

import numpy as np
import pytest

from dpbandit.agents import FADE
from dpbandit.base.streams import Draws
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.sums.one_point import LocalValues
from dpbandit.privacy.sums.staggered import StaggeredNoise
from tests.harness import SHARED, SUMS, label, loud_users, noises, run
from tests.noise_laws import HEAVY, TESTED, first_stddev
from tests.pairs import ALIKE, CERTIFICATES, PRIVATE, SUMMING, mechanisms
from tests.prey.leaks import KeepsTheWhole, PaysForOneRelease
from tests.prey.shared_draws import one_for_all

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


@pytest.mark.parametrize("pair", [pair for pair in PRIVATE if pair in SUMMING], ids=label)
def test_noise_is_added_to_what_was_fed_and_knows_no_data(pair):
    """Two live runs with equal seeds and different users: release minus everything that was fed is
    the same noise in both. So what `query` shows is what enters the sum, and neither the size of
    the noise nor the number of draws depends on data."""
    config, spec = pair
    with np.errstate(all="ignore"):
        worlds = (loud_users(spec, 8, seed) for seed in (1, 2))
        one, two = (run(config, spec, world, remember=False) for world in worlds)
    assert noises(one)
    for a, b in zip(noises(one), noises(two), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-8 * max(1.0, np.abs(a).max()))


def first_noise(pair):
    """A noisy sum of the agent's; the noise of its first release in all replicas, (R, rows, ..),
    6,000 numbers or more; and of the first release in which all rows have some, (R, coordinates).
    """
    config, spec = pair
    with np.errstate(all="ignore"):
        alone = run(config, spec, loud_users(spec, 1, seed=7), remember=False)
        calls = zip(alone.mechanisms, alone.releases, strict=True)
        first = next(i for i, (m, r) in enumerate(calls) if isinstance(m, SUMS) and r is not None)
        users = next(n for n, calls in enumerate(alone.marks) if calls > first)
        sums, noise = alone.mechanisms[first], noises(alone)[0]
        process, started = getattr(sums, "_noise", None), slice(None)
        if isinstance(process, StaggeredNoise):
            users, started = noise.shape[1] * process._turns + 2, slice(1)
        size = noise.reshape(1, len(noise[0]) if noise.ndim > 1 else 1, -1)[:, started].size
        replicas = max(400, (8400 if isinstance(sums.spend, HEAVY) else 6000) // size)
        world = loud_users(spec, replicas, seed=7).until(users + spec.delay)
        found = noises(run(config, spec, world, remember=False))
    return sums, found[0].reshape(replicas, -1, *noise.shape[2:])[:, started], found[-1]


@pytest.fixture(
    scope="module", params=[pair for pair in ALIKE if pair in SUMMING], ids=label, name="drawn"
)
def _drawn(request):
    return request.param, *first_noise(request.param)


def check_size(pair, sums, noise, _):
    spends = CERTIFICATES[pair].ledger.spends
    assert sums.spend in [part for spend in spends for part in getattr(spend, "parts", [spend])]
    ratio = np.square(noise / first_stddev(sums))
    error = 5 * ratio.mean(axis=tuple(range(1, ratio.ndim))).std() / len(ratio) ** 0.5
    assert abs(ratio.mean() - 1) < error < (0.16 if isinstance(sums.spend, HEAVY) else 0.1)


def test_noise_is_as_large_as_the_ledger_says(drawn):
    """Statistical: the first release of a noisy sum, 6,000 numbers in all replicas (8,400 with
    heavy tails), has, in units, the variance that the ledger's spend was computed from, for as many
    nodes as a user is in; false alarm 6e-7 a case (5 errors of the mean square), 10 % off in
    variance is caught (asserted), with heavy tails 16 %."""
    check_size(*drawn)


def check_rows(*drawn):
    noise = drawn[-1].reshape(len(drawn[-1]), -1)
    product = noise.T @ noise / np.sqrt((noise**2).T @ noise**2)
    assert noise.any(axis=0).all()
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
    drawn = first_noise(pair)
    with pytest.raises(AssertionError):
        check_rows(*drawn)


def test_wrong_prices_and_wrong_sums_are_caught(monkeypatch):
    """The checks have power: prey that pays for one release of many, and prey that never fades."""
    pair = FADE(), SHARED
    monkeypatch.setattr("dpbandit.privacy.sums.fading.FadingSum", PaysForOneRelease)
    drawn = first_noise(pair)
    with pytest.raises(AssertionError):
        check_size(pair, *drawn)
    monkeypatch.setattr("dpbandit.privacy.sums.fading.FadingSum", KeepsTheWhole)
    with pytest.raises(AssertionError):
        test_noise_is_added_to_what_was_fed_and_knows_no_data(pair)
