"""The online generalised linear regression against minimisers, ridge, and one step by hand."""

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit

from dpbandit import InputError
from dpbandit.agents.contextual.glm import OnlineGLM, _implicit_residual
from dpbandit.agents.contextual.ridge import OnlineRidge
from dpbandit.specs.models import LINKS
from dpbandit.specs.protocols import ContextualSpec, PriceListSpec

RNG = np.random.default_rng


def spec(**changes):
    return ContextualSpec(
        **{"n_actions": 2, "dim": 3, "horizon": 100, "link": "logistic", **changes}
    )


def logistic_rows(n, theta, seed=0):
    rng = RNG(seed)
    X = rng.standard_normal((n, len(theta)))
    X /= np.maximum(1, np.linalg.norm(X, axis=1, keepdims=True))
    return X, 1.0 * (rng.random(n) < expit(X @ theta))


@pytest.mark.parametrize("link", ["logistic", "probit"])
@pytest.mark.parametrize("y", [0.0, 0.3, 1.0])
def test_scalar_equation_is_solved(link, y):
    """Oracle: Brent's method, from gentle to absurd variances and from deep in both flat ends."""
    mean, variance = (
        grid.ravel() for grid in np.meshgrid([-30.0, -3, 0, 2, 30], [0.0, 1e-3, 0.3, 2, 10, 60])
    )
    s = _implicit_residual(LINKS[link], np.full(mean.shape, y), mean, variance)
    zeta = LINKS[link].mean
    exact = [
        brentq(lambda s, m=m, v=v: s + zeta(np.array(m + s * v)) - y, -1.1, 1.1, xtol=1e-14)
        for m, v in zip(mean, variance, strict=True)
    ]
    gentle = variance <= 10
    np.testing.assert_allclose(s[gentle], np.array(exact)[gentle], rtol=0, atol=1e-6)
    np.testing.assert_allclose(s, exact, rtol=0, atol=1e-2)


def test_one_row_is_the_penalised_minimiser():
    """Oracle: from any normal to the next, the mode is that of a general-purpose minimiser, and
    the precision grows by p (1 - p) x x' there."""
    glm = OnlineGLM(spec(), 1, link=None, regularization=0.3)
    X, y = logistic_rows(20, np.array([2.0, -1.0, 0.5]))
    for x, r in zip(X, y, strict=True):
        m, H = glm.theta[0, 1].copy(), np.linalg.inv(glm.inverse[0, 1])
        mode = minimize(
            lambda w, m=m, H=H, x=x, r=r: (
                (w - m) @ H @ (w - m) / 2 + np.logaddexp(0, x @ w) - r * x @ w
            ),
            m,
            tol=1e-12,
        ).x
        p = expit(x @ mode)
        glm.learn(x[None], np.array([1]), np.array([r]))
        np.testing.assert_allclose(glm.theta[0, 1], mode, rtol=0, atol=1e-5)
        new = H + p * (1 - p) * np.outer(x, x)
        np.testing.assert_allclose(np.linalg.inv(glm.inverse[0, 1]), new, rtol=0, atol=1e-5)
    assert not glm.theta[0, 0].any()  # the other arm learns nothing


def test_one_row_by_hand():
    """Golden: d = 1, H = 1, x = 1, y = 1, so theta' = s with s = 1 - 1 / (1 + e^-s). At s = 0.40106
    e^-s = 0.66961 and 1 / 1.66961 = 0.59894 = 1 - 0.40106. Then p (1 - p) = 0.40106 * 0.59894 =
    0.24021, so the new variance is 1 / 1.24021 = 0.80631."""
    glm = OnlineGLM(spec(dim=1), 1, link=None, regularization=1.0)
    glm.learn(np.array([[1.0]]), np.array([0]), np.array([1.0]))
    assert glm.theta[0, 0, 0] == pytest.approx(0.40106, abs=5e-6)
    assert glm.inverse[0, 0, 0, 0] == pytest.approx(0.80631, abs=5e-6)


def test_the_whole_stream_is_close_to_maximum_likelihood():
    """Oracle: the penalised fit to the same 2,000 rows by scipy. In the norm of its own Hessian,
    where sampling error is about sqrt(d) = 1.7, the online fit is off by less than 0.4; a fit to
    every other row is off by more (asserted)."""
    theta, n, R = np.array([2.0, -1.0, 0.5]), 2000, 10
    online = OnlineGLM(spec(), R, link=None, regularization=1.0)
    half = OnlineGLM(spec(), R, link=None, regularization=1.0)
    X, y = (
        np.stack(part) for part in zip(*(logistic_rows(n, theta, r) for r in range(R)), strict=True)
    )
    for t in range(n):
        online.learn(X[:, t], np.zeros(R, dtype=int), y[:, t])
        if t % 2:
            half.learn(X[:, t], np.zeros(R, dtype=int), y[:, t])
    errors = []
    for r in range(R):
        fit = minimize(
            lambda w, r=r: np.logaddexp(0, X[r] @ w).sum() - y[r] @ X[r] @ w + w @ w / 2,
            np.zeros(3),
            tol=1e-10,
        ).x
        p = expit(X[r] @ fit)
        H = (X[r].T * (p * (1 - p))) @ X[r] + np.eye(3)
        gaps = [glm.theta[r, 0] - fit for glm in (online, half)]
        errors.append([np.sqrt(gap @ H @ gap) for gap in gaps])
        np.testing.assert_allclose(np.linalg.inv(online.inverse[r, 0]), H, rtol=0.2, atol=5)
    worst, without = np.max(errors, axis=0)[0], np.mean(errors, axis=0)[1]
    assert worst < 0.4 < without


def test_identity_link_is_ridge_bit_for_bit():
    for shared in (False, True):
        facts = spec(shared=shared, link="identity", reward_low=-1.0)
        glm = OnlineGLM(facts, 4, link=None, regularization=0.7)
        ridge = OnlineRidge(facts, 4, regularization=0.7)
        rng = RNG(3)
        for _ in range(30):
            x = rng.uniform(-0.3, 0.3, (4, *facts.context_shape))
            action, reward = rng.integers(2, size=4), rng.uniform(-1, 1, 4)
            glm.learn(x, action, reward)
            ridge.learn(x, action, reward)
        np.testing.assert_array_equal(glm.theta, ridge.theta)
        np.testing.assert_array_equal(glm.rewards(glm.means(x)), ridge.means(x))


def test_rewards_in_other_units_are_the_same_regression():
    """y in [0, 1] and 5 y - 2 give one theta; predictions come back in the units of the reward."""
    X, y = logistic_rows(50, np.ones(3))
    fits = []
    for low, high in ((0.0, 1.0), (-2.0, 3.0)):
        facts = spec(reward_low=low, reward_high=high)
        glm = OnlineGLM(facts, 1, link=None, regularization=1.0)
        for x, r in zip(X, y, strict=True):
            glm.learn(x[None], np.array([0]), np.array([low + (high - low) * r]))
        fits.append(glm)
    np.testing.assert_allclose(fits[0].theta, fits[1].theta, rtol=0, atol=1e-12)
    z = np.array([[0.0, 100.0]])
    np.testing.assert_allclose(fits[1].rewards(z), [[0.5, 3.0]])


def test_prices_learn_sales():
    """Golden: at predictor 0 a sale has chance 1/2, so a price is worth half its margin; a sale at
    any price is the same row."""
    facts = PriceListSpec(
        n_actions=2,
        dim=1,
        horizon=9,
        prices=(2.0, 4.0),
        unit_cost=1.0,
        reward_high=3.0,
        link="other",
    )
    glm = OnlineGLM(facts, 2, link=None, regularization=1.0)
    assert glm.link.name == "logistic"
    np.testing.assert_allclose(glm.rewards(np.zeros((2, 2))), [[0.5, 1.5]] * 2)
    glm.learn(np.ones((2, 1)), np.array([0, 1]), np.array([1.0, 3.0]))
    assert glm.theta[0, 0, 0] == glm.theta[1, 1, 0] > 0


@pytest.mark.parametrize("shared", [False, True])
def test_samples_have_the_law_they_should(shared):
    """Statistical: 20,000 draws; mean and covariance of the predictors within 6 standard errors
    (false alarm about 1e-8), a scale 5 % off is outside (asserted)."""
    n, facts = 20_000, spec(shared=shared)
    glm = OnlineGLM(facts, 1, link=None, regularization=0.5)
    rng = RNG(0)
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


def test_numbers_that_are_none_are_clipped():
    glm = OnlineGLM(spec(), 4, link=None, regularization=1.0)
    x = np.array([[np.nan, 0, 0], [np.inf, 0, 0], [1e300, 0, 0], [1.0, 0, 0]])
    glm.learn(x, np.zeros(4, dtype=int), np.array([1.0, 1.0, np.inf, np.nan]))
    assert np.isfinite(glm.theta).all()
    assert np.isfinite(glm.inverse).all()


def test_unknown_links_are_refused():
    with pytest.raises(InputError, match="link='logit'"):
        OnlineGLM(spec(), 1, link="logit", regularization=1.0)
