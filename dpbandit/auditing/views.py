"""What an adversary sees of an agent's runs on two neighbouring streams::

    released   (white box) every release of every mechanism, and what the differing user's round
               changed in the memory of the agent, which is a function of releases if the agent
               is honest; in a convex problem also the actions
    actions    (black box) everybody else's actions

The adversary knows all other users. From a noisy sum it subtracts what they added, which follows
from their data and actions, and weighs what is left against what the differing user adds in the
first world and what in the second, her two ends.

Joint DP does not release her own action to others, so it is in neither view and the ends are
public numbers, averages over runs. In a convex problem all actions are released, hers with
them, and the ends are those of the run, which her action determines.

A random choice counts as a category.
"""

from collections import deque
from collections.abc import Generator, Iterable, Iterator, Sequence
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from dpbandit.auditing.scores import Columns
from dpbandit.auditing.witness import Left, Part, Witness
from dpbandit.auditing.worlds import Pair, World, answers_of, contexts_of
from dpbandit.base.arrays import Floats
from dpbandit.base.random_streams import Seed, Source, Streams
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.mechanism import Books, Mechanism, PersonalMemory, enrolled, witnessed
from dpbandit.specs.contract import made_agent, reached
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec
from dpbandit.specs.protocols import AgentConfig, Spec

View: TypeAlias = Literal["released", "actions"]
VIEWS: tuple[View, ...] = ("released", "actions")


class SumEnds(NamedTuple):
    """What the differing user adds in either world, on average, (2, n) each."""

    left: list[Floats]
    """to each release of a sum"""
    nodes: list[Floats]
    """to each node of a tree that she is in"""


Ends: TypeAlias = list[SumEnds | None]
"""For each mechanism, in the order of first use, if it releases a sum."""

_END_RUNS = 64
_DECIMALS = 9
"""Of numbers that are weighed: lower bits may show what was added, whatever the noise (Mironov, CCS
2012), which is known and not what is looked for."""


def all_see_actions(spec: Spec) -> bool:
    """Whether all actions are released, the differing user's own with them."""
    return isinstance(spec, ConvexSpec | ExpertsSpec)


def public_ends(config: AgentConfig, spec: Spec, pair: Pair, seed: int) -> Ends:
    """What the differing user adds to each sum, averaged over a few runs of their own.

    None are needed where actions are released: there the ends are those of the run.
    """
    if all_see_actions(spec):
        return []
    witness, seeds = Witness(), [(seed, 0, run) for run in range(_END_RUNS)]
    deque(rounds(config, spec, (pair.first, pair.second), pair.rounds, seeds, witness), maxlen=0)

    def ends(parts: Iterable[Left]) -> list[Floats]:
        return [hers.reshape(2, -1, hers.shape[-1]).mean(axis=1) for _, hers in parts]

    return [
        SumEnds(ends(known.left), ends(known.nodes() if known.is_tree else ()))
        if known.released and known.hers is not None
        else None
        for known in witness.sums
    ]


def columns_of(
    config: AgentConfig,
    spec: Spec,
    pair: Pair,
    seeds: Sequence[Seed],
    view: View,
    ends: Ends,
) -> tuple[Columns, Columns]:
    """One run of either world for each seed, as `view` shows it."""
    witness, parts, before, own = Witness(), list[Part](), dict[str, Floats](), None
    worlds, runs = (pair.first, pair.second), 2 * len(seeds)
    public = all_see_actions(spec)
    for event, user, agent, action in rounds(config, spec, worlds, pair.rounds, seeds, witness):
        hers = user in pair.rounds
        if event == "act" and hers and public:
            own = action
        elif event == "act" and not hers and user > pair.round and (public or view == "actions"):
            parts += _of_action(spec, action, own)
        elif event == "before" and view == "released":
            before = memory(agent, runs, pair.person)
        elif event == "after" and view == "released":
            parts += _changes(before, memory(agent, runs, pair.person))
    if view == "released":
        parts += witness.others
        parts += [Part("ratios", False, r.round(_DECIMALS)) for r in witness.ratios()]
        parts += _weighed(witness, None if public else ends)
    if isinstance(spec, ExpertsSpec) and own is not None:
        parts = [_beside(own, spec.n_actions, part) for part in parts]
    parts = parts or [Part("nothing", False, np.zeros((runs, 1)))]
    values = np.concatenate([part.values for part in parts], axis=1)
    widths = [part.values.shape[1] for part in parts]
    families = np.repeat([part.family for part in parts], widths).tolist()
    kinds = np.repeat([part.categorical for part in parts], widths)
    one, two = (Columns(half, tuple(families), kinds) for half in np.split(values, 2))
    return one, two


def _weighed(witness: Witness, ends: Ends | None) -> list[Part]:
    """What is left of each release of a sum, weighed against its two public ends or the run's.

    As log-ratios have it, up to a factor: <v - middle, two - one> for Gaussian noise (family
    "sums"), and on the nodes of a tree `|v - one| - |v - two|`, the norm being l_1 for Laplace and
    l_2 for K-norm noise.
    """
    found = []
    for place, known in enumerate(witness.sums):
        both = None if ends is None else ends[place]
        if not known.released or known.hers is None or (ends is not None and both is None):
            continue
        left, nodes = list(known.left), list(known.nodes()) if known.is_tree else []
        for (v, hers), end in zip(left, both.left if both else [None] * len(left), strict=True):
            one, two = _both_ends(hers, end)
            ratio = np.vecdot(v - (one + two) / 2, two - one)
            found.append(_weight("sums", ratio / known.sensitivity**2))
        for order in (1, 2):
            ends_of = both.nodes if both else [None] * len(nodes)
            for (v, hers), end in zip(nodes, ends_of, strict=True):
                one, two = _both_ends(hers, end)
                ratio = _norm(v - one, order) - _norm(v - two, order)
                found.append(_weight(f"nodes l_{order}", ratio / known.sensitivity))
    return found


def _both_ends(hers: Floats, end: Floats | None) -> tuple[Floats, Floats]:
    """What she adds in the first world and in the second, public or of the run and its twin."""
    if end is not None:
        return end[:1], end[1:]
    one, two = np.split(hers, 2)
    return np.tile(one, (2, 1)), np.tile(two, (2, 1))


def _weight(family: str, ratio: Floats) -> Part:
    """One number a run."""
    return Part(family, False, ratio.round(_DECIMALS)[:, None])


def _norm(v: Floats, order: int) -> Floats:
    return np.linalg.norm(v, ord=order, axis=-1)


def _of_action(spec: Spec, action: Any, own: Any) -> list[Part]:
    """A choice, a number, or a point; of a point also the part along the differing user's own."""
    seen = np.asarray(action, dtype=float).reshape(len(action), -1).round(_DECIMALS)
    found = [Part("actions", spec.action_space().dtype != np.float64, seen)]
    if own is not None and isinstance(spec, ConvexSpec):
        centre = spec.loss.domain.centre
        found.append(_weight("turned", np.vecdot(seen - centre, own - centre)))
    return found


def _beside(own: Any, experts: int, part: Part) -> Part:
    """A choice together with the expert that she followed, whose loss decides what it shows."""
    if not part.categorical:
        return part
    return part._replace(values=part.values + (experts + 1) * own[:, None])  # -1 is nobody


def memory(agent: Any, replicas: int, person: int | None = None) -> dict[str, Floats]:
    """All arrays (R, ...) that an agent holds outside mechanisms and random streams.

    Without what it keeps of that person for herself.
    """
    return {
        path: item.reshape(replicas, -1).astype(float)
        for path, item in _kept(agent, person)
        if isinstance(item, np.ndarray)
        and item.ndim
        and len(item) == replicas
        and item.dtype.kind in "biuf"
    }


def _kept(agent: Any, person: int | None) -> Iterator[tuple[str, Any]]:
    for path, item in _reached(agent):
        if isinstance(item, PersonalMemory):
            others = item.everybody()
            yield path, others if person is None else np.delete(others, person, axis=1)
        else:
            yield path, item


def _reached(agent: Any) -> Iterator[tuple[str, Any]]:
    """All arrays, mechanisms and memories of people; not what is inside of these."""
    found = (np.ndarray, Mechanism, PersonalMemory)
    for path, item in reached(agent, *found, Source, Streams, Ledger):
        if isinstance(item, found):
            yield path, item


def _changes(before: dict[str, Floats], after: dict[str, Floats]) -> list[Part]:
    """By how much her round changed every number remembered, and whether it did at all."""
    found = []
    for path in sorted(after):
        old = before.get(path)
        change = after[path] - (old if old is not None and old.shape == after[path].shape else 0.0)
        found.append(Part("memory", False, np.nan_to_num(change).round(_DECIMALS)))
        found.append(Part("memory", False, (change != 0).astype(float)))
    return found


def rounds(
    config: AgentConfig,
    spec: Spec,
    worlds: Sequence[World],
    differing: Sequence[int],
    seeds: Sequence[Seed],
    witness: Witness,
) -> Generator[tuple[str, int, Any, Any]]:
    """Play all worlds side by side, each with one replica for each seed, noise in common.

    Events (name, user, agent, action): "before" the differing user acts, "act" of any user,
    "after" the differing one was learned from, each time.
    """
    waiting: deque[tuple[int, Floats, Any]] = deque()
    with witnessed(witness), enrolled() as roll, np.errstate(all="ignore"):
        agent = made_agent(config, spec, Streams([*seeds] * len(worlds)))
        books = Books(type(config).__name__, agent.ledger, roll)
        for _, item in _reached(agent):
            if isinstance(item, Mechanism):
                witness.meet(item, len(seeds) * len(worlds))
        for t in range(spec.horizon):
            if t in differing:
                yield "before", t, agent, None
            context = contexts_of(worlds, t, len(seeds))
            waiting.append((t, context, agent.act(context)))
            yield "act", t, agent, waiting[-1][-1]
            if len(waiting) <= spec.delay:
                continue
            user, context, action = waiting.popleft()
            witness.differs = user in differing
            agent.update(context, action, answers_of(worlds, user, action))
            books.check(users=user + 1)
            if user in differing:
                yield "after", user, agent, None
