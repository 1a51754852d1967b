"""What it is worth that privacy expires, and that nothing is projected. See README.md.

Question 4: what a round costs with a projection, and with linear oracles alone.

A round is timed as the agent's own time, acting and learning, one replica at a time; minimisations
of linear functions (`Domain.lowest`) and exact projections (`Domain.project`) are counted. Flows
have no exact projection: there the nearest point is found by Frank-Wolfe, to 1e-6 D^2. A local
oracle of a simplex sorts N numbers and of flows asks for one path, beside the one more that our
certified radius asks for.

Table 1 of a window, row by row.

Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
privacy expiration", WI-IAT 2020. Bounds are orders, here with every constant 1, as printed (a stray
epsilon after log2^1.5 left out); L, D and mu are in the last one only, as printed. The problem is
ridge regression on a simplex, which PQFTL can play and where points can be projected and reached by
a local linear oracle. There mu D < L, so that the printed Gamma noise certifies more than it says.
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
from pydantic import BaseModel, ConfigDict

from dpbandit.agents import FTAL, WDPCOCOL, WDPCOCOP, Centre, OnlineConditionalGradient, Uniform
from dpbandit.base import Floats, Streams, inside, plain, positive, whole, write_csv
from dpbandit.base.tables import Table
from dpbandit.domains import Domain, Simplex
from dpbandit.experiments.figure import computed
from dpbandit.experiments.paper_tables import Asked, Reproduced, rows_and_sizes
from dpbandit.experiments.study import Sizes, mean, runs_of
from dpbandit.losses import Ridge
from dpbandit.privacy import ALL
from dpbandit.results.runs import AgentRun, protected, standard_error
from dpbandit.running.compare import as_run
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.running.settings import parse_agent
from dpbandit.shelf import from_shelf
from dpbandit.specs import Agent, AgentConfig, Spec
from dpbandit.studies import Configuration, setup_of
from dpbandit.studies.configurations import LastRound, certificate_of

_WINDOW = 16
COUNTED = ("projections", "minimisations")


class TimedConfiguration(LastRound):
    """On an OnlineConvex with a `domain`: one replica at a time, its rounds timed and counted."""

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
        steps = max(1, setup.horizon - 1)  # what the last round tells reaches no point
        spent = [{"seconds": agent.seconds, **agent.spent} for agent in timed.agents]
        names = ("seconds", *COUNTED)
        measures = {name: np.array([one.get(name, 0) for one in spent]) / steps for name in names}
        return replace(run, measures=measures)


def timed_on(
    loss: str, domain: Domain, name: str, config: AgentConfig, horizon: int, seed: int = 0
) -> TimedConfiguration:
    """An agent on a loss over a domain."""
    arguments = {"loss": loss, "domain": domain}
    label = f"{loss}, {type(domain).__name__} in {domain.dim}, timed"
    setup = setup_of("OnlineConvex", arguments, horizon=horizon, seed=seed, label=label)
    return TimedConfiguration(setup, name, config)


def with_promise(label: str, runs: Sequence[AgentRun]) -> str:
    """Say in a label what is protected: never window-DP as if it were DP."""
    promises = {protected(run): None for run in runs if protected(run)}
    if not promises:
        return label
    promise = promises.popitem()[0] if len(promises) == 1 else "window-DP, last W"
    return f"{label.partition(', W = ')[0]} ({promise})"


class Timing(NamedTuple):
    """What an agent costs on a domain."""

    kind: str
    size: int
    """N"""
    run: AgentRun

    def row(self) -> dict[str, object]:
        """A row of costs.csv."""
        measures = self.run.measures
        return {
            "domain": self.kind,
            "N": self.size,
            "agent": self.run.name,
            "protected": protected(self.run),
            "seconds_per_round": float(np.median(measures["seconds"])),
            "projections_per_round": float(measures["projections"].mean()),
            "linear_minimisations_per_round": float(measures["minimisations"].mean()),
            "regret": float(self.run.regret[-1].mean()),
        }


def timings(sizes: Sizes, out: Path, *, progress: bool = True) -> list[Timing]:
    """Time all agents on all domains; resumes what it finds in `out`."""
    asked = [
        (kind, domain(kind, size), agent, config)
        for kind, several in (("simplex", sizes["corners"]), ("flows", sizes["layers"]))
        for size in several
        for agent, config in agents(kind, sizes, size).items()
    ]
    timed = [
        timed_on("quadratic", where, agent, config, sizes["timed_rounds"])
        for _, where, agent, config in asked
    ]
    found = runs_of("Rounds", timed, out, replicas=sizes["timed_runs"], progress=progress)
    return [
        Timing(kind, where.dim, found[one.key])
        for (kind, where, *_), one in zip(asked, timed, strict=True)
    ]


def agents(kind: str, sizes: Sizes, size: int) -> dict[str, AgentConfig]:
    """Projections and linear oracles, with and without privacy.

    Flows are x >= 0 and equations, and paths are 0/1: psi = xi = 1 and mu = D, see `local_oracles`.
    """
    geometry = None if kind == "simplex" else domain(kind, size).diameter
    normal: Any = {"epsilon": sizes["epsilon"], "noise": "gaussian", "delta": sizes["delta"]}
    return {
        "COCOP": WDPCOCOP(**normal, window=_WINDOW),
        "COCOL": WDPCOCOL(**normal, window=_WINDOW, geometry=geometry),
        "FTAL": FTAL(),
        "conditional gradient": OnlineConditionalGradient(),
    }


def domain(kind: str, size: int) -> Domain:
    """A simplex with `size` corners, or flows through `size` layers of three nodes."""
    if kind == "simplex":
        return Simplex(size)
    layers = [["s"], *([f"{layer}{node}" for node in "abc"] for layer in range(size)), ["t"]]
    edges = tuple((u, v) for one, two in pairwise(layers) for u in one for v in two)
    flows: Domain = from_shelf("domains", "Flows", "flows")(edges, "s", "t")
    return flows


def counting(domain: Domain) -> tuple[Domain, Counter[str]]:
    """The same domain, and how often it has been asked."""
    calls: Counter[str] = Counter()
    kind: Any = type(domain)

    class Counting(kind):  # type: ignore[misc]
        def project(self, q: Floats) -> Floats:
            calls["projections"] += 1
            return super().project(q)

        def lowest(self, v: Floats) -> Floats:
            calls["minimisations"] += 1
            return super().lowest(v)

    own: Mapping[str, Any] = {f.name: getattr(domain, f.name) for f in fields(kind) if f.init}
    return Counting(**own), calls


@dataclass(frozen=True)
class _Timed:
    """A config whose running agents add up their own seconds and what they ask the domain."""

    config: AgentConfig
    calls: Counter[str]
    """so far, of everybody"""
    agents: "list[_TimedAgent]" = field(default_factory=list)

    def make(self, spec: Spec, streams: Streams) -> "_TimedAgent":
        self.agents.append(_TimedAgent(self.config.make(spec, streams), self.calls))
        return self.agents[-1]


class _TimedAgent:
    """Passes everything on, and looks at the clock."""

    # rounds are passed on as they are
    hands_on = ALL

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


DIM = 5
READINGS = ("printed", "certified", "public")
_TIMED_ROUNDS, _TIMED_RUNS = 512, 3


class Size(NamedTuple):
    """Of the problem and of the promise."""

    T: int = 8192
    W: int = 256
    epsilon: float = 10.0
    delta: float = 1e-6


class Row(BaseModel):
    """A row as printed, of table_1.toml."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    number: int
    algorithm: str
    guarantee: str
    operation: str
    bound: str
    value: str
    """the bound, every constant 1, a formula"""
    agent: str
    given: tuple[str, ...]
    """sizes that the agent is told"""
    printed: bool = True
    """its agent as printed is known"""

    def value_at(self, size: Size) -> float:
        """The bound there."""
        return float(computed(self.value, {**size._asdict(), **_KNOWN}))

    def config(self, size: Size, printed: bool) -> AgentConfig | None:
        """Its agent, as printed or certified; None where it is not known."""
        if printed and not self.printed:
            return None
        known = {"epsilon": size.epsilon, "delta": size.delta, "window": size.W}
        told = [f":{one}={known[one]}" for one in self.given] + [":calibration=paper"] * printed
        return parse_agent(self.agent + "".join(told))


_LOSS = Ridge(Simplex(DIM))
_KNOWN = {"d": DIM, "L": _LOSS.lipschitz, "D": _LOSS.domain.diameter}
_TEXT = (files("dpbandit.experiments.window") / "table_1.toml").read_text()
ROWS = tuple(
    Row(number=number, **row) for number, row in enumerate(tomllib.loads(_TEXT)["rows"], start=1)
)
PUBLIC: tuple[AgentConfig, ...] = (FTAL(), OnlineConditionalGradient(), Centre(), Uniform())
"""Agents without privacy, whose rows stand under the table"""


class Selection(NamedTuple):
    """Rows and sizes that a command measures."""

    rows: tuple[Row, ...] = ROWS
    size: Size = Size()


def selected(text: str) -> Selection:
    """Rows and sizes, "1-3,5" or "4-7,T=1024,W=16,epsilon=1"; no row named, or "all", is all rows.

    >>> found = selected("4-5,T=1024,W=16")
    >>> [row.number for row in found.rows], found.size.W, found.size.epsilon
    ([4, 5], 16, 10.0)
    """
    kinds = {"T": int, "W": int, "epsilon": float, "delta": float}
    hint = "sizes T, W, epsilon and delta (T=1024,W=16)"
    numbers, sizes = rows_and_sizes(text, len(ROWS), kinds, hint)
    size = Size(**sizes)
    whole("T", size.T, 2)
    whole("W", size.W, 1)
    positive("epsilon", size.epsilon)
    inside("delta", size.delta, 0, 1, ends=False)
    return Selection(tuple(row for row in ROWS if row.number in numbers), size)


class Entry(NamedTuple):
    """A line beside the table: an agent, what it promises, does and loses."""

    row: Row | None
    """if None, a baseline"""
    reading: str
    size: Size
    config: AgentConfig
    run: AgentRun
    timed: AgentRun
    """fewer rounds and replicas, see `costs`"""

    @property
    def words(self) -> str:
        """The agent and its noise."""
        noise = getattr(self.config, "noise", "")
        return f"{self.run.name}, {noise}" if noise else self.run.name

    def record(self) -> dict[str, object]:
        """A row of table-1.csv."""
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
    selection: Selection,
    readings: tuple[str, ...],
    out: Path,
    *,
    replicas: int,
    seed: int,
    progress: bool = True,
) -> list[Entry]:
    """The chosen rows under these readings; resumes what it finds in `out`."""
    whole("replicas", replicas, 2)  # there are standard errors
    size = selection.size
    asked = [
        (row, reading, config)
        for reading in readings
        for row, config in _line_up(selection, reading)
        if config is not None
    ]
    problem = {"loss": "ridge", "domain": "simplex", "dim": DIM}
    played, timed = list[Configuration](), list[Configuration]()
    for row, reading, config in asked:
        name, rounds = type(config).__name__, min(size.T, _TIMED_ROUNDS)
        label = f"ridge, row {row.number}, {reading}" if row else "ridge"
        setup = setup_of("OnlineConvex", problem, horizon=size.T, seed=seed, label=label)
        played.append(Configuration(setup, name, config))
        timed.append(timed_on("ridge", Simplex(DIM), f"{label}: {name}", config, rounds, seed))
    name, where = "Table I", out / "costs"
    regrets = runs_of(name, played, out / "regrets", replicas=replicas, progress=progress)
    costs = runs_of(name, timed, where, replicas=_TIMED_RUNS, progress=progress)
    return [
        Entry(row, reading, size, config, regrets[one.key], costs[other.key])
        for (row, reading, config), one, other in zip(asked, played, timed, strict=True)
    ]


def _line_up(selection: Selection, reading: str) -> list[tuple[Row | None, AgentConfig | None]]:
    if reading == "public":
        return [(None, config) for config in PUBLIC]
    return [(row, row.config(selection.size, reading == "printed")) for row in selection.rows]


def shown(entries: Sequence[Entry]) -> Iterator[Table]:
    """The rows as printed, and what was measured for each."""
    size = entries[0].size
    rows = {entry.row.number: entry.row for entry in entries if entry.row}
    if rows:
        printed = Table(title="Table I as printed, and its bounds with every constant 1", keys=2)
        for heading in ("row", "algorithm", "privacy", "operation a round", "regret, order of"):
            printed.add_column(heading)
        printed.add_column("value", justify="right")
        for _, row in sorted(rows.items()):
            words = (row.algorithm, row.guarantee, row.operation, row.bound)
            printed.add_row(str(row.number), *words, f"{row.value_at(size):,.0f}")
        yield printed
    table = Table(
        title=f"Ridge regression on the simplex of R^{DIM}, T = {size.T:,}, W = {size.W:,}, "
        f"epsilon {size.epsilon:g}, delta {size.delta:g}",
        keys=3,
        caption="operations a round: projections + linear minimisations, local: and one call of a "
        "local linear oracle. Certified: epsilon at delta, and what it is of",
    )
    for heading in ("row", "reading", "agent"):
        table.add_column(heading, no_wrap=True)
    for heading in ("regret", "operations", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("certified")
    for entry in entries:
        measures, promise = entry.timed.measures, protected(entry.run)
        operations = " + ".join(f"{measures[name].mean():.0f}" for name in COUNTED)
        local = " + local" if entry.run.name == "WDPCOCOL" else ""
        table.add_row(
            str(entry.row.number) if entry.row else "",
            entry.reading,
            entry.words,
            mean(entry.run.regret[-1]),
            operations + local,
            f"{1000 * np.median(measures['seconds']):.2f}",
            f"{entry.run.certificate.epsilon:.3g} ({promise})" if promise else "",
        )
    yield table


def reproduce(asked: Asked) -> Reproduced:
    """The rows chosen, at the sizes chosen, under these readings; there is no figure."""
    out, selection = asked.out, selected(asked.rows)
    entries = measure(selection, asked.readings, out, replicas=asked.replicas, seed=asked.seed)
    records = [plain(entry.record()) for entry in entries]
    path = out / "table-1.csv"
    write_csv(path, pd.DataFrame(records))
    return Reproduced(list(shown(entries)), records, [path])
