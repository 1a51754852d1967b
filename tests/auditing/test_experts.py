"""Audits of experts: losses of all experts are told, choices are released, hers with them."""

from dataclasses import replace

import numpy as np
import pytest

from dpbandit import audit
from dpbandit.agents import (
    AdaptiveSparseVectorExperts,
    BinaryTreeExperts,
    ExponentialLeader,
    NoisyFTRL,
    ShrinkingDartboard,
    SparseVectorExperts,
)
from dpbandit.auditing.audit import pairs
from dpbandit.auditing.everyone import SMALL
from dpbandit.specs.convex import ExpertsSpec
from tests.broken.audited import SpendsMore

(EXPERTS,) = [spec for spec in SMALL if isinstance(spec, ExpertsSpec)]
AGENTS = {
    "sparse vector": (SparseVectorExperts(epsilon=1.0), 20, 2000),
    "trees": (BinaryTreeExperts(epsilon=1.0, delta=1e-4), 20, 2000),
    "leader": (ExponentialLeader(epsilon=8.0, delta=1e-4), 20, 2000),
    "noisy sums": (NoisyFTRL(epsilon=1.0, delta=1e-4), 20, 2000),
    "adaptive sparse vector": (AdaptiveSparseVectorExperts(epsilon=2.0), 40, 2000),
    "dartboard": (ShrinkingDartboard(epsilon=8.0), 60, 4000),
}
"""A config, a horizon, and runs in which half of its noise shows."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=() if i < 4 else pytest.mark.slow) for i, name in enumerate(AGENTS)],
)
def test_half_the_noise_is_flagged(name):
    """White box, by bets, which stop. The ledgers say half of what is spent."""
    config, horizon, _ = AGENTS[name]
    spec = replace(EXPERTS, horizon=horizon)
    assert audit(
        SpendsMore(agent=config), spec, runs=4000, until_known=True, progress=False
    ).flagged


@pytest.mark.slow
@pytest.mark.parametrize("name", AGENTS)
def test_all_of_the_noise_is_not(name):
    """Where half of it is: each wrong with probability 0.05 / 6."""
    config, horizon, runs = AGENTS[name]
    spec = replace(EXPERTS, horizon=horizon)
    failure = 0.05 / len(AGENTS)
    assert not audit(config, spec, runs=runs, failure=failure, progress=False).flagged


def test_pairs_differ_in_one_user_s_losses():
    """Property: in one round's answer, and in the context that tells it to the next round."""
    for delay in (0, 2):
        spec = replace(EXPERTS, horizon=9, delay=delay)
        for pair in pairs(NoisyFTRL(), spec, 0):
            answers = zip(pair.first.answers, pair.second.answers, strict=True)
            apart = [
                t for t, (a, b) in enumerate(answers) if (a(np.zeros(1)) != b(np.zeros(1))).any()
            ]
            assert apart == [pair.round]
            shown = np.flatnonzero((pair.first.context != pair.second.context).any(axis=1))
            assert shown.tolist() == [t for t in [pair.round + 1 + delay] if t < 9]
