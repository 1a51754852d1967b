"""Fading sums: releases against a dense matrix, their noise, and what the ledger says of them."""

from itertools import pairwise
from math import ceil, inf, sin, sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import exact_prefix_sum
from dpbandit.privacy.curves import epsilon_of, mu_of
from dpbandit.privacy.fading import (
    FadingSum,
    column_norm,
    growing_batches,
    least_fading_multiplier,
    released_ends,
)
from dpbandit.privacy.moments import ClippedVectors, SecondMoments
from tests.each import each, refused

WIDE = ClippedVectors(dim=2, bound=1e9)
ENDS = [(1, 2, 3, 4, 5), (3, 67, 131, 196, 400), (64, 128, 129), (200,), (63, 64, 65, 500)]
"""Batches of 1, of exactly 64, of one more and one less, and of several blocks."""
FADES = [0.0, 0.3, 0.5, 0.7, 0.99]


def toeplitz(releases, fade):
    """A (m, m): release k shows batch b <= k with weight fade^(k - b)."""
    gap = np.arange(releases)[:, None] - np.arange(releases)
    return np.where(gap >= 0, float(fade) ** np.maximum(gap, 0), 0.0)


def make(statistic=WIDE, seeds=(1, 2, 3), *, ends, fade, multiplier=0.0, horizon=None):
    return FadingSum(
        statistic,
        Streams(list(seeds)),
        ends=ends,
        horizon=ends[-1] + 1 if horizon is None else horizon,
        fade=fade,
        noise_multiplier=multiplier,
    )


def releases(mechanism, users):
    """The rounds (from 1) that released, and what they did, (m, R, ...)."""
    out = {t: mechanism(user) for t, user in enumerate(users, 1)}
    shown = {t: release for t, release in out.items() if release is not None}
    return list(shown), np.array(list(shown.values()))


@each("fade", FADES)
@each("ends", ENDS, ids=str)
def test_noiseless_releases_are_a_toeplitz_matrix_times_batch_sums(ends, fade):
    """Oracle: integer users, so batch sums are exact; equal to the last bit where fading is too."""
    users = np.random.default_rng(0).integers(-9, 9, (ends[-1], 3, 2)).astype(float)
    rounds, shown = releases(make(ends=ends, fade=fade), users)
    batches = np.array([users[a:b].sum(axis=0) for a, b in pairwise([0, *ends])])
    expected = np.einsum("kb,brd->krd", toeplitz(len(ends), fade), batches)
    assert rounds == list(ends)
    if fade in (0.0, 0.5):
        np.testing.assert_array_equal(shown, expected)
    np.testing.assert_allclose(shown, expected, rtol=1e-13, atol=1e-11)


@each("fade", [0.0, 0.7])
def test_noise_is_the_stream_scaled_in_units(fade):
    """Oracle: multiplier x sensitivity x units x the k-th normals of the stream, whatever the
    data."""
    statistic = SecondMoments(n_actions=2, dim=2, context_bound=3.0, reward_high=0.5)
    rng = np.random.default_rng(2)
    users = rng.standard_normal((80, 2, 2)) * 3, rng.integers(0, 2, (80, 2)), rng.random((80, 2))
    ends, rounds = (2, 70, 80), list(zip(*users, strict=True))
    exact, noisy = (make(statistic, (4, 5), ends=ends, fade=fade, multiplier=z) for z in (0.0, 2.5))
    normals = Streams([4, 5]).normals("fading noise", *statistic.shape)
    for end, user in enumerate(rounds, 1):
        with_noise, without = noisy(*user), exact(*user)
        if end in ends:
            size = 2.5 * statistic.sensitivity * statistic.units
            gap = with_noise - without
            np.testing.assert_allclose(gap, size * normals(), rtol=1e-9, atol=1e-9)


@each("fade", [*FADES, 0.1, 0.9, 0.999])
@each("m", [1, 2, 17, 80])
@each("late", [0, 3])
def test_ledger_has_the_mu_of_the_dense_matrix(m, fade, late):
    """Oracle: mu = sensitivity max_b |A e_b| / stddev over the releases before the horizon only."""
    shape = {"ends": tuple(range(4, 4 * (m + late) + 1, 4)), "fade": fade, "horizon": 4 * m + 1}
    mechanism, longest = make(**shape, multiplier=1.7), np.linalg.norm(toeplitz(m, fade), axis=0)
    wanted = mechanism.sensitivity * longest.max() / mechanism.stddev
    assert mechanism.spend.mu == pytest.approx(wanted, rel=1e-12)
    assert make(**shape).spend.mu == inf
    assert (column_norm(m, 1.0), column_norm(0, 0.5)) == (pytest.approx(sqrt(m)), 0)


@pytest.mark.parametrize("fade", [0.0, 0.7])
def test_noise_moved_along_a_column_hides_a_user(fade):
    """Oracle, the privacy proof executed, for users who answer to releases: a user moves by Delta,
    the noises by -Delta times her batch's column of A; all releases stay what they were."""
    ends, z = (2, 5, 6, 9), np.random.default_rng(3).standard_normal(4)
    A = toeplitz(4, fade)

    def run(z, changed=0):
        mechanism = make(ClippedVectors(1, 5e8), (0,), ends=ends, fade=fade, multiplier=1e-9)
        assert mechanism.stddev == 1.0
        source = iter(z)
        mechanism._normals = lambda: np.array([[next(source)]])
        last, shown = 0.0, []
        for t in range(1, 10):
            x = sin(0.3 * last + t) + (1.5 if t == changed else 0.0)
            release = mechanism(np.array([[x]]))
            if release is not None:
                last = release.item()
                shown.append(last)
        return np.array(shown)

    plain = run(z)
    for user in range(1, 10):
        batch = np.searchsorted(ends, user)
        shift = 1.5 * A[:, batch]
        assert np.linalg.norm(shift) <= 1.5 * column_norm(4, fade) + 1e-12
        np.testing.assert_allclose(run(z - shift, changed=user), plain, rtol=0, atol=1e-9)
        assert np.abs(run(z, changed=user) - plain).max() > 0.1  # she is not simply ignored


@each("horizon", [9, 10, 11, 30])
def test_nothing_is_released_at_or_after_the_horizon(horizon):
    """Golden, by hand. Raw rounds after the last release are not even kept; call T + 1 raises."""
    mechanism = make(ends=(4, 10, 20), fade=0.5, multiplier=1.0, horizon=horizon)
    rounds, _ = releases(mechanism, np.ones((horizon, 3, 2)))
    expected = {9: [4], 10: [4], 11: [4, 10], 30: [4, 10, 20]}[horizon]
    assert rounds == expected == list(released_ends((4, 10, 20), horizon))
    assert mechanism.spend.mu == pytest.approx(column_norm(len(expected), 0.5))
    assert mechanism._held == 0
    refused(f"call {horizon + 1} exceeds uses={horizon}", mechanism, np.ones((3, 2)))
    never = make(ends=(5,), fade=0.5, multiplier=0.0, horizon=5)
    assert releases(never, np.ones((5, 3, 2)))[0] == []
    assert never.spend.mu == 0
    assert least_fading_multiplier(0, 0.5, epsilon=1.0, delta=1e-5) == 0.0


def test_mechanisms_show_their_query_in_units_and_integers_round_nobody():
    """Oracle: exact releases are sums of the queries, which the sensitivity bounds, times the
    units."""
    statistic, rng = SecondMoments(n_actions=2, dim=2, context_bound=3.0), np.random.default_rng(4)
    fading = make(statistic, ends=(5,), fade=0.0)
    exact, total = exact_prefix_sum(statistic, horizon=6, refresh_every=1), 0.0
    for t in range(5):
        x, action, reward = rng.standard_normal((3, 2)) * 4, rng.integers(0, 2, 3), rng.random(3)
        user = (x.round().astype(int) if t == 0 else x), action, reward
        query = fading.query(*user)
        np.testing.assert_array_equal(query, exact.query(*user))
        assert np.linalg.norm(query.reshape(3, -1), axis=1).max() <= sqrt(2) * (1 + 1e-12)
        total = total + query * statistic.units
        release = fading(*user)
        np.testing.assert_allclose(exact(*user), total, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(release, total, rtol=1e-12, atol=1e-14)


@each("epsilon", [0.1, 1.0, 10.0])
@each("delta", [1e-8, 1e-4])
@each(("m", "fade"), [(1, 0.0), (5, 0.0), (40, 0.7), (40, 0.99)])
def test_least_multiplier_spends_exactly_epsilon(epsilon, delta, m, fade):
    """Inversion: never more than the target; with fade 0 neither m nor T matters."""
    multiplier = least_fading_multiplier(m, fade, epsilon=epsilon, delta=delta)
    mechanism = make(ends=tuple(range(1, m + 1)), fade=fade, multiplier=multiplier)
    spent = epsilon_of(mechanism.spend.mu, delta)
    assert epsilon * (1 - 1e-6) < spent <= epsilon
    if fade == 0:
        assert multiplier == 1 / mu_of(epsilon, delta)
    assert least_fading_multiplier(m, fade, epsilon=inf, delta=delta) == 0.0


@settings(derandomize=True, deadline=None, max_examples=80)
@given(
    horizon=st.integers(1, 5000),
    first=st.integers(1, 300),
    growth=st.sampled_from([0.0, 0.05, 0.1, 0.5, 1.0, 100.0]),
)
def test_growing_batches(horizon, first, growth):
    """Property: lengths are first (1 + growth)^k rounded up, and none more would end before the
    horizon."""
    ends = growing_batches(horizon, first=first, growth=growth)
    lengths = np.diff([0, *ends])
    assert all(1 <= end < horizon for end in ends)
    assert released_ends(ends, horizon) == ends
    for k, length in enumerate(lengths):
        assert length == pytest.approx(first * (1 + growth) ** k, abs=1 + 1e-6)
        assert length >= first * (1 + growth) ** k * (1 - 1e-9)
    coming = ceil(first * (1 + growth) ** len(ends) * (1 - 1e-9))
    assert (ends[-1] if ends else 0) + coming >= horizon


@each(
    ("call", "sentence"),
    [
        (lambda: make(ends=(4, 2), fade=0.5), r"ends=\(4, 2\) of batches to be increasing"),
        (lambda: make(ends=(2, 2), fade=0.5), "increasing and >= 1"),
        (lambda: make(ends=(0, 2), fade=0.5), "end of a batch=0 to be a whole number >= 1"),
        (lambda: make(ends=(2.5, 4), fade=0.5), "end of a batch=2.5 to be a whole number"),
        (lambda: make(ends=(1, 9, 5), fade=0.5, horizon=3), "increasing and >= 1"),
        (lambda: make(ends=(2,), fade=-0.1), "fade=-0.1"),
        (lambda: make(ends=(2,), fade=1.5), "fade=1.5"),
        (lambda: make(ends=(2,), fade=float("nan")), "fade=nan"),
        (lambda: growing_batches(0, first=1, growth=0.1), "horizon=0 to be a whole number >= 1"),
        (lambda: growing_batches(9, first=0, growth=0.1), "first=0 to be a whole number >= 1"),
        (lambda: growing_batches(9, first=1, growth=-0.1), "growth=-0.1"),
    ],
)
def test_bad_input_gets_one_sentence(call, sentence):
    refused(sentence, call)
