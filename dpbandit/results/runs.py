"""The run of one agent: its problem, logged rounds, numbers and certificate."""

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property, lru_cache
from hashlib import sha256
from math import inf, isinf, nan, sqrt
from textwrap import fill
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import (
    MOST_ROUNDS,
    PROGRAM,
    AnyArray,
    Floats,
    InputError,
    Ints,
    abbrev,
    plain,
    rounded,
    whole,
    with_floats,
)
from dpbandit.privacy import Certificate
from dpbandit.results.problems import Setup, identity
from dpbandit.specs import AgentConfig

_MAX_MARKS = 500
"""Upper bound on the number of rounds at which a run's regret is logged; rounds that are in both of
`log_marks`' grids count once."""


def log_marks(horizon: int) -> Ints:
    """Return about 500 rounds at which regret is logged, half equally spaced, half in log(t).

    >>> log_marks(6).tolist()
    [1, 2, 3, 4, 5, 6]
    """
    whole("horizon", horizon, 1, MOST_ROUNDS)
    return _log_marks(horizon).copy()


@lru_cache
def _log_marks(horizon: int) -> Ints:
    ratios = np.geomspace(1, horizon, _MAX_MARKS // 2)
    steps = np.linspace(1, horizon, _MAX_MARKS // 2)
    return np.unique(np.concatenate([ratios, steps, [horizon]]).round().astype(np.int64))


EARLY_MARK = 300
"""Round at which shipped results are logged, so that they can be checked by a short run."""


def early_marks(horizon: int) -> Ints:
    """Return the rounds at which shipped results are logged, round 300 and the last one.

    >>> early_marks(5_000).tolist(), early_marks(100).tolist()
    ([300, 5000], [100])
    """
    return np.unique([min(EARLY_MARK, horizon), horizon])


def checked_marks(marks: Any) -> Ints:
    """Return rounds as an array; raise `InputError` unless they are increasing integers >= 1."""
    found = np.asarray(marks)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise InputError(f"Expected marks={abbrev(marks)} to be rounds, such as [100, 200].")
    if found[0] < 1 or (np.diff(found) <= 0).any():
        raise InputError(f"Expected marks={abbrev(marks)} to increase from 1 or more.")
    return found.astype(np.int64)


BY_REPLICA = ("replicas", "regret", "reward", "switches", "clipped")
"""Fields of `AgentRun` that are arrays whose last axis is the replicas."""


@dataclass(frozen=True, kw_only=True)
class AgentRun:
    """Run of an agent on a problem, with some or all of its replicas."""

    setup: Setup
    name: str
    config: Mapping[str, Any]
    """settings of the agent as plain values, see `describe`"""
    certificate: Certificate
    marks: Ints
    """logged rounds, in increasing order"""
    replicas: Ints
    """numbers of the replicas, (replicas,)"""
    regret: Floats
    """cumulative regret at the logged rounds, (rounds, replicas)"""
    reward: Floats
    """cumulative reward at the logged rounds, (rounds, replicas)"""
    switches: Ints
    """number of changes of action up to each logged round, (rounds, replicas)"""
    clipped: Floats
    """share of each replica's rounds with a context, datum or reward beyond the bounds of the spec,
    to which agents clip, (replicas,); NaN if a file has none. It is computed from raw data: it is
    not private, and no certificate covers it"""
    seconds: float
    """wall-clock time of all replicas"""
    provenance: Mapping[str, str] = field(default_factory=dict)
    measures: Mapping[str, Floats] = field(default_factory=dict)
    """further measurements, name -> value of each replica, (replicas,)"""

    @cached_property
    def key(self) -> str:
        """Hash of problem, agent and config, equal for all replicas; 16 hexadecimal digits."""
        return run_key({**self.setup.facts(), "agent": self.name, "config": self.config})

    @cached_property
    def place(self) -> tuple[str, int, int]:
        """Problem (its `identity`), horizon and seed; runs that agree in it had the same users."""
        return identity(self.setup), self.setup.horizon, self.setup.seed

    def only(self, which: AnyArray) -> "AgentRun":
        """Return the run restricted to some of its replicas, selected by a mask or by indices."""
        selected: dict[str, Any] = {what: getattr(self, what)[..., which] for what in BY_REPLICA}
        measures = {name: values[which] for name, values in self.measures.items()}
        return replace(self, **selected, measures=measures)


def run_key(facts: Mapping[str, Any]) -> str:
    """Return a hash of a mapping of plain values, whatever the order of its keys."""
    text = json.dumps(plain(facts), sort_keys=True, default=repr)
    return sha256(text.encode()).hexdigest()[:16]


def merged(pieces: Sequence[AgentRun]) -> AgentRun:
    """Join pieces of one run, sorted by replica; several pieces may contain the same replica.

    Raises:
        InputError: the pieces were made by different programs, or differ in a shared replica.
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
        for what in BY_REPLICA
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
        if all(name in piece.measures for piece in pieces)  # older files have fewer
    }
    return replace(first, seconds=seconds, **tables, measures=measures)


def describe(config: AgentConfig) -> dict[str, Any]:
    """Return a config's class, as "agent", and its settings as plain values; 1 and 1.0 are equal.

    A config that wraps another, its setting `agent`, is "Around(Other)", with settings of both.
    """
    kind, inner = type(config), getattr(config, "agent", None)
    settings = with_floats(kind, asdict(config))
    if inner is None:
        return {"agent": kind.__name__, **settings}
    description = describe(inner)
    return {**settings, **description, "agent": f"{kind.__name__}({description['agent']})"}


def standard_error(values: Floats) -> float:
    """Compute the standard error of the mean; NaN for a single value."""
    return float(values.std(ddof=1)) / sqrt(len(values)) if len(values) > 1 else float("nan")


def label(run: AgentRun) -> str:
    """Return a run's name with its certified epsilon and delta, for legends."""
    proof, name = run.certificate, as_text(run.name)
    if isinf(proof.epsilon):
        return f"{name} ({proof.ledger.brief or 'not private'})"
    if proof.pure == 0:  # epsilon is 0 at delta = 0 too, so no law of an action depends on data
        return f"{name} ({proof.ledger.brief or 'no data used'})"
    brief = f"{proof.ledger.brief}: " if proof.ledger.brief else ""
    delta = rounded(proof.claimed_delta, 6)
    return rf"{name} ({brief}$\epsilon$ = {rounded(proof.epsilon)}, $\delta$ = {delta})"


def without_epsilon(name: str) -> str:
    """Remove the setting `epsilon` from the name of an agent.

    >>> without_epsilon("fade:epsilon=2:growth=0.2")
    'fade:growth=0.2'
    """
    return re.sub(r"[: ]epsilon=[^: ]+", "", name)


def restricted(name: str, runs: Iterable[AgentRun]) -> str:
    """Append to an agent's name, in brackets, limits of its privacy, such as "last 9" (rounds)."""
    briefs = dict.fromkeys(run.certificate.ledger.brief for run in runs)
    words = "; ".join(filter(None, briefs))
    return f"{name} ({words})" if words else name


def protected(run: AgentRun) -> str:
    """Return the kind of a run's privacy, such as "window-DP, last 9" or "DP"; "" if none."""
    proof = run.certificate
    return "" if proof.epsilon in (0.0, inf) else proof.ledger.brief or "DP"


def as_text(name: str) -> str:
    """Escape dollar signs in a name for figures, and break it into lines of at most 60 letters."""
    return fill(name.replace("$", r"\$"), 60)


class Slope(NamedTuple):
    """Exponent `value` of regret as a power of the horizon, with its standard error."""

    value: float
    se: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.se:.4f}"


def slope(horizons: Sequence[float], regrets: Sequence[Floats]) -> Slope:
    """Fit a line to log mean regret against log T, for the larger half of the horizons.

    The slope is NaN if a mean is not positive. Its standard error is a jackknife over replicas, as
    runs with one seed and several horizons have the same users, and so dependent errors.

    Args:
        horizons: increasing horizons T.
        regrets: regret of the replicas for each horizon, (R,), R >= 2.

    >>> several = [T**0.75 * np.array([0.9, 1.0, 1.1]) for T in (1, 2, 4, 8)]
    >>> print(slope([1, 2, 4, 8], several))
    0.7500 ± 0.0000
    """
    half = len(horizons) // 2
    x = np.log(np.array(horizons[half:], dtype=float))
    y = np.array(regrets[half:])  # (horizons, R)
    R = y.shape[1]
    weights = (x - x.mean()) / np.square(x - x.mean()).sum()
    without_one = (y.sum(axis=1, keepdims=True) - y) / (R - 1)
    if min(y.mean(axis=1).min(), without_one.min()) <= 0:
        return Slope(nan, nan)
    value = weights @ np.log(y.mean(axis=1))
    each = weights @ np.log(without_one)
    return Slope(float(value), sqrt((R - 1) * float(each.var())))
