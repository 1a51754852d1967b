"""Neighbouring streams: the same public users, but for the one of a single round.

Which users are tried depends on the kind of problem: `contexts`, `data`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.losses.loss import Loss

Number = TypeVar("Number", bound=np.generic)


class Answer(Protocol):
    """What a user answers to any action, the same in all runs."""

    def __call__(self, action: npt.NDArray[Any]) -> Floats:
        """Actions (R, ...) of R runs -> what their agents are told, (R, ...)."""
        ...


@dataclass(frozen=True, eq=False)
class ByArm:
    """A reward for each arm."""

    rewards: Floats
    """(K,)"""

    def __call__(self, action: npt.NDArray[Any]) -> Floats:
        """(R,) arms -> (R,) rewards."""
        return self.rewards[action]


@dataclass(frozen=True, eq=False)
class Always:
    """One answer to everything: a reward, or with full information a datum."""

    feedback: Floats
    """() or `(*datum_shape)`"""

    def __call__(self, action: npt.NDArray[Any]) -> Floats:
        """(R, ...) -> `(R, *feedback.shape)`."""
        return np.broadcast_to(self.feedback, (len(action), *self.feedback.shape)).copy()


@dataclass(frozen=True, eq=False)
class LossOf:
    """Minus the loss of one's datum, at the point that is played."""

    loss: Loss
    datum: Floats
    """`(*datum_shape)`"""

    def __call__(self, action: npt.NDArray[Any]) -> Floats:
        """(R, N) points -> (R,) rewards."""
        return -self.loss.value(
            action, np.broadcast_to(self.datum, (len(action), *self.datum.shape))
        )


@dataclass(frozen=True, eq=False)
class World:
    """A stream of T users, all that they would answer included."""

    context: Floats
    """`(T, *context_shape)`"""
    answers: tuple[Answer, ...]
    """T of them"""

    def with_user(self, t: int, context: Floats, answer: Answer) -> "World":
        """The same stream with another user in round t."""
        contexts, answers = self.context.copy(), list(self.answers)
        contexts[t], answers[t] = context, answer
        return World(contexts, tuple(answers))


@dataclass(frozen=True, eq=False)
class Pair:
    """Two neighbouring streams."""

    note: str
    round: int
    """t, from 0, where they differ, first"""
    first: World
    second: World
    more: tuple[int, ...] = field(default=(), kw_only=True)
    """further rounds, in order, of a person who returns"""
    person: int | None = field(default=None, kw_only=True)
    """her number"""

    @property
    def rounds(self) -> tuple[int, ...]:
        """All in which they differ."""
        return (self.round, *self.more)


class User(NamedTuple):
    """A user that may be the differing one."""

    note: str
    context: Floats
    """`(*context_shape)`; with full information her datum, which the next round shows as context"""
    answer: Answer


class Users(Protocol):
    """Those of a kind of problem."""

    def handful(self, rng: np.random.Generator) -> Iterator[Pair]:
        """Pairs that push most mechanisms to their bounds."""
        ...

    def candidates(self, rng: np.random.Generator) -> list[User]:
        """Public users, among whom a search looks for the two that differ most."""
        ...

    def neighbours(self, t: int, one: User, two: User, note: str) -> Pair:
        """Either user in round t, among quiet ones."""
        ...


def full_information(users: Sequence[User], delay: int) -> World:
    """A stream with full information: a context is the datum told last, 0 before any is."""
    data = np.array([user.context for user in users])
    context, told = np.zeros_like(data), max(0, len(data) - 1 - delay)
    context[len(data) - told :] = data[:told]
    return World(context, tuple(user.answer for user in users))


def twin(values: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """What the other of two worlds has where this one has `values`, (2 R, ...).

    A run and its twin share their noise: until the differing user is learned from they are alike.
    """
    return np.roll(values, len(values) // 2, axis=0)


def contexts_of(worlds: Sequence[World], t: int, runs: int) -> Floats:
    """What agents are shown in round t, world after world: `(worlds x runs, *context_shape)`."""
    return np.repeat(np.stack([world.context[t] for world in worlds]), runs, axis=0)


def answers_of(worlds: Sequence[World], t: int, action: npt.NDArray[Any]) -> Floats:
    """What they are told for their actions (worlds x runs, ...) of round t."""
    parts = np.split(action, len(worlds))
    return np.concatenate(
        [world.answers[t](part) for world, part in zip(worlds, parts, strict=True)]
    )


_AXES = 8
_RANDOM = 4


def ways(dim: int, rng: np.random.Generator) -> list[tuple[str, Floats]]:
    """Directions (dim,): axes (eight at most) and the diagonal, either way, and random ones."""
    axes = np.unique(np.linspace(0, dim - 1, min(dim, _AXES)).round().astype(int))
    found = [(f"e_{i + 1}", np.eye(dim)[i]) for i in axes] + [("diagonal", np.ones(dim))]
    found += [(f"-{note}", -v) for note, v in found]
    return found + [(f"random {i + 1}", rng.standard_normal(dim)) for i in range(_RANDOM)]


def random_round(horizon: int, rng: np.random.Generator) -> int:
    """t, from 0: neither the first nor the last where there are others."""
    return int(rng.integers(1, horizon - 1)) if horizon > 2 else 0
