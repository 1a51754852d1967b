"""Exact scores: they are the log-likelihood ratios they are said to be."""

import numpy as np
import pytest
from scipy.stats import laplace, multivariate_normal

from dpbandit.auditing.ratios import LaplaceRatio, gumbel_ratio, matched_filter, outcomes
from dpbandit.auditing.scores import Columns
from dpbandit.base.inputs import InputError
from dpbandit.privacy.choices.noisy_vertex import NoisyVertex
from tests.auditing.mechanisms import (
    GDP,
    gaussian_tree,
    laplace_scores,
    shown,
    tree_scores,
    vertices,
)
from tests.broken.leaks import HalfTheNoise


def seen(values):
    return Columns(values, ("releases",) * values.shape[1], np.full(values.shape[1], False))


def test_matched_filter_is_the_ratio_of_normal_densities():
    """Oracle: scipy's densities, up to a constant."""
    rng = np.random.default_rng(1)
    root, gap, v = rng.normal(size=(3, 3)), np.array([1.0, -2.0, 0.5]), rng.normal(size=(50, 3))
    covariance = root @ root.T
    ratio = [multivariate_normal(mean, covariance).logpdf(v) for mean in (np.zeros(3), gap)]
    score = matched_filter(gap, covariance)(seen(v))
    np.testing.assert_allclose(np.ptp(ratio[1] - ratio[0] - score), 0, atol=1e-9)
    with pytest.raises(InputError, match="covariance"):
        matched_filter(gap, np.eye(2))


def test_matched_filter_of_a_tree_has_its_whole_mu():
    """Golden: the worlds' mean scores are exactly mu standard deviations apart, for the leaf that
    is in every level of the tree. Statistical: 20,000 runs, standard deviation to 3 % (6 sigma)."""
    score = tree_scores()["matched filter"]
    one, two = (score(gaussian_tree()(world, [(0, 0)] * 20_000)) for world in (0, 1))
    np.testing.assert_allclose(two - one, (two - one)[0])  # twins share their noise
    assert (two - one)[0] / one.std() == pytest.approx(GDP.mu, rel=0.03)


def test_laplace_ratio():
    """Oracle: scipy's densities."""
    rng = np.random.default_rng(2)
    v, first, second = rng.normal(size=(50, 2)), np.array([0.0, 1.0]), np.array([2.0, 0.5])
    ratio = [laplace.logpdf(v, loc=mean, scale=1.5).sum(axis=1) for mean in (first, second)]
    score = LaplaceRatio(first, second, 1.5)(seen(v))
    np.testing.assert_allclose(score, ratio[1] - ratio[0], atol=1e-8)


def test_equal_ratios_are_equal_numbers():
    """Property: beyond both means the ratio is constant, to the last bit. Were it not, digits that
    differ between 1 + x and x would tell the worlds apart."""
    far = np.random.default_rng(3).exponential(size=(10_000, 1))
    assert np.unique(laplace_scores()["ratio"](seen(1 + far))).tolist() == [1.0]
    assert np.unique(laplace_scores()["ratio"](seen(-far))).tolist() == [-1.0]
    sample = vertices()
    both = np.concatenate([shown(sample(world, [(1, 2)] * 2000)) for world in (0, 1)])
    exact = np.unique(both)
    assert len(exact) < 500
    assert np.diff(exact).min() > 1e-8


def test_outcomes_add_up_over_columns():
    fair, coin = np.array([0.5, 0.5]), np.array([0.25, 0.75])
    never = np.array([1.0, 0.0])
    score = outcomes((fair, coin), (fair, coin), (never, fair), (fair, never))
    found = score(seen(np.array([[0, 1, 0, 0], [1, 1, 1, 1]], dtype=float)))
    expected = [np.log(0.5 * 1.5 * 0.5 * 2), np.log(1.5**2) + 700 - 700]
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("kind", [NoisyVertex, HalfTheNoise])
def test_gumbel_ratios_are_ratios(kind):
    """Statistical: a log-likelihood ratio L obeys E_A[e^L] = 1, so does the honest mechanism's with
    all its adaptive steps; 40,000 runs, 5 standard errors (false alarm 6e-7). With half the noise
    the claimed ratio is another function, and its mean is off (asserted)."""
    L = shown(vertices(kind)(0, [(3, 4)] * 40_000))
    weight = np.exp(L)
    off = abs(weight.mean() - 1) / (weight.std() / np.sqrt(len(L)))
    assert (off < 5) == (kind is NoisyVertex)


def test_gumbel_ratio_by_hand():
    """Golden: two candidates, scale 1: P(0) = 1/2 in A, e / (1 + e) in B."""
    found = gumbel_ratio(np.array([0, 1]), np.zeros((2, 2)), np.tile([1.0, 0.0], (2, 1)), 1.0)
    expected = [np.log(2 * np.e / (1 + np.e)), np.log(2 / (1 + np.e))]
    np.testing.assert_allclose(found, expected, atol=1e-9)
