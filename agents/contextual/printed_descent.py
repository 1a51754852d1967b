"""How long a program's DP-SGD descends and with what noise, by its own accountants, and by ours.

For `PrivateGLMAsCoded`: two revisions of one program. A gradient is clipped to c = 0.2 and the mean
of a batch gets noise of stddev sigma c / b. Rows are shuffled in every epoch and cut into batches
of b = min(2048, n), so a row is in one batch of an epoch and a replaced one moves its mean by 2 c /
b: `Descent.mu` is exact, without the amplification by sampling that both accountants count on.
"""

from functools import cache
from math import ceil, expm1, inf, log, sqrt
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, roots_hermitenorm

from dpbandit.base import Floats, InputError

Revision: TypeAlias = Literal["first", "second"]
_BATCH = 2048
_MOST_NOISE = 4e7
"""Where the search for sigma gives up."""
_FACTORS = (0.5, 0.75, 1.0, 1.25, 1.5)
"""Of the usual number of epochs: which are tried."""


class Descent(NamedTuple):
    """A call of DP-SGD on n rows."""

    epochs: int
    burn_in: int
    """the ends of later epochs are averaged"""
    batch: int
    steps: int
    """batches of an epoch"""
    smallest: int
    """rows of its smallest batch"""
    sigma: float

    @property
    def mu(self) -> float:
        """Of all steps for replacing a row, which may be in the smallest batch each time."""
        if self.sigma == 0:
            return inf
        return 2 * sqrt(self.epochs) * self.batch / self.smallest / self.sigma


@cache
def descent(revision: Revision, n: int, dim: int, epsilon: float, delta: float) -> Descent:
    """The call of a revision on `n` rows that is to be (epsilon, delta)-DP."""
    b = min(_BATCH, n)
    if revision == "first":
        steps, smallest = ceil(n / b), n % b or b
        sigma = _first_sigma(50 * steps, b / n, epsilon, delta)
        return Descent(50, 10, b, steps, smallest, sigma)
    usual = _usual_epochs(epsilon)

    def merit(call: Descent) -> tuple[float, int]:
        """Steps over noise^2; at b = n all tie, and the program's rounding errors decide."""
        quality = call.epochs / call.sigma**2 if call.sigma else 1.0
        return round(log(quality), 6), -abs(call.epochs - usual)

    return max(_candidates(n, dim, epsilon, delta), key=merit)


@cache
def dearest(revision: Revision, rows: int, dim: int, epsilon: float, delta: float) -> float:
    """The largest mu of a call on 1 to `rows` rows.

    In the second revision steps of an epoch are as many for all n between multiples of 2048, and
    the noise falls with b / n: the largest of them is the dearest. In the first the last batch of
    an epoch may be a single row.
    """
    if revision == "first":
        ends = range(1, rows + 1, _BATCH)
        worst = [
            descent(revision, n, dim, epsilon, delta) for n in {*ends, rows, min(rows, _BATCH)}
        ]
        return max(call.mu for call in worst)
    ends = range(2 * _BATCH - 1, rows, _BATCH)
    return max(
        call.mu
        for n in {min(rows, _BATCH), *ends, rows}
        for call in _candidates(n, dim, epsilon, delta)
    )


def longest(revision: Revision, rows: int, epsilon: float) -> int:
    """The most steps that a call on at most `rows` rows makes."""
    if revision == "first":
        return 50 * ceil(rows / _BATCH)
    return round(_FACTORS[-1] * _usual_epochs(epsilon)) * max(1, rows // _BATCH)


def _candidates(n: int, dim: int, epsilon: float, delta: float) -> list[Descent]:
    b = min(_BATCH, n)
    steps = n // b
    usual, least = _usual_epochs(epsilon), max(5, ceil(log(dim + 1)))
    found = []
    for epochs in sorted({max(least, round(usual * factor)) for factor in _FACTORS}):
        burn_in = max(1, round(10 * epochs / usual))
        sigma = _second_sigma(epochs * steps, b / n, epsilon, delta)
        found.append(Descent(epochs, burn_in, b, steps, b, sigma))
    return found


def _usual_epochs(epsilon: float) -> int:
    bounds = ((0.1, 15), (0.3, 25), (1.0, 50), (2.0, 75), (inf, 100))
    return next(epochs for bound, epochs in bounds if epsilon <= bound)


def _first_sigma(steps: int, rate: float, epsilon: float, delta: float) -> float:
    """Of Renyi divergences steps order rate^2 / (2 sigma^2), which no theorem gives."""
    orders = np.arange(2.0, 64.0)
    if epsilon < 0.3:
        orders = np.concatenate([np.arange(2.0, 64.0, 4.0), np.arange(70.0, 512.0, 6.0)])
    if epsilon == inf:
        return 0.0
    room = epsilon + log(delta) / (orders - 1)  # what an order leaves for the divergence
    if not (room > 0).any():
        raise _too_small(epsilon, delta)
    sigmas = np.sqrt(steps * orders[room > 0] * rate**2 / (2 * room[room > 0]))
    return float(sigmas.min())


def _second_sigma(steps: int, rate: float, epsilon: float, delta: float) -> float:
    """The least by the Renyi accountant for samples without replacement, replacing one row."""

    def excess(sigma: float) -> float:
        return _renyi_epsilon(sigma, steps, rate, epsilon, delta) - epsilon

    if epsilon == inf:
        return 0.0
    least = most = rate * sqrt(steps) / (3 + epsilon)
    while excess(most) > 0:
        most *= 4
        if most > _MOST_NOISE:
            raise _too_small(epsilon, delta)
    return float(brentq(excess, least, most, xtol=1e-6)) if most > least else least


def _too_small(epsilon: float, delta: float) -> InputError:
    return InputError(
        f"Expected a larger epsilon or delta than {epsilon:.3g} and {delta:.3g} for a call of "
        "DP-SGD: no noise reaches them by the program's accountant."
    )


def _renyi_epsilon(sigma: float, steps: int, rate: float, epsilon: float, delta: float) -> float:
    """Renyi divergences as epsilon at delta (Canonne, Kamath and Steinke 2020, Proposition 12)."""
    if rate == 1:
        orders = _orders(512.0 if epsilon >= 0.3 else 1024.0)
        divergences = orders / (2 * sigma**2)
    else:
        orders = _orders(256.0)
        divergences = _sampled_divergences(orders, sigma, rate)
    total = steps * divergences
    found = total + np.log1p(-1 / orders) - np.log(delta * orders) / (orders - 1)
    by_kl = delta**2 + np.expm1(-total) > 0
    return max(0.0, float(np.where(by_kl, 0.0, found).min()))


def _orders(most: float) -> Floats:
    tail = np.array([64.0, 96.0, 128.0, 192.0, 256.0, 384.0, 512.0, 768.0, 1024.0])
    return np.concatenate([[1.25, 1.5, 1.75], np.arange(2.0, 64.0), tail[tail <= most]])


def _sampled_divergences(orders: Floats, sigma: float, rate: float) -> Floats:
    """Of a Gaussian release of b = `rate` n rows drawn without replacement, n public.

    Wang, Balle and Kasiviswanathan, "Subsampled Renyi differential privacy and analytical moments
    accountant", AISTATS 2019, Theorem 27: for whole orders a, with B_j the even central moments of
    the likelihood ratio, here by quadrature, (a - 1) divergence is at most::

        log(1 + sum_j C(a, j) rate^j m_j),
        m_j = min(4 sqrt(B_2floor(j/2) B_2ceil(j/2)), 2 e^(j (j-1) / (2 sigma^2)))
    """
    whole = np.ceil(orders)[:, None]  # below 2 convexity leaves the divergence of order 2
    j = np.arange(2, int(whole.max()) + 1)
    with np.errstate(over="ignore", divide="ignore"):
        gap = np.log(np.abs(np.expm1(_NODES / sigma - 1 / (2 * sigma**2))))
        even = np.log(np.exp(2 * np.arange(1, j[-1] // 2 + 2)[:, None] * gap) @ _WEIGHTS)
    size = log(4) + (even[j // 2 - 1] + even[(j + 1) // 2 - 1]) / 2
    size[0] = log(4) + log(expm1(min(sigma**-2, 700.0)))
    size = np.minimum(size, log(2) + j * (j - 1) / (2 * sigma**2))
    left = np.maximum(whole - j, 0)
    choices = gammaln(whole + 1) - gammaln(j + 1) - gammaln(left + 1)
    terms = np.where(j <= whole, choices + j * log(rate) + size, -inf)
    logs: Floats = np.logaddexp(0.0, np.logaddexp.reduce(terms, axis=1))
    return logs / (whole[:, 0] - 1)


_NODES, _WEIGHTS = roots_hermitenorm(121)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
