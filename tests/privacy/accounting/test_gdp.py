"""Gaussian differential privacy against printed tables, dp_accounting and 60 digits of mpmath."""

from math import exp, inf, log10, sqrt

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpbandit.privacy.curves import delta_of, epsilon_of, mu_of, rho_of_mu
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.pure import PureSpend
from tests.each import each
from tests.lazy import Lazy

dp_accounting = Lazy("dp_accounting")

GRID = [(e, d) for e in (0.05, 0.5, 1.0, 4.0, 15.0) for d in (1e-12, 1e-6, 1e-3, 0.2)]
EPSILONS = st.floats(1e-2, 50.0)
DELTAS = st.floats(-20.0, -0.3).map(lambda exponent: 10.0**exponent)


def true_delta(mu, epsilon):
    """Phi(-e/mu + mu/2) - exp(e) Phi(-e/mu - mu/2) with 60 digits that count."""
    with mpmath.workdps(60 + int(abs(log10(epsilon or 1)) + max(0.0, -log10(mu)))):
        m, e = mpmath.mpf(mu), mpmath.mpf(epsilon)
        return mpmath.ncdf(m / 2 - e / m) - mpmath.exp(e) * mpmath.ncdf(-m / 2 - e / m)


@each(("epsilon", "delta"), GRID)
def test_the_three_functions_equal_dp_accounting(epsilon, delta):
    """Oracle: mu is 1/sigma of Google's exact Gaussian calibration; both inverses agree to 1e-8."""
    sigma = dp_accounting.get_sigma_gaussian(epsilon, delta)
    assert mu_of(epsilon, delta) == pytest.approx(1 / sigma, rel=1e-8)
    assert delta_of(1 / sigma, epsilon) == pytest.approx(delta, rel=1e-8)
    reference = dp_accounting.get_epsilon_gaussian(sigma, delta)
    assert epsilon_of(1 / sigma, delta) == pytest.approx(reference, rel=1e-8)


@given(EPSILONS, DELTAS)
@settings(derandomize=True, deadline=None, max_examples=80)
def test_inversions_return_and_round_towards_privacy(epsilon, delta):
    """Property: delta_of(mu_of(e, d), e) <= d and epsilon_of is never below the exact root, in 60
    digits; still, neither gives away more than 1e-6 of delta, relatively."""
    mu = mu_of(epsilon, delta)
    assert (1 - 1e-6) * delta <= delta_of(mu, epsilon) <= delta
    assert true_delta(mu, epsilon) <= delta
    back = epsilon_of(mu, delta)
    assert (1 - 1e-6) * delta <= true_delta(mu, back) <= delta


def test_limits():
    """Golden, by hand: mu = 0 reveals nothing, mu = inf everything; delta = 0 admits no noise;
    at epsilon = 0 delta is the total variation 2 Phi(mu/2) - 1, 0.3829249225 at mu = 1."""
    assert delta_of(0.0, 1.0) == epsilon_of(0.0, 0.0) == epsilon_of(0.0, 1e-5) == 0.0
    assert delta_of(inf, 1.0) == 1.0
    assert delta_of(inf, inf) == delta_of(2.0, inf) == 0.0
    assert epsilon_of(inf, 1e-5) == epsilon_of(1.0, 0.0) == inf
    assert mu_of(1.0, 0.0) == 0.0
    assert mu_of(inf, 1e-5) == mu_of(inf, 0.0) == mu_of(1.0, 1.0) == inf
    assert delta_of(1.0, 0.0) == pytest.approx(0.38292492254802624, rel=1e-13)
    assert epsilon_of(1.0, 0.3830) == 0.0 < epsilon_of(1.0, 0.3829)
    assert rho_of_mu(0.5) == 0.125


@each("epsilon", [1e-58, 1e-12, 1e-9, 1e-7])
@each("delta", [1e-300, 1e-30, 1e-20, 1e-9])
def test_tiny_epsilons_are_not_exceeded(epsilon, delta):
    """Oracle: where both terms of delta are nearly equal, and their difference is all rounding: it
    exceeded the target 3.5 times at (1e-12, 1e-30), and took over 100 steps at 1e-58."""
    mu = mu_of(epsilon, delta)
    assert (1 - 1e-5) * delta <= true_delta(mu, epsilon) <= delta
    assert delta_of(mu, epsilon) == pytest.approx(float(true_delta(mu, epsilon)), rel=1e-11, abs=0)
    assert (1 - 1e-5) * delta <= true_delta(mu, epsilon_of(mu, delta)) <= delta


@each("epsilon", [1e-6, 1.0, 1e3])
@each("delta", [1e-300, 1e-20, 1e-6, 0.9])
def test_extreme_values_do_not_overflow(epsilon, delta):
    """Oracle: at the edge of double precision no warning is raised and the true delta of the mu
    found stays within 1e-3 (relative) of the one asked for, the epsilon alike."""
    mu = mu_of(epsilon, delta)
    assert float(true_delta(mu, epsilon) / mpmath.mpf(delta)) == pytest.approx(1, abs=1e-3)
    back = epsilon_of(mu, delta)
    assert float(true_delta(mu, back) / mpmath.mpf(delta)) == pytest.approx(1, abs=1e-3)


def exact_delta(n, epsilon, x):
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
        assert (1 - 1e-4) * delta <= exact_delta(n, epsilon, x) <= ledger.delta(x) <= delta
    for x in (11.7, 30.0, 100.0, 0.99 * ledger.pure):
        assert 0 < ledger.delta(x) <= 2e-13
    assert ledger.delta(ledger.epsilon(0.0)) == 0
