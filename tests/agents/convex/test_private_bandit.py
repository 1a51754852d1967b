"""PrivateBandit and its kin: the algorithm line by line, its privacy by coupling, its edges."""

import dataclasses
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit.agents import GarberKretzu, PrivateBandit
from dpbandit.agents.convex.projection_free import printed_gaussian, printed_laplace
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import (
    Ball,
    Box,
    Hypersimplex,
    IndependentSets,
    L1Ball,
    Simplex,
    SpanningTrees,
    Spectrahedron,
)
from dpbandit.losses import Linear, Quadratic
from dpbandit.privacy.prefix_sums import Tree
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each
from tests.privacy.sums.prefix_checks import script

LOCAL = PrivateBandit(noise="local")
PRINTED = {"calibration": "paper", "noise": "laplace"}


def linear(T, domain=None):
    return ConvexSpec(loss=Linear(domain or Ball(5)), horizon=T)


def quadratic(T):
    return ConvexSpec(loss=Quadratic(Ball(5)), horizon=T)


def episode(agent, values, T, R=1):
    """Points and directions of T rounds of `values(t, x)`; agents are told the reward -f."""
    context, points, directions = np.zeros((R, 1)), [], []
    for t in range(T):
        x = agent.act(context)
        points.append(x)
        run = getattr(agent.run, "_run", agent.run)
        directions.append(run._directions.u)
        agent.update(context, x, -values(t, x))
    return np.array(points), np.array(directions)


# The algorithm


def steepest(domain, q, x, *, xi, gap, budget):
    """Frank-Wolfe for the point of C' nearest to q, one replica."""
    for _ in range(budget):
        s = domain.centre + (1 - xi) * (domain.lowest((x - q)[None])[0] - domain.centre)
        if (x - q) @ (x - s) <= gap:
            return x
        x = x + min(1.0, (x - q) @ (x - s) / ((x - s) @ (x - s))) * (s - x)
    return x


def section_by_section(plan, u, nodes, values):
    """The algorithm, one replica and one round at a time, with given directions and node noises.

    The tree is spelled out as well: node number t holds the leaves (t - lowbit(t), t].
    """
    T, b, zeta, domain = plan.horizon, plan.batch, plan.zeta, plan.loss.domain
    low, high = plan.loss.value_range
    k, K, Q = domain.affine_dim, -(-T // b), domain.basis
    Q = np.eye(k) if Q is None else Q
    m, xi, c0 = max(K - (2 if plan.stale else 1), 0), zeta / domain.inner_radius, domain.centre
    leaves, shat, y, points = [], {0: np.zeros(k)}, {1: c0, 2: c0}, []
    for R in range(1, K + 1):
        g = np.zeros(k)
        for t in range((R - 1) * b, min(R * b, T)):
            x = y[R] + zeta * Q @ u[t]
            points.append(x)
            value = np.clip(values(t, x[None])[0], low, high) - plan.estimates.offset
            g = g + k / zeta * value * u[t]
        if len(leaves) < m:
            leaves.append(g)
            shat[R], t = np.zeros(k), R
            while t:
                start = t - (t & -t)
                shat[R] = shat[R] + np.sum(leaves[start:t], axis=0) + nodes[t - 1]
                t = start
        if R < K:
            source = R - 1 if plan.stale else R
            sign = 1 if plan.descend else -1
            q = c0 - sign * plan.eta * Q @ shat[source]
            if plan.exact:
                inner = c0 + (q - c0) / (1 - xi)
                y[R + 1] = c0 + (1 - xi) * (domain.project(inner[None])[0] - c0)
            else:
                gap = 2 * ((1 - xi) * domain.diameter) ** 2 / (b + 2)
                y[R + 1] = steepest(domain, q, y[R], xi=xi, gap=gap, budget=b)
    return np.array(points)


HORIZONS = [*range(1, 14, 2), 37, 99, 100, 101, 110]
"""No data, one leaf, primes, T = b K and one round more or less."""
WAYS = {
    "ball": (Ball(3), {}),
    "one dimension": (Ball(1, radius=2.0), {"zeta": 0.3}),
    "simplex": (Simplex(4), {}),
    "not stale": (Ball(3), {"stale": False}),
    "frank-wolfe": (Hypersimplex(5, 2), {"projection": "frank-wolfe", "eta": 0.1}),
    "other batches": (Ball(3), {"batch": 4, "offset": 0.4, "eta": 0.3}),
    "printed sign": (Ball(3), {"sign": "printed"}),
}


@pytest.mark.parametrize("way", WAYS)
def test_agent_is_the_algorithm_line_by_line(way):
    """Oracle: with the same directions and node noises, points within 1e-12 of a plain loop."""
    domain, settings = WAYS[way]
    slope = np.linspace(-1, 1, domain.dim) / domain.dim

    def values(t, x):
        return (x - domain.centre) @ slope * (1 + t % 3) + 0.2 * np.sin(t)

    moved = 0
    for T in HORIZONS:
        config = PrivateBandit(noise="k-norm", **settings)
        agent = config.make(linear(T, domain), Streams([T]))
        plan = agent.run.plan
        nodes = np.random.default_rng(T).standard_normal((T, domain.affine_dim))
        agent.run._sums._noise = Tree().of(script(nodes[:, None]), stddev=1.0)
        points, u = episode(agent, values, T)
        expected = section_by_section(plan, u[:, 0], nodes, values)
        np.testing.assert_allclose(points[:, 0], expected, rtol=0, atol=1e-12)
        moved += np.abs(points[:, 0] - domain.centre).max() > 1.5 * plan.zeta
    assert moved > 2


def test_golden_numbers_of_one_plan():
    """Golden, by hand, T = 10^4, k = 5, unit ball, L = 1, W = 2, epsilon 1, delta 1e-6:
    zeta = 2 sqrt(5) / 10, h = bit_length(98) = 7, W k / zeta = 22.36, mu(1, 1e-6) = 0.236704."""
    spec = linear(10_000)
    plans = {noise: PrivateBandit(noise=noise).plan(spec) for noise in ("laplace", "k-norm")}
    plan = plans["gaussian"] = PrivateBandit().plan(spec)
    assert (plan.batch, plan.batches, plan.leaves) == (100, 100, 98)
    assert plan.zeta == pytest.approx(0.447214, abs=1e-6)
    assert plan.eta == pytest.approx(2 / (1000 * sqrt(5)))
    unit = plan.estimates.sensitivity
    scale = {n: p.noise.multiplier(p.estimates, 98) * unit for n, p in plans.items()}
    assert scale["laplace"] * sqrt(5) == pytest.approx(350.0, abs=0.05)
    assert scale["k-norm"] == pytest.approx(156.525, abs=1e-3)
    assert scale["gaussian"] == pytest.approx(249.9, abs=0.05)
    assert plan.spend.mu == pytest.approx(0.236704, abs=1e-6)
    assert printed_laplace(10_000, 5, 1.0, 1.0) == pytest.approx(4605.2, abs=0.05)
    assert printed_gaussian(10_000, 5, 1.0, 1.0, 1e-6) == pytest.approx(2.135e5, rel=5e-4)


def test_tuned_parameters_make_the_bound_least():
    """Golden for the hypersimplex U(3, 6), T = 10^4: zeta, eta and the bound without e_cg. No
    other zeta or eta on a grid has a lower bound."""
    spec = linear(10_000, Hypersimplex(6, 3))
    for config, zeta, eta, bound in (
        (GarberKretzu(parameters="tuned"), 0.1311, 2.095e-4, 12712),
        (PrivateBandit(parameters="tuned", noise="k-norm"), 0.1876, 9.913e-5, 23078),
        (PrivateBandit(parameters="tuned"), 0.1704, 1.127e-4, 20531),
    ):
        plan = config.plan(spec)
        assert plan.zeta == pytest.approx(zeta, abs=5e-5)
        assert plan.eta == pytest.approx(eta, rel=5e-4)
        assert plan.tuned_bound == pytest.approx(bound, abs=1)
        assert plan.regret_bound() <= plan.tuned_bound  # kappa <= sqrt(b) G + b L
        for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 1.4):
            other = dataclasses.replace(plan, zeta=factor * plan.zeta)
            assert other.tuned_bound > plan.tuned_bound
            slower = dataclasses.replace(plan, eta=factor * plan.eta)
            assert slower.regret_bound(adaptive=True) > plan.regret_bound(adaptive=True)


def adaptive(spec, changed_round=None):
    """A slope towards the mean of all points so far: losses react to everything released. One
    changed round flips the sign of its loss."""
    seen, c0 = [], spec.loss.domain.centre

    def values(t, x):
        past = np.mean(seen, axis=0) - c0 if t else np.eye(len(c0))[0]
        seen.append(x)
        slope = past / np.maximum(np.linalg.norm(past, axis=-1, keepdims=True), 1e-9)
        return np.vecdot(x - c0, slope) * (-1 if t == changed_round else 1)

    return values


@each("settings", [{}, {"parameters": "tuned"}, {"anytime": True}])
@each("noise", ["gaussian", "laplace", "k-norm", "local"])
def test_without_privacy_it_is_garber_kretzu_bit_for_bit(noise, settings):
    """Noise has a stream of its own; and another epsilon still explores in the same directions."""
    spec = linear(100)
    agents = [
        config.make(spec, Streams(range(3)))
        for config in (
            PrivateBandit(noise=noise, epsilon=inf, **settings),
            GarberKretzu(**settings),
            PrivateBandit(noise=noise, epsilon=0.1, **settings),
        )
    ]
    (points, u), (exact, v), (_, w) = (episode(a, adaptive(spec), 100, 3) for a in agents)
    assert agents[0].ledger.epsilon(0.5) == agents[1].ledger.epsilon(0.5) == inf
    np.testing.assert_array_equal(points, exact)
    np.testing.assert_array_equal(u, v)
    np.testing.assert_array_equal(u, w)


# Exploration


DOMAINS = [
    Ball(3),
    Ball(1),
    Box(4),
    L1Ball(5),
    Simplex(6),
    Hypersimplex(6, 3),
    IndependentSets(5, 2),
    SpanningTrees(4),
    Spectrahedron(2),
]


@each("domain", DOMAINS, ids=repr)
@each("noise", ["gaussian", "laplace", "k-norm", "local"])
def test_every_point_is_in_the_domain(domain, noise):
    """With zeta at its cap r / 2 and noise so large that every step ends on the boundary."""
    spec = linear(100, domain)
    config = PrivateBandit(noise=noise, epsilon=1e-6)
    agent = config.make(spec, Streams(range(4)))
    assert agent.run.plan.zeta == domain.inner_radius / 2
    slope = np.linspace(-1, 1, domain.dim)
    points, u = episode(agent, lambda t, x: (x - domain.centre) @ slope / domain.dim, 100, 4)
    assert np.isfinite(points).all()
    assert domain.contains(points.reshape(-1, domain.dim)).all()
    assert (agent.oracle_calls <= 100).all()
    steps = points - domain.embedded(agent.run.plan.zeta * u)
    assert np.linalg.norm(steps - domain.centre, axis=-1).max() > 0.4 * domain.inner_radius


@pytest.mark.parametrize("domain", [Ball(5), Simplex(4)], ids=repr)
def test_directions_are_uniform_on_the_sphere(domain):
    """Statistical: 10,000 directions, E u = 0 and E u u' = I / k within 5 errors (false alarm
    2e-5 over all entries); |u| = 1 and Q u in V to rounding."""
    n, k = 500, domain.affine_dim
    agent = GarberKretzu().make(linear(n, domain), Streams(range(20)))
    _, u = episode(agent, lambda t, x: np.zeros(len(x)), n, 20)
    u = u.reshape(-1, k)
    np.testing.assert_allclose(np.linalg.norm(u, axis=1), 1, rtol=1e-14)
    assert np.abs(u.mean(axis=0)).max() < 5 / sqrt(k * len(u))
    second = np.einsum("ni,nj->nij", u, u)
    errors = second.std(axis=0) / sqrt(len(u))
    assert (np.abs(second.mean(axis=0) - np.eye(k) / k) < 5 * errors).all()


def WAVES(t, x):
    return 0.3 * np.sin(7 * x[:, 0] + t)


def test_constant_losses_leave_it_in_the_centre():
    """L = 0: no step is needed, and none is taken, whatever the noise."""

    class Constant(Linear):
        lipschitz = 0.0

    spec = ConvexSpec(loss=Constant(Ball(3)), horizon=200)
    for settings in ({}, {"parameters": "tuned"}, {"noise": "local"}):
        agent = PrivateBandit(**settings).make(spec, Streams([0]))
        points, _ = episode(agent, lambda t, x: np.ones(len(x)), 200)
        np.testing.assert_allclose(np.linalg.norm(points, axis=-1), agent.run.plan.zeta, rtol=1e-12)
        assert agent.run.plan.regret_bound() == 0


def test_memory_is_bounded_and_a_long_plan_is_cheap():
    """T = 10^8: one batch of 10^4 rounds is all that is ever kept."""
    agent = PrivateBandit().make(linear(10**8), Streams([0]))
    episode(agent, WAVES, 3)
    kept = sum(a.nbytes for a in agent.run._sums._pending)
    assert kept == 8 * 10_000 * (1 + 5)
    assert agent.run.plan.leaves == 9998


@each(
    ("settings", "spec"),
    [
        ({"calibration": "paper", "noise": "k-norm"}, linear(9)),
        ({"calibration": "paper", "noise": "local"}, linear(9)),
        ({"delta": 0.0}, linear(9)),
        ({"zeta": 1.0}, linear(9)),
        ({"zeta": -1.0}, linear(9)),
        ({"eta": 0.0}, linear(9)),
        ({"batch": 0}, linear(9)),
        ({"noise": "knorm"}, linear(9)),
        ({"projection": "exact"}, linear(9, SpanningTrees(4))),
        ({}, ContextualSpec(n_actions=2, dim=2, horizon=9)),
        ({}, dataclasses.replace(linear(9), feedback="datum")),
        ({}, dataclasses.replace(linear(9), delay=1)),
    ],
    ids=str,
)
def test_impossible_settings_get_one_sentence(settings, spec):
    with pytest.raises(InputError):
        PrivateBandit(**settings).make(spec, Streams([0]))


def test_a_domain_without_a_ball_is_refused():
    class Segment(Ball):
        inner_radius = 0.0

    with pytest.raises(InputError, match="contains none"):
        PrivateBandit().make(linear(9, Segment(2)), Streams([0]))
