"""The constants of Shariff and Sheffet, by hand, and the tail bound they are compared with."""

from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import ShariffSheffet, Target, tail_bound
from dpbandit.privacy.moments import SecondMoments

STATISTIC = SecondMoments(n_actions=2, dim=3, context_bound=2.0, reward_high=1.5)
TARGET = Target(epsilon=0.5, delta=1e-4, horizon=1000, refresh_every=1)
L2 = 2.0**2 + 1.5**2
M = 11  # 1 + ceil(log2 1000)


def gamma(theirs):
    """The bound on the noise's norm that the agent computes, in the units of the Gram matrix."""
    spectrum = theirs.spectrum(0.05)
    return spectrum.gram_factor * spectrum.stddev * 2.0**2 / sqrt(2), spectrum.shift_factor


def test_gaussian_constants_by_hand():
    """Golden: s = 4 sqrt(m) L^2 ln(4/delta) / eps, Upsilon = s sqrt(2m) (4 sqrt(D) + 2 ln(2T/a));
    the spectrum [Upsilon, 3 Upsilon] is that of a shift by 2 Upsilon."""
    theirs = ShariffSheffet(STATISTIC, TARGET, "gaussian")
    s = 4 * sqrt(M) * L2 * log(4e4) / 0.5
    assert theirs.stddev * 2.0**2 / sqrt(2) == pytest.approx(s, rel=1e-12)
    upsilon = s * sqrt(2 * M) * (4 * sqrt(3) + 2 * log(2000 / 0.05))
    assert gamma(theirs) == (pytest.approx(upsilon, rel=1e-12), 2.0)


def test_wishart_constants_by_hand():
    """Golden: k and Upsilon as printed; a shift by 3/2 Upsilon of a spectrum in +-Upsilon/2."""
    theirs = ShariffSheffet(STATISTIC, TARGET, "wishart")
    k = 4 + int(224 * M / 0.25 * log(8e4 * M) * log(2e4)) + 1
    assert theirs.degrees == k
    upsilon = 4 * sqrt(M * k) * L2 * (sqrt(3) + sqrt(2 * log(8000 / 0.05)))
    assert gamma(theirs) == (pytest.approx(upsilon / 2, rel=1e-12), 3.0)


@pytest.mark.parametrize("noise", ["gaussian", "wishart"])
@pytest.mark.parametrize("printed", [True, False])
def test_without_privacy_there_is_no_noise(noise, printed):
    """By hand: one user's round comes back as it went in."""
    theirs = ShariffSheffet(STATISTIC, TARGET._replace(epsilon=inf), noise, printed=printed)
    assert theirs.stddev == 0.0
    datum = (np.array([[1.0, 0.0, 1.0]]), np.array([1]), np.array([0.5]))
    release = theirs.sums(Streams([0]))(*datum)
    np.testing.assert_array_equal(release, STATISTIC.total(*(a[None] for a in datum)))


def test_symmetric_noise_stays_inside_the_tail_bound():
    """Statistical, fixed seed: of 2,000 symmetric Gaussian matrices with stddev 1 off the diagonal
    none has a norm above the bound for T = 1 and failure 0.05, which allows 100, and all are above
    half of it: the bound is not idle."""
    rng, D = np.random.default_rng(0), 20
    Z = rng.standard_normal((2000, D, D))
    norms = np.linalg.norm((Z + Z.transpose(0, 2, 1)) / sqrt(2), ord=2, axis=(1, 2))
    bound = tail_bound(D, 1, failure=0.05).gram_factor
    assert bound / 2 < norms.min()
    assert norms.max() < bound
