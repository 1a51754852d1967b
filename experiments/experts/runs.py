"""One run of the study: an agent on a problem, its regret, and how often it changed its mind."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import numpy.typing as npt
import pandas as pd

from dpbandit.base.arrays import Floats
from dpbandit.base.progress import Progress
from dpbandit.base.random_streams import Streams
from dpbandit.experiments.cells import Kept, run_cells, seed_blocks
from dpbandit.experiments.grid import Cell
from dpbandit.results.runs import standard_error
from dpbandit.running.certify import certify
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import play
from dpbandit.specs.protocols import Agent, AgentConfig, Spec

_AT_ONCE = 100
"""Replicas run together. Changes speed, never values."""


class Problem(NamedTuple):
    """An environment and its arguments."""

    name: str
    """in files"""
    environment: str
    env_kwargs: Mapping[str, Any]

    @property
    def n_experts(self) -> int:
        """d, 0 where there are none."""
        return int(self.env_kwargs.get("n_actions", 0))


@dataclass(frozen=True, kw_only=True)
class Run:
    """One agent on one problem."""

    problem: Problem
    agent: str
    """its name in tables and files"""
    config: AgentConfig = field(repr=False)
    horizon: int
    epsilon: float = inf
    """what it promises; what is certified is another thing"""
    replicas: int
    seed: int

    @property
    def name(self) -> str:
        """Of its file."""
        words = f"{self.problem.name}/{self.agent}".replace(", ", "-").replace(" ", "-")
        return f"{words.replace('*', '')}/epsilon-{self.epsilon:g}-T-{self.horizon}"

    def cell(self) -> "SwitchCell":
        """What to run."""
        return SwitchCell(
            environment=self.problem.environment,
            env_kwargs=self.problem.env_kwargs,
            config=self.config,
            horizon=self.horizon,
            replicas=self.replicas,
            seed=self.seed,
        )


Lines: TypeAlias = Mapping[str, Sequence[Run]]
"""label -> runs along an axis"""
Panels: TypeAlias = Mapping[str, Lines]
"""title -> its lines"""


@dataclass(frozen=True, kw_only=True)
class SwitchCell(Cell):
    """An agent, its regret after `horizon` rounds and the number of its switches."""

    def identity(self) -> dict[str, Any]:
        """Everything the numbers depend on, as plain values."""
        return {**super().identity(), "counts": "switches"}


class Found(NamedTuple):
    """A run, run."""

    run: Run
    regret: Floats
    """after the last round, (R,)"""
    switches: Floats
    """rounds with another action than the round before, (R,)"""
    epsilon: float
    """certified at `delta`"""
    delta: float

    def row(self) -> dict[str, object]:
        """What a table of all runs says."""
        return {
            "problem": self.run.problem.name,
            "agent": self.run.agent,
            "experts": self.run.problem.n_experts,
            "horizon": self.run.horizon,
            "epsilon": self.run.epsilon,
            "certified_epsilon": self.epsilon,
            "delta": self.delta,
            "replicas": self.run.replicas,
            "regret": float(self.regret.mean()),
            "regret_se": standard_error(self.regret),
            "switches": float(self.switches.mean()),
        }


FoundLines: TypeAlias = Mapping[str, Sequence[Found]]
FoundPanels: TypeAlias = Mapping[str, FoundLines]


def run_all(runs: Mapping[str, Run], folder: Path, *, progress: bool = True) -> dict[str, Found]:
    """What all runs found, by their names, read from or written below `folder`."""
    cells = {name: run.cell() for name, run in runs.items()}
    found = run_cells(
        cells, folder, lambda name, bar: _run(name, cells[name], bar), progress=progress
    )
    return {
        name: Found(
            runs[name],
            kept.frame["regret"].to_numpy(),
            kept.frame["switches"].to_numpy(),
            float(kept.facts["epsilon"]),
            kept.facts["delta"],
        )
        for name, kept in found.items()
    }


def _run(name: str, cell: Cell, bar: Progress) -> Kept:
    problem = problem_maker(cell.environment)(**{**cell.env_kwargs, "horizon": cell.horizon})
    proof = certify(cell.config, problem.spec, accountants=False)
    marks = np.array([cell.horizon])  # the best point in hindsight is looked for there only
    regret, switches = [], []
    for seeds in seed_blocks(cell.seed, cell.replicas, _AT_ONCE):
        bar.working_on(name, rate=len(seeds))
        watched = _Watched(cell.config)
        log = play(problem, watched, seeds, marks=marks, advance=bar.advance)
        regret.append(log.regret[-1])
        switches.append(watched.agents[-1].switches)
    columns = {"regret": np.concatenate(regret), "switches": np.concatenate(switches)}
    proved = {"epsilon": str(proof.epsilon), "delta": proof.claimed_delta}  # JSON has no infinity
    return Kept(pd.DataFrame(columns), proved)


@dataclass(frozen=True)
class _Watched:
    """A config whose running agents are watched."""

    config: AgentConfig
    agents: list["_Watching"] = field(default_factory=list)

    def make(self, spec: Spec, streams: Streams) -> "_Watching":
        self.agents.append(_Watching(self.config.make(spec, streams), len(streams)))
        return self.agents[-1]


class _Watching:
    """An agent, and how often its action has not been that of the round before, (R,)."""

    def __init__(self, agent: Agent, replicas: int) -> None:
        self.ledger, self.update = agent.ledger, agent.update
        self._act: Callable[[Floats], npt.NDArray[Any]] = agent.act
        self._last: npt.NDArray[Any] | None = None
        self.switches = np.zeros(replicas)

    def act(self, context: Floats) -> npt.NDArray[Any]:
        """What the agent does."""
        action = self._act(context)
        if self._last is not None:
            self.switches += np.reshape(action != self._last, (len(action), -1)).any(axis=1)
        self._last = np.array(action)
        return action
