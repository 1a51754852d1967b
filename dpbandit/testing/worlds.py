"""Users as extreme as can be, and worlds that differ in one of them."""

from functools import cache
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base.arrays import Ints
from dpbandit.specs.convex import ConvexSpec, ExpertsSpec
from dpbandit.specs.lists import ReturningSpec
from dpbandit.specs.protocols import Spec


class World(NamedTuple):
    """Users for T rounds and R replicas: contexts (T, R, ...) and what they answer."""

    context: Any
    reward: Any
    """(T, R, K), or with full information the data `(T, R, *datum_shape)`"""
    full: bool = False
    """with full information, a context is the datum of the round before"""

    def swapped(self, t: Ints, other: "World", *, answers_only: bool = False) -> "World":
        """The same users, but for those of rounds t (R,), or what they answer, from `other`."""
        context, reward, r = self.context.copy(), self.reward.copy(), np.arange(len(t))
        reward[t, r] = other.reward[t, r]
        seen = (t + self.full < len(context)) & (not answers_only)
        t, r = t[seen], r[seen]
        context[t + self.full, r] = (other.reward if self.full else other.context)[t, r]
        return World(context, reward, self.full)

    def answer(self, spec: Spec, t: int, action: Any) -> Any:
        """What an agent is told that played `action` (R, ...) for the users of round t."""
        if self.full:
            return self.reward[t]
        return spec.told(self.reward[t], action)

    def of(self, first: int, last: int) -> "World":
        """Some of the replicas."""
        return World(self.context[:, first:last], self.reward[:, first:last], self.full)

    def until(self, rounds: int) -> "World":
        """The first rounds."""
        return World(self.context[:rounds], self.reward[:rounds], self.full)

    def tame(self) -> "World":
        """The same users as numbers within [-1, 1], rewards within [0, 1]."""
        low = -1 if self.full else 0
        context = np.nan_to_num(self.context).clip(-1, 1)  # of people two, and nobody
        reward = np.nan_to_num(self.reward).clip(low, 1)
        return World(context, reward, self.full)


@cache
def extreme_users(spec: Spec, replicas: int, seed: int) -> World:
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
    full = isinstance(spec, ExpertsSpec) or getattr(spec, "feedback", "") == "datum"
    if full:
        context, reward = np.concatenate([np.zeros_like(context[:1]), context[:-1]]), context
    elif isinstance(spec, ConvexSpec):
        context = np.zeros_like(context)
    elif isinstance(spec, ReturningSpec):  # beyond the cap, empty slots, numbers of nobody
        person = rng.integers(-1, spec.people, size=(T, R)).astype(float)
        odd = rng.random((T, R)) < 0.05
        person[odd] = rng.choice([np.nan, 0.5, -1e300, spec.people], size=odd.sum())
        context[..., 0] = person
    for shared in (context, reward):
        shared.setflags(write=False)  # by all checks: agents must not write on what they are shown
    return World(context, reward, full)
