"""Alignment of pandas and polars data by their labels, before they are read as arrays.

Arrays and lists have no labels and are taken as they stand. Rows or columns with the expected
labels in another order are reordered; other labels are refused. A default pandas index 0, 1, ...
is never reordered, but refused if it differs: it may be labels, or merely number the rows.
"""

import sys
from collections.abc import Iterable
from typing import Any

from dpbandit.base.inputs import InputError, abbrev


def index_of(value: Any) -> Any:
    """Return the index of a pandas Series or DataFrame, None for anything else."""
    pandas = sys.modules.get("pandas")  # slow to import; without the import no value is pandas'
    if pandas is None or not isinstance(value, pandas.Series | pandas.DataFrame):
        return None
    return value.index


def columns_of(value: Any) -> list[Any] | None:
    """Return the column names of a pandas or polars DataFrame, None for anything else."""
    if (index_of(value) is not None and value.ndim == 2) or _is_polars(value, "DataFrame"):
        return list(value.columns)
    return None


def refuse_lazy(name: str, value: Any) -> None:
    """Raise `InputError` for a polars LazyFrame, a query without its result."""
    if _is_polars(value, "LazyFrame"):
        raise InputError(f"Expected {name} to be a DataFrame, got a LazyFrame: collect() it first.")


def by_index(name: str, value: Any, index: Any, of: str) -> Any:
    """Return pandas data with rows in the order of `index`; other data unchanged.

    Args:
        name: name of `value` in messages.
        value: pandas Series or DataFrame, or anything else.
        index: pandas index, range, or None if rows have no labels.
        of: name of the data that has `index`, in messages.

    Raises:
        InputError: the labels differ, or they are in another order and one of the two indices
            repeats a label or is a default index 0, 1, 2.
    """
    present = index_of(value)
    # callers check lengths
    if present is None or index is None or len(present) != len(index):
        return value
    index = sys.modules["pandas"].RangeIndex(index) if isinstance(index, range) else index
    if present.equals(index):
        return value
    if not _is_count(present) and not _is_count(index) and present.is_unique and index.is_unique:
        order = present.get_indexer(index)
        if (order >= 0).all():
            return value.iloc[order]
    pairs = enumerate(zip(present, index, strict=True))
    row = next((i for i, (a, b) in pairs if a is not b and bool(a != b)), 0)
    here, there = (abbrev(labels[row : row + 1].tolist()[0]) for labels in (present, index))
    raise InputError(
        f"Expected {name} to have the index of {of}, got {here} beside {there} in row {row}: align "
        "it, or .to_numpy() takes rows as they stand."
    )


def by_name(name: str, value: Any, names: Iterable[Any], of: str, *, axis: int = 1) -> Any:
    """Return a DataFrame with columns, or with axis=0 a Series with rows, in order of `names`.

    Names are compared as they are, then as text, since columns of files are called "0" and "1".
    Data without labels are returned unchanged. `of` names the labels in messages.

    Raises:
        InputError: a name is missing, unknown or occurs twice.
    """
    index = index_of(value)
    present = columns_of(value) if axis == 1 else None if index is None else list(index)
    if present is None or len(present) != len(wanted := list(names)):
        return value
    for key in (lambda label: label, str):
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


def _is_polars(value: Any, kind: str) -> bool:
    polars = sys.modules.get("polars")
    return polars is not None and isinstance(value, getattr(polars, kind))


def _is_count(index: Any) -> bool:
    """Return True for the index 0, 1, ..., which pandas gives to rows without labels."""
    counted = isinstance(index, sys.modules["pandas"].RangeIndex)
    return counted and (index.start, index.step) == (0, 1)
