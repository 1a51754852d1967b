"""Table 5.1 of Han et al. (2022) as printed, and the values of an independent program.

Han, Liang, Liang, Wang, Yao and Zhang, "On private online convex optimization: optimal algorithms
in l_p-geometry and high dimensional contextual bandits" (2022): means and standard deviations over
10 runs, at a claimed (1, 1/T)-DP. The paper omits one of 48 rows: NoisySGD at T = 10,000, d = 5.

An independent program measured the same problems with the same grids of step scales. It reports
only means, of 200 replicas (NoisySFW: of at least 20); their spread is assumed equal to ours, and
half of the last digit is allowed for rounding. Two of its settings differ from ours::

    DP-TOFW, stated, d = 5    noise in l_3 (constant kappa = 2), as for larger d; ours is in l_2,
                              where kappa is least, 1.71, and is 20 to 30 % smaller
    NoisySFW, stated          its numbers are those of the step scale 0.1, not of the best
"""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from math import sqrt
from typing import Any, NamedTuple

from dpbandit.agents import NoisySGD
from dpbandit.agents.streams.frank_wolfe import Bounds
from dpbandit.base import InputError
from dpbandit.experiments.paper_tables import selected

_RUNS = 10  # number of runs whose mean Table 5.1 has
_NOISE = 0.05  # standard deviation of the responses
STATED = Bounds(lipschitz=4.0, smoothness=1.0, diameter=4.0)
"""Constants of the authors' program; truly, the Lipschitz constant is 6.5 and the smoothness 2"""


class Setting(NamedTuple):
    """Norm p, dimension d and number T of users of a linear regression in Table 5.1."""

    p: float
    dim: int
    users: int

    @property
    def delta(self) -> float:
        """Privacy parameter delta, 1 / T."""
        return 1 / self.users

    def __str__(self) -> str:
        return f"p={self.p:g},d={self.dim},T={self.users}"


class Row(NamedTuple):
    """A printed row of Table 5.1, numbered from 1 in the order of table_5_1.csv."""

    number: int
    setting: Setting
    algorithm: str
    """Name in the paper's Table 5.1, OFW (called DP-TOFW in this package), NoisySFW or NoisySGD"""
    risk: float
    risk_sd: float
    suboptimality: float
    suboptimality_sd: float
    seconds: float
    seconds_sd: float

    @property
    def se(self) -> float:
        """Standard error of the mean suboptimality printed in Table 5.1."""
        return standard_error_of_runs(self.suboptimality_sd)

    @property
    def baseline(self) -> float:
        """Excess risk of the origin, (risk - noise variance) / suboptimality of the row."""
        return (self.risk - _NOISE**2) / self.suboptimality

    @property
    def sparse(self) -> bool:
        """True if theta* has five equal entries and zeros, unlike in rows of other algorithms.

        The paper does not mention it; the baselines show it.
        """
        return self.algorithm == "NoisySGD" and self.setting.users <= 2000 and self.setting.dim > 5


def standard_error_of_runs(sd: float) -> float:
    """Return the standard error of a mean of 10 runs, printed with a standard deviation."""
    return sd / sqrt(_RUNS)


def _lines_of(file: str) -> list[dict[str, str]]:
    text = (files("dpbandit.experiments.sgd") / file).read_text()
    return list(csv.DictReader(text.splitlines()))


def _setting(line: Mapping[str, str]) -> Setting:
    return Setting(float(line["p"]), int(line["d"]), int(line["T"]))


_NUMBER_COLUMNS = ("risk_mean", "risk_std", "subopt_mean", "subopt_std", "time_mean", "time_std")


@cache
def rows() -> tuple[Row, ...]:
    """Read the 47 rows that the paper's Table 5.1 has."""
    return tuple(
        Row(number, _setting(line), line["algo"], *(float(line[name]) for name in _NUMBER_COLUMNS))
        for number, line in enumerate(_lines_of("table_5_1.csv"), start=1)
    )


def chosen_rows(selection: str) -> tuple[Row, ...]:
    """Return rows chosen by number, "1-6,9", or by value, "p=inf,T=2000,T=5000", or "all".

    Values of one key are alternatives; several keys must all match.

    >>> [row.number for row in chosen_rows("1-3,47")]
    [1, 2, 3, 47]
    >>> [row.number for row in chosen_rows("algo=OFW,d=5,p=inf,T=1000,T=2000")]
    [4, 16]
    """
    algorithms = {row.algorithm: row.algorithm for row in rows()}
    kinds: Mapping[str, Any] = {"T": float, "d": float, "p": float, "algo": algorithms.__getitem__}
    every = {str(row.number): row for row in rows()}
    some, wanted = selected("sgd/table-5-1", selection, every, kinds, alternatives=True)
    found = []
    for row in some:
        (p, d, T), algorithm = row.setting, row.algorithm
        values = {"T": T, "d": d, "p": p, "algo": algorithm}
        if all(values[key] in allowed for key, allowed in wanted.items()):
            found.append(row)
    if not found:
        raise InputError(f"Expected rows={selection!r} to match at least one row, got none.")
    return tuple(found)


class Measured(NamedTuple):
    """Mean relative suboptimality that the independent program measured."""

    mean: float
    rounding: float
    replicas: int
    scale: float | None = None
    """Factor of the step sizes; None for the best factor of the grid"""


@cache
def references() -> Mapping[tuple[str, str, Setting], Measured]:
    """Read the independent program's means, by (algorithm of the row, reading, setting)."""
    found = {}
    for line in _lines_of("references.csv"):
        digits = len(line["subopt"].partition(".")[2])
        scale = float(line["scale"]) if line["scale"] else None
        one = Measured(float(line["subopt"]), 0.5 * 10**-digits, int(line["replicas"]), scale)
        found[line["algo"], line["reading"], _setting(line)] = one
    return found


class StoppedSGD(NoisySGD):
    """`NoisySGD` with noise and step sizes for all m steps, stopped after the first `made` of them.

    Runs of one seed share their first steps, so that their releases form a training curve. The
    certificate is that of the steps made; a curve costs as much epsilon as its last point.
    """

    made: int = 1

    def numbers(self, users: int) -> tuple[int, float, float]:
        _, sigma, eta = super().numbers(users)
        return self.made, sigma, eta
