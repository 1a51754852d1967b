"""Processes that start one after the other: every one is a BLT over its own steps."""

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import DPHDB
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.factors import Staggered
from dpbandit.privacy.prefix_sums import BLT
from dpbandit.specs.protocols import ContextualSpec

K, D = 3, 2


@pytest.mark.parametrize("turns", [1, 16, 19, 40])
def test_every_row_has_the_law_of_its_own_process(turns):
    """Oracle: all N_i are linear in normals, so the covariance of a row's first steps is that of
    one BLT. Statistical: 2,000 replicas, each entry within 6 standard errors (false alarm below
    1e-4); a process that ticks while it rests is off by 20 where it takes its first steps. Rows and
    coordinates are uncorrelated: a draw that two of them share would be off by 40 errors."""
    steps = turns + 20
    noise = Staggered(Streams(range(2000)), "noise", (K, D), stddev=0.5, turns=turns)
    released = np.array([noise() for _ in range(K * turns + 20)])  # (rounds, R, K, D)
    plain = BLT().of(Streams(range(3)).normals("plain"), stddev=0.5)
    stddevs = []
    for _ in range(steps):
        plain()
        stddevs.append(plain.stddev)
    for k in range(K):
        own = [*range(k * turns, (k + 1) * turns), *range(K * turns, K * turns + 20)]
        variances = released[own, :, k].var(axis=1)  # (steps, D)
        expected = np.square(stddevs)[:, None]
        assert (np.abs(variances / expected - 1) < 6 * np.sqrt(2 / 2000)).all()
        resting = released[(k + 1) * turns - 1 : K * turns, :, k]
        assert (resting == resting[0]).all()
        assert not released[: k * turns, :, k].any()
    for latest in (released[K * turns - 1], released[-1]):  # alone, and side by side
        correlations = np.corrcoef(latest.reshape(2000, K * D).T) - np.eye(K * D)
        assert np.abs(correlations).max() < 6 / np.sqrt(2000)
    assert noise.stddev == pytest.approx(stddevs[-1])


def test_an_arm_pays_for_its_own_steps():
    """Golden: n = T - (K - 1) t_0 = 800 steps, 799 releases; the claim is met exactly."""
    spec = ContextualSpec(n_actions=K, dim=D, horizon=1000)
    proof = certify(DPHDB(warm_up=100), spec, accountants=False)
    assert proof.epsilon == pytest.approx(1, abs=1e-6)
    assert "799 Gaussian releases of every arm" in str(proof.ledger)
