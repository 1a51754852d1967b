"""Agents of blocks and batches on the shortest horizons, in every geometry, at any epsilon."""

from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import LocalMD, NoisySFW, NoisySGD, PhasedSGD, SnowballSGD
from dpbandit.domains import LpBall
from dpbandit.losses import LinearRegression
from dpbandit.privacy.mechanism import BudgetExceeded
from dpbandit.stochastic import StreamSpec
from dpbandit.stochastic.blocks import block_lengths
from dpbandit.streams import Streams

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
    """Its door refuses one more user; the player, when all blocks are over, ignores her."""
    spec = StreamSpec(loss=LinearRegression(LpBall(2, 1.5)), horizon=4)
    agent = PhasedSGD().make(spec, Streams([0]))
    door = agent._blocks[0].open(Streams([1]), agent.act(None))
    z = np.ones((1, 3))
    assert door(z) is None
    assert door(z) is not None
    with pytest.raises(BudgetExceeded):
        door(z)
    for _ in range(3):
        agent.update(None, agent.act(None), z)
    end = agent.act(None)
    agent.update(None, end, z)
    np.testing.assert_array_equal(agent.act(None), end)
