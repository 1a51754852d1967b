"""Draw one replica of the problem that all libraries play; needs NumPy only."""

from typing import NamedTuple

import numpy as np

ALPHA, RIDGE, NOISE = 0.5, 1.0, 0.1
"""Confidence width and regularization of LinUCB, and standard deviation of rewards."""


class World(NamedTuple):
    """T users of a linear bandit with K arms in d dimensions."""

    context: np.ndarray
    """Contexts (T, d), uniform on the unit sphere"""
    mean: np.ndarray
    """Mean rewards (T, K), <theta_a, x>, every theta_a uniform on the unit sphere"""
    reward: np.ndarray
    """Rewards (T, K), the mean plus Gaussian noise"""

    def regret(self, actions):
        """Return the cumulative regret after each round, (T,), of the actions played, (T,)."""
        chosen = self.mean[np.arange(len(self.mean)), actions]
        return np.cumsum(self.mean.max(axis=1) - chosen)


def draw(dim, arms, rounds, seed):
    """Draw the users of all rounds at once, which is the fastest way."""
    rng = np.random.default_rng(seed)
    theta = _unit(rng.standard_normal((arms, dim)))
    context = _unit(rng.standard_normal((rounds, dim)))
    mean = context @ theta.T
    return World(context, mean, mean + NOISE * rng.standard_normal(mean.shape))


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
