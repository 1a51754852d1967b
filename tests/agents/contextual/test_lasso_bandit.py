"""Lasso Bandit: the paper's schedule, its pre-selection, what sparsity is worth; and the lasso.

The lasso is held against its optimality conditions, soft thresholds and a solver of another kind.
"""

import numpy as np
import pytest
from scipy.optimize import minimize

from dpbandit.agents import LassoBandit
from dpbandit.agents.contextual.sparse import Lasso, forced_arm, lasso, refit
from dpbandit.base.random_streams import Streams
from dpbandit.specs.protocols import ContextualSpec


@pytest.mark.parametrize(("K", "q"), [(2, 1), (3, 2), (5, 4)])
def test_forced_samples_are_the_sets_of_the_paper(K, q):
    """Oracle: T_i = {(2^n - 1) K q + j : n >= 0, q (i - 1) < j <= q i}, written out."""
    T = 2000
    arms = {
        (2**n - 1) * K * q + j: i - 1
        for n in range(12)
        for i in range(1, K + 1)
        for j in range(q * (i - 1) + 1, q * i + 1)
    }
    assert [forced_arm(t - 1, K, q) for t in range(1, T + 1)] == [
        arms.get(t) for t in range(1, T + 1)
    ]


def two_arms(delay=0, **settings):
    """Arm 0 pays 0.5 in forced rounds and then 1, arm 1 pays 0.8: forced samples prefer arm 1."""
    spec = ContextualSpec(n_actions=2, dim=1, horizon=400, delay=delay)
    config = LassoBandit(forced_penalty=1e-3, penalty=1e-3, **settings)
    agent, x, waiting, free = config.make(spec, Streams([0])), np.ones((1, 1)), [], []
    for t in range(400):
        forced = forced_arm(max(0, t - delay), 2, 1) is not None
        waiting.append((agent.act(x), forced))
        if not forced:
            free.append(waiting[-1][0][0])
        if len(waiting) > delay:
            action, was_forced = waiting.pop(0)
            pays = (0.5 if was_forced else 1.0) if action[0] == 0 else 0.8
            agent.update(x, action, np.array([pays]))
    return agent, np.array(free)


@pytest.mark.parametrize("delay", [0, 3])
def test_only_forced_samples_enter_the_first_estimate(delay):
    """Golden: forced samples of the arms pay 0.5 and 0.8 and the first estimate says so, although
    the second arm's later rewards, or with delay other users' rewards, come in between."""
    agent, _ = two_arms(delay)
    np.testing.assert_allclose(agent.from_forced.means(np.ones((1, 1))), [[0.5, 0.8]], atol=5e-3)


def test_preselection_within_half_the_margin():
    """Golden: forced estimates are 0.3 apart, so arm 0 is kept from margin 0.6 on (range 1)."""
    for margin, kept in ((0.5, False), (0.7, True)):
        agent, free = two_arms(margin=margin)
        first = agent.from_forced.means(np.ones((1, 1)))[0]
        assert (first[0] >= first.max() - margin / 2) == kept
        assert kept or (free[1:] == 1).all()


def problems(n, d, B=6, seed=0):
    """B correlated designs with sparse truths: gram, moment and thresholds of mixed severity."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((B, n, d)) + rng.standard_normal((B, n, 1))
    y = X[..., 0] - 2 * X[..., d // 2] + 0.3 * rng.standard_normal((B, n))
    threshold = n * np.geomspace(0.01, 1.0, B)[:, None] * rng.uniform(0.5, 1, (B, d))
    return X.swapaxes(1, 2) @ X, np.matvec(X.swapaxes(1, 2), y), threshold


def violation(gram, moment, threshold, theta):
    """How far the subgradient of |y - X theta|^2 / 2 + threshold . |theta| is from 0."""
    gap = moment - np.matvec(gram, theta)
    used = theta != 0
    on = np.abs(gap - threshold * np.sign(theta)) * used
    off = np.maximum(np.abs(gap) - threshold, 0) * ~used
    return (on + off).max(axis=1) / np.abs(moment).max(axis=1)


@pytest.mark.parametrize(("n", "d"), [(200, 12), (15, 30), (1, 4)])
def test_optimality_conditions(n, d):
    """Oracle: KKT, to the default tolerance and, asked for more, to rounding; 1 % off is seen."""
    sums = problems(n, d)
    start = np.zeros_like(sums[1])
    theta = lasso(*sums, start)
    assert violation(*sums, theta).max() < (5e-3 if n > d else 5e-2)
    exact = lasso(*sums, start, tolerance=1e-14, sweeps=20_000)
    assert violation(*sums, exact).max() < 1e-9
    if n > 1:
        assert violation(*sums, 1.01 * exact).max() > 1e-4


def test_the_same_minimum_as_another_solver():
    """Oracle: positive and negative parts under bounds, by scipy's L-BFGS-B."""
    gram, moment, threshold = (part[2] for part in problems(80, 6))
    theta = lasso(gram[None], moment[None], threshold[None], np.zeros((1, 6)), tolerance=1e-12)[0]

    def value(parts):
        w = parts[:6] - parts[6:]
        slope = gram @ w - moment
        total = w @ gram @ w / 2 - moment @ w + threshold @ (parts[:6] + parts[6:])
        return total, np.concatenate([slope + threshold, threshold - slope])

    best = minimize(value, np.zeros(12), jac=True, bounds=[(0, None)] * 12, tol=1e-14).x
    np.testing.assert_allclose(theta, best[:6] - best[6:], rtol=0, atol=1e-4)


def test_orthogonal_features_are_soft_thresholded():
    """Golden: X'X = 4 I, X'y = (8, -3, 1), threshold 2: (8 - 2)/4, -(3 - 2)/4, 0."""
    moment = np.array([[8.0, -3.0, 1.0]])
    theta = lasso(4 * np.eye(3)[None], moment, np.full((1, 3), 2.0), np.zeros((1, 3)))
    np.testing.assert_allclose(theta, [[1.5, -0.25, 0.0]])


def test_company_and_start_change_nothing():
    """Six problems at once equal six alone, difference 0.0; another start, to the tolerance."""
    sums = problems(60, 10)
    together = lasso(*sums, np.zeros((6, 10)))
    for b in range(6):
        alone = lasso(*(part[b : b + 1] for part in sums), np.zeros((1, 10)))
        np.testing.assert_array_equal(alone[0], together[b])
    np.testing.assert_allclose(lasso(*sums, together + 1), together, rtol=0, atol=2e-3)


def test_nothing_seen_is_nothing_learned():
    """A feature that is always 0 keeps coefficient 0; so does an arm that was never played."""
    regression = Lasso(ContextualSpec(n_actions=2, dim=2, horizon=9), 3)
    refit((regression, 0.1))
    regression.add(np.tile([1.0, 0.0], (3, 1)), np.zeros(3, dtype=int), np.ones(3))
    refit((regression, 0.1))
    assert (regression.theta[:, 0, 0] > 0.9).all()
    assert not regression.theta[:, 0, 1].any()
    assert not regression.theta[:, 1].any()


@pytest.mark.parametrize("shared", [False, True])
def test_rows_join_the_sums_of_their_arm(shared):
    """Oracle: |y - X w|^2 / n + penalty sum_j size_j |w_j| by its optimality conditions on the raw
    rows, through several fits; and scaled features, scaled coefficients (to the tolerance)."""
    rng, T, R, d, K = np.random.default_rng(1), 90, 3, 4, 2
    spec = ContextualSpec(n_actions=K, dim=d, horizon=T, shared=shared)
    units = np.array([1.0, 10.0, 0.1, 3.0])
    one, other = Lasso(spec, R), Lasso(spec, R)
    contexts = rng.standard_normal((T, R, *spec.context_shape))
    actions, rewards = rng.integers(K, size=(T, R)), rng.standard_normal((T, R))
    chosen = np.take_along_axis(contexts, actions[..., None, None], 2)[:, :, 0] if shared else None
    for t in range(T):
        one.add(contexts[t], actions[t], rewards[t])
        other.add(contexts[t] * units, actions[t], rewards[t])
        if t % 30 == 29:
            refit((one, 0.05), (other, 0.05))
    np.testing.assert_allclose(one.theta, other.theta * units, rtol=0, atol=1e-5)
    for r in range(R):
        for g in range(1 if shared else K):
            mine = np.ones(T, dtype=bool) if shared else actions[:, r] == g
            X = (chosen if shared else contexts)[mine, r]
            y, n = rewards[mine, r], mine.sum()
            threshold = 0.05 / 2 * n * np.sqrt((X**2).mean(axis=0))
            sums = (X.T @ X)[None], (X.T @ y)[None], threshold[None]
            assert violation(*sums, one.theta[None, r, g]).max() < 1e-3
