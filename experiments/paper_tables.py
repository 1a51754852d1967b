"""Tables and figures of papers that can be reproduced row by row, by name."""

import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dpbandit.base import InputError, check_writable, one_of, plain, write_atomically, write_csv

if TYPE_CHECKING:
    from dpbandit.base.tables import Table


ALL_CHOICES = "all"  # selects all rows, or all readings
T = TypeVar("T")  # type of a row


class Reproduced(NamedTuple):
    """Results of playing a published table again."""

    tables: Sequence["Table"]
    """Tables to print"""
    records: Sequence[Mapping[str, Any]]
    """Rows as plain values"""
    files: Sequence[Path]
    """Files written, if a folder was given"""


@dataclass(frozen=True, kw_only=True)
class Request:
    """A request to reproduce some rows of a table, with agents set up in some ways (`readings`)."""

    name: str
    readings: tuple[str, ...]
    rows: str
    """Selection of rows, such as "1-3,T=4096"; the syntax depends on the table"""
    replicas: int
    seed: int
    out: Path
    """Folder in which runs are stored and reused"""
    saved: bool
    """True if the user named the folder, so that results stay there"""
    drawn: bool
    """True if figures are drawn; they need all rows, all `readings` and a named folder"""
    theta: str = ""
    """Name of the true parameter in `PaperTable.thetas`"""


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A published table, with its readings (ways to set up the agents that it describes)."""

    name: str
    summary: str
    readings: Mapping[str, str]
    """Name of a way to set up the paper's agents ("reading") -> its description"""
    rows: str
    """Description of the syntax that selects rows, for messages"""
    program: str
    """Name of the function of a `Request` that measures the table, in `dpbandit.experiments`"""
    thetas: Mapping[str, str] = field(default_factory=dict)
    """Name of a true parameter theta* -> its description; the first is the default"""

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
        """Measure selected rows for agents set up by one reading, or "all"; save if `out` is given.

        Raises:
            InputError: if a reading, row or theta is unknown, or a folder cannot be written.
        """
        if theta is not None and not self.thetas:
            raise InputError(
                f"Expected {self.name} without theta={theta!r}: it has none to choose."
            )
        if theta is not None:
            one_of("theta", theta, self.thetas)
        one_of("reading", reading, (*self.readings, ALL_CHOICES))
        readings = tuple(self.readings) if reading == ALL_CHOICES else (reading,)
        if out is not None:
            check_writable(out / "summary.csv")
        with TemporaryDirectory() if out is None else nullcontext(out) as folder:
            drawn = out is not None and (reading, rows) == (ALL_CHOICES, ALL_CHOICES)
            request = Request(
                name=self.name,
                readings=readings,
                rows=rows,
                replicas=replicas,
                seed=seed,
                out=Path(folder),
                saved=out is not None,
                drawn=drawn,
                theta=theta or next(iter(self.thetas), ""),
            )
            made: Reproduced = resolve_name(f"dpbandit.experiments.{self.program}")(request)
        return made._replace(files=()) if out is None else made


def selected(
    table: str,
    text: str,
    rows: Mapping[str, T],
    kinds: Mapping[str, Callable[[str], Any]],
    *,
    alternatives: bool = False,
) -> tuple[list[T], dict[str, list[Any]]]:
    """Parse a selection such as "1-3,5,T=4096" into rows of a table and values by key.

    Without a row, or with "all", all rows are selected. A key may have several values only if
    `alternatives` is True.

    Raises:
        InputError: for any other text; the message has the syntax from paper_tables.toml.

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
            elif some and some <= {*rows, ALL_CHOICES}:
                names |= some - {ALL_CHOICES}
            else:
                raise wrong
        except (KeyError, ValueError):
            raise wrong from None
    return [row for name, row in rows.items() if name in names or not names], values


def reproduced(
    request: Request,
    file: str,
    records: Iterable[Mapping[str, Any]],
    tables: Iterable["Table"],
    drawings: Mapping[str, Callable[[Path], object]] = MappingProxyType({}),
) -> Reproduced:
    """Write records to FILE.csv and each drawing to NAME.png; return them with the tables."""
    from pandas import DataFrame  # slow to import

    rows = [plain(record) for record in records]
    written = [write_csv(request.out / f"{file}.csv", DataFrame(rows))]
    for name, drawing in drawings.items():
        written.append(write_atomically(request.out / f"{name}.png", drawing))
    return Reproduced(list(tables), rows, written)


def _tables() -> Mapping[str, PaperTable]:
    written = tomllib.loads((files("dpbandit.experiments") / "paper_tables.toml").read_text())
    every = [
        PaperTable(name=name, **{**shared, **table})
        for shared in written["group"]
        for name, table in shared.pop("tables").items()
    ]
    home = files("dpbandit.experiments")
    programs = {table.name: table.program.partition(":")[0].split(".") for table in every}
    return {table.name: table for table in every if _there(home, programs[table.name])}


def _there(home: Traversable, module: Sequence[str]) -> bool:
    """Return True if a module below `home` is in the package, not deleted with its shelf."""
    *folders, name = module
    return any(
        home.joinpath(*folders, part).is_file() for part in (f"{name}.py", f"{name}/__init__.py")
    )


TABLES = _tables()
"""Name -> published table, as described in paper_tables.toml, unless its study was deleted"""
