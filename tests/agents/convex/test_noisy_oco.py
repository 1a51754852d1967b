"""NoisyOCO: both mirror maps line by line, the corrected step, privacy and the regret bound."""

from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import NoisyOCO
from dpbandit.agents.convex.one_point import Noise
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Simplex
from dpbandit.losses import Linear, Quadratic
from dpbandit.privacy.prefix_sums import Tree
from dpbandit.specs.convex import ConvexSpec
from tests.privacy.sums.prefix_checks import script


def full(loss, T=30):
    return ConvexSpec(loss=loss, feedback="datum", horizon=T)


def episode(agent, data):
    """Points (T, R, N) against the data (T, R, N)."""
    points = []
    for z in data:
        x = agent.act(z)
        points.append(x)
        agent.update(z, x, z)
    return np.array(points)


def slopes(T, R, N, seed=0):
    """Random slopes of length at most 1, a few of them to be clipped."""
    rng = np.random.default_rng(seed)
    z = rng.standard_normal((T, R, N)) / sqrt(N)
    z[..., 0] += 0.4
    return z


@pytest.mark.parametrize("kind", ["euclidean", "entropic"])
@pytest.mark.parametrize("loss", [Linear(Simplex(4)), Quadratic(Simplex(4))], ids=repr)
def test_agent_is_the_algorithm_line_by_line(kind, loss):
    """Oracle: with given node noises, points within 1e-12 of sums over the whole past and of the
    map written out; the tree is spelled out: node t holds the leaves (t - lowbit(t), t]."""
    T, domain = 30, loss.domain
    Q, c0, L, N = domain.basis, domain.centre, loss.lipschitz, domain.dim
    width = sqrt(log(N)) if kind == "entropic" else domain.outer_radius / sqrt(2)
    eta = width / (L * sqrt(T))
    data = slopes(T, 1, N)
    nodes = np.random.default_rng(1).standard_normal((T - 1, N - 1))
    agent = NoisyOCO(map=kind).make(full(loss), Streams([0]))
    agent.sums._noise = Tree().of(script(nodes[:, None]), stddev=1.0)
    points = episode(agent, data)
    gradients, x = [], c0
    for t in range(1, T + 1):
        np.testing.assert_allclose(points[t - 1, 0], x, rtol=0, atol=1e-12)
        g = Q.T @ (data[t - 1, 0] if isinstance(loss, Linear) else x - data[t - 1, 0])
        gradients.append(g * min(1, L / np.linalg.norm(g)))
        if t == T:
            break
        s, node = np.sum(gradients, axis=0), t
        while node:
            s, node = s + nodes[node - 1], node & (node - 1)
        if kind == "entropic":
            weights = np.exp(-eta * Q @ s)
            x = weights / weights.sum()
        else:
            x = domain.project((c0 - eta * Q @ s)[None])[0]


@pytest.mark.parametrize("noise", ["k-norm", "laplace", "gaussian"])
@pytest.mark.parametrize("kind", ["euclidean", "entropic"])
def test_certificate_is_the_claim(noise, kind):
    """T - 1 leaves, a datum moves a gradient by 2 L."""
    config = NoisyOCO(noise=noise, map=kind)
    certificate = certify(config, full(Linear(Simplex(4))), accountants=False)
    assert certificate.epsilon == pytest.approx(1.0, rel=1e-9)
    sums = config.make(full(Linear(Simplex(4))), Streams([0])).sums
    assert (sums.leaves, sums.sensitivity) == (29, 2.0)
    assert certify(NoisyOCO(epsilon=inf), full(Linear(Ball(2))), accountants=False).epsilon == inf


def test_eta_is_the_corrected_one():
    """Golden, by hand: D_w / (kappa sqrt T), D_w^2 = R^2 / 2 = 2 on a ball of radius 2, ln 8 on a
    simplex; with D_w^(1/2), as printed, 2^(1/4) / 10."""
    assert NoisyOCO().rate(Linear(Ball(3, radius=2.0)), 100) == pytest.approx(sqrt(2) / 10)
    entropic = NoisyOCO(map="entropic", gradient_bound=0.5)
    assert entropic.rate(Linear(Simplex(8)), 100) == pytest.approx(sqrt(log(8)) / 5)
    assert NoisyOCO(eta=0.25).rate(Linear(Ball(3)), 100) == 0.25


@pytest.mark.parametrize("kind", ["euclidean", "entropic"])
def test_tuned_eta_makes_the_bound_least(kind):
    """And it is never longer than without noise."""
    T, loss = 1000, Linear(Simplex(6))
    noise = Noise(law="k-norm", epsilon=1.0)
    config = NoisyOCO(map=kind, parameters="tuned")
    agent = config.make(full(loss, T), Streams([0]))
    spread = noise.spread(agent.sums._statistic, T - 1)
    D_w2 = log(6) if kind == "entropic" else 5 / 12

    def bound(eta):
        return D_w2 / eta + eta * T * (1 / 2 + spread)

    eta = config.rate(loss, T)
    assert all(bound(eta) < bound(eta * factor) for factor in (0.5, 0.99, 1.01, 2))
    assert eta < NoisyOCO(map=kind).rate(loss, T)


@pytest.mark.parametrize("epsilon", [1.0, inf])
@pytest.mark.parametrize("kind", ["euclidean", "entropic"])
def test_regret_is_below_the_bound(kind, epsilon):
    """Mean of 10 replicas of experts with linear losses, T = 256, both steps; without noise
    regret is also below sqrt T R L, by far."""
    T, R, loss = 256, 10, Linear(Simplex(5))
    data = np.clip(slopes(T, R, 5), -0.4, 0.4)
    centred = data - data.mean(axis=-1, keepdims=True)
    best = data.sum(axis=0).min(axis=-1)
    for parameters in ("paper", "tuned"):
        config = NoisyOCO(map=kind, epsilon=epsilon, parameters=parameters)
        agent = config.make(full(loss, T), Streams(range(R)))
        points = episode(agent, data)
        assert (points >= 0).all()
        np.testing.assert_allclose(points.sum(axis=-1), 1, rtol=1e-12)
        regret = np.vecdot(points, data).sum(axis=0) - best
        eta = config.rate(loss, T)
        D_w2 = log(5) if kind == "entropic" else 0.4
        spread = Noise(law="k-norm", epsilon=epsilon).spread(agent.sums._statistic, T - 1)
        assert regret.mean() < D_w2 / eta + eta * T * (1 / 2 + spread)
        if epsilon == inf:
            assert regret.mean() < sqrt(T) * np.linalg.norm(centred, axis=-1).max()


@pytest.mark.parametrize(
    ("settings", "spec", "words"),
    [
        ({"map": "entropic"}, full(Linear(Ball(3))), "only on a simplex"),
        ({}, ConvexSpec(loss=Linear(Ball(3)), horizon=9), "feedback='datum'"),
        ({"noise": "gaussian", "delta": 0.0}, full(Linear(Ball(3))), "delta"),
        ({"eta": 0.0}, full(Linear(Ball(3))), "eta"),
        ({"gradient_bound": -1.0}, full(Linear(Ball(3))), "gradient_bound"),
    ],
)
def test_impossible_settings_get_one_sentence(settings, spec, words):
    with pytest.raises(InputError, match=words):
        NoisyOCO(**settings).make(spec, Streams([0]))
