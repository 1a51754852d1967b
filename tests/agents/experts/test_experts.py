"""Agents that follow experts: exact identities, and the reference numbers of the specification."""

from dataclasses import dataclass
from math import ceil, expm1, inf, log, sqrt

import numpy as np
import pytest
from scipy.stats import chi2

from dpbandit import certify
from dpbandit.agents import (
    ExponentialLeader,
    FollowTheLeader,
    Hedge,
    NoisyFTRL,
    ShrinkingDartboard,
)
from dpbandit.agents.experts.shrinking_dartboard import (
    DartboardPlan,
    ShrinkingDartboardAgent,
    steepest,
)
from dpbandit.base.random_streams import Streams
from dpbandit.envs import Experts
from dpbandit.privacy.accounting import gdp, zcdp
from dpbandit.running.loop import play
from dpbandit.specs.experts import ExpertsSpec

DELTA = 1e-6


def regret(config, T, d, replicas, *, best_loss=0.0, kind="bernoulli", shared=True):
    problem = Experts(kind=kind, n_actions=d, horizon=T, best_loss=best_loss, shared_table=shared)
    seeds = [(17, r) for r in range(replicas)]
    return play(problem, config, seeds, marks=np.array([T])).regret[-1]


def mean_and_error(values):
    return values.mean(), values.std(ddof=1) / len(values) ** 0.5


def hedge_expects(T, d, rate, best_loss=0.0):
    """Oracle: the exact mean regret of softmax(-rate S) on the shared table, 0/1 losses of the
    specification's generator; nothing of ours."""
    means = np.full(d, 0.5)
    means[0] = best_loss
    losses = 1.0 * (np.random.default_rng(0).random((T, d)) < means)
    before = losses.cumsum(axis=0) - losses
    weights = np.exp(-rate * (before - before.min(axis=1, keepdims=True)))
    weights /= weights.sum(axis=1, keepdims=True)
    return float((weights * losses).sum() - losses.sum(axis=0).min())


@dataclass
class BunSteinkeLeader:
    """`ExponentialLeader` with the specification's rate, h = sqrt(2 rho / T) by BS."""

    epsilon: float
    T: int

    def __post_init__(self):
        self.rate = sqrt(2 * zcdp.loose_rho(self.epsilon, DELTA) / self.T)
        rho = self.rate**2 / 2 * (self.T - 1)
        self.make = ExponentialLeader(epsilon=zcdp.epsilon_of(rho, DELTA), delta=DELTA).make


@dataclass
class BunSteinkeDartboard:
    """The dartboard with the specification's plan: the largest h of a grid of shares, by BS."""

    epsilon: float
    T: int
    d: int

    def __post_init__(self):
        plans = (largest(self.T, self.d, f * self.epsilon, self.epsilon) for f in SHARES)
        self.plan = max(plans, key=lambda x: x.rate)

    def make(self, spec, streams):
        return ShrinkingDartboardAgent(self.plan, spec, streams)


SHARES = np.linspace(0.02, 0.9, 45)


def largest(T, d, bit, epsilon):
    rho, low, high = zcdp.loose_rho(epsilon - bit, DELTA), 0.0, bit
    for _ in range(50):
        h = (low + high) / 2
        moved = -expm1(-h)
        m = T * moved / (expm1(bit) + moved) + log(d) + 2
        K = ceil(m + 3 * sqrt(m) + 3)
        low, high = (h, high) if K * h * h / 2 <= rho else (low, h)
    return DartboardPlan(low, bit, K)


def tree_noise(epsilon):
    """`NoisyFTRL` with the specification's sigma, by BS."""
    return NoisyFTRL(epsilon=gdp.epsilon_of(sqrt(2 * zcdp.loose_rho(epsilon, DELTA)), DELTA))


def hedge_cells(T, d, p0, careful, bold, replicas):
    for config, rate, printed in (
        (Hedge(), sqrt(8 * log(d) / T), careful),
        (Hedge(rate=1.0), 1.0, bold),
    ):
        expected = hedge_expects(T, d, rate, p0)
        assert expected == pytest.approx(printed, abs=0.051)
        mean, error = mean_and_error(regret(config, T, d, replicas, best_loss=p0))
        assert abs(mean - expected) < 4 * error


@pytest.mark.parametrize(("d", "careful", "bold"), [(16, 19.6, 3.8), (256, 28.0, 7.5)])
def test_hedge(d, careful, bold):
    """The table's exact expectations, and ours within 4 errors (false alarm 6e-5 a cell; another
    rate by a fifth is 8 of them at d = 16)."""
    hedge_cells(1000, d, 0.0, careful, bold, 200)


@pytest.mark.parametrize(("d", "printed"), [(16, 1.9), (256, 4.0)])
@pytest.mark.parametrize("lazy", [False, True])
def test_follow_the_leader(d, printed, lazy):
    """Table E: 1.9, 4.0 on coins; lazy or not, x is uniform on those who never erred."""
    mean, error = mean_and_error(regret(FollowTheLeader(lazy=lazy), 1000, d, 200))
    assert abs(mean - printed) < 4 * error + 0.051


def leader_cell(T, d, p0, epsilon, printed, replicas):
    config = BunSteinkeLeader(epsilon, T)
    expected = hedge_expects(T, d, config.rate, p0)
    assert expected == pytest.approx(printed, abs=0.051)
    mean, error = mean_and_error(regret(config, T, d, replicas, best_loss=p0))
    assert abs(mean - expected) < 4 * error


@pytest.mark.parametrize(
    ("d", "epsilon", "printed"), [(16, 1.0, 370.8), (256, 1.0, 489.2), (16, 10.0, 54.2)]
)
def test_exponential_leader(d, epsilon, printed):
    leader_cell(1000, d, 0.0, epsilon, printed, 40)


def within(ours, printed, their_error, *, errors=4):
    mean, error = mean_and_error(ours)
    assert abs(mean - printed) < errors * sqrt(error**2 + their_error**2)


@pytest.mark.parametrize(
    ("d", "epsilon", "printed", "error"),
    [(16, 1.0, 182.9, 2.3), (256, 1.0, 358.2, 2.4), (16, 10.0, 12.9, 0.5)],
)
def test_shrinking_dartboard(d, epsilon, printed, error):
    """Table E, and the exact mean of Hedge at the plan's rate: the same law while draws last."""
    config = BunSteinkeDartboard(epsilon, 1000, d)
    ours = regret(config, 1000, d, 200)
    within(ours, printed, error)
    within(ours, hedge_expects(1000, d, config.plan.rate), 0.0)


@pytest.mark.parametrize(
    ("d", "epsilon", "printed", "error"),
    [(16, 1.0, 258.0, 6.2), (256, 1.0, 490.3, 2.7), (16, 10.0, 32.2, 0.8)],
)
def test_noisy_ftrl(d, epsilon, printed, error):
    within(regret(tree_noise(epsilon), 1000, d, 50), printed, error)


@pytest.mark.slow
def test_longer_tables():
    """Tables E and S at T = 10,000."""
    hedge_cells(10_000, 256, 0.001, 84.9, 7.5, 50)
    leader_cell(10_000, 16, 0.0, 1.0, 1483.5, 40)
    leader_cell(10_000, 256, 0.1, 1.0, 2900.6, 20)
    within(regret(BunSteinkeDartboard(1.0, 10_000, 16), 10_000, 16, 100), 351.5, 4.4)
    within(regret(BunSteinkeDartboard(10.0, 10_000, 16), 10_000, 16, 100), 17.8, 0.8)
    for p0, printed, error in ((0.001, 696.5, 7.4), (0.1, 693.4, 6.3)):
        config = BunSteinkeDartboard(1.0, 10_000, 256)
        within(regret(config, 10_000, 256, 50, best_loss=p0), printed, error)
    within(regret(tree_noise(1.0), 10_000, 16, 50), 324.3, 7.6)
    within(regret(tree_noise(10.0), 10_000, 16, 50), 67.5, 0.9)


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("d", [16, 256])
def test_half_a_mistake_for_every_stage_of_halving(d, lazy):
    """Golden, by hand: in each of log2 d stages x is uniform on those without loss, of which half
    begin to err: Bin(log2 d, 1/2) mistakes. Mean within 4 errors (0.03 at d = 16), and the variance
    log2(d) / 4 within 15 %; 2,000 replicas, false alarm 2e-4 in all."""
    mistakes = regret(FollowTheLeader(lazy=lazy), 60, d, 2000, kind="halving", shared=False)
    stages = d.bit_length() - 1
    assert abs(mistakes.mean() - stages / 2) < 4 * sqrt(stages / 4 / 2000)
    assert mistakes.var() == pytest.approx(stages / 4, rel=0.15)


def test_a_lazy_leader_stays_until_she_has_lost_too_much():
    """By hand, L* = 1, d = 3: x loses 1 in all and stays; with 0.5 more she goes, to an expert with
    a loss of at most L*, best or not."""
    config, R = FollowTheLeader(lazy=True, best_loss=1.0), 400
    agent = config.make(ExpertsSpec(n_actions=3, horizon=9), Streams(range(R)))
    x, seen = agent.act(np.zeros((R, 3))), np.zeros((R, 3))
    for loss in (0.5, 0.5):
        told = np.full((R, 3), 0.25)
        told[np.arange(R), x] = loss
        agent.update(seen, x, told)
        assert (agent.act(seen) == x).all()
    told = np.zeros((R, 3))
    told[np.arange(R), x] = 0.5
    agent.update(seen, x, told)
    fresh = agent.act(seen)
    assert (fresh != x).all()
    assert len(set(zip(x.tolist(), fresh.tolist(), strict=True))) == 6


def test_the_dartboard_has_hedges_law():
    """Statistical: where 1,500 replicas stand after 6 rounds, chi-square (3 degrees), false alarm
    1e-6; with K = 1 the same agent is found out (asserted)."""
    R = 1500
    losses = np.random.default_rng(3).random((5, 4))
    weights = np.exp(-2.0 * losses.sum(axis=0))
    expected = R * weights / weights.sum()
    statistics = []
    for draws in (5, 1):
        spec = ExpertsSpec(n_actions=4, horizon=6)
        agent = ShrinkingDartboardAgent(DartboardPlan(2.0, 2.5, draws), spec, Streams(range(R)))
        for row in losses:
            told = np.broadcast_to(row, (R, 4))
            agent.update(told, agent.act(told), told)
        stand = np.bincount(agent.act(told), minlength=4)
        statistics.append(((stand - expected) ** 2 / expected).sum())
    limit = chi2.isf(1e-6, 3)
    assert statistics[0] < limit < statistics[1]


def test_without_privacy_noisy_leaders_are_hedge():
    """Bit for bit; and the others need no noise either."""
    plain, noisy = (regret(c, 300, 8, 5) for c in (Hedge(), NoisyFTRL(epsilon=inf)))
    np.testing.assert_array_equal(plain, noisy)
    for config in (ExponentialLeader(epsilon=inf), ShrinkingDartboard(epsilon=inf)):
        assert (regret(config, 300, 8, 5) <= 3).all()
        assert certify(config, ExpertsSpec(n_actions=8, horizon=300)).epsilon == inf


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("config", [ExponentialLeader, ShrinkingDartboard])
def test_targets_are_met_and_not_missed_by_far(config, delta):
    for d, T, epsilon in ((1, 5, 1.0), (3, 1, 1.0), (16, 500, 0.1), (300, 3000, 5.0)):
        spec = ExpertsSpec(n_actions=d, horizon=T)
        proof = certify(config(epsilon=epsilon, delta=delta), spec)
        assert proof.holds
        assert proof.epsilon > 0.98 * epsilon or T < 500


def test_the_order_of_prices_is_that_of_the_tables():
    """At the same promise: few draws beat a draw a round, which beats noise on every sum."""
    few, every, noise = (
        regret(config(epsilon=10.0), 1000, 256, 20).mean()
        for config in (ShrinkingDartboard, ExponentialLeader, NoisyFTRL)
    )
    assert 2 * few < every
    assert 1.3 * every < noise
    rate = steepest(256, 1000, epsilon=10.0, delta=DELTA).rate
    assert rate > 3 * ExponentialLeader(epsilon=10.0).rate(999)
