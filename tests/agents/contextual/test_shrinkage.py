"""Shrinkage: empirical Bayes against a dense EM, and what it wins on dense and sparse means."""

from math import exp, log, pi, sqrt

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import nct, norm

from dpbandit.agents.contextual.moments import SHRINKAGES, empirical_bayes, raw, soft_threshold
from tests.each import each

VARIANCES = [0.0] + [0.25 * 1024 ** (k / 10) for k in range(11)]
"""0, then 1/4 to 256 in ten equal ratios."""


def dense_em(z, steps=30):
    """Oracle, one replica: the EM of a scale mixture in logarithms, with scalar loops.

    One more imagined observation, of which it is known that its mean is 0, joins every M step.
    """
    log_likelihood = [
        [-(x**2) / (2 * (1 + v)) - 0.5 * log(2 * pi * (1 + v)) for v in VARIANCES] for x in z
    ]
    log_weight = [-log(len(VARIANCES))] * len(VARIANCES)
    for step in range(steps + 1):
        shares = []
        for row in log_likelihood:
            joint = [a + b for a, b in zip(row, log_weight, strict=True)]
            total = np.logaddexp.reduce(joint)
            shares.append([exp(j - total) for j in joint])
        if step < steps:
            counts = [sum(share[k] for share in shares) + (k == 0) for k in range(len(VARIANCES))]
            log_weight = [log(c / (len(z) + 1)) if c > 0 else -np.inf for c in counts]
    return [
        sum(p * x * v / (1 + v) for p, v in zip(share, VARIANCES, strict=True))
        for x, share in zip(z, shares, strict=True)
    ]


@pytest.mark.parametrize("kind", ["null", "dense", "sparse", "one", "large"])
def test_empirical_bayes_is_the_dense_em(kind):
    rng = np.random.default_rng(1)
    means = {
        "null": np.zeros((2, 20)),
        "dense": 2 * rng.standard_normal((2, 20)),
        "sparse": 8.0 * (rng.random((2, 20)) < 0.1),
        "one": np.array([[1.0], [-3.0], [0.0]]),
        "large": 60 * rng.standard_normal((2, 20)),
    }[kind]
    z = means + rng.standard_normal(means.shape)
    np.testing.assert_allclose(empirical_bayes(z), [dense_em(row) for row in z], rtol=1e-9)


def test_posterior_mean_of_a_known_prior_by_hand():
    """Golden: soft thresholding by hand; raw is the identity; one huge z is left nearly alone,
    z v / (1 + v) with the largest v = 256."""
    z = np.array([[2.5, -0.4, -1.0, -3.0, 0.0]])
    np.testing.assert_allclose(soft_threshold(z), [[1.5, 0, 0, -2.0, 0]])
    np.testing.assert_array_equal(raw(z), z)
    assert empirical_bayes(np.array([[300.0]])).item() == pytest.approx(300 * 256 / 257, rel=1e-6)
    assert set(SHRINKAGES) == {"none", "soft-threshold", "empirical-bayes"}


shapes = hnp.array_shapes(min_dims=2, max_dims=2, max_side=30)
vectors = st.one_of(
    hnp.arrays(np.float64, shapes, elements=st.floats(-30, 30)),
    hnp.arrays(np.float64, shapes, elements=st.floats(-1e4, 1e4)),
)


@pytest.mark.parametrize("name", sorted(SHRINKAGES))
@settings(derandomize=True, deadline=None, max_examples=50)
@given(z=vectors)
def test_nothing_grows_or_changes_its_sign(name, z):
    """Property, for z as large as a million rounds without noise make it."""
    estimate = SHRINKAGES[name](z)
    assert estimate.shape == z.shape
    assert (np.abs(estimate) <= np.abs(z)).all()
    assert (estimate * z >= 0).all()


@each("name", sorted(SHRINKAGES))
@each("n", [1, 8, 50, 600])
def test_replicas_do_not_know_each_other(name, n):
    """Six replicas equal lone ones, difference exactly 0.0."""
    z = 3 * np.random.default_rng(n).standard_normal((6, n))
    lone = np.concatenate([SHRINKAGES[name](z[i : i + 1].copy()) for i in range(6)])
    np.testing.assert_array_equal(SHRINKAGES[name](z), lone)


def risks(means, seed):
    """Mean squared error over 100 coordinates, by name: (R,)."""
    z = means + np.random.default_rng(seed).standard_normal(means.shape)
    return {name: np.square(shrink(z) - means).mean(axis=1) for name, shrink in SHRINKAGES.items()}


def better(worse, ours):
    """Student's t of the paired gain, and the power against a gain of half of it at 5 errors."""
    gain = worse - ours
    error = gain.std(ddof=1) / sqrt(len(gain))
    return gain.mean() / error, nct.sf(5, len(gain) - 1, gain.mean() / 2 / error)


@pytest.mark.parametrize(
    ("kind", "beaten"),
    [
        ("dense", ["none", "soft-threshold"]),
        ("sparse", ["none", "soft-threshold"]),
        ("null", ["none", "soft-threshold"]),
    ],
)
def test_risk_is_below_that_of_what_needs_no_fitting(kind, beaten):
    """Statistical, paired over 300 vectors of 100 coordinates: dense means N(0, 1), five means of
    +-5 among zeros, zeros. One-sided at 5 standard errors, false alarm below 1e-6 a case if the
    risks were equal. Power: half of the gain that is seen would be found with probability 0.99
    (asserted)."""
    rng = np.random.default_rng(2)
    means = {
        "dense": rng.standard_normal((300, 100)),
        "sparse": 5.0 * rng.choice([-1, 1], (300, 100)) * (np.arange(100) < 5),
        "null": np.zeros((300, 100)),
    }[kind]
    risk = risks(means, seed=3)
    for name in beaten:
        t, power = better(risk[name], risk["empirical-bayes"])
        assert t > 5
        assert power > 0.99


def test_risk_is_near_that_of_knowing_the_prior():
    """Golden: with means N(0, 1) known the posterior mean z / 2 has risk 1/2; fitting the prior to
    100 coordinates costs at most 10 % more. The mean over 300 vectors has an error of 0.4 %; false
    alarm below 1e-6 at the risk measured (0.52), and soft thresholding fails by far (asserted)."""
    means = np.random.default_rng(4).standard_normal((300, 100))
    risk = risks(means, seed=5)
    known = 0.5
    limit = 1.1 * known
    ours, soft = risk["empirical-bayes"], risk["soft-threshold"]
    error = ours.std(ddof=1) / sqrt(300)
    assert ours.mean() < limit
    assert norm.sf((limit - 0.52) / error) < 1e-6
    assert soft.mean() > limit
