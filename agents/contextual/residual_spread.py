"""How large residuals are, from released counts of those above a threshold."""

import numpy as np
from scipy.special import ndtr

from dpbandit.base import Floats

_GRID = np.geomspace(1 / 500, 1.0, 80)
"""Standard deviations, as shares of half the range of rewards."""
_LIKELY, _DOUBT = 1 / 60, 3.0
"""Below that share a standard deviation is e^-3 times as likely, at first."""
_DRIFT = np.array([0.1, 0.15, 0.2, 0.3, 0.15, 0.07, 0.03])
"""Residuals change between releases, and shrink more often than not: weights of -3 .. 3 places."""
_FIRST = 0.2


class ResidualSpread:
    """The posterior of the standard deviation of normal residuals on a grid; (R,) numbers::

        E [ +1 if |e| > threshold else -1 ] = 3 - 4 Phi(threshold / sd)

    `estimate` is its geometric mean and the next threshold.
    """

    def __init__(self, replicas: int, half_range: float) -> None:
        self._grid = half_range * _GRID
        self._log: Floats = np.tile(np.where(_GRID > _LIKELY, 0.0, -_DOUBT), (replicas, 1))
        self.estimate: Floats = np.full(replicas, half_range * _FIRST)

    def update(self, mean: Floats, variance: float) -> None:
        """Tell it of a mean of +-1, with noise of this variance, at the threshold `estimate`."""
        expected = 3 - 4 * ndtr(self.estimate[:, None] / self._grid)
        log = self._log - 0.5 * (mean[:, None] - expected) ** 2 / variance
        chance = np.exp(log - log.max(axis=1, keepdims=True))
        chance /= chance.sum(axis=1, keepdims=True)
        self.estimate = np.exp(np.vecdot(chance, np.log(self._grid)))
        size, reach = len(_GRID), len(_DRIFT) // 2
        padded = np.pad(chance, ((0, 0), (reach, reach)), mode="edge")
        moved = [w * padded[:, 2 * reach - i :][:, :size] for i, w in enumerate(_DRIFT)]
        self._log = np.log(sum(moved) + 1e-12)
