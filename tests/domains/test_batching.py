"""The number of replicas does not enter the arithmetic: together equals one by one, exactly."""

import numpy as np

from dpbandit.base.random_streams import Streams
from dpbandit.domains import nearest
from tests.domains.examples import DOMAINS
from tests.each import each

REPLICAS = 7

domains = each("domain", DOMAINS.values(), ids=DOMAINS)


def points(domain):
    rng = np.random.default_rng(8)
    return domain.centre + rng.normal(size=(REPLICAS, domain.dim))


def one_by_one(method, *arrays):
    alone = [method(*(a[r : r + 1] for a in arrays)) for r in range(REPLICAS)]
    return np.concatenate(alone)


@domains
def test_oracles_projections_coordinates_membership(domain):
    q = points(domain)
    methods = [domain.lowest, domain.coordinates, domain.contains]
    if domain.has_projection:
        methods.append(domain.project)
    for method in methods:
        np.testing.assert_array_equal(method(q), one_by_one(method, q))
        np.testing.assert_array_equal(method(np.asfortranarray(q)), method(q))
        assert method(q).flags.c_contiguous, "rows in pieces: sums over them round otherwise"
    u = domain.coordinates(q)
    np.testing.assert_array_equal(domain.embedded(u), one_by_one(domain.embedded, u))


@domains
def test_nearest_points_whoever_else_is_still_moving(domain):
    q, start = points(domain), np.tile(domain.centre, (REPLICAS, 1))
    start[::2] = domain.lowest(-q)[::2]

    def run(q, start):
        return nearest(domain, q, start, tolerance=1e-3, budget=300)

    together = run(q, start)
    for field in range(3):
        alone = one_by_one(lambda *a, field=field: run(*a)[field], q, start)
        np.testing.assert_array_equal(together[field], alone)


@domains
def test_samplers(domain):
    together = domain.sampler(Streams(range(REPLICAS)), "point")
    alone = [domain.sampler(Streams([r]), "point") for r in range(REPLICAS)]
    for _ in range(5):
        expected = np.concatenate([draw() for draw in alone])
        np.testing.assert_array_equal(together(), expected)
