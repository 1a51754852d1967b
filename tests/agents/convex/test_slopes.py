"""SlopeLeader and SlopeBandit: public curvature, posteriors by hand, exact pairs, and what they
win."""

from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import PFTAL, PrivateBandit, SlopeBandit, SlopeLeader
from dpbandit.agents.convex.slopes import Slopes
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Simplex
from dpbandit.envs.convex.online_losses import ConvexPricing
from dpbandit.losses import Experts, Linear, Quadratic, Squared, TiltedQuadratic
from dpbandit.testing import check_agent
from tests.agents.convex.convex_runs import BALL, NONE, play, sphere, targets, told, valued
from tests.each import refused

PRICES = ConvexPricing(cross_effect=0.2).spec.loss
PUBLIC = [Linear(BALL), Experts(Simplex(4)), Quadratic(Box(3)), TiltedQuadratic(Simplex(4)), PRICES]


@pytest.mark.parametrize("loss", PUBLIC, ids=lambda loss: type(loss).__name__)
def test_curvature_is_public_and_slopes_are_bounded(loss):
    """Oracle: f(x; z) - f(c0; z) is <g, y> + <y, Q y> / 2 at random points and data, g the gradient
    at the centre in the domain's coordinates, and |g| <= B. It would catch a loss whose curvature
    depends on its datum, a Q without B's cross effects, and a clip that cuts slopes."""
    rng, domain, slopes = np.random.default_rng(0), loss.domain, Slopes(loss, 1)
    z = loss.admissible(3 * rng.uniform(-1, 1, (200, *loss.datum_shape)))
    x = domain.sampler(Streams(range(200)), "points")()
    centre = np.tile(domain.centre, (200, 1))
    g = domain.coordinates(loss.gradient(centre, z))
    change = loss.value(x, z) - loss.value(centre, z)
    np.testing.assert_allclose(slopes.loss(g, x), change, rtol=0, atol=1e-9)
    assert np.linalg.norm(g, axis=1).max() <= slopes.bound * (1 + 1e-9)


class Misdeclared(Linear):
    """Quadratic of private curvature with steep gradients, declared as linear and almost flat."""

    lipschitz, value_range = 0.2, (-0.1, 0.1)

    def value(self, x, z):
        return np.vecdot(x, z) * (1 + 5 * np.vecdot(x, z))

    def gradient(self, x, z):
        return z * (1 + 10 * np.vecdot(x, z)[..., None])


class Flat(Squared):
    lipschitz = 0.0


class Tiny(Linear):
    lipschitz = 1e-200


def test_privacy_does_not_rest_on_what_losses_declare():
    """Property: over several batches, also on a loss whose curvature, slopes and values are not as
    declared, users move inputs by their sensitivity at most and copies go on exactly. It would
    catch a sum that is not clipped, and a result that depends on the layout of arrays."""
    for loss in (Linear(BALL), Misdeclared(BALL), TiltedQuadratic(Simplex(3))):
        moves = "sensitivity: inputs move by"
        for config, spec in ((SlopeLeader, told(loss, 60)), (SlopeBandit, valued(loss, 60))):
            assert any(moves in line for line in check_agent(config(epsilon=8.0), spec, rounds=60))


def test_without_anything_to_learn_the_centre_is_played():
    """Golden: if no batch is over before the last round, or the loss is constant, no data is used,
    at epsilon 0, and there is no exploration."""
    for agent, spec in (
        *((SlopeLeader(), told(loss, 6)) for loss in (Linear(BALL), Flat(Ball(2)))),
        *((SlopeBandit(), valued(loss, 20)) for loss in (Linear(BALL), Flat(Ball(2)))),
    ):
        assert certify(agent, spec, accountants=False).epsilon == 0
        assert not agent.make(spec, Streams([0])).act(NONE).any()


def test_other_losses_are_refused():
    """Curvature of squared losses of features is private; 1e-200 has the square 0 in doubles."""
    squared = Squared(Ball(2))
    for loss in (squared, Tiny(BALL)):
        refused("losses of public curvature", SlopeLeader().make, told(loss, 9), Streams([0]))
    refused("choose pftal", SlopeBandit().make, valued(squared, 9), Streams([0]))


@pytest.mark.parametrize("delta", [0.0, 0.1])
def test_leader_follows_all_batches_by_their_precision(delta):
    """Oracle: from the recorded releases alone, a mean with weights n^2 / (v + n B^2 / k), a prior
    of weight k / B^2, and a projection; v is 4 B^2 (k + 1) / epsilon^2, or 4 B^2 / mu^2. It would
    catch a batch that is left out, weights that are not the noise's, and data beside releases."""
    data, loss = targets(400, 3), Quadratic(BALL)
    run = play(SlopeLeader(epsilon=2.0, delta=delta), loss, data)
    agent = SlopeLeader(epsilon=2.0, delta=delta).make(told(loss, 400), Streams([0]))
    assert (agent.variance == pytest.approx(6.0)) == (delta == 0)
    k, B, weight, total = 5, 1.0, 5.0, np.zeros((3, 5))
    ends = [t for t, release in enumerate(run.releases) if release is not None]
    assert len(ends) >= 4
    for before, end in zip([-1, *ends], ends, strict=False):
        n, release = end - before, run.releases[end]
        w = n**2 / (agent.variance + n * B**2 / k)
        weight, total = weight + w, total + w * release / n
        expected = BALL.project(-total / weight)
        np.testing.assert_allclose(run.actions[end + 1], expected, rtol=0, atol=1e-12)


def test_pairs_cancel_level_and_curvature():
    """Golden: without noise and with equal users a pair of values at y + z b and y - z b differs by
    2 z <g + Q y, b> exactly, so that on a ball -a / |a| is found in the first batch, and best
    prices to what the prior shrinks, although the levels are large. All points lie on the sphere.
    It would catch pairs of one sign, a lost <Q y, b>, and exploration inside of the ball."""
    a = 0.3 * sphere(np.random.default_rng(1), 2, 5)
    agent = SlopeBandit(epsilon=inf).make(valued(Linear(BALL), 300), Streams([0, 1]))
    for _ in range(300):
        x = agent.act(NONE)
        np.testing.assert_allclose(np.linalg.norm(x, axis=1), 1, rtol=0, atol=1e-9)
        agent.update(NONE, x, -np.vecdot(a, x))
    np.testing.assert_allclose(agent.point, -a / 0.3, rtol=0, atol=1e-9)
    z = np.tile(np.array(PRICES.demand) * [1.2, 1.0, 0.9], (4000, 2, 1))
    prices = play(SlopeBandit(epsilon=inf), PRICES, z, feedback="value")
    best = PRICES.comparator(1)
    best.add(z[0, :1])
    assert np.abs(prices.actions[-1] - best.best()[0]).max() < 0.02


def test_slopes_win_where_losses_are_independent():
    """Statistical: regret at epsilon 1 and T = 4,000 on linear losses, 12 replicas, is below a
    fifth of PFTAL's and half of PrivateBandit's. It would catch
    noise, batches or exploration that are far too large."""
    data = targets(4000, 12)
    one, other = (
        play(agent, Linear(BALL), data).regret.mean() for agent in (SlopeLeader(), PFTAL())
    )
    assert one < other / 5
    one, other = (
        play(agent, Linear(BALL), data, feedback="value").regret.mean()
        for agent in (SlopeBandit(), PrivateBandit(parameters="halved"))
    )
    assert one < other / 2
