"""One run of an agent with every call of a mechanism on tape, and the same releases once more."""

import io
import pickle
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import random_streams
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.mechanism import Books, Mechanism, PersonalMemory, enrolled
from dpbandit.specs.contract import made_agent
from dpbandit.specs.protocols import AgentConfig, Spec
from dpbandit.testing.expectations import expect
from dpbandit.testing.worlds import World


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


def run(
    config: AgentConfig,
    spec: Spec,
    world: World,
    replay: Tape | None = None,
    *,
    admit: Callable[..., Any] | None = None,
    remember: bool = True,
) -> Tape:
    """Play `world`, recording mechanisms; with `replay`, its releases are handed out again.

    What the agent remembers is recorded, too, unless that is not asked for: it takes longest.

    Rewards arrive `spec.delay` rounds late, with the contexts and actions they belong to.
    """
    marks, actions, memories, personal = [0], [], [], []
    with short_blocks(), recording(replay, admit) as calls, enrolled() as roll:
        agent = made_agent(config, spec, Streams(range(world.context.shape[1])))
        for t, context in enumerate(world.context):
            actions.append(action_of(agent, spec, context))
            if (user := t - spec.delay) >= 0:
                action = actions[user]
                agent.update(world.context[user], action, world.answer(spec, user, action))
                marks.append(len(calls.queries))
            if remember:
                kept, hers = memory(agent)
                memories.append(kept)
                personal.append(hers)
    try:
        Books(type(config).__name__, agent.ledger, roll).check(users=len(marks) - 1)
    except InputError as error:
        raise AssertionError(error) from error
    return Tape(marks, *calls, np.array(actions), memories, personal)


def action_of(agent: Any, spec: Spec, context: Any) -> Any:
    """What it plays, which the spec allows, for a context that is read and not written on."""
    name = type(agent).__name__
    context.setflags(write=False)
    try:
        action = agent.act(context)
    except ValueError as error:
        theirs = "read-only" not in str(error)
        expect(theirs, f"Expected {name} not to write on a context: let it copy what it changes.")
        raise
    try:
        spec.validate(action, len(context))
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


@contextmanager
def recording(replay: Any = None, admit: Callable[..., Any] | None = None) -> Iterator[Calls]:
    """Watch `Mechanism.__call__`, and hand out the `releases` of `replay`, where there is one.

    `admit`, told the mechanism and its datum, says what is fed in place of the datum.
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
        def persistent_id(self, item: Any) -> str | None:
            # asked for each of millions of objects: five times as fast as isinstance of an ABC
            kinds = type(item).__mro__
            if PersonalMemory in kinds:
                personal.append(item.everybody())
                return "personal memory"
            return "mechanism" if Mechanism in kinds else None

    buffer = io.BytesIO()
    Pickler(buffer).dump(agent)
    return buffer.getvalue(), personal
