"""Selected moments against imagined users on the sphere, counted one arm at a time."""

from math import sqrt

import numpy as np
import pytest

from dpbandit.agents.contextual.moments import SelectedMoments, uniform_moments
from dpbandit.base.random_streams import Streams


def brute_force(theta, users, seed):
    """E[u u' 1(arm)] for u drawn uniformly on the sphere, with the standard error of each entry."""
    K, d = theta.shape
    u = np.random.default_rng(seed).standard_normal((users, d))
    u /= np.linalg.norm(u, axis=1, keepdims=True)
    arm = (u @ theta.T).argmax(axis=1)
    mean, square = np.empty((K, d, d)), np.empty((K, d, d))
    for a in range(K):
        chosen = u[arm == a]
        mean[a] = chosen.T @ chosen / users
        square[a] = np.square(chosen).T @ np.square(chosen) / users
    return mean, np.sqrt((square - mean**2) / users)


def selected(theta, replicas, seed=0):
    """Many replicas of the same policy: their mean, and its standard error, (K, d, d)."""
    found = SelectedMoments(Streams([(seed, r) for r in range(replicas)]), len(theta))(
        np.repeat(theta[None], replicas, axis=0)
    )
    return found.mean(axis=0), found.std(axis=0, ddof=1) / sqrt(replicas), found


POLICIES = {
    "equal": np.random.default_rng(0).standard_normal((3, 20)),
    "lopsided": np.random.default_rng(1).standard_normal((3, 20)) * [[5.0], [1.0], [0.3]],
    "alike": np.random.default_rng(2).standard_normal(20) + np.eye(3, 20),
    "rank 1": np.array([[1.0], [-1.0], [0.2]]) * np.random.default_rng(3).standard_normal(20),
}


@pytest.mark.parametrize("kind", POLICIES)
def test_moments_are_those_of_the_sphere(kind):
    """Statistical: 100,000 users of brute force against 50 replicas of 2,000 imagined ones (exact
    in expectation: the arm depends on the direction of V'u alone, and E |V'u|^2 = K / d both ways).
    All 1,200 entries within 6 combined standard errors, false alarm 2e-6. Power, asserted: the
    moments of random arms, and P(a) I / d, would be more than 12 errors off somewhere, missed with
    probability below 1e-9; of rank 1 the latter are true, because two half-spaces are symmetric.
    """
    theta = POLICIES[kind]
    ours, our_error, _ = selected(theta, 50)
    mean, error = brute_force(theta, 100_000, seed=4)
    combined = np.hypot(our_error, error) + 1e-9  # an arm that is never played has no error
    assert (np.abs(ours - mean) <= 6 * combined).all()
    share = np.trace(mean, axis1=1, axis2=2)[:, None, None]
    wrong = [uniform_moments(3, 20)[0]] + [share * np.eye(20) / 20] * (kind != "rank 1")
    for moments in wrong:
        assert (np.abs(moments - mean) / combined).max() > 12


@pytest.mark.parametrize("shape", [(3, 20), (2, 5), (5, 5), (6, 2), (4, 1)])
def test_arms_add_up_to_everybody(shape):
    """Every user is somebody's: the sum over arms is I / d, up to the Monte-Carlo error of E c c'
    of 2,000 normals, sqrt(2 / 2000) on its diagonal; 100 replicas at 6 errors, and exactly in every
    direction that no arm looks at. d < K is one case. All matrices are symmetric and >= 0."""
    K, d = shape
    theta = np.random.default_rng(5).standard_normal(shape)
    _, _, found = selected(theta, 100, seed=1)
    total = found.sum(axis=1) * d
    assert np.abs(total - np.eye(d)).max() < 6 * sqrt(2 / 2000)
    assert np.abs(total.mean(axis=0) - np.eye(d)).max() < 6 * sqrt(2 / 2000 / 100)
    np.testing.assert_allclose(found, found.swapaxes(2, 3), atol=1e-15)
    assert np.linalg.eigvalsh(found).min() > -1e-12
    if d > K:
        blind = np.linalg.svd(theta)[2][K:]  # (d - K, d)
        np.testing.assert_allclose(
            blind @ total @ blind.T, np.eye(d - K)[None].repeat(100, 0), atol=1e-12
        )


def test_two_arms_by_hand():
    """Golden: of two opposite parameters each arm is played by half of the users, a half-space; by
    symmetry both matrices are I / (2 d). In one dimension too, where K > d."""
    for d in (1, 6):
        direction = np.random.default_rng(6).standard_normal(d)
        mean, error, _ = selected(np.array([direction, -direction]), 100, seed=2)
        assert (np.abs(mean - np.eye(d) / (2 * d)) < 6 * error + 1e-9).all()


def test_uniform_play():
    """Golden: random arms see everybody equally: I / (K d); brute force with K random thetas a
    round agrees because arms are exchangeable then."""
    np.testing.assert_array_equal(
        uniform_moments(4, 5), np.broadcast_to(np.eye(5) / 20, (1, 4, 5, 5))
    )
    thetas = np.random.default_rng(7).standard_normal((500, 4, 5))
    found = SelectedMoments(Streams(range(500)), 4)(thetas)
    error = found.std(axis=0, ddof=1) / sqrt(500)
    assert (np.abs(found.mean(axis=0) - uniform_moments(4, 5)[0]) < 6 * error).all()


def test_replicas_do_not_know_each_other():
    """Five replicas equal lone ones, difference exactly 0.0, also on the second call."""
    thetas = np.random.default_rng(8).standard_normal((2, 5, 4, 30))
    together, lone = SelectedMoments(Streams(range(5)), 4), []
    alone = [SelectedMoments(Streams([r]), 4) for r in range(5)]
    for theta in thetas:
        lone = [alone[r](theta[r : r + 1]) for r in range(5)]
        np.testing.assert_array_equal(together(theta), np.concatenate(lone))
