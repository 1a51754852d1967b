"""Users, worlds that differ in one of them, and runs with every call of a mechanism on tape."""

import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import InputError, Ints, Streams, random_streams, rows
from dpbandit.base.random_streams import Draws
from dpbandit.privacy import Mechanism
from dpbandit.privacy.mechanism import Books, PersonalMemory, enrolled
from dpbandit.specs import (
    NOBODY,
    AgentConfig,
    Spec,
    acted,
    check_available,
    made_agent,
)

held = 0
"""Expectations of this process that were met so far; a check that met none has checked nothing."""


def expect(holds: Any, sentence: str) -> None:
    """Raise `AssertionError` with the sentence unless it holds."""
    global held
    if not holds:
        raise AssertionError(sentence)
    held += 1


def same(one: Any, two: Any) -> bool:
    """Whether two arrays are equal, difference exactly 0; what is no number equals itself."""
    one, two = np.asarray(one), np.asarray(two)
    return np.array_equal(one, two, equal_nan=one.dtype.kind in "fc" and two.dtype.kind in "fc")


class World(NamedTuple):
    """Users for T rounds and R replicas: contexts (T, R, ...) and what they answer."""

    context: Any
    reward: Any
    """(T, R, K), or with full information the data `(T, R, *datum_shape)`"""
    full: bool = False
    """with full information, a context is the datum of the round before"""
    mask: Any = None
    """(T, R, K), which actions are there, where they come and go"""
    public_mask: bool = False
    """whether that is a schedule, which neighbours share"""

    def swapped(self, t: Ints, other: "World", *, answers_only: bool = False) -> "World":
        """The same users, but for those of rounds t (R,), or what they answer, from `other`."""
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
        """What an agent is told that played `action` (R, ...) for the users of round t."""
        if self.full:
            return self.reward[t]
        return spec.told(self.reward[t], action)

    def of(self, first: int, last: int) -> "World":
        """Some of the replicas."""
        mask = None if self.mask is None else self.mask[:, first:last]
        context, reward = self.context[:, first:last], self.reward[:, first:last]
        return self._replace(context=context, reward=reward, mask=mask)

    def until(self, rounds: int) -> "World":
        """The first rounds."""
        mask = None if self.mask is None else self.mask[:rounds]
        return self._replace(context=self.context[:rounds], reward=self.reward[:rounds], mask=mask)

    def tame(self) -> "World":
        """The same users as numbers within [-1, 1], rewards within [0, 1]."""
        low = -1 if self.full else 0
        context = np.nan_to_num(self.context).clip(-1, 1)  # of people two, and nobody
        reward = np.nan_to_num(self.reward).clip(low, 1)
        return self._replace(context=context, reward=reward)

    def masked(self, t: int) -> Any:
        """The masks of round t, (R, K), or None."""
        return None if self.mask is None else self.mask[t]


@cache
def extreme_users(spec: Any, replicas: int, seed: int) -> World:
    """Honest users, at the bounds, tiny, far beyond them, and users that are no numbers."""
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
        shared.setflags(write=False)  # by all checks: agents must not write on what they are shown
    public = spec.masks == "public"
    mask = None if spec.masks == "none" else _masks(spec, replicas, 0 if public else seed)
    return World(context, reward, full, mask, public)


def _masks(spec: Any, replicas: int, seed: int) -> Any:
    """Of every round and replica, (T, R, K): half of the actions, and at least as many as must be.

    Of the first seed, a public one, all replicas have the same.
    """
    size, least = spec.mask_size
    luck = np.random.default_rng(seed).random((spec.horizon, replicas if seed else 1, size))
    worst = np.partition(luck, least - 1)[..., least - 1, None]
    mask = np.repeat(luck <= np.maximum(worst, 0.5), 1 if seed else replicas, axis=1)
    mask.setflags(write=False)
    return mask


def with_other_people(spec: Any, world: World, other: World, t: Ints) -> tuple[World, Ints]:
    """The world in which one person of each replica is replaced, and when she comes, (T, R).

    She is who comes in round t (R,), or next. In the changed world she says what those say who come
    then in `other`; where her pattern is private she leaves her first slot and every third, which
    become empty, and takes the first empty one and every third.
    """
    here = spec.person(world.context.reshape(-1, *spec.context_shape)).reshape(
        world.context.shape[:2]
    )
    R = here.shape[1]
    someone = np.where((here != NOBODY) & (rows(len(here))[:, None] >= t), here, NOBODY)
    person = someone[(someone != NOBODY).argmax(axis=0), rows(R)]
    hers, empty = (here == person) & (person != NOBODY), here == NOBODY
    leaves, takes = (np.zeros_like(hers) for _ in range(2))
    if spec.visits.pattern == "private":
        leaves = hers & (hers.cumsum(axis=0) % 3 == 1)
        takes = empty & (empty.cumsum(axis=0) % 3 == 1) & (person != NOBODY)
    stays = (hers & ~leaves) | takes
    context, reward = world.context.copy(), world.reward.copy()
    context[stays], reward[stays] = other.context[stays], other.reward[stays]
    context[..., 0] = np.where(stays, person, context[..., 0])
    context[leaves] = 0.0
    context[leaves, 0] = NOBODY
    return World(context, reward, world.full), hers | takes


def rounds_of(tape: Any, t: Ints) -> Ints:
    """In which rounds the user comes who differs, (T, R): that of t (R,), or t itself."""
    return t if t.ndim == 2 else rows(len(tape.actions))[:, None] == t


def rounds_of_calls(tape: Any) -> list[int]:
    """In which round each call of a mechanism was made."""
    calls = np.arange(len(tape.queries))
    found: list[int] = (np.searchsorted(tape.marks, calls, "right") - 1).tolist()
    return found


class Calls(NamedTuple):
    """Calls of mechanisms, in order."""

    queries: list[Any]
    """what each fed to its mechanism, (R, ...)"""
    mechanisms: list[Mechanism]
    releases: list[Any]
    """None where none was due"""


class Tape(NamedTuple):
    """One run: calls of mechanisms, actions, and what was remembered each round.

    `marks` are the calls made by the time each user was learned from, the first of them 0: before
    user 1.
    """

    marks: list[int]
    queries: list[Any]
    mechanisms: list[Mechanism]
    releases: list[Any]
    actions: Any
    memories: list[bytes]
    personal: list[list[Any]]
    """what was remembered of people for themselves, arrays (R, N, ...), each round"""
    controls: list[tuple[Mechanism, int, Any]] = []
    """mechanism, place and value of every argument of a call that may not depend on data"""


def run(
    config: AgentConfig,
    spec: Spec,
    world: World,
    replay: Tape | None = None,
    *,
    admit: Callable[..., Any] | None = None,
    remember: bool = True,
    calls: int | None = None,
) -> Tape:
    """Play `world`, recording mechanisms; with `replay`, its releases are handed out again.

    What the agent remembers is recorded, too, unless that is not asked for: it takes longest. A run
    of so many `calls` of mechanisms ends with the last, before the agent makes anything of it.

    Rewards arrive `spec.delay` rounds late, with the contexts and actions they belong to.
    """
    marks, actions, memories, personal = [0], [], [], []
    watched = recording(replay, admit, calls)
    with suppress(_LastCall), short_blocks(), watched as tape, enrolled() as roll:
        agent = made_agent(config, spec, Streams(range(world.context.shape[1])))
        for t, context in enumerate(world.context):
            actions.append(action_of(agent, spec, context, world.masked(t)))
            if (user := t - spec.delay) >= 0:
                action = actions[user]
                agent.update(world.context[user], action, world.answer(spec, user, action))
                roll.heard(1)
                marks.append(len(tape.queries))
            if remember:
                kept, hers = memory(agent)
                memories.append(kept)
                personal.append(hers)
    if calls is None:
        try:
            Books(type(config).__name__, agent.ledger, roll).check(users=len(marks) - 1)
        except InputError as error:
            raise AssertionError(error) from error
    return Tape(marks, *tape, np.array(actions), memories, personal)


def action_of(agent: Any, spec: Spec, context: Any, mask: Any = None) -> Any:
    """What it plays, which the spec and a mask allow, for a context that is read and not written
    on."""
    name = type(agent).__name__
    context.setflags(write=False)
    try:
        action = acted(agent, context, mask)
    except ValueError as error:
        theirs = "read-only" not in str(error)
        expect(theirs, f"Expected {name} not to write on a context: let it copy what it changes.")
        raise
    try:
        spec.validate(action, len(context))
        if mask is not None:
            check_available(np.asarray(action), mask)
    except InputError as error:
        raise AssertionError(f"{name}: {error}") from error
    return action


@contextmanager
def short_blocks() -> Iterator[None]:
    """Streams draw few numbers ahead: no value changes, and short runs take half the time."""
    usual = random_streams._VALUES_AHEAD
    random_streams._VALUES_AHEAD = 32
    try:
        yield
    finally:
        random_streams._VALUES_AHEAD = usual


class _LastCall(Exception):
    """No more was asked for."""


@contextmanager
def recording(
    replay: Any = None, admit: Callable[..., Any] | None = None, most: int | None = None
) -> Iterator[Calls]:
    """Watch `Mechanism.__call__`, and hand out the `releases` of `replay`, where there is one.

    `admit`, told the mechanism and its datum, says what is fed in place of the datum; the last of
    `most` calls raises.
    """
    original, calls = Mechanism.__call__, Calls([], [], [])

    def watched(self: Mechanism, *datum: Any) -> Any:
        datum = datum if admit is None else admit(self, *datum)
        calls.queries.append(self.query(*datum))
        calls.mechanisms.append(self)
        release = original(self, *datum)
        if replay is not None:
            due, release = release is not None, replay.releases[len(calls.releases)]
            expect(
                due == (release is not None),
                f"Expected when {type(self).__name__} releases to be public, not a user's to say.",
            )
        calls.releases.append(None if release is None else release.copy())
        if len(calls.releases) == most:
            raise _LastCall
        return release

    Mechanism.__call__ = watched  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Mechanism.__call__ = original  # type: ignore[method-assign]


def memory(agent: Any) -> tuple[bytes, list[Any]]:
    """All that an agent remembers outside its mechanisms, and what of people for themselves."""
    personal: list[Any] = []

    class Pickler(pickle.Pickler):
        def reducer_override(self, item: Any) -> Any:  # not asked for numbers, lists and the like
            kinds = type(item).__mro__  # isinstance of an ABC takes long
            if PersonalMemory in kinds:
                personal.append(item.everybody())
                return str, ("personal memory",)
            if Draws in kinds:  # the first replica's generator is as far as all of them
                return dict, ({**vars(item), "_laws": item._laws[0]},)
            if Mechanism in kinds:
                return tuple, (("mechanism", *item.public),)
            return NotImplemented

    buffer = io.BytesIO()
    Pickler(buffer).dump(agent)
    return buffer.getvalue(), personal
