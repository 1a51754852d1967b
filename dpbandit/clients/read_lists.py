"""Logs of lists from a table of the user's."""

from collections.abc import Sequence
from typing import Any

from dpbandit.clients.log_contexts import contexts_in, stacked
from dpbandit.offline.columns import Bounds, table_of
from dpbandit.offline.logged_lists import LoggedLists
from dpbandit.specs.protocols import MOST_OUTSIDE


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
) -> LoggedLists:
    """Named columns of a table as `LoggedLists`.

    Args:
        table: one row for each list: a DataFrame, a mapping from names to columns, or the path of
            a .csv or .parquet file.
        n_items: of the catalogue, whose items are numbered from 0.
        items, clicks, prefix, marginal: names of columns, one for each position from the top; see
            `LoggedLists`.
        context, context_bound, most_outside: as for `read_log`.
        adaptive: see `LoggedLists`.

    Raises:
        InputError: a column that is missing, has missing entries or holds no numbers, or what
            `LoggedLists` refuses.

    >>> table = {"top": [4, 1], "next": [0, 2], "c1": [0, 1], "c2": [1, 0],
    ...          "p1": [0.2, 0.2], "p12": [0.05, 0.05]}
    >>> log = read_lists(table, n_items=5, items=["top", "next"], clicks=["c1", "c2"],
    ...                  prefix=["p1", "p12"])
    >>> log.reward.tolist()
    [1.0, 1.0]
    """
    table = table_of(table)
    shown = stacked(table, items)
    return LoggedLists(
        n_items=n_items,
        items=shown,  # type: ignore[arg-type]  # checked, and made whole numbers, there
        clicks=stacked(table, clicks),
        prefix=stacked(table, prefix),
        marginal=None if marginal is None else stacked(table, marginal),
        context=contexts_in(table, context, context_bound, len(shown), most_outside).rows,
        adaptive=adaptive,
    )
