"""Streams of people who return, in which one person is replaced or stays away."""

from typing import Any

import numpy as np

from dpbandit.base import Ints, rows
from dpbandit.specs.people import NOBODY
from dpbandit.testing.tapes import World


def with_other_people(spec: Any, world: World, other: World, t: Ints) -> tuple[World, Ints]:
    """Replace a person in each replica; return the changed stream, and a mask (T, R) of her visits.

    The person is the first one who comes in round t (R,) or later. On the changed stream she has
    the contexts and answers of `other`. If her pattern of visits is private, she leaves out every
    third of her visits, from the first, and fills every third of the rounds without a user.
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
    """Return the stream without a user in the rounds of a person's visits, the mask t (T, R)."""
    context = world.context.copy()
    context[t] = 0.0
    context[t, 0] = NOBODY
    return world._replace(context=context)
