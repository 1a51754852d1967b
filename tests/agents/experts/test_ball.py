"""Points as experts: every exact sampler of a ball against quadrature, the mechanism they stand
behind, published losses, a net that becomes a ball, its reach, edges, refusals."""

from itertools import product
from math import inf, log

import numpy as np
import pytest
from scipy import stats

from dpbandit import certify
from dpbandit.agents import BallExperts, NetExperts
from dpbandit.agents.experts import sampling
from dpbandit.agents.experts.ball import BallDraws, inverse_mass, net, size_of, spacing_of
from dpbandit.agents.experts.calibration import certified_plan
from dpbandit.agents.experts.sampling import (
    CellSampler,
    HitAndRun,
    KinkSampler,
    LinearSampler,
    UnitLosses,
    log_concave,
)
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box
from dpbandit.envs.convex.online_losses import OnlineConvex
from dpbandit.losses import Absolute, Kink, Linear, Logistic, Quadratic, Ramp, Squared
from dpbandit.privacy.mechanism import BudgetExceededError
from tests.agents.convex.convex_runs import told
from tests.agents.experts.test_sparse_vector import CS
from tests.each import in_turn, refused
from tests.slopes import differences

FALSE_ALARM = 1e-6


# Samplers


def users(loss, t, seed=0):
    """Admissible data (t, 1, *datum_shape), with a common drift."""
    rng = np.random.default_rng(seed)
    return loss.admissible(rng.normal(0.3, 0.7, (t, 1, *loss.datum_shape)))


def with_data(kind, loss, data):
    sampler = kind(loss, 1)
    for round in data:
        sampler.add(round)
    return sampler


def p_value(draws, grid, log_density):
    """Kolmogorov and Smirnov's, against a density on a fine grid."""
    height = np.exp(log_density - log_density.max())
    below = np.concatenate([[0.0], np.cumsum((height[1:] + height[:-1]) / 2)])
    return stats.kstest(np.interp(draws, grid, below / below[-1]), "uniform").pvalue


def test_adaptive_rejection_has_the_law():
    """Statistical: (1 - u^2)^3 exp(-20 max(u, -0.8)), 800 draws against quadrature; false alarm
    1e-6, an exponent of 40 is caught (asserted). And 1e7 steep, from 3 tangents."""

    def bell(u, k=20.0):
        return 3 * np.log1p(-u * u) - k * np.maximum(u, -0.8), -6 * u / (1 - u * u) - k * (u > -0.8)

    rng, grid = np.random.default_rng(1), np.linspace(-1, 1, 200_001)[1:-1]
    draws = [log_concave(bell, -1.0, 1.0, rng) for _ in range(800)]
    assert p_value(draws, grid, bell(grid)[0]) > FALSE_ALARM
    assert p_value(draws, grid, bell(grid, 40.0)[0]) < FALSE_ALARM
    narrow = [
        log_concave(lambda x: (-1e7 * abs(x - 0.3), -1e7 * np.sign(x - 0.3)), -1, 1, rng) - 0.3
        for _ in range(200)
    ]
    assert stats.kstest(1e7 * np.array(narrow), "laplace").pvalue > FALSE_ALARM


@pytest.mark.parametrize("family", [Ramp, Absolute])
def test_on_a_line_the_density_is_piecewise_exponential(family):
    """Oracle: the polygon is the sum of losses. Statistical: 1,000 draws against quadrature, false
    alarm 1e-6; twice the rate is caught, and so is no floor (asserted)."""
    loss = family(Ball(1, 1.5))
    data = users(loss, 30)
    sampler, rng, losses = (
        with_data(KinkSampler, loss, data),
        np.random.default_rng(2),
        UnitLosses(loss),
    )
    x, S = sampler.polygon(0)
    grid = np.linspace(-1.5, 1.5, 20_001)
    total = losses.total(grid[:, None], data[:, 0])
    np.testing.assert_allclose(np.interp(grid, x, S), total, atol=1e-10)
    rate, floor = 6 / np.ptp(total), total.min() + 0.2 * np.ptp(total)
    draws = [sampler.draw(0, rate, floor, rng)[0] for _ in range(1000)]
    density = -rate * np.maximum(total, floor)
    assert p_value(draws, grid, density) > FALSE_ALARM
    assert p_value(draws, grid, 2 * density) < FALSE_ALARM
    assert p_value(draws, grid, -rate * total) < FALSE_ALARM


def test_linear_losses_in_any_dimension():
    """Statistical: u = <x, g> / R |g| against (1 - u^2)^((N-1)/2) e^(-rate max(S, floor)), and the
    rest, (|x|^2 / R^2 - u^2) / (1 - u^2) to the power (N-1)/2, uniform; 1,500 draws, false alarm
    1e-6, the exponent of one dimension less is caught (asserted)."""
    N, R = 5, 1.5
    loss = Linear(Ball(N, R))
    data = users(loss, 25)
    sampler, rng = with_data(LinearSampler, loss, data), np.random.default_rng(3)
    slope = data.sum(axis=(0, 1))
    length = np.linalg.norm(slope)
    rate, floor = 0.8, 25 / 2 - length / 3
    draws = np.array([sampler.draw(0, rate, floor, rng) for _ in range(1500)])
    assert loss.domain.contains(draws).all()
    u, grid = draws @ slope / (R * length), np.linspace(-1, 1, 100_001)[1:-1]
    tilt = -rate * np.maximum((25 + length * grid) / 2, floor)
    for power, fits in (((N - 1) / 2, True), ((N - 2) / 2 - 0.5, False)):
        density = power * np.log1p(-grid * grid) + tilt
        assert (p_value(u, grid, density) > FALSE_ALARM) == fits
    across = ((np.square(draws / R).sum(axis=1) - u**2) / (1 - u**2)) ** ((N - 1) / 2)
    assert stats.kstest(across, "uniform").pvalue > FALSE_ALARM


def test_rejection_in_cells():
    """Statistical: the first coordinate on a disc, 1,000 draws against quadrature over the second;
    twice the rate is caught (asserted). A peak at the edge, of linear losses of 100 users, in cells
    and along the slope, 120 draws each; false alarm 1e-6."""
    loss = Logistic(Ball(2))
    data = users(loss, 20)
    sampler, rng = with_data(CellSampler, loss, data), np.random.default_rng(4)
    side = np.linspace(-1, 1, 401)
    points = np.stack(np.meshgrid(side, side, indexing="ij"), axis=-1)
    losses, at = UnitLosses(loss), np.array([0.3, -0.4])
    slope = differences(lambda x: losses.total(x[None], data[:, 0])[0], at)
    np.testing.assert_allclose(losses.gradient(at[None], data[:, 0])[0], slope, rtol=1e-7)
    total = losses.total(points.reshape(-1, 2), data[:, 0]).reshape(401, 401)
    inside, rate, floor = (points**2).sum(axis=-1) <= 1, 1.5, total.min() + 0.2
    draws = [sampler.draw(0, rate, floor, rng)[0] for _ in range(1000)]
    for factor, fits in ((1, True), (2, False)):
        weight = inside * np.exp(-factor * rate * (np.maximum(total, floor) - floor))
        density = np.log(np.maximum(weight.sum(axis=1), 1e-300))
        assert (p_value(draws, side, density) > FALSE_ALARM) == fits
    narrow = Linear(Ball(2))
    data, rng = users(narrow, 100), np.random.default_rng(8)
    samplers = with_data(CellSampler, narrow, data), with_data(LinearSampler, narrow, data)
    one, two = (np.array([s.draw(0, 1.0, 0.0, rng) for _ in range(120)]) for s in samplers)
    assert one.std(axis=0).max() < 0.3
    lost = [UnitLosses(narrow).total(points, data[:, 0]) for points in (one, two)]
    for a, b in (*zip(one.T, two.T, strict=True), lost):
        assert stats.ks_2samp(a, b).pvalue > FALSE_ALARM


def test_the_walk_comes_close(monkeypatch):
    """Statistical: 150 walks of 25 steps against 1,000 exact draws, S of a linear loss on a disc;
    false alarm 1e-6; walks of one step are caught (asserted)."""
    loss = Linear(Ball(2))
    data = users(loss, 12)
    walk, exact = with_data(HitAndRun, loss, data), with_data(LinearSampler, loss, data)
    rng, total = np.random.default_rng(5), UnitLosses(loss).total
    right = total(np.array([exact.draw(0, 3.0, 0.0, rng) for _ in range(1000)]), data[:, 0])
    for steps, fits in ((25, True), (1, False)):
        monkeypatch.setattr(sampling, "_WALK_STEPS", steps)
        points = np.array([walk.draw(0, 3.0, 0.0, rng) for _ in range(150)])
        assert loss.domain.contains(points).all()
        assert (stats.ks_2samp(total(points, data[:, 0]), right).pvalue > FALSE_ALARM) == fits


def mechanism(seeds, eta=0.5, floor=0.2, uses=4):
    loss = Ramp(Ball(1))
    sampler, streams = KinkSampler(loss, len(seeds)), Streams(seeds)
    return BallDraws(loss, sampler, streams, "d", eta=eta, floor=floor, uses=uses, draws=1)


def test_points_have_the_law_they_are_paid_for():
    """Statistical: first draws of 1,200 replicas after twelve users, against exp(-eta max(S, floor)
    / 2) by quadrature with the eta that is in the spend; false alarm 1e-6. Twice that and no floor
    are caught (asserted)."""
    R, floor, loss = 1200, 3.0, Ramp(Ball(1))
    mechanisms = mechanism(range(R), 3.0, floor, uses=12)
    data = np.array([[1.0, -0.7]] * 10 + [[-1.0, -0.5]] * 2)
    for t, z in enumerate(data, 1):
        points = mechanisms(np.tile(z, (R, 1)), np.full(R, t == 12))
    grid = np.linspace(-1, 1, 20_001)
    total = UnitLosses(loss).total(grid[:, None], loss.admissible(data))
    assert total.min() < floor < total.max()
    for eta, level, fits in (
        (mechanisms.spend.pure, floor, True),
        (2 * mechanisms.spend.pure, floor, False),
        (mechanisms.spend.pure, 0.0, False),
    ):
        density = -eta / 2 * np.maximum(total, level)
        assert (p_value(points[:, 0], grid, density) > FALSE_ALARM) == fits


def test_points_are_drawn_for_those_who_are_due():
    """Nobody has more than K points, and what is paid is K eta. Extreme users, NaN among them,
    move the losses by one at most."""
    rng, made = np.random.default_rng(6), mechanism(range(3))
    drawing = np.array([[0, 0, 0], [1, 0, 1], [0, 1, 0], [0, 0, 0]]) > 0
    for z, now in zip(rng.normal(size=(4, 3, 2)), drawing, strict=True):
        np.testing.assert_array_equal(np.isnan(made(z, now)[:, 0]), ~now)
    assert made.spend.pure == 0.5
    greedy, yes = mechanism(range(3)), np.ones(3, dtype=bool)
    greedy(np.ones((3, 2)), yes)
    with pytest.raises(BudgetExceededError):
        greedy(np.ones((3, 2)), yes)
    slopes, answers = (np.nan, -9.0, 0.0, 1.0), (np.inf, -1.0, 1.0, 1e300)
    seen = [greedy.query(np.tile([a, b], (3, 1))) for a in slopes for b in answers]
    moves = [np.abs(one - two).max() for one in seen for two in seen]
    assert 0.7 < max(moves) <= 1


# The agents


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


@in_turn(1, slow=True)
def test_published_losses_on_a_net():
    """Statistical: an independent program's mean loss in 10,000 rounds at epsilon 10, 100 runs on
    one sequence, within 4 standard errors of the difference (its own, unprinted, taken to be of
    100 such runs); ours are 40."""
    T, loss = 10_000, Ramp(Ball(1))

    class Net(NetExperts):
        def planned(self, spec, reach, experts):  # with the coarser calibrations of the tables
            target = {"epsilon": self.epsilon, "delta": self.delta}
            return certified_plan(experts, T, failure=1 / T, cs=CS, **target)

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
    """One round; users who lose nothing anywhere, everything everywhere, or are no numbers. Draws
    that run out, K = 1 of a plan that fires in every round: one new point, which stays."""
    for config in (NetExperts(), BallExperts(), BallExperts(calibration="heuristic")):
        for T, row in product((1, 20), ([0.0, 1.0], [0.0, -1.0], [np.nan, np.nan])):
            spec = told(Ramp(Ball(1)), T)
            agent = config.make(spec, replicas(3))
            assert len(total(agent, spec.loss, np.tile(row, (T, 1)))) == 3
    plan = certified_plan(2, 50, epsilon=1e6, delta=0.0, failure=0.5)

    class OnTheBall(BallExperts):
        def plan(self, spec):
            return 0.0, plan

    agent, points = OnTheBall().make(told(Ramp(Ball(1)), 50), replicas(2, 2)), []
    for _ in range(50):
        points.append(agent.act(None))
        agent.update(None, points[-1], np.tile([1.0, -1.0], (2, 1)))
    changes = (np.diff(np.array(points)[..., 0], axis=0) != 0).sum(axis=0)
    assert (changes == plan.draws).all()
    assert (agent.left == 0).all()


def test_what_is_certified():
    """Approximate draws certify nothing; a family that leaves its public range would move a draw by
    more than its certificate, and gets no exact sampler. The others get the one of their law."""

    class Steeper(Squared):
        value_range = (0.0, 0.05)

    def proof(config, loss, T=50):
        return certify(config, told(loss, T), accountants=False)

    walk = BallExperts(calibration="heuristic")
    assert "approximate sampling" in str(proof(walk, Kink(Ball(4))))
    for loss in (Kink(Ball(4)), Steeper(Ball(2))):
        assert proof(walk, loss).epsilon == inf
    refused("not verified", BallExperts().make, told(Steeper(Ball(2)), 50), Streams([0]))
    for loss in (Quadratic(Ball(3)), Absolute(Ball(1)), Linear(Ball(9))):
        assert proof(BallExperts(epsilon=0.5, delta=1e-6), loss, 1000).holds
    spec = OnlineConvex(instance="realizable-ramp", dim=2).spec
    half = certify(NetExperts(epsilon=0.5), spec, accountants=False)
    assert half.pure == pytest.approx(0.5)
    for loss, sampler in (
        (Ramp(Ball(1)), KinkSampler),
        (Linear(Ball(1)), KinkSampler),
        (Linear(Ball(7)), LinearSampler),
        (Logistic(Ball(1)), CellSampler),
        (Quadratic(Ball(3)), CellSampler),
        (Kink(Ball(4)), None),
    ):
        assert sampling.exact_sampler(loss) is sampler


def test_refusals():
    for config, loss, words in (
        (NetExperts(), Linear(Ball(3)), "dimension 1 or 2"),
        (NetExperts(), Linear(Box(2)), "dimension 1 or 2"),
        (BallExperts(), Linear(Box(2)), "plays balls"),
        (BallExperts(), Quadratic(Ball(4)), "no exact sampler in 4 dimensions"),
    ):
        refused(words, config.make, told(loss, 9), replicas(1))


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
    first point, 5 standard errors; in one dimension gamma is exact. The reach that follows
    balances drift and margin."""
    assert inverse_mass(Ball(1, 2.0), 0.5) == 8
    rng = np.random.default_rng(7)
    for N in (2, 3):
        g = rng.standard_normal((200_000, N))
        g *= rng.random((200_000, 1)) ** (1 / N) / np.linalg.norm(g, axis=1, keepdims=True)
        near = (np.linalg.norm(g - np.eye(N)[0], axis=1) <= 0.4).mean()
        assert near + 5 * (near / 200_000) ** 0.5 >= 1 / inverse_mass(Ball(N), 0.4)
    for N in (1, 2, 6):
        spec, config = told(Linear(Ball(N)), 100_000), BallExperts(best_loss=3.0)
        best, plan = config.plan(spec)
        assert best - 3 == pytest.approx(plan.margin, rel=0.5)
        assert plan.draws >= log(inverse_mass(Ball(N), (best - 3) / (0.5 * 100_000)))
