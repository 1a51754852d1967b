"""What conformance tests share: discovered agents, a world that can be swapped and replayed."""

import dataclasses
import io
import pickle
import types
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import numpy as np

from dpbandit.agents import (
    AGENTS,
    DPHDB,
    DPUCB,
    GLMUCB,
    STOCHASTIC,
    Greedy,
    LinTS,
    LinUCB,
    LogisticTS,
    Priced,
)
from dpbandit.base import random_streams
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Ball, LpBall, Simplex
from dpbandit.losses import Linear, LinearRegression, Quadratic
from dpbandit.privacy.books import Books
from dpbandit.privacy.mechanism import Mechanism, enrolled
from dpbandit.privacy.sums.batch_sums import BatchSum
from dpbandit.privacy.sums.fading import FadingSum
from dpbandit.privacy.sums.one_point import LocalValues
from dpbandit.privacy.sums.prefix_sums import PrefixSum
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import ContextualSpec, PriceListSpec, PriceSpec, Spec
from dpbandit.specs.streams import StreamSpec

DISJOINT = ContextualSpec(n_actions=3, dim=2, horizon=24, reward_low=-0.5, reward_high=1.0)
SHARED = ContextualSpec(n_actions=3, dim=2, horizon=24, shared=True)
PRICE = PriceSpec(dim=2, horizon=24, low=1.0, high=2.0)
PRICES = PriceListSpec(
    n_actions=4, dim=3, horizon=24, prices=(1.0, 1.5, 2.0, 3.0), unit_cost=0.5, reward_high=2.5
)
DELAYED = ContextualSpec(
    n_actions=2,
    dim=1,
    horizon=24,
    context_order=np.inf,
    context_bound=2.0,
    link="probit",
    delay=3,
)
VALUES = ConvexSpec(loss=Linear(Ball(2)), horizon=24)
FLAT = ConvexSpec(loss=Linear(Simplex(3)), horizon=24)
DATA = ConvexSpec(loss=Quadratic(Ball(2)), horizon=24, feedback="datum")
FLAT_DATA = ConvexSpec(loss=Linear(Simplex(3)), horizon=24, feedback="datum")
LATE_DATA = ConvexSpec(loss=Linear(Ball(2)), horizon=24, feedback="datum", delay=3)
STREAM = StreamSpec(loss=LinearRegression(LpBall(3, p=1.5, radius=2.0)), horizon=24)
STREAM_L1 = StreamSpec(loss=LinearRegression(LpBall(2, p=1)), horizon=24)
EXPERTS = ExpertsSpec(n_actions=3, horizon=24)
LATE_EXPERTS = ExpertsSpec(n_actions=2, horizon=24, delay=3)
SPECS = {
    "disjoint": DISJOINT,
    "shared": SHARED,
    "price": PRICE,
    "prices": PRICES,
    "delayed": DELAYED,
    "values": VALUES,
    "flat": FLAT,
    "data": DATA,
    "flat-data": FLAT_DATA,
    "late-data": LATE_DATA,
    "stream": STREAM,
    "stream-l1": STREAM_L1,
    "experts": EXPERTS,
    "late-experts": LATE_EXPERTS,
}
ONCE = (PRICES, DELAYED, FLAT, FLAT_DATA, LATE_DATA, LATE_EXPERTS)
"""For an agent's defaults only."""

_RESTS: list[dict[str, Any]] = [
    {},
    {"refresh_every": 3},
    {"prefix_sums": "tree"},
    {"selection": "gumbel"},
    {"selection": "laplace", "warm_up": 2},
    {"model": "regression"},
    {"anytime": True},
]
"""Other settings that a word may need beside it."""


def variants(config: Any) -> list[Any]:
    """The config with no word or one in a field that allows it, beside every rest it takes."""
    fields = {field.name for field in dataclasses.fields(config)}
    words = [{name: w} for name, hint in get_type_hints(config).items() for w in _words(hint)]
    found = {config(): None}
    for word in [{}, *words]:
        for rest in _RESTS:
            if rest.keys() <= fields - word.keys():
                with suppress(InputError):
                    found[config(**word, **rest)] = None
    return list(found)


def is_default(config: Any) -> bool:
    """Whether nothing was told to it that it needs not be told."""
    return not isinstance(config, Priced) and bool(config == type(config)())


def sellers() -> list[Priced]:
    """Agents that price through a model of demand, with every rest they take."""
    found = []
    for kind in (DPHDB, DPUCB, GLMUCB, Greedy, LinTS, LinUCB, LogisticTS):
        fields = {field.name for field in dataclasses.fields(kind)}
        for rest in _RESTS:
            if rest.keys() <= fields:
                with suppress(InputError):
                    found.append(Priced(kind(**rest)))
    return found


def _words(hint: Any) -> list[Any]:
    if get_origin(hint) is Literal:
        return list(get_args(hint))
    if get_origin(hint) in (Union, types.UnionType):
        return [word for part in get_args(hint) for word in _words(part)]
    return []


@cache
def discovered() -> list[tuple[Any, Spec]]:
    """Every agent's variants, on every kind of spec they fit; of those that make the same running
    agent, byte for byte, the first.

    A list of prices is one more set of arms to most; it is for defaults and for models of demand.
    Late rewards of two arms with one feature, and values on a simplex, are for defaults, too.
    Streams of users are for the agents that were made for them.
    """
    found: dict[Any, tuple[Any, Spec]] = {}
    for config in [*(v for agent in AGENTS.values() for v in variants(agent)), *sellers()]:
        for name, spec in SPECS.items():
            demand = isinstance(config, Priced) or getattr(config, "model", None) == "demand"
            once = spec in ONCE and not demand
            if isinstance(spec, StreamSpec):
                once = type(config) not in STOCHASTIC.values()
            if once and not is_default(config):
                continue
            with suppress(InputError):
                made = pickle.dumps(config.make(spec, Streams([0])))
                found.setdefault((type(config), name, made), (config, spec))
    return list(found.values())


def label(pair: tuple[Any, Spec]) -> str:
    config, spec = pair
    if isinstance(config, Priced):
        return f"Priced {label((config.agent, spec))}"
    name = next(name for name, known in SPECS.items() if known is spec)
    changed = [
        f"{f.name}={getattr(config, f.name)}"
        for f in dataclasses.fields(config)
        if getattr(config, f.name) != f.default
    ]
    return " ".join([type(config).__name__, *changed, name])


SUMS = (PrefixSum, FadingSum, BatchSum, LocalValues)
"""Mechanisms that release a sum with noise added."""


class World(NamedTuple):
    """Users for T rounds and R replicas: contexts (T, R, ...) and what they answer."""

    context: Any
    reward: Any
    """(T, R, K), or with full information the data (T, R, *datum_shape)"""
    full: bool = False
    """full information: a context is the datum of the round before"""

    def swapped(self, t: int, other: "World") -> "World":
        """The same users, but for the one of round t, who comes from `other`."""
        context, reward = self.context.copy(), self.reward.copy()
        reward[t] = other.reward[t]
        context[t + self.full] = other.reward[t] if self.full else other.context[t]
        return World(context, reward, self.full)

    def answer(self, t: int, action: Any) -> Any:
        """What an agent is told that played `action` (R, ...) for the users of round t."""
        if self.full:
            return self.reward[t]
        everyone = np.arange(len(action))
        return self.reward[t][everyone, action if action.dtype == np.int64 else 0]

    def of(self, first: int, last: int) -> "World":
        """Some of the replicas."""
        return World(self.context[:, first:last], self.reward[:, first:last], self.full)

    def until(self, rounds: int) -> "World":
        """The first rounds."""
        return World(self.context[:rounds], self.reward[:rounds], self.full)

    def tame(self) -> "World":
        """The same users as numbers within [-1, 1], rewards within [0, 1]."""
        low = -1 if self.full else 0
        return World(
            np.nan_to_num(self.context).clip(-1, 1),
            np.nan_to_num(self.reward).clip(low, 1),
            self.full,
        )


@cache
def extreme_users(spec: Spec, replicas: int, seed: int) -> World:
    """Honest users, at the bounds, tiny, far beyond them, and users that are no numbers."""
    rng = np.random.default_rng(seed)
    T, R, K = spec.horizon, replicas, getattr(spec, "n_actions", 3)
    context = rng.standard_normal((T, R, *spec.context_shape))
    size = rng.choice([1e-200, 0.3, 1.0, 3.0, 1e9], size=(T, R, *[1] * len(spec.context_shape)))
    context *= size / np.linalg.norm(context, axis=-1, keepdims=True)
    reward = rng.choice([spec.reward_low, spec.reward_high, -1e9, 1e9, 0.1], size=(T, R, K))
    broken = rng.random((T, R)) < 0.05
    each = (broken.sum(), *[1] * len(spec.context_shape))
    context[broken] = rng.choice([np.nan, np.inf, -1e300], size=each)
    reward[broken] = rng.choice([np.nan, np.inf, -np.inf], size=(broken.sum(), 1))
    full = isinstance(spec, ExpertsSpec) or getattr(spec, "feedback", "") == "datum"
    if full:
        context, reward = np.concatenate([np.zeros_like(context[:1]), context[:-1]]), context
    elif isinstance(spec, ConvexSpec):
        context = np.zeros_like(context)
    for shared in (context, reward):
        shared.setflags(write=False)  # by all tests: an agent must not write on what it is shown
    return World(context, reward, full)


class Tape(NamedTuple):
    """One run: mechanism queries and releases in order, actions, and what was remembered each
    round.

    `marks` are the mechanism calls made by the time each user was learned from, the first of them
    0: before user 1.
    """

    marks: list[int]
    queries: list[Any]
    mechanisms: list[Any]
    releases: list[Any]
    actions: Any
    memories: list[bytes]


def run(
    config: Any,
    spec: Spec,
    world: World,
    replay: Tape | None = None,
    *,
    admit: Callable[..., Any] | None = None,
    remember: bool = True,
) -> Tape:
    """Play `world`, recording the mechanism; with `replay`, its releases are handed out again.

    What the agent remembers is recorded, too, unless that is not asked for: it takes longest.

    Rewards arrive `spec.delay` rounds late, with the contexts and actions they belong to.
    """
    R = world.context.shape[1]
    marks, queries, mechanisms, releases, actions, memories = [0], [], [], [], [], []
    with (
        short_blocks(),
        recording(queries, mechanisms, releases, replay, admit),
        enrolled() as roll,
    ):
        agent = config.make(spec, Streams(range(R)))
        for t, context in enumerate(world.context):
            actions.append(agent.act(context))
            if (user := t - spec.delay) >= 0:
                action = actions[user]
                agent.update(world.context[user], action, world.answer(user, action))
                marks.append(len(queries))
            if remember:
                memories.append(memory(agent))
    Books(type(config).__name__, agent.ledger, roll).check(users=len(marks) - 1)
    return Tape(marks, queries, mechanisms, releases, np.array(actions), memories)


@contextmanager
def short_blocks() -> Iterator[None]:
    """Streams draw few numbers ahead: no value changes, and short runs take half the time."""
    usual = random_streams._VALUES_AHEAD
    random_streams._VALUES_AHEAD = 32
    try:
        yield
    finally:
        random_streams._VALUES_AHEAD = usual


@contextmanager
def recording(
    queries: list,
    mechanisms: list,
    releases: list,
    replay: Tape | None,
    admit: Callable[..., Any] | None = None,
) -> Iterator[None]:
    """Watch `Mechanism.__call__`, and replace what it releases if there is something to replay.

    `admit`, told the mechanism and its datum, says what is fed in place of the datum.
    """
    original = Mechanism.__call__

    def watched(self: Mechanism, *datum: Any) -> Any:
        datum = datum if admit is None else admit(self, *datum)
        queries.append(self.query(*datum))
        mechanisms.append(self)
        release = original(self, *datum)
        if replay is not None:
            release = replay.releases[len(releases)]
        releases.append(None if release is None else release.copy())
        return release

    Mechanism.__call__ = watched  # type: ignore[method-assign]
    try:
        yield
    finally:
        Mechanism.__call__ = original  # type: ignore[method-assign]


def memory(agent: Any) -> bytes:
    """All that an agent remembers outside its mechanisms."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> str | None:
            return "mechanism" if isinstance(item, Mechanism) else None

    buffer = io.BytesIO()
    Pickler(buffer).dump(agent)
    return buffer.getvalue()


def largest_move(one: Tape, two: Tape, t: int) -> Any:
    """How far the differing user of round t moves the mechanism's inputs, over sensitivity: (R,).

    All other calls must be fed exactly the same in both worlds.
    """
    assert one.marks == two.marks
    moves = [np.zeros(one.actions.shape[1])]
    for i, (a, b) in enumerate(zip(one.queries, two.queries, strict=True)):
        if one.marks[t] <= i < one.marks[t + 1]:
            gap, mechanism = (a - b).reshape(len(a), -1), one.mechanisms[i]
            order = getattr(mechanism, "order", 2)
            moves.append(np.linalg.norm(gap, ord=order, axis=1) / mechanism.sensitivity)
        else:
            np.testing.assert_array_equal(a, b)
    return np.max(moves, axis=0)


def noises(tape: Tape) -> list[Any]:
    """What each release of a sum added to all that was fed to it, in its units.

    After a release a fading sum keeps its total times `fade`, a running sum keeps it whole, local
    values keep nothing. Mechanisms that release something else have none to show.
    """
    found, totals = [], {}
    for query, mechanism, release in zip(tape.queries, tape.mechanisms, tape.releases, strict=True):
        total = totals.get(id(mechanism), 0.0) + query
        if release is not None and isinstance(mechanism, SUMS):
            units = getattr(getattr(mechanism, "_statistic", None), "units", 1.0)
            found.append(release / units - total)
            keeps = 0.0 if isinstance(mechanism, LocalValues) else 1.0
            total = total * getattr(mechanism, "fade", keeps)
        totals[id(mechanism)] = total
    return found


def billboard_differences(one: Tape, two: Tape, t: int) -> list[str]:
    """What the differing user of round t changed although every release was the same."""
    found = []
    others = np.arange(len(one.actions)) != t
    if not np.array_equal(one.actions[others], two.actions[others]):
        found.append("other users' actions")
    if one.memories != two.memories:
        found.append("remembered state")
    return found
