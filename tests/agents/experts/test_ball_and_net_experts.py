"""Points as experts: published losses, a net that becomes a ball, edges, refusals."""

from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import BallExperts, NetExperts
from dpbandit.agents.experts.ball_players import OnANet, OnTheBall
from dpbandit.agents.experts.ball_sampling import OnALine
from dpbandit.agents.experts.calibration import certified
from dpbandit.agents.experts.resolution import net
from dpbandit.agents.experts.segments import Segments
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box
from dpbandit.envs.convex.online_losses import OnlineConvex
from dpbandit.losses import Absolute, Kink, Linear, Quadratic, Ramp
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.experts import ExpertsSpec
from tests.agents.experts.test_calibration import CS


def total(agent, loss, data):
    """Losses (R,) of a run; `data` (T, *datum_shape) for all replicas, or (T, R, *datum_shape)."""
    R, suffered = len(agent.act(None)), 0.0
    for z in data:
        told = np.broadcast_to(z, (R, *loss.datum_shape))
        x = agent.act(None)
        assert loss.domain.contains(x).all()
        suffered = suffered + loss.value(x, told)
        agent.update(None, x, told)
    return suffered


def ramps(T, N):
    """max(0, <a, x - x*>) / 2, x* = (0.3, 0.4): rows (a, <a, x*>) of the published sequence."""
    a = np.random.default_rng(0).standard_normal((T, N))
    a /= np.linalg.norm(a, axis=1, keepdims=True)
    return np.concatenate([a, (a @ np.array([0.3, 0.4])[:N])[:, None]], axis=1)


def replicas(R, seed=1):
    return Streams([(seed, r) for r in range(R)])


def netted(N, T, epsilon, delta, R, spacing):
    loss, points = Ramp(Ball(N)), net(Ball(N), spacing)
    plan = certified(len(points), T, epsilon=epsilon, delta=delta, failure=1 / T, cs=CS)
    experts = ExpertsSpec(n_actions=len(points), horizon=T)
    player = Segments(experts, replicas(R), plan, best_loss=0.0)
    return loss, OnANet(loss, points, player), plan


@pytest.mark.parametrize(
    ("N", "M", "epsilon", "delta", "mean"),
    [
        (1, 1001, 10, 0.0, 57.9),
        pytest.param(1, 1001, 1, 0.0, 325, marks=pytest.mark.slow),
        pytest.param(1, 1001, 1, 1e-6, 246, marks=pytest.mark.slow),
        pytest.param(1, 1001, 10, 1e-6, 40.2, marks=pytest.mark.slow),
        pytest.param(2, 7845, 1, 0.0, 500, marks=pytest.mark.slow),
        pytest.param(2, 7845, 10, 0.0, 88.9, marks=pytest.mark.slow),
    ],
)
def test_published_losses_on_a_net(N, M, epsilon, delta, mean):
    """Statistical: an independent program's mean loss in 10,000 rounds, 100 runs on one sequence,
    within 4 standard errors of the difference (its own, unprinted, taken to be ours)."""
    data = ramps(10_000, N)
    loss, agent, _ = netted(N, 10_000, epsilon, delta, 100, 0.002 if N == 1 else 0.02)
    assert len(agent.net) == M
    losses = total(agent, loss, data)
    assert abs(losses.mean() - mean) <= 4 * 2**0.5 * losses.std() / 10


def test_the_published_sequence_is_this_one():
    """Golden: on it uniform play on the net of a line loses 13662 in 1e5 rounds."""
    rows, counts = np.unique(ramps(100_000, 1), axis=0, return_counts=True)
    points = net(Ball(1), 0.002)
    uniform = [Ramp(Ball(1)).value(points, row[None]).mean() for row in rows]
    assert round(float(counts @ np.array(uniform))) == 13_662


def test_a_fine_net_is_the_ball():
    """Statistical: on a line the exact sampler and a net of 2,001 points, of one plan, lose the
    same, 100 runs of 2,000 rounds; 5 standard errors of the difference: false alarm 1e-6. Uniform
    play loses 5 times as much."""
    data = ramps(2000, 1)
    loss, agent, plan = netted(1, 2000, 20.0, 0.0, 100, 0.001)
    sampler = OnALine(loss, 100)
    ball = OnTheBall(loss, sampler, replicas(100, 2), plan, best_loss=0.0, horizon=2000, exact=True)
    a, b = total(agent, loss, data), total(ball, loss, data)
    error = np.hypot(a.std(), b.std()) / 10
    assert abs(a.mean() - b.mean()) <= 5 * error
    assert 5 * b.mean() < 0.136 * 2000
    assert (ball.draws_left < plan.draws).mean() > 0.9


@pytest.mark.parametrize(
    ("config", "loss"),
    [
        (NetExperts(epsilon=10.0), Ramp(Ball(1))),
        (NetExperts(epsilon=10.0), Ramp(Ball(2))),
        (NetExperts(epsilon=inf), Ramp(Ball(2))),
        (BallExperts(epsilon=10.0), Ramp(Ball(1))),
        (BallExperts(epsilon=10.0), Linear(Ball(4))),
    ],
    ids=lambda x: type(x).__name__,
)
def test_defaults_beat_uniform_play(config, loss):
    """Statistical: 20 runs of 3,000 rounds with a point that never loses; losses below half of
    what uniform play loses, by 5 standard errors, and never more on average than the plan's bound
    where there is one."""
    T, N = 3000, loss.domain.dim
    data = ramps(T, N) if isinstance(loss, Ramp) else np.tile(np.eye(N)[0], (T, 1))
    spec = ConvexSpec(loss=loss, feedback="datum", horizon=T)
    lowest, high = loss.value_range
    losses = (total(config.make(spec, replicas(20)), loss, data) - T * lowest) / (high - lowest)
    points = np.array([loss.domain.sampler(Streams([s]), "p")()[0] for s in range(200)])
    uniform = (np.mean([loss.value(points, z[None]).mean() for z in data[::10]]) - lowest) * T
    uniform /= high - lowest
    assert losses.mean() + 5 * losses.std() / 20**0.5 < uniform / 2
    if config.epsilon < inf:
        assert losses.mean() <= config.resolution(spec).plan().bound


@pytest.mark.parametrize(
    "config", [NetExperts(), BallExperts(), BallExperts(calibration="heuristic")]
)
@pytest.mark.parametrize("T", [1, 60])
def test_edges(config, T):
    """One round; users who lose nothing anywhere, everything everywhere, or are no numbers."""
    spec = ConvexSpec(loss=Ramp(Ball(1)), feedback="datum", horizon=T)
    for row in ([0.0, 1.0], [0.0, -1.0], [np.nan, np.nan]):
        losses = total(config.make(spec, replicas(3)), spec.loss, np.tile(row, (T, 1)))
        assert len(losses) == 3


def test_draws_run_out():
    """K = 1 of a plan that fires in every round: one new point, which stays."""
    loss, T = Ramp(Ball(1)), 50
    plan = certified(2, T, epsilon=1e6, delta=0.0, failure=0.5)
    agent = OnTheBall(
        loss, OnALine(loss, 2), replicas(2), plan, best_loss=0.0, horizon=T, exact=True
    )
    points = []
    for _ in range(T):
        points.append(agent.act(None))
        agent.update(None, points[-1], np.tile([1.0, -1.0], (2, 1)))
    changes = (np.diff(np.array(points)[..., 0], axis=0) != 0).sum(axis=0)
    assert (changes == plan.draws).all()
    assert (agent.draws_left == 0).all()


def test_approximate_draws_certify_nothing():
    spec = ConvexSpec(loss=Kink(Ball(4)), feedback="datum", horizon=100)
    proof = certify(BallExperts(calibration="heuristic"), spec)
    assert proof.epsilon == inf
    assert "approximate sampling" in str(proof)
    for loss in (Quadratic(Ball(2)), Absolute(Ball(1)), Linear(Ball(9))):
        spec = ConvexSpec(loss=loss, feedback="datum", horizon=1000)
        assert certify(BallExperts(epsilon=0.5, delta=1e-6), spec).holds
    half = certify(NetExperts(epsilon=0.5), OnlineConvex(instance="realizable-ramp", dim=2).spec)
    assert half.pure == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("config", "loss", "words"),
    [
        (NetExperts(), Linear(Ball(3)), "dimension 1 or 2"),
        (NetExperts(), Linear(Box(2)), "dimension 1 or 2"),
        (BallExperts(), Linear(Box(2)), "plays balls"),
        (BallExperts(), Quadratic(Ball(4)), "no exact sampler in 4 dimensions"),
    ],
    ids=repr,
)
def test_refusals(config, loss, words):
    with pytest.raises(InputError, match=words):
        config.make(ConvexSpec(loss=loss, feedback="datum", horizon=9), replicas(1))


@pytest.mark.parametrize(
    "settings",
    [{"spacing": 0.0}, {"best_loss": -1.0}, {"net_loss": -1.0}, {"beta": 1.0}, {"epsilon": 0.0}],
)
def test_bad_settings(settings):
    with pytest.raises(InputError, match=next(iter(settings))):
        NetExperts(**settings)
    for more in ({"epsilon": inf}, {"reach": 0.0}, {"calibration": "paper"}):
        with pytest.raises(InputError, match=next(iter(more))):
            BallExperts(**more)


@pytest.mark.parametrize("gap", [1.0, 0.6])
def test_realizable_users_leave_a_point_without_loss(gap):
    """Property: ramps of the environment lose nothing at size R e, and 1 somewhere at most; the
    comparator finds 0 to its certified gap."""
    problem = OnlineConvex(loss="ramp", dim=3, radius=2.0, gap=gap, size=0.7, horizon=300)
    problem.reset(Streams([1, 2]))
    best, centre = np.tile([1.4, 0.0, 0.0], (2, 1)), np.zeros((2, 3))
    for _ in range(300):
        datum = problem.step(centre).datum
        assert (problem.spec.loss.value(best, datum) <= 1e-15).all()
        ends = problem.spec.loss.domain.lowest(-datum[:, :3])
        assert (problem.spec.loss.value(ends, datum) <= 1).all()
    assert (np.abs(problem.hindsight()) <= 300 * 2e-7).all()
