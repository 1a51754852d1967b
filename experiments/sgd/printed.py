"""Table 5.1 as printed, and how to say which of its rows.

Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal algorithms
in l_p-geometry and high dimensional contextual bandits" (2022): means and standard deviations over
10 runs, at a claimed (1, 1/T)-DP. One cell of the 48 is not in the paper: NoisySGD at T = 10,000,
d = 5.
"""

import csv
import re
from functools import cache
from importlib.resources import files
from math import inf, sqrt
from typing import NamedTuple

from dpbandit.base.inputs import InputError

_RUNS = 10
_NOISE = 0.05
_KEYS = ("T", "d", "p", "algo")


class Setting(NamedTuple):
    """A linear regression of the table: p, d and T."""

    p: float
    dim: int
    users: int

    @property
    def delta(self) -> float:
        """1 / T."""
        return 1 / self.users

    def __str__(self) -> str:
        return f"p={self.p:g},d={self.dim},T={self.users}"


class Row(NamedTuple):
    """A row, numbered from 1 in the order of the file."""

    number: int
    setting: Setting
    algorithm: str
    """OFW (DP-TOFW), NoisySFW or NoisySGD"""
    risk: float
    risk_sd: float
    suboptimality: float
    suboptimality_sd: float
    seconds: float
    seconds_sd: float

    @property
    def se(self) -> float:
        """Of the mean SubOpt."""
        return standard_error_of_runs(self.suboptimality_sd)

    @property
    def baseline(self) -> float:
        """F(0) - F(theta*) as the row implies it, from risk = noise^2 + SubOpt baseline."""
        return (self.risk - _NOISE**2) / self.suboptimality

    @property
    def sparse(self) -> bool:
        """Of another theta* than the rows beside it; the first five coordinates equal, else 0.

        The paper does not say so; the baselines do.
        """
        return self.algorithm == "NoisySGD" and self.setting.users <= 2000 and self.setting.dim > 5


def standard_error_of_runs(sd: float) -> float:
    """Of a printed mean, from its printed standard deviation."""
    return sd / sqrt(_RUNS)


@cache
def rows() -> tuple[Row, ...]:
    """All 47."""
    text = (files("dpbandit.experiments.sgd") / "table_5_1.csv").read_text()
    return tuple(
        Row(
            number,
            Setting(float(line["p"]), int(line["d"]), int(line["T"])),
            line["algo"],
            *(float(line[name]) for name in ("risk_mean", "risk_std")),
            *(float(line[name]) for name in ("subopt_mean", "subopt_std")),
            *(float(line[name]) for name in ("time_mean", "time_std")),
        )
        for number, line in enumerate(csv.DictReader(text.splitlines()), start=1)
    )


def chosen_rows(selection: str) -> tuple[Row, ...]:
    """The rows with these numbers, "1-6,9", or with these values, "p=inf,T=2000,T=5000".

    Values of one key are alternatives, keys are conditions that hold together; "all" is all rows.

    >>> [row.number for row in chosen_rows("1-3,47")]
    [1, 2, 3, 47]
    >>> [row.number for row in chosen_rows("algo=OFW,d=5,p=inf,T=1000,T=2000")]
    [4, 16]
    """
    if selection == "all":
        return rows()
    terms = [term.strip() for term in selection.split(",")]
    if any("=" in term for term in terms):
        found = _with_values(terms)
    else:
        numbers = {number for term in terms for number in _numbers(term)}
        found = tuple(row for row in rows() if row.number in numbers)
    if not found:
        raise InputError(
            f"Expected rows={selection!r} to choose some of the rows, it chooses none."
        )
    return found


def _with_values(terms: list[str]) -> tuple[Row, ...]:
    wanted: dict[str, set[float | str]] = {}
    for term in terms:
        key, _, value = term.partition("=")
        if key not in _KEYS or not value:
            raise _mistake(term)
        wanted.setdefault(key, set()).add(value if key == "algo" else _number(term, value))
    for algorithm in wanted.get("algo", ()):
        if algorithm not in {row.algorithm for row in rows()}:
            raise _mistake(f"algo={algorithm}")
    return tuple(
        row for row in rows() if all(_value(row, key) in values for key, values in wanted.items())
    )


def _value(row: Row, key: str) -> float | str:
    p, d, T = row.setting
    return row.algorithm if key == "algo" else {"T": T, "d": d, "p": p}[key]


def _numbers(term: str) -> range:
    parts = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", term)
    if parts is None:
        raise _mistake(term)
    first, last = int(parts[1]), int(parts[2] or parts[1])
    if not 1 <= first <= last <= len(rows()):
        raise _mistake(term)
    return range(first, last + 1)


def _number(term: str, value: str) -> float:
    try:
        return inf if value == "inf" else float(value)
    except ValueError:
        raise _mistake(term) from None


def _mistake(term: str) -> InputError:
    return InputError(
        f"Expected rows to be numbers from 1 to {len(rows())} (1-6,9) or values of T, d, p and "
        f"algo=OFW, NoisySFW or NoisySGD (p=inf,T=2000), got {term!r}."
    )
