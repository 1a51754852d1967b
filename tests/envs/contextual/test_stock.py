"""A limited stock: the fluid bound, lost sales, and what no certificate covers."""

from dataclasses import replace
from math import inf

import numpy as np
import pytest

from dpbandit import InputError, certify
from dpbandit.agents import FADE, Uniform
from dpbandit.base.random_streams import Streams
from dpbandit.envs import StockPricing
from dpbandit.specs.bid_prices import BidPrices, best_price, fluid_bound


@pytest.mark.parametrize(
    ("stock", "bound"), [(1500, 2235.0), (2000, 2980.0), (3000, 4318.82), (4000, 4932.69)]
)
def test_the_fluid_bound_is_that_of_the_reference(stock, bound):
    """Golden, of an independent program; 2,284 at 1,500 where bids stop short of the margin."""
    assert StockPricing(stock=stock).fluid == pytest.approx(bound, abs=0.01)


def test_the_bound_is_the_linear_program():
    """Oracle: the best mixture of prices for each customer, sales no more than there is."""
    from scipy.optimize import linprog

    rng = np.random.default_rng(0)
    for _ in range(6):
        margins, sales = np.sort(rng.random(3)), rng.random((4, 3))
        stock, horizon = int(rng.integers(1, 30)), 40
        people = np.repeat(np.eye(4), 3, axis=1)
        found = linprog(
            -(margins * sales).ravel() * horizon / 4,
            A_ub=np.vstack([sales.ravel() * horizon / 4, people]),
            b_ub=[stock, 1, 1, 1, 1],
        )
        bound = fluid_bound(margins, sales, stock, horizon, float(margins.max()))
        assert bound == pytest.approx(-found.fun, abs=1e-9)
        bid = BidPrices(margins, sales[None], points=1001)(np.array([stock / horizon]))
        price, _ = best_price(margins, sales, np.full(4, bid[0]))
        sold = np.where(price < 3, sales[range(4), np.minimum(price, 2)], 0).mean()
        assert sold <= stock / horizon


@pytest.mark.parametrize("oversold", ["refuse", "order"])
def test_what_is_sold_out_earns_nothing_or_costs_more(oversold):
    """Every customer is asked the lowest price until none is left, by hand."""
    problem = StockPricing(horizon=60, stock=20, oversold=oversold, order_cost=2.0)
    problem.reset(Streams([0, 1]))
    sold = np.zeros(2)
    for _ in range(60):
        x = problem.context()
        out = sold >= 20
        step = problem.step(np.zeros(2, int))
        chance = problem.spec.public_demand.sales(x, problem.spec.prices)[:, 0]
        extra = 2.0 * out if oversold == "order" else 0.0
        expected = (0.39 - extra) * chance * (1 - out * (oversold == "refuse"))
        np.testing.assert_allclose(step.expected, expected, atol=1e-12)
        sold += step.reward > 0
    assert (sold == 20).all() if oversold == "refuse" else (sold > 20).all()
    closed = problem.spec.closed
    problem.reset(Streams([0, 1]))
    problem.context()
    shut = problem.step(np.full(2, closed))
    assert not shut.reward.any()
    assert not shut.expected.any()


def test_nobody_is_covered_where_the_shop_tells():
    """An agent that never looks at stock, and one that never looks at all: what a customer buys
    changes what later ones are answered. Where units are ordered it does not."""
    for config in (FADE(), Uniform()):
        told = certify(config, "StockPricing", accountants=False)
        assert (told.epsilon, told.ledger.brief) == (inf, "not covered")
        private = certify(
            config, "StockPricing", env_kwargs={"oversold": "order"}, accountants=False
        )
        assert private.epsilon <= 1


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"stock": 0}, "stock=0"),
        ({"stock": 2.5}, "stock=2.5"),
        ({"oversold": "sorry"}, "oversold='sorry'"),
        ({"order_cost": -1}, "order_cost=-1"),
    ],
)
def test_mistakes_are_named(wrong, words):
    with pytest.raises(InputError, match=words):
        StockPricing(**wrong)


def test_sales_are_told_at_once():
    """A shelf that hears of sales late opens for more than there is: not certified."""
    with pytest.raises(InputError, match="delay=3"):
        replace(StockPricing().spec, delay=3)
