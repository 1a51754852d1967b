"""A table of a paper, reproduced row by row: many agents, problems and readings."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dpbandit.base.files import check_writable
from dpbandit.base.inputs import InputError, one_of

if TYPE_CHECKING:
    from rich.table import Table

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


class Reproduce(Protocol):
    """Measures what is asked."""

    def __call__(self, asked: Asked) -> Reproduced:
        """Tables, records and files of them."""
        ...


@dataclass(frozen=True, kw_only=True)
class PaperTable:
    """A table, and the readings of what it says."""

    name: str
    summary: str
    readings: Mapping[str, str]
    """name -> what it is"""
    rows: str
    """how to choose some of them"""
    reproduce: Callable[[], Reproduce]
    """loads what it takes"""
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
                readings=readings,
                rows=rows,
                replicas=replicas,
                seed=seed,
                out=Path(folder),
                kept=out is not None,
                drawn=drawn,
                theta=theta or next(iter(self.thetas), ""),
            )
            made = self.reproduce()(asked)
        return made._replace(files=()) if out is None else made
