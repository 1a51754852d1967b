"""Pricing a limited stock of orange juice, and what a unit of stock is worth."""

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
from dpbandit.specs import PriceListSpec, Step
from dpbandit.specs.protocols import arms_in_range, uniform_arms


def fluid_bound(margins: Floats, sales: Floats, stock: int, horizon: int, most: float) -> float:
    """F = min over 0 <= lambda <= `most` of lambda c + T E max(0, max_p (margin_p - lambda) P).

    No policy earns more on average, whatever it knows (weak duality); `most` is the largest margin,
    or what a unit beyond the stock costs. `sales` (n, K) of people who are equally likely. Convex
    and piecewise linear: found by golden sections to 1e-9.
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
    """Prices for `stock` units and `horizon` customers; action `closed` = K sells to nobody.

    Whether the stock is out is not told: a sale that did not happen earns 0, as for who did not
    want to buy. With `oversold="refuse"` the shop turns customers away once all units are sold,
    so that what one customer does changes what later ones are answered; with "order" it never
    does, and pays `order_cost` more for each unit that it has to order.
    """

    kind: ClassVar[str] = "prices of a limited stock"
    in_hindsight: ClassVar[bool] = True
    stock: int
    """c, units"""
    oversold: Oversold = "refuse"
    order_cost: float = 2.0
    """dollars, of a unit beyond the stock"""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("stock", self.stock, 1, MOST_ROUNDS)
        whole("delay", self.delay, 0, 0)  # the shop answers at once
        one_of("oversold", self.oversold, ("refuse", "order"))
        at_least("order_cost", self.order_cost, 0)

    @property
    def closed(self) -> int:
        """The action that sells to nobody."""
        return self.n_actions

    @property
    def carries(self) -> bool:
        # Whether the shop refuses customers because others bought before
        return self.oversold == "refuse"

    @property
    def largest_bid(self) -> float:
        """What a unit of stock can be worth at most, in dollars."""
        most = float(self.margins.max())
        return min(most, self.order_cost) if self.oversold == "order" else most

    def validate(self, action: Any, replicas: int) -> Ints:
        return arms_in_range(action, replicas, self.n_actions + 1)

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        return uniform_arms(streams, self.n_actions)

    def action_space(self) -> gym.Space[Any]:
        return gym.spaces.Discrete(self.n_actions + 1)

    def answer_to(self, potential: Floats, action: AnyArray) -> Floats:
        # What users (R, K) say of their price; nothing where it is closed
        answers = super().answer_to(potential, np.minimum(action, self.n_actions - 1))
        return np.where(action == self.closed, 0.0, answers)


@dataclass(kw_only=True, eq=False)
class StockPricing(ResampledChoices):
    """Sell a limited stock of orange juice: choose a price for each customer, or close.

    Description:
        The customers and the frozen demand of `dpbandit/OJPricing-v0`, and `stock` cartons for all
        of them. Regret is measured against F / T a round, F the fluid bound of Gallego and van
        Ryzin (Management Science, 1994), which no policy can exceed on average: 2,235, 2,980, 4,319
        and 4,933 dollars for stocks of 1,500, 2,000, 3,000 and 4,000 and T = 10,000. It is not
        attained, and a round may have a negative regret, as long as there is stock.

        A truthful "sold out" is not private at any epsilon, whatever prices do: who looks after the
        last unit learns that everybody before has bought. So with `oversold="refuse"` certificates
        of all agents are "not covered".

    Action space:
        `Discrete(13)`: `env.unwrapped.prices[action]` dollars, 1.19 to 2.29; 12 is closed.

    Observation space:
        `Box`, shape (3,), as in `dpbandit/OJPricing-v0`. How much is left is not shown: an agent
        knows what it sold.

    Rewards:
        Dollars: (price - unit cost 0.80) if the customer buys, else 0; in [0, 1.49]. Who is refused
        buys nothing. Regret also has the cost of units that were ordered, of which agents are not
        told.

    Starting state:
        The first customer, and a full shelf.

    Episode end:
        Truncation after `horizon` customers, sold out or not.

    Arguments:
        * `horizon`: rounds. `stock`: cartons.
        * `oversold`: what becomes of a sale beyond the stock: "refuse" (it is lost), or "order" (it
          is made, and the carton costs `order_cost` dollars more).
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
        """The price of each action but the last in dollars, (12,)."""
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
