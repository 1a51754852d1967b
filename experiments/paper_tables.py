"""Tables of papers that are reproduced row by row, by name."""

import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from pkgutil import resolve_name
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

from dpbandit.base import InputError, check_writable, one_of

if TYPE_CHECKING:
    from dpbandit.base.tables import Table


ALL = "all"


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


def rows_and_sizes(
    text: str, last: int, sizes: Mapping[str, Callable[[str], Any]], hint: str
) -> tuple[set[int], dict[str, Any]]:
    """Read rows of a table and sizes, "1-3,5,T=4096"; no row named, or "all", is all rows.

    Raises:
        InputError: anything else.

    >>> rows_and_sizes("4-5,T=1024", 7, {"T": int}, "the horizon (T=4096)")
    ({4, 5}, {'T': 1024})
    """
    wrong = InputError(
        f"Expected rows to be numbers from 1 to {last} (1-3,5) and {hint}, got {text!r}."
    )
    numbers, told = set[int](), dict[str, Any]()
    for term in (part.strip() for part in text.split(",")):
        key, equals, value = term.partition("=")
        span = re.fullmatch(r"([0-9]{1,3})(?:-([0-9]{1,3}))?", term)
        try:
            if equals and key not in told:
                told[key] = sizes[key](value)
            elif span and (chosen := range(int(span[1]), int(span[2] or span[1]) + 1)):
                numbers |= set(chosen)
            elif term != "all":
                raise wrong
        except (KeyError, ValueError):
            raise wrong from None
    every = set(range(1, last + 1))
    if not numbers <= every:
        raise wrong
    return numbers or every, told


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
