"""Points as experts: published losses, a net that becomes a ball, its reach, edges, refusals."""

from math import inf, log

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import BallExperts, NetExperts
from dpbandit.agents.experts.ball import inverse_mass, net, size_of, spacing_of
from dpbandit.agents.experts.calibration import certified
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box
from dpbandit.envs.convex.online_losses import OnlineConvex
from dpbandit.losses import Absolute, Kink, Linear, Quadratic, Ramp, Squared
from dpbandit.specs.convex import ConvexSpec
from tests.agents.experts.test_calibration import CS


def told(loss, T):
    return ConvexSpec(loss=loss, feedback="datum", horizon=T)


def total(agent, loss, data):
    """Losses (R,) of a run; `data` (T, *datum_shape) for all replicas."""
    R, suffered = len(agent.act(None)), 0.0
    for z in data:
        seen = np.broadcast_to(z, (R, *loss.datum_shape))
        x = agent.act(None)
        assert loss.domain.contains(x).all()
        suffered = suffered + loss.value(x, seen)
        agent.update(None, x, seen)
    return suffered


def ramps(T, N):
    """max(0, <a, x - x*>) / 2, x* = (0.3, 0.4): rows (a, <a, x*>) of the published sequence."""
    a = np.random.default_rng(0).standard_normal((T, N))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return np.concatenate([a, (a @ np.array([0.3, 0.4])[:N])[:, None]], axis=1)


def replicas(R, seed=1):
    return Streams([(seed, r) for r in range(R)])


class Net(NetExperts):
    """Plays the coarser calibrations of the tables."""

    def planned(self, spec, reach, experts):
        T, target = spec.horizon, {"epsilon": self.epsilon, "delta": self.delta}
        return certified(experts, T, failure=1 / T, cs=CS, **target)


def on_the_ball(plan, R, T):
    """A ball whose points are tried by a given plan, on a line with L* = 0."""

    class OnTheBall(BallExperts):
        def plan(self, spec):
            return 0.0, plan

    return OnTheBall().make(told(Ramp(Ball(1)), T), replicas(R, 2))


@pytest.mark.slow
def test_published_losses_on_a_net():
    """Statistical: an independent program's mean loss in 10,000 rounds at epsilon 10, 100 runs on
    one sequence, within 4 standard errors of the difference (its own, unprinted, taken to be of
    100 such runs); ours are 40."""
    T, loss = 10_000, Ramp(Ball(1))
    config = Net(epsilon=10.0, spacing=0.002, net_loss=0.0)
    agent = config.make(told(loss, T), replicas(40))
    assert len(agent.net) == 1001
    losses = total(agent, loss, ramps(T, 1))
    assert abs(losses.mean() - 57.9) <= 4 * losses.std() * (1 / 40 + 1 / 100) ** 0.5


def test_the_published_sequence_is_this_one():
    """Golden: on it uniform play on the net of a line loses 13662 in 1e5 rounds."""
    rows, counts = np.unique(ramps(100_000, 1), axis=0, return_counts=True)
    points = net(Ball(1), 0.002)
    uniform = [Ramp(Ball(1)).value(points, row[None]).mean() for row in rows]
    assert round(float(counts @ np.array(uniform))) == 13_662


def test_a_fine_net_is_the_ball():
    """Statistical: on a line the exact sampler and a net of 2,001 points, of one plan, lose the
    same, 50 runs of 2,000 rounds; 5 standard errors of the difference: false alarm 1e-6. Uniform
    play loses 5 times as much."""
    loss, T, data = Ramp(Ball(1)), 2000, ramps(2000, 1)
    config = Net(epsilon=20.0, spacing=0.001, net_loss=0.0)
    fine, plan = config.make(told(loss, T), replicas(50)), config.planned(told(loss, T), 0, 2001)
    ball = on_the_ball(plan, 50, T)
    a, b = total(fine, loss, data), total(ball, loss, data)
    assert abs(a.mean() - b.mean()) <= 5 * np.hypot(a.std(), b.std()) / 50**0.5
    assert 5 * b.mean() < 0.136 * 2000
    assert (ball.left < plan.draws).mean() > 0.9


@pytest.mark.parametrize(
    ("config", "loss"),
    [
        (NetExperts(epsilon=20.0), Ramp(Ball(2))),
        (BallExperts(epsilon=10.0), Ramp(Ball(1))),
        (BallExperts(epsilon=10.0), Linear(Ball(4))),
    ],
    ids=lambda x: type(x).__name__,
)
def test_defaults_beat_uniform_play(config, loss):
    """Statistical: 20 runs of 1,000 rounds with a point that never loses; losses below half of
    what uniform play loses, by 5 standard errors, and never more on average than the plan's
    bound."""
    T, N = 1000, loss.domain.dim
    data = ramps(T, N) if isinstance(loss, Ramp) else np.tile(np.eye(N)[0], (T, 1))
    spec, (lowest, high) = told(loss, T), loss.value_range
    agent = config.make(spec, replicas(20))
    losses = (total(agent, loss, data) - T * lowest) / (high - lowest)
    points = np.array([loss.domain.sampler(Streams([s]), "p")()[0] for s in range(200)])
    uniform = (np.mean([loss.value(points, z[None]).mean() for z in data[::10]]) - lowest) * T
    uniform /= high - lowest
    assert losses.mean() + 5 * losses.std() / 20**0.5 < uniform / 2
    plan = agent.player.plan if isinstance(config, NetExperts) else config.plan(spec)[1]
    assert losses.mean() <= plan.bound


def test_edges():
    """One round; users who lose nothing anywhere, everything everywhere, or are no numbers."""
    for config in (NetExperts(), BallExperts(), BallExperts(calibration="heuristic")):
        for T in (1, 20):
            for row in ([0.0, 1.0], [0.0, -1.0], [np.nan, np.nan]):
                spec = told(Ramp(Ball(1)), T)
                agent = config.make(spec, replicas(3))
                assert len(total(agent, spec.loss, np.tile(row, (T, 1)))) == 3


def test_draws_run_out():
    """K = 1 of a plan that fires in every round: one new point, which stays."""
    plan = certified(2, 50, epsilon=1e6, delta=0.0, failure=0.5)
    agent, points = on_the_ball(plan, 2, 50), []
    for _ in range(50):
        points.append(agent.act(None))
        agent.update(None, points[-1], np.tile([1.0, -1.0], (2, 1)))
    changes = (np.diff(np.array(points)[..., 0], axis=0) != 0).sum(axis=0)
    assert (changes == plan.draws).all()
    assert (agent.left == 0).all()


def test_what_is_certified():
    """Approximate draws certify nothing; a family that leaves its public range would move a draw by
    more than its certificate, and gets no exact sampler."""

    class Steeper(Squared):
        value_range = (0.0, 0.05)

    walk = BallExperts(calibration="heuristic")
    assert "approximate sampling" in str(certify(walk, told(Kink(Ball(4)), 100), accountants=False))
    for loss in (Kink(Ball(4)), Steeper(Ball(2))):
        assert certify(walk, told(loss, 50), accountants=False).epsilon == inf
    with pytest.raises(InputError, match="not verified"):
        BallExperts().make(told(Steeper(Ball(2)), 50), Streams([0]))
    for loss in (Quadratic(Ball(2)), Absolute(Ball(1)), Linear(Ball(9))):
        assert certify(
            BallExperts(epsilon=0.5, delta=1e-6), told(loss, 1000), accountants=False
        ).holds
    half = certify(
        NetExperts(epsilon=0.5),
        OnlineConvex(instance="realizable-ramp", dim=2).spec,
        accountants=False,
    )
    assert half.pure == pytest.approx(0.5)


def test_refusals():
    for config, loss, words in (
        (NetExperts(), Linear(Ball(3)), "dimension 1 or 2"),
        (NetExperts(), Linear(Box(2)), "dimension 1 or 2"),
        (BallExperts(), Linear(Box(2)), "plays balls"),
        (BallExperts(), Quadratic(Ball(4)), "no exact sampler in 4 dimensions"),
    ):
        with pytest.raises(InputError, match=words):
            config.make(told(loss, 9), replicas(1))
    for kind, bad in (
        (NetExperts, {"spacing": 0.0, "best_loss": -1.0, "net_loss": -1.0, "beta": 1.0}),
        (NetExperts, {"epsilon": 0.0}),
        (BallExperts, {"epsilon": inf, "reach": 0.0, "calibration": "paper"}),
    ):
        for name, value in bad.items():
            with pytest.raises(InputError, match=name):
                kind(**{name: value})


def test_realizable_users_leave_a_point_without_loss():
    """Property: ramps of the environment lose nothing at size R e, and 1 somewhere at most; the
    comparator finds 0 to its certified gap."""
    for gap in (1.0, 0.6):
        problem = OnlineConvex(loss="ramp", dim=3, radius=2.0, gap=gap, size=0.7, horizon=300)
        problem.reset(Streams([1, 2]))
        best, centre = np.tile([1.4, 0.0, 0.0], (2, 1)), np.zeros((2, 3))
        for _ in range(300):
            datum = problem.step(centre).datum
            assert (problem.spec.loss.value(best, datum) <= 1e-15).all()
            ends = problem.spec.loss.domain.lowest(-datum[:, :3])
            assert (problem.spec.loss.value(ends, datum) <= 1).all()
        assert (np.abs(problem.hindsight()) <= 300 * 2e-7).all()


def test_nets_reach_everybody():
    """Property: no point of the ball is further than the reach from the net; the sizes are close to
    what was said, 7845 points for a spacing of 1/50 (Gauss's circle)."""
    for N, reach in ((1, 0.013), (1, 0.3), (2, 0.05), (2, 0.3)):
        ball = Ball(N, 1.5)
        points = net(ball, spacing_of(reach, N))
        assert ball.contains(points, 1e-9).all()
        some = np.array([ball.sampler(Streams([s]), "p")()[0] for s in range(300)])
        some[::2] *= 1.5 / np.linalg.norm(some[::2], axis=1, keepdims=True)  # the edge
        gaps = np.linalg.norm(some[:, None] - points, axis=2).min(axis=1)
        assert gaps.max() <= reach * (1 + 1e-9)
        assert abs(len(points) / size_of(1.5, reach, N) - 1) < 0.35


def test_mass_near_the_edge():
    """Oracle: of 200,000 uniform points of a ball at least a part gamma is within r of its edge's
    first point, 5 standard errors; in one dimension gamma is exact."""
    assert inverse_mass(Ball(1, 2.0), 0.5) == 8
    rng = np.random.default_rng(7)
    for N in (2, 3):
        g = rng.standard_normal((200_000, N))
        g *= rng.random((200_000, 1)) ** (1 / N) / np.linalg.norm(g, axis=1, keepdims=True)
        near = (np.linalg.norm(g - np.eye(N)[0], axis=1) <= 0.4).mean()
        assert near + 5 * (near / 200_000) ** 0.5 >= 1 / inverse_mass(Ball(N), 0.4)


def test_the_reach_balances_drift_and_margin():
    for N in (1, 2, 6):
        spec, config = told(Linear(Ball(N)), 100_000), BallExperts(best_loss=3.0)
        best, plan = config.plan(spec)
        assert best - 3 == pytest.approx(plan.margin, rel=0.5)
        assert plan.draws >= log(inverse_mass(Ball(N), (best - 3) / (0.5 * 100_000)))
