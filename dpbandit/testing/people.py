"""People who return, and worlds in which one of them is somebody else and comes at other times."""

from typing import Any

import numpy as np

from dpbandit.base.arrays import Ints, rows
from dpbandit.specs.lists import NOBODY, ReturningSpec
from dpbandit.testing.worlds import World


def with_other_people(
    spec: ReturningSpec, world: World, other: World, t: Ints
) -> tuple[World, Ints]:
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
