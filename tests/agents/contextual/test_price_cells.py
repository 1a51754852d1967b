"""PriceCells: what is counted, who is dropped, and what it earns."""

from dataclasses import replace
from math import inf, sqrt

import numpy as np
import pytest

from dpbandit.agents import PriceCells
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.envs import OJPricing
from dpbandit.privacy.sales import CellSales
from dpbandit.running.loop import play
from dpbandit.specs.protocols import PriceListSpec

SPEC = PriceListSpec(
    n_actions=2, dim=3, horizon=640, prices=(2.0, 3.0), unit_cost=1.0, reward_high=2.0
)


def test_what_is_counted():
    """Golden, by hand: two coordinates halved twice are 16 cells, the first the least digit; the
    buyer in the lowest corner and the one at the bound of both are in cells 0 and 15. Of two whom
    price 1 sells to one margin would be half a sale. Two buyers apart are sqrt(2) apart."""
    sales = CellSales(margins=(1.0, 2.0), coordinates=(1, 2), depth=2)
    corners = np.array([[0.0, -1, -1], [0, 1, 7], [0, 0.1, -0.9], [np.nan, np.inf, np.nan]])
    assert sales.cells(corners).tolist() == [0, 15, 2, 10]
    rewards = [1.0, 2.0, 1.0, np.nan]
    users = [
        sales.total(x[None, None], np.array([[a]]), np.array([[r]]))[0]
        for x, a, r in zip(corners, [0, 1, 1, 0], rewards, strict=True)
    ]
    assert users[0][0, 0, 0] == users[1][0, 15, 1] == users[3][1, 10, 0] == 1
    assert users[2][:, 2, 1].tolist() == [0.5, 0.5]
    assert [user.sum() for user in users] == [1, 1, 1, 1]
    assert np.linalg.norm(users[0] - users[1]) == pytest.approx(sales.sensitivity) == sqrt(2)
    together = sales.total(corners[:, None], np.array([[0], [1], [1], [0]]), np.c_[rewards])
    np.testing.assert_array_equal(together, sum(users)[None])


def test_prices_are_dropped_where_they_sell_too_rarely():
    """Golden, by hand, without noise: in the first batch of 10 the price of margin 2 is asked n
    times and never sells, the other always. w = 1 / sqrt(4 n): it is dropped if 2 w < 1 - w of the
    other. In the cell where nobody came both are left, and in the one of sellers for good."""
    agent = PriceCells(epsilon=inf, coordinates=[1]).make(SPEC, Streams([0]))
    below, above = np.array([[1.0, -0.5, 0.0]]), np.array([[1.0, 0.5, 0.0]])
    asked = []
    for _ in range(10):
        price = agent.act(below)
        agent.update(below, price, np.where(price == 0, 1.0, 0.0))
        asked.append(price[0])
    n = np.bincount(asked)
    assert min(n) >= 3
    width = 1 / np.sqrt(4 * n)
    assert 2 * width[1] < 1 - width[0]
    assert {agent.act(below)[0] for _ in range(50)} == {0}
    assert {agent.act(above)[0] for _ in range(50)} == {0, 1}


def test_it_earns_more_than_one_price():
    """On orange juice, 4 replicas of 10,000 customers: 531 +- 15 at epsilon 4 (20 replicas, seed
    1000), where one cell has 835 +- 14 and the best fixed price 728 +- 2."""
    log = play(OJPricing(horizon=10_000), PriceCells(epsilon=4.0), range(4), marks=[10_000])
    assert 430 < log.regret[-1].mean() < 640


def test_cells_that_are_not_there_are_refused():
    assert PriceCells().make(replace(SPEC, dim=11), Streams([0])).counts.coordinates == (1, 10)
    assert PriceCells(coordinates=(), depth=3).make(SPEC, Streams([0])).counts.n_cells == 1
    for settings, words in (
        ({"coordinates": [3]}, r"coordinates=\[3\] to be at most 2"),
        ({"coordinates": [1, 1]}, r"coordinates=\[1, 1\] to be different"),
        ({"coordinates": "12"}, "coordinates='12' to be a list"),
        ({"coordinates": [-1]}, "coordinates=-1 to be a whole number >= 0"),
        ({"depth": 10, "coordinates": [0, 1]}, "depth=10 of 2 coordinates to make fewer cells"),
    ):
        with pytest.raises(InputError, match=words):
            PriceCells(**settings).make(SPEC, Streams([0]))
