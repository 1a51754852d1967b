"""Intervals of a mean of terms: by betting, for independent rows, and for adaptive logs.

Bets against every candidate mean m give intervals of a policy's mean reward v, for rewards r_i in
[0, 1] with weights w_i, that are valid for any number of rows and for adaptive logs. Waudby-Smith
and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024; Karampatziakis,
Mineiro and Ramdas, "Off-policy confidence sequences", ICML 2021::

    wealth of a bet against m    K(m) = prod_i (1 + lambda_i (X_i - m)),  X_i = w_i r_i >= 0
    lower end                    largest m below which every wealth reached 1 / a at some time

**Proof.** If the policy is fixed and users have one law given the past, E[X_i | past] = v. So with
lambda_i in [0, 1 / m) chosen from earlier rows, K(m) is a nonnegative supermartingale at every m >=
v, and by Ville's inequality it reaches 1 / a with probability at most a. The upper end is 1 minus
the lower end of w (1 - r), since E[w (1 - r)] <= 1 - v. No bound on w is needed. Without support
the means of w r and w (1 - r) are smaller, and both ends are still valid; with a control variate,
which uses E[w] = 1, they are not.

The weighted interval, for adaptive logs, gives less weight to rows whose terms vary much. Let pi be
the policy, e_i the logging policy of row i and G the terms of dr. Hadad, Hirshberg, Zhan, Wager and
Athey, PNAS 2021; Zhan, Hadad, Hirshberg and Athey, KDD 2021::

    h_i = (mean over earlier contexts of sum_a pi(a | x)^2 / e_i(a | x))^(-1/2)      "weighted"
    h_i^2                                                                      "weighted-minvar"
    v   = sum h G / sum h,   standard error = sqrt(sum h^2 (G - v)^2) / sum h

This interval is asymptotic, and too short if a rare large weight has not occurred yet.
"""

from collections.abc import Callable
from math import log, sqrt
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from scipy.special import ndtri, stdtrit

from dpbandit.base import Floats, InputError, Ints, Streams, abbrev, shaped
from dpbandit.offline.estimators import Terms
from dpbandit.offline.logs import is_law, numbers_in, refuse_row

Betting = Literal["betting", "betting-cv", "sequence"]
_MEAN_STEP = 0.002  # distance between neighbouring candidate means
_N_CANDIDATE_MEANS = 499
"""Number of candidate means, which are 0.002, 0.004, ..., 0.998."""
_MAX_BET_SHARE = 0.75
"""Largest bet against a mean m, as a share of 1 / m, a bet that a row of reward 0 loses in full."""


class Stakes(NamedTuple):
    """Weighted rewards in [0, 1] and weighted complements, for the two ends of an interval."""

    up: Floats
    """weight x reward, (n,)"""
    down: Floats
    """weight x (1 - reward), (n,)"""


def betting(stakes: Stakes, alpha: float, how: Betting, w_max: float = 1.0) -> tuple[float, float]:
    """Return (low, high) in [0, 1], which contain the mean with probability 1 - alpha, by betting.

    If low > high, users do not have one law, or the log's probabilities are false.

    Args:
        stakes: weighted rewards, in order of collection if the log is adaptive.
        alpha: probability of missing the mean, 0.05 for 95 %.
        how: "betting", for a number of rows that was fixed in advance; "sequence", for all numbers
            of rows at once; "betting-cv", narrower by a control variate, with a public `w_max`.
        w_max: upper bound of the weights, for "betting-cv".
    """
    up, down = stakes
    a, no_gap = alpha / 2, np.zeros(1)
    if how == "betting-cv":
        sides = [_varied(up, down, w_max), _varied(down, up, w_max)]
    else:
        sides = [(up, no_gap), (down, no_gap)]
    low, high = (_lower(x, below, a, sequence=how == "sequence") for x, below in sides)
    return low, 1 - high


def _varied(x: Floats, other: Floats, w_max: float) -> tuple[Floats, Floats]:
    """Return x = w (r - c) + c and a bound on -x, for weight w, reward r, mean past reward c."""
    w = x + other
    before = np.concatenate([[0.0], np.cumsum(w)[:-1]])
    c = ((0.5 + np.concatenate([[0.0], np.cumsum(x)[:-1]])) / (1 + before)).clip(0, 1)
    return x - c * w + c, c * max(w_max - 1, 0)


def _lower(x: Floats, below: Floats, a: float, *, sequence: bool = False) -> float:
    """Return a lower bound of the mean of x (n,) >= -below that fails with probability <= a."""
    n, goal = len(x), log(1 / a)
    i = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x)) / (i + 1)
    spread = 0.25 + np.concatenate([[0.0], np.cumsum(np.square(x - mean))[:-1]])
    rounds = i * np.log(i + 1) if sequence else n
    bet = np.sqrt(2 * goal / (spread / i * rounds))

    def is_refuted(k: int) -> bool:
        m = k * _MEAN_STEP
        wealth = np.cumsum(np.log1p(np.minimum(bet, _MAX_BET_SHARE / (m + below)) * (x - m)))
        return bool(wealth.max() >= goal)

    # the wealth against m falls as m grows, so bisection finds the largest m that is refuted
    refuted, possible = 0, _N_CANDIDATE_MEANS + 1
    while possible - refuted > 1:
        middle = (refuted + possible) // 2
        refuted, possible = (middle, possible) if is_refuted(middle) else (refuted, middle)
    return refuted * _MEAN_STEP


_RESAMPLES = 1000  # number of bootstrap resamples


def standard_error(errors: Floats) -> float:
    """Return the standard error of a mean, given its rows' errors (n,); NaN with one row."""
    n = len(errors)
    return sqrt(float(np.square(errors).sum()) / (n - 1) / n) if n > 1 else np.nan


def student(terms: Terms, alpha: float) -> tuple[float, float]:
    """Return the estimate minus and plus Student's quantile times the standard error."""
    room = float(stdtrit(len(terms.base) - 1, 1 - alpha / 2)) * standard_error(terms.errors)
    return terms.estimate - room, terms.estimate + room


def bootstrap(terms: Terms, alpha: float, seed: int) -> tuple[float, float]:
    """Return percentiles of the estimate over 1,000 resamples of rows."""
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
    """Return an interval for any n, weights <= `w_max`: Maurer and Pontil, COLT 2009, Theorem 4."""
    n, x = len(stakes.up), stakes.up
    if n < 2:
        return 0.0, 1.0
    L = log(4 / alpha)
    room = sqrt(2 * float(x.var(ddof=1)) * L / n) + 7 * w_max * L / (3 * (n - 1))
    mean = float(x.mean())
    return max(0.0, mean - room), min(1.0, mean + room)


BY_STAKES = (*get_args(Betting), "empirical-bernstein")
"""Intervals of rewards in a public range that are valid for any number of rows."""


def by_stakes(
    name: str, stakes: Stakes, alpha: float, w_max: float, bounds: tuple[float, float]
) -> tuple[float, float]:
    """Return the interval `name` of a mean reward within `bounds`; NaN ends if it is empty."""
    if name == "empirical-bernstein":
        low, high = empirical_bernstein(stakes, alpha, w_max)
    else:
        low, high = betting(stakes, alpha, name, w_max)  # type: ignore[arg-type]  # one of three
    if low > high:
        return np.nan, np.nan
    start, end = bounds
    return start + (end - start) * low, start + (end - start) * high


class Gain(NamedTuple):
    """Intervals of the difference between a policy's mean reward and that of the log's own."""

    ends: tuple[float, float]
    percent: tuple[float, float]
    """in percent of the log's mean reward; NaN if that may be 0 or less"""


def paired_gain(terms: Terms, reward: Floats, alpha: float) -> Gain:
    """Return Student's intervals of the gain on the rewards (n,) of the same rows, to first order.

    The error of a row is that of its term minus that of its reward. With v the estimate and m the
    mean reward, the error of v / m is to first order (error of v - v / m error of m) / m.
    """
    n, v, m = len(reward), terms.estimate, float(reward.mean())
    quantile, errors = float(stdtrit(n - 1, 1 - alpha / 2)), reward - m
    wide = quantile * standard_error(terms.errors - errors)
    ends = v - m - wide, v - m + wide
    if not m - quantile * standard_error(errors) > 0:
        return Gain(ends, (np.nan, np.nan))
    wide = quantile * standard_error(terms.errors - v / m * errors) / m
    return Gain(ends, (100 * (v / m - 1 - wide), 100 * (v / m - 1 + wide)))


def gain_between(policy: tuple[float, float], logged: tuple[float, float]) -> Gain:
    """Return the intervals of a gain if both mean rewards lie within their ends."""
    (low, high), (least, most) = policy, logged
    ends = low - most, high - least
    if not least > 0:
        return Gain(ends, (np.nan, np.nan))
    ratios = min(low / most, low / least), max(high / least, high / most)
    return Gain(ends, (100 * (ratios[0] - 1), 100 * (ratios[1] - 1)))


class TypeLaw(NamedTuple):
    """Logging policy of every row, and the evaluated policy, for users of S public types."""

    types: Ints
    """type of each row's user, (n,)"""
    probabilities: Floats
    """logging policy of each row for a user of each type, (n, S, K)"""
    policy: Floats
    """evaluated policy for a user of each type, (S, K)"""


Law: TypeAlias = TypeLaw | Callable[[int, Floats], Floats]
"""Logging policy of an adaptive log; a `TypeLaw`, or a function of a row i and contexts (s, d) that
returns the probabilities (s, K) of row i's policy at the contexts."""


class Weighted(NamedTuple):
    """A weighted estimate with its interval and standard error."""

    estimate: float
    low: float
    high: float
    se: float


def stable(law: Law, context: Floats, policy: Floats) -> Floats:
    """Return rows' weights h (n,), computed from earlier contexts; the first is 1 / sqrt(K)."""
    if isinstance(law, TypeLaw):
        return _of_types(law, policy.shape)
    if not callable(law):
        raise InputError(
            f"Expected law={abbrev(law)} to be a function of i and contexts, or a TypeLaw."
        )
    n, K = policy.shape
    h = np.full(n, K**-0.5)
    for i in range(1, n):
        e = numbers_in("law", law(i, context[:i]))
        shaped(f"law({i}, ...)", e, (i, K))
        refuse_row("probabilities that sum to 1", is_law(e), f"law({i}, ...)")
        h[i] = _ratio(policy[:i], e).mean() ** -0.5
    return _finite(h)


def _of_types(law: TypeLaw, shape: tuple[int, ...]) -> Floats:
    (n, K), kind = shape, numbers_in("types", law.types)
    e, pi = numbers_in("law", law.probabilities), numbers_in("the types' policy", law.policy)
    shaped("types", kind, (n,))
    S = len(pi)
    shaped("the law of types", e, (n, S, K))
    shaped("the types' policy", pi, (S, K))
    refuse_row(f"types that are whole numbers below {S}", np.isin(kind, np.arange(S)))
    refuse_row("laws of types that sum to 1", is_law(e.reshape(n * S, K)).reshape(n, S).all(1))
    kinds = np.eye(S)[kind.astype(np.int64)]
    share = np.cumsum(kinds, axis=0) - kinds + 1  # N_s + 1, of earlier rows
    return _finite((np.vecdot(share, _ratio(pi, e)) / share.sum(axis=1)) ** -0.5)


def _ratio(policy: Floats, e: Floats) -> Floats:
    """Return the sum over arms of policy^2 / e, e the logging law; inf if e lacks a needed arm."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.where(policy > 0, policy**2 / e, 0.0).sum(axis=-1))


def _finite(h: Floats) -> Floats:
    if not (np.isfinite(h) & (h > 0)).all():
        raise InputError("Expected the law to give every arm of the policy a chance in every row.")
    return h


def weighted(values: Floats, h: Floats, alpha: float) -> Weighted:
    """Return the mean of terms `values` (n,) with weights h (n,), and its normal interval."""
    v = float(h @ values / h.sum())
    se = float(np.sqrt(np.square(h * (values - v)).sum()) / h.sum())
    room = float(ndtri(1 - alpha / 2)) * se
    return Weighted(v, v - room, v + room, se)
