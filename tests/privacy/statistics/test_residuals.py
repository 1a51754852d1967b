"""Scores of residuals: how far one user moves them, at every reference point."""

from math import inf, nan, sqrt

import numpy as np
import pytest
from scipy.special import expit

from dpbandit.base.inputs import InputError
from dpbandit.privacy.statistics.residuals import SaleResiduals, score_lengths
from dpbandit.privacy.statistics.signed_residuals import SignedResiduals

SIGNS = SignedResiduals(n_actions=3, dim=3, reward_low=-0.5)
SALES = SaleResiduals(dim=3, features=2)
POINTS = [0.0, 1.0, -7.0, 40.0, 1e3, 1e155, 1e300, inf, -inf, nan]
"""Sizes of reference points: the origin, moderate, at the edge of the ball, and no numbers."""


def anybody(rng, count, dim):
    """Rows (count, dim) and answers (count,): honest users, at the bounds, and no numbers."""
    x = rng.standard_normal((count, dim)) * (rng.random((count, dim)) < 0.7)
    with np.errstate(all="ignore"):
        x *= 10.0 ** rng.choice([0, 0, 1, -9, 9, -162, -320, 155, 300], size=(count, 1))
        x[rng.random(count) < 0.05] *= rng.choice([nan, inf, -inf])
    return x, rng.choice([0.0, 1.0, 0.5, -1e9, 1e308, 5e-324, nan, inf, -inf], count)


def queries(statistic, *users):
    """What each adds alone, in units: the users are replicas of one round."""
    with np.errstate(all="ignore"):
        return statistic.total(*(part[None] for part in users)) / statistic.units


def furthest(vectors):
    assert np.isfinite(vectors).all()
    return max(np.linalg.norm(vectors - one, axis=1).max() for one in vectors)


@pytest.mark.parametrize("size", POINTS)
def test_no_two_users_are_further_apart_at_any_reference_point(size):
    """Brute force: all pairs of 900 users, at random parameters of one size."""
    rng = np.random.default_rng(1)
    phi, y = anybody(rng, 900, 3)
    with np.errstate(invalid="ignore"):
        theta = np.broadcast_to(size * rng.standard_normal(3), (900, 3))
    assert furthest(queries(SALES, theta, phi, y)) <= SALES.sensitivity * (1 + 1e-9)
    weights, arm = np.abs(theta) if size > 1 else np.ones_like(theta), rng.integers(0, 3, 900)
    for threshold in (0.2, size):
        users = theta, weights, np.full(900, threshold), phi, arm, y
        assert furthest(queries(SIGNS, *users)) <= SIGNS.sensitivity * (1 + 1e-9)


def test_the_bound_is_not_idle():
    """Golden: customers at cosine -1/2, prices at opposite ends, both at cosine -3/4: 3.5 of the 4,
    and 4.5 w^2 whole; the same row sold and not sold, at p = 1/2, moves the scores by 2."""
    phi = np.array([[1.0, 0.0, 1.0], [-0.5, sqrt(0.75), -1.0], [1.0, 0.0, 1.0]]) / sqrt(2)
    a, b, c = queries(SALES, np.zeros((3, 3)), phi, np.array([1.0, 1.0, 0.0]))
    assert (a - b) @ (a - b) == pytest.approx(3.5 + 4.5 * 0.35**2, rel=1e-12)
    assert (a - c) @ (a - c) == pytest.approx(4.0, rel=1e-12)
    assert SALES.sensitivity == pytest.approx(sqrt(4 + 4.5 * 0.35**2), rel=1e-15)


def test_the_bound_of_signs_is_attained():
    """Golden: the same arm and context, a large residual of one sign and a small one of the other:
    2 v apart and 2 c apart. Two arms of three are at product -0.2 in their codes."""
    x, theta, ones = np.tile([0.6, 0.8, 0.0], (3, 1)), np.zeros((3, 3)), np.ones((3, 3))
    arm, r = np.array([0, 0, 1]), np.array([1.0, 0.2, 1.0])  # of middle 0.25
    a, b, c = queries(SIGNS, theta, ones, np.full(3, 0.2), x, arm, r)
    assert np.linalg.norm(a - b) == pytest.approx(SIGNS.sensitivity, rel=1e-12)
    assert SIGNS.sensitivity == pytest.approx(2 * sqrt(1 + 0.15**2), rel=1e-15)
    assert a[:-1] @ c[:-1] == pytest.approx((-0.75 / 3) / (1 - 0.75 / 3), rel=1e-12)


def test_sums_of_signs():
    """Oracle: a plain loop over users in codes q_a; and noise of covariance G^-1 when unpacked."""
    rng, (n, R) = np.random.default_rng(2), (9, 4)
    theta, weights, x = rng.random((3, n, R, 3))
    threshold, r, arm = rng.random((n, R)), rng.random((n, R)) - 0.5, rng.integers(0, 3, (n, R))
    expected, often = np.zeros((R, 3, 3)), np.zeros(R)
    for t in range(n):
        for i in range(R):
            u = x[t, i] / np.linalg.norm(x[t, i])
            v, e = weights[t, i] * u, r[t, i] - 0.25 - theta[t, i] @ u
            expected[i] += np.sign(e) * np.outer(SIGNS.codes[arm[t, i]], v / np.linalg.norm(v))
            often[i] += 1 if abs(e) > threshold[t, i] else -1
    total = SIGNS.total(theta, weights, threshold, x, arm, r)
    np.testing.assert_allclose(total[:, :-1], expected.reshape(R, 9), atol=1e-14)
    by_arm, counts = SIGNS.unpack(total)
    np.testing.assert_allclose(counts, often, atol=1e-12)
    np.testing.assert_allclose(SIGNS.codes.T @ by_arm, expected, atol=1e-14)
    np.testing.assert_allclose(SIGNS.codes @ SIGNS.codes.T, SIGNS.gram, atol=1e-15)
    np.testing.assert_allclose(np.diag(SIGNS.gram), 1, atol=1e-15)
    back = np.linalg.inv(SIGNS.codes).T
    np.testing.assert_allclose(back @ back.T, np.linalg.inv(SIGNS.gram), atol=1e-14)


def test_sums_are_scores_and_moments():
    """Oracle: a plain loop over users, each at a reference point of her own; and the inverse of the
    packing. `score_lengths` says how long the likelihood's scores were made."""
    rng = np.random.default_rng(0)
    x, price = rng.uniform(-0.7, 0.7, (9, 4, 2)), rng.uniform(-1, 1, (9, 4, 1))
    phi, theta = np.concatenate([x, price], axis=-1) / sqrt(2), rng.standard_normal((9, 4, 3))
    y = 1.0 * (rng.random((9, 4)) < 0.5)
    scores, first, second = SALES.unpack(SALES.total(theta, phi, y))
    p = expit((phi * theta).sum(-1))
    expected = (score_lengths(phi, p) * (y - p))[..., None] * phi
    np.testing.assert_allclose(scores, expected.sum(axis=0), atol=1e-14)
    np.testing.assert_allclose(first, x.sum(axis=0), atol=1e-14)
    np.testing.assert_allclose(second, np.einsum("nri,nrj->rij", x, x), atol=1e-14)


def test_what_says_nothing_adds_nothing():
    """A row of zeros, or of no numbers; an answer that is none counts as no sale."""
    theta, nothing = np.full((1, 3), -0.3), np.array([0.0])
    for row in ([0.0, 0, 0], [nan, 1, 1], [inf, 0, 0]):
        assert (queries(SALES, theta, np.array([row]), nothing) == 0).all()
    phi = np.full((1, 3), 0.4)
    silent = queries(SALES, theta, phi, np.array([nan]))
    np.testing.assert_array_equal(silent, queries(SALES, theta, phi, nothing))


@pytest.mark.parametrize("dim", [1, 2, 17])
def test_replicas_do_not_know_each_other(dim):
    """Sums of five replicas equal those of lone ones, difference 0.0."""
    rng, statistic = np.random.default_rng(dim), SaleResiduals(dim=dim + 1, features=dim)
    for n in (1, 5, 64):
        users = rng.random((n, 5, dim + 1)), rng.random((n, 5, dim + 1)), rng.random((n, 5))
        together = statistic.total(*users)
        for r in range(5):
            alone = statistic.total(*(part[:, r : r + 1] for part in users))
            np.testing.assert_array_equal(together[r : r + 1], alone)
        signs = SignedResiduals(n_actions=2, dim=dim + 1)
        users = users[0], *users[:1], users[2], users[1], 1 * (users[2] < 0.3), users[2]
        together = signs.total(*users)
        for r in range(5):
            alone = signs.total(*(part[:, r : r + 1] for part in users))
            np.testing.assert_array_equal(together[r : r + 1], alone)


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"features": 4}, "features=4 <= dim=3"),
        ({"features": 0}, "features=0 to be a whole number >= 1"),
        ({"moment_weight": 0.0}, "moment_weight=0.0 to be a finite number > 0"),
    ],
)
def test_bad_input_gets_one_sentence(fields, sentence):
    with pytest.raises(InputError, match=sentence):
        SaleResiduals(**{"dim": 3, "features": 2, **fields})


def test_codes_need_a_share_of_what_arms_have_in_common():
    with pytest.raises(InputError, match=r"common=0.0 to be a number in \[0.001, 1\]"):
        SignedResiduals(n_actions=2, dim=1, common=0.0)
    with pytest.raises(InputError, match="spread_weight=0"):
        SignedResiduals(n_actions=2, dim=1, spread_weight=0)
