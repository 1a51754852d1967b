"""One agent's run: where it took place, what it found and what it certifiably promises."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from hashlib import sha256
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.fields import with_floats
from dpbandit.base.files import PROGRAM, plain
from dpbandit.base.inputs import InputError
from dpbandit.privacy.certificate import Certificate
from dpbandit.specs.protocols import AgentConfig

_BY_REPLICA = ("replicas", "regret", "reward", "switches", "clipped")
"""Arrays whose last axis is the replicas."""


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The problem of a run, and the seed of its users."""

    environment: str
    env_kwargs: Mapping[str, Any]
    """arguments of the environment, `horizon` among them"""
    horizon: int
    seed: int
    reward_unit: str
    problem: str
    """what to call environment and arguments, without the horizon"""


@dataclass(frozen=True, kw_only=True)
class AgentRun:
    """One agent on one problem, some or all of its replicas. Arrays are (marks, replicas)."""

    setup: Setup
    name: str
    config: Mapping[str, Any]
    """plain values, see `describe`"""
    certificate: Certificate
    marks: Ints
    """logged rounds, (marks,)"""
    replicas: Ints
    """their numbers, (replicas,)"""
    regret: Floats
    """cumulative"""
    reward: Floats
    """cumulative"""
    switches: Ints
    """rounds so far in which the action was another than in the round before"""
    clipped: Floats
    """share of each replica's rounds with a context, datum or reward beyond the bounds of the spec,
    to which agents clip (replicas,); NaN where a file does not say. A diagnostic made of raw data:
    it is not private, and lies outside the certificate"""
    seconds: float
    """wall-clock time of all replicas"""
    provenance: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, Floats] = field(default_factory=dict)
    """what else was measured of each replica, by name, (replicas,)"""

    @property
    def key(self) -> str:
        """A hash of what was run, the same for all replicas; 16 hexadecimal digits."""
        asked = {**vars(self.setup), "agent": self.name, "config": self.config}
        return run_key(asked)

    def only(self, which: npt.NDArray[Any]) -> "AgentRun":
        """Some of the replicas, by a mask or by places."""
        kept: dict[str, Any] = {what: getattr(self, what)[..., which] for what in _BY_REPLICA}
        measures = {name: values[which] for name, values in self.measures.items()}
        return replace(self, **kept, measures=measures)


def run_key(asked: Mapping[str, Any]) -> str:
    """The hash of plain values; the order of their keys does not matter."""
    text = json.dumps(plain(asked), sort_keys=True, default=repr)
    return sha256(text.encode()).hexdigest()[:16]


def merged(pieces: Sequence[AgentRun]) -> AgentRun:
    """One run out of pieces of it, in order of its replicas; the same replica may come twice.

    Raises:
        InputError: the pieces are of different programs, or differ in a replica that they share.
    """
    first, *rest = pieces
    if not rest:
        return first
    programs = {tuple(piece.provenance.get(part) for part in PROGRAM) for piece in pieces}
    if len(programs) > 1:
        raise InputError(
            f"Expected the replicas of {first.name} on {first.setup.problem} to be of one program, "
            f"got {sorted(programs, key=str)} {PROGRAM}."
        )
    tables: dict[str, Any] = {
        what: np.concatenate([getattr(piece, what) for piece in pieces], axis=-1)
        for what in _BY_REPLICA
    }
    _, once, back = np.unique(tables["replicas"], return_index=True, return_inverse=True)
    for what, table in tables.items():
        tables[what] = table[..., once]
        if not np.array_equal(tables[what][..., back], table, equal_nan=True):
            raise InputError(
                f"Expected the same {what} of {first.name} on {first.setup.problem} wherever a "
                "replica is stored twice: choose files of one sweep."
            )
    seconds = sum(piece.seconds for piece in pieces)
    measures = {
        name: np.concatenate([piece.measures[name] for piece in pieces])[once]
        for name in first.measures
    }
    return replace(first, seconds=seconds, **tables, measures=measures)


def describe(config: AgentConfig) -> dict[str, Any]:
    """A config as plain values, its class under "agent"; the settings 1 and 1.0 are the same.

    A config around another one, its `agent`, is "Around(Other)", with the settings of both.
    """
    kind, inner = type(config), getattr(config, "agent", None)
    own = with_floats(kind, asdict(config))
    if inner is None:
        return {"agent": kind.__name__, **own}
    told = describe(inner)
    return {**own, **told, "agent": f"{kind.__name__}({told['agent']})"}


def standard_error(values: Floats) -> float:
    """The standard error of the mean; NaN for a single value."""
    return float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else float("nan")
