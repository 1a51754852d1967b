"""The population's parameter, from releases and public numbers alone."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.integrate import quad
from scipy.special import betainc, betaln, ndtr

from dpbandit.base.arrays import Floats, norms


class Directions(NamedTuple):
    """What is known of rows uniform on the sphere in R^d, and of the longest of K along p."""

    along: float
    """E <x, p>^2"""
    kappa: float
    """E[t (2 Phi(t / s) - 1)] / E[t^2], t = <x, p>"""


def directions(dim: int, best_of: int, spread: float) -> Directions:
    """By quadrature; `spread` is s, the standard deviation of a reward about t.

    >>> round(directions(10, 1, 0.5).along, 10)
    0.1
    """
    if dim == 1:  # rows are 1 or -1
        return Directions(1.0, 2 * float(ndtr(1 / spread)) - 1)
    a = (dim - 1) / 2
    log_scale = betaln(0.5, a)

    def density(t: float) -> float:
        below = 0.5 + 0.5 * np.sign(t) * betainc(0.5, a, t * t)
        own = np.exp((a - 1) * np.log1p(-t * t) - log_scale)
        return float(best_of * below ** (best_of - 1) * own)

    def mean(f: Callable[[float], float]) -> float:
        value, _ = quad(lambda t: f(t) * density(t), -1, 1, limit=200)
        return float(value)

    along = mean(lambda t: t * t)
    told = mean(lambda t: t * (2 * float(ndtr(t / spread)) - 1))
    return Directions(along, told / along)


class Population:
    """A posterior of theta_0, whose prior is N(0, I/d), from noisy sums of `sign(r) x`::

        release b = sum of n_b signed directions + N(0, sigma^2 I)
        its mean  ~ n_b kappa_b E_b[xx'] theta_0
        w_b = n_b / (sigma^2 + n_b / d),   M = sum_b w_b n_b kappa_b E_b[xx']
        hat = M^-1 sum_b w_b release_b,    C = M^-2 sum_b w_b^2 (sigma^2 + n_b / d)
        W = (d I + C^-1)^-1,               m_0 = W C^-1 hat

    E_b[xx'] is I/d in batch 1, which is played at random, then that of the best of K along p, the
    direction of the m_0 that was played. n_b is expected, never counted. Rows are taken to be
    uniform on the sphere and `|theta_0|` = 1; where they are not this is less good, and as private.
    """

    def __init__(
        self,
        replicas: int,
        dim: int,
        arms: int,
        *,
        counts: list[float],
        stddev: float,
        spread: float,
    ) -> None:
        self._counts, self._variance, self._d = counts, stddev**2, dim
        self._laws = directions(dim, 1, spread), directions(dim, arms, spread)
        self._batch = 0
        self._moved = np.zeros((replicas, dim, dim))
        """M"""
        self._told, self._error = np.zeros((replicas, dim)), 0.0
        self.mean: Floats = np.zeros((replicas, dim))
        """m_0"""
        self.covariance: Floats = np.broadcast_to(np.eye(dim) / dim, (replicas, dim, dim)).copy()
        """W"""

    def learn(self, release: Floats) -> None:
        """The release (R, d) of the next batch."""
        n, d, identity = self._counts[self._batch], self._d, np.eye(self._d)
        law = self._laws[self._batch > 0]
        p = self.mean / np.maximum(norms(self.mean), np.finfo(float).tiny)
        across = (1 - law.along) / max(d - 1, 1)
        second = across * identity + (law.along - across) * p[:, :, None] * p[:, None, :]
        if self._batch == 0:
            second = np.broadcast_to(identity / d, second.shape)
        variance = self._variance + n / d
        weight = n / variance if n else 0.0
        self._moved = self._moved + weight * n * law.kappa * second
        self._told = self._told + weight * release
        self._error += weight**2 * variance
        self._batch += 1
        if not self._error:
            return
        information = self._moved @ self._moved / self._error  # C^-1
        hat = np.linalg.solve(self._moved, self._told[..., None])
        self.covariance = np.linalg.inv(d * identity + information)
        self.mean = (self.covariance @ information @ hat)[..., 0]


def expected_counts(
    ends: tuple[int, ...], *, counted: str, people: int, horizon: int, robin: bool
) -> list[float]:
    """How many visits are expected to count in each batch, if slots are taken at random.

    A person has T / N slots, each in a batch of n slots with probability n / T; with `robin` all
    take turns.

    >>> expected_counts((10, 30), counted="visits", people=5, horizon=100, robin=False)
    [10.0, 20.0]
    >>> expected_counts((10, 30), counted="first", people=20, horizon=100, robin=True)
    [10.0, 10.0]
    """
    N, T, k, found, begin = people, horizon, horizon / people, [], 0
    for end in ends:
        n = end - begin
        if counted == "visits":
            found.append(float(n))
        elif robin:
            found.append(float(max(0, min(end, N) - begin) if counted == "first" else min(n, N)))
        elif counted == "first":
            found.append(N * ((1 - begin / T) ** k - (1 - end / T) ** k))
        else:
            found.append(N * (1 - (1 - n / T) ** k))
        begin = end
    return found
