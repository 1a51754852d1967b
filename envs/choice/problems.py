"""What all problems of choice share: who comes is drawn ahead, what she buys depends on the set.

A round's user is a context and her chances of buying each product of any set. One uniform number a
round, held against the added-up chances in the order of the products, says what she buys, so that
agents who offer the same set sell the same.
"""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.random_streams import Streams
from dpbandit.envs.choice.fixed_sets import Contest
from dpbandit.envs.delay import Delay
from dpbandit.specs.choice import ChoiceSpec
from dpbandit.specs.protocols import Step

_VALUES_AHEAD = 1 << 15
"""Of contexts, drawn at once for all replicas. Changes speed, never values."""


class Crowd(NamedTuple):
    """n rounds of users for R replicas."""

    context: Floats
    """`(n, R, *context_shape)`"""
    taste: npt.NDArray[Any]
    """(n, R, ...), what decides what they buy"""
    oracle: Floats
    """(n, R), the largest expected margin of any set"""


class ChoiceProblem(ABC):
    """A `Problem` of assortments; a subclass sets `spec`, says who comes, and what she buys."""

    spec: ChoiceSpec

    @abstractmethod
    def _start(self, streams: Streams) -> None: ...

    @abstractmethod
    def _users(self, count: int) -> Crowd: ...

    @abstractmethod
    def _sales(self, taste: npt.NDArray[Any], action: npt.NDArray[Any]) -> tuple[Floats, Floats]:
        """Chances of buying each product of sets (R, N), and its margins, both (R, N)."""

    @abstractmethod
    def _contest(self, replicas: int) -> Contest:
        """Of fixed sets, for one episode."""

    def _fixed(self, levels: Ints) -> npt.NDArray[Any]:
        """Sets (R, N) of a contest as actions."""
        return levels

    def reset(self, streams: Streams) -> None:
        """Start an episode, one replica for each stream."""
        R = len(streams)
        self._start(streams)
        self._luck = streams.uniforms("purchases")
        self._ahead = max(1, _VALUES_AHEAD // (R * int(np.prod(self.spec.context_shape))))
        self._sets_so_far, self._replicas = self._contest(R), R
        self._next = self._drawn = self._counted = 0
        self._late = [Delay(self.spec.delay, R) for _ in range(2)]

    def context(self) -> Floats:
        """The current users' contexts, `(R, *context_shape)`."""
        if self._next == self._drawn:
            self._count()
            self._crowd = self._users(self._ahead)
            self._next = self._counted = 0
            self._drawn = self._ahead
        context: Floats = self._crowd.context[self._next]
        return context

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Offer a set (R, N) to the current users and move on to the next."""
        offered = self.spec.validate(action, self._replicas)
        i = self._next
        self._next = i + 1
        chance, margin = self._sales(self._crowd.taste[i], offered)
        expected = np.vecdot(chance, margin)
        choice = (self._luck()[:, None] >= chance.cumsum(axis=1)).sum(axis=1)  # N is nothing
        reward = np.where(
            choice < self.spec.n_products,
            margin[rows(len(choice)), np.minimum(choice, self.spec.n_products - 1)],
            0.0,
        )
        oracle = np.maximum(self._crowd.oracle[i], expected)  # but for rounding it is
        reward, told = (late(x) for late, x in zip(self._late, (reward, 1.0 * choice), strict=True))
        return Step(reward, expected, oracle, oracle - expected, told)

    def best_fixed(self) -> npt.NDArray[Any]:
        """The set (R, N) with the largest expected total over the rounds so far."""
        self._count()
        return self._fixed(self._sets_so_far.best())

    def hindsight(self) -> float:
        """0: every user has a best set of her own."""
        return 0.0

    def _count(self) -> None:
        """Tell the contest of the rounds that it does not know yet."""
        if self._counted < self._next:
            self._sets_so_far.add(self._crowd.taste[self._counted : self._next])
            self._counted = self._next
