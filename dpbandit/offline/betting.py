"""Intervals by betting against every candidate mean, valid for any n and for adaptive logs.

Waudby-Smith and Ramdas, "Estimating means of bounded random variables by betting", JRSS B 2024;
Karampatziakis, Mineiro and Ramdas, "Off-policy confidence sequences", ICML 2021::

    wealth of a bet against m    K(m) = prod_i (1 + lambda_i (X_i - m)),  X_i = w_i r_i >= 0
    lower end                    largest m below which every wealth reached 1 / a at some time

**Proof.** For a fixed policy and users of one law given the past, E[X_i | past] = v, so with
lambda_i in [0, 1 / m) chosen from earlier rows K(m) is a nonnegative supermartingale at every m >=
v, and by Ville's inequality it reaches 1 / a with probability at most a. The upper end is 1 minus
the lower end of w (1 - r), since E[w (1 - r)] <= 1 - v. No bound on w is needed. Without support
X_i is smaller in mean and so is w (1 - r), and both ends still hold; a control variate, which uses
E[w] = 1, then does not.
"""

from math import log
from typing import Literal, NamedTuple

import numpy as np

from dpbandit.base.arrays import Floats

Betting = Literal["betting", "betting-cv", "sequence"]
_STEP = 0.002
_CANDIDATES = 499
"""Means 0.002, 0.004, ..., 0.998."""
_SHARE = 0.75
"""Of what may be lost at most that a bet risks."""


class Stakes(NamedTuple):
    """Rewards in [0, 1] as they count in the estimate."""

    up: Floats
    """(n,), w r"""
    down: Floats
    """(n,), w (1 - r)"""


def betting(stakes: Stakes, alpha: float, how: Betting, w_max: float = 1.0) -> tuple[float, float]:
    """Ends that hold together with probability 1 - alpha; low > high says that users were not of
    one law, or that probabilities are false.

    Args:
        stakes: in order of collection, if the log is adaptive.
        alpha: 0.05 for 95 %.
        how: "betting", for a number of rows that was fixed in advance; "sequence", for every number
            at once; "betting-cv", less wide by a control variate where weights are public.
        w_max: the largest weight, for the last.
    """
    up, down = stakes
    a, still = alpha / 2, np.zeros(1)
    if how == "betting-cv":
        sides = [_varied(up, down, w_max), _varied(down, up, w_max)]
    else:
        sides = [(up, still), (down, still)]
    low, high = (_lower(x, below, a, sequence=how == "sequence") for x, below in sides)
    return low, 1 - high


def _varied(x: Floats, other: Floats, w_max: float) -> tuple[Floats, Floats]:
    """w (r - c) + c with c, the mean so far, from earlier rows, and how far below 0 that may be."""
    w = x + other
    before = np.concatenate([[0.0], np.cumsum(w)[:-1]])
    c = ((0.5 + np.concatenate([[0.0], np.cumsum(x)[:-1]])) / (1 + before)).clip(0, 1)
    return x - c * w + c, c * max(w_max - 1, 0)


def _lower(x: Floats, below: Floats, a: float, *, sequence: bool = False) -> float:
    """The lower end for the mean of x >= -below, each (n,)."""
    n, goal = len(x), log(1 / a)
    i = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(x)) / (i + 1)
    spread = 0.25 + np.concatenate([[0.0], np.cumsum(np.square(x - mean))[:-1]])
    rounds = i * np.log(i + 1) if sequence else n
    bet = np.sqrt(2 * goal / (spread / i * rounds))

    def loses(k: int) -> bool:
        m = k * _STEP
        wealth = np.cumsum(np.log1p(np.minimum(bet, _SHARE / (m + below)) * (x - m)))
        return bool(wealth.max() >= goal)

    lost, kept = 0, _CANDIDATES + 1  # every wealth falls as m grows, so halving finds the last
    while kept - lost > 1:
        middle = (lost + kept) // 2
        lost, kept = (middle, kept) if loses(middle) else (lost, middle)
    return lost * _STEP
