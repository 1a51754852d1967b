"""Intervals of a mean of terms whose rows are independent, true as their number grows."""

from math import log, sqrt

import numpy as np
from scipy.special import stdtrit

from dpbandit.base.random_streams import Streams
from dpbandit.offline.betting import Stakes
from dpbandit.offline.terms import Terms

_RESAMPLES = 1000


def standard_error(terms: Terms) -> float:
    """Of the estimate, to first order; NaN with one row."""
    n = len(terms.base)
    return sqrt(float(np.square(terms.errors).sum()) / (n - 1) / n) if n > 1 else np.nan


def student(terms: Terms, alpha: float) -> tuple[float, float]:
    """The estimate plus and minus Student's quantile times its standard error."""
    room = float(stdtrit(len(terms.base) - 1, 1 - alpha / 2)) * standard_error(terms)
    return terms.estimate - room, terms.estimate + room


def bootstrap(terms: Terms, alpha: float, seed: int) -> tuple[float, float]:
    """Percentiles of the estimate over 1,000 resamples of rows."""
    n = len(terms.base)
    draw = Streams([seed]).uniforms("bootstrap", n)
    table = np.stack([terms.base, terms.excess, terms.weight])
    means = np.array(
        [table[:, (draw()[0] * n).astype(np.int64)].mean(1) for _ in range(_RESAMPLES)]
    )
    base, excess, weight = means.T
    found = base + excess / (np.where(weight > 0, weight, np.nan) if terms.normalised else 1)
    low, high = np.nanquantile(found, [alpha / 2, 1 - alpha / 2])
    return float(low), float(high)


def empirical_bernstein(stakes: Stakes, alpha: float, w_max: float) -> tuple[float, float]:
    """Of weighted rewards in [0, w_max], for any n: Maurer and Pontil, COLT 2009, Theorem 4, once
    from either side."""
    n, x = len(stakes.up), stakes.up
    if n < 2:
        return 0.0, 1.0
    L = log(4 / alpha)
    room = sqrt(2 * float(x.var(ddof=1)) * L / n) + 7 * w_max * L / (3 * (n - 1))
    mean = float(x.mean())
    return max(0.0, mean - room), min(1.0, mean + room)
