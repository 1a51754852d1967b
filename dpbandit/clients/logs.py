"""Read logs from a user's table.

`read_open_bandit` reads the Open Bandit Dataset: Saito, Aihara, Matsutani and Narita, "Open Bandit
Dataset and Pipeline: towards realistic and reproducible off-policy evaluation", NeurIPS 2021.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from dpbandit.base import MOST_ACTIONS, Floats, two_numbers, whole
from dpbandit.clients.log_columns import (
    Earned,
    contexts_in,
    read_arms,
    stacked,
    table_of,
    with_clipped,
)
from dpbandit.offline.columns import Bounds, numbers, unit_of
from dpbandit.offline.logs import Logged, LoggedLists, LoggedPrices, Observed
from dpbandit.offline.tables import index_of_rows
from dpbandit.specs import MOST_OUTSIDE, PriceSpec

DEFAULT_READING: Mapping[str, Any] = {}
"""Options of `reading` for a plain table, comma separated if it is a CSV file; see `read_table`."""


def read_log(
    table: Any,
    *,
    action: str,
    reward: str | None = None,
    sold: str | None = None,
    units: str | None = None,
    at_most: int | None = None,
    propensity: str | float | None = None,
    context: Sequence[str] | Bounds = (),
    arms: Sequence[Any] | None = None,
    prices: Sequence[float] | None = None,
    unit_cost: float | str | None = None,
    reward_range: tuple[float, float] | None = None,
    context_bound: float | None = None,
    lowest: float | None = None,
    probabilities: Sequence[str] | None = None,
    adaptive: bool = False,
    most_outside: float = MOST_OUTSIDE,
    unit: str = "reward",
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> Logged:
    """Read named columns of a table as `Logged`; print it to see how many rows exceed the bounds.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file. Series in a mapping are put in one order by their index.
        action, reward: names of columns.
        sold: in place of `reward` where arms are prices: name of a column of 0 and 1. The reward is
            then the margin, price - unit cost, of a sale.
        units, at_most: in place of `sold`: name of a column of units sold, 0 or more, and the
            public number to which they are clipped. The reward is the margin times units.
        propensity: name of a column, or one number: the probability with which the action was
            drawn. None: all arms were equally likely.
        context: the features. Names of columns and their public bounds, `{"age": (18, 90), "shop":
            ("A", "B", "C")}`: ranges are scaled to [-1, 1], levels are one-hot without the first,
            and the context is (1, features) / sqrt(1 + their number). Or names alone: the columns
            unscaled, without a 1 in front, which require `context_bound`. Or nothing: the
            constant 1.
        arms: names of the arms in order: arm k is `arms[k]`. None: all actions that occur, sorted,
            taken as public and complete; list the arms if one may never have been drawn.
        prices, unit_cost: in place of `arms`: the arms are these prices, each above the unit cost,
            so that agents may learn demand (`model="demand"`, `Priced`). Rewards lie between 0 and
            the largest margin, times `at_most`, unless there is a `reward_range`. The unit cost may
            be the name of a column with a public range in `context`, as who sets a price knows it.
        reward_range: (low, high), public bounds on rewards.
        context_bound: public bound on the Euclidean norm of unscaled columns in `context`.
        lowest, adaptive: see `Logged`.
        probabilities: names of columns, one for each arm in order, with the probability that the
            arm was drawn.
        most_outside: share of contexts, and of rewards, that may lie outside their bounds.
        unit: unit of rewards, such as "EUR", for sentences and axes.
        reading: how the table is written, such as {"sep": ";", "decimal": ",", "yes": ["ja"],
            "drop_missing": True}, see `dpbandit.offline.tables`; "yes" is for `sold`, or a `reward`
            of words.

    Bounds, ranges and levels are arguments because they have to be public, known before the log
    was recorded.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, a missing
            bound or range, a level or an action that is not listed, an arm twice, or a log that
            `Logged` refuses.

    >>> table = {"age": [34, 71], "shown": ["b", "a"], "click": [0, 1]}          # or a DataFrame
    >>> columns = {"context": {"age": (18, 90)}, "action": "shown", "reward": "click"}
    >>> logged = read_log(table, **columns, reward_range=(0, 1))
    >>> logged.action.tolist(), logged.context.round(2).tolist(), logged.propensity.tolist()
    ([1, 0], [[0.71, -0.39], [0.71, 0.33]], [0.5, 0.5])
    >>> offers = {"asked": [2.0, 3.0], "bought": [1, 0]}
    >>> logged = read_log(offers, action="asked", sold="bought", prices=[2, 3], unit_cost=0.5)
    >>> logged.reward.tolist(), logged.spec.prices
    ([1.5, 0.0], (2.0, 3.0))
    """
    read = read_arms(
        table, action, context, arms,
        Earned(reward, sold, units, at_most, prices, unit_cost, unit, reward_range),
        context_bound, most_outside, reading, [propensity, probabilities],
    )  # fmt: skip
    if isinstance(propensity, str):
        chance: Floats | float = numbers(read.table, propensity)
    else:
        chance = 1 / read.arms["spec"].n_actions if propensity is None else propensity
    logged = Logged(
        **read.arms,
        propensity=chance,
        lowest=lowest,
        probabilities=None if probabilities is None else stacked(read.table, probabilities),
        adaptive=adaptive,
    )
    return with_clipped(logged, read)


def read_observed(
    table: Any,
    *,
    action: str,
    reward: str | None = None,
    sold: str | None = None,
    units: str | None = None,
    at_most: int | None = None,
    context: Sequence[str] | Bounds = (),
    arms: Sequence[Any] | None = None,
    prices: Sequence[float] | None = None,
    unit_cost: float | str | None = None,
    reward_range: tuple[float, float] | None = None,
    context_bound: float | None = None,
    most_outside: float = MOST_OUTSIDE,
    unit: str = "reward",
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> Observed:
    """Read named columns of a table without propensities as `Observed`.

    Args:
        table, action, reward, sold, units, at_most, context, arms: as for `read_log`.
        prices, unit_cost, reward_range, context_bound, most_outside: as for `read_log`.
        unit, reading: as for `read_log`.

    >>> table = {"age": [34, 71], "shown": ["b", "a"], "click": [0, 1]}
    >>> columns = {"context": {"age": (18, 90)}, "action": "shown", "reward": "click"}
    >>> print(read_observed(table, **columns, reward_range=(0, 1)))
    2 rounds with 2 arms, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """
    read = read_arms(
        table, action, context, arms,
        Earned(reward, sold, units, at_most, prices, unit_cost, unit, reward_range),
        context_bound, most_outside, reading, [],
    )  # fmt: skip
    return with_clipped(Observed(**read.arms), read)


POSITIONS = (1, 2, 3)
"""Positions on the page, each with its own row; the file does not say which rows share a page."""


def read_open_bandit(table: Any, *, n_items: int) -> Logged:
    """Read a log of the Open Bandit Dataset as `Logged`.

    The context is the position, one-hot; the file's features of users are hashes without public
    levels and are not read.

    Args:
        table: a DataFrame, a mapping from names to columns, or the path of a file such as all.csv.
        n_items: number of items, numbered from 0: 80 of "all", 34 of "men", 46 of "women".

    >>> rows = {"item_id": [0, 2], "position": [1, 3], "click": [0, 1],
    ...         "propensity_score": [1 / 3, 1 / 3]}
    >>> print(read_open_bandit(rows, n_items=3))
    2 rounds with 3 arms, 0 of 2 contexts (0 %) and 0 rewards (0 %) outside their bounds
    """
    whole("n_items", n_items, 2, MOST_ACTIONS)
    return read_log(
        table,
        action="item_id",
        reward="click",
        propensity="propensity_score",
        arms=range(n_items),
        reward_range=(0, 1),
        context={"position": POSITIONS},
    )


def read_lists(
    table: Any,
    *,
    n_items: int,
    items: Sequence[str],
    clicks: Sequence[str],
    prefix: Sequence[str],
    marginal: Sequence[str] | None = None,
    context: Sequence[str] | Bounds = (),
    context_bound: float | None = None,
    adaptive: bool = False,
    most_outside: float = MOST_OUTSIDE,
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> LoggedLists:
    """Read named columns of a table as `LoggedLists`.

    Args:
        table: one row for each list: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        n_items: number of items in the catalogue, which are numbered from 0.
        items, clicks, prefix, marginal: names of columns, one for each position from the top; see
            `LoggedLists`.
        context, context_bound, most_outside, reading: as for `read_log`.
        adaptive: see `LoggedLists`.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, or a log
            that `LoggedLists` refuses.

    >>> table = {"top": [4, 1], "next": [0, 2], "c1": [0, 1], "c2": [1, 0],
    ...          "p1": [0.2, 0.2], "p12": [0.05, 0.05]}
    >>> log = read_lists(table, n_items=5, items=["top", "next"], clicks=["c1", "c2"],
    ...                  prefix=["p1", "p12"])
    >>> log.reward.tolist()
    [1.0, 1.0]
    """
    table = table_of(table, reading, [items, prefix, marginal, context], clicks)
    lists = stacked(table, items)
    return LoggedLists(
        n_items=n_items,
        items=lists,  # type: ignore[arg-type]  # checked, and made whole numbers, there
        clicks=stacked(table, clicks),
        prefix=stacked(table, prefix),
        marginal=None if marginal is None else stacked(table, marginal),
        context=contexts_in(table, context, context_bound, len(lists), most_outside).rows,
        adaptive=adaptive,
        index=index_of_rows(table),
    )


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
    unit: str = "reward",
    reading: Mapping[str, Any] = DEFAULT_READING,
) -> LoggedPrices:
    """Read named columns of a table as `LoggedPrices`, for prices drawn from a density.

    Prices from a short list are arms: `read_log(prices=...)`.

    Args:
        table: one row for each round: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        price, reward, density: names of columns; the density is per dollar, at the logged price.
        price_range, reward_range: (low, high), public bounds.
        context, context_bound, most_outside, unit, reading: as for `read_log`.
        adaptive: see `LoggedPrices`.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, or a log
            that `LoggedPrices` refuses.

    >>> table = {"asked": [1.2, 2.9], "paid": [1.2, 0.0], "density": [0.5, 0.5]}
    >>> log = read_prices(table, price="asked", reward="paid", density="density",
    ...                   price_range=(1, 3), reward_range=(0, 3))
    >>> log.spec.high, log.reward.tolist()
    (3.0, [1.2, 0.0])
    """
    table = table_of(table, reading, [price, density, context], [reward])
    price_column = numbers(table, price)
    low, high = two_numbers("price_range", price_range)
    least, most = two_numbers("reward_range", reward_range)
    contexts = contexts_in(table, context, context_bound, len(price_column), most_outside)
    spec = PriceSpec(
        dim=contexts.rows.shape[1],
        horizon=max(1, len(price_column)),
        low=low,
        high=high,
        reward_low=least,
        reward_high=most,
        context_bound=contexts.bound,
        most_outside=most_outside,
        reward_unit=unit_of(unit),
    )
    return LoggedPrices(
        spec=spec,
        context=contexts.rows,
        price=price_column,
        reward=numbers(table, reward),
        density=numbers(table, density),
        adaptive=adaptive,
        index=index_of_rows(table),
    )
