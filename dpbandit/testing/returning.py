"""Worlds of people who come back, of whom one is replaced or stays away."""

from typing import Any

import numpy as np

from dpbandit.base import Ints, rows
from dpbandit.specs.people import NOBODY
from dpbandit.testing.tapes import World


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
    at_visits, empty = (here == person) & (person != NOBODY), here == NOBODY
    leaves, takes = (np.zeros_like(at_visits) for _ in range(2))
    if spec.visits.pattern == "private":
        leaves = at_visits & (at_visits.cumsum(axis=0) % 3 == 1)
        takes = empty & (empty.cumsum(axis=0) % 3 == 1) & (person != NOBODY)
    stays = (at_visits & ~leaves) | takes
    context, reward = world.context.copy(), world.reward.copy()
    context[stays], reward[stays] = other.context[stays], other.reward[stays]
    context[..., 0] = np.where(stays, person, context[..., 0])
    context[leaves] = 0.0
    context[leaves, 0] = NOBODY
    return World(context, reward, world.full), at_visits | takes


def without_person(world: World, t: Ints) -> World:
    """The world in which the slots t (T, R) of a person who returns are empty."""
    context = world.context.copy()
    context[t] = 0.0
    context[t, 0] = NOBODY
    return world._replace(context=context)
