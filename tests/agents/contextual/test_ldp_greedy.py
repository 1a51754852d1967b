"""LDP-SGD and LDP-OLS: one step of each by hand, noise as printed, turns and dropped arms."""

from math import inf, log, sqrt

import numpy as np
import pytest

from dpbandit.agents import LDPOLS, LDPSGD
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec

ARMS = ContextualSpec(n_actions=3, dim=2, horizon=100, reward_low=-1.0, reward_high=1.0)
SHARED = ContextualSpec(
    n_actions=3, dim=2, horizon=100, reward_low=-1.0, reward_high=1.0, shared=True
)


def made(config, spec):
    return config.make(spec, Streams([0]))


def test_a_step_along_an_exact_gradient():
    """theta_1 = c y x = 4 * 0.5 * (0.6, 0.8); theta_2 = theta_1 - (4 / 2) (x . theta_1 - y) x with
    x . theta_1 = 1.2 and y = -0.4. A sign, a count or R that does not cancel would be seen."""
    agent, x = made(LDPSGD(epsilon=inf, step=4.0), SHARED), np.array([[[1, 0], [0.6, 0.8], [0, 1]]])
    agent.update(x, np.array([1]), np.array([0.5]))
    np.testing.assert_allclose(agent.theta[0, 0], [1.2, 1.6])
    agent.update(x, np.array([0]), np.array([-0.4]))
    np.testing.assert_allclose(agent.theta[0, 0], [1.2 - 2 * 1.6, 1.6])


def test_turns_and_dropped_arms():
    """After two rounds of each arm theta is that of six exact gradients; an arm h / 2 below the
    best prediction of the warm-up is never played, whatever is learned."""
    agent = made(LDPSGD(epsilon=inf, step=1.0, warm_up=2, gap=0.2), ARMS)
    x, brought = np.array([[1.0, 0.0]]), (0.5, 0.45, -0.5)
    for turn in range(6):
        arm = agent.act(x)
        assert arm == turn % 3
        agent.update(x, arm, np.array([brought[turn % 3]]))
    # 1 / n steps of squared loss: the mean of what an arm brought
    np.testing.assert_allclose(agent.theta[0, :, 0], brought)
    agent.update(x, np.array([2]), np.array([1.0]))
    agent.theta[0, 2, 0] = 9.0
    assert agent.scores(x)[0, 2] == -inf < agent.scores(x)[0, 1]


@pytest.mark.parametrize(("spec", "halves"), [(SHARED, 1), (ARMS, 2)])
def test_noise_is_as_printed(spec, halves):
    """Of Gram entries 2 sigma, on the diagonal and off it, of moments sigma = 2 sqrt(2 ln(1.25
    halves / delta)) halves / epsilon; mu is 2 / sigma. A message of Psi is R L long."""
    sigma = 2 * sqrt(2 * log(1.25 * halves / 1e-5)) * halves
    agent = made(LDPOLS(epsilon=1.0, calibration="paper"), spec)
    np.testing.assert_allclose(
        agent.messages.stddev * agent.statistic.units, sigma * np.array([2, 2, 2, 1, 1])
    )
    assert agent.ledger.mu == pytest.approx(2 / sigma)
    sgd = made(LDPSGD(epsilon=1.0, calibration="paper"), spec)
    assert sgd.ledger.pure == pytest.approx(1 / halves)
    sent = sgd.message(np.array([[0.6, 0.8]]), np.array([0]), np.array([0.3]))
    # 2 coth(epsilon / 2) sqrt(pi) Gamma(3/2) / Gamma(1) = pi coth(epsilon / 2)
    np.testing.assert_allclose(np.linalg.norm(sent, axis=2), np.pi / np.tanh(0.5 / halves))


def test_least_squares_by_hand():
    """Without noise, of (1, 0) with 0.5 and (0, 1) with -0.25: theta is those two."""
    agent = made(LDPOLS(epsilon=inf), SHARED)
    for row, reward in (([1, 0], 0.5), ([0, 1], -0.25)):
        agent.update(np.tile(np.array(row, float), (1, 3, 1)), np.array([1]), np.array([reward]))
    np.testing.assert_allclose(agent.theta[0, 0], [0.5, -0.25])
