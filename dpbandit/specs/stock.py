"""The public facts of a price list for a limited stock, and what a unit of it is worth."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np

from dpbandit.base import MOST_ROUNDS, AnyArray, Floats, Ints, Streams, at_least, one_of, whole
from dpbandit.specs.protocols import PriceListSpec, arms_in_range, uniform_arms


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
