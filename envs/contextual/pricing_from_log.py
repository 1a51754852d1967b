"""A shop of one's own: a demand model fitted once to a log of offers, then frozen."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import MOST_ACTIONS, InputError, flag, one_of, shown, vector
from dpbandit.envs.contextual.demand_fit import FrozenDemand, Prices, fit_demand
from dpbandit.envs.contextual.log_checks import (
    enough_answers,
    fitted_once,
    price_range_of,
    read,
    ridge_of,
    unit_cost_of,
    unit_of,
)
from dpbandit.envs.contextual.problems import TidalChoices
from dpbandit.offline.columns import numbers
from dpbandit.specs.protocols import PriceListSpec

_PRICES = 9
_MARGIN = 0.05
"""Of the price range, left out at either end of the default prices"""


@dataclass(eq=False, repr=False)
class PricingFromLog(TidalChoices):
    """Choose prices for customers of a log of your own, whose demand is fitted once and frozen.

    Description:
        One row of the log is one offer to one customer, also when nothing was sold. A logit of
        sales on features, price and, with `interactions`, price times features is fitted once; its
        customers are rows drawn with replacement, who buy with the probability of that model.
        Regret is under the model, never in the world. `diagnostics` says how well it fits, and
        `print(problem)` all that should be known; logs that cannot tell what a price does are
        refused, each with its sentence. No diagnostic finds prices that followed a demand nobody
        recorded. A certificate protects one simulated customer of one round, never a row of the
        log. See `docs/howto/shop.md`.

    Action space:
        `Discrete(K)`: `env.unwrapped.spec.prices[action]`; nine prices by default.

    Observation space:
        `Box`, shape (1 + d,): (1, features) / sqrt(1 + d), ranges scaled to [-1, 1] and clipped,
        levels one-hot (0 or 1) against the first; Euclidean norm at most 1.

    Rewards:
        In the `unit` of prices: (price - unit cost) if the customer buys, else 0.

    Starting state:
        The first customer.

    Episode end:
        Truncation after `horizon` customers; never terminates.

    Arguments:
        * `frame`: a DataFrame, a mapping from names to columns, or the path of a .csv or .parquet
          file. Required.
        * `price`, `sold`: names of columns: what was asked, and 1 if it was paid, else 0.
        * `features`: names of columns and their public bounds: `{"age": (18, 90), "shop": ("A",
          "B", "C")}`, or `{}`. Required: a bound read off the log would be data that no
          certificate covers.
        * `price_range`: (low, high), public; every price of the log lies inside. Required.
        * `unit_cost`: of a sale, in the `unit` of prices. Required. `prices`: the actions; None:
          nine in equal steps from 5 % to 95 % of the price range. `unit`: for labels.
        * `interactions`: a price slope for each feature, or one for all.
        * `ridge`: penalty of all coefficients but the constant.
        * `clusters`: a column, such as the store and week whose price it was, for errors.
        * `monotone`: `"clip"` makes demand fall with the price for everybody, with a slope of at
          least 0.05 in the logit for half the price range; None refuses a log where it rises for
          more than 10 % of its rows.
        * `sha256`: of the file at the path `frame`, which is refused if it is another.
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; 0 is handed out before.
        * `season`, `drift`, `shock`, `clock`: as in `dpbandit/OJPricing-v0`.

    Version history:
        * v0: first release.
    """

    frame: Any = None
    _: KW_ONLY
    price: str = "price"
    sold: str = "sold"
    features: Mapping[str, Sequence[Any]] | None = None
    price_range: Sequence[float] | None = None
    unit_cost: float | None = None
    prices: Sequence[float] | None = None
    unit: str = "dollars"
    interactions: bool = True
    ridge: float = 1e-6
    clusters: str | None = None
    monotone: Literal["clip"] | None = None
    sha256: str | None = None
    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        unit_of(self.unit)
        prices = self._public_prices()
        fit = self._fit(*prices)
        self.diagnostics, self._known, self._chances = fit.diagnostics, fit.context, fit.chances
        _, _, grid, cost = prices
        self._worth = grid - cost
        self.spec = PriceListSpec(
            n_actions=len(grid),
            dim=self._dim(),
            horizon=self.horizon,
            prices=tuple(grid.tolist()),
            unit_cost=cost,
            reward_high=float(self._worth.max()),
            link="other",
            delay=self.delay,
            reward_unit=self.unit,
        )

    def __repr__(self) -> str:
        return f"PricingFromLog: {self.diagnostics}"

    def _public_prices(self) -> tuple[float, float, Floats, float]:
        """The range of prices, those that can be asked, and the unit cost."""
        low, high = price_range_of(self.price_range)
        cost = unit_cost_of(self.unit_cost)
        flag("interactions", self.interactions)
        if self.monotone is not None:
            one_of("monotone", self.monotone, ("clip",))
        margin = _MARGIN * (high - low)
        if self.prices is None:
            grid = np.linspace(low + margin, high - margin, _PRICES)
        else:
            grid = vector("prices", self.prices, None)
        if not 2 <= len(grid) <= MOST_ACTIONS or len(set(grid.tolist())) < len(grid):
            raise InputError(f"Expected prices={shown(self.prices)} to be two or more, each once.")
        if not grid.min() > cost:
            raise InputError(
                f"Expected every price above unit_cost={cost:g}, got {grid.min():.4g}: "
                "say prices= that are."
            )
        return low, high, grid, cost

    def _fit(self, low: float, high: float, grid: Floats, cost: float) -> FrozenDemand:
        log = read(self.frame, (self.sold, self.price), self.features, self.clusters, self.sha256)
        prices = Prices(numbers(log.table, self.price), low, high, grid, cost, self.unit)
        k = log.design.shape[1]
        penalty = ridge_of(self.ridge, 2 * k if self.interactions else k + 1)
        yes = enough_answers(log.table, self.sold, len(penalty))
        clip = self.monotone == "clip"
        return fitted_once(
            lambda: fit_demand(log, yes, prices, penalty, sold=self.sold, clip=clip),
            log.design,
            log.groups,
            yes,
            *prices,
            penalty,
            (log.features.names, log.features.outside, tuple(log.levels), self.sold, clip),
        )
