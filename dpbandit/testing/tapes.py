"""Extreme users, streams that differ in one user, and runs that record every mechanism call."""

import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace
from functools import cache
from hashlib import blake2b
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import (
    Draws,
    InputError,
    Ints,
    Seed,
    Streams,
    counted_as,
    random_streams,
    record_counts,
    rows,
)
from dpbandit.privacy import Ledger, Mechanism
from dpbandit.privacy.mechanism import LedgerCheck, PersonalMemory, each_round, logged_calls
from dpbandit.running.episode import BlockError, Episode, Served
from dpbandit.specs import AgentConfig, Spec, Step, check_available, made_agent

held = 0
"""Number of calls of `expect` that held in this process; a check without any checked nothing."""


def expect(holds: Any, sentence: str) -> None:
    """Raise `AssertionError` with `sentence` unless `holds`; otherwise count one more success."""
    global held
    if not holds:
        raise AssertionError(sentence)
    held += 1


def same(one: Any, two: Any) -> bool:
    """Return True if two arrays are exactly equal; NaN equals NaN."""
    one, two = np.asarray(one), np.asarray(two)
    return np.array_equal(one, two, equal_nan=one.dtype.kind in "fc" and two.dtype.kind in "fc")


class World(NamedTuple):
    """Stream of users for T rounds and R replicas, contexts (T, R, ...) and potential answers."""

    context: Any
    reward: Any
    """rewards of all actions, (T, R, K), or with full information data `(T, R, *datum_shape)`"""
    full: bool = False
    """True with full information, where a context is the datum of the previous round"""
    mask: Any = None
    """mask of available actions, (T, R, K); None if all are always available"""
    public_mask: bool = False
    """True if masks are a public schedule, the same on neighbouring streams"""

    def swapped(self, t: Ints, other: "World", *, answers_only: bool = False) -> "World":
        """Return the stream with users of rounds t (R,), or their answers, taken from `other`."""
        context, reward, r = self.context.copy(), self.reward.copy(), np.arange(len(t))
        reward[t, r] = other.reward[t, r]
        mask = self.mask
        if mask is not None and not self.public_mask:
            mask = mask.copy()
            mask[t, r] = other.mask[t, r]
        seen = (t + self.full < len(context)) & (not answers_only)
        t, r = t[seen], r[seen]
        context[t + self.full, r] = (other.reward if self.full else other.context)[t, r]
        return self._replace(context=context, reward=reward, mask=mask)

    def answer(self, spec: Spec, t: int, action: Any) -> Any:
        """Return the answers of the users of round t to an agent's `action` (R, ...)."""
        if self.full:
            return self.reward[t]
        return spec.answer_to(self.reward[t], action)

    def of(self, first: int, last: int) -> "World":
        """Return the stream with replicas `first` to `last` - 1 only."""
        mask = None if self.mask is None else self.mask[:, first:last]
        context, reward = self.context[:, first:last], self.reward[:, first:last]
        return self._replace(context=context, reward=reward, mask=mask)

    def until(self, rounds: int) -> "World":
        """Return the stream with the first `rounds` rounds only."""
        mask = None if self.mask is None else self.mask[:rounds]
        return self._replace(context=self.context[:rounds], reward=self.reward[:rounds], mask=mask)

    def within_bounds(self) -> "World":
        """Return the stream with contexts and data clipped to [-1, 1] and rewards to [0, 1]."""
        low = -1 if self.full else 0
        # where people return, their numbers are clipped, too: to 0, 1 and -1, which is nobody
        context = np.nan_to_num(self.context).clip(-1, 1)
        reward = np.nan_to_num(self.reward).clip(low, 1)
        return self._replace(context=context, reward=reward)

    def masked(self, t: int) -> Any:
        """Return the masks of round t, (R, K), or None."""
        return None if self.mask is None else self.mask[t]


@cache
def extreme_users(spec: Any, replicas: int, seed: int) -> World:
    """Draw users whose data are tiny, within the bounds, at or far beyond them, NaN or infinite."""
    rng = np.random.default_rng(seed)
    visit = getattr(spec, "visit", spec)
    T, R, K = spec.horizon, replicas, getattr(visit, "n_actions", 3)
    context = rng.standard_normal((T, R, *spec.context_shape))
    size = rng.choice([1e-200, 0.3, 1.0, 3.0, 1e9], size=(T, R, *[1] * len(spec.context_shape)))
    context *= size / np.linalg.norm(context, axis=-1, keepdims=True)
    reward = rng.choice([*spec.answers, -1e9, 1e9, 0.1], size=(T, R, K))
    broken = rng.random((T, R)) < 0.05
    each = (broken.sum(), *[1] * len(spec.context_shape))
    context[broken] = rng.choice([np.nan, np.inf, -1e300], size=each)
    reward[broken] = rng.choice([np.nan, np.inf, -np.inf], size=(broken.sum(), 1))
    full = spec.full_information
    if full:
        context, reward = np.concatenate([np.zeros_like(context[:1]), context[:-1]]), context
    elif spec.domain is not None:
        context = np.zeros_like(context)
    elif spec.returning:  # beyond the cap, empty slots, numbers of nobody
        person = rng.integers(-1, spec.people, size=(T, R)).astype(float)
        odd = rng.random((T, R)) < 0.05
        person[odd] = rng.choice([np.nan, 0.5, -1e300, spec.people], size=odd.sum())
        context[..., 0] = person
    for shared in (context, reward):
        shared.setflags(write=False)  # all checks share the arrays: no agent may write on them
    public = spec.masks == "public"
    mask = None if spec.masks == "none" else _masks(spec, replicas, 0 if public else seed)
    return World(context, reward, full, mask, public)


def _masks(spec: Any, replicas: int, seed: int) -> Any:
    """Draw masks (T, R, K) of about half of the actions, but at least as many as the spec needs.

    Seed 0 draws a public schedule, the same for all replicas.
    """
    size, least = spec.mask_size
    uniforms = np.random.default_rng(seed).random((spec.horizon, replicas if seed else 1, size))
    worst = np.partition(uniforms, least - 1)[..., least - 1, None]
    mask = np.repeat(uniforms <= np.maximum(worst, 0.5), 1 if seed else replicas, axis=1)
    mask.setflags(write=False)
    return mask


def rounds_of(tape: Any, t: Ints) -> Ints:
    """Return a mask (T, R) of the differing user's rounds t, given as rounds (R,) or as a mask."""
    return t if t.ndim == 2 else rows(len(tape.actions))[:, None] == t


def rounds_of_calls(tape: Any) -> list[int]:
    """Return for each call of a mechanism the number of its round."""
    calls = np.arange(len(tape.queries))
    found: list[int] = (np.searchsorted(tape.marks, calls, "right") - 1).tolist()
    return found


class Recorded:
    """Problem made of the users of a `World`, without any check of their contexts and answers."""

    def __init__(self, spec: Spec, world: World, owner: str = "the agent", *, first: int = 0):
        self.spec = spec
        self.actions: list[Any] = []
        """actions of each round so far, (R, ...)"""
        self._owner, self._world, self._t = owner, world, first
        self._context = world.context.view()
        self._context.flags.writeable = False
        self._nothing = np.zeros(world.context.shape[1])

    @property
    def in_blocks(self) -> bool:
        """True if users of several rounds can be served at once."""
        known = self.spec.n_arms is not None and not (self._world.full or self.spec.returning)
        return known and not self.spec.delay

    def context(self) -> Any:
        """Return the contexts of the current round, `(R, *context_shape)`."""
        return self._context[self._t]

    def contexts_ahead(self, most: int) -> Any:
        """Return the contexts of the next n <= `most` rounds, `(n, R, *context_shape)`."""
        return self._context[self._t : self._t + most]

    def mask(self) -> Any:
        """Return the masks of the current round, (R, K), or None."""
        return self._world.masked(self._t)

    def masks_ahead(self, most: int) -> Any:
        """Return the masks of the next n <= `most` rounds, (n, R, K)."""
        return self._world.mask[self._t : self._t + most]

    def step(self, action: Any) -> Step:
        """Check a round's actions (R, ...); return the answers to actions `delay` rounds ago."""
        self._check(action, len(self._nothing), self._world.masked(self._t))
        self.actions.append(np.array(action))
        self._t += 1
        if len(self.actions) <= self.spec.delay:
            return Step(self._nothing, self._nothing, self._nothing, self._nothing)
        played = self.actions[-1 - self.spec.delay]
        answer = self._world.answer(self.spec, self._t - 1 - self.spec.delay, played)
        return Step(answer, self._nothing, self._nothing, self._nothing)

    def steps(self, action: Any) -> Step:
        """Check the actions (n, R) of n rounds; return their answers."""
        rounds = slice(self._t, self._t + len(action))
        mask = None if self._world.mask is None else self._world.mask[rounds]
        mask = None if mask is None else mask.reshape(-1, mask.shape[-1])
        flat = np.ravel(action)
        self._check(flat, flat.size, mask)
        self.actions += list(np.array(action))
        self._t = rounds.stop
        reward = self._world.reward[rounds]
        answer = self.spec.answer_to(reward.reshape(-1, *reward.shape[2:]), flat)
        return Step(answer.reshape(action.shape), *[np.zeros(action.shape)] * 3)

    def _check(self, action: Any, count: int, mask: Any) -> None:
        try:
            self.spec.validate(action, count)
            if mask is not None:
                check_available(np.asarray(action), mask)
        except InputError as error:
            raise AssertionError(f"{self._owner}: {error}") from error


def serve(episode: Episode, most: int = 1) -> Served:
    """Call `episode.serve(most)`; fail if a block acts unlike single rounds or alters contexts."""
    try:
        return episode.serve(most)
    except BlockError as error:
        raise AssertionError(error) from error
    except ValueError as error:
        name, theirs = type(episode.agent).__name__, "read-only" not in str(error)
        expect(theirs, f"Expected {name} not to write on a context: let it copy what it changes.")
        raise


def played_on(agent: Any, spec: Spec, world: World, first: int, last: int) -> list[Any]:
    """Let an agent play rounds `first` to `last` - 1 without delay; return all actions (R, ...)."""
    problem = Recorded(replace(spec, delay=0), world, type(agent).__name__, first=first)
    episode = episode_of(problem, agent, world)
    for _ in by_turns(episode, last - first):
        episode.learn()
    return problem.actions


def episode_of(problem: Any, agent: Any, world: World, *, blocks: bool = True) -> Episode:
    """Make an episode of recorded users, without checks of contexts and answers."""
    replicas = world.context.shape[1]
    streams = Streams([0])  # for `Episode`'s checks of single rows
    how: dict[str, Any] = {"blocks": blocks, "checked": 0, "shortest_block": 2}
    return Episode(problem, agent, replicas, streams, **how)


def by_turns(episode: Episode, rounds: int) -> Iterator[Served]:
    """Serve `rounds` rounds: single rounds and the longest possible blocks by turns."""
    most = 1
    while (left := rounds - episode.served) > 0:
        yield (served := serve(episode, min(most, left)))
        most = 1 if served.is_block else rounds


class Calls(NamedTuple):
    """Calls of mechanisms, in order."""

    queries: list[Any]
    """query of each call, (R, ...)"""
    mechanisms: list[Mechanism]
    releases: list[Any]
    """release of each call, None if nothing was released"""


class Clock:
    """Record of the round of each mechanism call; in a block, a mechanism has a call per round."""

    def __init__(self) -> None:
        self.rounds: list[int] = []
        """round of every call so far"""
        self._first, self._last = 0, 0
        self._calls: dict[int, int] = {}

    def start(self, first: int, rounds: int) -> None:
        """Begin learning from a block of `rounds` rounds, the first of which is round `first`."""
        self._first, self._last, self._calls = first, first + rounds - 1, {}

    def tick(self, mechanism: Mechanism) -> None:
        """Record the round of a mechanism's call."""
        place = self._calls.get(id(mechanism), 0)
        self._calls[id(mechanism)] = place + 1
        self.rounds.append(min(self._first + place, self._last))


class Tape(NamedTuple):
    """Record of one run: mechanism calls by rounds, actions, and memories after each update.

    `marks` are the numbers of calls made after learning from 0, 1, ... users.
    """

    marks: list[int]
    queries: list[Any]
    mechanisms: list[Mechanism]
    releases: list[Any]
    actions: Any
    memories: list[bytes]
    """digests of the agent's state, shared by all users, after each update, see `memory`"""
    personal: list[list[Any]]
    """arrays (R, N, ...) that the agent keeps for each of N people, after each update"""
    order: list[int] | None = None
    """position on the tape of each call, in the order of calls; None if positions are 0, 1, ..."""
    blocks: int = 0
    """number of rounds that were played in blocks"""
    ledger: Ledger | None = None
    """ledger of the agent"""
    controls: Sequence[tuple[Mechanism, int, Any]] = ()
    """mechanism, position and value of every argument of a call that must not depend on data"""


def run(
    config: AgentConfig,
    spec: Spec,
    world: World,
    replay: Tape | None = None,
    *,
    seeds: Sequence[Seed] | None = None,
    blocks: bool = True,
    admit: Callable[..., Any] | None = None,
    record: bool = True,
    remember: bool = True,
    calls: int | None = None,
) -> Tape:
    """Play `world` and record all calls of mechanisms, which return the releases of a `replay`.

    With `blocks`, single rounds and blocks alternate if the agent can play blocks; it learns from
    every other block as from users who are drawn as counts (`Episode.as_records`). Memory is
    recorded unless `remember` is False, which saves most of the time, and calls are recorded unless
    `record` is False. After `calls` calls, if given, the run ends before the agent uses the last
    release. `admit`, if given, clips each datum.

    Rewards arrive `spec.delay` rounds late, with the contexts and actions they belong to.
    """
    memories, personal, clock, in_blocks, as_records = [], [], Clock(), 0, False
    seeds = range(world.context.shape[1]) if seeds is None else seeds
    nothing = nullcontext(Calls([], [], []))
    recorder = recording(replay, admit, calls, clock) if record else nothing
    with suppress(_LastCall), short_blocks(), recorder as tape, logged_calls() as call_log:
        agent = made_agent(config, spec, Streams(seeds))
        problem = Recorded(spec, world, type(agent).__name__)
        episode = episode_of(problem, agent, world, blocks=blocks)
        for served in by_turns(episode, len(world.context)):
            in_blocks += served.rounds * served.is_block
            clock.start(episode.learned, served.rounds)
            if served.is_block and as_records:
                episode.as_records()
            as_records ^= served.is_block
            episode.learn()
            if remember:
                remembered, personal_memory = memory(agent)
                memories.append(remembered)
                personal.append(personal_memory)
    users = episode.learned
    if calls is None:
        try:
            LedgerCheck(type(config).__name__, agent.ledger, call_log).check(users=users)
        except InputError as error:
            raise AssertionError(error) from error
    ordered, order = in_rounds(tape, clock)
    marks = np.searchsorted(np.sort(clock.rounds), np.arange(users), "right")
    found, actions, ledger = [0, *marks.tolist()], np.array(problem.actions), agent.ledger
    return Tape(found, *ordered, actions, memories, personal, order, in_blocks, ledger)


def in_rounds(calls: Calls, clock: Clock) -> tuple[Calls, list[int] | None]:
    """Sort calls by rounds; return them, and the new position of each, None if no call moves."""
    rounds = np.array(clock.rounds, dtype=np.int64)
    if (np.diff(rounds) >= 0).all():
        return calls, None
    sources = np.argsort(rounds, kind="stable").tolist()
    order = np.argsort(sources).tolist()
    return Calls(*([part[i] for i in sources] for part in calls)), order


@contextmanager
def short_blocks() -> Iterator[None]:
    """Make random streams draw few numbers ahead; same values, and short runs are twice as fast."""
    usual = random_streams._VALUES_AHEAD
    random_streams._VALUES_AHEAD = 32
    try:
        yield
    finally:
        random_streams._VALUES_AHEAD = usual


class _LastCall(BaseException):
    """Signal that a run has made the requested number of calls."""


@contextmanager
def recording(
    replay: Any = None,
    admit: Callable[..., Any] | None = None,
    most: int | None = None,
    clock: Clock | None = None,
) -> Iterator[Calls]:
    """Record the calls of mechanisms; replace releases by those of the tape `replay`, if given.

    `admit`, a function of a mechanism and its datum, returns the datum to use. Call number `most`
    raises `_LastCall`. A block is recorded as a call per round, of which the last may release.
    """
    original, several, calls = Mechanism.__call__, Mechanism.several, Calls([], [], [])
    order = getattr(replay, "order", None)

    def note(mechanism: Mechanism, query: Any, release: Any) -> Any:
        """Record a call; return its release, or the replayed one."""
        if replay is not None:
            released, place = release is not None, len(calls.releases)
            release = replay.releases[place if order is None else order[place]]
            expect(
                released == (release is not None),
                f"Expected when {type(mechanism).__name__} releases to be public, not a user's to "
                "say.",
            )
        calls.queries.append(query)
        calls.mechanisms.append(mechanism)
        calls.releases.append(None if release is None else release.copy())
        if clock is not None:
            clock.tick(mechanism)
        return release

    def stop() -> None:
        if most is not None and len(calls.releases) >= most:
            raise _LastCall

    def recorded_call(self: Mechanism, *datum: Any) -> Any:
        datum = datum if admit is None else admit(self, *datum)
        query = self.query(*datum)
        release = note(self, query, original(self, *datum))
        stop()
        return release

    def recorded_calls(self: Mechanism, *data: Any) -> Any:
        if (counts := record_counts()) is not None:
            (every_round,) = each_round(counts, data)
            with counted_as(None):
                return recorded_calls(self, *every_round)
        if len(data[0]) == 1:
            return recorded_call(self, *(array[0] for array in data))
        if admit is not None:
            rows = [admit(self, *datum) for datum in zip(*data, strict=True)]
            data = tuple(np.array(part) for part in zip(*rows, strict=True))
        queries = [self.query(*datum) for datum in zip(*data, strict=True)]
        release = several(self, *data)
        for query in queries[:-1]:
            note(self, query, None)
        release = note(self, queries[-1], release)
        stop()
        return release

    Mechanism.__call__ = recorded_call  # type: ignore[method-assign]
    Mechanism.several = recorded_calls  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Mechanism.__call__ = original  # type: ignore[method-assign]
        Mechanism.several = several  # type: ignore[method-assign]


def memory(agent: Any) -> tuple[bytes, list[Any]]:
    """Return a digest of an agent's shared state, and its arrays (R, N, ...) for N people."""
    personal: list[Any] = []

    class Pickler(pickle.Pickler):
        def reducer_override(self, item: Any) -> Any:  # not called for numbers, lists and the like
            kinds = type(item).__mro__  # isinstance of an ABC takes long
            if PersonalMemory in kinds:
                personal.append(item.everybody())
                return str, ("personal memory",)
            if Draws in kinds:  # all replicas' generators are as far as the first
                return dict, ({**vars(item), "_laws": item._laws[0]},)
            if Mechanism in kinds:
                return tuple, (("mechanism", *item.public),)
            return NotImplemented

    buffer = io.BytesIO()
    Pickler(buffer).dump(agent)
    # not the bytes: of 60 rounds of `linucb` on 300 features these took 23 GB
    return blake2b(buffer.getbuffer()).digest(), personal
