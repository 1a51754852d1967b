"""Question 4: what a round costs with a projection, and with linear oracles alone.

A round is timed as the agent's own time, acting and learning, one replica at a time; minimisations
of linear functions (`Domain.lowest`) and exact projections (`Domain.project`) are counted. Flows
have no exact projection: there the nearest point is found by Frank-Wolfe, to 1e-6 D^2. A local
oracle of a simplex sorts N numbers and of flows asks for one path, beside the one more that our
certified radius asks for.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from itertools import pairwise
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.agents import FTAL, WDPCOCOL, WDPCOCOP, OnlineConditionalGradient
from dpbandit.base.arrays import Floats
from dpbandit.base.progress import Progress
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Domain, Flows, Simplex
from dpbandit.experiments.cells import Kept, run_cells
from dpbandit.experiments.grid import Cell
from dpbandit.experiments.window.plan import Plan
from dpbandit.experiments.window.runs import protected
from dpbandit.running.certify import certify
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import Agent, AgentConfig, Spec

_WINDOW = 16


@dataclass(frozen=True, kw_only=True)
class CostCell(Cell):
    """One replica at a time, timed."""

    def identity(self) -> dict[str, Any]:
        """Everything the numbers depend on, as plain values, but for the machine."""
        return {**super().identity(), "env_kwargs": repr(dict(self.env_kwargs)), "costs": True}


class Cost(NamedTuple):
    """Per round, of R runs of one replica each."""

    size: int
    """N"""
    protected: str
    """what privacy is of, in a few words; nothing where there is none"""
    seconds: Floats
    """(R,)"""
    projections: float
    minimisations: float
    regret: Floats
    """after all rounds, (R,)"""


class Timing(NamedTuple):
    """What an agent costs on a domain."""

    kind: str
    agent: str
    cost: Cost

    def row(self) -> dict[str, object]:
        """A row of costs.csv."""
        cost = self.cost
        return {
            "domain": self.kind,
            "N": cost.size,
            "agent": self.agent,
            "protected": cost.protected,
            "seconds_per_round": float(np.median(cost.seconds)),
            "projections_per_round": cost.projections,
            "linear_minimisations_per_round": cost.minimisations,
            "regret": float(cost.regret.mean()),
        }


def timings(plan: Plan, out: Path, *, progress: bool = True) -> list[Timing]:
    """All agents on all domains, read from or written to `out`."""
    asked = {
        f"{kind}-{size}/{agent.replace(' ', '-')}": (kind, size, agent)
        for kind, sizes in (("simplex", plan.corners), ("flows", plan.layers))
        for size in sizes
        for agent in agents(kind, plan, size)
    }
    cells = {
        name: CostCell(
            environment="OnlineConvex",
            env_kwargs={"loss": "quadratic", "domain": domain(kind, size)},
            config=agents(kind, plan, size)[agent],
            horizon=plan.timed_rounds,
            replicas=plan.timed_runs,
            seed=plan.seed,
        )
        for name, (kind, size, agent) in asked.items()
    }
    found = run_costs(cells, out, progress=progress)
    return [Timing(kind, agent, found[name]) for name, (kind, _, agent) in asked.items()]


def run_costs(
    cells: Mapping[str, CostCell], out: Path, *, progress: bool = True
) -> dict[str, Cost]:
    """What all cells found, read from or written to `out`/NAME.parquet."""

    def run(name: str, bar: Progress) -> Kept:
        bar.working_on(name, rate=1)
        return _run(cells[name], bar)

    kept = run_cells(cells, out, run, progress=progress)
    return {name: _cost(one) for name, one in kept.items()}


def agents(kind: str, plan: Plan, size: int) -> dict[str, AgentConfig]:
    """Projections and linear oracles, with and without privacy.

    Flows are x >= 0 and equations, and paths are 0/1: psi = xi = 1 and mu = D, see `local_oracles`.
    """
    geometry = None if kind == "simplex" else domain(kind, size).diameter
    private = {"epsilon": plan.epsilon, "noise": "gaussian", "delta": plan.delta}
    oracle: dict[str, Any] = {**private, "window": _WINDOW, "geometry": geometry}
    return {
        "COCOP": WDPCOCOP(**private, window=_WINDOW),  # type: ignore[arg-type]
        "COCOL": WDPCOCOL(**oracle),
        "FTAL": FTAL(),
        "conditional gradient": OnlineConditionalGradient(),
    }


def domain(kind: str, size: int) -> Domain:
    """A simplex with `size` corners, or flows through `size` layers of three nodes."""
    if kind == "simplex":
        return Simplex(size)
    layers = [["s"], *([f"{layer}{node}" for node in "abc"] for layer in range(size)), ["t"]]
    edges = tuple((u, v) for one, two in pairwise(layers) for u in one for v in two)
    return Flows(edges, "s", "t")


def _run(cell: CostCell, bar: Progress) -> Kept:
    counted, calls = counting(cell.env_kwargs["domain"])
    make = problem_maker(cell.environment)
    problem = make(**{**cell.env_kwargs, "domain": counted, "horizon": cell.horizon})
    rows, steps = [], max(1, cell.horizon - 1)  # what the last round tells reaches no point
    for replica in range(cell.replicas):
        timed = Timed(cell.config, calls)
        marks = np.array([cell.horizon])
        log = play(problem, timed, [(cell.seed, replica)], marks=marks, advance=bar.advance)
        agent = timed.agents[-1]
        rows.append(
            {
                "seconds": agent.seconds / steps,
                "projections": agent.spent["projections"] / steps,
                "minimisations": agent.spent["minimisations"] / steps,
                "regret": float(log.regret[-1, 0]),
            }
        )
    proof = certify(cell.config, problem.spec, accountants=False)
    facts = {"size": cell.env_kwargs["domain"].dim, "protected": protected(proof)}
    return Kept(pd.DataFrame(rows), facts)


def _cost(kept: Kept) -> Cost:
    frame, facts = kept.frame, kept.facts
    return Cost(
        facts["size"],
        facts["protected"],
        frame["seconds"].to_numpy(),
        float(frame["projections"].mean()),
        float(frame["minimisations"].mean()),
        frame["regret"].to_numpy(),
    )


def counting(domain: Domain) -> tuple[Domain, Counter[str]]:
    """The same domain, and how often it has been asked."""
    calls: Counter[str] = Counter()
    kind: Any = type(domain)

    class Counting(kind):  # type: ignore[misc]
        def project(self, q: Floats) -> Floats:
            calls["projections"] += 1
            nearest: Floats = super().project(q)
            return nearest

        def lowest(self, v: Floats) -> Floats:
            calls["minimisations"] += 1
            lowest: Floats = super().lowest(v)
            return lowest

    own: Mapping[str, Any] = {f.name: getattr(domain, f.name) for f in fields(kind) if f.init}
    return Counting(**own), calls


@dataclass(frozen=True)
class Timed:
    """A config whose running agents add up their own seconds and what they ask the domain."""

    config: AgentConfig
    calls: Counter[str]
    """so far, of everybody"""
    agents: "list[TimedAgent]" = field(default_factory=list)

    def make(self, spec: Spec, streams: Streams) -> "TimedAgent":
        """The agent of the config, watched."""
        self.agents.append(TimedAgent(self.config.make(spec, streams), self.calls))
        return self.agents[-1]


class TimedAgent:
    """Passes everything on, and looks at the clock."""

    def __init__(self, agent: Agent, calls: Counter[str]) -> None:
        self.ledger, self._agent, self._calls = agent.ledger, agent, calls
        self.seconds, self.spent = 0.0, Counter[str]()

    def act(self, context: Floats) -> Any:
        """The agent's action."""
        with self._watch():
            return self._agent.act(context)

    def update(self, context: Floats, action: Any, told: Floats) -> None:
        """The agent learns."""
        with self._watch():
            self._agent.update(context, action, told)

    @contextmanager
    def _watch(self) -> Iterator[None]:
        before, start = self._calls.copy(), perf_counter()
        yield
        self.seconds += perf_counter() - start
        self.spent += self._calls - before
