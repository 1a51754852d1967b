"""Rates printed in papers beside measured exponents, for every table of rates. See README.md.

A row of tables.toml has the printed rate, the problem on which it is measured, and the agent. The
study has its own program, since exponents are fitted along three axes, for agents set up in several
ways (readings) and for the formula of the bound.

A measured exponent is that of excess risk, or of regret, in T, the dimension d or epsilon with the
other two fixed. A bound is an order: a smaller exponent than the printed one refutes nothing; a
larger one shows that the sizes are not yet asymptotic (or that the bound is false). The printed
formula, with every constant 1, is fitted at the same sizes for comparison.
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
from dpbandit.experiments.paper_tables import Reproduced, Request, reproduced, selected
from dpbandit.experiments.releases import ReleaseConfiguration
from dpbandit.experiments.study import grouped, runs_of, setup_in_words, tabulated
from dpbandit.results.plots import line, panels
from dpbandit.results.runs import AgentRun, Slope, slope, standard_error
from dpbandit.running.settings import parse_agent
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, LastRound

Axis: TypeAlias = Literal["T", "d", "epsilon"]
READINGS = ("certified", "printed", "public")  # proved here, as in the paper, without noise
_KAPPA = 2.0
"""Constant kappa = 1 / (p - 1) in bounds for l_p norms, at p = 1.5"""


class Point(NamedTuple):
    """Horizon T, dimension d and epsilon of a run."""

    T: int
    d: int
    epsilon: float = 1.0


class Rate(Strict):
    """A row of tables.toml, with the printed rate and how it is measured."""

    number: int
    setting: str
    """Kind of losses, in the words of the paper"""
    source: str
    """Authors and theorem of the bound"""
    bound: str
    """Bound as printed in the paper"""
    value: str
    """Formula of the bound with every constant 1, in T, d, epsilon and kappa"""
    exponents: dict[Axis, float]
    """Axis -> exponent of the bound, up to logarithms"""
    problem: str = ""
    """Environment as text with {d}, the dimension; "" if this library has no agent for the row"""
    agent: str = ""
    printed: str = ""
    """Agent as printed in the paper, if its noise or parameters differ from `agent`"""
    per_round: dict[str, float] = {}
    """Setting of the agent -> its value divided by the horizon"""
    public: bool = True
    """True if the agent can also be run without privacy"""
    dim: int = 10
    """Dimension d on the axes along which T or epsilon varies"""
    dims: tuple[int, ...] = (4, 8, 16, 32, 64)
    epsilons: tuple[float, ...] = (0.5, 1.0, 2.0, 4.0, 8.0)

    @property
    def readings(self) -> list[str]:
        """Ways to set up agents, of `READINGS`, for which the row has an agent."""
        there = {"certified": self.agent, "printed": self.printed, "public": self.public}
        return [reading for reading in READINGS if self.agent and there[reading]]

    def config(self, reading: str, at: Point) -> AgentConfig:
        """Return the agent set up in one of the `READINGS`, with the epsilon of a point."""
        words = self.printed if reading == "printed" else self.agent
        settings = {key: share * at.T for key, share in self.per_round.items()}
        settings["epsilon"] = inf if reading == "public" else at.epsilon
        return parse_agent(words + "".join(f":{key}={value}" for key, value in settings.items()))

    def value_at(self, at: Point) -> float:
        """Return the printed bound with every constant 1, at a horizon, dimension and epsilon."""
        known = {**at._asdict(), "kappa": min(_KAPPA, 2 * log(at.d))}
        return float(computed(self.value, known))

    @property
    def excess(self) -> bool:
        """True if the rate bounds the excess risk after T users, False if it bounds regret."""
        return self.problem.startswith("StreamingRegression") and self.exponents["T"] < 0

    def points(self, axis: Axis, T: int) -> list[Point]:
        """Return points along an axis; horizons are up to T, but T // 4 along d and epsilon."""
        if axis == "T":
            return [Point(T // 2**j, self.dim) for j in (4, 3, 2, 1, 0)]
        if axis == "d":
            return [Point(max(2, T // 4), d) for d in self.dims]
        return [Point(max(2, T // 4), self.dim, epsilon) for epsilon in self.epsilons]

    def configuration(self, reading: str, at: Point, *, seed: int) -> Configuration:
        """Return the configuration at a point of the agent set up in one of the `READINGS`."""
        label = f"row {self.number}, d = {at.d}"
        setup = setup_in_words(self.problem.format(d=at.d), horizon=at.T, seed=seed, label=label)
        kind = ReleaseConfiguration if self.excess else LastRound
        return kind(setup, reading, self.config(reading, at))

    def measured(self, run: AgentRun) -> Floats:
        """Return the excess risk of a run or its regret, whichever the rate bounds, (R,)."""
        return run.measures["excess"] if self.excess else run.regret[-1]


@cache
def tables() -> dict[str, tuple[tuple[Rate, ...], int]]:
    """Read tables.toml: name of a table -> its rows, and the default of the longest horizon."""
    text = (files("dpbandit.experiments.rates") / "tables.toml").read_text()
    return {
        name: (
            tuple(Rate(number=n, **row) for n, row in enumerate(table["rows"], 1)),
            table["longest"],
        )
        for name, table in tomllib.loads(text).items()
    }


_MIN_LONGEST_HORIZON = 64
"""Smallest choice of the longest horizon, since a sixteenth of it is played, too"""


class Entry(NamedTuple):
    """Runs of a row of tables.toml along one axis, with the agent set up in one of `READINGS`."""

    rate: Rate
    axis: Axis
    reading: str
    points: Sequence[Point]
    runs: Sequence[AgentRun]

    @property
    def places(self) -> list[float]:
        """Values of the axis (T, d or epsilon), one for each run."""
        return [getattr(at, self.axis) for at in self.points]

    @property
    def values(self) -> list[Floats]:
        """Excess risk or regret of each run, (R,) each."""
        return [self.rate.measured(run) for run in self.runs]

    @property
    def slope(self) -> Slope:
        """Exponent fitted to the measured values, with its standard error."""
        return slope(self.places, self.values)

    @property
    def bound_exponent(self) -> float:
        """Exponent fitted to the printed bound, with every constant 1, at the same points."""
        values = np.array([[self.rate.value_at(at)] * 2 for at in self.points])
        return slope(self.places, list(values)).value

    def record(self) -> dict[str, object]:
        """Return a row of the CSV file."""
        last = self.values[-1]
        return {
            "row": self.rate.number,
            "setting": self.rate.setting,
            "source": self.rate.source,
            "bound": self.rate.bound,
            "axis": self.axis,
            "printed_exponent": self.rate.exponents[self.axis],
            "exponent_of_the_bound_there": self.bound_exponent,
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


def measure(
    request: Request, rates: Sequence[Rate], T: int, *, progress: bool = True
) -> list[Entry]:
    """Run rows along their axes up to horizon T, for some of `READINGS`; reuse existing runs."""
    whole("replicas", request.replicas, 2)  # there are standard errors
    every = [
        (rate, axis, reading, rate.points(axis, T))
        for rate in rates
        for axis in rate.exponents
        for reading in rate.readings
        if reading in request.readings
        if axis != "epsilon" or reading != "public"
    ]
    configurations = [
        [rate.configuration(reading, at, seed=request.seed) for at in points]
        for rate, axis, reading, points in every
    ]
    if not every:
        return []
    played = (one for line in configurations for one in line)
    found = runs_of(request.name, played, request.out, replicas=request.replicas, progress=progress)
    return [
        Entry(*row, [found[one.key] for one in line])
        for row, line in zip(every, configurations, strict=True)
    ]


def report(rates: Sequence[Rate], entries: Sequence[Entry]) -> Iterator[Table]:
    """Yield a table of the papers' rates, and one of the measured exponents."""
    headings = ("row", "losses", "source", "order of the bound")
    cells = []
    for rate in rates:
        source = rate.source if rate.problem else f"{rate.source} (no agent here)"
        cells.append((str(rate.number), rate.setting, source, rate.bound))
    title = "As printed, some logarithms omitted"
    yield tabulated(title, headings, cells, left=headings)
    if not entries:
        return
    caption = (
        f"epsilon 1 and delta 1e-06 unless varied, {len(entries[0].values[-1])} replicas; ± is the "
        "jackknife's standard error, which does not cover distance from the asymptotic regime. "
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
        f"{entry.bound_exponent:.2f}",
        "not positive" if np.isnan(value) else f"{value:.2f} ± {se:.2f}",
        f"{facts['mean_at_the_last']:,.3g} ± {facts['mean_at_the_last_se']:.2g}",
    )


def draw(entries: Sequence[Entry], path: Path) -> None:
    """Draw excess risk or regret against T, one panel for each row with an agent."""
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


def reproduce(request: Request) -> Reproduced:
    """Measure the requested rows with agents set up as requested; draw a figure if requested.

    Rows and the longest horizon are chosen as in "1-3,5,T=4096".
    """
    rates, T = tables()[request.name]
    every = {str(rate.number): rate for rate in rates}
    some, sizes = selected(request.name, request.rows, every, {"T": int})
    (T,) = sizes.get("T", [T])
    whole("T", T, _MIN_LONGEST_HORIZON)
    entries = measure(request, some, T)
    records = [entry.record() for entry in entries]
    drawings = {"rates": partial(draw, entries)} if request.drawn else {}
    return reproduced(request, "rates", records, report(some, entries), drawings)
