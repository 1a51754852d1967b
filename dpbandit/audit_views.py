"""What an adversary sees of an agent's runs on one stream; never the differing user's own action.

    released   (white box) every release of every mechanism, and what the differing user's round
               changed in the memory of the agent, which is a function of releases if the agent
               is honest
    actions    (black box) everybody else's actions

The adversary knows all other users. From a noisy sum it subtracts what they added, which follows
from their data and actions, and looks at what is left in the direction in which the differing user
moves the sum on average over runs; that direction is a public number, her action in a run is not
used. A random choice counts as a category.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from dpbandit.arrays import Floats
from dpbandit.audit_scores import Columns
from dpbandit.audit_worlds import Pair, World
from dpbandit.privacy.fading import FadingSum
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import Mechanism, witnessed
from dpbandit.privacy.prefix_sums import PrefixSum
from dpbandit.protocols import AgentConfig, BanditSpec, ContextualSpec
from dpbandit.streams import Draws, Seed, Streams

View: TypeAlias = Literal["released", "actions"]
VIEWS: tuple[View, ...] = ("released", "actions")
Directions: TypeAlias = tuple[Floats | None, ...]
"""For each mechanism, in the order of first use, the direction its sum moves in, if it is one."""

_SUMS = (PrefixSum, FadingSum)
_DIRECTION_RUNS = 64


class Witness:
    """Turns the calls of mechanisms into columns, while one user at a time is learned from."""

    def __init__(self, directions: Directions | None) -> None:
        self.differs = False
        """whether the differing user's round is being learned from"""
        self.columns: list[tuple[str, bool, Floats]] = []
        """(family, categorical, (R, p)) of each release"""
        self.hers: list[Floats | float | None] = []
        """for each mechanism what she added to its sum, averaged over runs"""
        self._directions, self._places = directions, dict[int, int]()
        self._known: list[Floats | float] = []  # what all others added

    def __call__(self, mechanism: Mechanism, datum: Any, release: Any) -> None:
        """One call of the door."""
        place = self._places.setdefault(id(mechanism), len(self._places))
        if place == len(self._known):
            self._known.append(0.0)
            self.hers.append(0.0 if isinstance(mechanism, _SUMS) else None)
        if isinstance(mechanism, _SUMS):
            self._of_sum(place, mechanism, datum, release)
        elif release is not None:
            flat = np.asarray(release).reshape(len(release), -1)
            kind = not np.issubdtype(flat.dtype, np.floating)
            self.columns.append(("releases", kind, flat.astype(float)))
            if not kind:
                self.columns.append(("support", False, (flat != 0).astype(float)))

    def _of_sum(self, place: int, mechanism: Any, datum: Any, release: Any) -> None:
        added = mechanism.query(*datum)
        if self.differs:
            self.hers[place] = self.hers[place] + added.mean(axis=0)
        else:
            self._known[place] = self._known[place] + added
        if release is None:
            return
        left = release / mechanism._statistic.units - self._known[place]
        self._known[place] = self._known[place] * getattr(mechanism, "fade", 1.0)
        direction = self._directions[place] if self._directions is not None else None
        if direction is not None:
            flat = left.reshape(len(left), -1)
            self.columns.append(("sums", False, (flat @ direction)[:, None]))


def moving_directions(config: AgentConfig, spec: BanditSpec, pair: Pair, seed: int) -> Directions:
    """In which direction the differing user moves each sum, on average over a few runs."""
    seeds: list[Seed] = [(seed, 0, run) for run in range(_DIRECTION_RUNS)]
    moves = []
    for world in (pair.first, pair.second):
        witness = Witness(None)
        deque(_rounds(config, spec, world, pair.round, seeds, witness), maxlen=0)
        moves.append(witness.hers)
    return tuple(
        None if one is None or two is None else _unit(np.asarray(two) - np.asarray(one))
        for one, two in zip(*moves, strict=True)
    )


def columns_of(
    config: AgentConfig,
    spec: BanditSpec,
    world: World,
    pair: Pair,
    seeds: Sequence[Seed],
    view: View,
    directions: Directions,
) -> Columns:
    """One run of `world` for each seed, as `view` shows it."""
    witness, parts, before = Witness(directions), list[tuple[str, bool, Floats]](), {}
    for event, user, agent, action in _rounds(config, spec, world, pair.round, seeds, witness):
        if view == "actions":
            if event == "act" and user > pair.round:
                finite = isinstance(spec, ContextualSpec)
                parts.append(("actions", finite, np.asarray(action, dtype=float)[:, None]))
        elif event == "before":
            before = memory(agent, len(seeds))
        elif event == "after":
            parts += _changes(before, memory(agent, len(seeds)))
    if view == "released":
        parts += witness.columns
    values = [part for _, _, part in parts] or [np.zeros((len(seeds), 1))]
    widths = [(name, kind, part.shape[1]) for name, kind, part in parts] or [("nothing", False, 1)]
    return Columns(
        np.concatenate(values, axis=1),
        tuple(name for name, _, width in widths for _ in range(width)),
        np.concatenate([np.full(width, kind) for _, kind, width in widths]),
    )


def memory(agent: Any, replicas: int) -> dict[str, Floats]:
    """All arrays (R, ...) that an agent holds outside mechanisms and random streams."""
    found: dict[str, Floats] = {}
    seen: set[int] = set()

    def walk(path: str, item: Any) -> None:
        if isinstance(item, np.ndarray):
            if item.ndim and len(item) == replicas and item.dtype.kind in "biuf":
                found[path] = item.reshape(replicas, -1).astype(float)
            return
        if isinstance(item, Mechanism | Draws | Streams | Ledger | type) or id(item) in seen:
            return
        seen.add(id(item))
        for name, part in _parts(item):
            walk(f"{path}.{name}", part)

    walk("", agent)
    return found


def _parts(item: Any) -> list[tuple[Any, Any]]:
    if isinstance(item, dict):
        return list(item.items())
    if isinstance(item, list | tuple | deque):
        return list(enumerate(item))
    return list(getattr(item, "__dict__", {}).items())


def _changes(before: dict[str, Floats], after: dict[str, Floats]) -> list[tuple[str, bool, Floats]]:
    """By how much her round changed every number remembered, and whether it did at all."""
    found = []
    for path in sorted(after):
        old = before.get(path)
        change = after[path] - (old if old is not None and old.shape == after[path].shape else 0.0)
        found.append(("memory", False, np.nan_to_num(change)))
        found.append(("memory", False, (change != 0).astype(float)))
    return found


def _rounds(
    config: AgentConfig,
    spec: BanditSpec,
    world: World,
    differing: int,
    seeds: Sequence[Seed],
    witness: Witness,
) -> Iterator[tuple[str, int, Any, Any]]:
    """Play `world`, one replica for each seed: (event, user, agent, action).

    Events: "before" the differing user acts, "act" of any other user, "after" she was learned from.
    """
    R, replicas = len(seeds), np.arange(len(seeds))
    waiting: deque[tuple[int, Floats, Any, Floats]] = deque()
    with witnessed(witness), np.errstate(all="ignore"):
        agent = config.make(spec, Streams(seeds))
        for t in range(spec.horizon):
            context = np.broadcast_to(world.context[t], (R, *spec.context_shape)).copy()
            if t == differing:
                yield "before", t, agent, None
            action = agent.act(context)
            if t != differing:
                yield "act", t, agent, action
            arm = action if isinstance(spec, ContextualSpec) else np.zeros(R, dtype=int)
            answers = np.broadcast_to(world.reward[t], (R, world.reward.shape[1]))
            waiting.append((t, context, action, answers[replicas, arm]))
            if len(waiting) <= spec.delay:
                continue
            user, context, action, reward = waiting.popleft()
            witness.differs = user == differing
            agent.update(context, action, reward)
            if user == differing:
                yield "after", user, agent, None


def _unit(vector: Floats) -> Floats | None:
    length = float(np.linalg.norm(vector))
    return vector.reshape(-1) / length if length > 0 else None
