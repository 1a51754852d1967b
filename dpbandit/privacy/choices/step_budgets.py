"""Budgets of many noisy minima, one for each step, that together just meet a privacy target."""

from functools import cache
from math import inf, log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, gaussian_target, one_of, privacy_target, whole
from dpbandit.privacy import curves
from dpbandit.privacy.choices.noisy_vertex import LAWS, SelectionNoise
from dpbandit.privacy.ledger import Ledger, most

Profile: TypeAlias = Literal["inverse-sqrt", "uniform"]
_ENOUGH = 0.996
"""A certificate of that much of the target is close enough: another one costs a second."""
_MOST = 1e3
"""Times what the plain sum and zCDP allow."""


def paper_budgets(n: int, *, epsilon: float, delta: float) -> Floats:
    """What the printed noise of private online Frank-Wolfe buys in each of n steps.

    Han et al. (see `DPHDBChoices`) print::

        b_t = 4 D (beta D + L) sqrt(ln n ln(1/delta)) / (epsilon sqrt t).

    With S = 2 (beta D + L) a noisy minimum of scale b_t is epsilon_t-DP::

        epsilon_t = D S / ((t+1) b_t) = epsilon sqrt t / (2 (t+1) sqrt(ln n ln(1/delta))).

    Raises `InputError` for n = 1, where ln 1 = 0 means no noise at all.
    """
    whole("n", n, 1)
    gaussian_target(epsilon, delta)
    if epsilon == inf:
        return np.full(n, inf)
    if n == 1:
        raise InputError("Expected n=1 to be at least 2 steps: ln 1 = 0 prints no noise at all.")
    t = np.arange(1, n + 1)
    budgets: Floats = epsilon * np.sqrt(t) / (2 * (t + 1) * sqrt(log(n) * log(1 / delta)))
    return budgets


@cache
def certified_budgets(
    n: int, *, noise: SelectionNoise, profile: Profile, epsilon: float, delta: float
) -> Floats:
    """epsilon_t = c / sqrt t (inverse-sqrt) or c (uniform) with c close to the largest in budget.

    The certificate, the lesser of the exact loss distribution and zCDP, comes out between 0.99 and
    1 of epsilon. c starts where the plain sum or zCDP meets the target. delta = 0: the plain sum is
    epsilon.

    >>> budgets = certified_budgets(
    ...     100, noise="gumbel", profile="uniform", epsilon=1.0, delta=0.0)
    >>> round(float(budgets.sum()), 9)
    1.0
    """
    whole("n", n, 1)
    one_of("noise", noise, LAWS)
    one_of("profile", profile, ("inverse-sqrt", "uniform"))
    privacy_target(epsilon, delta)
    t = np.arange(1, n + 1)
    shape = np.sqrt(1 / t) if profile == "inverse-sqrt" else np.ones(n)
    budgets: Floats = shape * _constant(shape, noise, epsilon, delta)
    budgets.flags.writeable = False
    return budgets


def _constant(shape: Floats, noise: SelectionNoise, epsilon: float, delta: float) -> float:
    spend = LAWS[noise][1]
    pure = epsilon / float(shape.sum()) * (1 - 1e-12)  # the plain sum is within the target
    if epsilon == inf or delta == 0:
        return pure

    def ledger(c: float) -> Ledger:
        return Ledger((spend.of("", c * shape),))

    by_zcdp = sqrt(curves.zcdp_rho_of(epsilon, delta) / spend.of("", shape).rho) * (1 - 1e-12)
    low = max(pure, by_zcdp)
    return most(ledger, epsilon=epsilon, delta=delta, low=low, high=_MOST * low, close=_ENOUGH)
