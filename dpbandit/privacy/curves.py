"""Closed forms of (epsilon, delta) for Gaussian DP and zCDP.

**Gaussian differential privacy**, which is exact for mechanisms that add normal noise.
Dong, Roth and Su, "Gaussian differential privacy", JRSS B 2022. A release of a statistic with
L2 sensitivity S and noise N(0, s^2 I) is mu-GDP with mu = S / s, adaptive composition gives
sqrt(sum of mu_i^2), and mu-GDP is exactly the curve (Balle and Wang, ICML 2018)::

    delta(epsilon) = Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2).

The curve is computed here because every agent evaluates it when it is made, and importing
dp-accounting would take longer; tests compare both.

For a small mu the two terms are nearly equal. As d delta / d mu = phi(mu/2 - epsilon/mu), there::

    delta = e^(epsilon/2) integral_0^mu e^(-m^2/8) phi(epsilon/m) dm
         <= e^(epsilon/2) mu (phi(x) - x Phi(-x)),   x = epsilon/mu,

with a relative error below mu^2/8.

**Zero-concentrated differential privacy**, and its two conversions to (epsilon, delta).
Bun and Steinke, "Concentrated differential privacy", TCC 2016. rho-zCDP bounds the Renyi
divergence of every order a > 1 by a rho; rho adds up under adaptive composition; epsilon-DP is
epsilon^2/2-zCDP, a mechanism of bounded range eta is eta^2/8-zCDP (Cesar and Rogers, ALT 2021)::

    BS     epsilon = rho + 2 sqrt(rho ln(1/delta))                            (Proposition 1.3)
    CKS    epsilon = min_{a > 1} a rho + ln(1/(a delta)) / (a - 1) + ln(1 - 1/a)

The second is Canonne, Kamath and Steinke, "The discrete Gaussian for differential privacy",
NeurIPS 2020, Proposition 12, and never larger.
"""

from collections.abc import Callable
from functools import cache
from math import exp, expm1, inf, log, log1p, pi, sqrt
from sys import float_info

import numpy as np
import scipy

from dpbandit.base import Floats, InputError

_ROOT_MARGIN = 1 - 1e-9
"""Factor that moves a root (epsilon, mu) to the safe side, by more than its numerical error."""
_SMALL_MU = 3e-4
"""Below this mu the module docstring's bound on delta has less error than the exact difference."""
MAX_Z = 38.5
"""Normal quantile q at which Phi(-q) underflows to 0 in double precision."""


def delta_of(mu: float, epsilon: float) -> float:
    """Return the exact delta of mu-GDP at `epsilon` >= 0."""
    if mu == 0:
        return 0.0
    if mu == inf:
        return 0.0 if epsilon == inf else 1.0
    if epsilon == inf:
        return 0.0
    return exp(_log_delta(mu, epsilon))


@cache
def epsilon_of(mu: float, delta: float) -> float:
    """Return the exact epsilon of mu-GDP at `delta`, rounded up; infinity at delta = 0."""
    if mu == 0 or delta >= delta_of(mu, 0.0):
        return 0.0
    if mu == inf or delta <= 0:
        return inf
    goal = log(delta) - 1e-11  # near 0 a relative rounding of the root would be too little
    high = 1.0
    while _log_delta(mu, high) > goal:
        high *= 2
    root = _root(lambda e: _log_delta(mu, e) - goal, 0.0, high, 1e-15 * mu)
    return root / _ROOT_MARGIN


@cache
def mu_of(epsilon: float, delta: float) -> float:
    """Return the largest mu that is (epsilon, delta)-DP, rounded down; 0 at delta = 0.

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
    close = min(1e-15, 1e-12 * low)
    root = _root(lambda m: _log_delta(m, epsilon) - log(delta), low, high, close)
    return root * _ROOT_MARGIN


def _root(f: Callable[[float], float], low: float, high: float, close: float) -> float:
    """Return the root of f in [low, high], also where it is a denormal number."""
    from scipy.optimize import brentq  # not before: slow to import

    least = float_info.min * float_info.epsilon
    return float(brentq(f, low, high, xtol=max(close, least), rtol=1e-14, maxiter=5000))


def rho_of_mu(mu: float) -> float:
    """Return the zCDP parameter of a mu-GDP Gaussian release, mu^2 / 2."""
    return mu * mu / 2


def deltas_of(mu: float, epsilons: Floats) -> Floats:
    """Return delta at each of `epsilons` >= 0 for 0 < mu < inf, with relative error `error_of(mu)`.

    From epsilon = mu^2 / 2 on delta is phi(a) (m(a) - m(a + mu)), a = epsilon/mu - mu/2, with
    Mills' ratio m(a) = Phi(-a) / phi(a).
    """
    a = epsilons / mu - mu / 2
    density = np.exp(-a * a / 2) / sqrt(2 * pi)
    with np.errstate(over="ignore", invalid="ignore"):  # in the branch that is not taken
        first = np.where(a < 0, scipy.special.ndtr(-a), density * _mills(a))
    deltas: Floats = first - density * _mills(a + mu)
    return np.maximum(deltas, 0.0)


def error_of(mu: float) -> float:
    """Return a bound on the relative error of `deltas_of` by rounding and cancellation."""
    return 1e-15 * MAX_Z * (MAX_Z + mu + 1 / mu)


def _mills(a: Floats) -> Floats:
    return sqrt(pi / 2) * scipy.special.erfcx(a / sqrt(2))


def _log_delta(mu: float, epsilon: float) -> float:
    """Return log delta, with the difference A - B of two terms as A (1 - e^(log B - log A))."""
    if mu < _SMALL_MU:
        return _log_delta_small_mu(mu, epsilon)
    log_a = float(scipy.special.log_ndtr(mu / 2 - epsilon / mu))
    log_b = epsilon + float(scipy.special.log_ndtr(-mu / 2 - epsilon / mu))
    return log_a + log(-expm1(log_b - log_a)) if log_b < log_a else -inf


def _log_delta_small_mu(mu: float, epsilon: float) -> float:
    """Return the log of the bound on delta for small mu (module docstring), by Mills' ratio."""
    x = epsilon / mu  # x m(x) > x^2 / (1 + x^2), where the difference would cancel
    rest = log1p(-x * float(_mills(np.array(x)))) if x < 1e4 else -2 * log(x)
    return epsilon / 2 - x * x / 2 - log(2 * pi) / 2 + log(mu) + rest


def loose_epsilon(rho: float, delta: float) -> float:
    """Return epsilon of rho-zCDP at `delta` by Bun and Steinke, Proposition 1.3."""
    if rho == 0:
        return 0.0
    return rho + 2 * sqrt(rho * log(1 / delta)) if delta > 0 else inf


def loose_rho(epsilon: float, delta: float) -> float:
    """Return the rho whose `loose_epsilon` at `delta` is `epsilon`."""
    if epsilon == inf:
        return inf
    if delta <= 0:
        return 0.0
    level = log(1 / delta)
    return (epsilon / (sqrt(level + epsilon) + sqrt(level))) ** 2


@cache
def zcdp_epsilon_of(rho: float, delta: float) -> float:
    """Return the epsilon of rho-zCDP at `delta` by Canonne et al.; infinity at delta = 0.

    >>> round(zcdp_epsilon_of(0.024356, 1e-6), 4)
    1.0
    """
    from scipy.optimize import minimize_scalar  # not before: slow to import

    if rho == 0 or delta >= 1:
        return 0.0
    if rho == inf or delta <= 0:
        return inf

    def bound(log_order: float) -> float:
        a = 1 + exp(log_order)
        return a * rho + (log(1 / delta) - log(a)) / (a - 1) + log1p(-1 / a)

    return max(0.0, float(minimize_scalar(bound, bounds=(-12.0, 25.0), method="bounded").fun))


@cache
def zcdp_delta_of(rho: float, epsilon: float) -> float:
    """Return the delta of rho-zCDP at `epsilon` by Canonne et al., at most 1.

    It is the minimum over a > 1 of exp((a - 1) (a rho - epsilon) + a ln(1 - 1/a) - ln(a - 1)).

    >>> round(zcdp_delta_of(0.04063, 1.0), 6)
    0.0001
    """
    from scipy.optimize import minimize_scalar  # not before: slow to import

    if rho == 0 or epsilon == inf:
        return 0.0
    if rho == inf:
        return 1.0

    def bound(log_order: float) -> float:
        a = 1 + exp(log_order)
        return (a - 1) * (a * rho - epsilon) + a * log1p(-1 / a) - log_order

    least = float(minimize_scalar(bound, bounds=(-12.0, 25.0), method="bounded").fun)
    return exp(min(0.0, least))


@cache
def zcdp_rho_of(epsilon: float, delta: float) -> float:
    """Return the largest rho that is (epsilon, delta)-DP by Canonne et al., rounded down.

    It is 0 at delta = 0. Raises `InputError` for an epsilon so small that no rho has it.

    >>> round(zcdp_rho_of(1.0, 1e-4), 5)
    0.04063
    """
    from scipy.optimize import brentq  # not before: slow to import

    if epsilon == inf:
        return inf
    if delta <= 0:
        return 0.0
    low, high = 1e-300, 1.0
    if zcdp_epsilon_of(low, delta) > epsilon:
        raise InputError(f"Expected epsilon={epsilon!r} at delta={delta!r} to be within reach.")
    while zcdp_epsilon_of(high, delta) < epsilon:
        high *= 2
    root = brentq(
        lambda x: zcdp_epsilon_of(exp(x), delta) - epsilon, log(low), log(high), xtol=1e-12
    )
    return exp(float(root)) * (1 - 1e-9)
