"""Logs of prices from a continuum, from a table of the user's."""

from collections.abc import Sequence
from typing import Any

from dpbandit.clients.answers import two_numbers
from dpbandit.clients.log_contexts import contexts_in
from dpbandit.offline.columns import Bounds, numbers, table_of
from dpbandit.offline.logged_prices import LoggedPrices
from dpbandit.specs.protocols import MOST_OUTSIDE, PriceSpec


def read_prices(
    table: Any,
    *,
    price: str,
    reward: str,
    density: str,
    price_range: tuple[float, float],
    reward_range: tuple[float, float],
    context: Sequence[str] | Bounds = (),
    context_bound: float | None = None,
    adaptive: bool = False,
    most_outside: float = MOST_OUTSIDE,
) -> LoggedPrices:
    """Named columns of a table as `LoggedPrices`, for prices drawn from a density.

    Prices from a short list are arms: `read_log(prices=...)`.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        price, reward, density: names of columns; the density is per dollar, at the price asked.
        price_range, reward_range: (low, high), public bounds.
        context, context_bound, most_outside: as for `read_log`.
        adaptive: see `LoggedPrices`.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, or what
            `LoggedPrices` refuses.

    >>> table = {"asked": [1.2, 2.9], "paid": [1.2, 0.0], "density": [0.5, 0.5]}
    >>> log = read_prices(table, price="asked", reward="paid", density="density",
    ...                   price_range=(1, 3), reward_range=(0, 3))
    >>> log.spec.high, log.reward.tolist()
    (3.0, [1.2, 0.0])
    """
    table = table_of(table)
    asked = numbers(table, price)
    low, high = two_numbers("price_range", price_range)
    least, most = two_numbers("reward_range", reward_range)
    shown = contexts_in(table, context, context_bound, len(asked), most_outside)
    spec = PriceSpec(
        dim=shown.rows.shape[1],
        horizon=max(1, len(asked)),
        low=low,
        high=high,
        reward_low=least,
        reward_high=most,
        context_bound=shown.bound,
        most_outside=most_outside,
    )
    return LoggedPrices(
        spec=spec,
        context=shown.rows,
        price=asked,
        reward=numbers(table, reward),
        density=numbers(table, density),
        adaptive=adaptive,
    )
