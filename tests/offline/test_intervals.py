"""Intervals: against a loop over rows and candidates, by hand, and where they are empty."""

from math import log, sqrt

import numpy as np
import pytest

from dpbandit import InputError
from dpbandit.offline import TypeLaw
from dpbandit.offline.estimators import Terms
from dpbandit.offline.intervals import (
    Stakes,
    betting,
    bootstrap,
    empirical_bernstein,
    stable,
    standard_error,
    student,
    weighted,
)

RNG = np.random.default_rng(1000)
W = np.where(RNG.random(150) < 0.1, 10.0, 0.0)
R = (RNG.random(150) < 0.6) * 1.0
STAKES = Stakes(W * R, W * (1 - R))


def looped(w, r, a, *, how, w_max):
    """The lower end, row by row, every candidate from below until the first that stays."""
    n, bets, x, below = len(w), [], [], []
    S, Q, paid, weight = 0.5, 0.25, 0.5, 0.0
    for i in range(1, n + 1):
        c = min(max(paid / (1 + weight), 0), 1) if how == "betting-cv" else 0.0
        X = w[i - 1] * (r[i - 1] - c) + c
        rounds = i * log(i + 1) if how == "sequence" else n
        bets.append(sqrt(2 * log(1 / a) / (Q / i * rounds)))
        x.append(X)
        below.append(c * (w_max - 1))
        S += X
        Q += (X - S / (i + 1)) ** 2
        paid += w[i - 1] * r[i - 1]
        weight += w[i - 1]
    low = 0.0
    for k in range(1, 500):
        m, wealth, most = k / 500, 0.0, 0.0
        for bet, X, room in zip(bets, x, below, strict=True):
            wealth += log(1 + min(bet, 0.75 / (m + room)) * (X - m))
            most = max(most, wealth)
        if most < log(1 / a):
            return low
        low = m
    return low


@pytest.mark.parametrize("how", ["betting", "betting-cv", "sequence"])
def test_bets_are_those_of_a_loop(how):
    """Oracle: every wealth, row by row; what is found by halving is what is found one by one."""
    expected = [
        looped(W, R, 0.025, how=how, w_max=10.0),
        looped(W, 1 - R, 0.025, how=how, w_max=10),
    ]
    low, high = betting(STAKES, 0.05, how, 10.0)
    assert (low, 1 - high) == pytest.approx(expected, abs=1e-12)
    assert 0 < low < 0.6 < high < 1


def test_users_of_two_laws_leave_nothing():
    """Rewards 1, then 0: no mean fits both, and low > high says so."""
    r = np.repeat([1.0, 0.0], 500)
    low, high = betting(Stakes(r, 1 - r), 0.05, "betting")
    assert low > high


def test_large_samples_agree_and_bernstein_is_wide():
    """By hand: two weights, normalised; percentiles near Student's; Maurer and Pontil's formula."""
    r, w = np.array([0.0, 1.0, 1.0]), np.array([1.0, 1.0, 2.0])
    terms = Terms(np.zeros(3), w * r, w, normalised=True)
    assert terms.estimate == pytest.approx(0.75)
    assert terms.errors == pytest.approx(np.array([-0.75, 0.25, 0.5]) / (4 / 3))
    assert standard_error(terms) == pytest.approx(sqrt(0.875 * 9 / 16 / 6))
    many = Terms(np.zeros(2000), np.tile(w * r, 667)[:2000], np.tile(w, 667)[:2000], True)
    assert bootstrap(many, 0.05, seed=1) == pytest.approx(student(many, 0.05), abs=0.003)
    low, high = empirical_bernstein(STAKES, 0.05, 10.0)
    room = sqrt(2 * STAKES.up.var(ddof=1) * log(80) / 150) + 70 * log(80) / (3 * 149)
    assert (low, high) == (max(0, STAKES.up.mean() - room), min(1, STAKES.up.mean() + room))


def test_a_law_at_contexts_is_that_of_types_up_to_the_first_guess():
    """With types as contexts; types start with one user each, contexts with none. By hand too."""
    n, policy = 400, np.array([[1.0, 0.0], [0.0, 1.0]])
    kind = np.arange(n) % 2
    e = np.clip(np.linspace(0.5, 0.1, n), 0.1, 0.5)
    table = np.empty((n, 2, 2))
    table[:, 0], table[:, 1] = np.stack([1 - e, e], 1), np.stack([0.3 + 0 * e, 0.7 + 0 * e], 1)
    types = stable(TypeLaw(kind, table, policy), np.zeros((n, 1)), policy[kind])
    context = stable(lambda i, x: table[i, x[:, 0].astype(int)], kind[:, None], policy[kind])
    assert types[0] == pytest.approx(((1 / table[0, 0, 0] + 1 / 0.7) / 2) ** -0.5)
    assert context[0] == pytest.approx(0.5**0.5)
    assert types[100:] == pytest.approx(context[100:], rel=0.01)
    v = weighted(np.array([1.0, 0.0]), np.array([3.0, 1.0]), 0.05)
    assert (v.estimate, v.se) == pytest.approx((0.75, sqrt(0.75**2 + 0.75**2) / 4))
    with pytest.raises(InputError, match="every arm of the policy a chance"):
        stable(
            TypeLaw(kind, np.tile([1.0, 0.0], (n, 2, 1)), policy), np.zeros((n, 1)), policy[kind]
        )
