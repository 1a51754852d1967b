"""Compositions against the exact binomial curve, where deltas are below the rounding of 1."""

from math import exp, sqrt

import mpmath
import numpy as np
import pytest

from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.pure import PureSpend


def true_delta(n, epsilon, x):
    """Of n randomised responses at x: the sum over b of P(b) (1 - e^(x - epsilon (2 b - n)))+, b
    binomial; the first mass in 40 digits, the others by their ratios."""
    first = int((x / epsilon + n) / 2) + 1
    with mpmath.workdps(40):
        choose = (
            mpmath.loggamma(n + 1) - mpmath.loggamma(first + 1) - mpmath.loggamma(n - first + 1)
        )
        p = 1 / (1 + mpmath.exp(-mpmath.mpf(epsilon)))
        mass = mpmath.exp(choose + first * mpmath.log(p) + (n - first) * mpmath.log1p(-p))
    b = np.arange(first, min(n, first + int(20 * sqrt(n))) + 1)
    masses = float(mass) * np.append(1.0, np.cumprod((n - b[:-1]) / b[1:] * exp(epsilon)))
    return float(masses @ -np.expm1(x - epsilon * (2 * b - n)))


@pytest.mark.parametrize("n", [10**4, 10**5, 3 * 10**5])
def test_many_responses_have_their_binomial_delta(n):
    """Oracle: the certified epsilon is enough, by less than 1e-4 of delta. Errors of 1e-16 of the
    largest mass for each of n were too much: 3 % of delta at 1e-9, all of it at 1e-11."""
    epsilon = 1.5 / sqrt(n)
    ledger = Ledger((PureSpend.of("responses", [epsilon] * n),))
    for delta in (1e-9, 1e-10, 1e-11, 1e-12, 1e-13, 1e-100):
        x = ledger.epsilon(delta)
        assert (1 - 1e-4) * delta <= true_delta(n, epsilon, x) <= ledger.delta(x) <= delta
    for x in (11.7, 30.0, 100.0, 0.99 * ledger.pure):
        assert 0 < ledger.delta(x) <= 2e-13
    assert ledger.delta(ledger.pure) == 0
