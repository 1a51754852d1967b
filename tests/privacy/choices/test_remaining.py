"""Peeling in instalments: the law of every instalment, and nobody twice."""

from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.choices import RemainingTopK
from dpbandit.privacy.mechanism import BudgetExceededError


def test_an_instalment_is_peeling_among_those_who_are_left():
    """Statistical: S = (0, 1, 3, 2, 2.5), expert 1 gone, two picks: Plackett-Luce with weights
    exp(-eta max(S, 0.5) / 2), multiplied out. Chi-square of 4,000 replicas, false alarm 1e-6;
    weights exp(-eta S) are caught (asserted)."""
    R, eta, losses = 4000, 1.2, np.array([0.0, 1.0, 3.0, 2.0, 2.5])
    top = RemainingTopK(5, Streams(range(R)), "t", k=2, epsilon=eta, draws=1, uses=4, floor=0.5)
    taken = np.zeros((R, 5), dtype=bool)
    taken[:, 1] = True
    no, everyone = np.zeros(R, dtype=bool), np.ones(R, dtype=bool)
    for _ in range(3):
        assert (top(np.tile(losses / 3, (R, 1)), no, taken) == -1).all()
    picks = top(np.zeros((R, 5)), everyone, taken)
    pairs = list(permutations((0, 2, 3, 4), 2))
    counts = [np.sum((picks == pair).all(axis=1)) for pair in pairs]
    assert sum(counts) == R
    for power, fits in ((0.5, True), (1.0, False)):
        weight = np.exp(-power * eta * np.maximum(losses, 0.5)) * (np.arange(5) != 1)
        total = weight.sum()
        chance = [weight[i] / total * weight[j] / (total - weight[i]) for i, j in pairs]
        assert (stats.chisquare(counts, R * np.array(chance)).pvalue > 1e-6) == fits


def test_everybody_once_then_nobody():
    """Edges: 5 candidates in instalments of 2, of which one is taken before: 2, 2, none; picks are
    paid for as often as they can happen."""
    top = RemainingTopK(5, Streams([3]), "t", k=2, epsilon=0.3, draws=3, uses=3, most=4)
    assert top.spend.pure == pytest.approx(4 * 0.3)
    taken, due = np.eye(5, dtype=bool)[:1].copy(), np.array([True])
    rounds = []
    for _ in range(3):
        picks = top(np.full((1, 5), np.nan), due, taken)[0]
        taken[0, picks[picks >= 0]] = True
        rounds.append(picks)
    assert sorted(np.concatenate(rounds).tolist()) == [-1, -1, 1, 2, 3, 4]
    odd = RemainingTopK(3, Streams([3]), "t", k=2, epsilon=0.3, draws=1, uses=1)
    last = odd(np.zeros((1, 3)), due, np.array([[True, True, False]]))
    np.testing.assert_array_equal(last, [[2, -1]])


def test_picks_that_are_not_paid_for_are_refused():
    """Two instalments of 2 out of 5, 3 picks paid for: the fourth of a replica is not released,
    and those whom the caller forgets to take are no way around it."""
    top = RemainingTopK(5, Streams([0, 1]), "t", k=2, epsilon=0.3, draws=2, uses=3, most=3)
    nobody = np.zeros((2, 5), dtype=bool)
    assert (top(np.zeros((2, 5)), np.array([True, True]), nobody) >= 0).all()
    one_left = nobody.copy()
    one_left[0, 1:] = True
    picks = top(np.zeros((2, 5)), np.array([True, False]), one_left)
    np.testing.assert_array_equal(picks, [[0, -1], [-1, -1]])
    with pytest.raises(BudgetExceededError, match="pick 4 of a replica exceeds most=3"):
        top(np.zeros((2, 5)), np.array([False, True]), nobody)
    with pytest.raises(InputError, match="most=6"):
        RemainingTopK(5, Streams([0]), "t", k=2, epsilon=0.3, draws=2, uses=3, most=6)
