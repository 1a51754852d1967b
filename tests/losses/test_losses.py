"""Losses are convex, their subgradients true, and what they declare is never violated; those of l_p
regressions also in the dual norms."""

from dataclasses import replace

import numpy as np
import pytest

from dpbandit.domains import Ball, Hypersimplex, LpBall, Simplex
from dpbandit.losses import (
    Experts,
    Kink,
    Linear,
    LinearRegression,
    LogisticRegression,
    OffsetQuadratic,
    Quadratic,
    QuantileRegression,
    Squared,
    TiltedQuadratic,
)
from tests.each import each, refused
from tests.losses.families import (
    FAMILIES,
    PRICES,
    REGRESSIONS,
    WITHOUT_PROJECTION,
    data,
    label,
    points,
)

every_family = each("loss", FAMILIES, ids=label)
every_regression = each("loss", REGRESSIONS, ids=label)
ORDERS = (1, 1.2, 1.5, 2, 3.0, np.inf)
M = 1000  # random points and data


@every_family
def test_subgradients_lie_below(loss):
    """f(y) >= f(x) + <g, y - x> + H/2 |y - x|^2: convex, strongly so, and g a subgradient; and
    where the loss is smooth, |g(x) - g(y)| <= beta |x - y|. Central differences along V agree where
    f is smooth: at random points, almost surely."""
    x, y, z = points(loss.domain, M, 1), points(loss.domain, M, 2), data(loss, M)
    lower = loss.value(x, z) + np.vecdot(loss.gradient(x, z), y - x)
    lower += loss.curvature / 2 * ((y - x) ** 2).sum(1)
    assert (loss.value(y, z) >= lower - 1e-9).all()
    turn = loss.domain.coordinates(loss.gradient(x, z) - loss.gradient(y, z))
    away = np.linalg.norm(x - y, axis=1)
    if loss.smoothness < np.inf:
        assert (np.linalg.norm(turn, axis=1) <= loss.smoothness * away + 1e-9).all()
    x, z = points(loss.domain, M, 3) * 0.9 + 0.1 * loss.domain.centre, data(loss, M, 3)
    u = loss.domain.embedded(np.random.default_rng(0).standard_normal((M, loss.domain.affine_dim)))
    h = 1e-6
    slope = (loss.value(x + h * u, z) - loss.value(x - h * u, z)) / (2 * h)
    wrong = np.abs(slope - np.vecdot(loss.gradient(x, z), u)) > 1e-4
    assert wrong.mean() < 0.003  # a kink within 1e-6


@every_family
def test_constants_hold(loss):
    """Random search finds no gradient above the Lipschitz constant and no value outside of the
    range, and comes near to both bounds."""
    x, z = points(loss.domain, 10 * M, 4), data(loss, 10 * M, 4)
    steepest = np.linalg.norm(loss.domain.coordinates(loss.gradient(x, z)), axis=1).max()
    values, (low, high) = loss.value(x, z), loss.value_range
    assert steepest <= loss.lipschitz * (1 + 1e-12)
    assert low - 1e-12 <= values.min() <= values.max() <= high + 1e-12
    assert steepest > 0.6 * loss.lipschitz
    assert values.max() - values.min() > 0.4 * (high - low)


def test_by_hand():
    """Golden: the constants of the specification's reference problems, W = 2 R = 2.44949 on U(3, 6)
    because R^2 = 3 * 3 / 6, and where they are met with equality; the subgradient at a kink is the
    first unit vector; f = L x + H/2 x^2 - offset s; prices (1.5, 2.0) sell 2.6 - 1.5 + 0.4 = 1.5
    and 2.9 + 0.3 - 1.6 = 1.6 units, at margins 1.1 and 1.7: 4.37 dollars. Without a projection
    targets are clipped to a ball."""
    for loss, L, H, low, high in (
        (Linear(Ball(5)), 1, 0, -1, 1),
        (Quadratic(Ball(5)), 2, 1, 0, 2),
        (Kink(Ball(5)), 2, 1, 0, 1.5),
        (TiltedQuadratic(Ball(5)), 3, 1, -1.5, 2.5),
        (Linear(Hypersimplex(6, 3)), 1, 0, -(1.5**0.5), 1.5**0.5),
        (Experts(Simplex(10)), 10**0.5 / 2, 0, 0, 1),
        (Squared(Ball(3)), 2, 0, 0, 2),
    ):
        assert (loss.lipschitz, loss.curvature) == (pytest.approx(L), H)
        assert loss.value_range == (pytest.approx(low), pytest.approx(high))
    for domain in WITHOUT_PROJECTION:
        loss = Quadratic(domain)
        assert not domain.has_projection or loss.lipschitz == domain.diameter
        z = loss.admissible(np.random.default_rng(0).normal(size=(100, domain.dim)) * 10)
        away = np.linalg.norm(z - domain.centre, axis=1)
        assert (away <= domain.outer_radius * (1 + 1e-12)).all()
    e = np.eye(5)[:1]
    assert Quadratic(Ball(5)).value(e, -e) == [2.0]
    tilted = TiltedQuadratic(Ball(5))
    assert [*tilted.value(e, 2 * e), *tilted.value(e, -2 * e)] == [2.5, -1.5]
    assert np.linalg.norm(tilted.gradient(e, 2 * e)) == 3.0
    kink = Kink(Ball(5))
    assert [*kink.value(e, 0 * e), np.linalg.norm(kink.gradient(e, 0 * e))] == [1.5, 2.0]
    np.testing.assert_array_equal(Kink(Ball(5), slope=0.7).gradient(0 * e, 0 * e), 0.7 * e)
    experts = Experts(Simplex(10))
    centred = experts.domain.coordinates(np.array([[1.0] * 5 + [0.0] * 5]))
    assert np.linalg.norm(centred) == pytest.approx(experts.lipschitz)
    offset, x, s = OffsetQuadratic(Ball(1), offset=0.3), np.full((2, 1), 0.5), np.array([[1], [-1]])
    assert offset.value(x, s).tolist() == pytest.approx([0.625 - 0.3, 0.625 + 0.3])
    assert offset.gradient(x, s).tolist() == [[1.5], [1.5]]
    assert PRICES.value(np.zeros((1, 2)), np.array([[2.6, 2.9]]))[0] == pytest.approx(-4.37)


@every_family
def test_admissible_is_safe(loss):
    """NaN, infinities, huge numbers and integers come back admissible; good data as they are."""
    shape = loss.datum_shape
    for bad in (np.nan, np.inf, -np.inf, 1e308, -1e308, 1e200):
        z = loss.admissible(np.full((3, *shape), bad))
        assert np.isfinite(z).all()
        np.testing.assert_allclose(loss.admissible(z), z, rtol=0, atol=1e-12)
        assert np.abs(z).max() <= loss.datum_bound * (1 + 1e-12)
    mixed = data(loss, 3)
    mixed[1, ..., 0] = np.nan
    cleaned = loss.admissible(mixed)
    assert np.isfinite(cleaned).all()
    np.testing.assert_allclose(cleaned[[0, 2]], mixed[[0, 2]], rtol=0, atol=1e-12)
    whole = loss.admissible(np.full((2, *shape), 2**62, dtype=np.int64))
    floats = loss.admissible(np.full((2, *shape), 2.0**62))
    np.testing.assert_array_equal(whole, floats)


WRONG = {
    "effects": [
        lambda: replace(PRICES, effects=((1.0, -0.2), (-0.1, 0.8))),
        lambda: replace(PRICES, effects=((1.0, 2.0), (2.0, 1.0))),
        lambda: replace(PRICES, effects=((1.0,),)),
    ],
    "demand": [lambda: replace(PRICES, demand=(0.5, 2.9))],
    "unit_costs": [lambda: replace(PRICES, unit_costs=(1.2, 0.3))],
    "list_prices": [lambda: replace(PRICES, list_prices=(1.5,))],
    "spread": [lambda: replace(PRICES, spread=1.5)],
    "the simplex": [lambda: Experts(Ball(3)), lambda: Experts(Hypersimplex(4, 2))],
    "tilt": [lambda: TiltedQuadratic(Ball(2), tilt=0.0)],
    "slope": [lambda: Kink(Ball(2), slope=-1.0)],
    "offset": [lambda: OffsetQuadratic(Ball(1), offset=float("nan"))],
    "bound": [
        lambda: Squared(Ball(2), bound=0.0),
        lambda: LinearRegression(LpBall(3, 1), bound=0.0),
        lambda: QuantileRegression(LpBall(3, 1), bound=-1.0),
    ],
    "level": [lambda: QuantileRegression(LpBall(3, 1), level=1.0)],
    "LpBall": [lambda: LinearRegression(Ball(3)), lambda: LogisticRegression(Ball(3))],
}


@each("word", WRONG)
def test_wrong_constants_are_refused(word):
    """Also revenue that is not concave, or sells less than nothing."""
    for make in WRONG[word]:
        refused(word, make)


# Regressions


def norm(x, order):
    return np.linalg.norm(x, ord=order, axis=-1)


@every_regression
def test_constants_of_the_dual_norm_hold(loss):
    """|g|_q <= L and |g(x) - g(y)|_q <= beta |x - y|_p, by random search. Features are scaled into
    the dual ball: direction kept, length 1; what is inside stays, what is no vector is 0."""
    x, y, z = points(loss.domain, M, 1), points(loss.domain, M, 2), data(loss, M)
    p, q = loss.domain.p, loss.order
    assert norm(z[:, :-1], q).max() <= 1 + 1e-12
    g, h = loss.gradient(x, z), loss.gradient(y, z)
    assert norm(g, q).max() <= loss.dual_lipschitz * (1 + 1e-12)
    if loss.dual_smoothness < np.inf:
        assert (norm(g - h, q) <= loss.dual_smoothness * norm(x - y, p) + 1e-12).all()
    a = np.array([[3.0, -4.0, 0.0][: loss.domain.dim], [0.1] * loss.domain.dim])
    z = loss.admissible(np.column_stack([a, [1e9, -1e9]]))
    assert norm(z[0, :-1], loss.order) == pytest.approx(1)
    np.testing.assert_allclose(z[0, :-1] * -4, a[0] * z[0, 1], atol=1e-12)
    np.testing.assert_array_equal(z[1, :-1], a[1])
    assert z[:, -1].tolist() == [loss.bound, -loss.bound]
    a[0, 1] = np.nan
    assert (loss.admissible(np.column_stack([a, [0, 0]]))[0, :-1] == 0).all()


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


def test_constants_and_values_by_hand():
    """Golden, the specification: (y - x.theta)^2 with |x|_q <= 1 in a ball of radius 2, answers
    within 1.25: beta = 2 and L = 2 (2 + 1.25) whatever p; in R^20 features are at most 20^(1/6)
    long for p = 1.5 and sqrt(20) for p = 1. At u = 0.5: squares, the pinball on both sides and at
    the kink; log(1 + e^-0.5)."""
    for p in ORDERS:
        loss = LinearRegression(LpBall(20, p, 2.0), bound=1.25)
        assert (loss.dual_smoothness, loss.dual_lipschitz) == (2.0, 6.5)
        longest = {1: 20**0.5, 1.2: 20 ** (1 / 3), 1.5: 20 ** (1 / 6)}.get(p, 1.0)
        assert loss.lipschitz == pytest.approx(6.5 * longest)
        assert loss.smoothness == pytest.approx(2 * longest**2)
    orders = [LinearRegression(LpBall(2, p)).order for p in (1, 1.5, 2, 4, np.inf)]
    assert orders == pytest.approx([np.inf, 3, 2, 4 / 3, 1])
    x, z = np.array([[0.5, 0.0]]), np.array([[1.0, 0.0, 0.2]])
    linear, pinball = LinearRegression(LpBall(2, 1)), QuantileRegression(LpBall(2, 1), 0.9)
    assert linear.value(x, z)[0] == pytest.approx(0.09)
    assert linear.gradient(x, z)[0] == pytest.approx([0.6, 0])
    assert pinball.value(x, z)[0] == pytest.approx(0.03)
    slopes = pinball.slope(np.array([0.5, 0.5, 0.5]), np.array([0.2, 0.5, 1.0]))
    assert slopes.tolist() == pytest.approx([0.1, 0.0, -0.9])
    z[0, 2] = 1.0
    assert pinball.value(x, z)[0] == pytest.approx(0.45)
    assert LogisticRegression(LpBall(2, 1)).value(x, z)[0] == pytest.approx(np.log1p(np.e**-0.5))
