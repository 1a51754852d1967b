"""Losses of l_p regressions: public constants in the dual norms, and that they are attained."""

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.domains import Ball, LpBall
from dpbandit.losses import LinearRegression, LogisticRegression, QuantileRegression
from tests.each import each
from tests.losses.families import REGRESSIONS, data, label, points

every_regression = each("loss", REGRESSIONS, ids=label)
ORDERS = (1, 1.2, 1.5, 2, 3.0, np.inf)
M = 1000


def norm(x, order):
    return np.linalg.norm(x, ord=order, axis=-1)


@every_regression
def test_constants_of_the_dual_norm_hold(loss):
    """|g|_q <= L and |g(x) - g(y)|_q <= beta |x - y|_p, by random search."""
    x, y, z = points(loss.domain, M, 1), points(loss.domain, M, 2), data(loss, M)
    p, q = loss.domain.p, loss.order
    assert norm(z[:, :-1], q).max() <= 1 + 1e-12
    g, h = loss.gradient(x, z), loss.gradient(y, z)
    assert norm(g, q).max() <= loss.dual_lipschitz * (1 + 1e-12)
    if loss.dual_smoothness < np.inf:
        assert (norm(g - h, q) <= loss.dual_smoothness * norm(x - y, p) + 1e-12).all()


@each("p", ORDERS)
@each("word", [LinearRegression, LogisticRegression, QuantileRegression])
def test_constants_are_attained(word, p):
    """By hand: the longest admissible a (all entries equal, or e_1) at the end of the ball where
    u = -+radius, with the answer y = +-1 on the other side."""
    loss = word(LpBall(4, p, 1.5))
    e = np.ones(4) if p < 2 else np.eye(4)[0]
    a, end = e / norm(e, loss.order), 1.5 * e / norm(e, p)
    low, high = loss.value_range
    for y in (1.0, -1.0):
        z = np.append(a, y)[None]
        wrong, right = -y * end[None], y * end[None]
        if word is not LogisticRegression:
            right = right / 1.5  # u = y
        g = loss.gradient(wrong, z)
        assert norm(g, loss.order) == pytest.approx(loss.dual_lipschitz)
        assert norm(g, 2) == pytest.approx(loss.lipschitz)
        assert loss.value(wrong, z) == pytest.approx(high)
        assert loss.value(right, z) == pytest.approx(low)
        if loss.dual_smoothness < np.inf:
            step = 1e-4 * end[None]
            turn = loss.gradient(step, z) - loss.gradient(-step, z)
            steepest = loss.dual_smoothness * norm(2 * step, p)
            assert norm(turn, loss.order) == pytest.approx(steepest, rel=1e-6)
            assert norm(turn, 2) == pytest.approx(loss.smoothness * norm(2 * step, 2), rel=1e-6)


def test_constants_of_the_specification():
    """Golden: (y - x.theta)^2 with |x|_q <= 1 in a ball of radius 2, answers within 1.25: beta = 2
    and L = 2 (2 + 1.25) whatever p; in R^20 features are at most 20^(1/6) long for p = 1.5 and
    sqrt(20) for p = 1."""
    for p in ORDERS:
        loss = LinearRegression(LpBall(20, p, 2.0), bound=1.25)
        assert (loss.dual_smoothness, loss.dual_lipschitz) == (2.0, 6.5)
        longest = {1: 20**0.5, 1.2: 20 ** (1 / 3), 1.5: 20 ** (1 / 6)}.get(p, 1.0)
        assert loss.lipschitz == pytest.approx(6.5 * longest)
        assert loss.smoothness == pytest.approx(2 * longest**2)
    orders = [LinearRegression(LpBall(2, p)).order for p in (1, 1.5, 2, 4, np.inf)]
    assert orders == pytest.approx([np.inf, 3, 2, 4 / 3, 1])


def test_values_and_slopes_by_hand():
    """u = 0.5: squares, the pinball on both sides and at the kink; log(1 + e^-0.5)."""
    x, z = np.array([[0.5, 0.0]]), np.array([[1.0, 0.0, 0.2]])
    linear, pinball = LinearRegression(LpBall(2, 1)), QuantileRegression(LpBall(2, 1), 0.9)
    assert linear.value(x, z)[0] == pytest.approx(0.09)
    assert linear.gradient(x, z)[0] == pytest.approx([0.6, 0])
    assert pinball.value(x, z)[0] == pytest.approx(0.03)
    assert pinball.slope(np.array([0.5, 0.5, 0.5]), np.array([0.2, 0.5, 1.0])).tolist() == (
        pytest.approx([0.1, 0.0, -0.9])
    )
    z[0, 2] = 1.0
    assert pinball.value(x, z)[0] == pytest.approx(0.45)
    assert LogisticRegression(LpBall(2, 1)).value(x, z)[0] == pytest.approx(np.log1p(np.e**-0.5))


@every_regression
def test_the_slope_is_the_derivative_of_the_value(loss):
    x, z = points(loss.domain, M, 3), data(loss, M, 3)
    u = np.vecdot(z[:, :-1], x)
    np.testing.assert_array_equal(loss.gradient(x, z), loss.slope(u, z[:, -1])[:, None] * z[:, :-1])


@every_regression
def test_features_are_scaled_into_the_dual_ball(loss):
    """Direction kept, length 1; what is inside is left alone, what is no vector becomes 0."""
    a = np.array([[3.0, -4.0, 0.0][: loss.domain.dim], [0.1] * loss.domain.dim])
    z = loss.admissible(np.column_stack([a, [1e9, -1e9]]))
    assert norm(z[0, :-1], loss.order) == pytest.approx(1)
    np.testing.assert_allclose(z[0, :-1] * -4, a[0] * z[0, 1], atol=1e-12)
    np.testing.assert_array_equal(z[1, :-1], a[1])
    assert z[:, -1].tolist() == [loss.bound, -loss.bound]
    a[0, 1] = np.nan
    assert (loss.admissible(np.column_stack([a, [0, 0]]))[0, :-1] == 0).all()


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: LinearRegression(Ball(3)), "LpBall"),
        (lambda: LinearRegression(LpBall(3, 1), bound=0.0), "bound"),
        (lambda: QuantileRegression(LpBall(3, 1), level=1.0), "level"),
        (lambda: QuantileRegression(LpBall(3, 1), bound=-1.0), "bound"),
        (lambda: LogisticRegression(Ball(3)), "LpBall"),
    ],
)
def test_wrong_constants_are_refused(make, word):
    with pytest.raises(InputError, match=word):
        make()
