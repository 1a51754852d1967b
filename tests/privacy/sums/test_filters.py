"""A privacy filter: what adaptive readings show together, refusals, and what sizes may know."""

from fractions import Fraction
from math import sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit.agents.arms.play import ArmAgent
from dpbandit.base import InputError, Streams
from dpbandit.privacy import ClippedVectors, FilteredSum, Ledger, delta_of
from dpbandit.privacy.curves import deltas_of
from dpbandit.privacy.moments import ArmRewards, Grams
from dpbandit.specs import ContextualSpec
from dpbandit.testing import check_agent
from tests.each import each, refused

ONE = ClippedVectors(1, 0.5)
"""Sensitivity 1"""


class CountsAfterwards(FilteredSum):
    """Broken: a reading is granted while anything is left, and counted when it is over."""

    needs = FilteredSum.needs

    def ask(self, mu):
        left = self.used < self.mu**2
        budget, self.mu = self.mu, np.inf
        granted = super().ask(np.where(left, mu, 0.0))
        self.mu = budget
        return granted


def shown_by(kind, first, then):
    """delta(epsilon) of two readings of budget 1, the second of a size that the first says, by
    quadrature."""
    z = np.linspace(-9, 9, 4001)
    weights = np.exp(-(z**2) / 2) / sqrt(2 * np.pi) * (z[1] - z[0])
    sums = kind(ONE, Streams(range(len(z))), "sum", mu=1.0, horizon=2)
    sums._noise = lambda reads: z[:, None]
    assert sums.ask(np.full(len(z), first)).all()
    reading = sums(np.full((len(z), 1), 0.5))[:, 0]
    np.testing.assert_allclose(reading, 0.5 + z / first, rtol=1e-9)
    wanted = then(reading)
    second = np.where(sums.ask(wanted), wanted, 0.0)
    loss = first * z + first**2 / 2

    def delta(epsilon):
        left = epsilon - loss
        rest = np.maximum(0.0, -np.expm1(left))
        for mu in set(second) - {0.0}:
            rest[second == mu] = deltas_of(float(mu), left[second == mu])
        return float(weights @ rest)

    return delta, second


def test_adaptive_readings_show_what_one_does():
    """Oracle: no delta is above that of one reading of mu 1. A filter that counts after the release
    shows more, which is caught."""
    rest = sqrt(0.75)
    patient, greedy = (lambda z, s=s: np.where(z > 0.5, s, rest) for s in (rest, 0.9))
    for epsilon in (0.0, 0.5, 2.0):
        most = delta_of(1.0, epsilon)
        honest, second = shown_by(FilteredSum, 0.5, greedy)
        assert set(second) == {0.0, rest}
        assert honest(epsilon) < most
        assert shown_by(FilteredSum, 0.5, patient)[0](epsilon) == pytest.approx(most, rel=1e-4)
        assert shown_by(CountsAfterwards, 0.5, greedy)[0](epsilon) > most * 1.01


@each("kind", [FilteredSum, CountsAfterwards])
def test_no_budget_is_overspent(kind):
    """Property: replicas ask for what their last reading chose; refusals cost nothing, and are not
    read."""
    sums = kind(ONE, Streams(range(50)), "sum", mu=1.0, horizon=60)
    granted, last = np.zeros(50), np.full(50, 0.3)
    for _ in range(60):
        wanted = np.abs(np.sin(last))
        before, left = sums.used.copy(), sums.left.copy()
        given = sums.ask(wanted)
        if kind is FilteredSum:
            assert (given == (wanted <= left * (1 + 1e-12))).all()
        assert (sums.used[~given] == before[~given]).all()
        granted += np.where(given, wanted**2, 0.0)
        release = sums(np.zeros((50, 1)))
        assert (release is None) == (not given.any())
        read = np.full(50, np.nan) if release is None else release[:, 0]
        assert (np.isnan(read) == ~given).all()
        last = np.where(given, read, last + 1)
    assert (granted <= 1 + 1e-9).all() == (kind is FilteredSum)
    assert granted.min() > 0.9


def test_costs_below_a_rounding_of_their_sum_are_paid():
    """Oracle: fractions. Before, a thousand readings of mu 1e-9 after one of 0.9 were free."""
    sums = FilteredSum(ONE, Streams([0]), "sum", mu=1.0, horizon=2_000)
    true = Fraction(0)
    for mu in (0.9, *[1e-9] * 1_000, 0.3):
        assert sums.ask(np.array([mu])).all()
        sums(np.ones((1, 1)))
        true += Fraction(float(np.square(mu)))
        assert Fraction(sums.used[0]) >= true
    assert sums.used[0] == pytest.approx(0.9, rel=1e-9)


def test_readings_are_as_noisy_as_they_pay_for():
    """Statistical: three sizes at once, two readings, of units that differ; false alarm 1e-6; 10 %
    is caught (asserted)."""
    R, unit = 4002, np.array([4.0, sqrt(8.0), 4.0])  # of a sensitivity of sqrt(2)
    sums = FilteredSum(Grams(dim=2, bound=2.0), Streams(range(R)), "sum", mu=2.0, horizon=9)
    asked = np.resize([0.1, 0.5, 1.0], R)
    noise = []
    for t in range(1, 3):
        assert sums.ask(asked).all()
        release = sums(np.full((R, 2), 0.5))
        noise.append((release - 0.25 * t) / unit / sqrt(2) * asked[:, None])
    square, n = float(np.sum(np.square(noise))), 6 * R
    for size, fair in ((1.0, True), (0.9, False)):
        p = 2 * min(chi2.cdf(square / size**2, n), chi2.sf(square / size**2, n))
        assert (p > 1e-6) == fair
    assert sums.used == pytest.approx(2 * asked**2)
    assert sums.spend.mu == 2.0


class ReadsAgain(ArmAgent):
    """Two looks at all sums, the second as precise as the first says; then the best arm."""

    id = "reads-again"
    plays = ContextualSpec

    def start(self):
        self.begin()
        statistic = ArmRewards(self.K, self.low, self.high)
        self.sums = FilteredSum(statistic, self.streams, "looks", mu=0.3, horizon=self.spec.horizon)
        self.ledger = Ledger((self.sums.spend,))
        self.best = np.zeros(self.R, dtype=np.int64)

    def choose(self):
        return np.full(self.R, self.t % self.K) if self.t < 12 else self.best

    def size(self, reward):
        """Return the cost that a look asks for, (R,)."""
        left = self.sums.left
        return {4: left / 2, 8: np.where(self.best == 0, left, left / 2)}.get(self.t, 0 * left)

    def learn(self, arm, reward):
        self.sums.ask(self.size(reward))
        release = self.sums(arm, reward)
        if release is not None:
            self.best = np.where(np.isnan(release[:, 0]), self.best, release.argmax(axis=1))


class ReadsWhenRewarded(ReadsAgain):
    """Broken: the size of a look is the user's own reward."""

    id = "reads-when-rewarded"

    def size(self, reward):
        return np.clip(reward, 0.0, 1.0) / 10


SPEC = ContextualSpec(n_actions=2, dim=1, horizon=24)


def test_sizes_know_releases_alone():
    """Looks may choose looks; a size that a reward chose is caught by the replay."""
    found = check_agent(ReadsAgain(), SPEC, tested=(FilteredSum,))
    assert any("nothing but releases" in line for line in found)
    with pytest.raises(AssertionError, match="through mechanisms only"):
        check_agent(ReadsWhenRewarded(), SPEC, tested=(FilteredSum,))


def test_bad_input_is_refused_and_what_was_granted_is_read_once():
    """NaN and infinite data add nothing; a size in half precision is squared in double."""
    for mu in (0.0, 1e200, 1e-200):  # the squares of the last two are infinite and 0
        with pytest.raises(InputError, match=r"mu=.* to be a number in .1e-150"):
            FilteredSum(ONE, Streams([0]), "sum", mu=mu, horizon=2)
    sums = FilteredSum(ONE, Streams([0, 1]), "sum", mu=1.0, horizon=3)
    refused("mu of shape", sums.ask, np.ones(3))
    assert not sums.ask(np.array([np.nan, -1.0])).any()
    refused("one ask", sums.ask, np.ones(2))
    assert sums(np.ones((2, 1))) is None
    assert sums(np.ones((2, 1))) is None
    assert (sums.used == 0).all()
    assert not sums.ask(np.array([1e300, np.inf])).any()
    sums = FilteredSum(ONE, Streams([0]), "sum", mu=1.0, horizon=3)
    size = np.array([0.1], np.float16)
    assert sums.ask(size).all()
    assert sums(np.ones((1, 1))) is not None
    assert sums(np.ones((1, 1))) is None
    assert sums.used == float(size[0]) ** 2
