"""Read a user's CSV and parquet files; refuse files with ambiguous contents.

All commands and functions that take such a file read it here. In a CSV file

* only a cell that is empty or of spaces is missing: NA, null and nan are words like any others;
* every row has as many cells as the header, and no name occurs twice in the header;
* numbers with leading zeros, such as the postcode 01099, make all cells of their column words.

`reading` says how a table is written: a mapping that may have the keys

* `sep`, `decimal`: in a CSV file, the separator of cells, and "," or "." in numbers;
* `yes`: words that mean 1 in a column of answers; one other word then means 0;
* `drop_missing`: True leaves out rows in which a column that is used has a missing entry.
"""

import csv
import gzip
import io
import os
import re
import warnings
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from dpbandit.base import (
    Floats,
    InputError,
    abbrev,
    by_index,
    check_readable,
    flag,
    index_of,
    read_text,
    reals,
    refuse_lazy,
    short_path,
)

_ENDINGS = (".csv", ".csv.gz", ".parquet")  # suffixes of files that are read
_READ_ERRORS = (ValueError, OSError, EOFError, zlib.error, csv.Error)
"""Errors on reading damaged files; EOFError and zlib.error are raised for truncated files."""
_NUMBER_PATTERN = re.compile(r"\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*")  # text of a number
_NUMBER_WORDS = ("nan", "inf", "-inf")  # words that make no line a header
_LEADING_ZERO = re.compile(r"\s*[+-]?0\d")  # start of a cell such as 01099
_WITH_POINTS = re.compile(r"[+-]?(\d+(\.\d{3})*(,\d+)?|\d+\.\d+)")  # 1.234,5 or 1.5, no dates
_COMMA_NUMBER = re.compile(r"\s*[+-]?\d+(,\d+)?\s*")  # 01,50 or 01
_MIN_DISTINCT_SHARE = 0.9
"""Smallest number of distinct entries of an id or a time, as a share of that of different rows.
Without such a column, equal rows do not show that one was recorded twice."""


def read_table(
    frame: Any,
    reading: Mapping[str, Any],
    *,
    columns: Iterable[Any],
    answers: Iterable[Any] = (),
    visit: str | None = None,
) -> tuple[Any, list[str]]:
    """Return a table, and sentences on rows that were dropped or are repeated.

    Args:
        frame: as for `table_of`.
        reading: how the table is written, see above.
        columns: names of the columns that are used, or lists of names; others may have gaps.
        answers: names of columns whose entries are yes or no.
        visit: name of a column; all rows of a visit are dropped if one of them has a gap.
    """
    options = _checked(reading)
    table, found = table_of(frame, sep=options["sep"], decimal=options["decimal"]), []
    if options["yes"] or options["drop_missing"]:
        table = _frame(table)
    if options["decimal"] == "," or options["drop_missing"]:
        names = list(dict.fromkeys(name for name in _flat([columns, answers]) if name in table))
    if options["decimal"] == ",":
        _refuse_points(table, names)
        table = table.assign(**{name: _with_point(table[name]) for name in names})
    if options["drop_missing"]:
        gaps = _gaps(table[names])
        if (gone := gaps.any(axis=1)).any():
            counts = ", ".join(f"{n} in {name!r}" for name, n in gaps.sum().items() if n)
            n, dropped = int(gone.sum()), f"Dropped {gone.sum()} of {len(table)} rows with"
            if visit is not None and visit in table:
                if (lost := gaps[visit] & ~gaps.all(axis=1)).any():
                    raise InputError(
                        f"Expected a visit in column {visit!r} in every row that is not empty, got "
                        f"{lost.sum()} rows without: it is unknown what else was shown there."
                    )
                visits = table[visit][gone & ~gaps[visit]].unique()
                gone |= table[visit].isin(visits)
                dropped = (
                    f"Dropped {gone.sum()} of {len(table)} rows, with all of {len(visits)} visits, "
                    f"as {n} rows have"
                )
            found.append(f"{dropped} missing entries: {counts}.")
            table = table[~gone]
    if hasattr(table, "duplicated"):
        found += _repeated(table)
    if options["yes"]:
        named = [name for name in _flat(answers) if name in table]
        known = {name: _yes(name, table[name], options["yes"]) for name in named}
        table = table.assign(**known)
    return table, found


def warn_of(sentences: Iterable[str]) -> None:
    """Give each sentence as a warning."""
    for sentence in sentences:
        warnings.warn(sentence, stacklevel=4)


def _checked(reading: Any) -> dict[str, Any]:
    """Return all options of `reading`, with defaults, after checks."""
    options: dict[str, Any] = {"sep": None, "decimal": None, "yes": (), "drop_missing": False}
    if not isinstance(reading, Mapping) or not set(reading) <= set(options):
        raise InputError(f"Expected reading={abbrev(reading)} to have keys among {list(options)}.")
    options |= reading
    sep = options["sep"]
    sep = options["sep"] = "\t" if sep in ("tab", "\\t") else sep
    if sep is not None and (not isinstance(sep, str) or len(sep) != 1 or sep in "\"'\r\n\0."):
        raise InputError(f"Expected sep={abbrev(sep)} to be one letter, such as ';', or tab.")
    if options["decimal"] not in (None, ".", ",") or options["decimal"] == (sep or ","):
        raise InputError(
            f"Expected decimal={abbrev(options['decimal'])} to be '.' or ',', and not sep="
            f"{sep or ','!r}, which separates cells."
        )
    words = [options["yes"]] if isinstance(options["yes"], str) else options["yes"]
    if not isinstance(words, Sequence) or not all(isinstance(w, str) and w.strip() for w in words):
        raise InputError(f"Expected yes={abbrev(options['yes'])} to list words, such as ['yes'].")
    options["yes"] = [word.strip() for word in words]
    flag("drop_missing", options["drop_missing"])
    return options


def _flat(names: Any) -> list[str]:
    """Return the texts in nested lists of names, in order."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        return [names] if isinstance(names, str) else []
    return [name for each in names for name in _flat(each)]


def _frame(table: Any) -> Any:
    """Return a table of any kind as a pandas DataFrame."""
    import pandas as pd  # not before: slow to import

    if isinstance(table, pd.DataFrame):
        return table
    names = list(table.columns) if hasattr(table, "columns") else list(table)
    columns = {name: table[name] for name in names}
    columns = {k: np.asarray(c) if index_of(c) is None else c for k, c in columns.items()}
    try:
        return pd.DataFrame(columns)
    except ValueError:
        lengths = {name: len(column) for name, column in columns.items()}
        raise InputError(f"Expected columns of one length, got {abbrev(lengths)}.") from None


def _gaps(table: Any) -> Any:
    """Return a DataFrame that is True where an entry is missing, or a text of spaces only."""
    gaps = table.isna()
    for j, (_, entries) in enumerate(table.items()):
        if entries.dtype.kind == "O":
            blank = [isinstance(entry, str) and not entry.strip() for entry in entries]
            gaps.isetitem(j, gaps.iloc[:, j] | np.array(blank, dtype=bool))
    return gaps


def _repeated(table: Any) -> list[str]:
    """Return a sentence if rows are repeated in a table with a column such as an id or a time."""
    try:
        count = int(table.duplicated().sum())
        distinct = count and max(table[name].nunique() for name in table)
    except (TypeError, ValueError):  # cells that are lists, or columns without names of their own
        return []
    if not count or distinct < _MIN_DISTINCT_SHARE * (len(table) - count):
        return []
    return [
        f"{count} of {len(table)} rows repeat an earlier row in every column: drop them if they "
        "were recorded twice."
    ]


def _yes(name: str, entries: Any, yes: Sequence[str]) -> Any:
    """Return a column as 1 for entries in `yes`, 0 for one other entry, NaN if missing."""
    known = set(map(_plain, yes))
    found = entries.astype(object).map(lambda entry: float(_plain(entry) in known))
    found = found.where(entries.notna()).astype(float)
    others = list(dict.fromkeys(entries[found == 0]))
    if len(set(map(_plain, others))) > 1 or not (found == 1).any():
        raise InputError(
            f"Expected column {name!r} to hold {' or '.join(yes)}, and one other word for no, got "
            f"{' and '.join(map(repr, others[:3]))}: yes={[*yes]} (--yes) lists all words that "
            "mean yes."
        )
    return found


def _plain(entry: Any) -> Any:
    """Return a number, or True or False, or the text of one, as its value, others in lower case."""
    return parsed(str(entry).strip().casefold())


def table_of(frame: Any, *, sep: str | None = None, decimal: str | None = None) -> Any:
    """Return a DataFrame or a mapping of columns as a table; read the file if given a path.

    Raises:
        InputError: neither a table nor the path of a .csv, .csv.gz or .parquet file, or a file
            that is no table or is ambiguous.
    """
    if isinstance(frame, str | os.PathLike):
        return _read(frame, sep=sep, decimal=decimal)
    if sep is not None or decimal is not None:
        raise InputError(f"Expected the path of a file with sep= or decimal=, got {abbrev(frame)}.")
    refuse_lazy("table", frame)
    if isinstance(frame, Mapping):
        return Columns(frame)
    if hasattr(frame, "column_names"):  # of pyarrow, whose `columns` have no names
        return {name: frame[name].to_numpy() for name in frame.column_names}
    if hasattr(frame, "columns"):
        return frame
    raise InputError(
        f"Expected a DataFrame, a mapping from names to columns, or the path of a .csv or .parquet "
        f"file, got {abbrev(frame)}."
    )


class Columns(Mapping[str, Any]):
    """Mapping of columns; all pandas Series are in the order of the first one that is read."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns, self._first, self.index = columns, "", None

    def __getitem__(self, name: str) -> Any:
        entries = self._columns[name]
        if self.index is None and (index := index_of(entries)) is not None:
            self._first, self.index = name, index
        return by_index(f"column {name!r}", entries, self.index, f"column {self._first!r}")

    def __contains__(self, name: object) -> bool:  # `Mapping.__contains__` would read the column
        return name in self._columns

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def index_of_rows(table: Any) -> Any:
    """Return the pandas index of a table's rows, known once its columns were read, or None."""
    return table.index if isinstance(table, Columns) else index_of(table)


def matrix_at(path: str | os.PathLike[str]) -> Floats:
    """Read a file of numbers, with or without a header, as a matrix (n, d); NaN for empty cells."""
    table = _read(path, named=False)
    found = []
    for name in table:
        if isinstance(name, str) and name.startswith("Unnamed: "):
            raise InputError(
                f"Expected every column of {short_path(path)} to be one of its numbers, got one "
                "without a name: write it without an index, index=False."
            )
        try:
            found.append(reals(table[name]))
        except ValueError:
            odd = next((cell for cell in table[name] if not is_number(cell)), table[name].iloc[0])
            raise InputError(
                f"Expected {short_path(path)} to be rows of numbers, got {abbrev(odd)} in column "
                f"{name!r}."
            ) from None
    return np.column_stack(found) if found else np.zeros((0, 0))


def is_number(cell: Any) -> bool:
    """Return True if a cell is a number or the text of a number; False if missing."""
    return bool(_NUMBER_PATTERN.fullmatch(cell)) if isinstance(cell, str) else cell is not None


def parsed(word: Any) -> Any:
    """Convert the text of a number, of True or of False to its value; return all else unchanged.

    >>> parsed("10115"), parsed("2.5"), parsed("TRUE"), parsed("a"), parsed(3)
    (10115, 2.5, True, 'a', 3)
    """
    if not isinstance(word, str):
        return word
    if word.lower() in ("true", "false"):
        return word.lower() == "true"
    if not _NUMBER_PATTERN.fullmatch(word):
        return word
    return int(word) if word.strip().lstrip("+-").isdigit() else float(word)


def text_at(path: str | os.PathLike[str], *, called: str = "{}") -> str:
    """Read the text of a UTF-8 file; errors call the file `called`, where {} is its path."""
    try:
        return _without_nul(read_text(path, called=called), path)
    except UnicodeDecodeError as error:
        raise _not_utf_8(path, error) from None


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the SHA-256 of a file as hexadecimal digits."""
    check_readable(path)
    return sha256(Path(path).read_bytes()).hexdigest()


def _read(
    path: str | os.PathLike[str],
    *,
    named: bool = True,
    sep: str | None = None,
    decimal: str | None = None,
) -> Any:
    """Read the table in a file; unless `named`, a CSV file of numbers alone needs no header."""
    import pandas as pd  # not before: slow to import

    end = next((end for end in _ENDINGS if os.fspath(path).lower().endswith(end)), None)
    if end is None:
        raise InputError(f"Expected {short_path(path)} to end in {', '.join(_ENDINGS)}.")
    check_readable(path)
    try:
        if end == ".parquet":
            if sep is not None or decimal is not None:
                raise InputError(f"Expected no sep= or decimal= with {short_path(path)}.")
            from pyarrow.parquet import read_schema  # not before: slow to import

            _refuse_twice(path, read_schema(path).names)
            return _parquet(path)
        text = text_at(path) if end == ".csv" else _unpacked(path)
        sep = sep or ","
        header, words, spaces = _checked_header(path, text, named, sep)
        exact: Any = {"float_precision": "round_trip"}  # the default of pandas 3, deprecated there
        table = pd.read_csv(
            io.StringIO(text, newline=""),
            sep=sep,
            decimal=decimal or ".",
            header="infer" if header else None,
            index_col=False,
            keep_default_na=False,
            na_values=["", *spaces],
            dtype=dict.fromkeys(words, str),
            low_memory=False,  # or one column may have chunks of numbers and chunks of words
            **(exact if pd.__version__.startswith("2.") else {}),
        )
        if header:
            table.columns = table.columns.str.strip()
        return table
    except InputError:
        raise
    except _READ_ERRORS as error:
        why = (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")
        raise InputError(f"Expected {short_path(path)} to hold a table: {why}.") from None


def _parquet(path: str | os.PathLike[str]) -> Any:
    import pandas as pd  # not before: slow to import

    try:
        return pd.read_parquet(path)
    except (LookupError, TypeError, AttributeError, RecursionError) as error:
        kind = type(error).__name__
        raise ValueError(f"its metadata for pandas are damaged ({kind})") from None


def _unpacked(path: str | os.PathLike[str]) -> str:
    try:
        text = gzip.decompress(Path(path).read_bytes()).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf_8(path, error) from None
    return _without_nul(text, path)


def _refuse_points(table: Any, names: Iterable[str]) -> None:
    """Raise `InputError` if a column has numbers such as 1.234,5 or 1.5 beside decimal commas."""
    for name in names:
        cells = [cell.strip() for cell in table[name] if isinstance(cell, str)]
        odd = next((cell for cell in cells if "." in cell), "")
        if odd and all(map(_WITH_POINTS.fullmatch, cells)):
            raise InputError(
                f"Expected numbers such as 1234,5 in column {name!r}, got {odd}: beside decimal "
                "commas a number has no points."
            )


def _with_point(entries: Any) -> Any:
    """Return a column; if all its entries are texts such as 01,50, with a point in each."""
    texts = [entry for entry in entries.dropna() if isinstance(entry, str)]
    if not texts or len(texts) < entries.count() or not all(map(_COMMA_NUMBER.fullmatch, texts)):
        return entries
    return entries.str.replace(",", ".")


def _hint(text: str, sep: str) -> str:
    """Return advice on options for a text whose header has another separator, or ""."""
    first, _, rest = text.lstrip().partition("\n")
    other = next((mark for mark in ";\t|" if mark in first and sep not in first), "")
    if not other:
        return ""
    word = "tab" if other == "\t" else other
    advice = f"; it looks like {word} between cells"
    if re.search(rf"(^|{re.escape(other)})\s*-?\d+,\d+\s*({re.escape(other)}|$)", rest, re.M):
        advice += f" and decimal commas: --sep '{word}' --decimal ','"
    else:
        advice += f": --sep '{word}'"
    return advice + f" (in Python, reading={{'sep': {word!r}, ...}})"


def _checked_header(
    path: str | os.PathLike[str], text: str, named: bool, sep: str
) -> tuple[bool, Iterable[str | int], Set[str]]:
    """Check the cells of a CSV text.

    Return True if it has a header, the columns of words, and all cells that are spaces only.
    """
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=sep, strict=True)
    first = next((cells for cells in lines if not _is_blank(cells)), None)
    if first is None:
        raise InputError(f"Expected {short_path(path)} to hold a table: No columns in it.")
    header = named or _has_names(path, first, "." in text)
    if header and len(first) == 1 and (advice := _hint(text, sep)):
        raise InputError(
            f"Expected {sep!r} between the cells of {short_path(path)}, got the header "
            f"{abbrev(first[0])}{advice}."
        )
    if header:
        _refuse_twice(path, first)
    zeros = bool(re.search(rf'(?:^|["{re.escape(sep)}])\s*[+-]?0\d', text, re.MULTILINE))
    gap = rf'(?:^|["{re.escape(sep)}])\s+(?:["{re.escape(sep)}]|$)'
    gaps = bool(re.search(gap, text, re.MULTILINE))
    blank, words, spaces = 0, set[int](), set[str]()
    for cells in lines:
        if _is_blank(cells):
            blank = blank or lines.line_num
            continue
        if len(cells) != len(first) or blank:
            above, row = "the header" if header else "the first line", blank or lines.line_num
            raise InputError(
                f"Expected {len(first)} cells in line {row} of {short_path(path)}, as many as in "
                f"{above}, got {0 if blank else len(cells)}."
            )
        if zeros:
            words.update(j for j, cell in enumerate(cells) if _LEADING_ZERO.match(cell))
        if gaps:
            spaces.update(cell for cell in cells if cell.isspace())
    if not header:  # rows of numbers, in which 007 is the number 7
        return False, (), spaces
    return True, [first[j] for j in words], spaces


def _has_names(path: str | os.PathLike[str], first: Sequence[str], fractions: bool) -> bool:
    """Return True if the first line above rows of numbers is a header; raise if it is ambiguous."""
    numbers = [is_number(cell) or cell.strip().lower() in _NUMBER_WORDS for cell in first]
    words = [bool(cell.strip()) and not number for cell, number in zip(first, numbers, strict=True)]
    counted = [*first] == [str(j) for j in range(len(first))] and (len(first) > 2 or fractions)
    if (any(words) and any(numbers)) or counted:
        raise InputError(
            f"Expected line 1 of {short_path(path)} to be names or numbers, got "
            f"{abbrev(','.join(first))}, which may be either: write names above that are words."
        )
    return any(words)


def _is_blank(cells: Sequence[str]) -> bool:
    return not cells or (len(cells) == 1 and not cells[0].strip())


def _refuse_twice(path: str | os.PathLike[str], names: Sequence[str]) -> None:
    """Raise `InputError` if a name occurs twice; only an empty name may occur several times."""
    names = [name.strip() for name in names]
    if twice := [name for j, name in enumerate(names) if name and name in names[:j]]:
        raise InputError(
            f"Expected every column of {short_path(path)} to have a name of its own, got "
            f"{twice[0]!r} twice."
        )


def _without_nul(text: str, path: str | os.PathLike[str]) -> str:
    if "\0" in text:
        raise InputError(f"Expected {short_path(path)} to be UTF-8, got UTF-16: save it as UTF-8.")
    return text


def _not_utf_8(path: str | os.PathLike[str], error: UnicodeDecodeError) -> InputError:
    before, kind = error.object[: error.start], "Latin-1, perhaps"
    if error.object[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\0" in error.object:
        kind = "UTF-16"
    line = before.count(b"\n") + 1
    return InputError(
        f"Expected {short_path(path)} to be UTF-8, got other bytes in line {line} ({kind}): save "
        "it as UTF-8."
    )
