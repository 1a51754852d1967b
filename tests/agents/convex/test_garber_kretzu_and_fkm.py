"""The non-private baselines of bandit convex optimisation: FKM and Garber-Kretzu."""

from math import inf, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import FKM, GarberKretzu
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Simplex, SpanningTrees
from dpbandit.losses import Linear, Quadratic
from dpbandit.specs.convex import ConvexSpec


def episode(agent, values, T, R=1):
    """Points and directions, (T, R, N) and (T, R, k), of T rounds of `values(t, x)`."""
    context, points, directions = np.zeros((R, 1)), [], []
    for t in range(T):
        x = agent.act(context)
        points.append(x)
        directions.append((agent.directions if isinstance(agent, FKM) else agent.run._directions).u)
        agent.update(context, x, -values(t, x))
    return np.array(points), np.array(directions)


@pytest.mark.parametrize("loss", [Linear(Ball(3)), Quadratic(Simplex(4))], ids=repr)
def test_fkm_is_the_algorithm_line_by_line(loss):
    """Oracle: with the same directions, points within 1e-12 of a plain loop; values are clipped."""
    T, domain = 60, loss.domain
    R, r, k, L = domain.outer_radius, domain.inner_radius, domain.affine_dim, loss.lipschitz
    low, high = loss.value_range
    C, c0 = max(abs(low), abs(high)), domain.centre
    zeta = min(T**-0.25 * sqrt(R * k * C * r / (3 * (L * r + C))), r / 2)
    nu = R / (C * sqrt(T))

    def values(t, x):
        return 1.5 * high * np.sin(t + 3 * x[:, 0])

    agent = FKM().make(ConvexSpec(loss=loss, horizon=T), Streams([0]))
    points, u = episode(agent, values, T)
    y = c0
    for t in range(T):
        x = y + zeta * domain.embedded(u[t])[0]
        np.testing.assert_allclose(points[t, 0], x, rtol=0, atol=1e-12)
        f = np.clip(values(t, x[None])[0], low, high)
        q = y - nu * f * domain.embedded(u[t])[0]
        inner = domain.project((c0 + (q - c0) / (1 - zeta / r))[None])[0]
        y = c0 + (1 - zeta / r) * (inner - c0)
    assert domain.contains(points[:, 0]).all()


def test_regret_of_fkm_agrees_with_an_independent_implementation():
    """Statistical: |x - c_t|^2 / 2, c_t = e_1/2 + v_t/2, unit ball in R^5, T = 1024, 64
    replications of either, within 4 combined standard errors; and below its bound."""
    T, R, loss = 1024, 64, Quadratic(Ball(5))
    agent = FKM().make(ConvexSpec(loss=loss, horizon=T), Streams([(1, r) for r in range(R)]))
    v = np.random.default_rng(T).standard_normal((T, R, 5))
    c = 0.5 * v / np.linalg.norm(v, axis=-1, keepdims=True) + 0.5 * np.eye(5)[0]
    points, _ = episode(agent, lambda t, x: np.square(x - c[t]).sum(axis=-1) / 2, T, R)
    losses = np.square(points - c).sum(axis=-1) - np.square(c.mean(axis=0) - c).sum(axis=-1)
    regret = losses.sum(axis=0) / 2
    assert abs(regret.mean() - 96.1) < 4 * sqrt(regret.var(ddof=1) / R + 1.2**2)
    C = max(map(abs, loss.value_range))
    assert regret.mean() < 2 * T**0.75 * sqrt(3 * 5 * C * (loss.lipschitz + C))


@pytest.mark.parametrize("config", [FKM(), GarberKretzu()], ids=repr)
def test_they_promise_nothing(config):
    spec = ConvexSpec(loss=Linear(Ball(2)), horizon=50)
    assert certify(config, spec, accountants=False).epsilon == inf


def test_what_they_do_not_play_is_refused():
    for config in (FKM(), GarberKretzu()):
        told = ConvexSpec(loss=Linear(Ball(2)), horizon=50, feedback="datum")
        with pytest.raises(InputError, match="feedback='value'"):
            config.make(told, Streams([0]))
    for settings in ({"zeta": 0.0}, {"nu": -1.0}):
        with pytest.raises(InputError, match="Expected"):
            FKM(**settings)
    with pytest.raises(InputError, match="zeta"):
        FKM(zeta=1.0).make(ConvexSpec(loss=Linear(Ball(2)), horizon=50), Streams([0]))


def test_fkm_plays_domains_without_a_projection():
    domain = SpanningTrees(4)
    spec = ConvexSpec(loss=Linear(domain), horizon=12)
    points, _ = episode(FKM().make(spec, Streams([0])), lambda t, x: x[:, 0], 12)
    assert domain.contains(points[:, 0], 1e-9).all()


def test_values_that_are_all_the_same_are_refused():
    class Constant(Linear):
        lipschitz, value_range = 0.0, (0.0, 0.0)

    for config in (FKM(), GarberKretzu()):
        with pytest.raises(InputError, match="more than one value"):
            config.make(ConvexSpec(loss=Constant(Ball(3)), horizon=50), Streams([0]))
