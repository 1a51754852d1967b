"""Prefix sums: trees against the binary digits of t, the BLT against its dense matrices."""

from math import sqrt

import numpy as np
import pytest
from scipy.linalg import toeplitz
from scipy.stats import chi2

from dpbandit.inputs import BadInput
from dpbandit.privacy import prefix_sums as module
from dpbandit.privacy.calibrate import exact_prefix_sum, gaussian_prefix_sum, least_multiplier
from dpbandit.privacy.gdp import mu_of
from dpbandit.privacy.ledger import GaussianSpend
from dpbandit.privacy.mechanism import BudgetExceeded
from dpbandit.privacy.prefix_sums import BLTNoise, PrefixSum, TreeNoise, leaves, mu_after
from dpbandit.privacy.statistics import ClippedVectors
from dpbandit.streams import Streams

WIDE = ClippedVectors(dim=2, bound=1e9)


class Known:
    """A source of normals whose numbers the test chose, (n, R, *shape) in all."""

    def __init__(self, z):
        self.z, self.next = z, 0

    def take(self, count):
        self.next += count
        return self.z[self.next - count : self.next]


def coefficients(decay, scale, count):
    """c_0 = 1, c_{k+1} = sum_j scale_j decay_j^k, as privacy.md section 4 prints it."""
    return np.concatenate([[1.0], scale @ decay[:, None] ** np.arange(count - 1)])


def dense_rows(count):
    """B = A C^-1 with A the prefix sums and C^-1 solved from C, nothing of the recursion."""
    C = np.tril(toeplitz(coefficients(module._BUF_DECAY, module._OUTPUT_SCALE, count)))
    return np.linalg.solve(C.T, np.tril(np.ones((count, count))).T).T


def two_sided(noise, stddev):
    """The p-value of sum (noise / stddev)^2 ~ chi^2(n)."""
    statistic, n = float(np.sum(np.square(noise / stddev))), noise.size
    return 2 * min(chi2.cdf(statistic, n), chi2.sf(statistic, n))


@pytest.mark.parametrize("every", [1, 4])
def test_noiseless_tree_is_cumsum(every):
    """Oracle: for every m in 1..300 the releases are numpy's cumsum at the ends of full batches;
    a partial last batch, and the full one nobody can act on, release None; then it refuses."""
    users = np.random.default_rng(0).integers(-9, 9, (301 * every, 3, 2)).astype(float)
    sums = users.cumsum(axis=0)
    for m in range(1, 301):
        horizon = m * every + 1 + m % every  # all horizons with m leaves take their turn
        tree = TreeNoise(lambda: np.zeros((3, 2)), stddev=0.0)
        door = PrefixSum(WIDE, tree, GaussianSpend(0, ""), horizon=horizon, refresh_every=every)
        assert door.leaves == leaves(horizon, every) == m
        for t in range(horizon):
            release = door(users[t])
            if (t + 1) % every == 0 and (t + 1) // every <= m:
                assert (release == sums[t]).all()
            else:
                assert release is None


@pytest.mark.parametrize("kind", ["tree", "blt"])
def test_call_after_the_last_is_refused(kind):
    """Golden, by hand: T = 8, k = 2 gives m = 3 useful releases after rounds 2, 4, 6 (the one after
    round 8 precedes no action); call 9 raises."""
    door = gaussian_prefix_sum(
        kind, WIDE, Streams([1, 2]), horizon=8, refresh_every=2, noise_multiplier=1.0
    )
    released = [door(np.ones((2, 2))) is not None for _ in range(8)]
    assert released == [False, True] * 3 + [False, False]
    with pytest.raises(BudgetExceeded, match="call 9 exceeds uses=8"):
        door(np.ones((2, 2)))


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
    tree = TreeNoise(lambda: next(fresh), stddev=2.0)
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
        assert TreeNoise.column_norm(t) ** 2 == pytest.approx(t.bit_length(), rel=1e-15)


def test_nodes_of_one_release_popcount():
    """Golden: every node noise equal to 1 makes N_t = popcount(t)."""
    tree = TreeNoise(lambda: np.ones((2, 1)), stddev=1.0)
    assert all((tree() == t.bit_count()).all() for t in range(1, 301))


@pytest.mark.parametrize(("kind", "last"), [("tree", 7), ("tree", 23), ("blt", 5), ("blt", 40)])
def test_released_noise_has_the_reported_size(kind, last):
    """Statistical: chi-square over 20,000 coordinates of a door fed zeros, for the size `.stddev`
    reports. False alarm 1e-6 per case and change of seed; a scale 5 % off is caught (asserted)."""
    statistic = ClippedVectors(dim=20_000, bound=0.25)
    door = gaussian_prefix_sum(
        kind, statistic, Streams([5]), horizon=64, refresh_every=1, noise_multiplier=6.0
    )
    for _ in range(last):
        noise = door(np.zeros((1, 20_000)))
    by_hand = sqrt(last.bit_count()) if kind == "tree" else np.linalg.norm(dense_rows(64)[last - 1])
    assert door.stddev == pytest.approx(6.0 * 0.5 * by_hand, rel=1e-12)  # sensitivity 2 x 0.25
    assert two_sided(noise, door.stddev) > 1e-6
    assert two_sided(noise, 1.05 * door.stddev) < 1e-6
    assert two_sided(noise, 0.95 * door.stddev) < 1e-6


def test_blt_is_the_dense_matrix_at_64():
    """Oracle: fed with the columns of the identity as known z, the blocked recursion is the dense
    B = A C^-1 entry by entry; with random z in several replicas it is B z."""
    blt = BLTNoise(Known(np.eye(64)[:, None]), stddev=1.0)
    streamed = np.array([blt()[0] for _ in range(64)])
    np.testing.assert_allclose(streamed, dense_rows(64), rtol=0, atol=2e-13)
    z = np.random.default_rng(1).standard_normal((64, 3, 2, 2))
    blt = BLTNoise(Known(z), stddev=1.0)
    dense = np.einsum("ts,srij->trij", dense_rows(64), z)
    for row in dense:
        np.testing.assert_allclose(blt(), row, rtol=0, atol=64 * 2e-13)


def test_inverse_parameters_invert_c():
    """Oracle: the product of C and C^-1 (first columns, convolved) is the identity at T = 3000."""
    c = coefficients(module._BUF_DECAY, module._OUTPUT_SCALE, 3000)
    inverse = coefficients(module._INV_DECAY, module._INV_SCALE, 3000)
    identity = np.convolve(c, inverse)[:3000]
    np.testing.assert_allclose(identity, np.eye(3000)[0], rtol=0, atol=2e-13)


def test_blt_column_norm():
    """Golden: 1.797 1.987 2.171 2.331 at 10^3..10^6 (privacy.md section 4), and oracle: the closed
    form is the direct sum of c_k^2 for short and long streams; nothing to release costs nothing."""
    printed = [f"{BLTNoise.column_norm(10**n):.3f}" for n in (3, 4, 5, 6)]
    assert printed == ["1.797", "1.987", "2.171", "2.331"]
    c = coefficients(module._BUF_DECAY, module._OUTPUT_SCALE, 10**5)
    for m in (1, 2, 3, 17, 1000, 10**5):
        direct = sqrt(np.sum(c[:m] ** 2))
        assert BLTNoise.column_norm(m) == pytest.approx(direct, rel=1e-12)
    assert BLTNoise.column_norm(0) == TreeNoise.column_norm(0) == mu_after(0, 0.0) == 0


def test_blt_reports_the_norm_of_its_row():
    """Oracle: `.stddev` after t releases is |row t of the dense B| for t in 1..200."""
    blt, rows = BLTNoise(Known(np.zeros((208, 1))), stddev=3.0), dense_rows(200)
    for t in range(200):
        blt()
        assert blt.stddev == pytest.approx(3.0 * np.linalg.norm(rows[t]), rel=1e-12)


def test_blt_refuses_more_than_a_million_releases():
    """A million is served, one more is refused by the norm and by the calibration alike."""
    target = {"refresh_every": 1, "epsilon": 1.0, "delta": 1e-5}
    assert least_multiplier("blt", horizon=10**6 + 1, **target) > 0
    with pytest.raises(BadInput, match="at most 1000000"):
        least_multiplier("blt", horizon=10**6 + 2, **target)
    assert least_multiplier("tree", horizon=10**6 + 2, **target) > 0


def test_worst_prefixes_at_ten_thousand():
    """Golden, privacy.md sections 2 and 4, with m = 10^4 leaves, sensitivity 1, target (1, 1e-4):
    a tree node has sqrt(14) / mu = 11.92; its worst prefix t = 8191 has 13 nodes, 42.98; in units
    1 / mu = sqrt(1 / 2 rho) max sqrt(14 x 13) = 13.49 and rms 9.51 over t = 1..m; BLT 4.01 / 3.84.
    Printed 12.74 for the worst BLT prefix is 3.998 / mu, the exact square root's (the sum of its
    c_k^2); the BLT's own is 0.4 % larger, 12.78."""
    mu, m = mu_of(1.0, 1e-4), 10_000
    tree = TreeNoise(lambda: np.zeros(1), stddev=TreeNoise.column_norm(m))
    blt = BLTNoise(Known(np.zeros((m, 1))), stddev=BLTNoise.column_norm(m))
    sizes = {}
    for name, noise in (("tree", tree), ("blt", blt)):
        sizes[name] = np.array([(noise(), noise.stddev)[1] for _ in range(m)])
    root = np.cumprod(np.concatenate([[1.0], 1 - 0.5 / np.arange(1, m)]))
    figures = [
        TreeNoise.column_norm(m) / mu,
        *(f(sizes["tree"]) for f in (np.max, lambda s: sqrt(np.mean(s**2)))),
        *(f(sizes["blt"]) for f in (np.max, lambda s: sqrt(np.mean(s**2)))),
        np.max(sizes["tree"]) / mu,
        np.max(sizes["blt"]) / mu,
        np.sum(root**2) / mu,
    ]
    printed = ["11.92", "13.49", "9.51", "4.01", "3.84", "42.98", "12.78", "12.74"]
    assert [f"{x:.2f}" for x in figures] == printed


@pytest.mark.parametrize("dim", [1, 3])
@pytest.mark.parametrize("kind", ["tree", "blt"])
def test_replicas_do_not_depend_on_their_company(kind, dim):
    """Oracle: six replicas equal groups of 2, 3 and 1 joined, bit for bit, over several blocks."""
    users = np.random.default_rng(2).standard_normal((50, 6, dim))

    def releases(chosen):
        door = gaussian_prefix_sum(
            kind,
            ClippedVectors(dim=dim),
            Streams([10 + i for i in chosen]),
            horizon=51,
            refresh_every=1,
            noise_multiplier=2.0,
        )
        return np.array([door(users[t, chosen]) for t in range(50)])

    groups = [releases(chosen) for chosen in ([0, 1], [2, 3, 4], [5])]
    assert (releases([0, 1, 2, 3, 4, 5]) == np.concatenate(groups, axis=1)).all()
