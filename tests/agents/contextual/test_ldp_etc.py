"""LDP-ETC: a step by hand, who is asked, and what it earns."""

from math import inf, sqrt

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import certify
from dpbandit.agents import LDPETC
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing
from dpbandit.running.loop import play
from dpbandit.specs.protocols import PriceListSpec

SPEC = PriceListSpec(
    n_actions=2, dim=2, horizon=10, prices=(2.0, 3.0), unit_cost=1.0, reward_high=2.0
)


def test_rounds_of_exploration_and_what_they_cost():
    """Golden, by an independent program: T_0 at 20,000 and 100,000 customers; sqrt(D T) without
    privacy. At every T_0 a user costs epsilon once, and delta is 0."""
    for T, epsilon, rounds in (
        (20_000, 4.0, 566),
        (20_000, 1.0, 2263),
        (20_000, 0.5, 4526),
        (100_000, 4.0, 1265),
        (20_000, inf, 283),
        (1, 1.0, 1),
        (3, 1e-50, 2),
    ):
        config, spec = LDPETC(epsilon=epsilon), OJPricing(horizon=T).spec
        assert config.make(spec, Streams([0])).rounds == rounds
        proof = certify(config, spec, accountants=False)
        assert proof.holds
        assert proof.epsilon == pytest.approx(epsilon, rel=1e-11, abs=0)
        assert proof.claimed_delta == 0


def test_steps_by_hand():
    """Golden, by hand, with messages that are g itself: two steps of B / sqrt(T_0) along (p - sold)
    z from 0, p = 1/2 at first; then the second parameter is played for good, whoever buys."""
    agent = LDPETC(epsilon=inf, explore=2, parameter_norm=0.3).make(SPEC, Streams([0]))
    x, theta = np.array([[0.6, 0.8]]), np.zeros(3)
    for action, reward in ((1, 2.0), (0, 0.0)):
        z = demand_rows(SPEC, x)[0, action]
        theta = theta - 0.3 / sqrt(2) * (expit(z @ theta) - (reward > 0)) * z
        theta *= min(1, 0.3 / np.linalg.norm(theta))
        agent.update(x, np.array([action]), np.array([reward]))
    expected = np.array([1.0, 2.0]) * expit(demand_rows(SPEC, x)[0] @ theta)
    for _ in range(3):
        np.testing.assert_allclose(agent.scores(x)[0], expected)
        agent.update(x, np.array([1]), np.array([2.0]))


@pytest.mark.slow
def test_it_learns_what_prices_cost():
    """Against the reference run of an independent program on orange juice, 8 replicas, within
    four combined standard errors: 1,772 +- 128 at epsilon 1. Uniform play loses 2,416, and a step
    in the wrong direction more."""
    log = play(OJPricing(), LDPETC(epsilon=1.0), range(1000, 1008), marks=[20_000])
    regret = log.regret[-1]
    error = regret.std(ddof=1) / sqrt(8)
    assert abs(regret.mean() - 1772) < 4 * np.hypot(error, 128)
    assert regret.mean() < 2416
