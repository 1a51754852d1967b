"""One-point estimates and locally private values: clips, sensitivity, unbiasedness, noise."""

from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit.base.arrays import norms
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Hypersimplex
from dpbandit.privacy.batches import LocalSums, LocalValues, OnePointEstimates
from dpbandit.privacy.ledger import ROUNDING
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.privacy.prefix_sums import Exact, PrefixSum
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.privacy.spends import GaussianSpend


def estimates(k=3, **changed):
    return OnePointEstimates(**{"dim": k, "zeta": 0.25, "low": -1.0, "high": 2.0, **changed})


def sphere(seed, *shape):
    g = np.random.default_rng(seed).standard_normal(shape)
    return g / norms(g)


def test_estimates_are_what_the_definition_says():
    """Oracle: one number at a time, values inside, at, beyond the bounds and no numbers at all."""
    y = np.array([[0.5, 2.0], [7.0, -9.0], [np.nan, np.inf], [-np.inf, 1.0]])
    clipped = [[0.5, 2.0], [2.0, -1.0], [-1.0, -1.0], [-1.0, 1.0]]
    u, statistic = sphere(0, 4, 2, 3), estimates(offset=0.5)
    expected = np.zeros((2, 3))
    for t in range(4):
        for r in range(2):
            expected[r] += 3 / 0.25 * (clipped[t][r] - 0.5) * u[t, r]
    np.testing.assert_allclose(statistic.total(y, u), expected, rtol=0, atol=1e-13)
    for kind in (np.int8, np.uint8, np.float32, np.int64):
        total = statistic.total(np.full((1, 1), 100, dtype=kind), u[:1, :1])
        np.testing.assert_allclose(total, 12 * 1.5 * u[0, :1], atol=1e-13)


def test_sensitivity_is_attained_and_never_passed():
    """W k / zeta = 3 x 3 / 0.25, between the two ends of the range, whatever the offset."""
    extreme = np.array([-1e9, -1.0, np.nan, 0.3, 2.0, 1e300, np.inf])
    u = sphere(1, 1, 7, 3)
    for offset in (0.0, 0.5, -4.0):
        statistic = estimates(offset=offset)
        assert statistic.sensitivity == 36
        moves = [
            np.linalg.norm(statistic.total(extreme[None], u) - statistic.total(y[None], u), axis=1)
            for y in (np.roll(extreme, i) for i in range(7))
        ]
        assert np.max(moves) == pytest.approx(36, rel=1e-12)
        longest = np.linalg.norm(statistic.total(extreme[None], u), axis=1).max()
        assert longest <= statistic.bound * (1 + ROUNDING)


X = np.array([0.3, -0.2, 0.1, 0.0, 0.4])
ZETA = 0.2


def z_scores(sample, gradient):
    error = sample.std(axis=0, ddof=1) / sqrt(len(sample))
    return (sample.mean(axis=0) - gradient) / error


def test_one_point_estimates_are_unbiased_and_other_factors_are_not():
    """Statistical: a quadratic, a million draws. The smoothed gradient of 1/2 |x - c|^2 is x - c,
    exactly. |z| < 5 in five coordinates (false alarm 3e-6); zeta / L in place of k / zeta fails."""
    c = np.array([-0.1, 0.3, 0.2, -0.5, 0.1])
    u = sphere(4, 1_000_000, 5)
    y = np.square(X + ZETA * u - c).sum(axis=1) / 2
    sample = estimates(5, zeta=ZETA).estimate(y[None], u[None])
    assert np.abs(z_scores(sample, X - c)).max() < 5
    assert np.abs(z_scores(ZETA / 2 * y[:, None] * u, X - c)).max() > 100


def test_one_point_estimates_are_unbiased_in_a_subspace():
    """Statistical, as above, in the k = N - 1 dimensions of vectors that sum to 0: the mean is
    what the subspace sees of the gradient. N in place of k fails."""
    domain = Hypersimplex(6, 3)
    Q, k, c = domain.basis, 5, np.array([0.1, 0.9, 0.4, 0.2, 0.8, 0.5])
    u = sphere(5, 500_000, k)
    x = domain.centre + ZETA * domain.embedded(u)
    y = np.square(x - c).sum(axis=1) / 2
    wanted = Q.T @ (domain.centre - c)
    sample = estimates(k, zeta=ZETA).estimate(y[None], u[None])
    assert np.abs(z_scores(sample, wanted)).max() < 5
    assert np.abs(z_scores(6 / k * sample, wanted)).max() > 5


def local(replicas=2, **changed):
    settings = {"low": -1.0, "high": 2.0, "noise_multiplier": 0.0, **changed}
    return LocalValues(Streams(range(replicas)), **settings)


def test_local_values_are_clipped_and_shifted():
    values = local(4, offset=0.5)
    released = values(np.array([0.5, 7.0, np.nan, -np.inf]))
    assert released.tolist() == [0.0, 1.5, -1.5, -1.5]
    assert values.sensitivity == 3
    assert values.spend.pure == inf


def test_local_values_of_a_wrong_shape_are_refused():
    """Values (R, 1) beside noise (R,) make (R, R): each value released R times."""
    with pytest.raises(InputError, match="shape"):
        local(4)(np.ones((4, 1)))


@pytest.mark.parametrize(("law", "variance"), [("laplace", 2.0), ("gaussian", 1.0)])
def test_local_noise_has_the_promised_size(law, variance):
    """Statistical: 40,000 values, false alarm 1e-6; 4 % in scale is caught (asserted). Laplace
    sizes are exponential, 2 x their sum chi-square with two degrees each."""
    values, honest = local(40, noise_multiplier=0.5, law=law), np.full(40, 0.7)
    noise = (np.array([values(honest) for _ in range(1000)]) - 0.7) / (0.5 * 3)
    for scale, fits in ((1.0, True), (1.04, False)):
        total, degrees = np.square(noise * scale).sum(), 40_000
        if law == "laplace":
            total, degrees = 2 * np.abs(noise * scale).sum(), 80_000
        p = 2 * min(chi2.cdf(total, degrees), chi2.sf(total, degrees))
        assert (p > 1e-6) == fits
    assert np.square(noise).mean() == pytest.approx(variance, rel=0.1)


def test_local_values_cost_one_release_for_every_horizon():
    assert local(noise_multiplier=0.5).spend == LaplaceSpend(2.0, note="local laplace values")
    gaussian = local(noise_multiplier=0.5, law="gaussian").spend
    assert gaussian == GaussianSpend(2.0, "local Gaussian values")
    assert local(noise_multiplier=0.5, uses=0).spend.pure == 0
    assert local(noise_multiplier=0.5, law="gaussian", uses=0).spend.mu == 0
    values = local(uses=2)
    values(np.zeros(2))
    values(np.zeros(2))
    with pytest.raises(BudgetExceededError):
        values(np.zeros(2))


def test_local_sums_without_noise_are_exact_prefix_sums():
    """Oracle: the same values through a prefix sum without noise; releases at the same rounds."""
    statistic = estimates(offset=0.25)
    sums = LocalSums(local(4, offset=0.25), statistic, refresh_every=3)
    exact = PrefixSum(statistic, Exact(), GaussianSpend(inf, ""), horizon=99, refresh_every=3)
    y, u = np.random.default_rng(6).standard_normal((11, 4)), sphere(7, 11, 4, 3)
    for t in range(11):
        one, two = sums(y[t], u[t]), exact(y[t], u[t])
        assert (one is None) == (two is None) == (t % 3 != 2)
        if one is not None:
            np.testing.assert_array_equal(one, two)


@pytest.mark.parametrize(
    "wrong",
    [{"dim": 0}, {"zeta": 0.0}, {"zeta": -1.0}, {"low": 2.0}, {"high": inf}, {"offset": np.nan}],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(InputError, match="Expected"):
        estimates(**wrong)
