"""Shops: the table that `docs/howto/shop.md` reads, and demand curves that no linear model fits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from importlib.resources import files
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from dpbandit.base import Floats, one_of
from dpbandit.envs import PricingFromLog
from dpbandit.envs.contextual.problems import ResampledChoices
from dpbandit.specs import PriceListSpec


def offers() -> pd.DataFrame:
    """Return 1,070 offers of orange juice: price, sold or not, the rival's price, loyalty, week."""
    table = files("dpbandit.envs") / "data" / "oj.csv.gz"
    juice = pd.read_csv(BytesIO(table.read_bytes()), compression="gzip")
    return pd.DataFrame(
        {
            "price": juice["SalePriceMM"],
            "sold": (juice["Purchase"] == "MM").astype(int),
            "rival": juice["SalePriceCH"],
            "loyalty": juice["LoyalCH"],
            "week": juice["StoreID"].astype(str) + "/" + juice["WeekofPurchase"].astype(str),
        }
    )


@dataclass(eq=False, repr=False)
class Shop(PricingFromLog):
    """`PricingFromLog` on `offers`, with the arguments of `docs/howto/shop.md`."""

    frame: Any = field(default_factory=offers)
    _: KW_ONLY
    features: Mapping[str, Sequence[Any]] | None = field(
        default_factory=lambda: {"rival": (1.39, 2.09), "loyalty": (0, 1)}
    )
    price_range: Sequence[float] | None = (1.19, 2.29)
    unit_cost: float | None = 0.8
    clusters: str | None = "week"


SHAPES: Mapping[str, Callable[[Floats, Floats, Floats], Floats]] = {
    "kinds": lambda p, u, v: (expit(8 * (1.3 + 0.2 * u - p)) + expit(8 * (2.7 + 0.2 * v - p))) / 2,
    "plateau": lambda p, u, v: expit(-40 * (p - 2.2 - 0.1 * u)) / 2,
    "luxury": lambda p, u, v: 0.25 + 0.35 * np.exp(-20 * (p - 2.6 - 0.1 * v) ** 2),
    "elastic": lambda p, u, v: np.minimum(1.0, (p / (1.2 + 0.2 * u + 0.1 * v)) ** -2.2),
}
"""Name -> function of (p, u, v), P(sale) at price p to a customer with features u, v in [-1, 1]"""


@dataclass(kw_only=True, eq=False)
class Shapes(ResampledChoices):
    """Problem of 11 prices from 1 to 3, unit cost 0.5 and demand `shape`, a key of `SHAPES`."""

    shape: str = "kinds"
    horizon: int = 20_000

    def __post_init__(self) -> None:
        one_of("shape", self.shape, tuple(SHAPES))
        prices, middles = np.linspace(1, 3, 11), (np.arange(32) + 0.5) / 16 - 1
        u, v = (side.ravel() for side in np.meshgrid(middles, middles))
        self._known = np.stack([np.ones_like(u), u, v], axis=1) / np.sqrt(3)
        self._chances = SHAPES[self.shape](prices, u[:, None], v[:, None])
        self._margins = prices - 0.5
        self.spec = PriceListSpec(
            n_actions=len(prices),
            dim=3,
            horizon=self.horizon,
            prices=tuple(prices.tolist()),
            unit_cost=0.5,
            reward_high=2.5,
            link="other",
            reward_unit="dollars",
        )
