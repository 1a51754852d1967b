"""Local linear oracles: as low as anything near, not further than rho r, and the mixture is x."""

from math import comb, sqrt

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.domains import Ball, Box, Hypersimplex, IndependentSets, L1Ball, LpBall, Simplex
from dpbandit.domains.projections import PolytopeOracle, dearest, local_oracle
from tests.each import each

DOMAINS = [
    Ball(3, 1.5),
    Ball(1),
    Box(4, 0.7),
    Simplex(2),
    Simplex(6),
    L1Ball(4, 2.0),
    L1Ball(1),
    Hypersimplex(6, 2),
    Hypersimplex(4, 3),
]
every_domain = each("domain", DOMAINS, ids=str)
M = 400


def lowest_near(domain, x, radius, g):
    """Oracle: the least <y, g> within `radius` of x is at Proj(x - tau g) for some tau, whose
    distance from x grows with tau: bisection."""
    low, high = np.zeros(len(x)), np.full(len(x), 1e4)
    for _ in range(50):
        tau = (low + high) / 2
        y = domain.project(x - tau[:, None] * g)
        near = np.linalg.norm(y - x, axis=1) <= radius
        low, high = np.where(near, tau, low), np.where(near, high, tau)
    return np.vecdot(domain.project(x - low[:, None] * g), g)


def check(oracle, domain, x, radius, g):
    p = oracle(x, radius, g)
    assert domain.contains(p, 1e-9).all()
    scale = np.linalg.norm(g, axis=1) * domain.diameter
    assert (np.vecdot(p, g) <= lowest_near(domain, x, radius, g) + 1e-6 * scale).all()
    assert (np.linalg.norm(p - x, axis=1) <= oracle.rho * radius + 1e-9).all()
    return p


def questions(domain, count, seed=0):
    """Radii from tiny to everything; directions with ties and zeros among them."""
    rng = np.random.default_rng(seed)
    radius = domain.diameter * rng.choice([0.0, 0.01, 0.1, 0.5, 1.0, 3.0], size=count)
    g = rng.standard_normal((count, domain.dim))
    g[::7] = np.round(g[::7])
    g[:3] = 0
    return radius, g


def points(domain, count, seed=1):
    """Corners, faces and the inside."""
    rng = np.random.default_rng(seed)
    q = domain.centre + domain.diameter * rng.standard_normal((count, domain.dim))
    inside = rng.random((count, 1)) ** 2
    return domain.centre + inside * (domain.project(q) - domain.centre)


@pytest.mark.parametrize("domain", [d for d in DOMAINS if not isinstance(d, Hypersimplex)], ids=str)
def test_local_oracle(domain):
    """Test (8): both properties at 400 random points; with r >= D it is the linear oracle."""
    oracle, x = local_oracle(domain, M), points(domain, M)
    radius, g = questions(domain, M)
    p = check(oracle, domain, x, radius, g)
    far = radius >= domain.diameter
    lowest = np.vecdot(domain.lowest(g), g)
    np.testing.assert_allclose(np.vecdot(p, g)[far], lowest[far], rtol=0, atol=1e-9)
    assert domain.contains(oracle.start[None]).all()


@pytest.mark.parametrize("domain", [Hypersimplex(6, 2), Hypersimplex(4, 3), Simplex(5)], ids=str)
def test_polytope_oracle_keeps_its_mixture(domain):
    """x is a mixture of vertices throughout, and both properties hold, for 15 moves of up to the
    whole way; the list is no longer than the vertices and those of the start."""
    geometry = sqrt(2) if isinstance(domain, Simplex) else None
    oracle = PolytopeOracle(domain, 8, geometry) if geometry else local_oracle(domain, 8)
    x, rng = np.tile(oracle.start, (8, 1)), np.random.default_rng(2)
    for step in range(15):
        radius, g = questions(domain, 8, seed=step)
        p = check(oracle, domain, x, radius, g)
        share = rng.choice([0.02, 0.3, 1.0], size=8, p=[0.6, 0.3, 0.1])
        oracle.moved(share)
        x = x + share[:, None] * (p - x)
        assert (oracle._weights >= 0).all()
        np.testing.assert_allclose(oracle._weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        mixed = np.vecmat(oracle._weights, oracle._atoms)
        np.testing.assert_allclose(mixed, x, rtol=0, atol=1e-12)
    vertices = comb(domain.dim, domain.rank) if geometry is None else domain.dim
    assert (oracle._weights > 0).sum(axis=1).max() <= vertices + 2 * domain.dim


@every_domain
def test_replicas_do_not_meet(domain):
    """Batched equals one by one exactly."""
    together = local_oracle(domain, 5)
    alone = [local_oracle(domain, 1) for _ in range(5)]
    x = np.tile(together.start, (5, 1))
    for step in range(30):
        radius, g = questions(domain, 5, seed=step)
        p = together(x, radius, g)
        share = np.random.default_rng(step).random(5)
        for r, one in enumerate(alone):
            np.testing.assert_array_equal(
                one(x[r : r + 1], radius[r : r + 1], g[r : r + 1])[0], p[r]
            )
            one.moved(share[r : r + 1])
        together.moved(share)
        x = x + share[:, None] * (p - x)


def test_rho():
    """It is attained on a simplex, is chosen for polytopes of which none is known, or asked for.
    Golden: N = 2, all mass of (1, 0) moves when r = sqrt 2: |x - p| = sqrt 2 = rho r, rho = 1;
    by hand, mass sqrt(4) 0.4 / 2 = 0.4 of (.1, .2, .3, .4) leaves the last two, dearest first."""
    x, g = np.array([[1.0, 0.0]]), np.array([[1.0, 0.0]])
    oracle = local_oracle(Simplex(2), 1)
    np.testing.assert_array_equal(oracle(x, np.array([sqrt(2)]), g), [[0.0, 1.0]])
    assert oracle.rho == 1.0
    x = np.array([[0.1, 0.2, 0.3, 0.4]])
    p = local_oracle(Simplex(4), 1)(x, np.array([0.4]), np.array([[0.0, 1.0, 3.0, 2.0]]))
    np.testing.assert_allclose(p, [[0.5, 0.2, 0.0, 0.3]], rtol=0, atol=1e-15)
    removed = dearest(x, np.array([[0.0, 1.0, 3.0, 2.0]]), np.array([9.0]))
    np.testing.assert_allclose(removed, x, rtol=0, atol=1e-15)
    for domain in (LpBall(3, 1.5), IndependentSets(4, 2)):
        with pytest.raises(InputError, match=r"choose another .* geometry="):
            local_oracle(domain, 1)
    assert local_oracle(LpBall(3, 1), 1).rho == 2 * sqrt(3)
    assert local_oracle(IndependentSets(4, 2), 1, geometry=3.0).rho == 6.0
