"""Pricing a limited stock of orange juice, and the fluid bound on the reward of any policy."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from dpbandit.base import (
    MOST_ROUNDS,
    AnyArray,
    Floats,
    Ints,
    Streams,
    at_least,
    one_of,
    rows,
    whole,
)
from dpbandit.envs.contextual.orange_juice import demand
from dpbandit.envs.contextual.problems import ResampledChoices
from dpbandit.specs import PriceListSpec, Step, arms_in_range, uniform_arms


def fluid_bound(margins: Floats, sales: Floats, stock: int, horizon: int, most: float) -> float:
    """Return an upper bound, in dollars, on the mean total reward of every policy (weak duality).

    The bound is the minimum over 0 <= l <= `most` of l stock + T E max(0, max_k (margin_k - l) P_k)
    where P_k is a person's probability to buy at price k, `sales` (n, K) for n equally likely
    people, and `most` the largest margin, or the cost of a unit beyond the stock if that is less.
    Golden-section search finds the minimum of this convex function of the multiplier l to 1e-9.
    """

    def bound(bid: float) -> float:
        gain = np.maximum(((margins - bid) * sales).max(axis=-1), 0.0)
        return bid * stock + horizon * float(gain.mean())

    low, high, golden = 0.0, most, (5**0.5 - 1) / 2
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = bound(a), bound(b)
    while high - low > 1e-13 * most:
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = bound(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = bound(b)
    return min(at_a, at_b, bound(0.0), bound(most))


Oversold = Literal["refuse", "order"]


@dataclass(frozen=True, kw_only=True)
class StockSpec(PriceListSpec):
    """Prices for `stock` units and `horizon` customers; the last action sells to nobody.

    Agents do not observe that the stock is sold out: a refused sale earns 0, like a customer who
    does not want to buy. With `oversold="refuse"` the shop refuses customers once all units are
    sold, so that one customer's purchase changes later customers' feedback; with "order" it
    refuses nobody and pays `order_cost` more for each unit beyond the stock.
    """

    kind: ClassVar[str] = "prices of a limited stock"
    in_hindsight: ClassVar[bool] = True
    stock: int
    """number of units for sale"""
    oversold: Oversold = "refuse"
    order_cost: float = 2.0
    """additional cost of a unit beyond the stock, dollars"""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("stock", self.stock, 1, MOST_ROUNDS)
        whole("delay", self.delay, 0, 0)  # the shop answers at once
        one_of("oversold", self.oversold, ("refuse", "order"))
        at_least("order_cost", self.order_cost, 0)

    @property
    def closed(self) -> int:
        """Index of the action that sells to nobody, K."""
        return self.n_actions

    @property
    def carries(self) -> bool:
        # True if the shop refuses customers because others bought before
        return self.oversold == "refuse"

    @property
    def largest_bid(self) -> float:
        """Upper bound of the marginal value of a unit of stock, dollars."""
        most = float(self.margins.max())
        return min(most, self.order_cost) if self.oversold == "order" else most

    def validate(self, action: Any, replicas: int) -> Ints:
        return arms_in_range(action, replicas, self.n_actions + 1)

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        return uniform_arms(streams, self.n_actions)

    def action_space(self) -> gym.Space[Any]:
        return gym.spaces.Discrete(self.n_actions + 1)

    def answer_to(self, potential: Floats, action: AnyArray) -> Floats:
        # answers of users (R, K) to their price; 0 if the shop is closed
        answers = super().answer_to(potential, np.minimum(action, self.n_actions - 1))
        return np.where(action == self.closed, 0.0, answers)


@dataclass(kw_only=True, eq=False)
class StockPricing(ResampledChoices):
    """Sell a limited stock of orange juice: choose a price for each customer, or close.

    Description:
        The customers and the demand model of `dpbandit/OJPricing-v0`, with `stock` cartons for all
        of them. Regret is measured against F / T per round, where F is the fluid bound of Gallego
        and van Ryzin (Management Science, 1994), which no policy can exceed on average: 2,235,
        2,980, 4,319 and 4,933 dollars for stocks of 1,500, 2,000, 3,000 and 4,000 and T = 10,000.
        No policy attains the bound; single rounds may have a negative regret.

        A truthful "sold out" is not private at any epsilon, whatever the prices: a customer who is
        refused learns that all units were bought. So with `oversold="refuse"` certificates of all
        agents are "not covered".

    Action space:
        `Discrete(13)`: `env.unwrapped.prices[action]` dollars, 1.19 to 2.29; 12 sells to nobody.

    Observation space:
        `Box`, shape (3,), as in `dpbandit/OJPricing-v0`. The remaining stock is not observed; an
        agent can count its sales.

    Rewards:
        Dollars: (price - unit cost 0.80) if the customer buys, else 0; in [0, 1.49]. A refused
        customer buys nothing. Regret includes the cost of ordered units, which agents do not
        observe.

    Starting state:
        The first customer, and the full stock.

    Episode end:
        Truncation after `horizon` customers, sold out or not.

    Arguments:
        * `horizon`: rounds. `stock`: cartons.
        * `oversold`: a sale beyond the stock is refused ("refuse"), or made at a unit cost that is
          `order_cost` dollars higher ("order").
    """

    horizon: int = 10_000
    stock: int = 3_000
    oversold: Oversold = "refuse"
    order_cost: float = 2.0

    def __post_init__(self) -> None:
        D = self._demand = demand()
        self._margins = D.prices - D.cost
        self._known = D.context
        self._chances = D.probability(rows(len(D.utility))[:, None], D.prices)  # (1070, 12)
        self.spec = StockSpec(
            n_actions=len(D.prices),
            dim=D.context.shape[1],
            horizon=self.horizon,
            prices=tuple(D.prices.tolist()),
            unit_cost=D.cost,
            reward_high=float(self._margins.max()),
            link="other",
            reward_unit="dollars",
            stock=self.stock,
            oversold=self.oversold,
            order_cost=self.order_cost,
        )
        self.fluid = fluid_bound(
            self._margins, self._chances, self.stock, self.horizon, self.spec.largest_bid
        )

    @property
    def prices(self) -> Floats:
        """Price of each action except the last, which closes the shop, in dollars, (12,)."""
        return self._demand.prices

    def reset(self, streams: Streams) -> None:
        super().reset(streams)
        self.sold, self._rounds = np.zeros(len(streams), np.int64), 0

    def step(self, action: AnyArray) -> Step:
        R, K = len(self.sold), len(self._margins)
        action = self.spec.validate(action, R)
        mean, paid = self._table.mean[self._next], self._table.reward[self._next]
        self._next += 1
        self._totals += mean
        shut, price = action == K, self._offset + np.minimum(action, K - 1)
        out = self.sold >= self.stock
        refused = shut | out if self.oversold == "refuse" else shut
        reward = np.where(refused, 0.0, paid.take(price))
        expected = np.where(refused, 0.0, mean.take(price))
        if self.oversold == "order":
            buys = expected / self._margins[np.minimum(action, K - 1)]
            expected = expected - np.where(out, self.order_cost * buys, 0.0)
        self.sold = self.sold + (reward > 0)
        self._rounds += 1
        return Step(reward, expected, np.zeros(R), -expected)

    def hindsight(self) -> Floats:
        return np.full(len(self.sold), self.fluid / self.horizon * self._rounds)

    def best_fixed(self) -> Ints:
        wanted = self._totals / self._margins
        earned = self._margins * np.minimum(wanted, self.stock)
        if self.oversold == "order":
            over = np.maximum(wanted - self.stock, 0)
            earned = self._totals - self.order_cost * over
        return np.asarray(earned.argmax(axis=1))
