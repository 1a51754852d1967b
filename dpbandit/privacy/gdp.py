"""Gaussian differential privacy: the exact currency of everything that adds normal noise.

Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022. A release of a statistic with
L2 sensitivity S and noise N(0, s^2 I) is mu-GDP with mu = S / s, adaptive composition gives
sqrt(sum of mu_i^2), and mu-GDP is exactly the curve (Balle and Wang, ICML 2018)

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

Written here and not taken from dp-accounting because these closed forms are asked at every
construction and the import of the library alone takes longer; the tests hold them against it.
"""

from functools import cache
from math import exp, expm1, inf, log

from scipy.optimize import brentq
from scipy.special import log_ndtr

_SAFE = 1 - 1e-9
"""Roots are rounded towards more privacy, by more than solver and cancellation err together."""


def delta_of(mu: float, epsilon: float) -> float:
    """The exact delta of mu-GDP at `epsilon` >= 0."""
    if mu == 0:
        return 0.0
    if mu == inf:
        return 0.0 if epsilon == inf else 1.0
    if epsilon == inf:
        return 0.0
    return exp(_log_delta(mu, epsilon))


@cache
def epsilon_of(mu: float, delta: float) -> float:
    """The exact epsilon of mu-GDP at `delta`, rounded up; infinity at delta = 0."""
    if mu == 0 or delta >= delta_of(mu, 0.0):
        return 0.0
    if mu == inf or delta <= 0:
        return inf
    high = 1.0
    while _log_delta(mu, high) > log(delta):
        high *= 2
    root = brentq(lambda e: _log_delta(mu, e) - log(delta), 0.0, high, xtol=1e-15, rtol=1e-14)
    return float(root) / _SAFE


@cache
def mu_of(epsilon: float, delta: float) -> float:
    """The largest mu that is (epsilon, delta)-DP, rounded down; 0 at delta = 0.

    >>> round(mu_of(1.0, 1e-5), 6)
    0.268051
    """
    if epsilon == inf or delta >= 1:
        return inf
    if delta <= 0:
        return 0.0
    low = high = 1.0
    while _log_delta(low, epsilon) > log(delta):
        low /= 2
    while _log_delta(high, epsilon) < log(delta):
        high *= 2
    root = brentq(lambda m: _log_delta(m, epsilon) - log(delta), low, high, xtol=1e-15, rtol=1e-14)
    return float(root) * _SAFE


def rho_of(mu: float) -> float:
    """The zCDP parameter of a mu-GDP Gaussian release: mu^2 / 2."""
    return mu * mu / 2


def _log_delta(mu: float, epsilon: float) -> float:
    """log delta without cancellation: delta = A - B = A (1 - e^(log B - log A))."""
    log_a = float(log_ndtr(mu / 2 - epsilon / mu))
    log_b = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return log_a + log(-expm1(log_b - log_a)) if log_b < log_a else -inf
