"""An honest Table 5.1: what was printed, what reproduces it, what holds. See README.md."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import copysign, hypot, inf, isinf, isnan, nan, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd

from dpbandit.agents.streams.frank_wolfe import bounds_of
from dpbandit.base import MOST_REPLICAS, Floats, InputError, one_of, whole
from dpbandit.base.tables import Table
from dpbandit.domains import LpBall
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.experiments.sgd.printed import (
    COMPETITORS,
    DP_TOFW,
    FLOOR,
    LOCALISED,
    READINGS,
    REFERENCES,
    STATED,
    Line,
    Measured,
    Row,
    Setting,
    chosen_rows,
    lines,
    rows,
    standard_error_of_runs,
    varied_lines,
)
from dpbandit.experiments.study import Answers, Lines, Panels, answers
from dpbandit.losses import LinearRegression
from dpbandit.privacy import epsilon_of, mu_of
from dpbandit.results.problems import Setup
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.specs import AgentConfig
from dpbandit.studies import setup_of

THETAS = {"equal": "dense", "stated": "gaussian"}
"""Of the table's program, and of Section 5.3 -> what the environment calls it"""

ROWS, SCALES = "rows", "step scales"
"""The two questions"""


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of both questions."""

    rows: Sequence[Row] = field(default_factory=rows)
    readings: tuple[str, ...] = READINGS
    scales_at: Sequence[Setting] = (Setting(1.5, 10, 5000), Setting(inf, 10, 5000))
    """where everybody's step scale is varied, for a figure"""
    theta: str = "equal"
    """whose theta*, of `THETAS`"""
    replicas: int = 40
    seed: int = 0

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2, MOST_REPLICAS)  # there are standard errors
        one_of("theta", self.theta, THETAS)
        for reading in self.readings:
            one_of("reading", reading, READINGS)
        if not self.rows or not self.readings:
            raise InputError("Expected at least one row and one reading.")


QUICK = Sizes(
    rows=chosen_rows("T=1000,d=5"),
    scales_at=(Setting(1.5, 5, 1000), Setting(inf, 5, 1000)),
    replicas=3,
)


def questions(sizes: Sizes) -> Mapping[str, Panels]:
    """Panels are printed rows, by number, and settings; along a line the step scale varies."""
    return {
        ROWS: {
            str(row.number): _along(row.setting, lines(row, sizes.readings), sizes)
            for row in sizes.rows
        },
        SCALES: {
            f"p = {at.p:g}, d = {at.dim}, T = {at.users:,}": _along(at, varied_lines(at), sizes)
            for at in sizes.scales_at
        },
    }


def _along(setting: Setting, some: Sequence[Line], sizes: Sizes) -> Lines:
    how: dict[str, Any] = {"seed": sizes.seed, "theta": sizes.theta}
    return {
        line.label: [
            on(setting, f"{line.label} {scale:g}" if line.tried else line.label, config, **how)
            for scale, config in line.configs.items()
        ]
        for line in some
    }


def on(
    setting: Setting, name: str, config: AgentConfig, *, seed: int, theta: str = "equal"
) -> ReleaseConfiguration:
    """An agent on a regression of the table."""
    setup = setup_of_regression(setting, seed=seed, theta=theta)
    return ReleaseConfiguration(setup, name, config)


def setup_of_regression(setting: Setting, *, seed: int, theta: str) -> Setup:
    """Its problem, with equal entries of theta* or others (see `THETAS`)."""
    arguments: dict[str, Any] = {"p": setting.p, "dim": setting.dim}
    label = f"p = {setting.p:g}, d = {setting.dim}"
    if theta != "equal":
        arguments["theta"] = THETAS[theta]
        label += f", theta* as {theta}"
    return setup_of("StreamingRegression", arguments, horizon=setting.users, seed=seed, label=label)


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


_ABREAST = 4


class Column(NamedTuple):
    """A column of the printed table."""

    heading: str
    printed: Callable[[Row], str]
    cell: Callable[[Entry], str]
    caption: str
    """with {} for our replicas"""


_TITLES = {
    "OFW": "OFW: tree-based online Frank-Wolfe (DP-TOFW)",
    "NoisySFW": "NoisySFW",
    "NoisySGD": "NoisySGD",
}


def tables(found: Sequence[Entry]) -> Iterator[Table]:
    """All of them, of the rows and readings that were asked for."""
    for algorithm, title in _TITLES.items():
        rows = rows_of(found, algorithm)
        if rows and (labels := _labels(found, rows, others=algorithm != "OFW")):
            for column in (_SUBOPT, _RISK, _SECONDS):
                yield _beside(found, rows, labels, title, column)
            yield _certificates(found, rows, labels, title)
    rows = rows_of(found, "OFW")
    everybody = (LOCALISED, DP_TOFW, *COMPETITORS, FLOOR)
    present = _labels(found, rows, others=True)
    labels = [label for label in everybody if label in present]
    if len(labels) > 3:  # more than the rows of OFW have shown
        for some in _parts(labels):
            yield _everybody(found, rows, some)


def _parts(labels: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many as fit beside each other on 80 columns."""
    for first in range(0, len(labels), _ABREAST):
        yield labels[first : first + _ABREAST]


def _labels(found: Sequence[Entry], rows: Sequence[Row], *, others: bool) -> list[str]:
    """The columns of these rows, without the competitors and the floor unless asked for."""
    labels = {label: None for row in rows for label in beside(found, row)}
    extra = (*COMPETITORS, FLOOR)
    return [label for label in labels if others or label not in extra]


def _beside(
    found: Sequence[Entry], rows: Sequence[Row], labels: Sequence[str], title: str, column: Column
) -> Table:
    caption = column.caption.format(sample(found))
    if any(row.sparse for row in rows):
        caption += ". †: printed on another theta*, 5-sparse, and not to be compared"
    table = _table(f"{title}: {column.heading}", caption)
    table.add_column("printed", justify="right")
    for label in labels:
        table.add_column(_heading(found, rows, label), justify="right", overflow="fold")
    for row in rows:
        entries = beside(found, row)
        printed = f"{column.printed(row)}{' †' if row.sparse else ''}"
        cells = (column.cell(entries[label]) if label in entries else "" for label in labels)
        table.add_row(*_place(row), printed, *cells)
    return table


def _certificates(
    found: Sequence[Entry], rows: Sequence[Row], labels: Sequence[str], title: str
) -> Table:
    caption = (
        "printed claim: (1, 1/T)-DP; inf: nothing is proved, or no privacy. In brackets: as the "
        "program ran, without our clip to the sensitivity it states"
    )
    table = _table(f"{title}: certified epsilon at delta = 1/T", caption)
    for label in labels:
        table.add_column(label, justify="right", overflow="fold")
    for row in rows:
        entries = beside(found, row)
        table.add_row(*_place(row), *(_epsilon(entries[label]) for label in labels))
    return table


def _everybody(found: Sequence[Entry], rows: Sequence[Row], labels: Sequence[str]) -> Table:
    caption = (
        "SubOpt, one configuration for all rows, each certified at (1, 1/T) but for least squares. "
        "*: at or below the printed OFW"
    )
    table = _table("Everybody at the same true (1, 1/T)", caption)
    for label in labels:
        table.add_column(label, justify="right", overflow="fold")
    for row in rows:
        entries = beside(found, row)
        table.add_row(
            *_place(row), *(f"{e.mean:.3g}{_star(e)}" for e in map(entries.__getitem__, labels))
        )
    return table


def _table(title: str, caption: str) -> Table:
    table = Table(title=title, caption=caption, keys=4)
    for heading in ("row", "p", "T", "d"):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _place(row: Row) -> tuple[str, ...]:
    p, d, T = row.setting
    return str(row.number), f"{p:g}", f"{T:,}", str(d)


def _heading(found: Sequence[Entry], rows: Sequence[Row], label: str) -> str:
    tried = sorted({len(beside(found, row)[label].tried) for row in rows})
    return label if tried == [1] else f"{label} (best of {' or '.join(map(str, tried))})"


def _suboptimality(entry: Entry) -> str:
    words = [f"{entry.mean:.3g} ± {entry.se:.2g}"]
    if len(entry.tried) > 1:
        words.append(f"({entry.scale:g})")
    if entry.line.reading == "printed" and not isnan(entry.z_printed):
        words.append(f"[{entry.z_printed:+.1f}]")
    return " ".join(words) + _star(entry)


def _epsilon(entry: Entry) -> str:
    certified, unclipped = entry.epsilon, entry.unclipped_epsilon
    return f"{certified:.3g}" + (f" ({unclipped:.3g})" if unclipped != certified else "")


def _star(entry: Entry) -> str:
    return " *" if entry.reached and entry.line.reading == "certified" else ""


_SUBOPT = Column(
    "SubOpt",
    lambda row: f"{row.suboptimality:.3g} ± {row.se:.2g}",
    _suboptimality,
    "SubOpt, printed ± standard error of 10 runs, ours ± that of {}. In square brackets: ours "
    "minus printed in combined standard errors; (c): the best of the step scales tried, chosen "
    "after looking. *: certified, and at or below the printed value",
)
_RISK = Column(
    "Risk",
    lambda row: f"{row.risk:.3g} ± {standard_error_of_runs(row.risk_sd):.2g}",
    lambda entry: _mean(entry.run.measures["risk"]),
    "risk, printed on test users ± standard error of 10 runs, ours exact ± that of {}; 0.0025 is "
    "the least",
)
_SECONDS = Column(
    "Time",
    lambda row: f"{row.seconds:,.3g} ± {standard_error_of_runs(row.seconds_sd):.2g}",
    lambda entry: f"{entry.seconds:.2g}",
    "seconds of one run, printed on another machine ± standard error of 10 runs; ours: processor "
    "time, a replica's share of {}; users are drawn in it, too",
)


def _mean(values: Floats) -> str:
    return f"{values.mean():.3g} ± {standard_error(values):.2g}"
