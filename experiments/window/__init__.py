"""Regret and time of agents whose privacy expires, or that avoid projections. See README.md.

Question 4 of README.md is the cost of a round with projections, or with linear oracles alone.

The time of a round is the agent's own (acting and learning), one replica at a time; minimisations
of linear functions (`Domain.lowest`) and exact projections (`Domain.project`) are counted. Flows
have no exact projection: the nearest point is found by Frank-Wolfe, to 1e-6 D^2. A local linear
oracle sorts the coordinates for a simplex; for flows it needs a shortest path, and our certified
radius another one.

Table 1, on windows, is measured row by row. Lou and Cheung, "Projection-free online empirical risk
minimization with privacy-preserving and privacy expiration", WI-IAT 2020. Bounds are orders, here
with every constant 1, as printed (without a stray epsilon after log2^1.5). Only the last has L, D
and mu (Lipschitz constant, diameter, strong convexity). The problem is ridge regression on a
simplex, which PQFTL can play and which has both projections and local oracles. As mu D < L, epsilon
of printed Gamma noise exceeds the claim.
"""

import tomllib
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.agents import FTAL, WDPCOCOL, Centre, OnlineConditionalGradient, Uniform
from dpbandit.base import Floats, Streams, inside, positive, whole
from dpbandit.base.tables import Table
from dpbandit.domains import Domain, Simplex
from dpbandit.experiments.figure import (
    Figure,
    Pane,
    RunLines,
    Strict,
    computed,
    framed,
    legend_below,
    loglog,
)
from dpbandit.experiments.paper_tables import Reproduced, Request, reproduced, selected
from dpbandit.experiments.study import grouped, mean, runs_of, tabulated
from dpbandit.losses import Ridge
from dpbandit.privacy import ALL_FACTS
from dpbandit.results.plots import line
from dpbandit.results.runs import AgentRun, protected, standard_error
from dpbandit.running.compare import as_run
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.running.settings import parse_agent
from dpbandit.shelf import from_shelf
from dpbandit.specs import Agent, AgentConfig, Spec
from dpbandit.studies import Configuration, LastRound, certificate_of, setup_of

COUNTED = ("projections", "minimisations")  # operations of a domain


class TimedConfiguration(LastRound):
    """An agent on OnlineConvex with a `domain`, whose rounds are timed one replica at a time."""

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        # Measures what a round takes: "seconds", "projections" and "minimisations"
        setup = self.setup
        counted, calls = counting(setup.env_kwargs["domain"])
        problem = problem_maker(setup.environment)(**{**setup.env_kwargs, "domain": counted})
        timed, logs = _Timed(self.config, calls), []
        for replica in range(first, last):
            seeds = [(setup.seed, replica)]
            logs.append(play(problem, timed, seeds, marks=self.marks, advance=advance))
        run = as_run(setup, self.name, self.config, certificate_of(self), logs, first=first)
        steps = max(1, setup.horizon - 1)  # no point is computed after the last round
        spent = [{"seconds": agent.seconds, **agent.spent} for agent in timed.agents]
        names = ("seconds", *COUNTED)
        measures = {name: np.array([one.get(name, 0) for one in spent]) / steps for name in names}
        return replace(run, measures=measures)


def timed_on(
    loss: str, domain: Domain, name: str, config: AgentConfig, horizon: int, seed: int = 0
) -> TimedConfiguration:
    """Return the timed configuration of an agent on a loss over a domain."""
    arguments = {"loss": loss, "domain": domain}
    label = f"{loss}, {type(domain).__name__} in {domain.dim}, timed"
    setup = setup_of("OnlineConvex", arguments, horizon=horizon, seed=seed, label=label)
    return TimedConfiguration(setup, name, config)


def with_promise(label: str, runs: Sequence[AgentRun]) -> str:
    """Append what the runs' privacy protects to their label; window-DP is never called DP."""
    promises = {protected(run): None for run in runs if protected(run)}
    if not promises:
        return label
    promise = promises.popitem()[0] if len(promises) == 1 else "window-DP, last W"
    return f"{label.partition(', W = ')[0]} ({promise})"


def timed(one: Configuration, known: Mapping[str, Any]) -> TimedConfiguration:
    """Return the timed configuration of an agent on a domain of the figure of costs.

    On flows WDPCOCOL's `geometry`, a constant of its local linear oracle, is the diameter: they
    are given by x >= 0 and equations, with vertices of 0 and 1 (`dpbandit.domains.projections`).
    """
    where, config = domain(known["kind"], known["size"]), one.config
    if isinstance(config, WDPCOCOL) and known["kind"] == "flows":
        config = replace(config, geometry=where.diameter)
    return timed_on("quadratic", where, one.name, config, known["T"], known["seed"])


def timings(
    panes: Sequence[Pane], found: Mapping[str, RunLines]
) -> Iterator[tuple[str, str, int, AgentRun]]:
    """Yield (kind of domain, label, dimension N, run) of all timed agents, sorted by domain."""
    for pane in panes:
        kind = pane.known["kind"]
        for place, size in enumerate(pane.known["corners" if kind == "simplex" else "layers"]):
            for label, runs in found[pane.name].items():
                yield kind, label, domain(kind, size).dim, runs[place]


def costs(panes: Sequence[Pane], found: Mapping[str, RunLines]) -> pd.DataFrame:
    """Return times and numbers of operations per round, the rows of costs.csv."""
    rows = []
    for kind, _, size, run in timings(panes, found):
        measures = run.measures
        row = {
            "domain": kind,
            "N": size,
            "agent": run.name,
            "protected": protected(run),
            "seconds_per_round": float(np.median(measures["seconds"])),
            "projections_per_round": float(measures["projections"].mean()),
            "linear_minimisations_per_round": float(measures["minimisations"].mean()),
            "regret": float(run.regret[-1].mean()),
        }
        rows.append(row)
    return pd.DataFrame(rows)


def costs_table(panes: Sequence[Pane], found: Mapping[str, RunLines]) -> Table:
    """Tabulate time and number of operations per round, by agent and domain."""
    rows = []
    for kind, label, size, run in timings(panes, found):
        counts = [f"{run.measures[name].mean():.2f}" for name in COUNTED]
        milliseconds = f"{1000 * np.median(run.measures['seconds']):.3f}"
        rows.append([label, kind, f"{size:,}", *counts, milliseconds, mean(run.regret[-1])])
    left = ("agent", "domain", "N")
    headings = (*left, "projections", "linear minimisations", "milliseconds", "regret")
    return tabulated("What a round costs", headings, rows, left=left, keys=3)


def draw_costs(
    path: Path, figure: Figure, panes: Sequence[Pane], found: Mapping[str, RunLines]
) -> None:
    """Draw milliseconds per round against dimension, one panel for each kind of domain."""
    titles = [pane.title for pane in panes]
    with framed(path, titles, figure.heading, figure.size, found) as row:
        for axes, pane in zip(row, panes, strict=True):
            by_agent = grouped(timings([pane], found), lambda one: one[1])
            for look, (label, some) in enumerate(by_agent.items()):
                sizes = [size for *_, size, _ in some]
                values = [1000 * run.measures["seconds"] for *_, run in some]
                line(axes, sizes, values, label if "(" in label else f"{label} (no privacy)", look)
            loglog(axes, sizes)
            axes.set(xlabel="coordinates N of a point", ylabel="milliseconds a round, one replica")
            legend_below(axes, "agent (its privacy)")


def domain(kind: str, size: int) -> Domain:
    """Return a simplex with `size` corners, or flows through `size` layers of three nodes."""
    if kind == "simplex":
        return Simplex(size)
    layers = [["s"], *([f"{layer}{node}" for node in "abc"] for layer in range(size)), ["t"]]
    edges = tuple((u, v) for one, two in pairwise(layers) for u in one for v in two)
    flows: Domain = from_shelf("domains", "Flows", "flows")(edges, "s", "t")
    return flows


def counting(domain: Domain) -> tuple[Domain, Counter[str]]:
    """Return a copy of the domain that counts projections and minimisations, and its counter."""
    calls: Counter[str] = Counter()
    kind: Any = type(domain)

    class Counting(kind):  # type: ignore[misc]
        def project(self, q: Floats) -> Floats:
            calls["projections"] += 1
            return super().project(q)

        def lowest(self, v: Floats) -> Floats:
            calls["minimisations"] += 1
            return super().lowest(v)

    values: Mapping[str, Any] = {f.name: getattr(domain, f.name) for f in fields(kind) if f.init}
    return Counting(**values), calls


@dataclass(frozen=True)
class _Timed:
    """Config whose agents record their seconds and their calls of the domain."""

    config: AgentConfig
    calls: Counter[str]
    """Number of projections and minimisations of the domain so far, by all agents"""
    agents: "list[_TimedAgent]" = field(default_factory=list)

    def make(self, spec: Spec, streams: Streams) -> "_TimedAgent":
        self.agents.append(_TimedAgent(self.config.make(spec, streams), self.calls))
        return self.agents[-1]


class _TimedAgent:
    """An agent that passes every call on and records its time and the domain's calls."""

    # rounds are passed on as they are
    hands_on = ALL_FACTS

    def __init__(self, agent: Agent, calls: Counter[str]) -> None:
        self.ledger, self._agent, self._calls = agent.ledger, agent, calls
        self.seconds, self.spent = 0.0, Counter[str]()

    def act(self, context: Floats) -> Any:
        with self._watch():
            return self._agent.act(context)

    def update(self, context: Floats, action: Any, feedback: Floats) -> None:
        with self._watch():
            self._agent.update(context, action, feedback)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        before, start = self._calls.copy(), perf_counter()
        yield
        self.seconds += perf_counter() - start
        self.spent += self._calls - before


DIM = 5  # dimension of the simplex of Table I
READINGS = ("printed", "certified", "public")  # noise of the paper, proved noise, no noise
_TIMED_ROUNDS, _TIMED_RUNS = 512, 3  # largest horizon, and replicas, of timed runs


class Size(NamedTuple):
    """Horizon T, window W, epsilon and delta."""

    T: int = 8192
    W: int = 256
    epsilon: float = 10.0
    delta: float = 1e-6


class Row(Strict):
    """A row of Table I of Lou and Cheung (2020), as printed there; see table_1.toml."""

    number: int
    algorithm: str
    guarantee: str
    operation: str
    bound: str
    value: str
    """Formula of the bound with every constant 1, of T, W, epsilon, delta, d, L and D (`_KNOWN`)"""
    agent: str
    settings: tuple[str, ...]
    """Names of fields of `Size` that are settings of the agent"""
    printed: bool = True
    """True if the paper defines the agent completely"""

    def value_at(self, size: Size) -> float:
        """Return the printed bound at a size, with every constant 1."""
        return float(computed(self.value, {**size._asdict(), **_KNOWN}))

    def config(self, size: Size, printed: bool) -> AgentConfig | None:
        """Return the agent with the paper's or certified noise; None if the paper defines none."""
        if printed and not self.printed:
            return None
        known = {"epsilon": size.epsilon, "delta": size.delta, "window": size.W}
        words = [f":{one}={known[one]}" for one in self.settings] + [":calibration=paper"] * printed
        return parse_agent(self.agent + "".join(words))


_LOSS = Ridge(Simplex(DIM))  # of Table I
_KNOWN = {"d": DIM, "L": _LOSS.lipschitz, "D": _LOSS.domain.diameter}  # name in formulas -> value
_TEXT = (files("dpbandit.experiments.window") / "table_1.toml").read_text()
ROWS = tuple(  # of Table I
    Row(number=number, **row) for number, row in enumerate(tomllib.loads(_TEXT)["rows"], start=1)
)
PUBLIC: tuple[AgentConfig, ...] = (FTAL(), OnlineConditionalGradient(), Centre(), Uniform())
"""Agents without privacy, listed below the rows of the table"""


class Entry(NamedTuple):
    """A measured line of the table: agent, what its privacy protects, regret and time."""

    row: Row | None
    """Row of the paper's Table I; None for a baseline"""
    reading: str
    size: Size
    config: AgentConfig
    run: AgentRun
    timed: AgentRun
    """Run with fewer rounds and replicas, whose rounds are timed"""

    @property
    def words(self) -> str:
        """Name of the agent and its noise."""
        noise = getattr(self.config, "noise", "")
        return f"{self.run.name}, {noise}" if noise else self.run.name

    def record(self) -> dict[str, object]:
        """Return a row of table-1.csv."""
        row, regret, measures = self.row, self.run.regret[-1], self.timed.measures
        return {
            "row": row and row.number,
            "algorithm": row and row.algorithm,
            "printed_guarantee": row and row.guarantee,
            "printed_operation": row and row.operation,
            "printed_bound": row and row.bound,
            "bound_with_constants_1": row and row.value_at(self.size),
            "reading": self.reading,
            "agent": self.run.name,
            "config": repr(self.config),
            **self.size._asdict(),
            "certified_epsilon": self.run.certificate.epsilon,
            "protected": protected(self.run),
            "notion": str(self.run.certificate.notion),
            "regret": float(regret.mean()),
            "regret_se": standard_error(regret),
            "projections_per_round": float(measures["projections"].mean()),
            "linear_minimisations_per_round": float(measures["minimisations"].mean()),
            "seconds_per_round": float(measures["seconds"].mean()),
        }


def measure(
    rows: Sequence[Row],
    size: Size,
    readings: Sequence[str],
    out: Path,
    *,
    replicas: int,
    seed: int,
    progress: bool = True,
) -> list[Entry]:
    """Run rows of Table I at a size, under some of `READINGS`; reuse existing runs in `out`."""
    whole("replicas", replicas, 2)  # there are standard errors
    played_as: list[tuple[Row | None, str, AgentConfig]] = []
    for reading in readings:
        if reading == "public":
            played_as += [(None, reading, config) for config in PUBLIC]
            continue
        printed = reading == "printed"
        known = ((row, row.config(size, printed)) for row in rows)
        played_as += [(row, reading, config) for row, config in known if config is not None]
    problem = {"loss": "ridge", "domain": "simplex", "dim": DIM}
    played, clocked = list[Configuration](), list[Configuration]()
    for row, reading, config in played_as:
        name, rounds = type(config).__name__, min(size.T, _TIMED_ROUNDS)
        label = f"ridge, row {row.number}, {reading}" if row else "ridge"
        setup = setup_of("OnlineConvex", problem, horizon=size.T, seed=seed, label=label)
        played.append(Configuration(setup, name, config))
        clocked.append(timed_on("ridge", Simplex(DIM), f"{label}: {name}", config, rounds, seed))
    name, where = "Table I", out / "costs"
    regrets = runs_of(name, played, out / "regrets", replicas=replicas, progress=progress)
    seconds = runs_of(name, clocked, where, replicas=_TIMED_RUNS, progress=progress)
    return [
        Entry(row, reading, size, config, regrets[one.key], seconds[other.key])
        for (row, reading, config), one, other in zip(played_as, played, clocked, strict=True)
    ]


def report(entries: Sequence[Entry]) -> Iterator[Table]:
    """Yield a table of the paper's rows, and one of the measured lines."""
    size, rows = entries[0].size, {entry.row.number: entry.row for entry in entries if entry.row}
    if rows:
        left = ("row", "algorithm", "privacy", "operation a round", "regret, order of")
        cells = [
            (str(n), r.algorithm, r.guarantee, r.operation, r.bound, f"{r.value_at(size):,.0f}")
            for n, r in sorted(rows.items())
        ]
        title = "Table I as printed, and its bounds with every constant 1"
        yield tabulated(title, (*left, "value"), cells, left=left, keys=2)
    lines = []
    for entry in entries:
        measures, promise = entry.timed.measures, protected(entry.run)
        operations = " + ".join(f"{measures[name].mean():.0f}" for name in COUNTED)
        local = " + local" if entry.run.name == "WDPCOCOL" else ""
        certified = f"{entry.run.certificate.epsilon:.3g} ({promise})" if promise else ""
        row = str(entry.row.number) if entry.row else ""
        facts = (mean(entry.run.regret[-1]), operations + local)
        milliseconds = f"{1000 * np.median(measures['seconds']):.2f}"
        lines.append((row, entry.reading, entry.words, *facts, milliseconds, certified))
    title = (
        f"Ridge regression on the simplex of R^{DIM}, T = {size.T:,}, W = {size.W:,}, "
        f"epsilon {size.epsilon:g}, delta {size.delta:g}"
    )
    caption = (
        "operations a round: projections + linear minimisations; + local: and one call of a local "
        "linear oracle. Certified: epsilon at delta, and the promise it belongs to"
    )
    headings = ("row", "reading", "agent", "regret", "operations", "ms", "certified")
    words = {*headings[:3], "certified"}
    yield tabulated(title, headings, lines, left=words, keys=3, caption=caption)


def reproduce(request: Request) -> Reproduced:
    """Measure the chosen rows and sizes, such as "4-7,T=1024,W=16,epsilon=1"."""
    kinds = {"T": int, "W": int, "epsilon": float, "delta": float}
    every = {str(row.number): row for row in ROWS}
    rows, sizes = selected(request.name, request.rows, every, kinds)
    size = Size(**{name: value for name, (value,) in sizes.items()})
    whole("T", size.T, 2)
    whole("W", size.W, 1)
    positive("epsilon", size.epsilon)
    inside("delta", size.delta, 0, 1, ends=False)
    how: Any = {"replicas": request.replicas, "seed": request.seed}
    entries = measure(rows, size, request.readings, request.out, **how)
    return reproduced(request, "table-1", [one.record() for one in entries], report(entries))
