"""A grid of runs that may be interrupted: every cell is a file of its own, written when it is done.

Started again, a grid reads the cells it finds and runs the others. A file knows what it is a run
of; if that is not what is asked for now (another config, seed, size or source), it is run anew.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.agents import Uniform
from dpbandit.arrays import Floats, Ints
from dpbandit.evaluate import Log, certify, log_marks, play, problem_maker
from dpbandit.inputs import whole
from dpbandit.progress import Progress
from dpbandit.protocols import AgentConfig, Hindsight
from dpbandit.results import plain, write_atomically
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
        whole("horizon", self.horizon, 1)
        whole("replicas", self.replicas, 1)
        whole("seed", self.seed, 0, 2**32 - 1)

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


@cache
def source_digest() -> str:
    """A hash of the code: numbers of another program are not this one's."""
    digest = sha256()
    for package in ("dpbandit", "dpbandit.agents", "dpbandit.envs"):
        folder = Path(import_module(package).__file__ or "").parent
        for file in sorted(folder.rglob("*.py")):
            digest.update(file.read_bytes())
    return digest.hexdigest()[:16]


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
        BadInput: an agent that does not fit its environment, a file that cannot be written.
    """
    files = {name: folder / f"{name}.parquet" for name in cells}
    read = {name: _read(files[name], cell) for name, cell in cells.items()}
    outcomes = {name: found for name, found in read.items() if found is not None}
    missing = [name for name in cells if name not in outcomes]
    rounds = sum(cells[name].horizon * cells[name].replicas for name in missing)
    with Progress(rounds, shown=progress) as bar:
        for name in missing:
            outcomes[name] = _run(name, cells[name], bar)
            _write(files[name], cells[name], outcomes[name])
    return {name: outcomes[name] for name in cells}


def _run(name: str, cell: Cell, bar: Progress) -> Outcome:
    problem = problem_maker(cell.environment)(**{**cell.env_kwargs, "horizon": cell.horizon})
    proof = certify(cell.config, problem.spec, accountants=False)
    marks, logs = log_marks(cell.horizon), []
    for seeds in _chunks(cell):
        bar.working_on(name, rate=len(seeds))
        logs.append(_play(problem, cell.config, seeds, marks, bar))
    regret, reward = (
        np.concatenate([getattr(log, what) for log in logs], axis=1)
        for what in ("regret", "reward")
    )
    return Outcome(marks, regret, reward, proof.epsilon, proof.claimed_delta)


def _play(
    problem: Any, config: AgentConfig, seeds: Sequence[tuple[int, int]], marks: Ints, bar: Progress
) -> Log:
    if isinstance(config, Hindsight):  # somebody has to meet the users first
        answer = play(problem, Uniform(), seeds, marks=marks).best_fixed
        config = config.with_answer(answer)
    return play(problem, config, seeds, marks=marks, advance=bar.advance)


def _chunks(cell: Cell) -> Iterator[list[tuple[int, int]]]:
    """The seeds of the replicas, as in `compare`: replica r depends on (seed, r) only."""
    for first in range(0, cell.replicas, _AT_ONCE):
        last = min(cell.replicas, first + _AT_ONCE)
        yield [(cell.seed, r) for r in range(first, last)]


def _write(path: Path, cell: Cell, outcome: Outcome) -> None:
    marks, R = outcome.regret.shape
    columns = {
        "replica": np.tile(np.arange(R), marks),
        "round": np.repeat(outcome.marks, R),
        "regret": outcome.regret.ravel(),
        "reward": outcome.reward.ravel(),
    }
    frame = pd.DataFrame(columns)
    proof = {"epsilon": str(outcome.epsilon), "delta": outcome.delta}  # JSON has no infinity
    frame.attrs = {"cell": cell.identity(), "certificate": proof}
    write_atomically(path, lambda partial: frame.to_parquet(partial, index=False))


def _read(path: Path, cell: Cell) -> Outcome | None:
    """What `path` holds, if it is a whole file and a run of just this cell."""
    try:
        frame = pd.read_parquet(path)
    except (OSError, ValueError):  # not there, or not parquet
        return None
    if frame.attrs.get("cell") != cell.identity():
        return None
    proof, shape = frame.attrs["certificate"], (-1, cell.replicas)
    return Outcome(
        frame["round"].to_numpy().reshape(shape)[:, 0],
        frame["regret"].to_numpy().reshape(shape),
        frame["reward"].to_numpy().reshape(shape),
        float(proof["epsilon"]),
        proof["delta"],
    )
