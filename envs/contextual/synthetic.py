"""Pricing for made-up customers, whose demand is as steep as one likes."""

from dataclasses import dataclass

import numpy as np
import scipy

from dpbandit.base import Floats, inside
from dpbandit.envs.contextual.problems import TidalChoices
from dpbandit.specs import PriceListSpec

_PRICES = np.linspace(1.0, 3.0, 11)
_COST = 0.5
_MEAN_VALUATION, _PULL = 2.0, (0.6, 0.3)
"""What the average customer pays in every other case, and what her features add, in dollars"""
_SIDE = 32
"""Customers along each feature"""


@dataclass(kw_only=True, eq=False)
class SyntheticPricing(TidalChoices):
    """Choose one of 11 prices for made-up customers; `slope` says how fast demand falls in price.

    Description:
        A customer has two features z in [-1, 1]^2, one of 32 x 32 points of a grid, and is worth w
        = 2 + 0.6 z_1 + 0.3 z_2 dollars: at the price p she buys with probability 1 / (1 + exp(slope
        (p - w))). Where demand is steep, a price slightly above w sells nothing, and each customer
        has a price of her own; where it is flat, prices hardly matter, and gaps are small.

    Action space:
        `Discrete(11)`: `env.unwrapped.prices[action]` dollars, 1.00 to 3.00 in steps of 0.20.

    Observation space:
        `Box`, shape (3,): (1, z_1, z_2) / sqrt(3); Euclidean norm at most 1.

    Rewards:
        Dollars: (price - unit cost 0.50) if the customer buys, else 0; in [0, 2.50].

    Arguments:
        * `slope`: logits by which a dollar lowers demand, above 0, below 100.
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; the reward is 0 until then.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`.
    """

    slope: float = 3.0
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        inside("slope", self.slope, 0, 100, ends=False)
        middles = (2 * np.arange(_SIDE) + 1) / _SIDE - 1
        z = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
        self._known = np.column_stack([np.ones(len(z)), z]) / np.sqrt(3)
        valuation = _MEAN_VALUATION + z @ _PULL
        self._chances = np.asarray(scipy.special.expit(self.slope * (valuation[:, None] - _PRICES)))
        self._margins = _PRICES - _COST
        self.spec = PriceListSpec(
            n_actions=len(_PRICES),
            dim=self._dim(),
            horizon=self.horizon,
            prices=tuple(_PRICES.tolist()),
            unit_cost=_COST,
            reward_high=float(self._margins.max()),
            link="other",
            delay=self.delay,
            reward_unit="dollars",
        )

    @property
    def prices(self) -> Floats:
        """The price of each action in dollars, (11,)."""
        return _PRICES.copy()
