"""Sizes beyond brute force: formulas against other formulas, and what is promised less."""

from itertools import combinations

import numpy as np
import pytest

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import ConcaveBase, Flows, Hypersimplex, SpanningTrees, SubmodularBase


def root(items):
    return len(items) ** 0.5


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
    with pytest.raises(InputError, match="sampler"):
        domain.sampler(Streams([0]), "point")


@pytest.mark.parametrize("N", [5, 12, 14])
def test_a_concave_function_of_the_size_two_ways(N):
    """Listed (N <= 12) or not: the general code equals the formulas of the concave base."""
    marks = tuple(float(a) for a in np.diff(np.sqrt(np.arange(N + 1))))
    known = ConcaveBase(marks)
    given = () if N <= 12 else (known.inner_radius, tuple(known.centre.tolist()))
    domain = SubmodularBase(root, N, *given)
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
        with pytest.raises(InputError, match="sampler"):
            domain.sampler(Streams([0]), "point")


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
