"""What FADE estimates: Newton steps, parameters, exact sums where there is no privacy."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest
from scipy.special import expit

from dpbandit import certify
from dpbandit.agents import FADE
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.ledger import no_privacy
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import ContextualSpec
from tests.agents.contextual.fade_variants import PRICES, REWARDS, SHARED, sums_of


def test_logistic_rows_are_newton_steps():
    """Oracle: rows sqrt(h) x with working responses make gram / 4 the negative Hessian of the log
    likelihood at the parameter played, and moment - gram theta / 4 its gradient."""
    agent = FADE(model="regression", response="logistic", epsilon=inf).make(SHARED, Streams([0]))
    theta = np.array([1.5, -0.7])
    agent._theta = theta[None, None].copy()
    rng = np.random.default_rng(6)
    for _ in range(20):
        context = rng.standard_normal((1, 3, 2))
        context /= np.linalg.norm(context, axis=-1, keepdims=True)
        action, reward = rng.integers(0, 3, 1), 1.0 * rng.integers(0, 2, 1)
        row, _, response = agent._row(context, action, reward)
        x, y = context[0, action[0]], row[0, action[0]]
        p = expit(x @ theta)
        np.testing.assert_allclose(np.outer(y, y) / 4, p * (1 - p) * np.outer(x, x), atol=1e-15)
        gradient = response[0] * y - np.outer(y, y) @ theta / 4
        np.testing.assert_allclose(gradient, (reward[0] - p) * x, atol=1e-14)
        assert abs(reward[0] - p + p * (1 - p) * (x @ theta)) <= 1


@pytest.mark.parametrize("release", [0.0, 1e3, 1e12])
def test_newton_steps_are_short_and_end_in_a_public_ball(release):
    """Whatever is released: no step of the logistic model is longer than 3, and 60 of them end in
    the ball of radius 40; a release that says nothing moves nothing."""
    agent = REWARDS.make(replace(PRICES, horizon=100_000), Streams([0]))._inner
    noise, norms = np.random.default_rng(2).standard_normal(agent._moment.shape), [0.0]
    for _ in range(60):
        agent._gram, agent._moment = 1e-3 * np.ones_like(agent._gram), release * noise
        before = agent._theta
        agent._theta, _ = agent._fit(1e-6, 1e-6, agent._gram, agent._moment)
        assert np.linalg.norm(agent._theta - before) <= 3 * (1 + 1e-12)
        norms.append(np.linalg.norm(agent._theta))
    assert norms[-1] == (pytest.approx(40.0) if release else 0.0)


def test_regression_recovers_the_parameter_without_privacy():
    """Oracle: rewards exactly linear in a shared parameter are predicted exactly, on any range."""
    spec = ContextualSpec(
        n_actions=3, dim=4, horizon=4000, shared=True, reward_low=-2.0, reward_high=2.0
    )
    config, rng = FADE(model="regression", epsilon=inf, response="linear"), np.random.default_rng(7)
    agent = config.make(spec, Streams([0, 1]))
    theta = np.array([0.4, -0.2, 0.9, 0.1])
    for _ in range(3999):
        x = rng.standard_normal((2, 3, 4))
        x /= np.linalg.norm(x, axis=-1, keepdims=True)
        action = agent.act(x)
        agent.update(x, action, x[np.arange(2), action] @ theta)
    np.testing.assert_allclose(agent.scores(x), x @ theta, atol=0.01)


class ExactSums(FADE):
    """Oracle: the same players on sums that no noise process ever touches."""

    def make(self, spec, streams):
        agent = super().make(spec, streams)
        sums_of(agent)._normals = lambda: 0.0
        return agent


@pytest.mark.parametrize("environment", ["GLMBandit", "Recommendation", "OJPricing"])
@pytest.mark.parametrize("model", ["auto", "moments"])
def test_without_privacy_sums_are_exact_bit_for_bit(environment, model):
    """epsilon = inf draws its noise and scales it by 0: difference 0.0 to sums without any."""
    if (environment, model) == ("Recommendation", "moments"):
        model = "regression"
    seeds = [(0, r) for r in range(5)]
    private, public = (
        play(
            problem_maker(environment)(horizon=400),
            config(epsilon=inf, model=model),
            seeds,
            marks=log_marks(400),
        ).regret
        for config in (FADE, ExactSums)
    )
    np.testing.assert_array_equal(private, public)
    spec = problem_maker(environment)(horizon=400).spec
    assert certify(FADE(epsilon=inf), spec, accountants=False).ledger == no_privacy(
        "sums without noise"
    )
