"""Pricing for simulated customers whose slope of demand is a setting."""

from dataclasses import dataclass

import numpy as np
import scipy

from dpbandit.base import Floats, inside
from dpbandit.envs.contextual.problems import TidalChoices
from dpbandit.specs import PriceListSpec

_PRICE_GRID = np.linspace(1.0, 3.0, 11)  # prices of the actions, dollars
_COST = 0.5  # unit cost, dollars
_MEAN_VALUE, _FEATURE_VALUES = 2.0, (0.6, 0.3)
"""Customers' mean value of the product, and its increase per unit of each feature, in dollars"""
_GRID_SIDE = 32
"""Number of values of each of two features; customers are all pairs of values"""


@dataclass(kw_only=True, eq=False)
class SyntheticPricing(TidalChoices):
    """Choose one of 11 prices for simulated customers; `slope` sets how fast demand falls.

    Description:
        A customer has features z_1, z_2 in [-1, 1], on a grid of 32 x 32 points, and values the
        product at w = 2 + 0.6 z_1 + 0.3 z_2 dollars: at price p she buys with probability 1 / (1 +
        exp(slope (p - w))). With a steep slope a price slightly above w sells nothing, so the best
        price differs between customers; with a flat one all prices earn about as much.

    Action space:
        `Discrete(11)`: `env.unwrapped.prices[action]` dollars, 1.00 to 3.00 in steps of 0.20.

    Observation space:
        `Box`, shape (3,): (1, z_1, z_2) / sqrt(3); Euclidean norm at most 1.

    Rewards:
        Dollars: (price - unit cost 0.50) if the customer buys, else 0; in [0, 2.50].

    Arguments:
        * `slope`: decrease of the logit of a purchase per dollar, in (0, 100).
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; the reward is 0 until then.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`.
    """

    slope: float = 3.0
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        inside("slope", self.slope, 0, 100, ends=False)
        middles = (2 * np.arange(_GRID_SIDE) + 1) / _GRID_SIDE - 1
        z = np.stack(np.meshgrid(middles, middles, indexing="ij"), axis=-1).reshape(-1, 2)
        self._known = np.column_stack([np.ones(len(z)), z]) / np.sqrt(3)
        w = _MEAN_VALUE + z @ _FEATURE_VALUES
        self._chances = np.asarray(scipy.special.expit(self.slope * (w[:, None] - _PRICE_GRID)))
        self._margins = _PRICE_GRID - _COST
        self.spec = PriceListSpec(
            n_actions=len(_PRICE_GRID),
            dim=self._dim(),
            horizon=self.horizon,
            prices=tuple(_PRICE_GRID.tolist()),
            unit_cost=_COST,
            reward_high=float(self._margins.max()),
            link="other",
            delay=self.delay,
            reward_unit="dollars",
        )

    @property
    def prices(self) -> Floats:
        """The price of each action in dollars, (11,)."""
        return _PRICE_GRID.copy()
