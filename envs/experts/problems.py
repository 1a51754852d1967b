"""What all experts' problems share: somebody who chooses the losses, the best in hindsight."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, pick
from dpbandit.base.random_streams import Streams
from dpbandit.envs.delay import Delay
from dpbandit.envs.experts.adversaries import Adversary
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import Step


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

    def step(self, action: npt.NDArray[Any]) -> Step:
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
