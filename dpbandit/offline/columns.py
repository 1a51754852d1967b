"""Read named columns of a user's table as numbers, words, or features with public bounds."""

import re
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from math import sqrt
from numbers import Number, Real
from shlex import quote
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from dpbandit.base import Floats, InputError, Ints, abbrev, at_least, reals, whole
from dpbandit.offline.tables import is_number, parsed
from dpbandit.specs import scaled

Bounds: TypeAlias = Mapping[str, Sequence[Any]]
"""Public bounds of named columns; two numbers are a range (low, high), texts are all levels."""


MOST_UNITS = 1_000
"""Largest public limit of units that one row may sell"""
MIN_DIVISOR, MAX_SIZE = 1e-50, 1e50
"""Smallest divisor and largest absolute value of numbers in a log; squared weights stay finite."""
_MAX_UNIT_LENGTH = 60
"""Largest number of letters in the name of a unit of rewards"""


class Features(NamedTuple):
    """Features of n rows, scaled by public bounds."""

    rows: Floats
    """features (n, d), numbers clipped and scaled to [-1, 1], levels one-hot without the first"""
    names: tuple[str, ...]
    """names of the features, (d,), such as "age" and "shop=B" """
    outside: dict[str, int]
    """number of rows outside the range of each numeric column"""
    any_outside: int
    """number of rows outside the range of any column"""

    @property
    def context(self) -> Floats:
        """Contexts (1, features) / sqrt(1 + d), of Euclidean norm at most 1, (n, 1 + d)."""
        n, d = self.rows.shape
        return np.column_stack([np.ones(n), self.rows]) / sqrt(1 + d)


class Levels(NamedTuple):
    """Levels of a column, by which contexts (1, features) / length tell a user's one."""

    names: tuple[str, ...]
    """all levels, as text"""
    first: int
    """place in a context of the feature that is not 0 for users of the second level"""

    def of(self, context: Floats) -> Ints:
        """Return the index (...) of the level of each context (..., d)."""
        one_hot = context[..., self.first : self.first + len(self.names) - 1] > 0
        return np.asarray(one_hot @ np.arange(1, len(self.names)), np.int64)


def levels_in(bounds: Bounds) -> dict[str, Levels]:
    """Return the levels of the columns that have levels, of contexts that `features` makes."""
    found, place = {}, 1
    for name, ends in bounds.items():
        if is_range(ends):
            place += 1
        else:
            found[name] = Levels(tuple(map(str, ends)), place)
            place += len(ends) - 1
    return found


def column(table: Any, name: str) -> Any:
    """Return the column `name` of a table, as an array or a list.

    Raises:
        InputError: there is no such column, or an entry is missing.
    """
    entries = column_with_gaps(table, name)
    plain = isinstance(getattr(entries, "dtype", None), np.dtype) and entries.dtype.kind in "biuf"
    if plain and not np.ma.isMaskedArray(entries):
        missing = int(np.isnan(entries).sum())
    else:
        missing = sum(map(is_missing, entries.tolist() if hasattr(entries, "tolist") else entries))
    if missing:
        raise InputError(
            f"Expected no missing entries in column {name!r}, got {missing} of {len(entries)}: "
            "fill them, or leave these rows out, --drop-missing (reading={'drop_missing': True})."
        )
    return entries


def column_with_gaps(table: Any, name: Any) -> Any:
    """Return the column `name` of a table, as an array or a list; entries may be missing."""
    try:
        entries = table[name] if isinstance(name, str) and name in table else None
    except (LookupError, TypeError, AttributeError):  # a mapping that lists a key it lacks
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
    """Return True for None, NaN, NaT, a masked entry or pandas' NA."""
    # pandas' NA compares as NA even with itself, so its type decides
    if entry is None or entry is np.ma.masked or type(entry).__name__ in ("NAType", "NaTType"):
        return True
    try:
        return isinstance(entry, Number | np.generic) and bool(entry != entry)
    except ArithmeticError:  # a signalling NaN of decimals
        return True


def doubles(listed: Any) -> Floats:
    """Convert numbers, and texts such as "01.50", to doubles; missing entries become NaN.

    Raises `ValueError` if an entry is no number.
    """
    try:
        return reals(listed)
    except ValueError:
        entries = listed.tolist() if hasattr(listed, "tolist") else list(listed)
        if not all(is_number(e) if isinstance(e, str) else is_missing(e) for e in entries):
            raise
        return np.array([float(e) if isinstance(e, str) else np.nan for e in entries])


def first_odd(listed: Any, allowed: Sequence[float] | None = None) -> Any:
    """Return an entry that is no number or not `allowed`, preferably a word; None if all fit."""
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


_COMMA = re.compile(r"\s*[+-]?\d+,\d+\s*")  # text of a number with a decimal comma
_YES_HINT = ": name the words for yes, --yes WORD,... (reading={'yes': [...]})"
_COMMA_HINT = ": decimal commas need --decimal ',' (reading={'decimal': ','})"


def numbers(table: Any, name: str, *, reward: bool = False) -> Floats:
    """Return a column of finite numbers, (n,); raise `InputError` for any other entry.

    The message on a word in a column of rewards names the option for words that mean yes.
    """
    listed = column(table, name)
    try:
        values = doubles(listed)
    except ValueError:
        values = np.empty(())
    if values.ndim != 1:
        entries = [e for e in listed if not (isinstance(e, str) and is_number(e))]
        others = [e for e in entries if not (isinstance(e, str) and _COMMA.fullmatch(e))]
        odd = first_odd(others)
        hint = _YES_HINT if reward and isinstance(odd, str) else ""
        if odd is None:
            odd, hint = first_odd(listed), _COMMA_HINT if len(others) < len(entries) else ""
        raise InputError(
            f"Expected column {name!r} to hold numbers, such as 2.5, got {abbrev(odd)}{hint}."
        )
    if not np.isfinite(values).all():
        raise InputError(f"Expected column {name!r} to hold finite numbers, got an infinite one.")
    return values


def answers(table: Any, name: str) -> Floats:
    """Return a column of 0 and 1, or False and True, as floats (n,); refuse other entries."""
    listed = column(table, name)
    try:
        values = reals(listed)
    except ValueError:
        values = np.full(1, np.nan)
    if values.ndim != 1 or not np.isin(values, (0, 1)).all():
        odd = first_odd(listed, (0, 1))
        raise InputError(
            f"Expected column {name!r} to hold 0 and 1 only, got {abbrev(odd)}"
            f"{_YES_HINT * (isinstance(odd, str) and not is_number(odd))}."
        )
    return values


def counts(table: Any, name: str) -> Floats:
    """Return a column of whole numbers of at least 0, such as units sold, as floats (n,)."""
    values = numbers(table, name)
    wrong = (values < 0) | (values != np.floor(values))
    if wrong.any():
        raise InputError(
            f"Expected column {name!r} to hold whole numbers of at least 0, got "
            f"{values[wrong][0]:g} in {int(wrong.sum())} rows."
        )
    return values


def at_most_units(units: Any, at_most: Any) -> int:
    """Check and return the public limit of units a row, 1 if no column has `units`."""
    if units is None:
        if at_most is not None:
            raise InputError(f"Expected units=, a column, with at_most={abbrev(at_most)}.")
        return 1
    if at_most is None:
        raise InputError(
            f"Expected at_most= with units={abbrev(units)}, such as 5: a largest number of units "
            "that was read off the log would be data that no certificate covers."
        )
    whole("at_most", at_most, 1, MOST_UNITS)
    return int(at_most)


def unit_of(unit: Any) -> str:
    """Check and return the unit of prices and rewards, such as "dollars"."""
    if not isinstance(unit, str) or not unit.strip() or len(unit) > _MAX_UNIT_LENGTH:
        raise InputError(f"Expected unit={abbrev(unit)} to name a currency, such as 'euros'.")
    return unit


def cost_range(column: str, bounds: Any, called: str) -> tuple[float, float]:
    """Return the public range (low, high) of the column of unit costs, from the bounds of features.

    Raises:
        InputError: `bounds`, the argument `called`, has no range of this column.
    """
    ends = bounds.get(column) if isinstance(bounds, Mapping) else None
    if ends is None or len(ends) != 2 or not is_range(ends):
        raise InputError(
            f"Expected unit_cost={column!r}, a column, to have a public range, {called}="
            f"{{{column!r}: (low, high)}} (--feature {quote(f'{column}=LOW:HIGH')}): who sets a "
            "price has to know the cost."
        )
    low, high = _ends(column, list(ends))
    at_least(f"the low end of {column!r}", low, 0)
    return low, high


def is_range(bounds: Any) -> bool:
    """Return True if a column's bounds are a range, two entries neither of which is a text."""
    return len(bounds) == 2 and not any(isinstance(end, str) for end in bounds)


def features(
    table: Any, bounds: Bounds, *, called: str, rows: int, most_outside: float | None = None
) -> Features:
    """Return the columns of `bounds` as features; messages name the argument `called`.

    Raises `InputError` if more than a share `most_outside` of rows lies outside a range, and warns
    of a smaller share; if it is None, the counts are only returned.
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
    """Yield each column with its checked bounds; raise `InputError` for columns without bounds."""
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
    levels = one_kind(f"the levels of {name!r}", levels)
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
    """Return the position (n,) of each entry in `listed`, -1 for entries that are not listed.

    If entries are numbers, or True and False, listed texts count as their values: "10115" is 10115.

    Raises:
        InputError: `listed` is not all text or all numbers, or has an entry twice.
    """
    names = one_kind(called, listed)
    if entries and not isinstance(entries[0], str):
        names = [parsed(name) for name in names]
    place = {name: j for j, name in reversed([*enumerate(names)])}
    if len(place) < len(names):
        twice = next(name for j, name in enumerate(names) if place[name] < j)
        raise InputError(f"Expected every one of {called} once, got {twice!r} twice.")
    return np.array([place.get(entry, -1) for entry in entries], dtype=np.int64)


def as_long(values: Any, rows: int, name: str) -> Any:
    """Return a column; raise `InputError` unless it has one entry for each row."""
    if len(values) != rows or getattr(values, "ndim", 1) != 1:
        raise InputError(f"Expected column {name!r} to hold one entry for each of {rows} rows.")
    return values


def is_wide(low: float, high: float) -> bool:
    """Return True if a range of rewards is bounded and wide enough to divide by its width."""
    return bool(max(-low, high) <= MAX_SIZE and high - low >= MIN_DIVISOR)


_MAX_EXACT_FLOAT = 2.0**53  # from here on floats skip whole numbers


def one_kind(name: str, names: Any) -> list[Any]:
    """Return a column of names, say of arms, as a list of stripped texts or a list of numbers.

    Raises:
        InputError: `names` is no column; a name is missing (None, NaN) or neither text nor a
            number; texts and numbers both occur (are 1 and "1" the same?); or a number is a float
            so large that it may stand for several whole numbers, as columns with gaps are read.
    """
    try:
        column = np.asarray(names, dtype=object)
    except ValueError:  # ragged
        column = np.empty(())
    if column.ndim != 1:
        raise InputError(f"Expected {name} to hold one entry for each row.")
    found: list[Any] = column.tolist()
    for row, entry in enumerate(found):
        if not _kind(entry) or _kind(entry) != _kind(found[0]) or entry != entry:
            raise InputError(
                f"Expected {name} to be all text or all numbers, none missing, got "
                f"{abbrev(entry)} in row {row}."
            )
        if isinstance(entry, float | np.floating) and abs(float(entry)) >= _MAX_EXACT_FLOAT:
            raise InputError(
                f"Expected {name} to be whole numbers or below 2^53, got {abbrev(entry)} in row "
                f"{row}: larger floats are not told apart, so write them as text."
            )
    return [entry.strip() if isinstance(entry, str) else entry for entry in found]


def _kind(entry: Any) -> str:
    if isinstance(entry, Real | np.bool_):
        return "number"
    return "text" if isinstance(entry, str) else ""
