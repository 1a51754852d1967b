"""Store what replicas logged as arrays; certificates are computed again when needed."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import Floats, Ints, provenance, write_atomically
from dpbandit.results.runs import BY_REPLICA, AgentRun, describe
from dpbandit.studies import Configuration, certificate_of
from dpbandit.suite.catalogue import version


class Outcome(NamedTuple):
    """Values that some replicas of an agent on a problem logged; `regret` is (marks, replicas)."""

    marks: Ints
    """logged rounds, (marks,)"""
    replicas: Ints
    """indices of the replicas, (replicas,)"""
    regret: Floats
    reward: Floats
    switches: Ints
    clipped: Floats
    """share of rounds whose data exceeded the spec's bounds, (replicas,)"""
    seconds: float
    source: str
    """hash of the program that played the replicas"""

    @classmethod
    def of(cls, run: AgentRun, source: str) -> "Outcome":
        """Return the outcome of a run; `source` is the hash of the program that played it."""
        arrays = {name: getattr(run, name) for name in ("marks", *BY_REPLICA)}
        return cls(**arrays, seconds=run.seconds, source=source)

    @classmethod
    def read(cls, file: Path) -> "Outcome":
        """Read an outcome from a file written by `write`."""
        with np.load(file, allow_pickle=False) as there:
            arrays = {name: there[name] for name in cls._fields}
        return cls(**arrays)._replace(
            seconds=float(arrays["seconds"]), source=str(arrays["source"])
        )

    def write(self, folder: Path) -> None:
        """Write the outcome to FIRST-LAST.npz in `folder`, named by its first and last replica."""
        first, last = int(self.replicas[0]), int(self.replicas[-1])
        write_atomically(folder / f"{first:06d}-{last:06d}.npz", partial(_save, self))

    def first(self, replicas: int) -> "Outcome":
        """Return the outcome of the first `replicas` replicas only."""
        arrays = {name: getattr(self, name)[..., :replicas] for name in BY_REPLICA}
        return self._replace(**arrays)

    def as_run(self, one: Configuration) -> AgentRun:
        """Return the outcome as a run of this configuration, with a newly computed certificate."""
        made = {**provenance(), "source": self.source, "suite": str(version())}
        return AgentRun(
            setup=one.setup,
            name=one.name,
            config=describe(one.config),
            certificate=certificate_of(one),
            provenance=made,
            **{name: getattr(self, name) for name in ("marks", *BY_REPLICA)},
            seconds=self.seconds,
        )


def _save(outcome: Outcome, path: Path) -> None:
    with path.open("wb") as file:
        arrays: dict[str, Any] = {name: np.asarray(x) for name, x in outcome._asdict().items()}
        np.savez(file, **arrays)


def joined(blocks: Sequence[Outcome]) -> Outcome:
    """Join outcomes of one configuration, sorted by replica; duplicate replicas are dropped."""
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(block, name) for block in blocks], axis=-1)
        for name in BY_REPLICA
    }
    _, once = np.unique(arrays["replicas"], return_index=True)
    seconds = sum(block.seconds for block in blocks)
    arrays = {name: values[..., once] for name, values in arrays.items()}
    return blocks[0]._replace(seconds=seconds, **arrays)
