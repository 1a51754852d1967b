"""Empirical Bayes shrinkage of a parameter with correlated noise."""

import numpy as np

from dpbandit.base import Floats

_SCALES = np.concatenate([[0.0], np.geomspace(0.1, 1000.0, 13)])
"""Prior variances, in units of the median variance of a coordinate given all others."""
_SWEEPS, _EM_STEPS = 5, 4
_LEAST = 1e-20
"""Of what is known of a coordinate, in units of what is known of the best one."""


class ScaleMixture:
    """Mean and variances of x, of likelihood exp(b . x - x' L x / 2), and a prior fitted to it.

    Kim, Wang, Carbonetto and Stephens, "A flexible empirical Bayes approach to multiple linear
    regression and connections with penalized regression", JMLR 2024 (mr.ash): coordinates are
    independent a priori, each from a mixture of N(0, variance_k) on a grid that holds 0; the
    posterior is approximated by independent coordinates, updated one after the other given the
    means of all others (all at once they diverge), and the mixture's weights by EM, with one
    observation's worth of prior on 0. Weights and means are where the next fit begins.
    """

    def __init__(self, replicas: int, size: int) -> None:
        self.mean: Floats = np.zeros((replicas, size))
        self._weights: Floats = np.full((replicas, len(_SCALES)), 1 / len(_SCALES))

    def fit(self, b: Floats, precision: Floats) -> tuple[Floats, Floats]:
        """b (R, n), L (R, n, n) -> posterior means and variances, (R, n)."""
        R, n = b.shape
        diagonal = np.diagonal(precision, axis1=1, axis2=2)
        least = _LEAST * diagonal.max(axis=1, keepdims=True)
        diagonal = np.maximum(diagonal, np.where(least > 0, least, 1.0))
        s2 = 1 / diagonal
        prior = (_SCALES / np.median(diagonal, axis=1)[:, None])[:, None]  # (R, 1, k)
        total = prior + s2[..., None]
        gain, spread = prior / total, np.log(total)
        columns = np.ascontiguousarray(precision.transpose(1, 0, 2))
        mean, variance, seen = self.mean.copy(), np.empty((R, n)), np.empty((R, n))
        for _ in range(_SWEEPS):
            for j in range(n):
                x = (b[:, j] - np.vecdot(columns[j], mean)) * s2[:, j] + mean[:, j]
                seen[:, j] = x
                share = _posterior(x[:, None] ** 2 / total[:, j] + spread[:, j], self._weights)
                means = x[:, None] * gain[:, j]
                mean[:, j] = np.vecdot(share, means)
                second = np.vecdot(share, gain[:, j] * s2[:, j, None] + means**2)
                variance[:, j] = second - mean[:, j] ** 2
            loss = seen[..., None] ** 2 / total + spread
            for _ in range(_EM_STEPS):
                shares = _posterior(loss, self._weights[:, None])
                self._weights = (shares.sum(axis=1) + (_SCALES == 0)) / (n + 1)
        self.mean = mean
        return mean, np.maximum(variance, 0.0)


def _posterior(loss: Floats, weights: Floats) -> Floats:
    """exp(-loss / 2) times weights, normalised along the last axis."""
    share = np.exp(-0.5 * (loss - loss.min(axis=-1, keepdims=True))) * weights + 1e-300
    return np.asarray(share / share.sum(axis=-1, keepdims=True))
