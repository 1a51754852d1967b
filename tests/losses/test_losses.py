"""Losses are convex, their subgradients true, and what they declare is never violated."""

import dataclasses

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.domains import Ball, Hypersimplex, Simplex
from dpbandit.losses import (
    Experts,
    Kink,
    Linear,
    OffsetQuadratic,
    Quadratic,
    Revenue,
    Squared,
    TiltedQuadratic,
)
from tests.each import each
from tests.losses.families import FAMILIES, PRICES, WITHOUT_PROJECTION, data, label, points

every_family = each("loss", FAMILIES, ids=label)
M = 1000  # random points and data


@every_family
def test_subgradients_lie_below(loss):
    """f(y) >= f(x) + <g, y - x> + H/2 |y - x|^2: convex, strongly so, and g a subgradient."""
    x, y, z = points(loss.domain, M, 1), points(loss.domain, M, 2), data(loss, M)
    lower = loss.value(x, z) + np.vecdot(loss.gradient(x, z), y - x)
    lower += loss.curvature / 2 * ((y - x) ** 2).sum(1)
    assert (loss.value(y, z) >= lower - 1e-9).all()


@every_family
def test_gradients_are_differences(loss):
    """Central differences along V agree where f is smooth: at random points, almost surely."""
    x, z = points(loss.domain, M, 3) * 0.9 + 0.1 * loss.domain.centre, data(loss, M, 3)
    u = loss.domain.embedded(np.random.default_rng(0).standard_normal((M, loss.domain.affine_dim)))
    h = 1e-6
    slope = (loss.value(x + h * u, z) - loss.value(x - h * u, z)) / (2 * h)
    wrong = np.abs(slope - np.vecdot(loss.gradient(x, z), u)) > 1e-4
    assert wrong.mean() < 0.003  # a kink within 1e-6


@every_family
def test_constants_hold(loss):
    """|P_V g| <= L and lo <= f <= hi by random search, whose best comes near each of them."""
    x, z = points(loss.domain, 10 * M, 4), data(loss, 10 * M, 4)
    steepest = np.linalg.norm(loss.domain.coordinates(loss.gradient(x, z)), axis=1).max()
    values, (low, high) = loss.value(x, z), loss.value_range
    assert steepest <= loss.lipschitz * (1 + 1e-12)
    assert low - 1e-12 <= values.min() <= values.max() <= high + 1e-12
    assert steepest > 0.6 * loss.lipschitz
    assert values.max() - values.min() > 0.4 * (high - low)


@each("loss", [f for f in FAMILIES if f.smoothness < np.inf], ids=label)
def test_smoothness_holds(loss):
    x, y, z = points(loss.domain, M, 1), points(loss.domain, M, 2), data(loss, M)
    turn = loss.domain.coordinates(loss.gradient(x, z) - loss.gradient(y, z))
    away = np.linalg.norm(x - y, axis=1)
    assert (np.linalg.norm(turn, axis=1) <= loss.smoothness * away + 1e-9).all()


@pytest.mark.parametrize(
    ("loss", "L", "H", "low", "high"),
    [
        (Linear(Ball(5)), 1, 0, -1, 1), (Quadratic(Ball(5)), 2, 1, 0, 2),
        (Kink(Ball(5)), 2, 1, 0, 1.5), (TiltedQuadratic(Ball(5)), 3, 1, -1.5, 2.5),
        (Linear(Hypersimplex(6, 3)), 1, 0, -(1.5**0.5), 1.5**0.5),
        (Experts(Simplex(10)), 10**0.5 / 2, 0, 0, 1), (Squared(Ball(3)), 2, 0, 0, 2),
    ],
    ids=lambda x: type(x).__name__,
)  # fmt: skip
def test_reference_constants(loss, L, H, low, high):
    """Golden: the constants of the specification's reference problems; W = 2 R = 2.44949 on
    U(3, 6) because R^2 = 3 * 3 / 6."""
    assert (loss.lipschitz, loss.curvature) == (pytest.approx(L), H)
    assert loss.value_range == (pytest.approx(low), pytest.approx(high))


def test_extremes_are_attained():
    """By hand: where the declared constants are met with equality."""
    e = np.eye(5)[:1]
    assert Quadratic(Ball(5)).value(e, -e) == [2.0]
    tilted = TiltedQuadratic(Ball(5))
    assert [*tilted.value(e, 2 * e), *tilted.value(e, -2 * e)] == [2.5, -1.5]
    assert np.linalg.norm(tilted.gradient(e, 2 * e)) == 3.0
    kink = Kink(Ball(5))
    assert [*kink.value(e, 0 * e), np.linalg.norm(kink.gradient(e, 0 * e))] == [1.5, 2.0]
    half = np.array([[1.0] * 5 + [0.0] * 5])
    experts = Experts(Simplex(10))
    centred = experts.domain.coordinates(half)
    assert np.linalg.norm(centred) == pytest.approx(experts.lipschitz)


def test_the_subgradient_at_the_kink_is_the_first_unit_vector():
    kink = Kink(Ball(3), slope=0.7)
    np.testing.assert_array_equal(kink.gradient(np.zeros((2, 3)), np.zeros((2, 3)))[0], [0.7, 0, 0])


def test_an_offset_moves_values_and_no_gradient():
    """f = L x + H/2 x^2 - offset s."""
    loss = OffsetQuadratic(Ball(1), offset=0.3)
    x = np.array([[0.5], [0.5]])
    s = np.array([[1.0], [-1.0]])
    assert loss.value(x, s).tolist() == pytest.approx([0.625 - 0.3, 0.625 + 0.3])
    assert loss.gradient(x, s).tolist() == [[1.5], [1.5]]


def test_without_a_projection_targets_are_clipped_to_a_ball():
    for domain in WITHOUT_PROJECTION:
        loss = Quadratic(domain)
        assert not domain.has_projection or loss.lipschitz == domain.diameter
        z = loss.admissible(np.random.default_rng(0).normal(size=(100, domain.dim)) * 10)
        away = np.linalg.norm(z - domain.centre, axis=1)
        assert (away <= domain.outer_radius * (1 + 1e-12)).all()


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


def test_revenue_is_dollars_by_hand():
    """Prices (1.5, 2.0) sell 2.6 - 1.5 + 0.4 = 1.5 and 2.9 + 0.3 - 1.6 = 1.6 units, at margins 1.1
    and 1.7: 4.37 dollars."""
    assert PRICES.value(np.zeros((1, 2)), np.array([[2.6, 2.9]]))[0] == pytest.approx(-4.37)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"effects": ((1.0, -0.2), (-0.1, 0.8))}, "effects"),
        ({"effects": ((1.0, 2.0), (2.0, 1.0))}, "effects"),
        ({"demand": (0.5, 2.9)}, "demand"),
        ({"unit_costs": (1.2, 0.3)}, "unit_costs"),
        ({"list_prices": (1.5,)}, "list_prices"),
        ({"spread": 1.5}, "spread"),
    ],
    ids=str,
)
def test_revenue_that_is_not_concave_or_sells_less_than_nothing_is_refused(change, word):
    with pytest.raises(InputError, match=word):
        dataclasses.replace(PRICES, **change)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Experts(Ball(3)), lambda: Experts(Hypersimplex(4, 2)),
        lambda: TiltedQuadratic(Ball(2), tilt=0.0), lambda: Kink(Ball(2), slope=-1.0),
        lambda: Squared(Ball(2), bound=0.0), lambda: OffsetQuadratic(Ball(1), offset=float("nan")),
        lambda: Revenue(PRICES.domain, (1.5, 2.0), ((1.0,),), (2.6, 2.9), 0.2, (0.4, 0.3)),
    ],
)  # fmt: skip
def test_wrong_constants_are_refused(make):
    with pytest.raises(InputError):
        make()
