"""Descent on sampled users: NoisySGD and LocalMD."""

from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import LocalMD, NoisySGD
from dpbandit.agents.streams.local_md import MirrorBlock, _mirrored, geometry_of
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, LpBall, Simplex
from dpbandit.envs.streams.streaming_regression import StreamingRegression
from dpbandit.losses import Linear, LinearRegression, Quadratic, QuantileRegression
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.subsampling import SampledGaussianSpend
from dpbandit.specs.streams import StreamSpec

LOSS = LinearRegression(LpBall(3, 1.5, 2.0), bound=1.25)
SPEC = StreamSpec(loss=LOSS, horizon=24)
FREE = {"epsilon": inf, "delta": 0.0}


def users(count, replicas, size=4, seed=0):
    return np.random.default_rng(seed).standard_normal((count, replicas, size))


def fed(agent, data):
    points = [agent.act(None)]
    for z in data:
        agent.update(None, points[-1], z)
        points.append(agent.act(None))
    return points


def test_noisy_sgd_is_the_algorithm():
    """Oracle: blocks of 4 and 8 of 24 users (16 more do not fit), steps written out with the same
    draws, without noise."""
    data, streams = users(24, 2), Streams([0, 1])
    points = fed(NoisySGD(**FREE, first=4, steps=30).make(SPEC, Streams([0, 1])), data)
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


def test_printed_numbers_of_noisy_sgd():
    """Golden, by hand: n = 24, k = 3, delta = 1e-2: 576 steps of R / (L 24 sqrt(24)), as
    sqrt(3 ln 100) = 3.7 < sqrt(24); sigma = L sqrt(8 ln 100). Sampling and 576 releases cost a
    quarter less than claimed; without sampling it would be hopeless."""
    config = NoisySGD(calibration="paper", delta=1e-2, refit="once")
    block = config.block(LOSS, 24)
    assert (block.steps, block.spend.rate) == (576, 1 / 24)
    assert block.eta == pytest.approx(2 / (LOSS.lipschitz * 24**1.5))
    assert block.sigma == pytest.approx(LOSS.lipschitz * sqrt(8 * log(100)))
    assert 0.6 < certify(config, SPEC, accountants=False).epsilon < 0.9
    everybody = SampledGaussianSpend(block.spend.ratio, 1.0, 576)
    assert Ledger((everybody,)).epsilon(1e-2) > 40


def test_the_certificate_is_for_the_steps_made():
    """Fewer steps need less noise, all meet the target, and the ratio is that of the noise."""
    sigmas = []
    for steps in (1, 24, "auto", "paper"):
        config = NoisySGD(steps=steps, refit="once")
        block = config.block(LOSS, 24)
        assert block.spend.ratio == pytest.approx(2 * LOSS.lipschitz / block.sigma)
        assert 0.999 <= certify(config, SPEC, accountants=False).epsilon <= 1
        sigmas.append(block.sigma)
    assert sigmas == sorted(sigmas)
    assert block.steps == 576


def test_mirror_maps_are_inverse():
    """grad h* (grad h (y)) = y, h = |y|_p^2 / (2 (p-1)), and at p = 2 both are the identity."""
    y = np.random.default_rng(0).standard_normal((50, 4)) * 10.0 ** np.arange(-25, 25)[:, None]
    for p in (1.1, 1.5, 2.0):
        q = p / (p - 1)
        np.testing.assert_allclose((p - 1) * _mirrored(_mirrored(y, p) / (p - 1), q), y, rtol=1e-9)
    np.testing.assert_allclose(_mirrored(y, 2.0), y, rtol=1e-12)
    assert not _mirrored(np.zeros((1, 2)), 1.5).any()


def test_the_mirror_map_is_a_gradient():
    """Of |y|_p^2 / 2, by finite differences."""
    y, p, h = np.array([[0.3, -1.2, 0.7]]), 1.5, 1e-6

    def half_square(x):
        return np.linalg.norm(x, ord=p) ** 2 / 2

    slopes = [(half_square(y[0] + h * e) - half_square(y[0] - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(_mirrored(y, p)[0], slopes, rtol=1e-6)


def test_euclidean_local_md_is_projected_descent():
    """Oracle: one phase of 12 users, all in every batch (b = n), is plain gradient descent in the
    intersection's stand-in: project, then shrink towards the start."""
    loss, data = Quadratic(Ball(2)), users(12, 3, 2)
    block = MirrorBlock(
        loss=loss, users=12, batch=12, steps=1, sigma=0.0, eta=0.02, radius=2 * 2 * 0.02 * 12
    )
    start = np.full((3, 2), 0.4)
    mechanism = block.open(Streams(range(3)), start)
    out = [mechanism(z) for z in data][-1]
    w = loss.domain.project(start - 0.02 * (start - loss.admissible(data)).mean(axis=0))
    np.testing.assert_allclose(out, w, atol=1e-12)
    half = MirrorBlock(loss=loss, users=12, batch=3, steps=16, sigma=0.0, eta=0.5, radius=0.1)
    mechanism = half.open(Streams(range(3)), start)
    out = [mechanism(z) for z in data][-1]
    assert 0.05 < np.linalg.norm(out - start, axis=1).max() <= 0.1


def test_batches_are_drawn_without_replacement():
    """Statistical: 3 of 10 users, unit vectors as slopes: every mean has three entries of 1/3, each
    user comes as often as the others (6 standard errors of 4,000 draws)."""
    loss = Linear(Ball(10))
    block = MirrorBlock(loss=loss, users=10, batch=3, steps=1, sigma=0.0, eta=0.1, radius=1.0)
    mechanism = block.open(Streams(range(4000)), np.zeros((4000, 10)))
    for e in np.eye(10):
        mechanism._learn(np.tile(e, (4000, 1)))
        mechanism._used += 1
    g = mechanism._gradient(np.zeros((4000, 10)))
    assert ((np.abs(g - 1 / 3) < 1e-12).sum(axis=1) == 3).all()
    assert ((np.abs(g) < 1e-12).sum(axis=1) == 7).all()
    share = 3 * g.mean(axis=0)
    assert np.abs(share - 0.3).max() < 6 * sqrt(0.3 * 0.7 / 4000)


def test_printed_numbers_of_local_md():
    """Golden, by hand, for T = 100, d = 3, p = 1.5: phase 1 has 50 users, epsilon_1 = 1/2,
    b = int(sqrt(50 / ln 3)) = 6, 69 steps, sigma = 100 L sqrt(3^(1/3) ln 100) / 3, radius
    2 L eta_1 50 / 2. No noise so large was ever needed: it is certified at 0.01, not 1."""
    spec, config = StreamSpec(loss=LOSS, horizon=100), LocalMD(calibration="paper", delta=1e-2)
    first = config.make(spec, Streams([0]))._blocks[0]
    eta = 4 / 6.5 * min(1 / sqrt(50), 1 / sqrt(3 * log(100) * (1 + log(3)))) / 16
    assert (first.users, first.batch, first.steps) == (50, 6, 69)
    assert first.eta == pytest.approx(eta)
    assert first.sigma == pytest.approx(100 * 6.5 * sqrt(3 ** (1 / 3) * log(100)) / 3)
    assert first.radius == pytest.approx(2 * 6.5 * eta * 50 * 0.5)
    assert certify(config, spec, accountants=False).epsilon < 0.01
    ours = LocalMD(delta=1e-2).make(spec, Streams([0]))._blocks
    assert [block.users for block in ours] == [50, 25, 12, 6, 3, 1]
    for block in ours:
        assert 0.998 < Ledger((block.spend,)).epsilon(1e-2) <= 1
        assert block.spend.ratio == pytest.approx(2 * LOSS.lipschitz / (block.batch * block.sigma))


def test_geometries():
    """p = 1 becomes 1 + 1/ln d with gradients at most e L long; p > 2 and others are Euclidean."""
    l1 = LinearRegression(LpBall(20, 1.0), bound=1.0)
    found = geometry_of(l1)
    assert found.p == pytest.approx(1 + 1 / log(20))
    assert l1.dual_lipschitz < found.lipschitz < np.e * l1.dual_lipschitz
    flat = LinearRegression(LpBall(4, inf), bound=1.0)
    assert geometry_of(flat) == (2.0, flat.lipschitz, flat.domain.diameter)
    assert geometry_of(Linear(Simplex(3))) == (2.0, 1.0, Simplex(3).diameter)


def test_bad_input():
    for fields in ({"steps": "many"}, {"steps": 0}, {"first": 0}, {"refit": "twice"}):
        with pytest.raises(InputError):
            NoisySGD(**fields)
    with pytest.raises(InputError):
        LocalMD(scale=-1.0)


def test_kinks_are_allowed():
    """Neither needs smooth losses: privacy rests on the bound of gradients alone."""
    spec = StreamSpec(loss=QuantileRegression(LpBall(2, 1.5)), horizon=40)
    for config in (NoisySGD(), LocalMD()):
        points = fed(config.make(spec, Streams([0])), users(40, 1, 3))
        assert points[-1].any()


@pytest.mark.parametrize(
    "config", [NoisySGD(delta=1e-3, refit="once"), LocalMD(delta=1e-3)], ids=repr
)
def test_they_beat_the_centre(config):
    """Statistical: the final excess risk is at most 0.2 of the centre's; here 0.015 and
    0.049, with standard errors of 0.004."""
    problem, R, T = StreamingRegression(p=1.5, dim=2, horizon=1000), 8, 1000
    problem.reset(Streams([(5, r) for r in range(R)]))
    agent = config.make(problem.spec, Streams([(6, r) for r in range(R)]))
    for _ in range(T):
        x = agent.act(None)
        agent.update(None, x, problem.step(x).datum)
    end = agent.act(None)
    share = problem.excess_risk(end) / problem.excess_risk(np.zeros_like(end))
    assert share.mean() < 0.2
