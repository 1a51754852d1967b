"""Likelihoods that forget at several rates, of which the best predictor of releases is believed."""

import numpy as np

from dpbandit.base import Floats, rows

_RATES = np.array([1.0, 0.7, 0.5])
"""What is left of earlier releases at each new one."""
_DOUBT = 3.0
"""Each rate below 1 is e^-3 times as likely, at first."""
_MOST_BEHIND = 12.0
"""No rate falls further behind the best one, so that it can be believed again."""
_WIDTHS = 0.05, 0.001
"""Variance of a coordinate a priori, at first and at least, in units of what it may be at most."""


class Forgetting:
    """b and L of a likelihood exp(b . x - x' L x / 2) whose x may change, at rates 1, .7 and .5::

        evidence of a rate  +=  log of the predictive density of the release, x ~ N(0, v I) a priori
        b, L                 =  rate (b, L) + those of the release

    A rate whose predictions have been the best so far, none counted as more than e^12 times worse,
    is the one that is believed. Post-processing of releases: nobody has to know when x changes, or
    whether it does.

    Args:
        replicas: R.
        size: of x.
        largest: that a coordinate of x may be.
    """

    def __init__(self, replicas: int, size: int, largest: float) -> None:
        self._b: Floats = np.zeros((replicas, len(_RATES), size))
        self._L: Floats = np.zeros((replicas, len(_RATES), size, size))
        self._evidence = np.tile(np.where(_RATES < 1, -_DOUBT, 0.0), (replicas, 1))
        self._first, self._least = (width * largest**2 for width in _WIDTHS)

    def add(self, b: Floats, L: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """One release, (R, n) and (R, n, n), and the mean so far, (R, n) -> those to believe."""
        variance = np.maximum((mean**2).mean(axis=1), self._least)
        variance = np.where(mean.any(axis=1), variance, self._first)
        ridge = np.eye(b.shape[1]) / variance[:, None, None, None]
        before = _RATES[:, None] * self._b, _RATES[:, None, None] * self._L
        self._b, self._L = before[0] + b[:, None], before[1] + L[:, None]
        gained = _evidence(self._b, self._L + ridge) - _evidence(before[0], before[1] + ridge)
        self._evidence = self._evidence + gained
        best = self._evidence.argmax(axis=1)
        behind = self._evidence - self._evidence.max(axis=1, keepdims=True)
        self._evidence = np.maximum(behind, -_MOST_BEHIND)
        each = rows(len(best))
        return self._b[each, best], self._L[each, best]


def _evidence(b: Floats, L: Floats) -> Floats:
    """log of the integral of exp(b . x - x' L x / 2), up to a constant."""
    _, size = np.linalg.slogdet(L)
    return np.asarray(0.5 * (np.vecdot(b, np.linalg.solve(L, b[..., None])[..., 0]) - size))
