"""A table of a paper, reproduced row by row: many agents, problems and readings."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from dpbandit.base.files import check_writable
from dpbandit.base.inputs import one_of

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


class Reproduce(Protocol):
    """Measures the rows chosen, resuming what it finds in `out`; writes figures if `drawn`."""

    def __call__(
        self,
        readings: tuple[str, ...],
        rows: str,
        *,
        replicas: int,
        seed: int,
        out: Path,
        drawn: bool,
    ) -> Reproduced:
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

    def run(
        self, reading: str, rows: str, *, replicas: int, seed: int, out: Path | None
    ) -> Reproduced:
        """Measure `rows`, or all, under one reading, or all; keep it in `out`, if given.

        Raises:
            InputError: an unknown reading or row, a folder that cannot be written.
        """
        one_of("reading", reading, (*self.readings, ALL))
        readings = tuple(self.readings) if reading == ALL else (reading,)
        if out is not None:
            check_writable(out / "summary.csv")
        with TemporaryDirectory() if out is None else nullcontext(out) as folder:
            drawn = out is not None and (reading, rows) == (ALL, ALL)
            made = self.reproduce()(
                readings, rows, replicas=replicas, seed=seed, out=Path(folder), drawn=drawn
            )
        return made._replace(files=()) if out is None else made
