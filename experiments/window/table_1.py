"""Table 1 of a window, row by row.

Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
privacy expiration", WI-IAT 2020. Bounds are orders, here with every constant 1, as printed (a stray
epsilon after log2^1.5 left out); L, D and mu are in the last one only, as printed. The problem is
ridge regression on a simplex, which PQFTL can play and where points can be projected and reached by
a local linear oracle. There mu D < L, so that the printed Gamma noise certifies more than it says.
"""

import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict

from dpbandit.agents import FTAL, Centre, OnlineConditionalGradient, Uniform
from dpbandit.base import inside, plain, positive, whole, write_csv
from dpbandit.base.tables import Table
from dpbandit.domains import Simplex
from dpbandit.experiments.figure import computed
from dpbandit.experiments.paper_tables import Asked, Reproduced, rows_and_sizes
from dpbandit.experiments.study import mean, runs_of
from dpbandit.experiments.window import COUNTED, timed_on
from dpbandit.losses import Ridge
from dpbandit.results.runs import AgentRun, protected, standard_error
from dpbandit.running.settings import parse_agent
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, setup_of

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
"""What stands under the table."""


class Selection(NamedTuple):
    """What to measure."""

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
