"""The l_p ball for all p, at all scales: its oracle, projection and sampler. Uniform points of all
domains: exact constructions in law, walks by their stationary law.

False alarms: statistical checks ask |z| < 4.9 per number, 1e-6 each of fewer than 250 numbers, or a
p-value above 1e-6: below 3e-4 together where they are right. The seeds are fixed.
"""

import pickle

import numpy as np
import pytest
from scipy.spatial import Delaunay
from scipy.special import gammaln
from scipy.stats import kstest

from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, L1Ball, LpBall, Product, Simplex, Spectrahedron
from tests.domains.examples import DOMAINS, POLYTOPES
from tests.each import each

SIGMAS = 4.9
ALL = [1 + 1e-9, 1.001, 1.1, 1.5, 3, 10, 1e4, 1e12]
TWINS = {1: L1Ball(4, 0.7), 2: Ball(4, 0.7), np.inf: Box(4, 0.7)}


def norm(x, p):
    """|x|_p along the last axis, of rows of any size."""
    top = np.maximum(np.abs(x).max(axis=-1), 5e-324)
    if p == np.inf:
        return top
    return top * ((np.abs(x) / top[..., None]) ** p).sum(axis=-1) ** (1 / p)


def dual(p):
    return np.inf if p == 1 else 1.0 if p == np.inf else p / (p - 1)


@pytest.mark.parametrize(("p", "twin"), TWINS.items())
def test_known_balls_are_themselves(p, twin):
    domain = LpBall(4, p, 0.7)
    rng = np.random.default_rng(0)
    q = np.concatenate([rng.normal(size=(200, 4)), rng.integers(-2, 3, (200, 4)), np.zeros((1, 4))])
    for name in ("lowest", "project", "contains"):
        np.testing.assert_array_equal(getattr(domain, name)(q), getattr(twin, name)(q))
    for name in ("diameter", "outer_radius", "inner_radius"):
        assert getattr(domain, name) == getattr(twin, name)
    draws = [d.sampler(Streams(range(5)), "point") for d in (domain, twin)]
    np.testing.assert_array_equal(*[draw() for draw in draws])


@each("p", ALL)
@each("dim", [1, 3, 40])
def test_radii_by_the_points_that_attain_them(p, dim):
    """A unit vector and a vector of equal entries, scaled to the sphere; all others between. And
    membership at the edge."""
    domain = LpBall(dim, p, 1.7)
    x = np.concatenate([np.eye(dim)[:1], np.ones((1, dim))])
    x = np.concatenate([x, np.random.default_rng(1).normal(size=(300, dim))])
    lengths = 1.7 * np.linalg.norm(x, axis=1) / norm(x, p)
    assert domain.outer_radius == pytest.approx(lengths[:2].max(), rel=1e-12)
    assert domain.inner_radius == pytest.approx(lengths[:2].min(), rel=1e-12)
    assert domain.outer_radius >= lengths.max() * (1 - 1e-12)
    assert domain.inner_radius <= lengths.min() * (1 + 1e-12)
    assert domain.diameter == 2 * domain.outer_radius
    x *= (1.7 / norm(x, p))[:, None]
    assert domain.contains(x * (1 - 1e-8)).all()
    assert not domain.contains(x * (1 + 1e-8)).any()
    assert domain.contains(x * 1.1, 0.18).all()


@each("p", [1, 2, np.inf, 1e300, *ALL])
@each("scale", [1e-300, 1e-160, 1.0, 1e160, 1e300])
def test_duality_at_all_scales(p, scale):
    """<v, x> = -radius |v|_q and |x|_p = radius, with tiny and zero entries beside large ones."""
    rng = np.random.default_rng(3)
    v = rng.normal(size=(60, 5))
    v[:10] = np.round(v[:10])  # ties and zeros
    v[10:20] *= 10.0 ** rng.uniform(-30, 0, size=(10, 5))
    v = np.clip(v, -3, 3) * scale
    v[20:25, 0] = 1e-300
    v = v[np.abs(v).max(axis=1) > 0]
    x = LpBall(5, p, 0.7).lowest(v)
    units = np.abs(v).max(axis=1, keepdims=True)
    expected = -0.7 * norm(v / units, dual(p))
    np.testing.assert_allclose(np.vecdot(v / units, x), expected, rtol=1e-12)
    np.testing.assert_allclose(norm(x, p), 0.7, rtol=1e-12)


@each("p", ALL)
def test_where_all_is_alike_the_oracle_still_answers(p):
    domain, zero = LpBall(3, p, 2.0), np.zeros((2, 3))
    np.testing.assert_array_equal(domain.lowest(zero), [[-2.0, 0.0, 0.0]] * 2)
    tiny, wild = domain.lowest(np.array([[5e-324, 0.0, -5e-324], [np.nan, np.inf, 1.0]]))
    np.testing.assert_allclose(tiny, np.array([-2, 0, 2]) / 2 ** (1 / p))
    assert wild[0] == 0
    assert wild[1] == wild.min() < 0


@each("p", ALL)
@each("scale", [1e-300, 0.5, 2.0, 1e3, 1e98])
def test_projections_meet_the_variational_inequality(p, scale):
    """max over the ball of <q - x, w> is radius |q - x|_q: it is at x, to 1e-12 of |q - x|_q."""
    rng = np.random.default_rng(6)
    radius = scale / 10 if scale < 1e-100 else 0.7
    domain = LpBall(6, p, radius)
    q = scale * rng.normal(size=(40, 6))
    q[:5] *= 10.0 ** rng.uniform(-30, 0, size=(5, 6))
    q[5:10, 0] = 0.0
    q[10:15] = scale  # ties
    q[15:20] *= (radius * (1 + 1e-13) / norm(q[15:20], p))[:, None]  # hardly outside
    x = domain.project(q)
    assert (norm(x, p) <= radius * (1 + 1e-12)).all()
    within = norm(q, p) < radius
    np.testing.assert_array_equal(x[within], q[within])
    units = np.maximum(np.abs(q - x).max(axis=1), 1e-16 * radius)
    reach = norm((q - x) / units[:, None], dual(p))
    gap = reach - np.vecdot((q - x) / units[:, None], x / radius)
    moved = ~within & (units > 1e-10 * radius)
    assert moved.sum() > 5
    assert (np.abs(gap[moved]) <= 1e-12 * np.maximum(1, radius / units[moved])).all()
    np.testing.assert_allclose(domain.project(x), x, rtol=0, atol=1e-12 * radius)
    np.testing.assert_allclose(x[15:20], q[15:20], rtol=0, atol=1e-11 * radius)
    alone = [domain.project(row[None])[0] for row in q]  # rows that need few steps, many or none
    np.testing.assert_array_equal(x, alone)


def z_scores(values, mean):
    return (values.mean(axis=0) - mean) / (values.std(axis=0) / np.sqrt(len(values)))


@pytest.mark.parametrize("p", [1.001, 1.5, 3, 10, 1e4])
def test_points_are_uniform(p):
    """P(|x|_p <= s) = s^dim; so E |x|_p^p = dim / (dim + p), shared equally; and by Dirichlet's
    integral E x_i^2 = Gamma(3/p) Gamma(1 + dim/p) / (Gamma(1/p) Gamma(1 + (dim + 2)/p)). Power:
    moments of another p, and of points pulled in by the wrong power."""
    dim = 3
    draw = LpBall(dim, p, 2.0).sampler(Streams([(9, r) for r in range(200)]), "point")
    x = np.concatenate([draw() for _ in range(20)]) / 2.0
    assert kstest(norm(x, p) ** dim, "uniform").pvalue > 1e-6
    logs = gammaln(3 / p) + gammaln(1 + dim / p) - gammaln(1 / p) - gammaln(1 + (dim + 2) / p)
    assert (np.abs(z_scores(x**2, np.exp(logs))) < SIGMAS).all()
    assert (np.abs(z_scores(x, 0.0)) < SIGMAS).all()
    if p < 100:  # beyond, almost all of the mean is in a few points
        assert (np.abs(z_scores(np.abs(x) ** p, 1 / (dim + p))) < SIGMAS).all()
    if p == 1.5:
        assert (np.abs(z_scores(np.abs(x) ** 3, 1 / 6)) > SIGMAS).all()
        assert kstest(norm(x, p) ** 2, "uniform").pvalue < 1e-6


REPLICAS = 1500


def sample(domain, calls, seed=12):
    draw = domain.sampler(Streams([(seed, r) for r in range(REPLICAS)]), "point")
    for _ in range(calls):
        x = draw()
    return x


def check_moments(x, mean, covariance):
    """Check that mean and covariance of a sample are within SIGMAS of its standard errors."""
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
