"""Put what pandas and polars hold in the order of its labels before it is read as an array.

Arrays and lists have no labels and are taken as they stand. Labels that are the same in another
order are a new order; others are refused, and so is a pandas index 0, 1, ... beside another order
of these numbers: it may say which rows they are, or that nobody numbered them.
"""

import sys
from collections.abc import Iterable
from typing import Any

from dpbandit.base.inputs import InputError, abbrev


def index_of(value: Any) -> Any:
    """The index of a pandas Series or DataFrame, None of anything else."""
    pandas = sys.modules.get("pandas")  # slow to import, and nothing is of it where nobody has
    if pandas is None or not isinstance(value, pandas.Series | pandas.DataFrame):
        return None
    return value.index


def columns_of(value: Any) -> list[Any] | None:
    """Names of the columns of a DataFrame, of pandas or polars; None of anything else."""
    if (index_of(value) is not None and value.ndim == 2) or _is_polars(value, "DataFrame"):
        return list(value.columns)
    return None


def refuse_lazy(name: str, value: Any) -> None:
    """Raise `InputError` for a query of polars that was not run yet."""
    if _is_polars(value, "LazyFrame"):
        raise InputError(f"Expected {name} to be a DataFrame, got a LazyFrame: collect() it first.")


def by_index(name: str, value: Any, index: Any, of: str) -> Any:
    """`value` with its rows in the order of `index`, if it has an index, too.

    Args:
        name: what it is called.
        value: of pandas, or anything else, which is returned as it is.
        index: a pandas index, a range, or None where nothing says which row is which.
        of: what has the `index`, for the sentence.

    Raises:
        InputError: other labels, labels that occur twice in another order, or numbers that
            nobody may have given.
    """
    present = index_of(value)
    # lengths are looked at elsewhere
    if present is None or index is None or len(present) != len(index):
        return value
    index = sys.modules["pandas"].RangeIndex(index) if isinstance(index, range) else index
    if present.equals(index):
        return value
    if not _is_count(present) and not _is_count(index) and present.is_unique and index.is_unique:
        order = present.get_indexer(index)
        if (order >= 0).all():
            return value.iloc[order]
    row = next((i for i, pair in enumerate(zip(present, index, strict=True)) if _differ(*pair)), 0)
    here, there = (abbrev(labels[row : row + 1].tolist()[0]) for labels in (present, index))
    raise InputError(
        f"Expected {name} to have the index of {of}, got {here} beside {there} in row {row}: align "
        "it, or .to_numpy() takes rows as they stand."
    )


def by_name(name: str, value: Any, names: Iterable[Any], of: str, *, axis: int = 1) -> Any:
    """`value` with its columns in the order of `names`, or with axis=0 its indexed rows.

    Names are compared as they are, or else as text: columns of files are called "0" and "1".

    Raises:
        InputError: other names, or one that occurs twice.
    """
    index = index_of(value)
    present = columns_of(value) if axis == 1 else None if index is None else list(index)
    if present is None or len(present) != len(wanted := list(names)):
        return value
    for key in (_itself, str):
        found = {key(label): place for place, label in enumerate(present)}
        order = [found.get(key(label), -1) for label in wanted]
        if min(order, default=0) >= 0 and len({*order}) == len(present):
            if order == sorted(order):
                return value
            if index is None:
                return value[:, order]
            return value.iloc[:, order] if axis == 1 else value.iloc[order]
    what = "columns" if axis == 1 else "index"
    raise InputError(
        f"Expected the {what} of {name} to be {of} {abbrev(wanted)}, got {abbrev(present)}: rename "
        "them, or .to_numpy() takes them in this order."
    )


def _itself(label: Any) -> Any:
    return label


def _is_polars(value: Any, kind: str) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(value, getattr(polars, kind))


def _is_count(index: Any) -> bool:
    """True for the index 0, 1, ..., which pandas gives to rows that nobody has labelled."""
    counted = isinstance(index, sys.modules["pandas"].RangeIndex)
    return counted and (index.start, index.step) == (0, 1)


def _differ(label: Any, other: Any) -> bool:
    return label is not other and bool(label != other)
