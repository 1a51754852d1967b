"""How the lazy players are set: the number of draws, and the published table of calibrations."""

from math import inf, log

import numpy as np
import pytest
from scipy.stats import gamma

from dpbandit.agents.experts.calibration import (
    certified,
    chernoff,
    completions,
    draws_needed,
    expected_segments,
    paper,
    tightened,
)
from dpbandit.base.inputs import InputError

CS = (1, 1.5, 2, 2.5, 3, 3.5, 4, 5, 6, 8)
"""The values of c behind the table. Ours have 4.5 and others, too, and a bound no larger."""

TABLE = """
16 1000 190 2.635e-03 1690 11 3.5 .375 5.6818e-02 98.4 5.168 528 6.8100e-02 85.9 462
16 1000000 356 1.406e-03 3182 15 4.0 .400 4.0000e-02 169.1 4.833 834 5.3504e-02 136.2 674
256 10000 270 1.858e-03 2379 19 4.0 .325 3.5526e-02 169.3 8.884 1540 5.1816e-02 123.2 1126
4096 1000000 404 1.239e-03 3566 29 4.0 .325 2.3276e-02 256.9 12.942 3377 4.0212e-02 164.5 2172
"""
"""d, T; printed K, eta, threshold; certified K, c, f, eta, threshold, segments, bound - beta T;
with delta = 1e-6 eta, threshold, bound - beta T. All at epsilon = 1, beta = 1/T, L* = 0."""
ROWS = [[float(x) for x in line.split()] for line in TABLE.strip().split("\n")]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]:.0f}-{row[1]:.0f}")
def test_published_calibrations(row):
    """Golden: an independent program's table, to the digits it has."""
    d, T = int(row[0]), int(row[1])
    target = {"epsilon": 1.0, "failure": 1 / T}
    printed = paper(d, T, delta=0.0, **target)
    pure, mixed = (certified(d, T, delta=delta, cs=CS, **target) for delta in (0.0, 1e-6))
    found = [printed.draws, printed.eta, printed.margin, pure.draws, pure.c, pure.test_epsilon]
    found += [pure.eta, pure.margin, pure.segments, pure.bound - 1]
    found += [mixed.eta, mixed.margin, mixed.bound - 1]
    half_digits = [0, 5e-7, 0.5, 0, 0, 1e-9, 5e-7, 0.05, 6e-4, 0.5, 5e-7, 0.05, 0.5]
    errors = np.abs(np.subtract(found, row[2:])) / np.maximum(half_digits, 1e-12)
    assert errors.max() <= 1 + 1e-6
    assert certified(d, T, delta=0.0, **target).bound <= pure.bound * (1 + 1e-12)


@pytest.mark.parametrize("d", [2, 16, 4096])
def test_completions(d):
    """Oracles: at c = inf drops are exponential and their sums Gamma: never below, less than 3 %
    above. Else simulation of sums, as they are and with all that k roundings may take away (5
    standard errors of 20,000, false alarm below 1e-4 in all). The closed form is larger."""
    k = np.arange(1, 12)
    exact = gamma.cdf(log(d), k)
    found = completions(d, inf)[1:12]
    k, exact = k[: len(found)], exact[: len(found)]
    assert (found >= exact).all()
    np.testing.assert_allclose(found, exact, rtol=0.03, atol=1e-11)
    for c in (1.0, 4.0):
        u = np.random.default_rng(0).random((20_000, 60))
        sums = -np.log1p(u * np.expm1(-c / 2)).cumsum(axis=1)
        rounded_away = np.arange(1, 61) * log(d) / 2000
        low, high = ((sums <= log(d) + slack).mean(axis=0) for slack in (0, rounded_away))
        bound = np.append(completions(d, c)[1:], np.zeros(60))[:60]
        error = 5 * np.sqrt(high * (1 - high) / len(u)) + 5e-4
        assert (low - error <= bound).all()
        assert (bound <= high + error).all()
        for K in range(5, min(30, len(completions(d, c)) - 1), 5):
            assert chernoff(d, c, K) >= completions(d, c)[K + 1] * (1 - 1e-2) - 1e-11


def test_draws_needed():
    """Golden: d = 256 at beta = 1/(2T), T = 1e4: 25, 19, 17 at c = 2, 4, infinity, 8.88 segments.
    Least of its kind; where the grid ends the closed form takes over, and never asks for less."""
    assert [draws_needed(256, c, 0.5e-4) for c in (2.0, 4.0, inf)] == [25, 19, 17]
    assert expected_segments(256, 4.0) == pytest.approx(8.88, abs=0.005)
    for failure in (0.3, 1e-3, 1e-9):
        K = draws_needed(256, 4.0, failure)
        assert completions(256, 4.0)[K + 1] <= failure < completions(256, 4.0)[K]
    needs = [draws_needed(256, 4.0, failure) for failure in (1e-10, 1e-13, 1e-20, 1e-40)]
    assert needs == sorted(needs)
    assert chernoff(256, 4.0, needs[-1]) <= 1e-40 < chernoff(256, 4.0, needs[-1] - 1)
    assert (draws_needed(1, 4.0, 1e-3), expected_segments(1, 4.0)) == (0, 1)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_budgets_add_up(epsilon):
    """Pure: epsilon exactly. Mixed: the closed form is within the target, the tightened eta meets
    it and is larger. Printed: 3/4 of epsilon, for tests and draws are paid half and quarter."""
    target = {"epsilon": epsilon, "delta": 1e-6}
    plan = certified(64, 1000, epsilon=epsilon, delta=0.0, failure=1e-3)
    assert epsilon * (1 - 1e-9) <= plan.ledger.pure <= epsilon
    closed = certified(64, 1000, failure=1e-3, **target)
    plan = tightened(closed, **target)
    assert plan.ledger.delta(epsilon) <= 1e-6
    assert closed.ledger.delta(epsilon) <= 1e-6
    assert closed.eta < plan.eta
    assert plan.margin < closed.margin
    assert plan.bound < closed.bound
    assert plan.ledger.epsilon(1e-6) == pytest.approx(epsilon, rel=2e-3)
    printed = paper(64, 1000, epsilon=epsilon, delta=0.0, failure=1e-3)
    assert printed.ledger.pure == pytest.approx(0.75 * epsilon, rel=3e-3)


def test_scales():
    """Pure: lengths scale as 1 / epsilon but for the 1 of a round, eta as epsilon."""
    one, ten = (paper(16, 1000, epsilon=e, delta=0.0, failure=1e-3) for e in (1.0, 10.0))
    assert ten.margin == pytest.approx(one.margin / 10)
    assert ten.eta == pytest.approx(10 * one.eta)
    fixed = paper(16, 1000, epsilon=1.0, delta=0.0, failure=1e-3, fixed=True)
    assert fixed.margin - one.margin == pytest.approx(8 * log(2e6 / 1e-3))
    with pytest.raises(InputError, match=r"epsilon=100.0 <= 4 ln"):
        paper(16, 1000, epsilon=100.0, delta=1e-6, failure=1e-3)
