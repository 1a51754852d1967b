"""JDP-GLM-UCB: its noise and its bonus by hand."""

from math import sqrt

import numpy as np
import pytest
from scipy.special import expit

from dpbandit.agents import JDPGLMUCB
from dpbandit.agents.contextual.demand import demand_rows
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing
from dpbandit.privacy.curves import mu_of

SPEC = OJPricing().spec


def test_each_user_is_released_once():
    """Golden: noise sqrt(5) / mu, a first batch of 40 sqrt(4) / mu, the next 1.5 times as long."""
    player = JDPGLMUCB(epsilon=1.0).make(SPEC, Streams([0])).demand._inner
    sums, mu = player._sums, mu_of(1.0, 1e-5)
    assert sums.fade == 0
    assert sums.stddev == pytest.approx(sqrt(5) / mu)
    first = np.ceil(40 * sqrt(4) / mu)
    assert sums._ends[:2] == (first, first + np.ceil(1.5 * first))


def test_a_price_is_worth_what_it_may_earn():
    """Golden, by hand: after a release theta and A are known, and the score of a row z is margin x
    logistic(z . theta + 0.3 |z|_{A^-1}), A = G/4 + ridge with no eigenvalue below the floor."""
    agent = JDPGLMUCB(epsilon=4.0, first_batch=5).make(SPEC, Streams([0]))
    problem = OJPricing()
    problem.reset(Streams([1]))
    for _ in range(5):
        context = problem.context()
        action = agent.act(context)
        agent.update(context, action, problem.step(action).reward)
    player, noise = agent.demand._inner, agent.demand._inner._sums.stddev
    Gamma = 2 * sqrt(4) * noise / sqrt(2)
    values, U = np.linalg.eigh(player._gram[0, 0] / 4)
    values = np.maximum(values + (0.5 * Gamma + 1) / 4, 0.3 * Gamma / 4)
    z = demand_rows(SPEC, context)[0]
    norm = np.sqrt(((z @ U) ** 2 / values).sum(axis=1))
    utility = z @ player._theta[0, 0] + 0.3 * norm
    np.testing.assert_allclose(agent.scores(context)[0], SPEC.margins * expit(utility))


def test_parameters_stay_in_the_ball():
    """A small ball is kept to; a large one is not needed here, and left alone."""
    for norm, longest in ((0.5, 0.5), (20.0, 20.0)):
        agent = JDPGLMUCB(epsilon=4.0, parameter_norm=norm).make(SPEC, Streams([0]))
        problem = OJPricing()
        problem.reset(Streams([1]))
        for _ in range(500):
            context = problem.context()
            action = agent.act(context)
            agent.update(context, action, problem.step(action).reward)
        length = np.linalg.norm(agent.demand._inner._theta)
        assert length <= longest + 1e-12
        assert (length > 0.6) == (norm > 1)
