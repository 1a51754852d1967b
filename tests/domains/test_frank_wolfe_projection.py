"""Nearest points by Frank-Wolfe: rates, certificates, budgets, and the shrunken copy."""

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.domains import (
    Ball,
    Flows,
    Hypersimplex,
    Simplex,
    SpanningTrees,
    frank_wolfe,
    nearest,
    pairwise_frank_wolfe,
    shrunk_projection,
)
from dpbandit.domains.domain import separated
from tests.domains.examples import DOMAINS, LADDER, POLYTOPES
from tests.each import each

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
    with pytest.raises(InputError, match="no exact projection"):
        trees.project(trees.centre[None])
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
            with pytest.raises(InputError, match=f"{name}={value}"):
                nearest(domain, *problem(domain), **{name: value})
