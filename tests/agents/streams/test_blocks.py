"""Agents of blocks and batches on the shortest horizons, in every geometry, at any epsilon."""

from math import inf, sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit import certify
from dpbandit.agents import LocalMD, NoisySFW, NoisySGD, PhasedSGD, SnowballSGD
from dpbandit.agents.streams.blocks import block_lengths
from dpbandit.agents.streams.local_md import MirrorBlock
from dpbandit.agents.streams.noisy_sgd import SampledBlock
from dpbandit.agents.streams.phased_sgd import Phase
from dpbandit.agents.streams.snowball_sgd import Snowball
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, LpBall
from dpbandit.losses import Linear, LinearRegression
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.specs.streams import StreamSpec

CONFIGS = [
    kind(**fields)
    for kind in (NoisySFW, NoisySGD, PhasedSGD, SnowballSGD, LocalMD)
    for fields in (
        {},
        {"calibration": "paper"},
        {"refit": "once"},
        {"epsilon": inf, "delta": 0.0},
        {"epsilon": inf, "delta": 0.0, "calibration": "paper"},
        {"epsilon": 1e-3},
        {"epsilon": 50.0},
    )
    if fields.keys() <= kind.__dataclass_fields__.keys()
]


@pytest.mark.parametrize("config", CONFIGS, ids=repr)
def test_short_horizons(config):
    """Points stay in the domain, and certified claims hold, from one round on."""
    for p, dim in ((1.0, 2), (1.5, 1), (3.0, 4), (inf, 3)):
        for horizon in (1, 2, 3, 20):
            spec = StreamSpec(loss=LinearRegression(LpBall(dim, p, 2.0)), horizon=horizon)
            proof = certify(config, spec, accountants=False)
            assert proof.holds or getattr(config, "calibration", "") == "paper"
            agent = config.make(spec, Streams([0]))
            for _ in range(horizon):
                agent.update(None, agent.act(None), np.ones((1, dim + 1)))
                assert spec.loss.domain.contains(agent.act(None)).all()


@pytest.mark.parametrize("horizon", [1, 2, 7, 100, 1000])
def test_blocks_fit(horizon):
    assert block_lengths(horizon, "once", 16) == (horizon,)
    lengths = block_lengths(horizon, "doubling", 5)
    assert sum(lengths) < horizon
    assert lengths == tuple(5 * 2**i for i in range(len(lengths)))
    assert sum(lengths) + 5 * 2 ** len(lengths) >= horizon


def test_a_block_is_over_when_it_is_over():
    """Its mechanism refuses one more user; the player, when all blocks are over, ignores her."""
    spec = StreamSpec(loss=LinearRegression(LpBall(2, 1.5)), horizon=4)
    agent = PhasedSGD().make(spec, Streams([0]))
    mechanism = agent._blocks[0].open(Streams([1]), agent.act(None))
    z = np.ones((1, 3))
    assert mechanism(z) is None
    assert mechanism(z) is not None
    with pytest.raises(BudgetExceededError):
        mechanism(z)
    for _ in range(3):
        agent.update(None, agent.act(None), z)
    end = agent.act(None)
    agent.update(None, end, z)
    np.testing.assert_array_equal(agent.act(None), end)


FLAT = Linear(Ball(2, 1e4))
"""Far from the sphere, with gradients of users who say nothing that are 0; L = 1."""
SAMPLED = {"loss": FLAT, "users": 4, "steps": 3, "sigma": 5.0, "eta": 0.7}
BLOCKS = [
    (Phase(loss=FLAT, users=3, eta=0.7, mu=0.4), lambda block: 2 * 0.7 / block.spend.mu),
    (Snowball(loss=FLAT, users=8, mu=0.4, scale=1e-3), lambda b: b.eta * b.sigma * sqrt(4)),
    (SampledBlock(**SAMPLED), lambda b: 0.7 * 2 / b.spend.ratio * sqrt(9 + 4 + 1) / 3),
    (
        MirrorBlock(**SAMPLED, batch=2, radius=1e3),
        lambda b: 0.7 * 2 / (2 * b.spend.ratio) * sqrt(9 + 4 + 1) / 3,
    ),
]
"""Of each kind one, and how noisy its point is, from what it spends: the mean of three iterates of
sampled descent is 3, 2 and 1 thirds of its steps."""


@pytest.mark.parametrize(("block", "stddev"), BLOCKS, ids=lambda x: type(x).__name__)
def test_noise_has_the_size_of_the_certificate(block, stddev):
    """Statistical: 4,000 points of a block of users who say nothing, two-sided chi-square; false
    alarm 1e-6 a change of seed, 5 % off is caught (asserted)."""
    R, expected = 4000, stddev(block)
    mechanism = block.open(Streams(range(R)), np.zeros((R, 2)))
    out = [mechanism(np.zeros((R, 2))) for _ in range(block.users)]
    assert [point is None for point in out] == [True] * (block.users - 1) + [False]

    def p_value(size):
        q = (out[-1] ** 2).sum() / size**2
        return 2 * min(chi2.cdf(q, 2 * R), chi2.sf(q, 2 * R))

    assert p_value(expected) > 1e-6
    assert p_value(1.05 * expected) < 1e-6
