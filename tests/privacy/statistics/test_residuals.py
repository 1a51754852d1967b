"""Signed directions and scores of residuals: how far one user moves them."""

from math import inf, nan, sqrt

import numpy as np
import pytest
from hypothesis import example, given, settings, strategies as st
from hypothesis.extra import numpy as hnp
from scipy.spatial.distance import pdist
from scipy.special import expit

from dpbandit.privacy.residuals import (
    CentredResiduals,
    SaleResiduals,
    SignedDirections,
    SignedResiduals,
    SlateResiduals,
    score_lengths,
)
from tests.each import each, refused

BLOCKS = SignedDirections(n_actions=3, dim=2)
DIFFERENCE = SignedDirections(n_actions=2, dim=2, layout="difference")
TINY = 1e-200
"""A length whose square is 0 in double precision."""


def user(statistic, x, action, reward):
    """Return the contribution of one user of one replica, (blocks, d)."""
    x, action, reward = np.array(x)[None, None], np.array([[action]]), np.array([[reward]])
    with np.errstate(all="ignore"):  # users that are no numbers
        return statistic.total(x, action, reward)[0]


def test_values_by_hand():
    """Golden: (3, -4) / 5 in the row of the arm, with the sign of reward - centre; opposite rewards
    on the same arm move it by 2, two arms' blocks by sqrt(2), and in the difference two arms with
    the same reward by 2 again."""
    x, up, down = [3.0, -4.0], np.array([0.6, -0.8]), np.array([-0.6, 0.8])
    np.testing.assert_allclose(user(BLOCKS, x, 1, 9.0), [0 * up, up, 0 * up])
    np.testing.assert_allclose(user(BLOCKS, x, 2, -0.1), [0 * up, 0 * up, down])
    centred = SignedDirections(n_actions=3, dim=2, centre=10.0)
    np.testing.assert_allclose(user(centred, x, 0, 9.0), [down, 0 * up, 0 * up])
    for arm, reward, wanted in ((0, 9.0, up), (1, 9.0, down), (1, -9.0, up)):
        np.testing.assert_allclose(user(DIFFERENCE, x, arm, reward), [wanted])
    for statistic, one, two, apart in (
        (BLOCKS, (1, 1.0), (1, -1.0), 2), (BLOCKS, (1, 1.0), (2, -1.0), sqrt(2)),
        (BLOCKS, (1, 1.0), (2, 1.0), sqrt(2)), (DIFFERENCE, (0, 1.0), (1, 1.0), 2),
    ):  # fmt: skip
        moved = np.linalg.norm(user(statistic, x, *one) - user(statistic, x, *two))
        assert moved == pytest.approx(apart, rel=1e-15)
    assert BLOCKS.sensitivity == DIFFERENCE.sensitivity == 2


def test_no_direction_adds_nothing():
    """x = 0, sign(0), and anything that is no number. Exactly the direction where a square can be
    held, and never longer than 1."""
    for statistic in (BLOCKS, DIFFERENCE):
        for x in ([0.0, 0.0], [0.3, np.nan], [np.inf, 0.4]):
            assert (user(statistic, x, 0, 1.0) == 0).all()
        for reward in (0.0, np.nan, np.inf, -np.inf):
            assert (user(statistic, [0.3, 0.4], 0, reward) == 0).all()
    for scale in (1e-320, TINY, 1e-162, 1e-155, 1e-100, 1e100, 1e150):
        found = user(DIFFERENCE, [3 * scale, -4 * scale], 0, 1.0)
        assert np.linalg.norm(found) <= 1 + 1e-9
        if scale > 1e-150:
            np.testing.assert_allclose(found, [[0.6, -0.8]])


def test_sums_and_layouts():
    """Oracle: a plain loop over users; the difference is block 0 minus block 1."""
    rng = np.random.default_rng(0)
    x, a, r = rng.standard_normal((9, 4, 3)), rng.integers(0, 2, (9, 4)), rng.random((9, 4)) - 0.3
    blocks = SignedDirections(n_actions=2, dim=3, centre=0.1)
    difference = SignedDirections(n_actions=2, dim=3, layout="difference", centre=0.1)
    expected = np.zeros((4, 2, 3))
    for t, i in np.ndindex(9, 4):
        expected[i, a[t, i]] += np.sign(r[t, i] - 0.1) * x[t, i] / np.linalg.norm(x[t, i])
    np.testing.assert_allclose(blocks.total(x, a, r), expected, atol=1e-14)
    gap = expected[:, :1] - expected[:, 1:]
    np.testing.assert_allclose(difference.total(x, a, r), gap, atol=1e-14)
    assert (blocks.shape, difference.shape) == ((2, 3), (1, 3))


numbers = st.one_of(
    st.floats(width=64),
    st.floats(-2, 2),
    st.sampled_from([0.0, TINY, -TINY, 5e-324, 1e-162, 1e-155, 1e154, 1e155, -1e308, np.inf]),
)
contexts = st.one_of(
    hnp.arrays(np.float64, 2, elements=numbers),
    hnp.arrays(np.float32, 2, elements=st.floats(width=32)),
    *(hnp.arrays(kind, 2) for kind in (np.int64, np.int8, np.uint16)),
)
users = st.tuples(contexts, st.integers(0, 1), st.one_of(numbers, st.integers(-(2**63), 2**63 - 1)))
tiny = (np.array([TINY, 0.0]), 0, 1.0)


@pytest.mark.parametrize("statistic", [BLOCKS, DIFFERENCE], ids=["blocks", "difference"])
@settings(derandomize=True, deadline=None, max_examples=100)
@given(one=users, two=users)
@example(one=tiny, two=tiny)
@example(one=(np.array([1e-162, 1e-162]), 0, 1.0), two=tiny)
@example(one=(np.array([5e-324, 1e-308]), 1, 1.0), two=tiny)
def test_no_user_moves_it_by_more(statistic, one, two):
    """Property: extreme, silent, integer, infinite and vanishing users are finite and at most 1
    long, so that any two of them are at most 2 apart."""
    a, b = user(statistic, *one), user(statistic, *two)
    for moved in (a, b):
        assert np.isfinite(moved).all()
        assert np.linalg.norm(moved) <= 1 + 1e-9
    assert np.linalg.norm(a - b) <= statistic.sensitivity * (1 + 1e-9)


SIGNS = SignedResiduals(n_actions=3, dim=3, reward_low=-0.5)
LEVELS = SignedResiduals(n_actions=3, dim=3, reward_low=-0.5, level_weight=0.2)
CENTRED = SignedResiduals(
    n_actions=3, dim=3, reward_low=-0.5, level_weight=0.2, constant=0.6
)  # fmt: skip
ANSWERS = CentredResiduals(n_actions=3, dim=3, reward_low=-0.5)
SALES = SaleResiduals(dim=3, features=2)
SLATES = SlateResiduals(dim=3)
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
    """Return each user's contribution alone, in units: users are replicas of one round."""
    with np.errstate(all="ignore"):
        return statistic.total(*(part[None] for part in users)) / statistic.units


def furthest(vectors):
    assert np.isfinite(vectors).all()
    return pdist(vectors).max()


@each("size", POINTS)
def test_no_two_users_are_further_apart_at_any_reference_point(size):
    """Brute force: all pairs of 400 users, at random parameters of one size."""
    rng = np.random.default_rng(1)
    phi, y = anybody(rng, 400, 3)
    with np.errstate(invalid="ignore"):
        theta = np.broadcast_to(size * rng.standard_normal(3), (400, 3))
    assert furthest(queries(SALES, theta, phi, y)) <= SALES.sensitivity * (1 + 1e-9)
    aimed = anybody(rng, 400, 3)[0]
    assert furthest(queries(SALES, theta, phi, y, aimed)) <= SALES.sensitivity * (1 + 1e-9)
    weights, arm = np.abs(theta) if size > 1 else np.ones_like(theta), rng.integers(0, 3, 400)
    for threshold in (0.2, size):
        users = theta, weights, np.full(400, threshold), phi, arm, y
        assert furthest(queries(SIGNS, *users)) <= SIGNS.sensitivity * (1 + 1e-9)
        for place in ((0.1, 0.2, 0.3, 1.0), (0.1, 0.2, 0.3, 0.0), (size, size, size, size)):
            law = np.tile(place, (400, 1)).T
            users = theta, weights, np.full(400, threshold), *law, phi, arm, y
            assert furthest(queries(LEVELS, *users)) <= LEVELS.sensitivity * (1 + 1e-9)
    longer = np.column_stack([theta[:, :1], theta])
    wide = np.abs(longer) if size > 1 else np.ones_like(longer)
    law = np.tile((0.1, 0.2, 0.3, 1.0), (400, 1)).T
    users = longer, wide, np.full(400, 0.2), *law, theta, phi, arm, y
    assert furthest(queries(CENTRED, *users)) <= CENTRED.sensitivity * (1 + 1e-9)
    for trust in (0.0, 1.0, size):
        users = longer, np.full(400, trust), theta, phi, arm, y
        assert furthest(queries(ANSWERS, *users)) <= ANSWERS.sensitivity * (1 + 1e-9)
    slates, y = anybody(rng, 400 * 4, 3)
    slates = slates.reshape(400, 4, 3)
    slates[:40, 1:] = slates[:40, :1]  # rows that are all the same
    slates[40:80, 1:] = 0.0
    point = np.tile(size * rng.standard_normal(4), (400, 1))
    for trust in (0.0, 1.0, size):
        users = point, np.full(400, trust), slates, rng.integers(0, 4, 400), y[:400]
        vectors = queries(SLATES, *users)
        assert furthest(vectors) <= SLATES.sensitivity * (1 + 1e-9)
        assert np.linalg.norm(vectors[:, :4], axis=1).max() <= sqrt(1.09) * (1 + 1e-9)
        assert np.linalg.norm(vectors[:, 4:], axis=1).max() <= 0.275 * (1 + 1e-9)


def test_bounds_are_attained():
    """Golden. Sales: customers at cosine -1/2, prices at opposite ends, both at cosine -3/4: 3.5 of
    the 4, and 4.5 w^2 whole; the same row sold and not sold, at p = 1/2, moves the scores by 2.
    Signs: the same arm and context, a large residual of one sign and a small one of the other: 2 v
    apart and 2 c apart. Two arms of three are at product -0.2 in their codes."""
    phi = np.array([[1.0, 0.0, 1.0], [-0.5, sqrt(0.75), -1.0], [1.0, 0.0, 1.0]]) / sqrt(2)
    a, b, c = queries(SALES, np.zeros((3, 3)), phi, np.array([1.0, 1.0, 0.0]))
    assert (a - b) @ (a - b) == pytest.approx(3.5 + 4.5 * 0.35**2, rel=1e-12)
    assert (a - c) @ (a - c) == pytest.approx(4.0, rel=1e-12)
    assert SALES.sensitivity == pytest.approx(sqrt(4 + 4.5 * 0.35**2), rel=1e-15)
    x, theta, ones = np.tile([0.6, 0.8, 0.0], (3, 1)), np.zeros((3, 3)), np.ones((3, 3))
    arm, r = np.array([0, 0, 1]), np.array([1.0, 0.2, 1.0])  # of middle 0.25
    a, b, c = queries(SIGNS, theta, ones, np.full(3, 0.2), x, arm, r)
    assert np.linalg.norm(a - b) == pytest.approx(SIGNS.sensitivity, rel=1e-12)
    assert SIGNS.sensitivity == pytest.approx(2 * sqrt(1 + 0.15**2), rel=1e-15)
    assert a[:-1] @ c[:-1] == pytest.approx((-0.75 / 3) / (1 - 0.75 / 3), rel=1e-12)


def test_the_bound_of_slates_is_attained():
    """Golden: opposite rows of two slates on orthogonal lines say the opposite, of unlike moments:
    2 sqrt(1 + c^2) and w clip sqrt(2), but for the angle between the rows."""
    lines = np.eye(3)[[0, 1]]
    slates = np.stack([lines, -lines], axis=1)  # (2, 2, 3): rows x and -x
    slates[1, 0] = [-0.8, 0.6, 0.0]  # nearly opposite to what slate 0 is about
    slates[1, 1] = -slates[1, 0]
    start, trust, action = np.zeros((2, 4)), np.zeros(2), np.zeros(2, np.int64)
    a, b = queries(SLATES, start, trust, slates, action, np.array([1.0, 1.0]))
    c, d = queries(SLATES, start, trust, slates[[0, 0]], action, np.array([1.0, 0.0]))
    assert (a - b)[:4] @ (a - b)[:4] == pytest.approx(2 + 2 * 0.8, rel=1e-12)
    assert (c - d)[:4] @ (c - d)[:4] == pytest.approx(4 * 1.09, rel=1e-12)
    moments = 2 * 0.275**2 * (1 - 0.8**2)  # <M, M'> is the squared cosine
    assert (a - b)[4:] @ (a - b)[4:] == pytest.approx(moments, rel=1e-12)
    assert SLATES.sensitivity == pytest.approx(sqrt(4 * 1.09 + 2 * 0.275**2), rel=1e-15)


def test_what_tells_the_level():
    """Golden: the coordinate for the level of rewards, of residuals 0.1 and 0.5 over widths 0.2 and
    0.4, with h = 0.8 and so weights 0.8 and sqrt(1.04 - 0.64); its bound is attained."""
    x, theta, ones = np.tile([0.6, 0.8, 0.0], (2, 1)), np.zeros((2, 3)), np.ones((2, 3))
    law = np.tile([0.25, 0.2, 0.4, 0.8], (2, 1)).T
    users = theta, ones, np.full(2, 0.2), *law, x, np.zeros(2, np.int64), np.array([0.6, 1.0])
    scores, large, level = LEVELS.unpack(queries(LEVELS, *users))
    np.testing.assert_allclose(scores[:, 0], [0.4 * x[0], 0.8 * x[1]], atol=1e-12)
    np.testing.assert_allclose(large, [-1, 1])
    np.testing.assert_allclose(level, np.sqrt(0.4) * np.array([0.25, 1.0]))
    users = *users[:-1], np.array([1.0, -0.5])
    a, b = queries(LEVELS, *users)
    # both large: only a small residual differs in that, too
    apart = sqrt(LEVELS.sensitivity**2 - 4 * 0.15**2)
    assert np.linalg.norm(a - b) == pytest.approx(apart, rel=1e-12)


@pytest.mark.parametrize("rows", [1, 2, 5])
def test_sums_of_slates(rows):
    """Oracle: a plain loop over users, each at a reference point of her own; also a slate of one
    row, whose contrast is a quarter of it."""
    rng, (n, R) = np.random.default_rng(4), (9, 4)
    statistic = SlateResiduals(dim=3, context_bound=2.0)
    theta, trust = rng.standard_normal((n, R, 4)), rng.random((n, R))
    x = rng.uniform(-1, 1, (n, R, rows, 3))
    arm, y = rng.integers(0, rows, (n, R)), 1.0 * (rng.random((n, R)) < 0.5)
    scores, moments = statistic.unpack(statistic.total(theta, trust, x, arm, y))
    expected, second = np.zeros((R, 4)), np.zeros((R, 3, 3))
    for t in range(n):
        for i in range(R):
            slate, direction = x[t, i] / 2, theta[t, i, 1:] / np.linalg.norm(theta[t, i, 1:])
            q = expit(theta[t, i, 0] + theta[t, i, 1:] @ slate[arm[t, i]])
            p = 0.5 + trust[t, i] * (q - 0.5)
            z = slate - (1 - 0.25 * trust[t, i]) * slate.mean(axis=0)
            v = z[arm[t, i]] - 0.7 * (z[arm[t, i]] @ direction) * direction
            weight = (y[t, i] - p) / max(p, 1 - p)
            expected[i] += weight * np.append(0.3, v / np.linalg.norm(v))
            z = slate - 0.75 * slate.mean(axis=0)
            u = z / np.linalg.norm(z, axis=1, keepdims=True)
            M = u.T @ u / rows
            second[i] += M * min(1, 0.55 / np.linalg.norm(M))
    np.testing.assert_allclose(scores, expected, atol=1e-14)
    np.testing.assert_allclose(moments, second, atol=1e-14)


def test_sums_of_signs():
    """Oracle: a plain loop over users in codes q_a, of signs and of residuals over max(p, 1 - p);
    and noise of covariance G^-1 when unpacked."""
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
    by_arm, counts, nothing = SIGNS.unpack(total)
    assert nothing is None
    np.testing.assert_allclose(counts, often, atol=1e-12)
    np.testing.assert_allclose(SIGNS.codes.T @ by_arm, expected, atol=1e-14)
    np.testing.assert_allclose(SIGNS.codes @ SIGNS.codes.T, SIGNS.gram, atol=1e-15)
    np.testing.assert_allclose(np.diag(SIGNS.gram), 1, atol=1e-15)
    trust, centre, y = threshold / 2, rng.random((n, R, 3)), (r + 0.5) / 1.5
    sums, residuals = np.zeros((2, R, 3, 4))
    theta, wide = (np.concatenate([one, one[..., :1]], axis=-1) for one in (theta, weights))
    for t, i in np.ndindex(n, R):
        away = x[t, i] - centre[t, i]
        u = np.append(0.6, 0.8 * away / np.linalg.norm(away))
        p = 0.5 + trust[t, i] * (min(max(theta[t, i] @ u, 0), 1) - 0.5)
        sums[i] += (y[t, i] - p) / max(p, 1 - p) * np.outer(ANSWERS.codes[arm[t, i]], u)
        e = np.clip((r[t, i] - 0.25 - theta[t, i] @ u - 0.1) / threshold[t, i], -1, 1)
        v = wide[t, i] * u / np.linalg.norm(wide[t, i] * u)
        residuals[i] += e * np.outer(CENTRED.codes[arm[t, i]], v)
    centred = ANSWERS.total(theta, trust, centre, x, arm, r)
    np.testing.assert_allclose(centred.reshape(R, 3, 4), sums)
    law = np.full((n, R), 0.1), threshold, np.full((n, R), 0.3), np.ones((n, R))
    found = CENTRED.total(theta, wide, threshold, *law, centre, x, arm, r)
    np.testing.assert_allclose(found[:, :12].reshape(R, 3, 4), residuals)
    assert not CENTRED.total(theta, wide, threshold, *law, centre, x + np.nan, arm, r).any()
    back = np.linalg.inv(SIGNS.codes).T
    np.testing.assert_allclose(back @ back.T, np.linalg.inv(SIGNS.gram), atol=1e-14)


def test_sums_are_scores_and_moments():
    """Oracle: a plain loop over users, each at a reference point of her own; and the inverse of the
    packing."""
    rng = np.random.default_rng(0)
    x, price = rng.uniform(-0.7, 0.7, (9, 4, 2)), rng.uniform(-1, 1, (9, 4, 1))
    phi, theta = np.concatenate([x, price], axis=-1) / sqrt(2), rng.standard_normal((9, 4, 3))
    y = 1.0 * (rng.random((9, 4)) < 0.5)
    scores, first, second = SALES.unpack(SALES.total(theta, phi, y))
    p = expit((phi * theta).sum(-1))
    expected = (score_lengths(phi, p) * (y - p))[..., None] * phi
    np.testing.assert_allclose(scores, expected.sum(axis=0), atol=1e-14)
    along = phi * np.array([1.0, 2.0, -3.0])
    aimed, *_ = SALES.unpack(SALES.total(theta, phi, y, along))
    expected = (score_lengths(along, p) * (y - p))[..., None] * along
    np.testing.assert_allclose(aimed, expected.sum(axis=0), atol=1e-14)
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
    point, arm = (np.full((1, 4), 0.3), np.ones(1)), np.array([0])
    slate = np.array([[[0.3, 0.4, 0], [0, 0, 0.5]]])
    silent = queries(SLATES, *point, slate, arm, np.array([nan]))
    np.testing.assert_array_equal(silent, queries(SLATES, *point, slate, arm, nothing))
    assert silent.any()
    only_intercept = queries(SLATES, *point, np.zeros((1, 2, 3)), arm, nothing)
    assert (only_intercept[:, 1:] == 0).all()
    assert only_intercept[0, 0] == pytest.approx(-0.3, rel=1e-15)
    for row in (0, 1):
        broken = slate.copy()
        broken[0, row, 1] = nan
        assert (queries(SLATES, *point, broken, arm, nothing) == 0).all()


@each("dim", [1, 2, 17, 33, 50])
def test_replicas_do_not_know_each_other(dim):
    """Sums of a block of rounds of five replicas equal those of lone ones, difference 0.0."""
    rng = np.random.default_rng(dim)
    for n in (1, 5, 30, 64):
        x, theta = rng.standard_normal((2, n, 5, dim))
        y = rng.random((n, 5))
        arm, point = 1 * (y < 0.3), np.concatenate([y[..., None], theta], axis=-1)
        slates = np.stack([x, theta, x - theta], axis=2) - 0.5
        for statistic, users in (
            (SignedDirections(n_actions=2, dim=dim, layout="difference"), (x, arm, y - 0.5)),
            (SignedDirections(n_actions=5, dim=dim), (x, arm + 2, y - 0.5)),
            (SaleResiduals(dim=dim, features=max(dim - 1, 1)), (theta, x, y)),
            (SlateResiduals(dim=dim), (point, y, slates, arm, y)),
            (SignedResiduals(n_actions=2, dim=dim), (theta, theta, y, x, arm, y)),
        ):
            lone = [statistic.total(*(v[:, i : i + 1].copy() for v in users)) for i in range(5)]
            np.testing.assert_array_equal(statistic.total(*users), np.concatenate(lone))


@each(
    ("kind", "settings", "sentence"),
    [
        (SignedDirections, {"layout": "blocs"}, "did you mean blocks"),
        (SignedDirections, {"layout": "difference"}, "n_actions=3 to be 2 for layout='difference'"),
        (SaleResiduals, {"features": 4}, "features=4 <= dim=3"),
        (SaleResiduals, {"features": 0}, "features=0 to be a whole number >= 1"),
        (SaleResiduals, {"moment_weight": 0.0}, "moment_weight=0.0 to be a finite number > 0"),
        (SlateResiduals, {"common": 1.1}, r"common=1.1 to be a number in \[0, 1\]"),
        (SlateResiduals, {"along": 1.1}, r"along=1.1 to be a number in \[0, 1\]"),
        (SignedResiduals, {"common": 0.0}, r"common=0.0 to be a number in \[0.001, 1\]"),
        (SignedResiduals, {"spread_weight": 0}, "spread_weight=0"),
    ],
)
def test_bad_input_gets_one_sentence(kind, settings, sentence):
    needed = {"features": 2} if kind is SaleResiduals else {}
    if kind in (SignedDirections, SignedResiduals):
        needed["n_actions"] = 3
    refused(sentence, kind, **{"dim": 3, **needed, **settings})
