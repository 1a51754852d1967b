"""Table 5.1 reproduced: printed values, their reproduction, certified agents. See README.md.

To the results of study.toml this adds differences from printed values and from an independent
program's values, and the epsilon of the authors' program as it ran. SubOpt is the excess risk of a
released point, divided by the excess risk of 0.
"""

from collections.abc import Callable, Iterator, Sequence
from math import copysign, hypot, isinf, isnan, nan, sqrt
from typing import Any, NamedTuple

from dpbandit.agents.streams.frank_wolfe import bounds_of
from dpbandit.base import Floats
from dpbandit.base.tables import Table
from dpbandit.domains import LpBall
from dpbandit.experiments.sgd.printed import (
    STATED,
    Measured,
    Row,
    Setting,
    references,
    rows,
    standard_error_of_runs,
)
from dpbandit.experiments.study import Answers, Sizes, read, tabulated
from dpbandit.losses import LinearRegression
from dpbandit.privacy import epsilon_of, mu_of
from dpbandit.results.problems import Setup
from dpbandit.results.runs import AgentRun, standard_error

STUDY = read("sgd")  # contents of the folder's study.toml
STUDY.sizes["rows"] = rows()
PROBLEMS = dict(zip(("equal", "stated"), STUDY.problems, strict=True))
"""Name of theta*, "equal" (as the authors' program has) or "stated" -> label of the problem"""
FLOOR = "least squares"  # label of the agent that nearly attains the least risk
COMPETITORS = tuple(STUDY.agents["OFW, certified"])[2:]  # labels of other private agents
_RADIUS, _BOUND = 2.0, 1.25
"""Radius of the domain, and largest absolute value of responses"""


def setup_of_regression(setting: Setting, *, seed: int, theta: str = "equal") -> Setup:
    """Return the problem for norm p, dimension d and T users, with a theta* of `PROBLEMS`."""
    p, d, T = setting
    return STUDY.setup(PROBLEMS[theta], {"p": p, "d": d, "T": T, "seed": seed})


def suboptimality(regret: Floats, rounds: Any, run: AgentRun, lines: Any) -> Floats:
    """Return the relative suboptimality of the released point, (R,), as a value for figures."""
    return run.measures["suboptimality"]


class Entry(NamedTuple):
    """A line of our table: a row of the paper's Table 5.1 and runs of one agent on its problem."""

    row: Row
    label: str
    reading: str
    runs: Sequence[AgentRun]
    """Runs, one for each step scale (factor of the step sizes)"""
    theta: str = "equal"
    """Name of theta*, a key of `PROBLEMS`"""

    @property
    def run(self) -> AgentRun:
        """Run at the step scale (factor of step sizes) with the least mean suboptimality."""
        return min(self.runs, key=lambda run: float(run.measures["suboptimality"].mean()))

    @property
    def suboptimality(self) -> Floats:
        """Suboptimality (relative excess risk) of each replica, (R,)."""
        return self.run.measures["suboptimality"]

    @property
    def epsilon(self) -> float:
        """Certified epsilon at delta = 1/T."""
        return self.run.certificate.epsilon

    @property
    def seconds(self) -> float:
        """Processor time per replica in seconds, when all are played together."""
        return float(self.run.measures["seconds"].mean())

    @property
    def mean(self) -> float:
        """Mean suboptimality (relative excess risk) of the replicas."""
        return float(self.suboptimality.mean())

    @property
    def se(self) -> float:
        """Standard error of the mean suboptimality (relative excess risk)."""
        return standard_error(self.suboptimality)

    @property
    def reached(self) -> bool:
        """True if mean suboptimality is at most that of Table 5.1, measured on the same theta*."""
        return not self.row.sparse and self.mean <= self.row.suboptimality

    @property
    def unclipped_epsilon(self) -> float:
        """Epsilon of a printed agent without our clip of gradients to the sensitivity it states.

        Its Gaussian noise then meets the true sensitivity of gradients; infinity without a proof.
        """
        at = self.row.setting
        loss = LinearRegression(LpBall(at.dim, at.p, _RADIUS), _BOUND)
        true, stated = bounds_of(loss).of_gradient(1.0), STATED.of_gradient(1.0)
        if self.reading != "printed" or isinf(self.epsilon):
            return self.epsilon
        mu = mu_of(self.epsilon, at.delta)
        return epsilon_of(mu * true / stated, at.delta)

    @property
    def z_printed(self) -> float:
        """Difference from the mean in the paper's Table 5.1, in combined standard errors."""
        return (self.mean - self.row.suboptimality) / hypot(self.se, self.row.se)

    @property
    def reference(self) -> Measured | None:
        """Mean suboptimality that the independent program measured, for theta* with equal entries.

        None for agents that this program did not measure.
        """
        key = (self.row.algorithm, self.reading, self.row.setting)
        beside = self.reading == "certified" or self.label == FLOOR or self.theta != "equal"
        return None if beside else references().get(key)

    @property
    def z_reference(self) -> float:
        """Difference from `reference`, less its rounding, in combined standard errors, or NaN."""
        if (reference := self.reference) is None:
            return nan
        run = next((one for one in self.runs if scale_of(one) == reference.scale), self.run)
        ours = run.measures["suboptimality"]
        spread = standard_error(ours) * sqrt(1 + len(ours) / reference.replicas)
        gap = float(ours.mean()) - reference.mean
        return copysign(max(0.0, abs(gap) - reference.rounding), gap) / spread

    def record(self) -> dict[str, object]:
        """Return a row of summary.csv."""
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
            "line": self.label,
            "reading": self.reading,
            "scales_tried": len(self.runs),
            "scale": scale_of(self.run) if len(self.runs) > 1 else None,
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


def scale_of(run: AgentRun) -> Any:
    """Return the factor of the step sizes of a run's agent, its setting `scale` or `step`."""
    return run.config.get("scale", run.config.get("step"))


def entries(sizes: Sizes, found: Answers) -> list[Entry]:
    """Return the lines of our table for the chosen rows of Table 5.1, sorted by row."""
    known = {**STUDY.sizes, **sizes}
    theta = {label: theta for theta, label in PROBLEMS.items()}[known["problem"]]
    return [
        Entry(row, label, reading, found.runs["rows"][str(row.number)][label], theta)
        for row in known["rows"]
        for reading in known["readings"]
        for label in STUDY.agents[f"{row.algorithm}, {reading}"]
    ]


def beside(found: Sequence[Entry], row: Row) -> dict[str, Entry]:
    """Return the measured lines of a row of Table 5.1, by the agent's label."""
    return {entry.label: entry for entry in found if entry.row == row}


def rows_of(found: Sequence[Entry], algorithm: str) -> list[Row]:
    """Return the rows of Table 5.1 of an algorithm, sorted by norm p, dimension d and users T."""
    chosen = dict.fromkeys(entry.row for entry in found if entry.row.algorithm == algorithm)
    return sorted(chosen, key=lambda row: row.setting)


_MAX_COLUMNS = 4
"""Largest number of columns of numbers that fit in a line of 80 letters"""
_TITLES = {  # algorithm -> title of its table
    "OFW": "OFW: tree-based online Frank-Wolfe (DP-TOFW)",
    "NoisySFW": "NoisySFW",
    "NoisySGD": "NoisySGD",
}


def tables(found: Sequence[Entry]) -> Iterator[Table]:
    """Yield all tables of the chosen rows and readings (ways to set up the agents)."""
    extra = (*COMPETITORS, FLOOR)
    for algorithm, title in _TITLES.items():
        rows = rows_of(found, algorithm)
        present = dict.fromkeys(label for row in rows for label in beside(found, row))
        labels = [label for label in present if algorithm != "OFW" or label not in extra]
        for heading, printed, cell, caption in _MEASURES if labels else ():
            caption = caption.format(len(found[0].run.replicas))
            if any(row.sparse for row in rows):
                caption += ". †: printed on another theta*, 5-sparse, and not to be compared"
            name = f"{title}: {heading}"
            yield _table(found, rows, labels, cell, printed=printed, title=name, caption=caption)
        if labels:
            title = f"{title}: certified epsilon at delta = 1/T"
            yield _table(found, rows, labels, _epsilon, title=title, caption=_CERTIFIED)
    rows = rows_of(found, "OFW")
    present = dict.fromkeys(label for row in rows for label in beside(found, row))
    everybody = ("DP-TOFW, localised", "DP-TOFW, certified", *extra)
    labels = [label for label in everybody if label in present]
    if len(labels) > 3:  # more than the rows of OFW have shown
        for first in range(0, len(labels), _MAX_COLUMNS):
            some, title = (
                labels[first : first + _MAX_COLUMNS],
                "Everybody at the same true (1, 1/T)",
            )
            yield _table(found, rows, some, _mean, title=title, caption=_EVERYBODY)


def _table(
    found: Sequence[Entry],
    rows: Sequence[Row],
    labels: Sequence[str],
    cell: Callable[[Entry], str],
    *,
    printed: Callable[[Row], str] | None = None,
    **how: Any,
) -> Table:
    headings, cells = list(labels), []
    if printed is not None:
        headings = ["printed", *(_heading(found, rows, label) for label in labels)]
    for row in rows:
        (p, d, T), entries = row.setting, beside(found, row)
        place = [str(row.number), f"{p:g}", f"{T:,}", str(d)]
        if printed is not None:
            place.append(f"{printed(row)}{' †' if row.sparse else ''}")
        cells.append(place + [cell(entries[n]) if n in entries else "" for n in labels])
    headings = ["row", "p", "T", "d", *headings]
    return tabulated(headings=headings, rows=cells, keys=4, left={""}, **how)


def _heading(found: Sequence[Entry], rows: Sequence[Row], label: str) -> str:
    tried = sorted({len(beside(found, row)[label].runs) for row in rows})
    return label if tried == [1] else f"{label} (best of {' or '.join(map(str, tried))})"


def _suboptimality(entry: Entry) -> str:
    words = [f"{entry.mean:.3g} ± {entry.se:.2g}"]
    if len(entry.runs) > 1:
        words.append(f"({scale_of(entry.run):g})")
    if entry.reading == "printed" and not isnan(entry.z_printed):
        words.append(f"[{entry.z_printed:+.1f}]")
    return " ".join(words) + _star(entry)


def _epsilon(entry: Entry) -> str:
    certified, unclipped = entry.epsilon, entry.unclipped_epsilon
    return f"{certified:.3g}" + (f" ({unclipped:.3g})" if unclipped != certified else "")


def _mean(entry: Entry) -> str:
    return f"{entry.mean:.3g}{_star(entry)}"


def _star(entry: Entry) -> str:
    return " *" if entry.reached and entry.reading == "certified" else ""


def _risk(entry: Entry) -> str:
    values = entry.run.measures["risk"]
    return f"{values.mean():.3g} ± {standard_error(values):.2g}"


_CERTIFIED = (  # caption of tables of epsilon
    "printed claim: (1, 1/T)-DP; inf: nothing is proved, or no privacy. In brackets: as the "
    "program ran, without our clip to the sensitivity it states"
)
_EVERYBODY = (  # caption of the table of all certified agents
    "SubOpt, one configuration for all rows, each certified at (1, 1/T) but for least squares. "
    "*: at or below the printed OFW"
)
_MEASURES: Sequence[tuple[str, Callable[[Row], str], Callable[[Entry], str], str]] = (
    (
        "SubOpt",
        lambda row: f"{row.suboptimality:.3g} ± {row.se:.2g}",
        _suboptimality,
        "SubOpt, printed ± standard error of 10 runs, ours ± that of {}. In square brackets: ours "
        "minus printed in combined standard errors; (c): the best of the step scales tried, chosen "
        "after looking. *: certified, and at or below the printed value",
    ),
    (
        "Risk",
        lambda row: f"{row.risk:.3g} ± {standard_error_of_runs(row.risk_sd):.2g}",
        _risk,
        "risk, printed on test users ± standard error of 10 runs, ours exact ± that of {}; 0.0025 "
        "is the least",
    ),
    (
        "Time",
        lambda row: f"{row.seconds:,.3g} ± {standard_error_of_runs(row.seconds_sd):.2g}",
        lambda entry: f"{entry.seconds:.2g}",
        "seconds of one run, printed on another machine ± standard error of 10 runs; ours: "
        "processor time, a replica's share of {}; users are drawn in it, too",
    ),
)
"""Heading, functions that format the paper's and our value, and caption; {}: our replicas"""
