"""Logistic Thompson sampling: its limits, and the law of its first draw."""

import numpy as np
import pytest
from scipy.special import logit
from scipy.stats import kstest

from dpbandit.agents import GLMUCB, LogisticTS
from dpbandit.base.random_streams import Streams
from dpbandit.results.runs import log_marks
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import ContextualSpec


@pytest.mark.parametrize("shared", [False, True])
def test_without_scale_it_is_greedy(shared):
    """Scale 0 draws nothing, as GLM-UCB without a bonus: difference 0.0."""
    curves = [
        play(
            problem_maker("GLMBandit")(horizon=300, shared=shared, link="logistic"),
            config,
            range(5),
            marks=log_marks(300),
        ).regret
        for config in (LogisticTS(scale=0), GLMUCB(alpha=0))
    ]
    np.testing.assert_array_equal(*curves)


@pytest.mark.parametrize("shared", [False, True])
def test_first_draw_is_from_the_scaled_prior(shared):
    """Statistical: logits of 20,000 first scores are N(0, scale^2 |x|^2 / regularization) by
    Kolmogorov and Smirnov, false alarm 1e-6; 7 % more scale is caught (asserted)."""
    spec = ContextualSpec(n_actions=2, dim=2, horizon=9, shared=shared)
    agent = LogisticTS(scale=0.5, regularization=0.1).make(spec, Streams(range(20_000)))
    x = np.full((20_000, *spec.context_shape), 0.4)
    draws = logit(agent.scores(x)[:, 1]) / (0.5 * (0.32 / 0.1) ** 0.5)
    assert kstest(draws, "norm").pvalue > 1e-6
    assert kstest(draws * 1.07, "norm").pvalue < 1e-3


def test_it_explores_what_greedy_gives_up():
    """Property: two arms, one feature that is always 1, clicks 0.6 and 0.4: after 400 rounds every
    one of 50 replicas has met the worse arm, and plays the better one most of the time."""
    spec = ContextualSpec(n_actions=2, dim=1, horizon=400, link="logistic")
    agent, rng = LogisticTS(scale=1.0).make(spec, Streams(range(50))), np.random.default_rng(0)
    pulls, x = np.zeros((50, 2)), np.ones((50, 1))
    for _ in range(400):
        action = agent.act(x)
        pulls[np.arange(50), action] += 1
        agent.update(x, action, 1.0 * (rng.random(50) < np.array([0.6, 0.4])[action]))
    assert (pulls[:, 1] >= 1).all()
    assert (pulls[:, 0] > 250).mean() > 0.9
