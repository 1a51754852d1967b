"""Uniform points: exact constructions in law, walks by their stationary law.

False alarms: every statistical check asks |z| < 4.9 per number, 1e-6 each; there are fewer than
200 numbers, so all checks together fail with probability below 2e-4 where they are right. The
seeds are fixed.
"""

import pickle

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.stats import kstest

from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, L1Ball, Product, Simplex, Spectrahedron
from tests.domains.examples import DOMAINS, POLYTOPES
from tests.each import each

REPLICAS, SIGMAS = 1500, 4.9


def sample(domain, calls, seed=12):
    draw = domain.sampler(Streams([(seed, r) for r in range(REPLICAS)]), "point")
    for _ in range(calls):
        x = draw()
    return x


def check_moments(x, mean, covariance):
    """Both within SIGMAS standard errors, the errors from the sample itself."""
    count = len(x)
    error = x.std(axis=0) / np.sqrt(count)
    assert (np.abs(x.mean(axis=0) - mean) <= SIGMAS * error + 1e-9).all()
    products = (x - mean)[:, :, None] * (x - mean)[:, None, :]
    error = products.std(axis=0) / np.sqrt(count)
    assert (np.abs(products.mean(axis=0) - covariance) <= SIGMAS * error + 1e-9).all()


def uniform_moments(corners):
    """Mean and covariance of the uniform law on a hull: a sum over the simplices of Delaunay.

    On a simplex with corners w_0..w_k the mean is m = mean w, and E xx' is
    (sum w w' + (k + 1)^2 m m') / ((k + 1) (k + 2)).
    """
    k = corners.shape[1]
    one = len(corners) == k + 1
    simplices = corners[None] if one else corners[Delaunay(corners, qhull_options="QJ").simplices]
    volumes = np.abs(np.linalg.det(simplices[:, 1:] - simplices[:, :1]))
    means = simplices.mean(axis=1)
    squares = np.einsum("sci,scj->sij", simplices, simplices)
    seconds = squares + (k + 1) ** 2 * means[:, :, None] * means[:, None, :]
    share = volumes / volumes.sum()
    mean = share @ means
    second = np.einsum("s,sij->ij", share, seconds) / ((k + 1) * (k + 2))
    return mean, second - np.outer(mean, mean)


EXACT = {
    "box": (Box(3, 0.5), np.eye(3) / 12),
    "ball": (Ball(3, 2.0), 4 * np.eye(3) / 5),
    "simplex": (Simplex(4), (np.eye(4) - 0.25) / 20),  # Dirichlet(1, 1, 1, 1)
    "l1 ball": (L1Ball(3, 2.0), 4 * 2 * np.eye(3) / (4 * 5)),  # E x_i^2 = 2 a^2/((N+1)(N+2))
    "product": (Product((Box(1, 0.5), Ball(1))), np.diag([1 / 12, 1 / 3])),
}


@pytest.mark.parametrize(("domain", "covariance"), EXACT.values(), ids=EXACT)
def test_exact_samplers_from_the_first_call(domain, covariance):
    check_moments(sample(domain, 1), domain.centre, covariance)


@pytest.mark.parametrize("name", ["U(3,6)", "I(2,5)", "ladder", "coverage"])
def test_walks_have_the_moments_of_the_uniform_law(name):
    """After 80 steps; exact moments from a triangulation of the corners."""
    domain, corners = POLYTOPES[name].domain, POLYTOPES[name].corners
    mean, covariance = uniform_moments(domain.coordinates(corners - domain.centre))
    x = sample(domain, 80)
    check_moments(domain.coordinates(x - domain.centre), mean, covariance)


def test_the_check_of_moments_can_fail():
    """Broken on purpose: a walk of two steps from the centre is not yet uniform, corners never
    are."""
    domain, corners = POLYTOPES["U(3,6)"].domain, POLYTOPES["U(3,6)"].corners
    mean, covariance = uniform_moments(domain.coordinates(corners - domain.centre))
    early = domain.coordinates(sample(domain, 2) - domain.centre)
    drawn = np.random.default_rng(15).choice(corners, size=REPLICAS)
    for x in (early, domain.coordinates(drawn - domain.centre)):
        with pytest.raises(AssertionError):
            check_moments(x, mean, covariance)


def test_spectrahedron_of_order_two_is_a_ball():
    """Real 2 x 2 density matrices are a disc: |X - I/2|^2 / R^2 is uniform on [0, 1]. With n = 2
    or n = 4 columns the law is another (the power of the test)."""
    domain = Spectrahedron(2)
    x = sample(domain, 1)
    share = np.vecdot(x - domain.centre, x - domain.centre) / domain.outer_radius**2
    assert kstest(share, "uniform").pvalue > 1e-6
    g = np.random.default_rng(13).normal(size=(REPLICAS, 2, 4))
    for columns in (2, 4):
        w = g[:, :, :columns] @ np.swapaxes(g[:, :, :columns], 1, 2)
        y = domain.vector(w / np.trace(w, axis1=1, axis2=2)[:, None, None])
        wrong = np.vecdot(y - domain.centre, y - domain.centre) / domain.outer_radius**2
        assert kstest(wrong, "uniform").pvalue < 1e-6


def test_spectrahedron_of_order_three_by_rejection():
    """Uniform on a box around it, those inside kept: the same second moments."""
    domain = Spectrahedron(3)
    rng = np.random.default_rng(14)
    diagonal = rng.dirichlet(np.ones(3), size=200_000)
    off = np.sqrt(0.5) * rng.uniform(-1, 1, size=(200_000, 3))  # |X_ij| <= 1/2, times sqrt 2
    x = np.empty((200_000, 6))
    x[:, [0, 3, 5]], x[:, [1, 2, 4]] = diagonal, off
    kept = x[domain.contains(x)]
    assert len(kept) > 2 * REPLICAS
    ours, theirs = (np.column_stack([y**2, y]) for y in (sample(domain, 1), kept))
    error = np.sqrt(ours.var(axis=0) / len(ours) + theirs.var(axis=0) / len(theirs))
    assert (np.abs(ours.mean(axis=0) - theirs.mean(axis=0)) < SIGMAS * error).all()


@each("domain", DOMAINS.values(), ids=DOMAINS)
def test_every_point_is_inside_and_they_differ(domain):
    draw = domain.sampler(Streams(range(30)), "point")
    points = np.array([draw() for _ in range(20)])
    assert domain.contains(points.reshape(-1, domain.dim), 1e-9).all()
    assert (points.std(axis=(0, 1)) > 0).sum() >= min(domain.affine_dim, 2)


@each("domain", DOMAINS.values(), ids=DOMAINS)
def test_copies_go_on_alike(domain):
    """Past the ends of blocks drawn ahead, and leaving the original alone."""
    draw, alone = (domain.sampler(Streams(range(2)), "point") for _ in range(2))
    for _ in range(4):
        draw(), alone()
    twin = pickle.loads(pickle.dumps(draw))
    theirs = np.array([twin() for _ in range(70)])
    np.testing.assert_array_equal(theirs, [draw() for _ in theirs])
    np.testing.assert_array_equal(theirs, [alone() for _ in theirs])
