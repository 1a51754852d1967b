"""PrivateBandit: its regret, beside that of an independent implementation."""

import dataclasses
from math import sqrt

import numpy as np
import pytest

from dpbandit.agents import GarberKretzu, PrivateBandit
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Hypersimplex
from tests.agents.convex.test_private_bandit import LOCAL, episode, linear


def p_lin(t, x):
    return x[:, 0]


def regret_on_p_lin(config, T, replicas, seed=1):
    """sum x_t[0] + T: unit ball in R^5, f = <e_1, x>."""
    agent = config.make(linear(T), Streams([(seed, r) for r in range(replicas)]))
    return episode(agent, p_lin, T, replicas)[0][:, :, 0].sum(axis=0) + T


def fits(sample, mean, error, at_most=4.0):
    """Within 4 combined standard errors of the reference."""
    spread = sqrt(sample.var(ddof=1) / len(sample) + error**2)
    return abs(sample.mean() - mean) < at_most * spread


REFERENCE = {
    GarberKretzu(): (570, 1),
    PrivateBandit(noise="laplace"): (840, 9),
    PrivateBandit(noise="k-norm"): (803, 8),
    PrivateBandit(): (761, 7),
    LOCAL: (767, 16),
    PrivateBandit(calibration="paper"): (1019, 10),
}
"""Mean regret at T = 1024 and its standard error, of an independent implementation, 64
replications."""


@pytest.mark.parametrize("config", REFERENCE, ids=str)
def test_regret_agrees_with_an_independent_implementation(config):
    """Statistical: other generators, 4 combined standard errors (false alarm 6e-5 a row). The
    reference rounds to whole numbers, half of which is added to its error."""
    mean, error = REFERENCE[config]
    sample = regret_on_p_lin(config, 1024, replicas=64)
    assert fits(sample, mean, error + 0.5)
    assert sample.mean() < config.plan(linear(1024)).regret_bound()


def test_a_finer_gap_costs_more_vertices():
    """Frank-Wolfe on 3 of 6 items, stopped at the full gap and at a quarter of it."""
    a, spec = np.array([-1, -1, -1, 1, 1, 1]) / sqrt(6), linear(400, Hypersimplex(6, 3))
    config, calls = GarberKretzu(parameters="tuned", projection="frank-wolfe"), []
    for tolerance in (1.0, 0.25):
        agent = dataclasses.replace(config, tolerance=tolerance).make(spec, Streams(range(4)))
        episode(agent, lambda t, x: (x - 0.5) @ a, 400, 4)
        calls.append(agent.oracle_calls)
    assert (calls[0] < calls[1]).all()
    assert (calls[1] <= 400).all()


def test_the_table_has_power():
    """The same comparison fails for the noise of K leaves in place of what K - 2 need, and for
    epsilon 1 in place of 1/2."""
    sample = regret_on_p_lin(PrivateBandit(noise="k-norm", epsilon=0.5), 1024, 64)
    assert not fits(sample, *REFERENCE[PrivateBandit(noise="k-norm")])
