"""Pricing: orange juice, retention, lock-in, reference prices and stock."""

import gc
import hashlib
import json
import sys
import warnings
from dataclasses import replace
from itertools import product
from math import inf, sqrt
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from scipy.optimize import linprog
from scipy.special import expit

import dpbandit.envs
from dpbandit import InputError, certify, compare
from dpbandit.agents import FADE, FTAL, PFTAL, WDPCOCOL, WDPCOCOP, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, Box, Simplex
from dpbandit.envs import (
    Minority,
    OJContinuousPricing,
    OJPricing,
    ReferencePricing,
    StockPricing,
    SyntheticPricing,
    TwoArms,
    TwoPhase,
)
from dpbandit.envs.contextual.orange_juice import demand
from dpbandit.envs.contextual.problems import row_of
from dpbandit.envs.contextual.stock import fluid_bound
from dpbandit.envs.convex.online_losses import ConvexPricing, OnlineConvex
from dpbandit.envs.convex.problems import Corners
from dpbandit.envs.data import fit_oj
from dpbandit.losses import Quadratic
from dpbandit.specs.convex import ConvexSpec
from dpbandit.testing import check_problem
from tests.each import each, refused

DATA = Path(dpbandit.envs.__file__).parent / "data"
FROZEN = json.loads((DATA / "oj_demand.json").read_text())
PER_ROUND = {"uniform": 0.393, "best fixed": 0.442, "oracle": 0.514}


def test_a_fresh_fit_gives_the_frozen_numbers(monkeypatch):
    """From the file that was fitted, which is not left open."""
    monkeypatch.setattr(sys, "argv", ["fit_oj.py", "--check"])
    assert fit_oj.main() is None  # and has not exited
    digest = hashlib.sha256((DATA / "oj.csv.gz").read_bytes()).hexdigest()
    assert digest == FROZEN["data_sha256"]
    assert digest in (DATA / "README.md").read_text()
    with warnings.catch_warnings(record=True, action="always") as caught:
        fresh = demand.__wrapped__()
        gc.collect()
    assert [str(warning.message) for warning in caught] == []
    assert fresh.context.shape == (1070, 3)


def test_prices_and_numbers_by_hand():
    """0.393 / 0.442 / 0.514 as means over the 1,070 rows. Made-up customers: the first point,
    -31/32 twice, is worth 1.128125 dollars: P(buy at 1.00) = 0.78266 where a dollar is 10
    logits."""
    env = gym.make("dpbandit/OJPricing-v0").unwrapped
    np.testing.assert_allclose(env.prices, 1.19 + 0.1 * np.arange(12), atol=1e-12)
    margins = demand().margin(np.arange(1070)[:, None], env.prices)
    found = (margins.mean(), margins.mean(axis=0).max(), margins.max(axis=1).mean())
    assert found == pytest.approx(tuple(PER_ROUND.values()), abs=5e-4)
    assert env.prices[margins.mean(axis=0).argmax()] == pytest.approx(1.89)
    steep, flat = SyntheticPricing(slope=10.0), SyntheticPricing(slope=1.0)
    assert steep._chances[0, 0] == pytest.approx(0.78266, abs=1e-5)
    assert steep._chances[0, 10] == pytest.approx(np.exp(-18.71875), rel=1e-6)
    np.testing.assert_allclose(steep._known[0] * sqrt(3), [1, -31 / 32, -31 / 32])
    for problem, low, high in ((steep, 1.0, 2.6), (flat, 2.0, 2.6)):
        best = problem.prices[((problem.prices - 0.5) * problem._chances).argmax(axis=1)]
        assert (best.min(), best.max()) == pytest.approx((low, high))


def test_the_best_of_all_prices():
    """Each customer's within 1e-6 of a search over 11,001 prices, never below it, nor below the 12
    prices. Prices outside are refused."""
    problem, every = OJContinuousPricing(), np.arange(1070)[:, None]
    grid = demand().margin(every, np.linspace(1.19, 2.29, 11_001)).max(axis=1)
    twelve = demand().margin(every, demand().prices).max(axis=1)
    assert (np.abs(problem._oracle - grid) < 1e-6).all()
    assert (problem._oracle >= np.maximum(grid, twelve) - 1e-12).all()
    assert problem._oracle.mean() > FROZEN["expected_margin"]["contextual_oracle"]
    env = gym.make("dpbandit/OJContinuousPricing-v0").unwrapped
    env.reset(seed=1)
    for price in (1.18, 2.2901, 0.0, -1.5, float("nan"), float("inf")):
        refused(r"prices in \[1.19, 2.29\]", env.step, price)
    for price in (1.19, 2.29):
        assert env.step(price)[1] in (0.0, price - 0.80)


def test_both_environments_meet_the_same_customers():
    """Same seed, same customers and purchases: the continuous one at a listed price agrees.
    Uniforms on a grid of ten a customer find every row ten times, the ends of [0, 1) too."""
    discrete, continuous = OJPricing(), OJContinuousPricing()
    for problem in (discrete, continuous):
        problem.reset(Streams([5, 6]))
    for t in range(100):
        arms = np.array([t % 12, 11 - t % 12])
        assert (discrete.context() == continuous.context()).all()
        ours, theirs = discrete.step(arms), continuous.step(discrete.prices[arms])
        np.testing.assert_allclose(ours[:2], theirs[:2], rtol=1e-12)
        assert (theirs.oracle >= ours.oracle - 1e-12).all()
        margins = discrete.prices[arms] - 0.80
        assert ((ours.reward == 0) | (ours.reward == margins)).all()
    found = row_of((np.arange(10_700) + 0.5) / 10_700, 1070)
    assert (np.bincount(found, minlength=1070) == 10).all()
    assert row_of(np.array([0.0, 1 - 2**-53]), 1070).tolist() == [0, 1069]


def spec_of(retention, horizon=50):
    return ConvexPricing(feedback="datum", retention=retention, horizon=horizon).spec


@each("config", [WDPCOCOP(window=None), WDPCOCOL(window=None, noise="gaussian")])
def test_agents_without_a_window_take_the_retention_period(config):
    """Bit for bit the agent whose window is that, and the same certificate. A window is needed, and
    may not be shorter."""
    agents = {"taken": config, "given": type(config)(window=12, noise=config.noise)}
    kwargs = {"feedback": "datum", "retention": 12}
    results = compare("ConvexPricing", agents, horizon=60, replicas=3, env_kwargs=kwargs)
    taken, given = results.runs[:2]
    np.testing.assert_array_equal(taken.regret, given.regret)
    assert taken.certificate.ledger == given.certificate.ledger
    assert taken.certificate.ledger.brief == "window-DP, last 12"
    assert "for the last 12 rounds only" in str(taken.certificate.notion)
    refused(r"window=None and retention=None\.$", certify, config, spec_of(None), accountants=False)
    shorter = type(config)(window=11, noise=config.noise)
    with pytest.raises(InputError, match="window=11 >= 12, the rounds for which"):
        certify(shorter, spec_of(12), accountants=False)
    certify(shorter, spec_of(12, horizon=12), accountants=False)  # nobody expires
    longer = type(config)(window=20, noise=config.noise)
    assert certify(longer, spec_of(12), accountants=False).notion.window == 20
    assert certify(PFTAL(), spec_of(12), accountants=False).notion.window is None  # for ever


# Reference instances


def played(problem, rounds, replicas=4):
    problem.reset(Streams(range(replicas)))
    centre = np.tile(problem.spec.loss.domain.centre, (replicas, 1))
    return np.array([problem.step(centre).datum for _ in range(rounds)])


def test_reference_instances():
    """Golden: c = 0.4 e_1 + 0.3 v, v on the sphere; L = 1 + 0.7, nothing is clipped, and all of it
    in radii. Statistical: 12,000 draws of corners with chances 0.5, 0.3 and 0.2; 5 errors of
    each."""
    for radius in (1.0, 2.0):
        problem = OnlineConvex(instance="cocop-ball", horizon=300, radius=radius)
        assert problem.spec.loss == Quadratic(Ball(5, radius), reach=0.7 * radius)
        assert problem.spec.loss.lipschitz == 1.7 * radius
        data = played(problem, 300)
        away = np.linalg.norm(data / radius - 0.4 * np.eye(5)[0], axis=-1)
        np.testing.assert_allclose(away, 0.3, rtol=0, atol=1e-12)
        loose = problem.spec.loss.admissible(3 * data[0])
        np.testing.assert_allclose(np.linalg.norm(loose, axis=1), 0.7 * radius)
    problem = OnlineConvex(instance="cocol-simplex", horizon=3000)
    assert problem.spec.loss == Quadratic(Simplex(10))
    data = played(problem, 3000)
    assert set(np.unique(data)) == {0.0, 1.0}
    np.testing.assert_array_equal(data.sum(axis=-1), 1.0)
    chances = np.array([0.5, 0.3, 0.2, *[0.0] * 7])
    error = np.sqrt(chances * (1 - chances) / 12_000)
    assert (np.abs(data.mean(axis=(0, 1)) - chances) <= 5 * error).all()
    assert len({tuple(column) for column in data[:, :, 0].T}) == 4  # replicas are their own
    for chances in ((), (0.5, 0.4), (1.5, -0.5)):
        refused("add up to 1", Corners, chances)
    for loss in (Quadratic(Box(3)), Quadratic(Simplex(2))):
        refused("3 corners or more", OnlineConvex, loss=loss, adversary=Corners((0.5, 0.3, 0.2)))


@each("reach", [0.2, 0.7, 5.0])
def test_a_reach_bounds_gradients_and_no_more_than_the_domain(reach):
    """Property: admissible targets are within reach and the domain, gradients within L; L is least
    on the ball, and never above that of a loss that knows no reach."""
    extreme = np.random.default_rng(0).standard_normal((200, 4)) * 10
    for domain in (Ball(4), Simplex(4), Box(4)):
        loss, free = Quadratic(domain, reach=reach), Quadratic(domain)
        c = loss.admissible(extreme)
        x = domain.project(-extreme)
        assert domain.contains(c, 1e-9).all()
        assert np.linalg.norm(c - domain.centre, axis=1).max() <= reach + 1e-9
        assert np.linalg.norm(loss.gradient(x, c), axis=1).max() <= loss.lipschitz + 1e-9
        assert loss.lipschitz == min(free.lipschitz, domain.outer_radius + reach)
    refused("reach=0", Quadratic, Ball(2), reach=0.0)
    spec = ConvexSpec(loss=Quadratic(Ball(5), reach=0.7), feedback="datum", horizon=9)
    assert certify(FTAL(), spec, accountants=False).epsilon == inf


REPLICAS = 400


def users(problem, *counts):
    """The first users, drawn in blocks of `counts`: (n, R, ...)."""
    problem.reset(Streams(range(REPLICAS)))
    blocks = [problem._users(count)[:3] for count in counts]
    return (np.concatenate(parts) for parts in zip(*blocks, strict=True))


def test_kinds_have_coins_shares_and_turns():
    """Four outcomes in 400 episodes, 100 each: 55 is 5 standard deviations off; of 80,000 users 5
    standard errors of a share of 0.02 are 0.0025; the second kind comes after the change."""
    _, mean, _ = users(TwoPhase(horizon=2, change=0.5), 2)
    first, second = mean.argmax(axis=2)
    assert np.bincount(2 * first + second).min() > 55
    _, mean, _ = users(TwoArms(gap=0.3), 2)
    assert (mean[0] == mean[1]).all()
    assert np.allclose(np.sort(mean), [0.5, 0.8])
    assert np.abs(np.bincount(mean[0].argmax(axis=1)) - REPLICAS / 2).max() < 50
    context, *_ = users(Minority(share=0.02), 200)
    assert abs(context[..., 1].mean() - 0.02) < 0.0025
    assert (context.sum(axis=2) == 1).all()
    context, mean, _ = users(TwoPhase(horizon=16, change=0.25), 3, 13)
    assert (context[:4] == [1, 0]).all()
    assert (context[4:] == [0, 1]).all()
    assert (np.sort(mean[:4]) == [0.5, 0.7]).all()
    assert (np.sort(mean[4:]) == [0.6, 0.9]).all()


@pytest.mark.parametrize("reference", ["list", "paid"])
def test_utilities_are_those_of_the_formula(reference):
    """Margins of a round from those without a reference; r = memory r + (1 - memory) p by hand."""
    settings = {"reference": reference, "list_price": 1.5, "weight": 2.0, "memory": 0.6}
    assert len(check_problem(ReferencePricing(horizon=30, **settings))) == 9
    static, moved = OJPricing(), ReferencePricing(**settings)
    for one in (static, moved):
        one.reset(Streams([0, 1]))
    r, margins = np.full((2, 1), 1.5), static._margins
    for t in range(12):
        np.testing.assert_array_equal(static.context(), moved.context())
        mean = static._table.mean[t]
        logit = np.log(mean / (margins - mean)) + 2.0 * (r - static.prices)
        expected, arm = margins * expit(logit), np.array([t, 11 - t])
        step = moved.step(arm)
        static.step(arm)
        np.testing.assert_allclose(step.expected, expected[[0, 1], arm], rtol=1e-9)
        np.testing.assert_allclose(step.oracle, expected.max(axis=1), rtol=1e-9)
        if reference == "paid":
            r = 0.6 * r + 0.4 * static.prices[arm][:, None]


def test_what_was_paid_reaches_others_whatever_the_agent_does():
    """If user 0 alone was asked another price, later users with the same luck answer otherwise;
    with a public list they do not. So no agent has a certificate, not even one that never
    learns."""
    told = {}
    for reference, first in product(("list", "paid"), (0, 11)):
        problem = ReferencePricing(reference=reference, weight=50.0, memory=0.99)
        problem.reset(Streams([0]))
        rewards = []
        for t in range(200):
            problem.context()
            rewards.append(problem.step(np.array([first if t == 0 else 8])).reward[0])
        told[reference, first] = rewards[1:]
    assert told["list", 0] == told["list", 11]
    assert told["paid", 0] != told["paid", 11]
    open_proof = certify(FADE(), ReferencePricing().spec, accountants=False)
    carried = certify(FADE(), ReferencePricing(reference="paid").spec, accountants=False)
    assert (round(open_proof.epsilon, 6), carried.epsilon) == (1.0, inf)
    assert carried.ledger.brief == "not covered"


def test_stock_has_a_bound_and_covers_nobody():
    """Oracle: the best mixture of prices for each customer, where units beyond the stock are dear
    or cheap; golden, of an independent program: four stocks. What one buys changes what later ones
    are answered, but where units are ordered."""
    for stock, bound in ((1500, 2235.0), (2000, 2980.0), (3000, 4318.82), (4000, 4932.69)):
        assert StockPricing(stock=stock).fluid == pytest.approx(bound, abs=0.01)
    rng = np.random.default_rng(0)
    for _ in range(6):
        margins, sales = np.sort(rng.random(3)), rng.random((4, 3))
        stock, horizon = int(rng.integers(1, 30)), 40
        people = np.repeat(np.eye(5)[:4], [3, 3, 3, 3, 1], axis=1)
        for dear in (2.0, 0.1):
            found = linprog(
                np.append(-(margins * sales).ravel() * horizon / 4, dear),
                A_ub=np.vstack([np.append(sales.ravel() * horizon / 4, -1), people]),
                b_ub=[stock, 1, 1, 1, 1],
            )
            bound = fluid_bound(margins, sales, stock, horizon, min(dear, margins.max()))
            assert bound == pytest.approx(-found.fun, abs=1e-9)
    ordered = {"oversold": "order"}
    assert StockPricing(**ordered, order_cost=0.1).spec.largest_bid == 0.1
    for config in (FADE(), Uniform()):
        told = certify(config, "StockPricing", accountants=False)
        assert (told.epsilon, told.ledger.brief) == (inf, "not covered")
        assert certify(config, "StockPricing", env_kwargs=ordered, accountants=False).epsilon <= 1


@pytest.mark.parametrize("oversold", ["refuse", "order"])
def test_what_is_sold_out_earns_nothing_or_costs_more(oversold):
    """Golden: customers are offered the lowest price until the stock is sold; then a sale earns
    nothing, or costs an order more. The best fixed price sells to all who accept it, up to the
    stock."""
    D = demand()
    theta = np.linalg.lstsq(D.context, D.utility)[0]
    problem = StockPricing(horizon=60, stock=20, oversold=oversold, order_cost=2.0)
    problem.reset(Streams([0, 1]))
    sold = np.zeros(2)
    for _ in range(60):
        x = problem.context()
        out = sold >= 20
        step = problem.step(np.zeros(2, int))
        chance = expit(x @ theta - D.slope * D.prices[0])
        extra = 2.0 * out if oversold == "order" else 0.0
        expected = (0.39 - extra) * chance * (1 - out * (oversold == "refuse"))
        np.testing.assert_allclose(step.expected, expected, atol=1e-12)
        sold += step.reward > 0
    assert (sold == 20).all() if oversold == "refuse" else (sold > 20).all()
    theirs = [StockPricing(horizon=60, stock=60), problem]
    for one in theirs:
        one.reset(Streams([0] * 12))
    wanted = 0.0
    for _ in range(60):  # every price in a replica of its own, with enough for all
        customers = [one.context() for one in theirs]
        np.testing.assert_array_equal(*customers)
        wanted = wanted + theirs[0].step(np.arange(12)).expected / (D.prices - D.cost)
        problem.step(np.zeros(12, int))
    earned = (D.prices - D.cost) * np.minimum(wanted, 20)
    if oversold == "order":
        earned = (D.prices - D.cost) * wanted - 2.0 * np.maximum(wanted - 20, 0)
    np.testing.assert_array_equal(problem.best_fixed(), earned.argmax())
    closed = problem.spec.closed
    problem.reset(Streams([0, 1]))
    problem.context()
    shut = problem.step(np.full(2, closed))
    assert not shut.reward.any()
    assert not shut.expected.any()
    refused("delay=3", replace, StockPricing().spec, delay=3)
