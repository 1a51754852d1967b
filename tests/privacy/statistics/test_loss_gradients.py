"""Recursive gradients of losses on a stream: the recursion, the points, the sensitivities."""

from math import inf

import numpy as np
import pytest

from dpbandit.agents import RecursiveFrankWolfe
from dpbandit.agents.streams.frank_wolfe import bounds_of, lowest
from dpbandit.base import InputError, Streams
from dpbandit.domains import Ball, LpBall, Simplex
from dpbandit.losses import (
    Hinge,
    Linear,
    LinearRegression,
    LogisticRegression,
    Quadratic,
    QuantileRegression,
)
from dpbandit.privacy.generalised import RecursiveLossGradients
from dpbandit.specs import ConvexSpec
from tests.each import each

LOSSES = {
    "linear l_1.5": LinearRegression(LpBall(4, 1.5, 2.0), bound=1.25),
    "linear l_inf": LinearRegression(LpBall(4, inf, 2.0), bound=1.25),
    "linear l_1": LinearRegression(LpBall(4, 1, 0.8)),
    "logistic": LogisticRegression(LpBall(4, 3.0)),
    "quantile": QuantileRegression(LpBall(4, 2.0), level=0.8),
    "quadratic": Quadratic(Ball(4)),
    "hinge": Hinge(Ball(4)),
    "simplex": Linear(Simplex(5)),
}
every_loss = each("loss", LOSSES.values(), ids=LOSSES)
SMOOTH = [name for name, loss in LOSSES.items() if bounds_of(loss).smoothness < inf]


def walked(loss, n, *, step=1.0, seed=0):
    """n users of one walk without clips: data, iterates, vertices, sums in coordinates."""
    rng, domain = np.random.default_rng(seed), loss.domain
    statistic = RecursiveLossGradients(loss=loss)
    spec = ConvexSpec(loss=loss, horizon=n, feedback="datum")
    walk = RecursiveFrankWolfe(step=step).make(spec, Streams([0]))
    data, thetas, vertices, sums = [], [], [], [np.zeros((1, *statistic.shape))]
    for i in range(1, n + 1):
        z = loss.admissible(rng.standard_normal((1, *loss.datum_shape)))
        datum = walk.point, walk.previous, np.asarray(i), z
        sums.append(sums[-1] + statistic.total(*(np.asarray(a)[None] for a in datum)))
        data.append(z)
        thetas.append(walk.point)
        vertices.append(lowest(domain, sums[-1]))
        walk.move(vertices[-1])
    return data, np.array(thetas), np.array(vertices), np.array(sums)


@every_loss
def test_the_normalised_sum_is_the_recursion_with_d_0_at_zero(loss):
    """Oracle: d_i = grad_i(theta_i) + (1 - 1/(i+1)) (d_{i-1} - grad_i(theta_{i-1})), d_0 = 0, and
    with the printed d_1 = grad_1(theta_1) it is the sum plus g_1 / (i + 1): user 1 twice. Iterates
    are means of the vertices and the centre."""
    data, thetas, vertices, sums = walked(loss, 60)
    total = np.concatenate([np.zeros_like(vertices[:1]), vertices.cumsum(axis=0)[:-1]])
    means = (loss.domain.centre + total) / np.arange(1, 61)[:, None, None]
    np.testing.assert_allclose(thetas, means, rtol=0, atol=2e-15)
    d, other = np.zeros_like(sums[0]), np.zeros_like(sums[0])
    for i, z in enumerate(data[:40], start=1):
        before = thetas[max(i - 2, 0)]
        now, old = (loss.domain.coordinates(loss.gradient(x, z)) for x in (thetas[i - 1], before))
        d = now + (1 - 1 / (i + 1)) * (d - old)
        other = now if i == 1 else now + (1 - 1 / (i + 1)) * (other - old)
        np.testing.assert_allclose(sums[i] / (i + 1), d, rtol=0, atol=1e-14)
        np.testing.assert_allclose((sums[i] + sums[1]) / (i + 1), other, rtol=0, atol=1e-14)


@every_loss
def test_a_regression_takes_its_short_cut(loss):
    """Oracle: slope times features is the gradient of the loss."""
    rng, statistic = np.random.default_rng(0), RecursiveLossGradients(loss=loss)
    theta, previous = rng.standard_normal((2, 6, loss.domain.dim)) * 0.3
    z = loss.admissible(rng.standard_normal((6, *loss.datum_shape)))
    found = statistic.gradient(theta, previous, np.asarray(7), z)
    direct = 8 * loss.gradient(theta, z) - 7 * loss.gradient(previous, z)
    np.testing.assert_allclose(found, loss.domain.coordinates(direct), rtol=0, atol=1e-14)


def extreme(loss, rng, count):
    """Users at the bounds, beyond them, broken; answers of both signs."""
    z = rng.standard_normal((count, *loss.datum_shape))
    kind = rng.integers(0, 3, count)  # dense, all alike, one feature
    z[kind == 1] = rng.choice([-1.0, 1.0], z[kind == 1].shape)
    z[kind == 2] *= np.arange(z.shape[1])[None] == rng.integers(0, z.shape[1], (sum(kind == 2), 1))
    z *= rng.choice([0.3, 1.0, 30.0, 1e9, 1e300], (count, 1))
    z[:, -1:] = rng.choice([-1e9, 1e9, 1.0, np.nan], (count, 1))
    z[rng.random(count) < 0.02] = np.inf
    return z


def clips(loss):
    """Every way to clip it: by norm, by residual, in every norm it may be asked for."""
    yield RecursiveLossGradients(loss=loss, gradient_clip=0.6)
    if hasattr(loss, "dual_lipschitz"):
        for order in {2.0, max(2.0, loss.order), loss.order, inf}:
            yield RecursiveLossGradients(loss=loss, order=order, residual_clip=0.4)
            yield RecursiveLossGradients(loss=loss, order=order, gradient_clip=0.6)


def points(loss, rng, count, i):
    """theta_i and theta_{i-1} as they can be: one step of weight 1/i apart."""
    domain = loss.domain
    previous, vertex = (domain.lowest(rng.standard_normal((count, domain.dim))) for _ in range(2))
    previous = domain.centre + rng.random((count, 1)) * (previous - domain.centre)
    return previous + (vertex - previous) / i, previous


@every_loss
def test_nobody_moves_the_sum_by_more_than_the_sensitivity(loss):
    """Property: 20,000 extreme pairs in every norm; the bound is nearly attained where it can
    be."""
    rng = np.random.default_rng(1)
    for statistic in clips(loss):
        largest = 0.0
        for i in (1, 2, 3, 50):
            theta, previous = points(loss, rng, 5000, i)
            one, two = (
                statistic.gradient(theta, previous, np.asarray(i), extreme(loss, rng, 5000))
                for _ in range(2)
            )
            moved = np.linalg.norm(one - two, ord=statistic.order, axis=1)
            assert np.isfinite(moved).all()
            largest = max(largest, moved.max() / statistic.sensitivity)
        assert 0.75 < largest <= 1 + 1e-9


@each("step", [1.0, 0.4])
@each("name", SMOOTH)
def test_natural_bounds_hold_without_a_clip(name, step):
    """Property: on real walks |g_i| <= L + c beta D in the dual norm, for admissible data."""
    loss = LOSSES[name]
    order = getattr(loss, "order", 2)
    bound = bounds_of(loss).of_gradient(step)
    for seed in range(5):
        *_, sums = walked(loss, 40, step=step, seed=seed)
        g = np.linalg.norm(np.diff(sums, axis=0)[:, 0], ord=order, axis=1)
        assert g.max() <= bound * (1 + 1e-12)


def test_a_round_without_a_step_adds_nothing_and_rounds_add_up():
    loss = LOSSES["linear l_1.5"]
    statistic, rng = RecursiveLossGradients(loss=loss, gradient_clip=1.0), np.random.default_rng(0)
    theta, previous = points(loss, rng, 3, 4)
    z = extreme(loss, rng, 3)
    assert not statistic.gradient(theta, previous, np.asarray(0), z).any()
    one = statistic.gradient(theta, previous, np.asarray(4), z)
    two = statistic.gradient(theta, previous, np.asarray(5), z)
    both = statistic.total(
        *(np.stack([a, a]) for a in (theta, previous)), np.array([4, 5.0]), np.stack([z, z])
    )
    np.testing.assert_allclose(both, one + two, rtol=1e-15)


def test_bad_settings_are_refused():
    for wrong in (
        {"gradient_clip": 0}, {"residual_clip": -1.0}, {"order": 0},
        {"gradient_clip": float("nan")}, {"loss": Quadratic(Ball(2)), "residual_clip": 1.0},
    ):  # fmt: skip
        with pytest.raises(InputError):
            RecursiveLossGradients(**{"loss": LOSSES["logistic"], **wrong})
