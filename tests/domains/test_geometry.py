"""Public constants, oracles, membership and projections against explicit corners, and beyond them
against other formulas; together equals one by one, exactly.

The corners come from `examples`, which enumerates sets, trees, paths and orders by itself; facets
come from Qhull.
"""

from functools import cache, partial
from itertools import combinations

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.distance import pdist

from dpbandit.base.random_streams import Streams
from dpbandit.domains import (
    Ball,
    ConcaveBase,
    Flows,
    Hypersimplex,
    SpanningTrees,
    Spectrahedron,
    SubmodularBase,
    nearest,
)
from tests.domains.examples import DOMAINS, POLYTOPES
from tests.each import each, refused

named = each("name", [n for n in POLYTOPES if n != "K5"])  # Qhull: seconds
polytopes = each("case", POLYTOPES.values(), ids=POLYTOPES)
domains = each("domain", DOMAINS.values(), ids=DOMAINS)
projecting = each("case", [c for c in POLYTOPES.values() if c.domain.has_projection])


def flat(domain, x):
    """Coordinates of x - centre in V."""
    return domain.coordinates(x - domain.centre)


@cache
def facets(name):
    """Outward unit normals (F, k) and distances from the centre (F,), in V."""
    domain, corners = POLYTOPES[name].domain, POLYTOPES[name].corners
    u = flat(domain, corners)
    if domain.affine_dim == 1:
        return np.array([[1.0], [-1.0]]), np.array([u.max(), -u.min()])
    equations = np.unique(ConvexHull(u).equations.round(9), axis=0)
    return equations[:, :-1], -equations[:, -1]


@polytopes
def test_the_basis_and_the_radii_are_those_of_the_corners(case):
    """The basis spans the differences of corners; `embedded` inverts `coordinates`; radii agree."""
    domain, corners = case.domain, case.corners
    k, Q = domain.affine_dim, np.eye(domain.dim) if domain.basis is None else domain.basis
    differences = corners - corners[0]
    assert Q.shape == (domain.dim, k)
    assert np.linalg.matrix_rank(differences) == k
    np.testing.assert_allclose(Q.T @ Q, np.eye(k), atol=1e-12)
    np.testing.assert_allclose(differences @ Q @ Q.T, differences, atol=1e-9)
    u = np.random.default_rng(0).normal(size=(4, k))
    np.testing.assert_allclose(domain.coordinates(domain.embedded(u)), u, atol=1e-12)
    back = domain.embedded(flat(domain, corners)) + domain.centre
    np.testing.assert_allclose(back, corners, atol=1e-9)
    np.testing.assert_allclose(flat(domain, domain.centre[None]), 0.0, atol=1e-12)
    offsets = np.linalg.norm(corners - domain.centre, axis=1)
    assert domain.outer_radius == pytest.approx(offsets.max(), rel=1e-12)
    widest = pdist(corners).max()
    assert widest <= domain.diameter * (1 + 1e-12)
    assert case.bounds or domain.diameter == pytest.approx(widest, rel=1e-12)


@domains
def test_every_domain(domain):
    """r <= R <= D <= 2 R. Whatever comes in, NaN, infinities and numbers at the end of the range, a
    point of the domain comes out."""
    r, R, D = domain.inner_radius, domain.outer_radius, domain.diameter
    assert {type(number) for number in (r, R, D)} == {float}
    assert 0 < r <= R <= D * (1 + 1e-12) <= 2 * R * (1 + 3e-12)
    assert domain.contains(domain.centre[None], 1e-12).all()
    assert hash(domain) == hash(domain)
    assert domain.centre.shape == (domain.dim,)
    bad = np.array([np.nan, np.inf, -np.inf, 1e308, -1e308, 1e100, 0.0, 1.0])
    v = np.random.default_rng(7).choice(bad, size=(300, domain.dim))
    assert domain.contains(domain.lowest(v), 1e-9).all()
    if domain.has_projection:
        assert domain.contains(domain.project(v), 1e-9).all()
    wild = ~(np.abs(v) < 1e9).all(axis=-1)
    assert wild.sum() > 100
    assert not domain.contains(v)[wild].any()


@polytopes
def test_the_linear_oracle_returns_a_corner_with_the_least_value(case):
    rng = np.random.default_rng(2)
    v = np.concatenate(
        [
            rng.normal(size=(200, case.domain.dim)),
            rng.integers(-1, 2, (200, 1)) * 1.0 * rng.integers(-1, 2, (200, case.domain.dim)),
        ]
    )  # with ties and zeros
    x = case.domain.lowest(v)
    np.testing.assert_allclose(np.vecdot(v, x), (v @ case.corners.T).min(axis=1), atol=1e-9)
    away = np.abs(x[:, None] - case.corners).max(axis=-1).min(axis=-1)
    assert away.max() < 1e-12


@named
def test_inner_radius_and_membership_against_facets(name):
    """Points just inside and just outside every facet, and off the affine hull; the inner radius is
    the distance to the nearest facet."""
    domain, corners = POLYTOPES[name].domain, POLYTOPES[name].corners
    normals, distances = facets(name)
    assert domain.inner_radius == pytest.approx(distances.min(), rel=1e-8)
    rng = np.random.default_rng(3)
    weights = rng.dirichlet(np.full(len(corners), 0.3), size=200)
    assert domain.contains(weights @ corners).all()
    on = [
        corners[np.abs(flat(domain, corners) @ a - b) < 1e-7].mean(axis=0)
        for a, b in zip(normals, distances, strict=True)
    ]
    outward = domain.embedded(normals)
    assert domain.contains(np.array(on) - 1e-6 * outward).all()
    assert not domain.contains(np.array(on) + 1e-6 * outward).any()
    if domain.basis is not None:
        off = np.eye(domain.dim) - domain.basis @ domain.basis.T
        moved = off[np.linalg.norm(off, axis=1) > 0.1]
        assert not domain.contains(domain.centre + 1e-3 * moved).any()


@projecting
def test_projections_meet_the_variational_inequality_at_every_corner(case):
    """x in C with <q - x, w - x> <= 0 at all corners w is the projection, and nothing else is."""
    rng = np.random.default_rng(4)
    dim, corners = case.domain.dim, case.corners
    for scale in (0.1, 1.0, 10.0):
        q = case.domain.centre + scale * rng.normal(size=(200, dim))
        q = np.concatenate([q, np.round(q), corners])  # ties, and points that stay
        x = case.domain.project(q)
        assert case.domain.contains(x, 1e-12 * max(1.0, np.abs(corners).max())).all()
        gains = (q - x) @ corners.T - np.vecdot(q - x, x)[:, None]
        assert gains.max() <= 1e-12 * max(1.0, scale) * np.abs(corners).max() * 10
        np.testing.assert_allclose(case.domain.project(x), x, atol=1e-12)
    np.testing.assert_allclose(case.domain.project(corners), corners, atol=1e-12)


def test_the_ball_and_the_spectrahedron_by_their_support_functions():
    """max over C of <q - x, w> is |q - x| for the ball, the top eigenvalue for matrices."""
    rng = np.random.default_rng(5)
    ball, matrices = Ball(3, 2.0), Spectrahedron(3)
    q = 2 * rng.normal(size=(300, 3))
    x = ball.project(q)
    assert ball.contains(x, 1e-12).all()
    assert (2 * np.linalg.norm(q - x, axis=1) - np.vecdot(q - x, x)).max() < 1e-12
    q = rng.normal(size=(300, 6))
    x = matrices.project(q)
    top = np.linalg.eigvalsh(matrices.matrix(q - x))[:, -1]
    assert matrices.contains(x, 1e-12).all()
    assert (top - np.vecdot(q - x, x)).max() < 1e-12
    low = matrices.lowest(q)
    np.testing.assert_allclose(np.vecdot(q, low), np.linalg.eigvalsh(matrices.matrix(q))[:, 0])
    assert matrices.contains(low).all()


@pytest.mark.parametrize("d", [2, 3, 5])
def test_the_spectrahedron_has_the_radii_of_its_eigenvalues(d):
    """A projector on a line is at R and a pair of orthogonal ones at D; the matrix I/d + r u with
    u = (I/d - e e') / |.| of trace 0 has eigenvalue 0: r cannot be larger."""
    domain = Spectrahedron(d)
    lines = np.stack([np.diag(row) for row in np.eye(d)])
    points = domain.vector(lines)
    assert np.linalg.norm(points[0] - domain.centre) == pytest.approx(domain.outer_radius)
    assert np.linalg.norm(points[0] - points[1]) == pytest.approx(domain.diameter)
    u = domain.centre - points[0]
    edge = domain.centre + domain.inner_radius * u / np.linalg.norm(u)
    assert np.linalg.eigvalsh(domain.matrix(edge)).min() == pytest.approx(0.0, abs=1e-12)
    Q = domain.basis
    np.testing.assert_allclose(Q.T @ Q, np.eye(domain.dim - 1), atol=1e-12)
    np.testing.assert_allclose(Q.T @ domain.centre, 0.0, atol=1e-12)


REPLICAS = 7


def one_by_one(method, *arrays):
    alone = [method(*(a[r : r + 1] for a in arrays)) for r in range(REPLICAS)]
    return np.concatenate(alone)


@domains
def test_together_equals_one_by_one(domain):
    """Each method and sampler of a domain returns for a point in a batch what it returns for the
    point alone, bit for bit, also where iterations end after different numbers of steps."""
    q = domain.centre + np.random.default_rng(8).normal(size=(REPLICAS, domain.dim))
    methods = [domain.lowest, domain.coordinates, domain.contains]
    if domain.has_projection:
        methods.append(domain.project)
    for method in methods:
        np.testing.assert_array_equal(method(q), one_by_one(method, q))
        np.testing.assert_array_equal(method(np.asfortranarray(q)), method(q))
        assert method(q).flags.c_contiguous, "rows in pieces: sums over them round otherwise"
    u = domain.coordinates(q)
    np.testing.assert_array_equal(domain.embedded(u), one_by_one(domain.embedded, u))
    start = np.tile(domain.centre, (REPLICAS, 1))
    start[::2] = domain.lowest(-q)[::2]
    near = partial(nearest, domain, tolerance=1e-3, budget=300)
    for field, found in enumerate(near(q, start)):
        alone = one_by_one(lambda *rows, field=field: near(*rows)[field], q, start)
        np.testing.assert_array_equal(found, alone)
    draw = domain.sampler(Streams(range(REPLICAS)), "point")
    alone = [domain.sampler(Streams([r]), "point") for r in range(REPLICAS)]
    for _ in range(5):
        np.testing.assert_array_equal(draw(), np.concatenate([one() for one in alone]))


@pytest.mark.parametrize("n", range(3, 9))
def test_inner_radius_of_complete_graphs_over_all_vertex_sets(n):
    """Distances of the centre to the hyperplanes, projected on V by hand."""
    edges = list(combinations(range(n), 2))
    rows, bounds = [*-np.eye(len(edges))], [0.0] * len(edges)
    for size in range(2, n):
        for chosen in combinations(range(n), size):
            rows.append(np.array([float(a in chosen and b in chosen) for a, b in edges]))
            bounds.append(size - 1.0)
    rows = np.array(rows)
    lengths = np.linalg.norm(rows - rows.mean(axis=1, keepdims=True), axis=1)
    expected = ((bounds - rows @ np.full(len(edges), 2 / n)) / lengths).min()
    assert SpanningTrees(n).inner_radius == pytest.approx(expected, rel=1e-12)


def test_spanning_trees_of_a_large_graph():
    """A cycle of 20: trees leave one edge out, so 1 - x is in the simplex and all is known."""
    N = 20
    cycle = tuple((i, (i + 1) % N) for i in range(N))
    domain = SpanningTrees(N, cycle, 1 / np.sqrt(N * (N - 1)))
    v = np.random.default_rng(15).normal(size=(30, N))
    np.testing.assert_array_equal(domain.lowest(v), 1 - np.eye(N)[v.argmax(axis=1)])
    np.testing.assert_allclose(domain.centre, 1 - 1 / N)
    assert domain.affine_dim == N - 1
    assert domain.diameter == pytest.approx(np.sqrt(2))
    assert domain.outer_radius == pytest.approx(np.sqrt((N - 1) / N))
    assert domain.contains(domain.lowest(v)).all()
    assert not domain.contains(domain.centre + 0.2 * (np.eye(N)[:5] - np.eye(N)[5:10])).any()
    refused("sampler", domain.sampler, Streams([0]), "point")


@pytest.mark.parametrize("N", [5, 12, 14])
def test_a_concave_function_of_the_size_two_ways(N):
    """Listed (N <= 12) or not: the general code equals the formulas of the concave base."""
    marks = tuple(float(a) for a in np.diff(np.sqrt(np.arange(N + 1))))
    known = ConcaveBase(marks)
    given = () if N <= 12 else (known.inner_radius, tuple(known.centre.tolist()))
    domain = SubmodularBase(lambda items: len(items) ** 0.5, N, *given)
    np.testing.assert_allclose(domain.centre, known.centre)
    assert domain.affine_dim == N - 1
    assert domain.inner_radius == pytest.approx(known.inner_radius)
    v = np.random.default_rng(16).normal(size=(40, N))
    np.testing.assert_allclose(domain.lowest(v), known.lowest(v), atol=1e-12)
    assert domain.contains(known.lowest(v)).all()
    outside = known.centre + 1.1 * known.outer_radius * v / np.linalg.norm(v, axis=1)[:, None]
    assert not domain.contains(outside).any()
    assert known.diameter / (1 + 1e-12) <= domain.diameter <= 2 * domain.outer_radius
    if N <= 12:
        assert domain.outer_radius == pytest.approx(known.outer_radius)
    else:
        assert domain.outer_radius >= known.outer_radius
        refused("sampler", domain.sampler, Streams([0]), "point")


def test_the_centre_of_flows_takes_the_better_of_two():
    """A road beside 30 diamonds in a row (2^30 paths: the mean path starves the road), and 30
    exits in a row (the even split starves the last)."""
    diamonds = [
        edge
        for i in range(30)
        for edge in ((i, (i, 0)), (i, (i, 1)), ((i, 0), i + 1), ((i, 1), i + 1))
    ]
    road = Flows((*diamonds, (0, 30)), 0, 30)
    exits = Flows((*((i, i + 1) for i in range(30)), *((i, 30) for i in range(29))), 0, 30)
    assert road.inner_radius > 0.1
    assert exits.inner_radius > 0.02
    assert road.contains(road.centre[None], 1e-12).all()


def test_projections_stay_exact_in_many_dimensions():
    """The variational inequality against the oracle's own worst corner, N = 300."""
    rng = np.random.default_rng(18)
    q = 3 * rng.normal(size=(20, 300))
    for domain in (Hypersimplex(300, 120), ConcaveBase(tuple(np.arange(300.0, 0, -1).tolist()))):
        x = domain.project(q)
        gap = np.vecdot(x - q, x - domain.lowest(x - q))
        assert domain.contains(x, 1e-9 * domain.diameter).all()
        assert gap.max() <= 1e-9 * domain.diameter**2
