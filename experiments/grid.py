"""A grid of runs that may be interrupted: an agent on an environment, its regret at marks."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.files import plain
from dpbandit.base.inputs import MOST_REPLICAS, MOST_ROUNDS, whole
from dpbandit.base.progress import Progress
from dpbandit.base.provenance import source_digest
from dpbandit.experiments.cells import Kept, run_cells, seed_blocks
from dpbandit.results.marks import log_marks
from dpbandit.running.baselines import play_any
from dpbandit.running.certify import certify
from dpbandit.running.environments import problem_maker
from dpbandit.specs.protocols import AgentConfig
from dpbandit.version import VERSION

_AT_ONCE = 20
"""Replicas run together. Changes speed, never values."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One agent on one environment."""

    environment: str
    config: AgentConfig
    horizon: int
    replicas: int
    seed: int = 0
    env_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        whole("horizon", self.horizon, 1, MOST_ROUNDS)
        whole("replicas", self.replicas, 1, MOST_REPLICAS)
        whole("seed", self.seed, 0, 2**32 - 1)

    @property
    def work(self) -> int:
        """Rounds of all replicas."""
        return self.horizon * self.replicas

    def identity(self) -> dict[str, Any]:
        """Everything the numbers depend on, as plain values."""
        return {
            "environment": self.environment,
            "env_kwargs": plain(self.env_kwargs),
            "config": repr(self.config),
            "horizon": self.horizon,
            "replicas": self.replicas,
            "seed": self.seed,
            "dpbandit": VERSION,
            "source": source_digest(),
        }


class Outcome(NamedTuple):
    """What a cell found."""

    marks: Ints
    """logged rounds, (marks,)"""
    regret: Floats
    """cumulative, (marks, R)"""
    reward: Floats
    """cumulative, (marks, R)"""
    epsilon: float
    """certified at `delta`"""
    delta: float


def run_grid(
    cells: Mapping[str, Cell], folder: Path, *, progress: bool = True
) -> dict[str, Outcome]:
    """The outcomes of all cells, read from or written to `folder`/NAME.parquet.

    A file is a tidy table (replica, round, regret, reward) with the cell's identity in `attrs`.

    Args:
        cells: name -> cell; a name may contain slashes, for folders.
        folder: where the files are.
        progress: show a bar over the cells that are missing, after two seconds.

    Raises:
        InputError: an agent that does not fit its environment, a file that cannot be written.
    """

    def run(name: str, bar: Progress) -> Kept:
        return _packed(_run(name, cells[name], bar))

    found = run_cells(cells, folder, run, progress=progress)
    return {name: _unpacked(kept, cells[name].replicas) for name, kept in found.items()}


def _run(name: str, cell: Cell, bar: Progress) -> Outcome:
    problem = problem_maker(cell.environment)(**{**cell.env_kwargs, "horizon": cell.horizon})
    proof = certify(cell.config, problem.spec, accountants=False)
    marks, logs = log_marks(cell.horizon), []
    for seeds in seed_blocks(cell.seed, cell.replicas, _AT_ONCE):
        bar.working_on(name, rate=len(seeds))
        logs.append(play_any(problem, cell.config, seeds, marks=marks, advance=bar.advance))
    regret, reward = (
        np.concatenate([getattr(log, what) for log in logs], axis=1)
        for what in ("regret", "reward")
    )
    return Outcome(marks, regret, reward, proof.epsilon, proof.claimed_delta)


def _packed(outcome: Outcome) -> Kept:
    marks, R = outcome.regret.shape
    columns = {
        "replica": np.tile(np.arange(R), marks),
        "round": np.repeat(outcome.marks, R),
        "regret": outcome.regret.ravel(),
        "reward": outcome.reward.ravel(),
    }
    proof = {"epsilon": str(outcome.epsilon), "delta": outcome.delta}  # JSON has no infinity
    return Kept(pd.DataFrame(columns), proof)


def _unpacked(kept: Kept, replicas: int) -> Outcome:
    frame, shape = kept.frame, (-1, replicas)
    return Outcome(
        frame["round"].to_numpy().reshape(shape)[:, 0],
        frame["regret"].to_numpy().reshape(shape),
        frame["reward"].to_numpy().reshape(shape),
        float(kept.facts["epsilon"]),
        kept.facts["delta"],
    )
