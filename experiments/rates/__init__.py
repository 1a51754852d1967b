"""Printed rates beside measured exponents: one study for every table of rates. See README.md.

The rows are in tables.toml; fits of exponents along three axes, of agents of several readings, and
of the bound's own formula are no figure of a study.

A row of a table of rates: what is printed, on what problem it is measured, and with which agent.

An exponent is that of the excess risk, or of the regret, as T, the dimension d or epsilon grows and
the other two stand still. A bound is an order: a smaller exponent than the printed one refutes
nothing, and a larger one says that the sizes are not yet those that the order is about (or that the
bound is false). What the printed formula itself, with every constant 1, does between the same sizes
is fitted alike.
"""

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache, partial
from importlib.resources import files
from math import inf, log
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbandit.base import Floats, whole
from dpbandit.base.tables import Table
from dpbandit.experiments.figure import Strict, computed
from dpbandit.experiments.paper_tables import Asked, Reproduced, reproduced, selected
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.experiments.study import grouped, runs_of, setup_in_words, tabulated
from dpbandit.results.plots import line, panels
from dpbandit.results.runs import AgentRun, Slope, slope, standard_error
from dpbandit.running.settings import parse_agent
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration
from dpbandit.studies.configurations import LastRound

Axis: TypeAlias = Literal["T", "d", "epsilon"]
READINGS = ("certified", "printed", "public")
_KAPPA = 2.0
"""1 / (p - 1) at p = 1.5"""


class Point(NamedTuple):
    """The size of a run, and what it promises."""

    T: int
    d: int
    epsilon: float = 1.0


class Rate(Strict):
    """A row of tables.toml."""

    number: int
    setting: str
    """which losses, in the table's words"""
    source: str
    """whose theorem"""
    bound: str
    """as printed"""
    value: str
    """the bound with every constant 1, a formula in T, d, epsilon and kappa"""
    exponents: dict[Axis, float]
    """of the bound, up to logarithms"""
    problem: str = ""
    """in words, with {d}; "" where no agent here is the row's"""
    agent: str = ""
    printed: str = ""
    """the agent as in its paper, where that has other noise or parameters"""
    per_round: dict[str, float] = {}
    """settings of the agent that grow with T"""
    public: bool = True
    """the agent has a variant without privacy"""
    dim: int = 10
    """d, where it stands still"""
    dims: tuple[int, ...] = (4, 8, 16, 32, 64)
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)

    @property
    def readings(self) -> list[str]:
        """Under which there is an agent."""
        there = {"certified": self.agent, "printed": self.printed, "public": self.public}
        return [reading for reading in READINGS if self.agent and there[reading]]

    def config(self, reading: str, at: Point) -> AgentConfig:
        """The agent of a reading at a point."""
        words = self.printed if reading == "printed" else self.agent
        told = {key: share * at.T for key, share in self.per_round.items()}
        told["epsilon"] = inf if reading == "public" else at.epsilon
        return parse_agent(words + "".join(f":{key}={value}" for key, value in told.items()))

    def value_at(self, at: Point) -> float:
        """The bound there."""
        known = {**at._asdict(), "kappa": min(_KAPPA, 2 * log(at.d))}
        return float(computed(self.value, known))

    @property
    def excess(self) -> bool:
        """It is about the point that is released after T users, not about regret."""
        return self.problem.startswith("StreamingRegression") and self.exponents["T"] < 0

    def points(self, axis: Axis, T: int) -> list[Point]:
        """Along an axis; T is the longest horizon, and a quarter of it is where it stands still."""
        if axis == "T":
            return [Point(T // 2**j, self.dim) for j in (4, 3, 2, 1, 0)]
        if axis == "d":
            return [Point(max(2, T // 4), d) for d in self.dims]
        return [Point(max(2, T // 4), self.dim, epsilon) for epsilon in self.epsilons]

    def configuration(self, reading: str, at: Point, *, seed: int) -> Configuration:
        """The run of a point."""
        label = f"row {self.number}, d = {at.d}"
        setup = setup_in_words(self.problem.format(d=at.d), horizon=at.T, seed=seed, label=label)
        kind = ReleaseConfiguration if self.excess else LastRound
        return kind(setup, reading, self.config(reading, at))

    def measured(self, run: AgentRun) -> Floats:
        """Excess risk or regret, (R,)."""
        return run.measures["excess"] if self.excess else run.regret[-1]


@cache
def tables() -> dict[str, tuple[tuple[Rate, ...], int]]:
    """Read all tables, by name: rows, and the longest horizon unless another is asked for."""
    text = (files("dpbandit.experiments.rates") / "tables.toml").read_text()
    return {
        name: (
            tuple(Rate(number=n, **row) for n, row in enumerate(table["rows"], 1)),
            table["longest"],
        )
        for name, table in tomllib.loads(text).items()
    }


_LEAST = 64
"""The shortest of the longest horizons: a sixteenth of it is played, too."""


class Entry(NamedTuple):
    """A row along an axis, under one reading."""

    rate: Rate
    axis: Axis
    reading: str
    points: Sequence[Point]
    runs: Sequence[AgentRun]

    @property
    def places(self) -> list[float]:
        """Places of the runs on the axis."""
        return [getattr(at, self.axis) for at in self.points]

    @property
    def values(self) -> list[Floats]:
        """Excess risk or regret at each place, (R,)."""
        return [self.rate.measured(run) for run in self.runs]

    @property
    def slope(self) -> Slope:
        """The measured exponent."""
        return slope(self.places, self.values)

    @property
    def of_the_bound(self) -> float:
        """The exponent of the printed bound with every constant 1, at the same places."""
        values = np.array([[self.rate.value_at(at)] * 2 for at in self.points])
        return slope(self.places, list(values)).value

    def record(self) -> dict[str, object]:
        """List the facts of a row of the file."""
        last = self.values[-1]
        return {
            "row": self.rate.number,
            "setting": self.rate.setting,
            "source": self.rate.source,
            "bound": self.rate.bound,
            "axis": self.axis,
            "printed_exponent": self.rate.exponents[self.axis],
            "exponent_of_the_bound_there": self.of_the_bound,
            "reading": self.reading,
            "agent": self.runs[-1].config["agent"],
            "from": self.places[len(self.places) // 2],
            "to": self.places[-1],
            "exponent": self.slope.value,
            "exponent_se": self.slope.se,
            "measure": "excess risk" if self.rate.excess else "regret",
            "mean_at_the_last": float(last.mean()),
            "mean_at_the_last_se": standard_error(last),
            "replicas": len(last),
            "certified_epsilon_at_the_last": self.runs[-1].certificate.epsilon,
        }


def measure(asked: Asked, rates: Sequence[Rate], T: int, *, progress: bool = True) -> list[Entry]:
    """Run rows along their axes up to horizon T under the readings; resumes where it stopped."""
    whole("replicas", asked.replicas, 2)  # there are standard errors
    every = [
        (rate, axis, reading, rate.points(axis, T))
        for rate in rates
        for axis in rate.exponents
        for reading in rate.readings
        if reading in asked.readings
        if axis != "epsilon" or reading != "public"
    ]
    configurations = [
        [rate.configuration(reading, at, seed=asked.seed) for at in points]
        for rate, axis, reading, points in every
    ]
    if not every:
        return []
    played = (one for line in configurations for one in line)
    found = runs_of(asked.name, played, asked.out, replicas=asked.replicas, progress=progress)
    return [
        Entry(*row, [found[one.key] for one in line])
        for row, line in zip(every, configurations, strict=True)
    ]


def shown(rates: Sequence[Rate], entries: Sequence[Entry]) -> Iterator[Table]:
    """Tabulate the rows as printed, and the exponents measured for each."""
    headings = ("row", "losses", "source", "order of the bound")
    cells = []
    for rate in rates:
        source = rate.source if rate.problem else f"{rate.source} (no agent here)"
        cells.append((str(rate.number), rate.setting, source, rate.bound))
    title = "As printed, logarithms in part left out"
    yield tabulated(title, headings, cells, left=headings)
    if not entries:
        return
    caption = (
        f"epsilon 1 and delta 1e-06 where they stand still, {len(entries[0].values[-1])} replicas; "
        "± is the jackknife's standard error, which knows nothing of what is not yet asymptotic. "
        "Bound there: the printed formula with every constant 1, between the same places"
    )
    left = ("row", "along", "reading", "agent")
    exponents = (*left, "printed", "bound there", "measured", "at the last")
    lines = map(_cells, entries)
    yield tabulated("Exponents", exponents, lines, left=left, keys=4, caption=caption)


def _cells(entry: Entry) -> tuple[str, ...]:
    facts, (value, se, *_) = entry.record(), entry.slope
    return (
        str(facts["row"]),
        f"{entry.axis} {facts['from']:,g} to {facts['to']:,g}",
        entry.reading,
        str(facts["agent"]),
        f"{facts['printed_exponent']:.3g}",
        f"{entry.of_the_bound:.2f}",
        "not positive" if np.isnan(value) else f"{value:.2f} ± {se:.2f}",
        f"{facts['mean_at_the_last']:,.3g} ± {facts['mean_at_the_last_se']:.2g}",
    )


def draw(entries: Sequence[Entry], path: Path) -> None:
    """Draw excess risk or regret against T, a panel for each row that has an agent."""
    along = (entry for entry in entries if entry.axis == "T")
    rows = list(grouped(along, lambda entry: entry.rate.number).values())
    titles = [f"{r.number}. {r.setting}\n{r.source}" for r in (some[0].rate for some in rows)]
    columns = min(3, len(rows))
    empty = -len(rows) % columns
    heading = (
        "Measured, and the slope of the printed exponent (grey)\n"
        f"mean of {len(entries[0].runs[0].replicas)} replicas, 95 % intervals, epsilon 1"
    )
    how: dict[str, Any] = {"rows": (len(rows) + empty) // columns, "heading": heading}
    how["size"] = (5 * columns, 0.9 + 4.1 * how["rows"])
    with panels(path, titles + [""] * empty, **how) as grid:
        for axes, some in zip(grid, rows, strict=False):
            rate = some[0].rate
            for entry in some:
                look = READINGS.index(entry.reading)
                line(axes, entry.places, entry.values, entry.reading, look)
            # The printed exponent is a line that ends where the first reading does
            places, exponent = np.array(some[0].places), rate.exponents["T"]
            if (last := some[0].values[-1].mean()) > 0:
                slant, label = last * (places / places[-1]) ** exponent, rf"$T^{{{exponent:.3g}}}$"
                axes.plot(places, slant, color="0.55", lw=1.4, label=label)
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlabel("users T" if rate.excess else "rounds T")
            axes.set_ylabel("excess risk" if rate.excess else "regret")
            axes.tick_params(labelbottom=True)
            axes.legend(frameon=False, fontsize="small")
        for axes in grid[len(rows) :]:
            axes.set_axis_off()


def reproduce(asked: Asked) -> Reproduced:
    """Measure the rows chosen under these readings; with a figure if it is to be drawn.

    Rows and the longest horizon are chosen as in "1-3,5,T=4096".
    """
    rates, T = tables()[asked.name]
    every = {str(rate.number): rate for rate in rates}
    some, sizes = selected(asked.name, asked.rows, every, {"T": int})
    (T,) = sizes.get("T", [T])
    whole("T", T, _LEAST)
    entries = measure(asked, some, T)
    records = [entry.record() for entry in entries]
    drawings = {"rates": partial(draw, entries)} if asked.drawn else {}
    return reproduced(asked, "rates", records, shown(some, entries), drawings)
