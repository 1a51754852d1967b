"""Sparse vector experts: how they are set, published calibrations and regrets, exact laws of all
transcripts, mistakes found by them, code against them, edges.

A transcript is who plays first, when tests fire and who is drawn then. Given the experts the
threshold noises of segments are independent, so it has a probability that is a product of
integrals, one a segment (`tests.privacy.choices.test_sparse_vector.Law`), and of softmaxes. For
every 0/1 sequence of losses of two experts it is enumerated, apart from the code; epsilon is the
largest log-ratio.
"""

from collections import Counter
from dataclasses import dataclass, replace
from functools import cache, cached_property
from itertools import accumulate, product
from math import exp, inf, log

import numpy as np
import pytest
from scipy.stats import expon, gamma, laplace

from dpbandit import certify
from dpbandit.agents import AdaptiveSparseVectorExperts, SparseVectorExperts
from dpbandit.agents.experts.calibration import (
    SparseVectorPlan,
    certified_plan,
    chernoff,
    completions,
    draws_needed,
    expected_segments,
    paper_plan,
    tightened_plan,
)
from dpbandit.agents.experts.sparse_vector import PlannedSegments
from dpbandit.base.random_streams import Streams
from dpbandit.envs.experts.advice import Experts
from dpbandit.specs.convex import ExpertsSpec
from tests.agents.experts.experts_runs import play, told
from tests.each import by_rota, refused
from tests.privacy.choices.test_sparse_vector import Law, p_value

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
    printed = paper_plan(d, T, delta=0.0, **target)
    pure, mixed = (certified_plan(d, T, delta=delta, cs=CS, **target) for delta in (0.0, 1e-6))
    found = [printed.draws, printed.eta, printed.margin, pure.draws, pure.c, pure.test_epsilon]
    found += [pure.eta, pure.margin, pure.segments, pure.bound - 1]
    found += [mixed.eta, mixed.margin, mixed.bound - 1]
    half_digits = [0, 5e-7, 0.5, 0, 0, 1e-9, 5e-7, 0.05, 6e-4, 0.5, 5e-7, 0.05, 0.5]
    errors = np.abs(np.subtract(found, row[2:])) / np.maximum(half_digits, 1e-12)
    assert errors.max() <= 1 + 1e-6
    assert certified_plan(d, T, delta=0.0, **target).bound <= pure.bound * (1 + 1e-12)


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
    Least of its kind; where the grid ends the closed form takes over, and never asks for less. For
    10^60 experts, as many as a ball has, it ends, and grows like log."""
    assert [draws_needed(256, c, 0.5e-4) for c in (2.0, 4.0, inf)] == [25, 19, 17]
    assert expected_segments(256, 4.0) == pytest.approx(8.88, abs=0.005)
    for failure in (0.3, 1e-3, 1e-9):
        K = draws_needed(256, 4.0, failure)
        assert completions(256, 4.0)[K + 1] <= failure < completions(256, 4.0)[K]
    needs = [draws_needed(256, 4.0, failure) for failure in (1e-10, 1e-13, 1e-20, 1e-40)]
    assert needs == sorted(needs)
    assert chernoff(256, 4.0, needs[-1]) <= 1e-40 < chernoff(256, 4.0, needs[-1] - 1)
    assert (draws_needed(1, 4.0, 1e-3), expected_segments(1, 4.0)) == (0, 1)
    few, many = (draws_needed(10**n, 4.0, 1e-5) for n in (30, 60))
    assert 1.5 < many / few < 2


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 10.0])
def test_budgets_add_up(epsilon):
    """Pure: epsilon exactly. Mixed: the closed form is within the target, the tightened eta meets
    it and is larger. Printed: 3/4 of epsilon, for tests and draws are paid half and quarter;
    lengths scale as 1 / epsilon but for the 1 of a round, eta as epsilon."""
    pure, mixed = ({"epsilon": epsilon, "delta": delta} for delta in (0.0, 1e-6))
    plan = certified_plan(64, 1000, failure=1e-3, **pure)
    assert epsilon * (1 - 1e-9) <= plan.ledger.pure <= epsilon
    closed = certified_plan(64, 1000, failure=1e-3, **mixed)
    plan = tightened_plan(closed, **mixed)
    assert plan.ledger.delta(epsilon) <= 1e-6
    assert closed.ledger.delta(epsilon) <= 1e-6
    assert closed.eta < plan.eta
    assert plan.margin < closed.margin
    assert plan.bound < closed.bound
    assert plan.ledger.epsilon(1e-6) == pytest.approx(epsilon, rel=2e-3)
    printed = paper_plan(64, 1000, failure=1e-3, **pure)
    assert printed.ledger.pure == pytest.approx(0.75 * epsilon, rel=3e-3)
    one = paper_plan(64, 1000, failure=1e-3, epsilon=1.0, delta=0.0)
    assert printed.margin == pytest.approx(one.margin / epsilon)
    assert printed.eta == pytest.approx(epsilon * one.eta)
    if epsilon == 1.0:
        fixed = paper_plan(64, 1000, failure=1e-3, fixed=True, **pure)
        assert fixed.margin - one.margin == pytest.approx(8 * log(2e6 / 1e-3))
    refused(r"epsilon=100.0 <= 4 ln", paper_plan, 16, 1000, epsilon=100.0, delta=1e-6, failure=1e-3)


REFERENCE = [
    ("svtP", 10.0, 264.5, 7.8, 1.5), ("svtC", 1.0, 134.0, 4.6, 1.4), ("svtC", 10.0, 14.1, 0.4, 1.2),
    ("svtCad", 10.0, 13.6, 0.4, 1.4), ("svtT", 10.0, 10.1, 0.3, 1.3),
    ("alg2C", 10.0, 15.2, 0.5, 1.2),
]  # fmt: skip
"""Player, epsilon; mean regret, its standard error, mean number of draws, at T = 1000, d = 16."""


def published(name, T, d, epsilon):
    """A running agent set as in the tables, whose grid of c was coarser."""
    delta = 1e-6 if name.endswith("ad") else 0.0
    target = {"epsilon": epsilon, "delta": delta, "failure": 0.05 if name == "svtT" else 1 / T}
    best = 10 / epsilon if name == "alg2C" else 0.0
    if name.startswith("svtP"):
        plan = paper_plan(d, T, **target)
    else:
        plan = certified_plan(d, T, best_loss=best, cs=CS, **target)
    return PlannedSegments(plan=plan, best_loss=best, restarts=name == "alg2C").make


@pytest.mark.parametrize(("name", "epsilon", "mean", "error", "switches"), REFERENCE)
def test_published_regret(name, epsilon, mean, error, switches):
    """Statistical: an independent program's table of 200 runs on one sequence of coins. Regret and
    number of draws agree within 4 combined standard errors (and rounding)."""
    problem = Experts(n_actions=16, horizon=1000, shared_table=True)
    regret, agent = play(problem, published(name, 1000, 16, epsilon), 200)
    assert abs(regret.mean() - mean) <= 4 * np.hypot(error, regret.std() / 200**0.5) + 0.05
    assert (agent.epoch == 0).mean() > 0.98
    draws = agent.drawn.mean()
    assert abs(draws - switches) <= 4 * 2**0.5 * agent.drawn.std() / 200**0.5 + 0.05


def test_ties_without_privacy():
    """At epsilon = inf draws are uniform among the best; a test is strict. 5 standard errors."""
    R = 2000
    spec = ExpertsSpec(n_actions=5, horizon=9)
    agent = SparseVectorExperts(epsilon=inf, best_loss=1.0).make(spec, Streams(range(R)))
    first = agent.act(None)
    assert (np.abs(np.bincount(first) - R / 5) < 5 * (R * 0.16) ** 0.5).all()
    told([1, 1, 1, 1, 1], agent, R)
    np.testing.assert_array_equal(agent.act(None), first)  # 1 is not more than L* = 1
    told([1, 1, 0, 1, 1], agent, R)
    moved = first != 2
    np.testing.assert_array_equal(agent.drawn, moved)
    told([0, 1, 1, 0, 1], agent, R)  # totals 2, 3, 2, 2, 3
    told([1, 1, 1, 1, 1], agent, R, rounds=2)
    found = np.bincount(agent.act(None)[agent.drawn == 2], minlength=5)
    assert (found[[1, 4]] == 0).all()
    assert np.ptp(found[[0, 2, 3]]) < 5 * (2 * found.sum() / 3) ** 0.5
    assert certify(SparseVectorExperts(epsilon=inf), spec, accountants=False).epsilon == inf


def test_smallest_problems_and_plans():
    """One round, one expert, two experts who always lose; thresholds beyond T never fire. And plans
    follow the settings."""
    kinds, words = (SparseVectorExperts, AdaptiveSparseVectorExperts), ("paper", "paper-fixed")
    for kind, epsilon, calibration in product(kinds, (0.1, inf), ("certified", *words)):
        config = kind(epsilon=epsilon, calibration=calibration)
        for d, T in ((1, 3), (3, 1), (2, 20)):
            problem = Experts(kind="table", table=np.ones((T, d)), horizon=T)
            regret, player = play(problem, config.make, 5)
            np.testing.assert_array_equal(regret, 0)
            if d == 2 and epsilon < inf:
                assert (player.drawn == 0).all()
        assert certify(config, ExpertsSpec(n_actions=1, horizon=9), accountants=False).epsilon == 0
    spec = ExpertsSpec(n_actions=64, horizon=5000)
    assert (
        SparseVectorExperts(beta=0.05).plan(spec).margin < SparseVectorExperts().plan(spec).margin
    )
    silent = SparseVectorPlan(5000, inf, 0.0, inf, inf)
    assert SparseVectorExperts(epsilon=inf).plan(spec) == silent
    first, plan = AdaptiveSparseVectorExperts().plan(spec)
    assert first == SparseVectorExperts().plan(spec).margin
    assert plan == SparseVectorExperts(best_loss=first).plan(spec)
    late = SparseVectorExperts(lag=True).make(spec, Streams([0]))
    assert late.ledger == SparseVectorExperts().make(spec, Streams([0])).ledger


def test_printed_doubling_throws_away_what_it_draws():
    """Its test always succeeds (while L* is below the slack of 1,700): every draw ends in a restart
    from one of two experts at random, so the number of restarts is geometric, of mean 1, cut off
    after about five. With a plus nothing restarts, and draws tell who is better. 5 errors."""
    R, T, found = 400, 1000, {}
    spec = ExpertsSpec(n_actions=2, horizon=T)
    for calibration in ("paper", "paper-fixed"):
        config = AdaptiveSparseVectorExperts(epsilon=300.0, calibration=calibration)
        found[calibration] = agent = config.make(spec, Streams(range(R)))
        told([1, 0], agent, R, rounds=T)
        proof = certify(config, spec, accountants=False)
        assert proof.epsilon == inf
        assert "no certified guarantee" in str(proof)
    assert (found["paper"].drawn == 0).all()
    assert abs(found["paper"].epoch.mean() - 0.97) < 5 * 1.4 / R**0.5
    assert (found["paper-fixed"].epoch == 0).all()
    assert found["paper-fixed"].drawn.mean() < 0.7


LOSSES = tuple(product((0, 1), repeat=2))


@dataclass(frozen=True)
class Player:
    """Algorithm 1 of two experts, or with `restarts` its repetition with a doubled L*.

    Tests follow rounds 1..T-1. The remaining fields are mistakes, for the tests to find.
    """

    noise: str = "exponential"
    eps1: float = 0.6
    eta: float = 0.4
    K: int = 1
    margin: float = 3.0
    best_loss: float = 0.0
    restarts: bool = False
    lag: bool = False
    scales: tuple = (1.0, 1.0)
    """of threshold and test noise, times 1 / eps1"""
    weight: float = 0.5
    """draws have weights exp(-weight eta S)"""
    broken: str = ""
    """a mistake of `Law`, or of this class: "overlap", "keeps S\""""

    @cached_property
    def segment(self):
        """P(queries (less the threshold) do not fire but, if asked, the last)."""
        noise = expon if self.noise == "exponential" else laplace
        broken = self.broken if self.broken not in ("overlap", "keeps S") else None
        scales = [factor / self.eps1 for factor in self.scales]
        law = Law(noise, *scales, broken or None, theta=0.0)
        return cache(lambda queries, fires: law.of([(queries, fires)]))

    def transcripts(self, sequence):
        """{transcript: probability} for losses (T, 2)."""
        found = {}
        for x in (0, 1):
            self._segments(found, sequence, (x,), 0.5, start=0, since=0, k=0, best=self.best_loss)
        return found

    def _segments(self, found, sequence, past, p, *, start, since, k, best):
        """All that can follow `past`; a segment of its last expert begins in round `start`.

        `since` is the first round that counts for draws.
        """
        x, T = past[-1], len(sequence)
        first = start - (self.broken == "overlap" and start > 0)
        theta, late = self.margin + best, int(self.lag)
        losses = (losses[x] for losses in sequence[first:])
        q = tuple(total - theta for total in accumulate(losses))[start - first :]
        for n in range(1, T - start - late):
            t = start + n + late  # the rounds that are over when somebody else begins
            fires = p * self.segment(q[:n], True)
            if k < self.K:
                weights = self.weights(sequence, since, t, best)
                for y in (0, 1):
                    arguments = {"start": t, "since": since, "k": k + 1, "best": best}
                    self._segments(found, sequence, (*past, t, y), fires * weights[y], **arguments)
            elif self.restarts:
                for y in (0, 1):
                    new = since if self.broken == "keeps S" else t
                    arguments = {"start": t, "since": new, "k": 0, "best": 2 * best}
                    self._segments(found, sequence, (*past, t, y), fires / 2, **arguments)
            else:
                found[*past, t] = fires
        n = T - start - late - 1
        found[past] = p * self.segment(q[:n], False) if n > 0 else p

    def weights(self, sequence, since, t, best):
        totals = (sum(losses[y] for losses in sequence[since:t]) for y in (0, 1))
        w = [exp(-self.weight * self.eta * max(S, best)) for S in totals]
        return [one / sum(w) for one in w]

    def worst(self, T):
        """Return the largest change of a transcript's log-probability if one round is replaced."""
        laws = [self.transcripts(s) for s in product(LOSSES, repeat=T)]
        P = np.array([list(law.values()) for law in laws])
        assert all(law.keys() == laws[0].keys() for law in laws)
        np.testing.assert_allclose(P.sum(axis=1), 1, atol=1e-9)
        with np.errstate(divide="ignore", invalid="ignore"):  # what never happens has no ratio
            log = np.log(P).reshape(*[4] * T, -1)
            return max(np.nanmax(log.max(axis=i) - log.min(axis=i)) for i in range(T))

    def but(self, **changes):
        return replace(self, **changes)


ONE = Player()


@pytest.mark.parametrize(
    ("player", "T", "expected"),
    [(ONE, 5, 0.858), (Player(K=2), 4, 1.059)],
    ids=["one draw", "two draws"],
)
def test_epsilon_is_kept(player, T, expected):
    """Golden: an independent program's enumeration, at eps1 = 0.6, eta = 0.4; K draws and all tests
    may cost eps1 + K eta. Broken on purpose, draws of twice the weight cost more."""
    worst = player.worst(T)
    assert worst == pytest.approx(expected, abs=6e-4)
    assert worst <= player.eps1 + player.K * player.eta
    if player is ONE:
        assert ONE.but(weight=1.0).worst(5) == pytest.approx(1.213, abs=6e-4)


SEQUENCE = ((1, 0), (1, 1), (0, 1), (1, 1), (1, 0), (1, 1))
EXTREME = {"eps1": 2.0, "eta": 3.0, "margin": 1.5}
"""So much budget that each step of a transcript shows whether it follows data as it should."""


def transcripts(player, R, copies=1):
    """What R replicas of the code did, {transcript: count}; `copies` of each of the two experts."""
    plan = SparseVectorPlan(
        player.K,
        player.eta,
        player.margin,
        player.eps1 / player.scales[0],
        player.eps1 / player.scales[1],
        noise=player.noise,
    )
    spec = ExpertsSpec(n_actions=2 * copies, horizon=len(SEQUENCE))
    kwargs = {"best_loss": player.best_loss, "restarts": player.restarts, "lag": player.lag}
    agent = PlannedSegments(plan=plan, **kwargs).make(spec, Streams(range(R)))
    past = [(x // copies,) for x in agent.act(None).tolist()]
    frozen = np.zeros(R, dtype=bool)
    for t, losses in enumerate(SEQUENCE[:-1], start=1):
        drawn, epoch = agent.drawn, agent.epoch
        told = np.broadcast_to(np.repeat(np.array(losses, dtype=float), copies), (R, 2 * copies))
        agent.update(told, agent.act(told), told)
        moved = (agent.drawn > drawn) | (agent.epoch > epoch)
        for r in np.flatnonzero(moved):
            past[r] = (*past[r], t, int(agent.expert[r]) // copies)
        for r in np.flatnonzero(agent.frozen & ~frozen):
            past[r] = (*past[r], t)
        frozen = agent.frozen
    return Counter(past)


@pytest.fixture
def few_numbers_ahead(monkeypatch):
    """Streams draw blocks for thousands of rounds, which these agents do not live to see."""
    monkeypatch.setattr("dpbandit.base.random_streams._VALUES_AHEAD", 16)


def agreement(counts, player):
    """p-value of chi-square; a transcript without probability has none."""
    law = player.transcripts(SEQUENCE)
    if counts.keys() - law.keys():
        return 0.0
    return p_value(np.array([counts[key] for key in law]), np.array(list(law.values())))


PLAYERS = {
    "one draw": (Player(**EXTREME), 8000, 1),
    "printed": (Player(noise="laplace", scales=(2.0, 4.0), K=2, lag=True, **EXTREME), 5000, 1),
    "restarts": (Player(restarts=True, best_loss=0.25, eps1=8.0, eta=3.0, margin=0.1), 4000, 1),
    "three copies": (Player(K=2, **EXTREME), 3000, 3),
}
MISTAKES = {
    "one draw": [{"weight": 1.0}, {"scales": (1.15, 1.15)}, {"broken": "overlap"}],
    "printed": [{"scales": (2.0, 2.0)}, {"lag": False}, {"K": 1}],
    "restarts": [{"broken": "keeps S"}, {"weight": 0.25}],
}


@pytest.mark.usefixtures("few_numbers_ahead")
@pytest.mark.parametrize("name", by_rota(PLAYERS, 2, slow=False))
def test_code_has_the_enumerated_law(name):
    """Half of the players at a commit. Statistical: chi-square of thousands of runs over all
    transcripts, also where each expert has copies, told apart by name only. False alarm 1e-6 per
    change of seed; laws of mistakes are refused (asserted)."""
    player, R, copies = PLAYERS[name]
    counts = transcripts(player, R, copies)
    assert agreement(counts, player) > 1e-6
    for changes in MISTAKES.get(name, ()):
        assert agreement(counts, player.but(**changes)) < 1e-6, changes
