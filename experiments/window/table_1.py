"""Table 1 of a window, row by row.

Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
privacy expiration", WI-IAT 2020. Bounds are orders, here with every constant 1, as printed (a stray
epsilon after log2^1.5 left out); L, D and mu are in the last one only, as printed. The problem is
ridge regression on a simplex, which PQFTL can play and where points can be projected and reached by
a local linear oracle. There mu D < L, so that the printed Gamma noise certifies more than it says.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import log, log2, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from rich.table import Table

from dpbandit.agents import (
    FTAL,
    PFTAL,
    POCP,
    PQFTL,
    WDPCOCOL,
    WDPCOCOP,
    Centre,
    OnlineConditionalGradient,
    Uniform,
)
from dpbandit.base import InputError, inside, plain, positive, whole, write_csv
from dpbandit.domains import Simplex
from dpbandit.experiments.questions import mean, measured
from dpbandit.experiments.reproduce import Asked, Reproduced
from dpbandit.experiments.window import COUNTED, timed_on
from dpbandit.losses import Ridge
from dpbandit.results.runs import AgentRun, protected, standard_error
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, Study, setup_of

DIM = 5
READINGS = ("printed", "certified", "public")
_TIMED_ROUNDS, _TIMED_RUNS = 512, 3


class Size(NamedTuple):
    """Of the problem and of the promise."""

    T: int = 8192
    W: int = 256
    epsilon: float = 10.0
    delta: float = 1e-6


@dataclass(frozen=True, kw_only=True)
class Row:
    """A row as printed."""

    number: int
    algorithm: str
    guarantee: str
    operation: str
    bound: str
    value: Callable[[Size], float]
    """the bound, every constant 1"""
    config: Callable[[Size, bool], AgentConfig | None]
    """(size, whether as printed) -> its agent, None where nothing printed is known"""


_LOSS = Ridge(Simplex(DIM))
_d, _L, _D = DIM, _LOSS.lipschitz, _LOSS.domain.diameter


def _log_w(size: Size) -> float:
    return log2(size.W) ** 1.5


def _last(size: Size) -> float:
    most = max(sqrt(_d) * size.epsilon, _log_w(size) * log(1 / size.delta))
    return most * sqrt(_d) * (_L + _D) ** 2 * log(size.T) / size.epsilon


def _expiring(kind: Any, gaussian: bool) -> Callable[[Size, bool], AgentConfig]:
    """COCOP or COCOL, under either reading."""

    def config(size: Size, printed: bool) -> AgentConfig:
        how: dict[str, Any] = {"epsilon": size.epsilon, "window": size.W}
        how |= {"noise": "gaussian", "delta": size.delta} if gaussian else {"noise": "gamma"}
        if printed:
            how |= {"calibration": "paper"}
        made: AgentConfig = kind(**how)
        return made

    return config


def _pocp(size: Size, printed: bool) -> AgentConfig | None:
    return None if printed else POCP(epsilon=size.epsilon, delta=size.delta)


def _pqftl(size: Size, printed: bool) -> AgentConfig | None:
    return None if printed else PQFTL(epsilon=size.epsilon, delta=size.delta)


def _pftal(size: Size, printed: bool) -> AgentConfig:
    return PFTAL(epsilon=size.epsilon, calibration="paper" if printed else "certified")


ROWS = (
    Row(
        number=1,
        algorithm="POCG (POCP)",
        guarantee="(ε, δ)-DP",
        operation="two projections",
        bound="sqrt(d sqrt(T) ln²(T/δ))",
        value=lambda s: sqrt(_d * sqrt(s.T) * log(s.T / s.delta) ** 2),
        config=_pocp,
    ),
    Row(
        number=2,
        algorithm="PQFTL",
        guarantee="(ε, δ)-DP",
        operation="linear equation",
        bound="sqrt(d) ln(1/δ) ln^1.5 T / ε",
        value=lambda s: sqrt(_d) * log(1 / s.delta) * log(s.T) ** 1.5 / s.epsilon,
        config=_pqftl,
    ),
    Row(
        number=3,
        algorithm="PFTAL",
        guarantee="ε-DP",
        operation="one projection",
        bound="d ln^2.5 T / ε",
        value=lambda s: _d * log(s.T) ** 2.5 / s.epsilon,
        config=_pftal,
    ),
    Row(
        number=4,
        algorithm="with projection",
        guarantee="window ε-DP",
        operation="one projection",
        bound="d log2^1.5 W ln T / ε",
        value=lambda s: _d * _log_w(s) * log(s.T) / s.epsilon,
        config=_expiring(WDPCOCOP, gaussian=False),
    ),
    Row(
        number=5,
        algorithm="with projection",
        guarantee="window (ε, δ)-DP",
        operation="one projection",
        bound="sqrt(d) log2^1.5 W ln(1/δ) ln T / ε",
        value=lambda s: sqrt(_d) * _log_w(s) * log(1 / s.delta) * log(s.T) / s.epsilon,
        config=_expiring(WDPCOCOP, gaussian=True),
    ),
    Row(
        number=6,
        algorithm="with linear",
        guarantee="window ε-DP",
        operation="one linear oracle",
        bound="d log2^1.5 W ln T / ε",
        value=lambda s: _d * _log_w(s) * log(s.T) / s.epsilon,
        config=_expiring(WDPCOCOL, gaussian=False),
    ),
    Row(
        number=7,
        algorithm="with linear",
        guarantee="window (ε, δ)-DP",
        operation="one linear oracle",
        bound="max(sqrt(d) ε, log2^1.5 W ln(1/δ)) sqrt(d) (L + μD)² ln T / (μ ε)",
        value=_last,
        config=_expiring(WDPCOCOL, gaussian=True),
    ),
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
    numbers: set[int] = set()
    sizes: dict[str, Any] = {}
    for term in (part.strip() for part in text.split(",")):
        key, equals, value = term.partition("=")
        if equals:
            if key not in Size._fields or key in sizes:
                raise _mistake(term)
            sizes[key] = _number(term, value, whole_one=key in "TW")
        elif term != "all":
            first, dash, last = term.partition("-")
            if not (first.isdigit() and (last.isdigit() or not dash)):
                raise _mistake(term)
            numbers |= set(range(int(first), int(last or first) + 1))
    if not numbers <= {row.number for row in ROWS}:
        raise _mistake(text)
    size = Size(**sizes)
    whole("T", size.T, 2)
    whole("W", size.W, 1)
    positive("epsilon", size.epsilon)
    inside("delta", size.delta, 0, 1, ends=False)
    return Selection(tuple(row for row in ROWS if not numbers or row.number in numbers), size)


def _number(term: str, value: str, *, whole_one: bool) -> float:
    try:
        return int(value) if whole_one else float(value)
    except ValueError:
        raise _mistake(term) from None


def _mistake(term: str) -> InputError:
    return InputError(
        f"Expected rows to be numbers from 1 to {len(ROWS)} (1-3,5) and sizes T, W, epsilon and "
        f"delta (T=1024,W=16), got {term!r}."
    )


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
            "bound_with_constants_1": row and row.value(self.size),
            "reading": self.reading,
            "agent": self.run.name,
            "config": repr(self.config),
            **self.size._asdict(),
            "certified_epsilon": self.run.certificate.epsilon,
            "protected": protected(self.run),
            "notion": self.run.certificate.notion,
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
    runs = {}
    for folder, some, several in (("regrets", played, replicas), ("costs", timed, _TIMED_RUNS)):
        study = Study(name="Table I", configurations=tuple(some), replicas=several)
        found = measured(study, out / folder, progress=progress)
        runs[folder] = {run.key: run for run in found.runs}
    return [
        Entry(row, reading, size, config, runs["regrets"][one.key], runs["costs"][other.key])
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
        printed = Table(
            title="Table I as printed, and its bounds with every constant 1", title_justify="left"
        )
        for heading in ("row", "algorithm", "privacy", "operation a round", "regret, order of"):
            printed.add_column(heading)
        printed.add_column("value", justify="right")
        for _, row in sorted(rows.items()):
            words = (row.algorithm, row.guarantee, row.operation, row.bound)
            printed.add_row(str(row.number), *words, f"{row.value(size):,.0f}")
        yield printed
    table = Table(
        title=f"Ridge regression on the simplex of R^{DIM}, T = {size.T:,}, W = {size.W:,}, "
        f"epsilon {size.epsilon:g}, delta {size.delta:g}",
        title_justify="left",
        caption="operations a round: projections + linear minimisations, local: and one call of a "
        "local linear oracle. Certified: epsilon at delta, and what it is of",
        caption_justify="left",
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
