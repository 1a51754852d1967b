"""Nearest points by Frank-Wolfe: rates, certificates, budgets, and the shrunken copy. Local linear
oracles: as low as anything near, not further than rho r, and the mixture is x."""

from math import comb, sqrt

import numpy as np
import pytest

from dpbandit.domains import (
    Ball,
    Box,
    Flows,
    Hypersimplex,
    IndependentSets,
    L1Ball,
    LpBall,
    Simplex,
    SpanningTrees,
    frank_wolfe,
    nearest,
    pairwise_frank_wolfe,
    shrunk_projection,
)
from dpbandit.domains.matroids import separated
from dpbandit.domains.projections import PolytopeOracle, largest_costs, local_oracle
from tests.domains.examples import DOMAINS, LADDER, POLYTOPES
from tests.each import each, refused

REPLICAS, STEPS, SHRINK = 20, 30, 0.25
EXACT = {name: d for name, d in DOMAINS.items() if d.has_projection}

exact = each("domain", EXACT.values(), ids=EXACT)


def problem(domain, scale=1.0, seed=9):
    rng = np.random.default_rng(seed)
    q = domain.centre + scale * rng.normal(size=(REPLICAS, domain.dim))
    start = domain.lowest(rng.normal(size=q.shape))
    return q, domain.centre + (1 - SHRINK) * (start - domain.centre)


def objective(x, q):
    return 0.5 * np.vecdot(x - q, x - q)


@exact
@each("scale", [0.2, 3.0])
def test_objective_gap_and_distance_after_every_number_of_steps(domain, scale):
    """phi - phi* <= 2 D'^2 / (j + 2) after j steps, |x - x*|^2 <= 2 (phi - phi*) <= 2 gap; x*, the
    shrunken projection, has <q - x*, w - x*> <= 0 at the w of C' with the largest <q - x*, w>."""
    q, start = problem(domain, scale)
    best = shrunk_projection(domain, q, SHRINK)
    w = domain.centre + (1 - SHRINK) * (domain.lowest(best - q) - domain.centre)
    assert np.vecdot(q - best, w - best).max() < 1e-9
    assert domain.contains(domain.centre + (best - domain.centre) / (1 - SHRINK), 1e-9).all()
    D = (1 - SHRINK) * domain.diameter
    slack = 1e-10 * max(1.0, objective(best, q).max())
    x = start
    for j in range(1, STEPS + 1):  # a step does not remember: j steps are j times one
        found = frank_wolfe(domain, q, x, shrink=SHRINK, tolerance=0.0, budget=1)
        x = found.point
        excess = objective(x, q) - objective(best, q)
        assert (excess <= 2 * D**2 / (j + 2) + slack).all()
        distance = np.linalg.norm(x - best, axis=1)
        assert (distance**2 <= 2 * np.maximum(excess, 0) + slack).all()
        assert (distance**2 <= 2 * found.gap + slack).all()
    together = frank_wolfe(domain, q, start, shrink=SHRINK, tolerance=0.0, budget=STEPS)
    np.testing.assert_array_equal(together.point, x)
    assert (together.calls <= STEPS).all()


@each("domain", DOMAINS.values(), ids=DOMAINS)
def test_exploration_around_the_shrunken_copy_stays_inside(domain):
    q, start = problem(domain)
    x = nearest(domain, q, start, shrink=SHRINK, budget=50).point
    g = np.random.default_rng(10).normal(size=(REPLICAS, domain.affine_dim))
    u = domain.embedded(g / np.linalg.norm(g, axis=1, keepdims=True))
    assert domain.contains(x + SHRINK * domain.inner_radius * u, 1e-9).all()


CORNERS = {name: case for name, case in POLYTOPES.items() if name not in ("K5", "interval")}


@each("case", CORNERS.values(), ids=CORNERS)
@each("scale", [0.3, 2.0])
def test_pairwise_steps_reach_the_fixed_tolerance(case, scale):
    """1e-6 D^2 in at most 500 calls, by the explicit corners; plain steps cannot (10,000 and
    more on half of these problems). The certificate bounds the distance to the projection."""
    domain = case.domain
    q, start = problem(domain, scale)
    goal = 1e-6 * domain.diameter**2
    found = pairwise_frank_wolfe(domain, q, start, shrink=SHRINK, tolerance=goal, budget=500)
    corners = domain.centre + (1 - SHRINK) * (case.corners - domain.centre)
    slope = found.point - q
    gap = np.vecdot(slope, found.point) - (slope @ corners.T).min(axis=1)
    assert gap.max() <= goal * (1 + 1e-6)
    np.testing.assert_allclose(found.gap, np.maximum(gap, 0), atol=1e-3 * goal)
    assert (found.calls <= 500).all()
    core = domain.centre + (found.point - domain.centre) / (1 - SHRINK)
    assert domain.contains(core, 1e-9).all()
    if domain.has_projection:
        distance = np.linalg.norm(found.point - shrunk_projection(domain, q, SHRINK), axis=1)
        assert (distance <= np.sqrt(2 * found.gap) + 1e-9).all()


@each("budget", [0, 1, 2, 7])
@each("method", [frank_wolfe, pairwise_frank_wolfe])
def test_the_budget_binds_and_the_certificate_holds_all_the_same(method, budget):
    """Without a budget the start comes back and nothing is promised."""
    domain = Hypersimplex(6, 3)
    q, start = problem(domain, 0.3)
    found = method(domain, q, start, shrink=SHRINK, tolerance=0.0, budget=budget)
    best = shrunk_projection(domain, q, SHRINK)
    assert (found.calls <= budget).all()
    if not budget:
        np.testing.assert_array_equal(found.point, start)
        assert np.isinf(found.gap).all()
    assert domain.contains(domain.centre + (found.point - domain.centre) / (1 - SHRINK)).all()
    distance = np.linalg.norm(found.point - best, axis=1)
    assert (distance <= np.sqrt(2 * found.gap) + 1e-9).all()


def test_a_full_table_of_atoms_still_converges():
    """On a ball every step finds a new corner."""
    q, start = problem(Ball(3), 3.0)
    q[::2] /= 20  # some inside
    found = pairwise_frank_wolfe(Ball(3), q, start, tolerance=1e-7, budget=3000)
    assert found.calls.max() > 2 * 8
    distance = np.linalg.norm(found.point - Ball(3).project(q), axis=1)
    assert (distance <= np.sqrt(2 * found.gap) + 1e-9).all()
    assert found.gap.max() <= 1e-7


def test_nearest_is_exact_where_it_can_be_and_certified_where_not():
    ball = Ball(3)
    q, start = problem(ball)
    found = nearest(ball, q, start, shrink=SHRINK)
    np.testing.assert_array_equal(found.point, shrunk_projection(ball, q, SHRINK))
    assert not found.gap.any()
    assert not found.calls.any()
    trees = SpanningTrees(4)
    refused("no exact projection", trees.project, trees.centre[None])
    q, start = problem(trees)
    found = nearest(trees, q, start, tolerance=1e-3, budget=2000)
    corners = POLYTOPES["K4"].corners
    gap = np.vecdot(found.point - q, found.point) - ((found.point - q) @ corners.T).min(axis=1)
    assert gap.max() <= 1e-3
    np.testing.assert_allclose(found.gap, np.maximum(gap, 0), atol=1e-12)


@pytest.mark.parametrize("name", ["K4", "ladder", "coverage", "simplex"])
def test_separated_proves_and_never_lies(name):
    """Never True inside; True at every point well outside."""
    domain, corners = POLYTOPES[name].domain, POLYTOPES[name].corners
    rng = np.random.default_rng(11)
    inside = rng.dirichlet(np.full(len(corners), 0.2), size=100) @ corners
    assert not separated(domain, np.concatenate([inside, corners]), 1e-9).any()
    g = rng.normal(size=(100, domain.affine_dim))
    u = domain.embedded(g / np.linalg.norm(g, axis=1, keepdims=True))
    outside = domain.centre + 1.2 * domain.outer_radius * u
    assert separated(domain, outside, 1e-9).all()


def test_one_clear_sentence():
    for name, value in (("shrink", 1.0), ("shrink", -0.1), ("tolerance", -1.0), ("budget", 1.5)):
        for domain in (Flows(LADDER, "s", "t"), Simplex(3))[: 1 + (name == "shrink")]:
            refused(f"{name}={value}", nearest, domain, *problem(domain), **{name: value})


LOCAL = [
    *(Ball(3, 1.5), Ball(1), Box(4, 0.7), Simplex(2), Simplex(6), L1Ball(4, 2.0), L1Ball(1)),
    *(Hypersimplex(6, 2), Hypersimplex(4, 3)),
]
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
    proposal = oracle.propose(x, radius, g)
    p = proposal.point
    assert domain.contains(p, 1e-9).all()
    scale = np.linalg.norm(g, axis=1) * domain.diameter
    assert (np.vecdot(p, g) <= lowest_near(domain, x, radius, g) + 1e-6 * scale).all()
    assert (np.linalg.norm(p - x, axis=1) <= oracle.rho * radius + 1e-9).all()
    return proposal


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


@pytest.mark.parametrize("domain", [d for d in LOCAL if not isinstance(d, Hypersimplex)], ids=str)
def test_local_oracle(domain):
    """Test (8): both properties at 400 random points; with r >= D it is the linear oracle."""
    oracle, x = local_oracle(domain, M), points(domain, M)
    radius, g = questions(domain, M)
    p = check(oracle, domain, x, radius, g).point
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
        proposal = check(oracle, domain, x, radius, g)
        share = rng.choice([0.02, 0.3, 1.0], size=8, p=[0.6, 0.3, 0.1])
        oracle.accept(proposal, share)
        x = x + share[:, None] * (proposal.point - x)
        assert (oracle._weights >= 0).all()
        np.testing.assert_allclose(oracle._weights.sum(axis=1), 1.0, rtol=0, atol=1e-12)
        mixed = np.vecmat(oracle._weights, oracle._atoms)
        np.testing.assert_allclose(mixed, x, rtol=0, atol=1e-12)
    vertices = comb(domain.dim, domain.rank) if geometry is None else domain.dim
    assert (oracle._weights > 0).sum(axis=1).max() <= vertices + 2 * domain.dim


@each("domain", LOCAL, ids=str)
def test_replicas_do_not_meet(domain):
    """Batched equals one by one exactly."""
    together = local_oracle(domain, 5)
    alone = [local_oracle(domain, 1) for _ in range(5)]
    x = np.tile(together.start, (5, 1))
    for step in range(30):
        radius, g = questions(domain, 5, seed=step)
        p = together.propose(x, radius, g)
        share = np.random.default_rng(step).random(5)
        for r, one in enumerate(alone):
            mine = slice(r, r + 1)
            own = one.propose(x[mine], radius[mine], g[mine])
            np.testing.assert_array_equal(own.point[0], p.point[r])
            one.accept(own, share[mine])
        together.accept(p, share)
        x = x + share[:, None] * (p.point - x)


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
    removed = largest_costs(x, np.array([[0.0, 1.0, 3.0, 2.0]]), np.array([9.0]))
    np.testing.assert_allclose(removed, x, rtol=0, atol=1e-15)
    for domain in (LpBall(3, 1.5), IndependentSets(4, 2)):
        refused(r"choose another .* geometry=", local_oracle, domain, 1)
    assert local_oracle(LpBall(3, 1), 1).rho == 2 * sqrt(3)
    assert local_oracle(IndependentSets(4, 2), 1, geometry=3.0).rho == 6.0
