"""What agents of streams owe: nothing broadcast, clips that clip, noise that is there."""

from math import exp, inf

import numpy as np
import pytest
from scipy.stats import norm

from dpbandit import InputError
from dpbandit.agents import STOCHASTIC, LocalisedTOFW, NoisySFW, NoisySGD
from dpbandit.agents.streams.noisy_sgd import SampledBlock
from dpbandit.base.arrays import clip_norm
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, LpBall
from dpbandit.losses import Linear, LinearRegression
from dpbandit.privacy.accounting.spends import GaussianSpend
from dpbandit.privacy.accounting.subsampling import SampledGaussianSpend, largest_ratio
from dpbandit.privacy.sums.batch_sums import BatchSum
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.streams import StreamSpec

LEARNERS = [name for name in STOCHASTIC if name not in ("uniform", "best-fixed", "centre")]


def made(name, spec, replicas):
    """The agent, once more on the l_1 ball if it plays nothing else."""
    try:
        return STOCHASTIC[name]().make(spec, Streams(range(replicas)))
    except InputError:
        loss = LinearRegression(LpBall(3, 1.0))
        spec = StreamSpec(loss=loss, horizon=20)
        return STOCHASTIC[name]().make(spec, Streams(range(replicas)))


@pytest.mark.parametrize("name", LEARNERS)
@pytest.mark.parametrize("shape", [(2, 1), (2,), (1, 4), (2, 5), (3, 4)])
def test_data_of_another_shape_are_refused_not_broadcast(name, shape):
    """A number that stands for all entries moves a gradient sqrt(N) times too far; and rows that
    share one replica's noise would show their difference without any."""
    agent = made(name, StreamSpec(loss=LinearRegression(LpBall(3, 1.5)), horizon=20), 2)
    action = agent.act(np.zeros((2, 4)))
    with pytest.raises(InputError, match="shape"):
        agent.update(np.zeros((2, 4)), action, np.ones(shape))


def test_one_replica_does_not_lend_its_noise():
    agent = STOCHASTIC["dp-tofw"]().make(
        ConvexSpec(loss=Linear(Ball(3)), horizon=9, feedback="datum"), Streams([0])
    )
    with pytest.raises(InputError, match="shape"):
        agent.update(np.zeros((3, 3)), agent.act(np.zeros((3, 3))), np.ones((3, 3)))


def test_batch_sums_take_vectors_of_their_length():
    total = BatchSum(
        3, 1.0, users=9, noise=lambda: np.zeros((1, 3)), spend=GaussianSpend(1.0, "a batch")
    )
    for shape in ((1, 1), (3,), (1, 4)):
        with pytest.raises(InputError, match="shape"):
            total(np.ones(shape))


@pytest.mark.parametrize("order", [1, 1.5, 2, 3, 5, 40, 1001, 1e6, inf])
def test_clips_of_every_order_clip(order):
    """Powers of small numbers underflow and of large ones overflow: neither may decide."""
    for row in ([0.45, 0.0], [2.5, 0.5], [1e-3, -2e-3], [1e30, -1e30]):
        (clipped,) = clip_norm(np.array([row]), 1e-4, order)
        size = np.abs(clipped).max()
        assert np.linalg.norm(clipped / size, order) * size == pytest.approx(1e-4, rel=1e-9)


@pytest.mark.parametrize(("rate", "count", "ratio"), [(1e-3, 10**4, 0.93), (1e-2, 1000, 1.0)])
def test_rounding_never_makes_a_delta_negative(rate, count, ratio):
    """Nor loses the small ones: sampled losses have a second, far mode, on which a tilt must not
    land, and which must not make the window so wide that its cells shift every loss upwards."""
    spend = SampledGaussianSpend(ratio=ratio, rate=rate, count=count)
    deltas = [spend.delta(epsilon) for epsilon in (0.1, 0.2, 0.3, 0.5, 1.0, 1.5, 3.0, 50.0)]
    assert min(deltas) >= 0
    assert max(np.diff(deltas)) <= 0
    mu = spend.clt
    normal = [norm.cdf(mu / 2 - e / mu) - exp(e) * norm.cdf(-mu / 2 - e / mu) for e in (0.1, 0.2)]
    assert (np.divide(deltas[:2], normal) < 4).all()


def test_targets_that_delta_alone_meets_are_within_reach():
    assert largest_ratio(rate=1e-4, count=1, epsilon=1.0, delta=1e-3) > 1


@pytest.mark.parametrize("agent", [NoisySGD, NoisySFW])
def test_printed_noise_beyond_its_proof_is_refused(agent):
    with pytest.raises(InputError, match="beyond_validity"):
        agent(calibration="paper", epsilon=10.0)
    agent(calibration="paper", epsilon=10.0, beyond_validity=True)


@pytest.mark.parametrize("p", [1.0001, 1.001, 1.005])
def test_balls_that_are_almost_crosspolytopes(p):
    spec = StreamSpec(loss=LinearRegression(LpBall(5, p)), horizon=30)
    agent = LocalisedTOFW(delta=1e-3).make(spec, Streams([0]))
    for _ in range(30):
        agent.update(np.zeros((1, 6)), agent.act(np.zeros((1, 6))), np.ones((1, 6)) / 5)
    assert np.isfinite(agent.act(np.zeros((1, 6)))).all()


def test_sampled_descent_adds_the_noise_it_is_certified_for():
    """Statistical: one step on losses without a gradient shows the noise alone. Its mean square
    over 4,000 x 3 numbers is within 6 standard errors (false alarm below 1e-8) of sigma^2, and
    10 % in variance is caught (asserted); sigma is what the spend was computed from."""
    loss = LinearRegression(LpBall(3, 2.0, 1e6), bound=1.0)
    block = SampledBlock(loss=loss, users=2, steps=1, sigma=0.7, eta=0.01)
    mechanism = block.open(Streams(range(4000)), np.zeros((4000, 3)))
    assert mechanism(np.zeros((4000, 4))) is None
    noise = mechanism(np.zeros((4000, 4))) / -0.01
    ratio = np.square(noise / 0.7)
    error = 6 * ratio.mean(axis=1).std() / 4000**0.5
    assert abs(ratio.mean() - 1) < error < 0.1
    assert block.spend.ratio == pytest.approx(2 * loss.lipschitz / 0.7)
