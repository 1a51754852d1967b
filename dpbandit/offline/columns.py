"""Read named columns of a user's table as numbers, words, or features with public bounds."""

from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from math import sqrt
from numbers import Number
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpbandit.base import Floats, InputError, Ints, abbrev, reals
from dpbandit.offline.logs import is_wide, one_kind
from dpbandit.offline.tables import is_number, meant
from dpbandit.specs import scaled

Bounds: TypeAlias = Mapping[str, Sequence[Any]]
"""Two numbers are a public range (low, high), words a public list of levels."""


class Features(NamedTuple):
    """Columns by public bounds, and nothing else."""

    rows: Floats
    """(n, d), ranges on [-1, 1], clipped; levels one-hot, 0 or 1, against the first"""
    names: tuple[str, ...]
    """of its columns, (d,), such as "age" and "shop=B" """
    outside: dict[str, int]
    """rows that lie outside, by column; levels have none"""
    any_outside: int
    """rows of which anything does"""

    @property
    def context(self) -> Floats:
        """(1, features) / sqrt(1 + d), of Euclidean norm at most 1, (n, 1 + d)."""
        n, d = self.rows.shape
        return np.column_stack([np.ones(n), self.rows]) / sqrt(1 + d)


def column(table: Any, name: str) -> Any:
    """The column of that name.

    Raises:
        InputError: there is none, or something in it is missing.
    """
    entries = column_with_gaps(table, name)
    plain = isinstance(getattr(entries, "dtype", None), np.dtype) and entries.dtype.kind in "biuf"
    if plain and not np.ma.isMaskedArray(entries):
        missing = int(np.isnan(entries).sum())
    else:
        missing = sum(map(is_missing, entries.tolist() if hasattr(entries, "tolist") else entries))
    if missing:
        raise InputError(
            f"Expected no missing entries in column {name!r}, got {missing} of {len(entries)}."
        )
    return entries


def column_with_gaps(table: Any, name: Any) -> Any:
    """The column of that name, an array or a list, in which something may be missing."""
    try:
        entries = table[name] if isinstance(name, str) and name in table else None
    except (LookupError, TypeError, AttributeError):  # a mapping whose keys lie
        entries = None
    if entries is None:
        raise InputError(f"Expected a column {abbrev(name)}, the table has {abbrev(list(table))}.")
    if getattr(entries, "ndim", 1) != 1:
        raise InputError(f"Expected one column {name!r} of one entry a row, the table has several.")
    if hasattr(entries, "tolist"):
        return entries
    if not isinstance(entries, Collection) or isinstance(entries, str | bytes | Mapping | Set):
        raise InputError(
            f"Expected column {name!r} to hold one entry for each row, got {abbrev(entries)}."
        )
    return list(entries)


def is_missing(entry: Any) -> bool:
    """None, NaN, NaT, a masked entry, or pandas' NA, which is not even unequal to itself."""
    if entry is None or entry is np.ma.masked or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return isinstance(entry, Number | np.generic) and bool(entry != entry)
    except ArithmeticError:  # a signalling NaN of decimals
        return True


def doubles(listed: Any) -> Floats:
    """Entries as doubles, also where all are words that are numbers, such as 01.50, or missing.

    Raises `ValueError` where they are neither.
    """
    try:
        return reals(listed)
    except ValueError:
        entries = listed.tolist() if hasattr(listed, "tolist") else list(listed)
        if not all(is_number(e) if isinstance(e, str) else is_missing(e) for e in entries):
            raise
        return np.array([float(e) if isinstance(e, str) else np.nan for e in entries])


def first_odd(listed: Any, allowed: Sequence[float] | None = None) -> Any:
    """The first entry that is no double, or none of those `allowed`; of words one that is no number
    if there is any."""
    entries = listed.tolist() if hasattr(listed, "tolist") else list(listed)
    words = [entry for entry in entries if isinstance(entry, str) and not is_number(entry)]
    for entry in [*words, *entries]:
        try:
            value = reals([entry])
        except ValueError:
            return entry
        if value.shape != (1,) or (allowed is not None and value[0] not in allowed):
            return entry
    return None


def numbers(table: Any, name: str) -> Floats:
    """A column of numbers, none missing and none infinite."""
    listed = column(table, name)
    try:
        values = doubles(listed)
    except ValueError:
        values = np.empty(())
    if values.ndim != 1:
        raise InputError(
            f"Expected column {name!r} to hold numbers, such as 2.5, got "
            f"{abbrev(first_odd(listed))}."
        )
    if not np.isfinite(values).all():
        raise InputError(f"Expected column {name!r} to hold finite numbers, got an infinite one.")
    return values


def answers(table: Any, name: str) -> Floats:
    """A column of 0 and 1, or of False and True."""
    listed = column(table, name)
    try:
        values = reals(listed)
    except ValueError:
        values = np.full(1, np.nan)
    if values.ndim != 1 or not np.isin(values, (0, 1)).all():
        odd = abbrev(first_odd(listed, (0, 1)))
        raise InputError(f"Expected column {name!r} to hold 0 and 1 only, got {odd}.")
    return values


def is_range(bounds: Any) -> bool:
    """Whether these are two numbers."""
    return len(bounds) == 2 and not any(isinstance(end, str) for end in bounds)


def features(
    table: Any, bounds: Bounds, *, called: str, rows: int, most_outside: float | None = None
) -> Features:
    """Columns by their public `bounds`, which are `called` so in sentences.

    More than a share `most_outside` of rows outside their ranges is refused, less is said in a
    warning; with None both is left to the caller, who has the counts.
    """
    limits = dict(_bounded(bounds, called))
    low, high = (np.array([ends[i] for ends in limits.values() if is_range(ends)]) for i in (0, 1))
    ranged = [name for name, ends in limits.items() if is_range(ends)]
    listed = [as_long(numbers(table, name), rows, name) for name in ranged]
    values: Floats = np.stack(listed, axis=1) if ranged else np.zeros((rows, 0))
    beyond = np.zeros(values.shape, dtype=bool)
    if ranged:
        words = [f"column {name!r}" for name in ranged]
        values, beyond = scaled(values, low, high, words, most_outside=most_outside)
    found: list[Floats] = [np.zeros((rows, 0))]
    names: list[str] = []
    for name, ends in limits.items():
        if is_range(ends):
            found.append(values[:, [ranged.index(name)]])
            names.append(name)
        else:
            found.append(_one_hot(table, name, ends, called, rows))
            names += [f"{name}={level}" for level in ends[1:]]
    outside = dict(zip(ranged, beyond.sum(axis=0).tolist(), strict=True))
    return Features(np.hstack(found), tuple(names), outside, int(beyond.any(axis=1).sum()))


def _bounded(bounds: Any, called: str) -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Each column's bounds, looked at; names without any are refused."""
    if not isinstance(bounds, Mapping):
        words = list(bounds) if isinstance(bounds, list | tuple) else []
        words = [bounds] if isinstance(bounds, str) else words
        name = words[0] if words else "age"
        raise InputError(
            f"Expected bounds of feature {name!r}, as in {called}={{{name!r}: (18, 90)}}: a range "
            "read off the log would be data that no certificate covers."
        )
    for name, ends in bounds.items():
        ends = ends.tolist() if isinstance(ends, np.ndarray) else ends
        if not isinstance(ends, list | tuple) or len(ends) < 2:
            raise InputError(
                f"Expected bounds of feature {name!r}, such as (18, 90), or levels such as "
                f"('A', 'B'), got {abbrev(ends)}: a range read off the log would be data that no "
                "certificate covers."
            )
        listed = list(ends)
        yield name, tuple(_ends(name, listed) if is_range(listed) else _levels(name, listed))


def _ends(name: str, ends: list[Any]) -> list[float]:
    try:
        found = reals(ends)
    except ValueError:
        found = np.empty(0)
    if found.shape != (2,) or not is_wide(*found):
        raise InputError(
            f"Expected the range of {name!r} to be (low, high), low < high, got {abbrev(ends)}."
        )
    return [float(end) for end in found]


def _levels(name: str, levels: list[Any]) -> list[Any]:
    one_kind(f"the levels of {name!r}", levels)
    if twice := [level for k, level in enumerate(levels) if level in levels[:k]]:
        raise InputError(f"Expected every level of {name!r} once, got {twice[0]!r} twice.")
    return levels


def _one_hot(table: Any, name: str, levels: Any, called: str, rows: int) -> Floats:
    entries = as_long(one_kind(f"column {name!r}", column(table, name)), rows, name)
    taken = places(entries, levels, f"the levels of {name!r}")
    if unknown := [entry for entry, k in zip(entries, taken, strict=True) if k < 0]:
        raise InputError(
            f"Expected column {name!r} to hold only the levels {abbrev(levels)} of {called}, got "
            f"{abbrev(unknown[0])} in {len(unknown)} rows: they are public, so say all there can "
            "be."
        )
    return np.eye(len(levels))[taken, 1:]


def places(entries: Sequence[Any], listed: Sequence[Any], called: str) -> Ints:
    """Where each entry, all of one kind, stands among those `listed`, -1 for none, (n,).

    In a column of numbers, or of True and False, words mean these: "10115" is 10115.

    Raises:
        InputError: what is listed is not all text or all numbers, or says the same twice.
    """
    names = one_kind(called, listed)
    if entries and not isinstance(entries[0], str):
        names = [meant(name) for name in names]
    place = {name: j for j, name in reversed([*enumerate(names)])}
    if len(place) < len(names):
        twice = next(name for j, name in enumerate(names) if place[name] < j)
        raise InputError(f"Expected every one of {called} once, got {twice!r} twice.")
    return np.array([place.get(entry, -1) for entry in entries], dtype=np.int64)


def as_long(values: Any, rows: int, name: str) -> Any:
    """The entries of a column, refused unless there is one for each row."""
    if len(values) != rows or getattr(values, "ndim", 1) != 1:
        raise InputError(f"Expected column {name!r} to hold one entry for each of {rows} rows.")
    return values
