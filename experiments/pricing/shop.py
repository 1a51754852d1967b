"""Somebody's own shop: the table of `docs/howto/shop.md`, as its page reads it."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from importlib.resources import files
from io import BytesIO
from typing import Any

import pandas as pd

from dpbandit.envs import PricingFromLog


def offers() -> pd.DataFrame:
    """1,070 offers of orange juice that ship: price, sold or not, the rival's price, loyalty."""
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
    """`PricingFromLog` on `offers`, with the bounds that the page says."""

    frame: Any = field(default_factory=offers)
    _: KW_ONLY
    features: Mapping[str, Sequence[Any]] | None = field(
        default_factory=lambda: {"rival": (1.39, 2.09), "loyalty": (0, 1)}
    )
    price_range: Sequence[float] | None = (1.19, 2.29)
    unit_cost: float | None = 0.8
    clusters: str | None = "week"
