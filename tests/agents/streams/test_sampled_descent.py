"""Descent on sampled users: NoisySGD and LocalMD."""

from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import LocalMD, NoisySGD
from dpbandit.agents.streams.sampled_descent import MirrorPhase, Sampled, geometry_of, mirrored
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, LpBall, Simplex
from dpbandit.losses import Linear, LinearRegression, Quadratic, QuantileRegression
from dpbandit.privacy.curves import delta_of
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.subsampling import SampledGaussianSpend, largest_ratio
from dpbandit.specs.convex import StreamSpec
from tests.agents.streams.stream_runs import answered, fed, share_of_the_centre

LOSS = LinearRegression(LpBall(3, 1.5, 2.0), bound=1.25)
SPEC = StreamSpec(loss=LOSS, horizon=24)
FREE = {"epsilon": inf, "delta": 0.0}


def users(count, replicas, size=4, seed=0):
    return np.random.default_rng(seed).standard_normal((count, replicas, size))


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


def block_of(**settings):
    """The only block of all 24 users."""
    (block,) = NoisySGD(**settings, refit="once").make(SPEC, Streams([0])).blocks
    return block


def test_printed_numbers_of_noisy_sgd():
    """Golden, by hand: n = 24, k = 3, delta = 1e-2: 576 steps of R / (L 24 sqrt(24)), as
    sqrt(3 ln 100) = 3.7 < sqrt(24); sigma = L sqrt(8 ln 100). Sampling and 576 releases cost a
    quarter less than claimed; without sampling it would be hopeless."""
    block = block_of(calibration="paper", delta=1e-2)
    assert (block.steps, block.spend.rate) == (576, 1 / 24)
    assert block.eta == pytest.approx(2 / (LOSS.lipschitz * 24**1.5))
    assert block.sigma == pytest.approx(LOSS.lipschitz * sqrt(8 * log(100)))
    assert 0.6 < Ledger((block.spend,)).epsilon(1e-2) < 0.9
    everybody = SampledGaussianSpend(block.spend.ratio, 1.0, 576)
    assert Ledger((everybody,)).epsilon(1e-2) > 40


def test_the_certificate_is_for_the_steps_made():
    """Fewer steps need less noise, all meet the target, and the ratio is that of the noise."""
    sigmas = []
    for steps in (1, 24, "auto", "paper"):
        block = block_of(steps=steps)
        assert block.spend.ratio == pytest.approx(2 * LOSS.lipschitz / block.sigma)
        config = NoisySGD(steps=steps, refit="once")
        assert 0.999 <= certify(config, SPEC, accountants=False).epsilon <= 1, steps
        sigmas.append(block.sigma)
    assert sigmas == sorted(sigmas)
    assert block.steps == 576


def test_sampled_descent_adds_the_noise_it_is_certified_for():
    """Statistical: one step on losses without a gradient shows the noise alone. Its mean square
    over 4,000 x 3 numbers is within 6 standard errors (false alarm below 1e-8) of sigma^2, and
    10 % in variance is caught (asserted); sigma is what the spend was computed from."""
    loss = LinearRegression(LpBall(3, 2.0, 1e6), bound=1.0)
    block = Sampled(loss, Streams(range(4000)), users=2, steps=1, sigma=0.7, eta=0.01)
    noise = answered(block, np.zeros((4000, 3)), np.zeros((4000, 4))) / -0.01
    ratio = np.square(noise / 0.7)
    error = 6 * ratio.mean(axis=1).std() / 4000**0.5
    assert abs(ratio.mean() - 1) < error < 0.1
    assert block.spend.ratio == pytest.approx(2 * loss.lipschitz / 0.7)


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
    differences of |y|_p^2 / 2 the map is a gradient."""
    y = np.random.default_rng(0).standard_normal((50, 4)) * 10.0 ** np.arange(-25, 25)[:, None]
    for p in (1.1, 1.5, 2.0):
        q = p / (p - 1)
        np.testing.assert_allclose((p - 1) * mirrored(mirrored(y, p) / (p - 1), q), y, rtol=1e-9)
    np.testing.assert_allclose(mirrored(y, 2.0), y, rtol=1e-12)
    assert not mirrored(np.zeros((1, 2)), 1.5).any()
    y, h = np.array([[0.3, -1.2, 0.7]]), 1e-6

    def half_square(x):
        return np.linalg.norm(x, ord=1.5) ** 2 / 2

    slopes = [(half_square(y[0] + h * e) - half_square(y[0] - h * e)) / (2 * h) for e in np.eye(3)]
    np.testing.assert_allclose(mirrored(y, 1.5)[0], slopes, rtol=1e-6)


def test_euclidean_local_md_is_projected_descent():
    """Oracle: one phase of 12 users, all in every batch (b = n), is plain gradient descent in the
    intersection's stand-in: project, then shrink towards the start."""
    loss, data, start = Quadratic(Ball(2)), users(12, 3, 2), np.full((3, 2), 0.4)

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
    spec, config = StreamSpec(loss=LOSS, horizon=100), LocalMD(calibration="paper", delta=1e-2)
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
    for fields in (
        {"steps": "many"},
        {"steps": 0},
        {"calibration": "paper", "epsilon": 10.0},
    ):
        with pytest.raises(InputError, match=r"steps|beyond_validity"):
            NoisySGD(**fields)
    NoisySGD(calibration="paper", epsilon=10.0, beyond_validity=True)
    with pytest.raises(InputError, match="scale"):
        LocalMD(scale=-1.0)


def test_kinks_are_allowed():
    """Neither needs smooth losses: privacy rests on the bound of gradients alone."""
    spec = StreamSpec(loss=QuantileRegression(LpBall(2, 1.5)), horizon=40)
    for config in (NoisySGD(), LocalMD()):
        assert fed(config.make(spec, Streams([0])), users(40, 1, 3))[-1].any()


def test_they_beat_the_centre():
    """Statistical: the final excess risk is at most 0.2 of the centre's; here 0.015 and
    0.049 at T = 1,000, with standard errors of 0.004."""
    for config in (NoisySGD(delta=1e-3, refit="once"), LocalMD(delta=1e-3)):
        assert share_of_the_centre(config, 1.5, dim=2, T=600, R=6, seed=5).mean() < 0.2, config
