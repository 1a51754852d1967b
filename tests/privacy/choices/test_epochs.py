"""Draws from the losses of an epoch, and noisy totals: laws, budgets, no trace of the past."""

from math import inf

import numpy as np
import pytest
from scipy.special import softmax
from scipy.stats import chi2, kstest, laplace

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices import BoundedRangeSpend, EpochSelection, NoisyTotal
from dpbandit.privacy.mechanism import BudgetExceededError
from dpbandit.privacy.sparse_vector import SegmentAboveThreshold

R, N = 200, 3
YES, NO, ZERO = np.ones(R, dtype=bool), np.zeros(R, dtype=bool), np.zeros(R)
LOSS = np.broadcast_to([1.0, 0.5, 0.0], (R, N))


def selection(*, epsilon=1.5, draws=1, uses=2000):
    return EpochSelection(N, Streams(range(R)), "pick", epsilon=epsilon, draws=draws, uses=uses)


def test_law():
    """Statistical: after 4 rounds weights are exp(-epsilon max(S, 3) / 2); chi-square of 40,000
    draws in 200 epochs, false alarm 1e-6; a floor or an epsilon 10 % off is caught (asserted)."""
    pick, counts = selection(), np.zeros(N)
    for _ in range(200):
        for t in range(4):
            last = YES if t == 3 else NO
            chosen = pick(LOSS, last, np.full(R, 3.0), last)
        counts += np.bincount(chosen, minlength=N)
    for epsilon, floor in ((1.5, 3.0), (1.65, 3.0), (1.5, 2.7)):
        law = softmax(-epsilon / 2 * np.maximum([4, 2, 0], floor))
        statistic = np.sum((counts - counts.sum() * law) ** 2 / (counts.sum() * law))
        assert (chi2.sf(statistic, N - 1) > 1e-6) == ((epsilon, floor) == (1.5, 3.0))


def test_an_epoch_leaves_no_trace():
    """Two pasts, then the end of an epoch: the same draws from there on, to the last bit, though
    sums of 0.1 are no exact numbers."""
    found = []
    for past in (0.1, 0.7):
        pick = selection(epsilon=1e5, draws=9)  # so little noise that rounding could be seen
        for t in range(1000):
            pick(np.full((R, N), past), NO, ZERO, YES if t == 999 else NO)
        rng = np.random.default_rng(0)
        found.append([pick(rng.random((R, N)) * 1e-4, YES, ZERO, NO) for _ in range(9)])
    np.testing.assert_array_equal(*found)


def test_budget_is_one_epoch():
    """`draws` in each epoch, however many there are; the spend is that of one."""
    pick = selection(draws=2)
    assert pick.spend.pure == 3.0
    assert isinstance(pick.spend, BoundedRangeSpend)
    for _ in range(5):
        pick(LOSS, YES, ZERO, NO)
        pick(LOSS, YES, ZERO, YES)
    pick(LOSS, YES, ZERO, NO)
    pick(LOSS, YES, ZERO, NO)
    with pytest.raises(BudgetExceededError, match="selection 3 of a replica exceeds draws=2"):
        pick(LOSS, YES, ZERO, NO)


def test_uniform_among_the_best():
    """At epsilon = inf; losses are clipped, what is no number becomes 0. 5 standard errors."""
    pick = selection(epsilon=inf, draws=100)
    loss = np.broadcast_to([7.0, np.nan, -inf], (R, N))
    counts = sum(np.bincount(pick(loss, YES, ZERO, NO), minlength=N) for _ in range(100))
    assert counts[0] == 0
    assert abs(counts[1] - counts[2]) < 5 * (100 * R) ** 0.5
    np.testing.assert_array_equal(pick.query(loss)[0], [1, 0, 0])
    assert pick.query(loss).strides[0] == 0


def test_noisy_total():
    """S(x) plus Laplace noise (Kolmogorov-Smirnov, false alarm 1e-6), -inf where not due."""
    total = NoisyTotal(N, Streams(range(R)), "total", scale=2.0, draws=60, uses=60)
    x, found = np.arange(R) % N, []
    for t in range(1, 61):
        due = np.arange(R) % 2 == t % 2
        answer = total(LOSS, x, due)
        assert (answer[~due] == -inf).all()
        found.append((answer - t * LOSS[0, x])[due])
    assert kstest(np.concatenate(found), laplace(scale=2).cdf, method="asymp").pvalue > 1e-6
    assert kstest(np.concatenate(found), laplace(scale=2.15).cdf, method="asymp").pvalue < 1e-2
    assert total.spend.pure == pytest.approx(30)
    exact = NoisyTotal(N, Streams([0]), "total", scale=0.0, draws=1, uses=1)
    assert exact.spend.pure == inf
    with pytest.raises(InputError, match=r"shape \(1, 2\) to be \(1, 3\)"):
        exact(np.zeros((1, 2)), np.zeros(1, dtype=int), YES[:1])


@pytest.mark.parametrize("yes", [True, 1, -1])
def test_answers_that_are_not_paid_for_are_refused(yes):
    """Two totals of each replica, asked for in their own time; the third of any one is refused."""
    total = NoisyTotal(N, Streams([0, 1]), "total", scale=2.0, draws=2, uses=9)
    loss, x = LOSS[:2], np.zeros(2, dtype=int)
    for due in ([True, False], [True, False], [False, True]):
        assert ((total(loss, x, yes * np.array(due)) > -inf) == due).all()
    total(loss, x, yes * np.array([False, True]))
    with pytest.raises(BudgetExceededError, match="total 3 of a replica exceeds draws=2"):
        total(loss, x, yes * np.array([True, False]))


def test_two_scales_cost_the_larger():
    """Segments whose tests and thresholds have noises of their own: Lemma A, each at its own."""
    for threshold, query in ((0.25, 0.125), (0.25, 0.5), (0.25, None)):
        test = SegmentAboveThreshold(
            Streams(range(R)), "svt", epsilon=threshold, query_epsilon=query, uses=1
        )
        assert test.spend.pure == max(threshold, query or 0)
    with pytest.raises(InputError, match=r"epsilon=-1.0"):
        SegmentAboveThreshold(Streams([0]), "svt", epsilon=1.0, query_epsilon=-1.0, uses=1)
