"""Online ridge regression against its normal equations, whoever asked for widths in between."""

import numpy as np
import pytest

from dpbandit.agents.contextual.linear import OnlineRidge
from dpbandit.specs.protocols import ContextualSpec

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


@pytest.mark.parametrize("delay", [0, 1, 2])
@pytest.mark.parametrize("shared", [False, True])
@pytest.mark.parametrize("dim", [3, 40], ids=["all at once", "replica by replica"])
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
