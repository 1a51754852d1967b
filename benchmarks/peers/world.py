"""The problem that every peer plays, one replica: NumPy alone, so that any interpreter has it."""

from typing import NamedTuple

import numpy as np

ALPHA, RIDGE, NOISE = 0.5, 1.0, 0.1
"""Of LinUCB its width and its regularization; the stddev of rewards."""


class World(NamedTuple):
    """T users of a linear bandit with K arms in d dimensions."""

    context: np.ndarray
    """(T, d), uniform on the unit sphere"""
    mean: np.ndarray
    """(T, K), <theta_a, x>, every theta_a uniform on the unit sphere"""
    reward: np.ndarray
    """(T, K), the mean and Gaussian noise"""

    def regret(self, actions):
        """Cumulative, (T,), of the arms that were played (T,)."""
        chosen = self.mean[np.arange(len(self.mean)), actions]
        return np.cumsum(self.mean.max(axis=1) - chosen)


def draw(dim, arms, rounds, seed):
    """All users at once, which is the fastest way."""
    rng = np.random.default_rng(seed)
    theta = _unit(rng.standard_normal((arms, dim)))
    context = _unit(rng.standard_normal((rounds, dim)))
    mean = context @ theta.T
    return World(context, mean, mean + NOISE * rng.standard_normal(mean.shape))


def _unit(x):
    return x / np.linalg.norm(x, axis=-1, keepdims=True)
