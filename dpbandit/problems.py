"""What all contextual problems share: a table of users drawn ahead, gathered by the actions.

A round's user is her context and her potential rewards for every arm. Nothing about her depends
on what was played, so whole blocks of users are drawn at once, every agent with the same seed
faces the same ones, and a round costs two gathers.
"""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from dpbandit.arrays import Floats, Ints, rows
from dpbandit.inputs import BadInput, shaped
from dpbandit.protocols import ContextualSpec, Step
from dpbandit.streams import Streams

_VALUES_AHEAD = 1 << 17
"""Table entries drawn at once, for all replicas. Changes speed, never values."""


class Users(NamedTuple):
    """n rounds of users for R replicas and K arms."""

    context: Floats
    """(n, R, *context_shape)"""
    mean: Floats
    """(n, R, K), the expected reward of each arm"""
    reward: Floats
    """(n, R, K), the reward she would give for each arm"""


class Delay:
    """Hands out rewards `rounds` later, and 0 before there are any."""

    def __init__(self, rounds: int, replicas: int) -> None:
        self._queue: deque[Floats] = deque(np.zeros((rounds, replicas)))

    def __call__(self, reward: Floats) -> Floats:
        """The reward of this round in, that of `rounds` ago out."""
        self._queue.append(reward)
        return self._queue.popleft()


class ContextualProblem(ABC):
    """A `Problem` with finitely many arms; a subclass says how users are drawn.

    Subclasses set `spec`, prepare an episode in `_start` and draw blocks of users in `_users`.
    """

    spec: ContextualSpec

    @abstractmethod
    def _start(self, streams: Streams) -> None: ...

    @abstractmethod
    def _users(self, count: int) -> Users: ...

    def reset(self, streams: Streams) -> None:
        """Start an episode, one replica for each stream."""
        R, K = len(streams), self.spec.n_actions
        self._start(streams)
        self._drawn, self._next = 0, 0
        self._ahead = max(1, _VALUES_AHEAD // (R * (self._values_per_user() + K)))
        self._offset = rows(R) * K
        self._totals = np.zeros((R, K))
        self._delay = Delay(self.spec.delay, R)

    def context(self) -> Floats:
        """The current users' contexts, (R, *context_shape)."""
        if self._next == self._drawn:
            users = self._users(self._ahead)
            self._context, self._next, self._drawn = users.context, 0, len(users.context)
            self._table = users
            self._best = users.mean.max(axis=2)
        context: Floats = self._context[self._next]
        return context

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Serve the current users with arm `action` (R,) and move on to the next."""
        action = arms_in_range(action, len(self._offset), self.spec.n_actions)
        i = self._next
        self._next = i + 1
        chosen = self._offset + action
        mean = self._table.mean[i]
        self._totals += mean
        expected, oracle = mean.take(chosen), self._best[i]
        reward = self._table.reward[i].take(chosen)
        if self.spec.delay:
            reward = self._delay(reward)
        return Step(reward, expected, oracle, oracle - expected)

    def best_fixed(self) -> Ints:
        """The arm (R,) with the largest expected total over the rounds so far."""
        best: Ints = self._totals.argmax(axis=1)
        return best

    def hindsight(self) -> float:
        """0: every context has a best arm of its own."""
        return 0.0

    def _values_per_user(self) -> int:
        return int(np.prod(self.spec.context_shape))


def prices_in_range(action: Any, replicas: int, low: float, high: float) -> Floats:
    """`action` as floats (R,); raises `BadInput` where it is anything else or out of range."""
    price = _numbers(action, replicas)
    fine = (price >= low) & (price <= high)
    if not fine.all():
        raise BadInput(f"Expected prices in [{low}, {high}], got {price[~fine][0]}.")
    return price


def arms_in_range(action: Any, replicas: int, n_actions: int) -> Ints:
    """`action` as whole numbers (R,) in [0, K); raises `BadInput` where it is anything else."""
    given = action
    if not (isinstance(action, np.ndarray) and action.dtype == np.int64):
        numbers = given = _numbers(action, replicas)
        fine = np.isfinite(numbers) & (numbers == np.floor(numbers))
        if not fine.all():
            raise BadInput(f"Expected whole numbers as actions, got {numbers[~fine][0]}.")
        action = numbers.clip(-1, n_actions).astype(np.int64)
    shaped("actions", action, (replicas,))
    if action.view(np.uint64).max() >= n_actions:  # negative numbers are huge
        wrong = given[(given < 0) | (given >= n_actions)][0]
        raise BadInput(f"Expected actions in [0, {n_actions}), got {wrong:g}.")
    chosen: Ints = action
    return chosen


def _numbers(action: Any, replicas: int) -> Floats:
    try:
        numbers = np.asarray(action, dtype=np.float64)
    except (TypeError, ValueError):
        raise BadInput(f"Expected numbers as actions, got {type(action).__name__}.") from None
    shaped("actions", numbers, (replicas,))
    return numbers
