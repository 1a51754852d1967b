"""Table I of the paper: what it prints, and what a problem that all rows can play measures.

Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
privacy expiration", WI-IAT 2020. Bounds are orders, here with every constant 1, as printed (a stray
epsilon after log2^1.5 left out); L, D and mu are in the last one only, as printed. The problem is
ridge regression on a simplex, which PQFTL can play and where points can be projected and reached by
a local linear oracle. There mu D < L, so that the printed Gamma noise certifies more than it says.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import log, log2, sqrt
from pathlib import Path
from typing import Any, NamedTuple

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
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, inside, positive, whole
from dpbandit.domains import Simplex
from dpbandit.experiments.grid import Cell, run_grid
from dpbandit.experiments.window.costs import Cost, CostCell, run_costs
from dpbandit.experiments.window.runs import Problem, protected
from dpbandit.losses import Ridge
from dpbandit.privacy.certificate import Certificate
from dpbandit.results.runs import standard_error
from dpbandit.running.certify import certify
from dpbandit.specs.protocols import AgentConfig

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
    """(size, whether as printed) -> its agent; None: nothing printed is known"""


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
    """None: a yardstick"""
    reading: str
    agent: str
    size: Size
    config: AgentConfig
    proof: Certificate
    regret: Floats
    cost: Cost

    @property
    def words(self) -> str:
        """The agent and its noise."""
        noise = getattr(self.config, "noise", "")
        return f"{self.agent}, {noise}" if noise else self.agent

    @property
    def protected(self) -> str:
        """In a few words."""
        return protected(self.proof)

    def record(self) -> dict[str, object]:
        """A row of table-1.csv."""
        row, cost = self.row, self.cost
        return {
            "row": row and row.number,
            "algorithm": row and row.algorithm,
            "printed_guarantee": row and row.guarantee,
            "printed_operation": row and row.operation,
            "printed_bound": row and row.bound,
            "bound_with_constants_1": row and row.value(self.size),
            "reading": self.reading,
            "agent": self.agent,
            "config": repr(self.config),
            **self.size._asdict(),
            "certified_epsilon": self.proof.epsilon,
            "protected": self.protected,
            "notion": self.proof.notion,
            "regret": float(self.regret.mean()),
            "regret_se": standard_error(self.regret),
            "projections_per_round": cost.projections,
            "linear_minimisations_per_round": cost.minimisations,
            "seconds_per_round": float(cost.seconds.mean()),
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
    asked = {
        f"{reading}/{place}": (row, reading, config)
        for reading in readings
        for place, (row, config) in enumerate(_line_up(selection, reading))
        if config is not None
    }
    problem = Problem("ridge", "OnlineConvex", {"loss": "ridge", "domain": "simplex", "dim": DIM})
    cells = {
        f"{size.T}-{size.W}-{size.epsilon:g}/{name}": Cell(
            environment=problem.environment,
            env_kwargs=problem.kwargs,
            config=config,
            horizon=size.T,
            replicas=replicas,
            seed=seed,
        )
        for name, (_, _, config) in asked.items()
    }
    timed = {
        name: CostCell(
            environment=problem.environment,
            env_kwargs={"loss": "ridge", "domain": Simplex(DIM)},
            config=cell.config,
            horizon=min(size.T, _TIMED_ROUNDS),
            replicas=_TIMED_RUNS,
            seed=seed,
        )
        for name, cell in cells.items()
    }
    outcomes = run_grid(cells, out / "regrets", progress=progress)
    costs = run_costs(timed, out / "costs", progress=progress)
    spec = problem.spec(size.T)
    return [
        Entry(
            row,
            reading,
            type(config).__name__,
            size,
            config,
            certify(config, spec, accountants=False),
            outcomes[name].regret[-1],
            costs[name],
        )
        for name, (row, reading, config) in zip(cells, asked.values(), strict=True)
    ]


def _line_up(selection: Selection, reading: str) -> list[tuple[Row | None, AgentConfig | None]]:
    if reading == "public":
        return [(None, config) for config in PUBLIC]
    return [(row, row.config(selection.size, reading == "printed")) for row in selection.rows]
