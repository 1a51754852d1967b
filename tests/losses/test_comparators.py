"""The best fixed point in hindsight: exact or certified, whoever asks and whenever."""

import pickle

import numpy as np
import pytest
from scipy.optimize import linprog

from dpbandit.domains import Ball, Box, Flows, LpBall, Simplex, SpanningTrees
from dpbandit.losses import (
    Absolute,
    Experts,
    Hinge,
    Kink,
    Linear,
    Logistic,
    Quadratic,
    QuantileRegression,
    Ramp,
    Squared,
    TiltedQuadratic,
)
from dpbandit.losses.loss import Smoothed, frank_wolfe_gap, minimise_quadratic
from tests.domains.examples import LADDER
from tests.each import each
from tests.losses.families import FAMILIES, WITHOUT_PROJECTION, data, label, points
from tests.slopes import differences

KINDS = Quadratic, TiltedQuadratic, Squared, Absolute
FLAT = [kind(domain) for kind in KINDS for domain in WITHOUT_PROJECTION]
FLAT += [Absolute(SpanningTrees(4))]
every_family = each("loss", FAMILIES + FLAT, ids=label)


def stream(loss, T, R, seed=5):
    """(T, R, *datum_shape), with a drift so that the best point is somewhere."""
    z = data(loss, T * R, seed).reshape(T, R, *loss.datum_shape)
    return loss.admissible((0.5 * z + 0.5 * z[:1]).reshape(T * R, -1)).reshape(z.shape)


def compared(loss, z):
    """A comparator that was told all of z (T, R, *datum_shape)."""
    comparator = loss.comparator(z.shape[1])
    for datum in z:
        comparator.add(datum)
    return comparator


def total(loss, x, z):
    return sum(loss.value(x, datum) for datum in z)


@every_family
def test_no_point_is_better(loss):
    """40 points of the domain and 40 near the answer: none beats it by more than 1e-6 a round."""
    T, R = 15, 2
    z = stream(loss, T, R)
    x, value = compared(loss, z).best()
    assert loss.domain.contains(x, 1e-9).all()
    np.testing.assert_allclose(value, total(loss, x, z), rtol=0, atol=1e-9 * T)
    others = points(loss.domain, 40, 9)
    for r in range(R):
        same = z[:, [r] * 40]
        for y in (others, x[r] + 0.01 * (others - x[r])):
            assert (total(loss, y, same) >= value[r] - 1e-6 * T).all()


@every_family
def test_every_prefix_and_batched_equals_lone(loss):
    """Asked after every round or only at the end, 2 replicas or 1: for closed forms the same
    numbers; numerical answers start from the last one and agree within their certificates. Batched
    and lone are the same to the last bit; before the first round the value is 0."""
    T, R = 2, 2
    z = stream(loss, T, R, seed=6)
    often, lone = loss.comparator(R), loss.comparator(1)
    before, nothing = often.best()
    assert (nothing == 0).all()
    assert loss.domain.contains(before, 1e-9).all()
    for datum in z:
        often.add(datum)
        lone.add(datum[1:2])
        (x, value), (alone, alones) = often.best(), lone.best()
        np.testing.assert_array_equal(x[1], alone[0])
        assert value[1] == alones[0]
    last, least = compared(loss, z).best()
    np.testing.assert_allclose(value, least, rtol=0, atol=2e-6 * T)
    if not hasattr(often, "gap"):
        np.testing.assert_array_equal(x, last)
    twin = pickle.loads(pickle.dumps(often))
    np.testing.assert_array_equal(twin.best()[1], often.best()[1])


def test_closed_forms_by_hand():
    """Golden. Slopes e_1 five times: -e_1, -5. Tilts -2 e_1: e_1, T (1/2 - 2). Still kink: 0. Sums
    over 256 rounds at once: asked in every round or at the end, to the last bit."""
    e = np.eye(3)[:1]
    for loss, datum, x, value in (
        (Linear(Ball(3)), e, -e, -5.0), (TiltedQuadratic(Ball(3)), -2 * e, e, -7.5),
        (Kink(Ball(3)), 0 * e, 0 * e, 0.0), (Experts(Simplex(3)), 1 - e, e, 0.0),
    ):  # fmt: skip
        found = compared(loss, np.tile(datum, (5, 1, 1))).best()
        np.testing.assert_allclose(found[0], x)
        np.testing.assert_allclose(found[1], [value])
    loss = Quadratic(Ball(3))
    z = stream(loss, 520, 2)
    often = loss.comparator(2)
    for datum in z:
        often.add(datum)
        often.best()
    for a, b in zip(often.best(), compared(loss, z).best(), strict=True):
        np.testing.assert_array_equal(a, b)
    np.testing.assert_allclose(often.best()[0], Ball(3).project(z.mean(0)), atol=1e-12)


@pytest.mark.parametrize("domain", [Box(2, 0.4), Simplex(3)], ids=str)
@pytest.mark.parametrize("word", [Absolute, Hinge])
def test_piecewise_linear_losses_against_linear_programming(word, domain):
    """Oracle: HiGHS, sum of slacks s_t >= +-(u_t - b_t), or s_t >= 1 - b_t u_t, s_t >= 0."""
    loss, T = word(domain), 60
    z = stream(loss, T, 1, seed=8)
    a, b = z[:, 0, :-1], z[:, 0, -1]
    origin = a @ domain.centre
    slack = -np.eye(T)
    if word is Absolute:
        A = np.block([[a, slack], [-a, slack]])
        right = np.concatenate([b + origin, -b - origin])
        free = (None, None)
    else:
        A, right, free = np.hstack([-b[:, None] * a, slack]), -1 - b * origin, (0, None)
    low, high = (-0.4, 0.4) if isinstance(domain, Box) else (0, 1)
    flat = {} if isinstance(domain, Box) else {"A_eq": [[1] * 3 + [0] * T], "b_eq": [1]}
    N = domain.dim
    found = linprog([0] * N + [1] * T, A, right, bounds=[(low, high)] * N + [free] * T, **flat)
    comparator = compared(loss, z)
    value = comparator.best()[1][0]
    assert 0 <= value - found.fun + 1e-9 <= 1e-6 * T + 1e-9
    assert comparator.gap[0] <= 1e-6 * T


POLYTOPES = Flows(LADDER, "s", "t"), SpanningTrees(4)


@pytest.mark.parametrize("domain", [*WITHOUT_PROJECTION, Ball(3), Box(3), *POLYTOPES], ids=repr)
def test_quadratics_are_minimised_to_the_gap(domain):
    """Property: whatever G (of any rank) and c, the gap is met, and it bounds the distance to what
    thousands of points do best; on polytopes without a single pairwise step, for curvatures from
    10^-4 to 10^3. Together equals alone."""
    rng, corrective = np.random.default_rng(1), domain in POLYTOPES
    R, N = 6, domain.dim
    root = rng.standard_normal((R, N, N))
    root *= np.geomspace(0.01, 30, N)[:, None] if corrective else rng.random((R, 1, N)) < 0.7
    root[0, 1:] = 0
    G, c = root.swapaxes(1, 2) @ root, 3 * rng.standard_normal((R, N))
    start, goal = np.tile(domain.centre, (R, 1)), np.full(R, 1e-7)
    how = {"steps": 0} if corrective else {}
    x, gap = minimise_quadratic(domain, G, c, start, goal, **how)
    assert (gap <= 1e-7).all()
    assert domain.contains(x, 1e-8).all()

    def q(y):
        return np.vecdot(y, np.matvec(G, y)) / 2 - np.vecdot(c, y)

    for y in points(domain, 200):
        assert (q(y - domain.centre) >= q(x - domain.centre) - 2e-7).all()
    gradient = np.matvec(G, x - domain.centre) - c
    np.testing.assert_allclose(frank_wolfe_gap(domain, x, gradient), gap, atol=1e-9)
    alone, _ = minimise_quadratic(domain, G[2:3], c[2:3], start[:1], goal[:1], **how)
    np.testing.assert_array_equal(alone[0], x[2])


@pytest.mark.filterwarnings("error")
@each("radius", [1e-9, 1e9])
@each("word", [Kink, Absolute, Hinge, Logistic])
def test_the_certificate_is_in_the_unit_of_the_loss(word, radius):
    """Within 1e-6 of what the loss of a round can change by, on tiny and on huge domains."""
    domain, T = Ball(3, radius), 20
    settings = {Kink: {"spread": radius / 2}, Absolute: {"bound": radius}}
    loss = word(domain, **settings.get(word, {}))
    z = stream(loss, T, 1, seed=8)
    comparator = compared(loss, z)
    x, value = comparator.best()
    low, high = loss.value_range
    assert comparator.gap[0] <= 1e-6 * T * (high - low)
    for other in points(domain, 60, 9):
        for y in (other[None], x + 0.01 * (other - x)):
            assert total(loss, y, z) >= value - T * (1e-6 * (high - low) + 1e-15 * high)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("domain", POLYTOPES, ids=repr)
def test_absolute_losses_meet_their_certificate_without_a_projection(domain):
    """Hessians with condition numbers beyond 10^5, on flat polytopes; see `_corrective`."""
    loss = Absolute(domain)
    for T, seed in ((20, 2), (40, 1)):
        comparator = compared(loss, stream(loss, T, 2, seed))
        comparator.best()
        assert (comparator.gap <= 1e-6 * T).all()


SMOOTHED = [word(Ball(3)) for word in (Absolute, Hinge, Logistic, Ramp)]
SMOOTHED += [Kink(Ball(3), slope=2.0, curvature=0.5), QuantileRegression(LpBall(3, 4), level=0.8)]


@each("loss", SMOOTHED, ids=label)
def test_smoothed_losses_have_their_slopes_and_certificates(loss):
    """Oracle: central differences of f_mu and its gradient, and 50 points: at none is f below the
    affine function that certifies."""
    x, z, mu = points(loss.domain, 1, 3)[0], data(loss, 20), np.array([0.3])

    def at(y):
        return Smoothed(*(part[0] for part in loss.smoothed(y[None], z[None], mu)))

    found, others = at(x), points(loss.domain, 50)
    slope, bend = (differences(f, x) for f in (lambda y: at(y).smooth, lambda y: at(y).gradient))
    np.testing.assert_allclose(found.gradient, slope, rtol=0, atol=1e-6)
    np.testing.assert_allclose(found.hessian, bend, rtol=0, atol=1e-6)
    affine = found.value - found.slack + (others - x) @ found.gradient
    assert (loss.value(others[:, None], z).sum(axis=1) >= affine - 1e-9).all()
    assert found.smooth >= found.value == pytest.approx(loss.value(x, z).sum())


def test_a_missed_certificate_is_told_with_a_number(monkeypatch):
    monkeypatch.setattr("dpbandit.losses.loss._NEWTON_STEPS", 0)
    loss = Absolute(Ball(2))
    comparator = compared(loss, stream(loss, 9, 1))
    with pytest.warns(RuntimeWarning, match=r"off by up to \d") as told:
        comparator.best()
    assert f"off by up to {comparator.gap[0]:.2g}" in str(told[0].message)


def test_data_that_repeat_and_data_that_contradict_each_other():
    """Degenerate: no features at all, the same user again and again, exact interpolation."""
    for loss in (Absolute(Ball(2)), Hinge(Ball(2)), Logistic(Ball(2)), Squared(Ball(2))):
        for rows in ([[0, 0, 1]] * 3, [[1, 0, 1]] * 9, [[1, 0, 1], [1, 0, -1]] * 4):
            _, value = compared(loss, np.array(rows, dtype=float)[:, None]).best()
            grid = np.linspace(-1, 1, 2001)
            every = sum(loss.value(np.stack([grid, 0 * grid], 1), np.array([row])) for row in rows)
            assert 0 <= value[0] - every.min() + 1e-9 <= 1e-6 * len(rows) + 1e-9
