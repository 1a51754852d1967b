"""One run: an agent on a problem of the table, how good the point is that it releases."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.base.arrays import Floats
from dpbandit.base.progress import Progress
from dpbandit.experiments.cells import Kept, run_cells, seed_blocks
from dpbandit.experiments.grid import Cell
from dpbandit.experiments.releases import TEST_USERS, Release, release, stream_problem
from dpbandit.experiments.sgd.printed import Problem
from dpbandit.running.certify import certify
from dpbandit.specs.protocols import AgentConfig

ENVIRONMENT = "dpbandit/StreamingRegression-v0"
_AT_ONCE = 50
"""Replicas run together. Changes speed, never values."""


@dataclass(frozen=True, kw_only=True)
class ReleaseCell(Cell):
    """An agent, the point it releases after `horizon` users, and its quality on test users."""

    def identity(self) -> dict[str, Any]:
        """Everything the numbers depend on, as plain values."""
        return {**super().identity(), "test_users": TEST_USERS}


class Found(NamedTuple):
    """What a cell found, of R replicas."""

    suboptimality: Floats
    risk: Floats
    seconds: float
    """of one replica, run beside the others"""
    epsilon: float
    """certified, at delta = 1/T"""


def cell_of(problem: Problem, config: AgentConfig, *, replicas: int, seed: int) -> ReleaseCell:
    """`config` on `problem`."""
    return ReleaseCell(
        environment=ENVIRONMENT,
        env_kwargs={"p": problem.p, "dim": problem.dim},
        config=config,
        horizon=problem.users,
        replicas=replicas,
        seed=seed,
    )


def run_releases(
    cells: Mapping[str, ReleaseCell], folder: Path, *, progress: bool = True
) -> dict[str, Found]:
    """What all cells found, read from or written to `folder`/NAME.parquet."""

    def run(name: str, bar: Progress) -> Kept:
        return _run(name, cells[name], bar)

    kept = run_cells(cells, folder, run, progress=progress)
    return {name: _found(one) for name, one in kept.items()}


def _run(name: str, cell: ReleaseCell, bar: Progress) -> Kept:
    problem = stream_problem(cell.environment, cell.env_kwargs, cell.config, users=cell.horizon)
    epsilon = certify(cell.config, problem.spec, accountants=False).epsilon
    parts: list[Release] = []
    for seeds in seed_blocks(cell.seed, cell.replicas, _AT_ONCE):
        bar.working_on(name, rate=len(seeds))
        parts.append(release(problem, cell.config, seeds, users=cell.horizon, advance=bar.advance))
    columns = {
        "replica": np.arange(cell.replicas),
        "suboptimality": np.concatenate([part.suboptimality for part in parts]),
        "risk": np.concatenate([part.risk for part in parts]),
    }
    seconds = sum(part.seconds for part in parts) / cell.replicas
    return Kept(pd.DataFrame(columns), {"epsilon": str(epsilon), "seconds": seconds})


def _found(kept: Kept) -> Found:
    frame, facts = kept.frame, kept.facts
    return Found(
        frame["suboptimality"].to_numpy(),
        frame["risk"].to_numpy(),
        facts["seconds"],
        float(facts["epsilon"]),
    )
