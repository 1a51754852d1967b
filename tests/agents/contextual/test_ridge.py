"""Regressions against their normal equations and minimisers, and optimists' widths by hand."""

from dataclasses import replace
from math import sqrt

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit

from dpbandit.agents import DPUCB, LinUCB
from dpbandit.agents.contextual.glm import OnlineGLM, _implicit_step
from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.base import Streams
from dpbandit.privacy.calibrated import Spectrum
from dpbandit.specs import LINKS, ContextualSpec, PriceListSpec
from tests.each import each, refused

R, K, ROUNDS, REGULARIZATION = 3, 2, 30, 0.7
CLICKS = ContextualSpec(n_actions=2, dim=3, horizon=100, link="logistic")


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
    ridge = OnlineRidge(ContextualSpec(n_actions=K, dim=2, horizon=2), 1, regularization=1.0)
    x = np.array([[1.0, 0.0]])
    np.testing.assert_allclose(ridge.variances(x), [[1.0, 1.0]])
    for _ in range(2):
        ridge.learn(x, np.array([0]), np.array([1.0]))
    np.testing.assert_allclose(ridge.variances(x), [[1 / 3, 1.0]])
    np.testing.assert_allclose(ridge.theta, [[[2 / 3, 0.0], [0.0, 0.0]]])


def test_the_exact_theory_radius_by_hand():
    """Golden, three rounds of contexts up to L = 2, d = 2, ridge 2, sigma 0.3, S = 1.5::

        beta = 0.3 sqrt(2 ln(2 / 0.05) + 2 ln(1 + 3 L^2 / (2 x 2))) + 1.5 sqrt(2)
             = 0.3 sqrt(7.377759 + 2.772589) + 2.121320 = 3.077109

    With a number for alpha it is 2 sigma alpha; sigma is half the range of rewards, here 1.5."""
    spec = ContextualSpec(n_actions=K, dim=2, horizon=9, context_bound=2.0, reward_low=-1.0)
    spec = replace(spec, reward_high=2.0)
    settings = {"regularization": 2.0, "reward_noise": 0.3, "parameter_norm": 1.5}
    agent = LinUCB(alpha="theory", **settings).make(spec, Streams([0]))
    for _ in range(3):
        agent.update(np.zeros((1, 2)), np.array([0]), np.zeros(1))
    assert agent.radius() == pytest.approx(3.077109, abs=1e-6)
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


def logistic_rows(n, theta, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, len(theta)))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    return X, 1.0 * (rng.random(n) < expit(X @ theta))


@each("link", ["logistic", "probit"])
@each("y", [0.0, 0.3, 1.0])
def test_scalar_equation_is_solved(link, y):
    """Oracle: Brent's method, from gentle to absurd variances and from deep in both flat ends; rows
    that are solved together have the same bits as alone."""
    means, variances = [-30.0, -3, 0, 2, 30], [0.0, 1e-3, 0.3, 2, 10, 60]
    mean, variance = (grid.ravel() for grid in np.meshgrid(means, variances))
    rows = np.full(mean.shape, y), mean, variance
    s, predictor, slope = _implicit_step(LINKS[link], *rows)
    alone = [_implicit_step(LINKS[link], *row) for row in np.stack(rows, axis=1)[..., None]]
    np.testing.assert_array_equal(np.hstack(alone), (s, predictor, slope))
    zeta = LINKS[link].mean
    exact = [
        brentq(lambda s, m=m, v=v: s + zeta(np.array(m + s * v)) - y, -1.1, 1.1, xtol=1e-14)
        for m, v in zip(mean, variance, strict=True)
    ]
    gentle = variance <= 10
    np.testing.assert_allclose(s[gentle], np.array(exact)[gentle], rtol=0, atol=1e-6)
    np.testing.assert_allclose(s, exact, rtol=0, atol=1e-2)
    at_mode = (mean + s * variance)[gentle]
    np.testing.assert_allclose(predictor[gentle], at_mode, rtol=0, atol=1e-5)
    np.testing.assert_allclose(slope[gentle], LINKS[link].slope(at_mode), rtol=0, atol=1e-5)


def test_one_row_is_the_penalised_minimiser():
    """Oracle: from any normal to the next, the mode is that of a general-purpose minimiser, and
    the precision grows by p (1 - p) x x' there; what is no number is clipped."""
    glm = OnlineGLM(CLICKS, 1, link=None, regularization=0.3)
    X, y = logistic_rows(20, np.array([2.0, -1.0, 0.5]))
    for x, r in zip(X, y, strict=True):
        m, H = glm.theta[0, 1].copy(), np.linalg.inv(glm.inverse[0, 1])

        def loss(w, m=m, H=H, x=x, r=r):
            return (w - m) @ H @ (w - m) / 2 + np.logaddexp(0, x @ w) - r * x @ w

        mode = minimize(loss, m, tol=1e-12).x
        p = expit(x @ mode)
        glm.learn(x[None], np.array([1]), np.array([r]))
        np.testing.assert_allclose(glm.theta[0, 1], mode, rtol=0, atol=1e-5)
        new = H + p * (1 - p) * np.outer(x, x)
        np.testing.assert_allclose(np.linalg.inv(glm.inverse[0, 1]), new, rtol=0, atol=1e-5)
    assert not glm.theta[0, 0].any()  # the other arm learns nothing
    glm = OnlineGLM(CLICKS, 4, link=None, regularization=1.0)
    x = np.array([[np.nan, 0, 0], [np.inf, 0, 0], [1e300, 0, 0], [1.0, 0, 0]])
    glm.learn(x, np.zeros(4, dtype=int), np.array([1.0, 1.0, np.inf, np.nan]))
    assert np.isfinite(glm.theta).all()
    assert np.isfinite(glm.inverse).all()
    refused("link='logit'", OnlineGLM, CLICKS, 1, link="logit", regularization=1.0)


def test_the_whole_stream_is_close_to_maximum_likelihood():
    """Oracle: the penalised fit to the same 2,000 rows by scipy, in the norm of its Hessian, where
    the sampling error is about sqrt(d) = 1.7; a fit to every other row is off by more."""
    n, R, nobody = 2000, 10, np.zeros(10, dtype=int)
    online, half = (OnlineGLM(CLICKS, R, link=None, regularization=1.0) for _ in range(2))
    rows = [logistic_rows(n, np.array([2.0, -1.0, 0.5]), r) for r in range(R)]
    X, y = (np.stack(part) for part in zip(*rows, strict=True))
    for t in range(n):
        for glm in (online, half) if t % 2 else (online,):
            glm.learn(X[:, t], nobody, y[:, t])
    errors = []
    for r in range(R):

        def loss(w, r=r):
            return np.logaddexp(0, X[r] @ w).sum() - y[r] @ X[r] @ w + w @ w / 2

        fit = minimize(loss, np.zeros(3), tol=1e-10).x
        p = expit(X[r] @ fit)
        H = (X[r].T * (p * (1 - p))) @ X[r] + np.eye(3)
        gaps = [glm.theta[r, 0] - fit for glm in (online, half)]
        errors.append([np.sqrt(gap @ H @ gap) for gap in gaps])
        np.testing.assert_allclose(np.linalg.inv(online.inverse[r, 0]), H, rtol=0.2, atol=5)
    worst, without = np.max(errors, axis=0)[0], np.mean(errors, axis=0)[1]
    assert worst < 0.4 < without


def test_rewards_in_other_units_are_the_same_regression():
    """y in [0, 1] and 5 y - 2 give one theta; predictions come back in the units of the reward, in
    which they are where the link is the identity."""
    X, y = logistic_rows(50, np.ones(3))
    fits = []
    for low, high in ((0.0, 1.0), (-2.0, 3.0)):
        facts = replace(CLICKS, reward_low=low, reward_high=high)
        glm = OnlineGLM(facts, 1, link=None, regularization=1.0)
        for x, r in zip(X, y, strict=True):
            glm.learn(x[None], np.array([0]), np.array([low + (high - low) * r]))
        fits.append(glm)
    np.testing.assert_allclose(fits[0].theta, fits[1].theta, rtol=0, atol=1e-12)
    z = np.array([[0.0, 100.0]])
    np.testing.assert_allclose(fits[1].rewards(z), [[0.5, 3.0]])
    plain = OnlineGLM(replace(facts, link="identity"), 1, link=None, regularization=1.0)
    np.testing.assert_array_equal(plain.rewards(z), z)


def test_prices_learn_sales():
    """Golden: at predictor 0 a sale has chance 1/2, so a price is worth half its margin; a sale at
    any price is the same row."""
    facts = {"prices": (2.0, 4.0), "unit_cost": 1.0, "reward_high": 3.0, "link": "other"}
    glm = OnlineGLM(
        PriceListSpec(n_actions=2, dim=1, horizon=9, **facts), 2, link=None, regularization=1.0
    )
    assert glm.link.name == "logistic"
    np.testing.assert_allclose(glm.rewards(np.zeros((2, 2))), [[0.5, 1.5]] * 2)
    glm.learn(np.ones((2, 1)), np.array([0, 1]), np.array([1.0, 3.0]))
    assert glm.theta[0, 0, 0] == glm.theta[1, 1, 0] > 0


@each("shared", [False, True])
def test_samples_have_the_law_they_should(shared):
    """Statistical: 20,000 draws; mean and covariance of the predictors within 6 standard errors
    (false alarm about 1e-8), a scale 5 % off is outside (asserted)."""
    n, facts = 20_000, replace(CLICKS, shared=shared)
    glm = OnlineGLM(facts, 1, link=None, regularization=0.5)
    rng = np.random.default_rng(0)
    for r in (1.0, 0.0, 1.0, 1.0):
        x = rng.uniform(-0.5, 0.5, (1, *facts.context_shape))
        glm.learn(x, np.array([1]), np.array([r]))
    x = rng.uniform(-0.5, 0.5, facts.context_shape)
    z = rng.standard_normal((n, 1, 3 if shared else 2))
    draws = np.array([glm.sampled(x[None], 0.7, row)[0] for row in z])
    rows = x if shared else np.stack([x, x])
    inverse = glm.inverse[0, [0, 0] if shared else [0, 1]]
    variance = 0.49 * np.einsum("ki,kij,kj->k", rows, inverse, rows)
    slack = 6 * np.sqrt(variance / n)
    assert (np.abs(draws.mean(axis=0) - glm.means(x[None])[0]) < slack).all()
    ratio, error = draws.var(axis=0) / variance, 6 * np.sqrt(2 / n)
    assert (np.abs(ratio - 1) < error).all()
    assert error < 1.05**2 - 1
    cross = rows[0] @ inverse[0] @ rows[1] * 0.49 if shared else 0.0
    assert np.cov(draws.T)[0, 1] == pytest.approx(cross, abs=6 * variance.max() / n**0.5)
