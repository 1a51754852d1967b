"""Noise laws: the sizes promised, and the exact laws of a Wishart matrix."""

from math import sqrt

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.moments import SecondMoments
from dpbandit.privacy.noise import Gaussian, Wishart

COUNT, D, DEGREES, C, B = 40_000, 3, 11.5, 2.0, 1.5
L2 = C**2 + B**2
# moment_weight = sqrt 2 B / C gives every packed coordinate of a Wishart matrix one size
STATISTIC = SecondMoments(
    n_actions=COUNT,
    dim=D,
    context_bound=C,
    reward_low=-B,
    reward_high=B,
    moment_weight=sqrt(2) * B / C,
)


@pytest.fixture(scope="module")
def packed():
    """40,000 independent blocks of one draw in unit scale, (COUNT, D (D + 1) / 2 + D)."""
    return Wishart(DEGREES, STATISTIC).sampler(Streams([3]), "noise")()[0]


@pytest.fixture(scope="module")
def matrices(packed):
    """The same as matrices (COUNT, D, D) and moments (COUNT, D), in the units of the data."""
    gram, moment = STATISTIC.unpack(packed * STATISTIC.units)
    return gram, moment


def spread(x):
    """Mean and variance of a sample, each with its standard error."""
    centred = np.square(x - x.mean())
    return x.mean(), sqrt(centred.mean() / len(x)), centred.mean(), centred.std() / sqrt(len(x))


def test_gaussian_scale():
    """Statistical: chi-square over 20,000 coordinates. False alarm 1e-6 per change of seed; a scale
    5 % off is caught (asserted)."""
    noise = Gaussian(2.5).sampler(Streams([1]), "noise", (100, 200))()
    assert noise.shape == (1, 100, 200)

    def p_value(stddev):
        statistic = np.sum(np.square(noise / stddev))
        return 2 * min(chi2.cdf(statistic, noise.size), chi2.sf(statistic, noise.size))

    assert p_value(2.5) > 1e-6
    assert max(p_value(2.5 * 1.05), p_value(2.5 / 1.05)) < 1e-6


def test_gaussian_of_no_size_is_exactly_zero():
    """By the same code: stddev 0 releases zeros, and the law does not depend on the scale."""
    assert (Gaussian(0.0).sampler(Streams([1]), "noise", (5,))() == 0).all()
    one, two = (Gaussian(s).sampler(Streams([1]), "noise", (5,))() for s in (1.0, 4.0))
    assert (4.0 * one == two).all()


def test_wishart_laws_are_exact(matrices):
    """Statistical: with A the D x D part and b the moment column of W, Anderson's exact laws
    L^-2 u'u / u'A^-1 u ~ chi^2(k - D + 1) for every direction u, and L^-2 b'A^-1 b ~ chi^2(D).
    Three KS tests: false alarm 3e-6 per change of seed; 5 % of scale, one degree of freedom and a
    direction that depends on b are caught (asserted)."""
    gram, b = matrices
    A = gram + DEGREES * L2 * np.eye(D)
    laws = []
    for u in (np.eye(D)[0], np.array([1.0, -2.0, 0.5])):
        quotient = u @ u / np.einsum("i,nij,j->n", u, np.linalg.inv(A), u)
        laws.append((quotient / L2, DEGREES - D + 1))
    laws.append((np.einsum("ni,nij,nj->n", b, np.linalg.inv(A), b) / L2, D))
    for sample, freedom in laws:
        assert kstest(sample, chi2(freedom).cdf, method="asymp").pvalue > 1e-6
        for factor in (1.05**2, 1.05**-2):
            assert kstest(sample * factor, chi2(freedom).cdf, method="asymp").pvalue < 1e-6
        for wrong in (freedom - 1, freedom + 1):
            assert kstest(sample, chi2(wrong).cdf, method="asymp").pvalue < 1e-6


def test_wishart_packed_layout(packed, matrices):
    """Oracle: the vector is (G_ii / C^2, sqrt 2 G_ij / C^2, w m_i / c_u), row by row of the upper
    triangle; with w = sqrt 2 B / C every coordinate has variance 2 k L^4 / C^4 (5.3 errors)."""
    gram, moment = matrices
    at = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)]
    for place, (i, j) in enumerate(at):
        scale = 1 if i == j else sqrt(2)
        np.testing.assert_allclose(packed[:, place], scale * gram[:, i, j] / C**2, rtol=1e-12)
    np.testing.assert_allclose(packed[:, 6:], moment * sqrt(2) / C**2, rtol=1e-12)
    for coordinate in packed.T:
        _, _, variance, error = spread(coordinate)
        assert abs(variance - 2 * DEGREES * L2**2 / C**4) < 5.3 * error


def test_wishart_coordinates_are_uncorrelated_across_and_inside_blocks(packed):
    """Statistical: distinct coordinates of a block, any coordinates of neighbouring blocks, and
    successive nodes have zero correlation, 6 errors for 36 + 81 + 81 pairs: false alarm 4e-7."""
    unit = packed / packed.std(axis=0)
    sampler = Wishart(DEGREES, STATISTIC).sampler(Streams([4]), "noise")
    first, second = sampler()[0], sampler()[0]
    inside = np.tril(unit.T @ unit / COUNT, -1)
    across = unit[::2].T @ unit[1::2] / (COUNT / 2) / sqrt(2)
    later = (first / first.std(axis=0)).T @ (second / second.std(axis=0)) / COUNT
    # products of two entries of one Wishart matrix have at most twice the independent variance
    assert np.abs(inside).max() < 6 * sqrt(2 / COUNT)
    assert np.abs(across).max() < 6 / sqrt(COUNT)
    assert np.abs(later).max() < 6 / sqrt(COUNT)
