"""Prefix sums: the mechanism, its noise, and trees against the binary digits of t."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy import prefix_sums as module
from dpbandit.privacy.calibrated import exact_prefix_sum, noisy_prefix_sum
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.privacy.moments import ClippedVectors, SecondMoments
from dpbandit.privacy.prefix_sums import BLT, PrefixSum, Tree, leaves
from dpbandit.privacy.spends import GaussianSpend
from tests.each import each

WIDE = ClippedVectors(dim=2, bound=1e9)


def two_sided(noise, stddev):
    """The p-value of sum (noise / stddev)^2 ~ chi^2(n)."""
    statistic, n = float(np.sum(np.square(noise / stddev))), noise.size
    return 2 * min(chi2.cdf(statistic, n), chi2.sf(statistic, n))


@pytest.mark.parametrize("every", [1, 4])
def test_noiseless_tree_is_cumsum(every):
    """Oracle: for m up to 40 and about powers of 2 the releases are the cumsum at the ends of full
    batches; a partial last batch, and the full one nobody can act on, release None."""
    users = np.random.default_rng(0).integers(-9, 9, (258 * every, 1, 2)).astype(float)
    sums = users.cumsum(axis=0)
    for m in (*range(1, 41), 63, 64, 65, 127, 128, 255, 256):
        horizon = m * every + 1 + m % every  # all horizons with m leaves take their turn
        tree = Tree().of(lambda: np.zeros((1, 2)), stddev=0.0)
        mechanism = PrefixSum(
            WIDE, tree, GaussianSpend(0, ""), horizon=horizon, refresh_every=every
        )
        assert mechanism.leaves == leaves(horizon, every) == m
        for t in range(horizon):
            release = mechanism(users[t])
            if (t + 1) % every == 0 and (t + 1) // every <= m:
                assert (release == sums[t]).all()
            else:
                assert release is None


@pytest.mark.parametrize("kind", [Tree(), BLT()], ids=str)
def test_call_after_the_last_is_refused(kind):
    """Golden, by hand: T = 8, k = 2 gives m = 3 useful releases after rounds 2, 4, 6 (the one after
    round 8 precedes no action); call 9 raises."""
    mechanism = noisy_prefix_sum(
        kind, WIDE, Streams([1, 2]), horizon=8, refresh_every=2, noise_multiplier=1.0
    )
    released = [mechanism(np.ones((2, 2))) is not None for _ in range(8)]
    assert released == [False, True] * 3 + [False, False]
    with pytest.raises(BudgetExceededError, match="call 9 exceeds uses=8"):
        mechanism(np.ones((2, 2)))


@pytest.mark.parametrize("wrong", [(2, 1), (2,), (2, 2, 2)])
def test_rounds_of_a_wrong_shape_are_refused(wrong):
    """Broadcast over the noise, one number would be released twice for the price of one."""
    mechanism = noisy_prefix_sum(
        Tree(), WIDE, Streams([1, 2]), horizon=8, refresh_every=1, noise_multiplier=1.0
    )
    with pytest.raises(InputError, match="shape"):
        mechanism(np.ones(wrong))


def test_leaves_by_hand():
    """Golden: m = floor((T - 1) / k): the release after round T, or after it, reaches nobody."""
    table = {(1, 1): 0, (2, 1): 1, (10, 1): 9, (10, 5): 1, (11, 5): 2, (10, 10): 0, (5, 9): 0}
    assert {key: leaves(*key) for key in table} == table
    empty = exact_prefix_sum(WIDE, horizon=1, refresh_every=1)
    assert empty(np.ones((2, 2))) is None
    assert empty.spend.mu == 0


def test_fenwick_cover_is_the_binary_decomposition():
    """Oracle: with the j-th node noise replaced by the j-th unit vector, a prefix shows its nodes:
    popcount(t) of them, of lengths the set bits of t, tiling 1..t; and the leaf in most nodes of
    the first m prefixes is in exactly bit_length(m) = column_norm^2 of them."""
    count = 300
    fresh = iter(np.eye(count))
    tree = Tree().of(lambda: next(fresh), stddev=2.0)
    used = np.zeros(count, dtype=bool)
    for t in range(1, count + 1):
        ids = np.flatnonzero(tree()) + 1
        used[ids - 1] = True
        cover = [s for i in ids for s in range(i - (i & -i) + 1, i + 1)]
        assert cover == list(range(1, t + 1))
        assert sorted(i & -i for i in ids) == [1 << b for b in range(10) if t >> b & 1]
        assert tree.stddev == 2.0 * sqrt(t.bit_count())
        touched = np.zeros(t + 1, dtype=int)
        for i in np.flatnonzero(used) + 1:
            touched[i - (i & -i) + 1 : i + 1] += 1
        assert touched.max() == touched[1] == t.bit_length()
        assert Tree().column_norm(t) ** 2 == pytest.approx(t.bit_length(), rel=1e-15)


@each("shape", ["vectors", "moments"])
@each(("kind", "last"), [(Tree(), 7), (Tree(), 23), (BLT(), 5), (BLT(), 40)], ids=str)
def test_released_noise_has_the_reported_size(kind, last, shape):
    """Statistical: chi-square over 20,000 coordinates of a mechanism fed zeros, for the size
    `.stddev` reports. False alarm 1e-6 per case and change of seed; a scale 5 % off is caught
    (asserted)."""
    if shape == "vectors":
        statistic, user = ClippedVectors(dim=20_000, bound=0.25), (np.zeros((1, 20_000)),)
    else:
        statistic = SecondMoments(n_actions=4_000, dim=2, context_bound=3.0, reward_high=0.5)
        user = (np.zeros((1, 2)), np.zeros(1, dtype=int), np.zeros(1))
    mechanism = noisy_prefix_sum(
        kind, statistic, Streams([5]), horizon=64, refresh_every=1, noise_multiplier=6.0
    )
    for _ in range(last):
        noise = mechanism(*user) / statistic.units
    column = np.cumsum([1.0, *(module._INV_SCALE @ module._INV_DECAY[:, None] ** range(last - 1))])
    by_hand = sqrt(last.bit_count()) if kind == Tree() else np.linalg.norm(column)  # of A C^-1
    size = 6.0 * by_hand * (0.5 if shape == "vectors" else sqrt(4.5))  # times the sensitivity
    assert mechanism.stddev == pytest.approx(size, rel=1e-12)
    assert two_sided(noise, size) > 1e-6
    assert two_sided(noise, 1.05 * size) < 1e-6
    assert two_sided(noise, 0.95 * size) < 1e-6


def test_the_mechanism_shows_its_query_in_units():
    """Oracle: what the sensitivity bounds is the clipped round in units, the release is the sum of
    rounds itself: exact releases of 5 rounds are the cumulated queries times the units."""
    statistic, rng = SecondMoments(n_actions=2, dim=2, context_bound=3.0), np.random.default_rng(4)
    mechanism, total = exact_prefix_sum(statistic, horizon=6, refresh_every=1), 0.0
    for _ in range(5):
        user = rng.standard_normal((3, 2)) * 4, rng.integers(0, 2, 3), rng.standard_normal(3)
        query = mechanism.query(*user)
        assert np.linalg.norm(query.reshape(3, -1), axis=1).max() <= sqrt(2) * (1 + 1e-12)
        total = total + query * statistic.units
        np.testing.assert_allclose(mechanism(*user), total, rtol=1e-12, atol=1e-14)
