"""What all experts' problems share: somebody who chooses the losses, the best in hindsight.

An adversary is asked once a round::

    losses = adversary(action)               (R,) -> (R, d), or (1, d) where all replicas share them

The adversaries here are oblivious: they draw blocks of a table ahead and never look at what was
played. That is what the regret bounds of the realizable regime need (agents hide which expert
they follow); privacy holds against adversaries that look, too.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from dpbandit.base import AnyArray, Floats, Ints, Streams, pick
from dpbandit.envs.dynamics import Delay
from dpbandit.specs.convex import ExpertsSpec
from dpbandit.specs.protocols import Step

Adversary: TypeAlias = Callable[[Ints], Floats]
"""The round's actions (R,) -> its losses (R, d) or (1, d)."""

_VALUES_AHEAD = 1 << 17
"""Losses drawn at once, for all replicas. Changes speed and memory, never values."""


class Table(Protocol):
    """Losses fixed in advance, for each replica (R = replicas) or one for all of them (R = 1)."""

    @property
    def values(self) -> int:
        """Numbers that a round of all replicas takes."""
        ...

    def __call__(self, first: int, count: int) -> Floats:
        """Of rounds first, ..., first + count - 1, asked for in order: (count, R, d) in [0, 1]."""
        ...


class Oblivious:
    """Reads a table block by block: a round costs a look-up."""

    def __init__(self, table: Table) -> None:
        self._table, self._ahead = table, max(1, _VALUES_AHEAD // table.values)
        self._block: Floats = np.empty(0)
        self._first = self._next = self._drawn = 0

    def __call__(self, action: Ints) -> Floats:
        """The round's losses, whatever the action."""
        if self._next == self._drawn:
            self._block = self._table(self._first, self._ahead)
            self._block.flags.writeable = False  # agents are shown it
            self._first, self._drawn, self._next = self._first + self._ahead, self._ahead, 0
        self._next += 1
        losses: Floats = self._block[self._next - 1]
        return losses


class ExpertsProblem(ABC):
    """A `Problem` of experts; a subclass says who chooses their losses.

    Subclasses set `spec` and make an episode's adversary in `_start`. The sum of `Step.regret` is
    the sum of the losses suffered; `hindsight` brings the best expert's. What an agent is told,
    `Step.datum`, is the whole loss vector (R, d), or that of `spec.delay` rounds ago.
    """

    spec: ExpertsSpec

    @abstractmethod
    def _start(self, streams: Streams) -> Adversary: ...

    def reset(self, streams: Streams) -> None:
        """Start an episode, one replica for each stream."""
        R, d, delay = len(streams), self.spec.n_actions, self.spec.delay
        self._adversary = self._start(streams)
        self._shape, self._oracle = (R, d), np.zeros(R)
        self._late_reward = Delay(delay, R)
        self._context: Floats = np.zeros((R, d))
        self._late_losses: deque[Floats] = deque([np.zeros((R, d))] * delay)
        for shared in (self._oracle, self._context, *self._late_losses):
            shared.flags.writeable = False
        self._totals: Floats = np.zeros((1, d))  # of every expert: (R, d), or (1, d) if shared

    def context(self) -> Floats:
        """The losses told last, (R, d), zeros before any."""
        return self._context

    def step(self, action: AnyArray) -> Step:
        """Suffer the loss of expert `action` (R,) and move on to the next round."""
        expert = self.spec.validate(action, self._shape[0])
        losses = self._adversary(expert)
        self._totals = self._totals + losses
        told = losses = np.broadcast_to(losses, self._shape)
        suffered = pick(losses, expert)
        reward = -suffered
        if self.spec.delay:
            reward = self._late_reward(reward)
            self._late_losses.append(losses)
            told = self._late_losses.popleft()
        self._context = told
        return Step(reward, -suffered, self._oracle, suffered, told)

    def best_fixed(self) -> Ints:
        """The expert (R,) with the least total loss over the rounds so far; ties: the lowest."""
        return np.broadcast_to(self._totals.argmin(axis=1), self._shape[:1]).copy()

    def hindsight(self) -> Floats:
        """Minus the total loss of the best expert, (R,)."""
        return 0.0 - np.broadcast_to(self._totals.min(axis=1), self._shape[:1])
