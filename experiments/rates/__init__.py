"""Printed rates beside measured exponents: one study for every table of rates. See README.md.

A row of a table of rates: what is printed, on what problem it is measured, and with which agent.

An exponent is that of the excess risk, or of the regret, as T, the dimension d or epsilon grows and
the other two stand still. A bound is an order: a smaller exponent than the printed one refutes
nothing, and a larger one says that the sizes are not yet those that the order is about (or that the
bound is false). What the printed formula itself, with every constant 1, does between the same sizes
is fitted alike.
"""

import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from math import inf, log
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from dpbandit.base import (
    Floats,
    plain,
    whole,
    write_atomically,
    write_csv,
)
from dpbandit.base.tables import Table
from dpbandit.experiments.figure import computed
from dpbandit.experiments.paper_tables import Asked, Reproduced, rows_and_sizes
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.experiments.study import runs_of
from dpbandit.results.plots import line, panels
from dpbandit.results.runs import AgentRun, Slope, slope, standard_error
from dpbandit.running.settings import parse_agent
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, setup_of
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


class Rate(BaseModel):
    """A row of tables.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")
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
    environment: str = ""
    """the problem; "" where no agent here is the row's"""
    size: str = "dim"
    """the argument that d is"""
    arguments: dict[str, Any] = {}
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
        return self.environment == "StreamingRegression" and self.exponents["T"] < 0

    def points(self, axis: Axis, T: int) -> list[Point]:
        """Along an axis; T is the longest horizon, and a quarter of it is where it stands still."""
        if axis == "T":
            return [Point(T // 2**j, self.dim) for j in (4, 3, 2, 1, 0)]
        if axis == "d":
            return [Point(max(2, T // 4), d) for d in self.dims]
        return [Point(max(2, T // 4), self.dim, epsilon) for epsilon in self.epsilons]

    def configuration(self, reading: str, at: Point, *, seed: int) -> Configuration:
        """The run of a point."""
        config, arguments = self.config(reading, at), {**self.arguments, self.size: at.d}
        label = f"row {self.number}, d = {at.d}"
        setup = setup_of(self.environment, arguments, horizon=at.T, seed=seed, label=label)
        kind = ReleaseConfiguration if self.excess else LastRound
        return kind(setup, reading, config)

    def measured(self, run: AgentRun) -> Floats:
        """Excess risk or regret, (R,)."""
        return run.measures["excess"] if self.excess else run.regret[-1]


class TableOfRates(NamedTuple):
    """A table of a paper."""

    rows: tuple[Rate, ...]
    longest: int
    """the longest horizon unless another is asked for"""


@cache
def tables() -> dict[str, TableOfRates]:
    """All tables, by name."""
    text = (files("dpbandit.experiments.rates") / "tables.toml").read_text()
    found = {}
    for name, table in tomllib.loads(text).items():
        rows = (Rate(number=number, **row) for number, row in enumerate(table["rows"], start=1))
        found[name] = TableOfRates(tuple(rows), table["longest"])
    return found


_LEAST = 64
"""The shortest of the longest horizons: a sixteenth of it is played, too."""
_PLACES: Mapping[Axis, Callable[[Point], float]] = {
    "T": lambda at: at.T,
    "d": lambda at: at.d,
    "epsilon": lambda at: at.epsilon,
}


class Selection(NamedTuple):
    """Rows and sizes that a command measures."""

    rates: tuple[Rate, ...]
    T: int
    """the longest horizon"""


class Entry(NamedTuple):
    """A row along an axis, under one reading."""

    rate: Rate
    axis: Axis
    reading: str
    points: Sequence[Point]
    runs: Sequence[AgentRun]

    @property
    def places(self) -> list[float]:
        """Where on the axis the runs stand."""
        return [_PLACES[self.axis](at) for at in self.points]

    @property
    def slope(self) -> Slope:
        """The measured exponent."""
        return slope(self.places, [self.rate.measured(run) for run in self.runs])

    @property
    def of_the_bound(self) -> float:
        """The exponent of the printed bound with every constant 1, at the same places."""
        values = np.array([[self.rate.value_at(at)] * 2 for at in self.points])
        return slope(self.places, list(values)).value

    def record(self) -> dict[str, object]:
        """A row of the file."""
        last = self.rate.measured(self.runs[-1])
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


def selected(rates: tuple[Rate, ...], text: str, T: int) -> Selection:
    """Rows and the longest horizon, "1-3,5,T=4096"; no row named, or "all", is all rows.

    Raises:
        InputError: anything else.
    """
    hint = "the longest horizon (T=4096)"
    numbers, sizes = rows_and_sizes(text, len(rates), {"T": int}, hint)
    T = sizes.get("T", T)
    whole("T", T, _LEAST)
    return Selection(tuple(rate for rate in rates if rate.number in numbers), T)


def measure(
    name: str,
    selection: Selection,
    readings: Sequence[str],
    out: Path,
    *,
    replicas: int,
    seed: int,
    progress: bool = True,
) -> list[Entry]:
    """The chosen rows along their axes under these readings; resumes what it finds in `out`."""
    whole("replicas", replicas, 2)  # there are standard errors
    asked = [
        (rate, axis, reading, rate.points(axis, selection.T))
        for rate in selection.rates
        for axis in rate.exponents
        for reading in rate.readings
        if reading in readings
        if axis != "epsilon" or reading != "public"
    ]
    configurations = [
        [rate.configuration(reading, at, seed=seed) for at in points]
        for rate, axis, reading, points in asked
    ]
    every = [one for line in configurations for one in line]
    if not every:
        return []
    found = runs_of(name, every, out, replicas=replicas, progress=progress)
    return [
        Entry(*row, [found[one.key] for one in line])
        for row, line in zip(asked, configurations, strict=True)
    ]


def shown(selection: Selection, entries: Sequence[Entry]) -> Iterator[Table]:
    """The rows as printed, and the exponents measured for each."""
    printed = Table(title="As printed, logarithms in part left out")
    for heading in ("row", "losses", "source", "order of the bound"):
        printed.add_column(heading)
    for rate in selection.rates:
        source = rate.source if rate.environment else f"{rate.source} (no agent here)"
        printed.add_row(str(rate.number), rate.setting, source, rate.bound)
    yield printed
    if not entries:
        return
    replicas = entries[0].record()["replicas"]
    table = Table(
        title="Exponents",
        keys=4,
        caption=f"epsilon 1 and delta 1e-06 where they stand still, {replicas} replicas; ± is "
        "the jackknife's standard error, which knows nothing of what is not yet asymptotic. Bound "
        "there: the printed formula with every constant 1, between the same places",
    )
    for heading in ("row", "along", "reading", "agent"):
        table.add_column(heading, no_wrap=True)
    for heading in ("printed", "bound there", "measured", "at the last"):
        table.add_column(heading, justify="right", no_wrap=True)
    for entry in entries:
        facts, exponent = entry.record(), entry.slope
        table.add_row(
            str(facts["row"]),
            f"{entry.axis} {facts['from']:,g} to {facts['to']:,g}",
            entry.reading,
            str(facts["agent"]),
            f"{facts['printed_exponent']:.3g}",
            f"{entry.of_the_bound:.2f}",
            "not positive"
            if np.isnan(exponent.value)
            else f"{exponent.value:.2f} ± {exponent.se:.2f}",
            f"{facts['mean_at_the_last']:,.3g} ± {facts['mean_at_the_last_se']:.2g}",
        )
    yield table


def draw(path: Path, entries: Sequence[Entry]) -> Path:
    """Excess risk or regret against T, a panel for each row that has an agent."""
    return write_atomically(path, lambda partial: _draw(partial, entries))


def _draw(path: Path, entries: Sequence[Entry]) -> None:
    along = [entry for entry in entries if entry.axis == "T"]
    numbers = dict.fromkeys(entry.rate.number for entry in along)
    rows = [[entry for entry in along if entry.rate.number == number] for number in numbers]
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
                values = [rate.measured(run) for run in entry.runs]
                line(axes, entry.places, values, entry.reading, look)
            _guide(axes, some[0])
            axes.set_xscale("log", base=2)
            axes.set_yscale("log")
            axes.set_xlabel("users T" if rate.excess else "rounds T")
            axes.set_ylabel("excess risk" if rate.excess else "regret")
            axes.tick_params(labelbottom=True)
            axes.legend(frameon=False, fontsize="small")
        for axes in grid[len(rows) :]:
            axes.set_axis_off()


def _guide(axes: Any, entry: Entry) -> None:
    """A line of the printed exponent that ends where the first reading does."""
    places, exponent = np.array(entry.places), entry.rate.exponents["T"]
    last = entry.rate.measured(entry.runs[-1]).mean()
    if last > 0:
        label = rf"$T^{{{exponent:.3g}}}$"
        axes.plot(
            places, last * (places / places[-1]) ** exponent, color="0.55", lw=1.4, label=label
        )


def reproduce(asked: Asked) -> Reproduced:
    """The rows chosen under these readings; with a figure if it is to be drawn."""
    name, table = asked.name, tables()[asked.name]
    selection = selected(table.rows, asked.rows, table.longest)
    entries = measure(
        name, selection, asked.readings, asked.out, replicas=asked.replicas, seed=asked.seed
    )
    records = [plain(entry.record()) for entry in entries]
    written = [write_csv(asked.out / "rates.csv", pd.DataFrame(records))]
    if asked.drawn:
        written.append(draw(asked.out / "rates.png", entries))
    return Reproduced(list(shown(selection, entries)), records, written)
