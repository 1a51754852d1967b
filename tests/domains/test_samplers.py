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


def test_spectrahedra_by_rejection():
    """Uniform on a box around it, those inside kept: the same second moments. Of order two it is a
    disc, so |X - I/2|^2 / R^2 is uniform on [0, 1]."""
    disc = Spectrahedron(2)
    x = sample(disc, 1) - disc.centre
    assert kstest(np.vecdot(x, x) / disc.outer_radius**2, "uniform").pvalue > 1e-6
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


@pytest.mark.parametrize(("domain", "covariance"), EXACT.values(), ids=EXACT)
def test_exact_samplers_from_the_first_call(domain, covariance):
    check_moments(sample(domain, 1), domain.centre, covariance)


@pytest.mark.parametrize("name", ["U(3,6)", "I(2,5)", "ladder", "coverage"])
def test_walks_have_the_moments_of_the_uniform_law(name):
    """After 80 steps; exact moments from a triangulation of the corners. Broken on purpose: a walk
    of two steps from the centre is not yet uniform, corners never are."""
    domain, corners = POLYTOPES[name].domain, POLYTOPES[name].corners
    moments = uniform_moments(domain.coordinates(corners - domain.centre))
    check_moments(domain.coordinates(sample(domain, 80) - domain.centre), *moments)
    if name == "U(3,6)":
        drawn = np.random.default_rng(15).choice(corners, size=REPLICAS)
        for x in (sample(domain, 2), drawn):
            with pytest.raises(AssertionError):
                check_moments(domain.coordinates(x - domain.centre), *moments)


@each("domain", DOMAINS.values(), ids=DOMAINS)
def test_points_are_inside_and_differ_and_copies_go_on_alike(domain):
    """Past the ends of blocks drawn ahead, and leaving the original alone."""
    draw, alone = (domain.sampler(Streams(range(2)), "point") for _ in range(2))
    points = np.array([draw() for _ in range(20)])
    assert domain.contains(points.reshape(-1, domain.dim), 1e-9).all()
    assert (points.std(axis=(0, 1)) > 0).sum() >= min(domain.affine_dim, 2)
    np.testing.assert_array_equal(points, [alone() for _ in points])
    twin = pickle.loads(pickle.dumps(draw))
    theirs = np.array([twin() for _ in range(70)])
    np.testing.assert_array_equal(theirs, [draw() for _ in theirs])
    np.testing.assert_array_equal(theirs, [alone() for _ in theirs])
