"""The Wishart certificate, verified against laws and densities that its proof does not use."""

from contextlib import suppress
from itertools import pairwise, product
from math import exp, expm1, inf, lgamma, log, log1p, sqrt

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

from dpbandit.base.inputs import InputError
from dpbandit.privacy import curves
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.wishart import WishartSpend, _zero_out, least_degrees, paper_degrees
from tests.each import each


def spend(degrees, dim, nodes):
    return WishartSpend(degrees, dim, nodes, "test")


def densities_apart(W, change, degrees, L=1.0):
    """log f(W) - log f(W + change) of W_p(L^2 I, degrees) by determinants; inf off the cone."""
    moved = W + change
    p = W.shape[-1]
    here, there = np.linalg.slogdet(W)[1], np.linalg.slogdet(moved)[1]
    loss = (degrees - p - 1) / 2 * (here - there) + np.trace(change) / (2 * L**2)
    return np.where(np.linalg.eigvalsh(moved)[:, 0] > 0, loss, inf)


def hockey_stick(loss, epsilon):
    """The Monte-Carlo E[(1 - e^(epsilon - loss))_+] and its standard error."""
    excess = -np.expm1(np.minimum(epsilon - loss, 0.0))
    return excess.mean(), excess.std() / sqrt(len(excess))


@pytest.fixture(scope="module")
def nodes():
    """(degrees, noise (3 nodes, 60,000, 3, 3)) with L = 1, from Gaussian rows, not Bartlett."""
    rows = np.random.default_rng(0).standard_normal((3, 60_000, 14, 3))
    return 14, rows.swapaxes(-1, -2) @ rows


def exact_curve(degrees, dim, epsilon):
    """delta of removing or adding a row, one node: both worlds' losses over c ~ chi^2(k - p)."""
    a, f = (degrees - dim - 2) / 2, degrees - dim
    scale = lgamma(f / 2) + f / 2 * log(2)

    def integral(loss, low, high):
        def integrand(c):
            return max(0.0, -expm1(epsilon - loss(c))) * exp((f / 2 - 1) * log(c) - c / 2 - scale)

        inside = np.linspace(
            max(low, f - 15 * sqrt(2 * f)), min(high, f + 15 * sqrt(2 * f) + 60), 40
        )
        ends = [low, *inside] if low < inside[0] else inside
        return sum(quad(integrand, *e, epsabs=0, epsrel=1e-9)[0] for e in pairwise(ends))

    with_row = 0.0
    if epsilon < 0.5:
        with_row = integral(lambda c: 0.5 - a * log1p(1 / c), 1 / expm1((0.5 - epsilon) / a), inf)
    largest = -1 / expm1(-(epsilon + 0.5) / a)
    without = integral(lambda c: -0.5 - a * log1p(-1 / c), 1 + 1e-12, largest)
    return max(with_row, without + chi2.cdf(1, f))


def one_row(degrees, dim, nodes, epsilon):
    """The certified curve of removing or adding one row."""
    return max(loss.delta(epsilon) for loss in _zero_out(degrees, dim, nodes))


@pytest.mark.parametrize(("degrees", "dim"), [(13.5, 4), (40_000, 6)])
def test_one_node_is_the_integral_over_the_chi_square(degrees, dim):
    """Oracle: the curve lies between quadrature over the chi-square law at epsilon and one cell to
    the left of it."""
    scale, step = 1 / sqrt(2 * (degrees - dim)), _zero_out(degrees, dim, 1)[0].step
    assert step < 0.05 * scale
    for share in (0.3, 1.0, 2.5, 5.0):
        ours = one_row(degrees, dim, 1, share * scale)
        assert exact_curve(degrees, dim, share * scale) * (1 - 1e-9) <= ours
        assert ours <= exact_curve(degrees, dim, share * scale - step) * (1 + 1e-5)


@each("h", [1, 3])
def test_actual_densities_meet_the_curve(nodes, h):
    """Statistical: of p = 3, rows of norm 1 and 0.6, removed and added, stay below the curve (5
    errors, false alarm below 1e-5); with p = 2 and the padding it is the exact law, within 4 % of
    discretisation; one with k + 1 degrees of freedom is not (asserted)."""
    degrees, W = nodes
    for length, epsilon in product((1.0, 0.6), (0.1, 0.2, 0.3, 0.6, 0.8, 1.5)):
        row = length * np.array([0.6, 0.0, 0.8])
        losses = (
            sum(densities_apart(w, sign * np.outer(row, row), degrees) for w in W[:h])
            for sign in (1, -1)
        )
        worst, error = max(hockey_stick(loss, epsilon) for loss in losses)
        assert worst <= one_row(degrees, 3, h, epsilon) + 5 * error
        if length == 1 and epsilon in (0.2, 0.6):
            bound = one_row(degrees, 2, h, epsilon)
            assert worst - 5 * error <= bound <= 1.04 * worst + 5 * error
            assert one_row(degrees + 1, 2, h, epsilon) < worst - 5 * error


@pytest.mark.parametrize("epsilon", [0.5, 2.0, 6.0])
def test_replacing_is_removing_then_adding(epsilon):
    """Oracle: group privacy by hand, d1(s) + e^s d2(e - s): no less than over the best split s, no
    more than at s = e/2."""
    removing, adding = (loss.delta for loss in _zero_out(60, 4, 3))
    splits = [float(s) for s in np.linspace(0, epsilon, 301)]
    best = min(removing(s) + np.exp(s) * adding(epsilon - s) for s in splits)
    half = one_row(60, 4, 3, epsilon / 2)
    assert 0.99 * best <= spend(60, 4, 3).delta(epsilon)
    assert spend(60, 4, 3).delta(epsilon) <= (1 + np.exp(epsilon / 2)) * half * (1 + 1e-12) + 1e-12


def test_certificate_has_the_gaussian_limit():
    """Oracle: for large k a removed row is mu = 1 / sqrt(2 k) a node, twice that for a replacement
    by group privacy; and less than 1.6 times the exchange itself, mu = sqrt(h/k)."""
    for k, h in ((1000, 14), (10_000, 14), (10_000, 1), (1_000_000, 20)):
        epsilon = Ledger((spend(k, 6, h),)).epsilon(1e-5)
        limit = curves.epsilon_of(2 * sqrt(h / (2 * k)), 1e-5)
        assert limit < epsilon < 1.05 * limit
        assert epsilon < 1.6 * curves.epsilon_of(sqrt(h / k), 1e-5)


def test_least_degrees_is_least_and_falls():
    """Oracle: k meets the target, k - 1 does not (unless k is the smallest that has a density); a
    weaker claim never needs more noise: the factor of group privacy must not win over the tail."""
    for epsilon, dim, h in ((0.1, 3, 1), (1.0, 30, 7), (3.0, 6, 14)):
        k = least_degrees(epsilon, 1e-5, dim=dim, nodes=h)
        assert spend(k, dim, h).delta(epsilon) <= 1e-5
        assert k == dim + 4 or spend(k - 1, dim, h).delta(epsilon) > 1e-5
    claims = (0.05, 3.0, 20.0)
    degrees = [least_degrees(epsilon, 1e-5, dim=6, nodes=14) for epsilon in claims]
    assert degrees == sorted(degrees, reverse=True)
    for epsilon, k in zip(claims, degrees, strict=True):
        assert Ledger((spend(k, 6, 14),)).epsilon(1e-5) <= epsilon


def test_limits():
    """By hand: no node or no privacy asked: nothing to pay; printed k = p + ceil(224 m ...). A
    delta of 1e-15 or an epsilon of 50 is a legal target: it is met, or refused as InputError."""
    assert spend(20, 4, 0).delta(0.1) == spend(20, 4, 3).delta(inf) == 0.0
    assert least_degrees(inf, 1e-5, dim=6, nodes=3) == least_degrees(1, 1e-5, dim=6, nodes=0) == 10
    # 224 x 2 / 1 x ln(16 / 0.1) x ln(2 / 0.1) = 448 x 5.07517 x 2.99573 = 6811.3
    assert paper_degrees(1.0, 0.1, dim=5, levels=2) == 5 + 6812
    for epsilon, delta in ((1.0, 1e-15), (50.0, 1e-5)):
        with suppress(InputError):
            k = least_degrees(epsilon, delta, dim=6, nodes=14)
            assert spend(k, 6, 14).delta(epsilon) <= delta


def test_tiny_deltas_are_not_rounded_to_nothing():
    """Oracle: far below 1e-16 (quadrature: 1.9e-19, 1.2e-59), where 1 - cdf cancels, the curve is
    no smaller than the law."""
    for degrees, epsilon in ((300, 0.6), (40_000, 0.06)):
        assert one_row(degrees, 6, 1, epsilon) >= exact_curve(degrees, 6, epsilon) > 0
