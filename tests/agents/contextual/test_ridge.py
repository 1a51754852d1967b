"""Ridge regressions against their normal equations, and what optimists make of them, by hand."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest

from dpbandit.agents import DPUCB, LinUCB
from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.calibrated import Spectrum
from dpbandit.specs.protocols import ContextualSpec
from tests.each import each

R, K, ROUNDS, REGULARIZATION = 3, 2, 30, 0.7


def played(dim, shared, delay, rng):
    """A ridge that meets contexts as an agent does, `delay` rounds before their rewards; rows."""
    spec = ContextualSpec(n_actions=K, dim=dim, horizon=ROUNDS, shared=shared)
    ridge = OnlineRidge(spec, R, regularization=REGULARIZATION)
    contexts = rng.normal(size=(ROUNDS, R, *spec.context_shape)) / np.sqrt(dim)
    actions, rewards = rng.integers(K, size=(ROUNDS, R)), rng.normal(size=(ROUNDS, R))
    for t, context in enumerate(contexts):
        if t % 3:  # and sometimes nobody asks
            ridge.variances(context)
        if t >= delay:
            ridge.learn(contexts[t - delay], actions[t - delay], rewards[t - delay])
    known = ROUNDS - delay
    return ridge, contexts[:known], actions[:known], rewards[:known]


@each("delay", [0, 1, 2])
@each("shared", [False, True])
@each("dim", [3, 40], ids=["all at once", "replica by replica"])
def test_rows_learned_are_normal_equations(dim, shared, delay):
    rng = np.random.default_rng(dim + delay)
    ridge, contexts, actions, rewards = played(dim, shared, delay, rng)
    for r in range(R):
        for g in range(1 if shared else K):
            mine = slice(None) if shared else actions[:, r] == g
            X, y = contexts[mine, r], rewards[mine, r]
            if shared:
                X = X[np.arange(len(X)), actions[:, r]]
            V = REGULARIZATION * np.eye(dim) + X.T @ X
            np.testing.assert_allclose(ridge.theta[r, g], np.linalg.solve(V, X.T @ y), atol=1e-12)
            np.testing.assert_allclose(ridge.inverse[r, g] @ V, np.eye(dim), atol=1e-12)


def test_a_row_learned_twice_counts_twice():
    """What was computed for the first is not taken for the second."""
    spec = ContextualSpec(n_actions=K, dim=2, horizon=2)
    ridge = OnlineRidge(spec, 1, regularization=1.0)
    x = np.array([[1.0, 0.0]])
    np.testing.assert_allclose(ridge.variances(x), [[1.0, 1.0]])
    for _ in range(2):
        ridge.learn(x, np.array([0]), np.array([1.0]))
    np.testing.assert_allclose(ridge.variances(x), [[1 / 3, 1.0]])
    np.testing.assert_allclose(ridge.theta, [[[2 / 3, 0.0], [0.0, 0.0]]])


def rounds(agent, count):
    """The agent after so many rounds of one user, who plays arm 0 and gets nothing."""
    for _ in range(count):
        agent.update(np.zeros((1, *agent.spec.context_shape)), np.array([0]), np.zeros(1))
    return agent


def test_the_exact_theory_radius_by_hand():
    """Golden, three rounds of contexts up to L = 2, d = 2, ridge 2, sigma 0.3, S = 1.5::

        beta = 0.3 sqrt(2 ln(2 / 0.05) + 2 ln(1 + 3 L^2 / (2 x 2))) + 1.5 sqrt(2)
             = 0.3 sqrt(7.377759 + 2.772589) + 2.121320 = 3.077109

    With a number for alpha it is 2 sigma alpha; sigma is half the range of rewards, here 1.5."""
    spec = ContextualSpec(n_actions=K, dim=2, horizon=9, context_bound=2.0, reward_low=-1.0)
    spec = replace(spec, reward_high=2.0)
    settings = {"regularization": 2.0, "reward_noise": 0.3, "parameter_norm": 1.5}
    agent = LinUCB(alpha="theory", **settings).make(spec, Streams([0]))
    assert rounds(agent, 3).radius() == pytest.approx(3.077109, abs=1e-6)
    assert LinUCB(alpha=0.7).make(spec, Streams([0])).radius() == pytest.approx(2 * 1.5 * 0.7)


def test_the_noisy_theory_radius_and_shift_by_hand():
    """Golden, after 5 rounds with a release of zeros: C = 2, B = 1, weight 2, T = 100, D = 2, noise
    of stddev sqrt(2), factors 2 and 3, S = 1, sigma = 1/2::

        Gamma = 2 (C^2 sqrt(2) / sqrt(2)) = 8,  shift = 3 Gamma = 24,  low = 16,  high = 32
        s_u   = B C sqrt(2) / 2 = sqrt(2)
        error = s_u (sqrt(2) + sqrt(2 ln(2 x 100 / 0.05))) / sqrt(16) = 1.939969
        beta  = 1/2 sqrt(2 ln 40 + 2 ln(32/16 + 5 C^2 / (2 x 16))) + sqrt(32) + error = 9.122268"""
    spec = ContextualSpec(n_actions=K, dim=2, horizon=100, shared=True, context_bound=2.0)
    config = DPUCB(alpha="theory", shift=3.0, moment_weight=2.0, parameter_norm=1.0)
    agent = config.make(spec, Streams([0]))
    agent.spectrum, agent.round = Spectrum(2.0, 3.0, sqrt(2)), 5
    agent.refit(np.zeros((1, *agent.statistic.shape)))
    np.testing.assert_allclose(agent.ridge.inverse, np.eye(2)[None, None] / 24)
    assert agent.radius() == pytest.approx(9.122268, abs=1e-6)


def test_releases_come_a_hundred_times_by_default():
    """Golden: every ceil(201 / 100) = 3 rounds, the last one before round 201."""
    agent = DPUCB().make(ContextualSpec(n_actions=K, dim=1, horizon=201), Streams([0]))
    assert agent.target().refresh_every == 3
    assert agent.sums.leaves == 66
