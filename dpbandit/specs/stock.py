"""The public facts of a price list for a limited stock."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal

import gymnasium as gym
import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import MOST_ROUNDS, at_least, one_of, whole
from dpbandit.base.random_streams import Streams
from dpbandit.specs.actions import arms_in_range, uniform_arms
from dpbandit.specs.protocols import PriceListSpec

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
    public_demand: "PublicDemand | None" = None
    """of a problem whose demand may be told to agents"""

    def __post_init__(self) -> None:
        super().__post_init__()
        whole("stock", self.stock, 1, MOST_ROUNDS)
        whole("delay", self.delay, 0, 0)  # who counts late opens too often
        one_of("oversold", self.oversold, ("refuse", "order"))
        at_least("order_cost", self.order_cost, 0)

    @property
    def closed(self) -> int:
        """The action that sells to nobody."""
        return self.n_actions

    @property
    def carries(self) -> bool:
        """Whether the shop refuses customers because others bought before."""
        return self.oversold == "refuse"

    @property
    def largest_bid(self) -> float:
        """What a unit of stock can be worth at most, in dollars."""
        most = float(self.margins.max())
        return min(most, self.order_cost) if self.oversold == "order" else most

    def validate(self, action: Any, replicas: int) -> Ints:
        """Places on the price list or `closed`, (R,), whole numbers in [0, K]."""
        return arms_in_range(action, replicas, self.n_actions + 1)

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        """Draws prices (R,), never `closed`."""
        return uniform_arms(streams, self.n_actions)

    def action_space(self) -> gym.Space[Any]:
        """The prices, and `closed`."""
        return gym.spaces.Discrete(self.n_actions + 1)

    def told(self, potential: Floats, action: npt.NDArray[Any]) -> Floats:
        """What users (R, K) say of their price; nothing where it is closed."""
        said = super().told(potential, np.minimum(action, self.n_actions - 1))
        return np.where(action == self.closed, 0.0, said)


@dataclass(frozen=True)
class PublicDemand:
    """Demand and population that everybody knows: P(sale) = logistic(x . theta - slope price)."""

    theta: tuple[float, ...]
    """of a context, (d,)"""
    slope: float
    """utility lost per dollar"""
    people: tuple[tuple[float, ...], ...] = field(repr=False)
    """contexts (n, d), equally likely"""

    def sales(self, context: Floats, prices: tuple[float, ...]) -> Floats:
        """P(sale) of contexts (..., d) at every price, (..., K)."""
        utility = context @ np.array(self.theta)
        return np.asarray(1 / (1 + np.exp(self.slope * np.array(prices) - utility[..., None])))
