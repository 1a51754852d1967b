"""Tables of papers that are reproduced row by row, by name."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dpbandit.base import InputError, check_writable, one_of, plain, write_atomically, write_csv

if TYPE_CHECKING:
    from dpbandit.base.tables import Table


ALL = "all"
T = TypeVar("T")


class Reproduced(NamedTuple):
    """What comes out."""

    tables: Sequence["Table"]
    """to be printed"""
    records: Sequence[Mapping[str, Any]]
    """plain values, one for each entry of the table"""
    files: Sequence[Path]
    """written, where a folder was given"""


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What is to be measured."""

    name: str
    readings: tuple[str, ...]
    rows: str
    """a selection of them, in the table's own words"""
    replicas: int
    seed: int
    out: Path
    """folder, whose runs are taken up again"""
    kept: bool
    """it is one that was asked for, and stays"""
    drawn: bool
    """all of it is measured and kept, so that figures are, too"""
    theta: str = ""
    """of `PaperTable.thetas`"""


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table, and the readings of what it says."""

    name: str
    summary: str
    readings: Mapping[str, str]
    """name -> what it is"""
    rows: str
    """how to choose some of them"""
    program: str
    """the function of `Asked` that measures it, in `dpbandit.experiments`"""
    thetas: Mapping[str, str] = field(default_factory=dict)
    """name -> which true parameter it is; the first one unless another is asked for"""

    def run(
        self,
        reading: str,
        rows: str,
        *,
        replicas: int,
        seed: int,
        out: Path | None,
        theta: str | None = None,
    ) -> Reproduced:
        """Measure `rows`, or all, under one reading, or all; keep it in `out`, if given.

        Raises:
            InputError: an unknown reading, row or theta, a folder that cannot be written.
        """
        if theta is not None and not self.thetas:
            raise InputError(
                f"Expected {self.name} without theta={theta!r}: it has none to choose."
            )
        if theta is not None:
            one_of("theta", theta, self.thetas)
        one_of("reading", reading, (*self.readings, ALL))
        readings = tuple(self.readings) if reading == ALL else (reading,)
        if out is not None:
            check_writable(out / "summary.csv")
        with TemporaryDirectory() if out is None else nullcontext(out) as folder:
            drawn = out is not None and (reading, rows) == (ALL, ALL)
            asked = Asked(
                name=self.name,
                readings=readings,
                rows=rows,
                replicas=replicas,
                seed=seed,
                out=Path(folder),
                kept=out is not None,
                drawn=drawn,
                theta=theta or next(iter(self.thetas), ""),
            )
            made: Reproduced = resolve_name(f"dpbandit.experiments.{self.program}")(asked)
        return made._replace(files=()) if out is None else made


def selected(
    table: str,
    text: str,
    rows: Mapping[str, T],
    kinds: Mapping[str, Callable[[str], Any]],
    *,
    alternatives: bool = False,
) -> tuple[list[T], dict[str, list[Any]]]:
    """Read the rows of a table, by name, and the values that a text chooses, "1-3,5,T=4096".

    No row named, or "all", is all rows. A key has several values only if these are `alternatives`.

    Raises:
        InputError: anything else; the sentence says what paper_tables.toml says of `rows`.

    >>> selected("window/table-1", "4-5,T=1024", {"4": "four", "5": "five"}, {"T": int})
    (['four', 'five'], {'T': [1024]})
    """
    wrong = InputError(f"Expected rows to be {TABLES[table].rows}, got {text!r}.")
    names, values = set[str](), dict[str, list[Any]]()
    for term in (part.strip() for part in text.split(",")):
        key, equals, value = term.partition("=")
        span = re.fullmatch(r"([0-9]{1,3})-([0-9]{1,3})", term)
        some = {str(n) for n in range(int(span[1]), int(span[2]) + 1)} if span else {term}
        try:
            if equals and (alternatives or key not in values):
                values.setdefault(key, []).append(kinds[key](value))
            elif some and some <= {*rows, ALL}:
                names |= some - {ALL}
            else:
                raise wrong
        except (KeyError, ValueError):
            raise wrong from None
    return [row for name, row in rows.items() if name in names or not names], values


def reproduced(
    asked: Asked,
    file: str,
    records: Iterable[Mapping[str, Any]],
    tables: Iterable["Table"],
    drawings: Mapping[str, Callable[[Path], object]] = MappingProxyType({}),
) -> Reproduced:
    """Write records to FILE.csv, and drawings, by name, to NAME.png."""
    from pandas import DataFrame  # slow to import

    rows = [plain(record) for record in records]
    written = [write_csv(asked.out / f"{file}.csv", DataFrame(rows))]
    for name, drawing in drawings.items():
        written.append(write_atomically(asked.out / f"{name}.png", drawing))
    return Reproduced(list(tables), rows, written)


def _tables() -> Mapping[str, PaperTable]:
    written = tomllib.loads((files("dpbandit.experiments") / "paper_tables.toml").read_text())
    every = [
        PaperTable(name=name, **{**shared, **own})
        for shared in written["group"]
        for name, own in shared.pop("tables").items()
    ]
    return {table.name: table for table in every}


TABLES = _tables()
"""Tables of papers by name, read from paper_tables.toml"""
