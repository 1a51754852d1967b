"""Sparse vector experts: published regrets, exact means without privacy, edges, symmetries."""

from itertools import product
from math import inf

import numpy as np
import pytest

from dpbandit import certify
from dpbandit.agents import AdaptiveSparseVectorExperts, SparseVectorExperts
from dpbandit.agents.experts.calibration import SparseVectorPlan, certified, paper
from dpbandit.agents.experts.sparse_vector import PlannedSegments
from dpbandit.base.random_streams import Streams
from dpbandit.envs.experts.advice import Experts
from dpbandit.specs.convex import ExpertsSpec
from tests.agents.experts.test_calibration import CS


def play(problem, make, R, rounds=None):
    """Total losses less the best expert's, draws of this epoch, restarts: (R,) each, and the
    agent."""
    streams = Streams(range(R))
    problem.reset(streams.child("environment"))
    agent = make(problem.spec, streams.child("agent"))
    total = np.zeros(R)
    for _ in range(rounds or problem.spec.horizon):
        action = agent.act(problem.context())
        step = problem.step(action)
        total += step.regret
        agent.update(None, action, step.datum)
    return total + problem.hindsight(), agent


REFERENCE = [
    ("svtP", 10.0, 264.5, 7.8, 1.5),
    ("svtC", 1.0, 134.0, 4.6, 1.4),
    ("svtC", 10.0, 14.1, 0.4, 1.2),
    ("svtCad", 10.0, 13.6, 0.4, 1.4),
    ("svtT", 10.0, 10.1, 0.3, 1.3),
    ("alg2C", 10.0, 15.2, 0.5, 1.2),
]
"""Player, epsilon; mean regret, its standard error, mean number of draws, at T = 1000, d = 16."""


def published(name, T, d, epsilon):
    """A running agent set as in the tables, whose grid of c was coarser."""
    delta = 1e-6 if name.endswith("ad") else 0.0
    target = {"epsilon": epsilon, "delta": delta, "failure": 0.05 if name == "svtT" else 1 / T}
    best = 10 / epsilon if name == "alg2C" else 0.0
    if name.startswith("svtP"):
        plan = paper(d, T, **target)
    else:
        plan = certified(d, T, best_loss=best, cs=CS, **target)
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


def test_halving_without_privacy():
    """Golden: at epsilon = inf each stage of halving costs a mistake with probability 1/2, so their
    number is Bin(log2 d, 1/2). Statistical: 1,500 runs, 5 standard errors; false alarm 1e-6."""
    R, stages, problem = 1500, 4, Experts(kind="halving", n_actions=16, horizon=32)
    total, agent = play(problem, SparseVectorExperts(epsilon=inf).make, R)
    assert abs(total.mean() - stages / 2) <= 5 * (stages / 4 / R) ** 0.5
    assert total.var() == pytest.approx(stages / 4, rel=0.2)
    np.testing.assert_array_equal(agent.drawn, total)


def told(losses, agent, R, rounds=1):
    row = np.broadcast_to(np.asarray(losses, dtype=float), (R, len(losses)))
    for _ in range(rounds):
        agent.update(row, agent.act(row), row)


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


def test_draws_run_out():
    """After K draws and one more firing x stays and nothing is tested; or with `restarts`, all
    starts anew with twice the L*, sums 0 and K draws."""
    R, d = 300, 4
    spec = ExpertsSpec(n_actions=d, horizon=99)
    plan = SparseVectorPlan(2, inf, 0.5, inf, inf)
    agent = PlannedSegments(plan=plan).make(spec, Streams(range(R)))
    told([1] * d, agent, R, rounds=2)
    assert (agent.drawn == 2).all()
    last = agent.act(None)
    told([1] * d, agent, R, rounds=20)
    np.testing.assert_array_equal(agent.act(None), last)
    assert (agent.drawn == 2).all()

    restarts = PlannedSegments(plan=plan, best_loss=1.0, restarts=True)
    agent = restarts.make(spec, Streams(range(R)))
    told([1, 1, 1, 1], agent, R, rounds=5)
    assert (agent.drawn == 2).all()
    assert (agent.epoch == 0).all()
    told([1, 1, 1, 1], agent, R)  # in round 6 the third test fires
    assert (agent.drawn == 0).all()
    assert (agent.epoch == 1).all()
    np.testing.assert_array_equal(agent.belief, 2.0)
    assert set(agent.act(None).tolist()) == set(range(d))
    told([0.8, 1, 1, 1], agent, R, rounds=3)  # thresholds are 2.5 now
    lost = agent.drawn == 1  # whoever did not start with expert 0: 3 against 2.4
    assert lost.mean() == pytest.approx(0.75, abs=0.13)
    chosen = agent.act(None)[lost]
    assert (chosen == 0).mean() == pytest.approx(1, abs=1e-12)  # 2.4 is less than 3: fresh sums


def test_premature_firings():
    """Golden: without losses a test fires with probability e^(-eps1 margin) / 2; over T rounds and
    R runs as many as that. Statistical: 5 standard errors, false alarm 1e-6."""
    R, T, plan = 400, 100, SparseVectorPlan(10**6, 1.0, 3.0, 1.0, 1.0)
    spec = ExpertsSpec(n_actions=3, horizon=T)
    agent = PlannedSegments(plan=plan).make(spec, Streams(range(R)))
    told([0, 0, 0], agent, R, rounds=T)
    most = R * T * np.exp(-3.0) / 2
    fires = agent.drawn.sum()
    assert fires <= most + 5 * most**0.5
    assert fires > most / 4  # within a segment, rho is the same


def test_smallest_problems():
    """One round, one expert, two experts who always lose; thresholds beyond T never fire."""
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


@pytest.mark.parametrize("change", ["rename", "scale"])
def test_symmetries(change):
    """Experts renamed, with their noise and the first one; losses, L*, margin, noise and 1/eta
    halved: the same play, bit for bit."""
    R, d, T, order = 50, 6, 200, np.array([3, 5, 1, 0, 2, 4])
    plan, spec = SparseVectorPlan(9, 0.5, 6.0, 1.0, 0.5), ExpertsSpec(n_actions=d, horizon=T)
    config, seeds = PlannedSegments(plan=plan, best_loss=2.0), Streams(range(R))
    losses, back = np.random.default_rng(0).integers(0, 9, (T, R, d)) / 8, np.arange(d)
    one, two, others = config.make(spec, seeds), config.make(spec, Streams(range(R))), losses / 2
    if change == "scale":
        half = SparseVectorPlan(9, 1.0, 3.0, 2.0, 1.0)
        two = PlannedSegments(plan=half, best_loss=1.0).make(spec, Streams(range(R)))
    else:
        back, others, noise = order, losses[..., order.argsort()], two.selections._noise
        two.selections._noise = lambda: noise()[:, order.argsort()]
        two.expert = order[two.expert]
    for mine, other in zip(losses, others, strict=True):
        np.testing.assert_array_equal(back[one.act(None)], two.act(None))
        one.update(None, None, mine)
        two.update(None, None, other)
    assert one.drawn.mean() > 1


@pytest.mark.parametrize("restarts", [False, True])
def test_views_of_one_row(restarts):
    """Losses that all replicas share, a view of one row, are summed once: the same play as with
    rows of their own, and alone, bit for bit; also when that changes midway."""
    R, d, T = 4, 5, 120
    plan = SparseVectorPlan(2, 0.8, 1.0, 2.0, 2.0)
    losses = np.random.default_rng(0).random((T, d))
    config = PlannedSegments(plan=plan, best_loss=0.5, restarts=restarts)

    def experts(seeds, copied):
        agent = config.make(ExpertsSpec(n_actions=d, horizon=T), Streams(seeds))
        played = []
        for t, row in enumerate(losses):
            view = np.broadcast_to(row, (len(seeds), d))
            played.append(agent.act(None))
            agent.update(None, None, view.copy() if copied(t) else view)
        return np.array(played), agent

    shared, agent = experts(range(R), lambda t: False)
    assert agent.selections._total.shape == (1, d)
    assert (agent.epoch > 0).any() == restarts
    for copied in (lambda t: True, lambda t: t > 60, lambda t: t < 60):
        np.testing.assert_array_equal(experts(range(R), copied)[0], shared)
    for r in range(R):
        np.testing.assert_array_equal(experts([r], lambda t: False)[0][:, 0], shared[:, r])


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


def test_plans_follow_the_configs():
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
