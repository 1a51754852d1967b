"""Blocks of users: one pass of descent, descent on sampled users, and exact minimisers."""

from dataclasses import replace
from itertools import pairwise
from math import inf, log, sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit import certify
from dpbandit.agents import LeastSquares, LocalMD, NoisySGD, PhasedSGD, SnowballSGD
from dpbandit.agents.streams.gradient_descent import Phase, Snowball, block_lengths
from dpbandit.agents.streams.sampled_descent import MirrorPhase, Sampled, geometry_of, mirrored
from dpbandit.base import Streams
from dpbandit.domains import Ball, LpBall, Simplex
from dpbandit.losses import (
    Linear,
    LinearRegression,
    LogisticRegression,
    Quadratic,
    QuantileRegression,
)
from dpbandit.privacy import BudgetExceededError, Ledger, delta_of
from dpbandit.privacy.subsampling import SampledGaussianSpend, largest_ratio
from tests.agents.streams.stream_runs import answered, points_of, told
from tests.each import each
from tests.slopes import differences

LOSS = LinearRegression(LpBall(3, 1.5, 2.0), bound=1.25)
SPEC = told(LOSS, 24)
SMOOTH = [LOSS, LogisticRegression(LpBall(2, 1.0)), Quadratic(Ball(2)), Linear(Ball(3, 0.5))]
FREE = {"epsilon": inf, "delta": 0.0}


def users(loss, count, replicas, seed=0):
    """Extreme ones, at and far beyond the bounds."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal((count, replicas, *loss.datum_shape)) * rng.choice(
        [0.3, 1.0, 30.0], size=(count, replicas, 1)
    )


def test_blocks_fit_and_point_by_point_they_double():
    """By hand: 10, 20 and 40 of 100 users; a point moves where a block ends. When a block is over
    its mechanism refuses one more user; the agent, when all are over, ignores her."""
    for horizon in (1, 2, 7, 100, 1000):
        assert block_lengths(horizon, "once", 16) == (horizon,)
        lengths = block_lengths(horizon, "doubling", 5)
        assert lengths == tuple(5 * 2**i for i in range(len(lengths)))
        assert sum(lengths) < horizon <= sum(lengths) + 5 * 2 ** len(lengths)
    agent = SnowballSGD(first=10).make(told(LOSS, 100), Streams([0]))
    assert moves(points_of(agent, users(LOSS, 100, 1))) == [10, 30, 70]
    agent, z = PhasedSGD().make(told(LOSS, 4), Streams([0])), np.ones((1, 4))
    points = points_of(agent, [z] * 5)
    np.testing.assert_array_equal(points[-1], points[3])
    with pytest.raises(BudgetExceededError):
        agent.blocks[0](z)


def moves(points):
    """After how many users the points change."""
    return [t for t, (one, two) in enumerate(pairwise(points), 1) if (one != two).any()]


def test_phases_are_those_of_the_algorithm():
    """Oracle: 24 users in phases of 12, 6, 3 and 1, steps written out for each."""
    data = users(LOSS, 24, 2)
    points = points_of(PhasedSGD(**FREE).make(SPEC, Streams([0, 1])), data)
    eta, w, start = 4 / sqrt(24) * 2 / LOSS.lipschitz, np.zeros((2, 3)), 0
    for i, n in enumerate((12, 6, 3, 1), 1):
        total = 0 * w
        for z in LOSS.admissible(data[start : start + n]):
            w = LOSS.domain.project(w - eta / 4**i * LOSS.gradient(w, z))
            total = total + w
        w, start = total / n, start + n
        np.testing.assert_allclose(points[start], w, atol=1e-12)
    assert len(moves(points)) == 4


@each("loss", SMOOTH, ids=repr)
def test_a_user_moves_a_phase_no_further_than_claimed(loss):
    """Property: paired runs without noise, one user replaced, at the longest step allowed."""
    n, R = 6, 200
    phase = loss, n, 2 / loss.smoothness if loss.smoothness else 0.1
    data, other = users(loss, n, R, 1), users(loss, n, R, 2)
    start = loss.domain.project(np.random.default_rng(3).standard_normal((R, loss.domain.dim)))
    for t in range(n):
        changed = data.copy()
        changed[t] = other[t]
        assert distance(phase, start, data, changed).max() <= silent(*phase).point_sensitivity * (
            1 + 1e-9
        ), t


def silent(loss, users, eta):
    """A phase without noise."""
    return Phase(loss, Streams([0]), users=users, eta=eta, mu=inf)


def distance(phase, start, world, other):
    """How far a replaced user moves the point of a phase of such numbers, (R,)."""
    ends = [answered(silent(*phase), start, data) for data in (world, other)]
    return np.linalg.norm(np.subtract(*ends), axis=1)


def test_the_bound_of_a_phase_is_attained():
    """By linear losses in one dimension; steps of 2.6 / beta, which expand, go beyond it (broken on
    purpose)."""
    zero, rest = np.zeros((1, 1)), np.full((5, 1, 1), 0.2)
    worlds = [np.concatenate([np.full((1, 1, 1), x), rest]) for x in (1.0, -1.0)]
    line = Linear(Ball(1, 100.0)), 6, 0.5
    assert distance(line, zero, *worlds) == pytest.approx(silent(*line).point_sensitivity)
    loss = LinearRegression(LpBall(1, 2.0, 5000.0), bound=1.0)
    eta = 2.6 / loss.smoothness
    worlds = [np.tile([1.0, 0.0], (8, 1, 1)) for _ in range(2)]
    worlds[0][0, 0, 1], worlds[1][0, 0, 1] = 1.0, -1.0  # gradients of -2 and 2
    assert distance((loss, 8, eta), zero, *worlds) > 1.5 * 4 * eta


def test_no_step_is_longer_than_the_proof_allows():
    """Golden: at a `scale` that asks for more, eta is 2 / beta in every block, the longest that
    does not take points apart; at a small one it is shorter."""
    for loss in SMOOTH[:3]:
        for config in (PhasedSGD(), SnowballSGD(refit="once")):
            for horizon in (1, 24):
                spec = told(loss, horizon)
                long, short = (
                    [b.eta for b in replace(config, scale=s).make(spec, Streams([0])).blocks]
                    for s in (1e6, 1e-3)
                )
                assert set(long) == {2 / loss.smoothness}, (config, spec)
                assert max(short) < 2 / loss.smoothness, (config, spec)


def test_snowball_is_the_algorithm():
    """Oracle: 20 users at once: ten steps written out with the block's batches."""
    data = users(LOSS, 20, 2)
    agent = SnowballSGD(**FREE, refit="once").make(told(LOSS, 20), Streams([0, 1]))
    points, (block,) = points_of(agent, data), agent.blocks
    assert block.sigma == 0
    assert block.eta == pytest.approx(0.5 * 2 / sqrt(10 * LOSS.lipschitz**2))
    w, start = np.zeros((2, 3)), 0
    for size in block.batches:
        z = LOSS.admissible(data[start : start + size])
        w = LOSS.domain.project(w - block.eta * LOSS.gradient(w, z).mean(axis=0))
        start += size
    np.testing.assert_allclose(points[-1], w, atol=1e-12)
    assert not any(point.any() for point in points[:-1])


def test_batches_of_a_snowball():
    """They use what there is: one more user a batch somewhere would be too many, or c is so.
    Oracle: with linear or quadratic losses, and C out of reach, the last point is exactly Gaussian:
    w_m = (1-h)^(m-t) eta g_t / b_t + ..., a user of batch t moves its mean by 2 L eta (1-h)^(m-t)
    / b_t, its variance is eta^2 sigma^2 sum (1-h)^(2j), h = eta curvature. That is at most the
    claim; the first user, with linear losses, attains her part of it."""
    for n in (1, 2, 3, 16, 100, 1024):
        block = Snowball(LOSS, Streams([0]), users=n, mu=0.3)
        assert len(block.batches) == -(-n // 2)
        assert list(block.batches) == sorted(block.batches)
        assert 0.6 * n <= sum(block.batches) <= n
        left = np.arange(len(block.batches), 0, -1)
        per_user = 2 * LOSS.lipschitz / (np.array(block.batches) * block.sigma * np.sqrt(left))
        assert per_user.max() == pytest.approx(0.3), n
    block = Snowball(Linear(Ball(1, 1e6)), Streams([0]), users=40, mu=0.5)
    m, eta = len(block.batches), 0.1
    for curvature in (0.0, 1.0):
        decay = 1 - eta * curvature
        stddev = eta * block.sigma * sqrt(sum(decay ** (2 * j) for j in range(m)))
        for t, size in enumerate(block.batches, 1):
            exact = 2 * eta * decay ** (m - t) / size / stddev
            claimed = 2 / (size * block.sigma * sqrt(m - t + 1))
            assert exact <= claimed * (1 + 1e-12)
            assert claimed <= 0.5 * (1 + 1e-12)
            if t == 1 and not curvature:
                assert exact == pytest.approx(claimed)


# Sampled users


def test_noisy_sgd_is_the_algorithm():
    """Oracle: blocks of 4 and 8 of 24 users (16 more do not fit), steps written out with the same
    draws, without noise."""
    data, streams = users(LOSS, 24, 2), Streams([0, 1])
    points = points_of(NoisySGD(**FREE, first=4, steps=30).make(SPEC, Streams([0, 1])), data)
    w, start = np.zeros((2, 3)), 0
    for number, n in enumerate((4, 8)):
        z = LOSS.admissible(data[start : start + n])
        start += n
        draws, total = streams.child(f"block {number}").uniforms("who"), 0.0
        eta = 2 / (LOSS.lipschitz * sqrt(30 * (1 + 30 / n)))
        for _ in range(30):
            chosen = (draws() * n).astype(int)
            w = LOSS.domain.project(w - eta * LOSS.gradient(w, z[chosen, [0, 1]]))
            total = total + w
        w = total / 30
        np.testing.assert_allclose(points[start], w, atol=1e-12)
    np.testing.assert_array_equal(points[-1], points[12])


def block_of(**settings):
    """The only block of all 24 users."""
    (block,) = NoisySGD(**settings, refit="once").make(SPEC, Streams([0])).blocks
    return block


def test_printed_numbers_of_noisy_sgd():
    """Golden, by hand: n = 24, k = 3, delta = 1e-2: 576 steps of R / (L 24 sqrt(24)), as
    sqrt(3 ln 100) = 3.7 < sqrt(24); sigma = L sqrt(8 ln 100). Sampling and 576 releases cost a
    quarter less than claimed; without sampling it would be hopeless. Fewer steps need less noise,
    all meet the target, and the ratio is that of the noise."""
    block = block_of(calibration="paper", delta=1e-2)
    assert (block.steps, block.spend.rate) == (576, 1 / 24)
    assert block.eta == pytest.approx(2 / (LOSS.lipschitz * 24**1.5))
    assert block.sigma == pytest.approx(LOSS.lipschitz * sqrt(8 * log(100)))
    assert 0.6 < Ledger((block.spend,)).epsilon(1e-2) < 0.9
    everybody = SampledGaussianSpend(block.spend.ratio, 1.0, 576)
    assert Ledger((everybody,)).epsilon(1e-2) > 40
    sigmas = []
    for steps in (1, 24, "auto", "paper"):
        block = block_of(steps=steps)
        assert block.spend.ratio == pytest.approx(2 * LOSS.lipschitz / block.sigma)
        config = NoisySGD(steps=steps, refit="once")
        assert 0.999 <= certify(config, SPEC, accountants=False).epsilon <= 1, steps
        sigmas.append(block.sigma)
    assert sigmas == sorted(sigmas)
    assert block.steps == 576


def test_rounding_never_makes_a_delta_negative():
    """Nor loses the small ones: sampled losses have a second, far mode, on which a tilt must not
    land, and which must not make the window so wide that its cells shift every loss upwards.
    Targets that delta alone meets are within reach."""
    for rate, count, ratio in ((1e-3, 10**4, 0.93), (1e-2, 1000, 1.0)):
        spend = SampledGaussianSpend(ratio=ratio, rate=rate, count=count)
        deltas = [spend.delta(epsilon) for epsilon in (0.1, 0.2, 0.3, 0.5, 1.0, 1.5, 3.0, 50.0)]
        assert min(deltas) >= 0
        assert max(np.diff(deltas)) <= 0
        assert np.divide(deltas[:2], [delta_of(spend.clt, e) for e in (0.1, 0.2)]).max() < 4
    assert largest_ratio(rate=1e-4, count=1, epsilon=1.0, delta=1e-3) > 1


def test_mirror_maps_are_inverse_and_gradients():
    """grad h* (grad h (y)) = y, h = |y|_p^2 / (2 (p-1)); at p = 2 both are the identity. By finite
    differences of |y|_p^2 / 2 the map is a gradient. p = 1 becomes 1 + 1/ln d with gradients at
    most e L long; p > 2 and others are Euclidean."""
    y = np.random.default_rng(0).standard_normal((50, 4)) * 10.0 ** np.arange(-25, 25)[:, None]
    for p in (1.1, 1.5, 2.0):
        q = p / (p - 1)
        np.testing.assert_allclose((p - 1) * mirrored(mirrored(y, p) / (p - 1), q), y, rtol=1e-9)
    np.testing.assert_allclose(mirrored(y, 2.0), y, rtol=1e-12)
    assert not mirrored(np.zeros((1, 2)), 1.5).any()
    y = np.array([[0.3, -1.2, 0.7]])
    slopes = differences(lambda x: np.linalg.norm(x, ord=1.5) ** 2 / 2, y[0])
    np.testing.assert_allclose(mirrored(y, 1.5)[0], slopes, rtol=1e-6)
    l1 = LinearRegression(LpBall(20, 1.0), bound=1.0)
    found = geometry_of(l1)
    assert found.p == pytest.approx(1 + 1 / log(20))
    assert l1.dual_lipschitz < found.lipschitz < np.e * l1.dual_lipschitz
    flat = LinearRegression(LpBall(4, inf), bound=1.0)
    assert geometry_of(flat) == (2.0, flat.lipschitz, flat.domain.diameter)
    assert geometry_of(Linear(Simplex(3))) == (2.0, 1.0, Simplex(3).diameter)


def test_euclidean_local_md_is_projected_descent():
    """Oracle: one phase of 12 users, all in every batch (b = n), is plain gradient descent in the
    intersection's stand-in: project, then shrink towards the start."""
    loss, start = Quadratic(Ball(2)), np.full((3, 2), 0.4)
    data = np.random.default_rng(0).standard_normal((12, 3, 2))

    def out(**numbers):
        phase = MirrorPhase(loss, Streams(range(3)), users=12, sigma=0.0, **numbers)
        return answered(phase, start, data)

    w = loss.domain.project(start - 0.02 * (start - loss.admissible(data)).mean(axis=0))
    whole = out(batch=12, steps=1, eta=0.02, radius=2 * 2 * 0.02 * 12)
    np.testing.assert_allclose(whole, w, atol=1e-12)
    few = out(batch=3, steps=16, eta=0.5, radius=0.1)
    assert 0.05 < np.linalg.norm(few - start, axis=1).max() <= 0.1


def test_batches_are_drawn_without_replacement():
    """Statistical: 3 of 10 users, unit vectors as slopes: every mean has three entries of 1/3, each
    user comes as often as the others (6 standard errors of 4,000 draws)."""
    numbers = {"users": 10, "batch": 3, "steps": 1, "sigma": 0.0, "eta": 0.1, "radius": 1.0}
    phase, R = MirrorPhase(Linear(Ball(10)), Streams(range(4000)), **numbers), 4000
    phase.begin(np.zeros((R, 10)))
    phase._data[:] = np.eye(10)[:, None]
    g = phase._gradient(np.zeros((R, 10)))
    assert ((np.abs(g - 1 / 3) < 1e-12).sum(axis=1) == 3).all()
    assert ((np.abs(g) < 1e-12).sum(axis=1) == 7).all()
    assert np.abs(3 * g.mean(axis=0) - 0.3).max() < 6 * sqrt(0.3 * 0.7 / R)


def test_printed_numbers_of_local_md():
    """Golden, by hand, for T = 100, d = 3, p = 1.5: phase 1 has 50 users, epsilon_1 = 1/2,
    b = int(sqrt(50 / ln 3)) = 6, 69 steps, sigma = 100 L sqrt(3^(1/3) ln 100) / 3, radius
    2 L eta_1 50 / 2. No noise so large was ever needed: it is certified at 0.01, not 1."""
    spec, config = told(LOSS, 100), LocalMD(calibration="paper", delta=1e-2)
    first = config.make(spec, Streams([0])).blocks[0]
    eta = 4 / 6.5 * min(1 / sqrt(50), 1 / sqrt(3 * log(100) * (1 + log(3)))) / 16
    assert (first.uses, first.batch, first.steps) == (50, 6, 69)
    assert first.eta == pytest.approx(eta)
    assert first.sigma == pytest.approx(100 * 6.5 * sqrt(3 ** (1 / 3) * log(100)) / 3)
    assert first.radius == pytest.approx(2 * 6.5 * eta * 50 * 0.5)
    assert certify(config, spec, accountants=False).epsilon < 0.01
    ours = LocalMD(delta=1e-2).make(spec, Streams([0])).blocks
    assert [block.uses for block in ours] == [50, 25, 12, 6, 3, 1]
    for block in ours:
        assert 0.998 < Ledger((block.spend,)).epsilon(1e-2) <= 1
        assert block.spend.ratio == pytest.approx(2 * LOSS.lipschitz / (block.batch * block.sigma))


def test_noise_has_the_size_of_the_certificate():
    """Statistical: 4,000 points of a block of users who say nothing, of each kind, two-sided
    chi-square against what it spends (the mean of three iterates of sampled descent is 3, 2 and 1
    thirds of its steps); false alarm 1e-6 a change of seed, 5 % off is caught (asserted)."""
    R, flat = 4000, Linear(Ball(2, 1e4))  # far from the sphere; gradients are 0, L = 1
    many = [Streams([(i, r) for r in range(R)]) for i in range(4)]
    phase = Phase(flat, many[0], users=3, eta=0.7, mu=0.4)
    ball = Snowball(flat, many[1], users=8, mu=0.4, scale=1e-3)
    numbers = {"users": 4, "steps": 3, "sigma": 5.0, "eta": 0.7}
    one = Sampled(flat, many[2], **numbers)
    two = MirrorPhase(flat, many[3], **numbers, batch=2, radius=1e3)
    for block, expected in (
        (phase, 2 * 0.7 / phase.spend.mu),
        (ball, ball.eta * ball.sigma * sqrt(4)),
        (one, 0.7 * 2 / one.spend.ratio * sqrt(9 + 4 + 1) / 3),
        (two, 0.7 * 2 / (2 * two.spend.ratio) * sqrt(9 + 4 + 1) / 3),
    ):
        square = np.square(answered(block, np.zeros((R, 2)), np.zeros((R, 2)))).sum()
        for size, right in ((expected, True), (1.05 * expected, False)):
            q = square / size**2
            p = 2 * min(chi2.cdf(q, 2 * R), chi2.sf(q, 2 * R))
            assert (p > 1e-6) == right, (type(block), size)


def test_it_is_least_squares():
    """Oracle: numpy's, where the constraint does not bind; refits at 1, 2, 3, .., 10, 11, 13, ..:
    each 1.1 times the one before, rounded up. Whatever users say, points are of the domain."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((60, 2, 3))
    a /= np.linalg.norm(a, axis=-1, keepdims=True)
    y = a @ np.array([0.3, -0.2, 0.1]) + 0.1 * rng.standard_normal((60, 2))
    spec = told(LinearRegression(LpBall(3, 2.0, 5.0)), 60)
    agent = LeastSquares().make(spec, Streams(range(2)))
    times = moves(points_of(agent, np.concatenate([a, y[..., None]], axis=-1)))
    expected = [1]
    while expected[-1] < 60:
        expected.append(max(expected[-1] + 1, int(np.ceil(1.1 * expected[-1]))))
    assert times == [t for t in expected if t <= 60]
    assert agent.refits == len(times)
    for r in range(2):
        best = np.linalg.lstsq(a[: times[-1], r], y[: times[-1], r], rcond=None)[0]
        np.testing.assert_allclose(agent.act(None)[r], best, atol=2e-3)
    spec = told(QuantileRegression(LpBall(2, 1.0, 0.5)), 20)
    data = rng.standard_normal((20, 3, 3)) * rng.choice([1.0, 1e9, np.nan], size=(20, 3, 1))
    agent = LeastSquares(growth=2.0).make(spec, Streams(range(3)))
    points = points_of(agent, data)
    assert agent.refits == 5  # at 1, 2, 4, 8, 16
    assert spec.loss.domain.contains(points[-1]).all()
