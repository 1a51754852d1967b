"""The study: the table's rows beside what we measure, and the table of all of it."""

from collections.abc import Mapping, Sequence
from math import copysign, hypot, isinf, nan, sqrt
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dpbandit.agents.streams.frank_wolfe import bounds_of
from dpbandit.base.arrays import Floats
from dpbandit.domains import LpBall
from dpbandit.experiments.questions import Answers, answers
from dpbandit.experiments.sgd.printed import Row
from dpbandit.experiments.sgd.questions import ROWS, Sizes, questions
from dpbandit.experiments.sgd.readings import STATED, Line, lines
from dpbandit.experiments.sgd.references import REFERENCES, Measured
from dpbandit.losses import LinearRegression
from dpbandit.privacy.curves import epsilon_of, mu_of
from dpbandit.results.runs import AgentRun, standard_error

_RADIUS, _BOUND = 2.0, 1.25
"""Of the domain and of `|y|`."""


class Entry(NamedTuple):
    """A line of our table: what was measured beside one printed row."""

    row: Row
    line: Line
    tried: Mapping[float, AgentRun]
    """every step scale"""
    theta: str = "equal"
    """whose theta*, of `THETAS`"""

    @property
    def scale(self) -> float:
        """The one that did best."""
        return min(self.tried, key=lambda c: float(self.tried[c].measures["suboptimality"].mean()))

    @property
    def run(self) -> AgentRun:
        """At that scale."""
        return self.tried[self.scale]

    @property
    def suboptimality(self) -> Floats:
        """Of each replica."""
        return self.run.measures["suboptimality"]

    @property
    def epsilon(self) -> float:
        """Certified, at delta = 1/T."""
        return self.run.certificate.epsilon

    @property
    def seconds(self) -> float:
        """Of one replica, run beside the others."""
        return float(self.run.measures["seconds"].mean())

    @property
    def mean(self) -> float:
        """SubOpt."""
        return float(self.suboptimality.mean())

    @property
    def se(self) -> float:
        """Of the mean."""
        return standard_error(self.suboptimality)

    @property
    def reached(self) -> bool:
        """At or below the printed SubOpt, which is not of a theta* with zeros."""
        return not self.row.sparse and self.mean <= self.row.suboptimality

    @property
    def unclipped_epsilon(self) -> float:
        """What the printed line is worth without our clip to its stated S = 2 (beta D + L).

        Normal noise (p > 2) at the true S; infinity where nothing is proved anyway.
        """
        at = self.row.setting
        loss = LinearRegression(LpBall(at.dim, at.p, _RADIUS), _BOUND)
        true, stated = bounds_of(loss).of_gradient(1.0), STATED.of_gradient(1.0)
        if self.line.reading != "printed" or isinf(self.epsilon):
            return self.epsilon
        mu = mu_of(self.epsilon, at.delta)
        return epsilon_of(mu * true / stated, at.delta)

    @property
    def z_printed(self) -> float:
        """Our distance from the printed mean, in combined standard errors."""
        return (self.mean - self.row.suboptimality) / hypot(self.se, self.row.se)

    @property
    def reference(self) -> Measured | None:
        """What the independent program measured of a line that has a step scale to choose, where
        theta* has equal entries."""
        key = (self.row.algorithm, self.line.reading, self.row.setting)
        return REFERENCES.get(key) if self.line.reads_table and self.theta == "equal" else None

    @property
    def z_reference(self) -> float:
        """Our distance from that, in combined standard errors, rounding forgiven; NaN where there
        is none."""
        reference = self.reference
        if reference is None:
            return nan
        run = self.tried[reference.scale] if reference.scale else self.run
        ours = run.measures["suboptimality"]
        spread = standard_error(ours) * sqrt(1 + len(ours) / reference.replicas)
        gap = float(ours.mean()) - reference.mean
        return copysign(max(0.0, abs(gap) - reference.rounding), gap) / spread

    def record(self) -> dict[str, object]:
        """A row of summary.csv."""
        row, risk, reference = self.row, self.run.measures["risk"], self.reference
        return {
            "row": row.number,
            "p": row.setting.p,
            "d": row.setting.dim,
            "T": row.setting.users,
            "algorithm": row.algorithm,
            "theta": self.theta,
            "printed_suboptimality": row.suboptimality,
            "printed_sd": row.suboptimality_sd,
            "printed_risk": row.risk,
            "printed_seconds": row.seconds,
            "line": self.line.label,
            "reading": self.line.reading,
            "scales_tried": len(self.tried),
            "scale": self.scale if len(self.tried) > 1 else None,
            "suboptimality": self.mean,
            "suboptimality_se": self.se,
            "risk": float(risk.mean()),
            "risk_se": standard_error(risk),
            "certified_epsilon": self.epsilon,
            "unclipped_epsilon": self.unclipped_epsilon,
            "delta": row.setting.delta,
            "seconds": self.seconds,
            "z_printed": self.z_printed,
            "reference": None if reference is None else reference.mean,
            "z_reference": self.z_reference,
            "at_or_below_printed": self.reached,
        }


def measure(sizes: Sizes, out: Path, *, progress: bool = True) -> Answers:
    """Run what is missing in the folder `out`."""
    asked = questions(sizes)
    return answers("Table 5.1", asked, out, replicas=sizes.replicas, progress=progress)


def entries(sizes: Sizes, found: Answers) -> list[Entry]:
    """What stands beside the rows, in their order."""
    return [
        Entry(row, line, dict(zip(line.configs, runs[line.label], strict=True)), sizes.theta)
        for row in sizes.rows
        for runs in [found.runs[ROWS][str(row.number)]]
        for line in lines(row, sizes.readings)
    ]


def summary(found: Sequence[Entry]) -> pd.DataFrame:
    """One row for each entry."""
    return pd.DataFrame([entry.record() for entry in found])


def beside(found: Sequence[Entry], row: Row) -> dict[str, Entry]:
    """label -> what stands beside `row`."""
    return {entry.line.label: entry for entry in found if entry.row == row}


def rows_of(found: Sequence[Entry], algorithm: str) -> list[Row]:
    """The rows of an algorithm, those of small p first, then by d, then by T."""
    rows = dict.fromkeys(entry.row for entry in found if entry.row.algorithm == algorithm)
    return sorted(rows, key=lambda row: row.setting)


def sample(found: Sequence[Entry]) -> int:
    """Replicas."""
    return len(found[0].run.replicas)
