"""Tables of papers that are reproduced row by row, by name."""

from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
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


def _table_of_rates(name: str, summary: str, last: int) -> PaperTable:
    return PaperTable(
        name=name,
        summary=f"{summary}: printed exponents beside measured ones",
        readings={
            "certified": "noise that is certified at epsilon and delta = 1e-6",
            "printed": "noise and parameters of the paper, where it has others",
            "public": "no privacy",
        },
        rows=f"numbers from 1 to {last} (1-3,5), and the longest horizon: T=4096",
        program="rates:reproduce",
    )


_THETAS = {
    "equal": "theta* with equal entries, as the program that made the table had",
    "stated": "theta* with normal entries, scaled to l_p norm 1, as Section 5.3 says",
}
_CURVES = {
    "printed": "the laws of the program that made Table 5.1, NoisySGD with 10 T of its T^2 steps",
    "certified": "truly (1, 1/T)-DP",
}
TABLES = {
    table.name: table
    for table in (
        PaperTable(
            name="sgd/table-5-1",
            summary="private stochastic optimisation in l_p, SubOpt: printed beside measured",
            readings={
                "printed": "the laws of the program that made the table, misprints and all",
                "stated": "the laws that the theorems need, at the stated constants",
                "public": "no privacy",
                "certified": "truly (1, 1/T)-DP, one configuration for all rows",
            },
            rows="numbers from 1 to 47 (1-6,9), or values of T, d, p and algo (p=inf,T=2000)",
            program="sgd.__main__:reproduce",
            thetas=_THETAS,
        ),
        PaperTable(
            name="sgd/figure-5-2",
            summary="training curves of four agents by step scale, T = 2,000, d = 10",
            readings=_CURVES,
            rows="all, or fewer users: T=200",
            program="sgd.__main__:figure_5_2",
            thetas=_THETAS,
        ),
        PaperTable(
            name="sgd/figure-5-3",
            summary="SubOpt against seconds, DP-TOFW beside NoisySFW at p = 1.5",
            readings=_CURVES,
            rows="all, or fewer users: T=200",
            program="sgd.__main__:figure_5_3",
            thetas=_THETAS,
        ),
        PaperTable(
            name="window/table-1",
            summary="privacy expiration, Table I: printed bounds beside regret and operations",
            readings={
                "printed": "noise, steps and trees as printed, certified as what they are",
                "certified": "truly (epsilon, delta), for the window where there is one",
                "public": "no privacy, and players that learn nothing",
            },
            rows="numbers from 1 to 7 (4-7), and sizes: T=1024, W=16, epsilon=1, delta=1e-6",
            program="window.table_1:reproduce",
        ),
        PaperTable(
            name="contextual/theorem-4-2",
            summary="the error of DP-HDB's parameters in t, and its regret, with three links",
            readings={
                "printed": "choices with the paper's noise",
                "certified": "choices and sums, certified at (1, 1/T), beside FADE",
                "public": "online Frank-Wolfe, no privacy",
            },
            rows="links, identity, logistic and probit, and the horizon: T=4096",
            program="estimation:reproduce",
        ),
        _table_of_rates("sgd/table-1-1", "excess risk of private stochastic optimisation", 14),
        _table_of_rates("sgd/table-1-2", "regret of private online optimisation", 5),
        _table_of_rates("convex/table-1", "regret of leaders with full information", 6),
        _table_of_rates("convex/table-2", "regret of leaders told values alone", 4),
        _table_of_rates("experts/table-1", "regret with and without a perfect expert", 7),
    )
}
"""By name."""
