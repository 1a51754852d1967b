"""What all convex problems share: a loss, somebody who chooses its data, the best in hindsight."""

from abc import ABC, abstractmethod
from collections import deque
from typing import Any

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, Streams, reals
from dpbandit.envs.convex.adversaries import Adversary
from dpbandit.envs.dynamics import Delay
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.protocols import Step

_OUTSIDE = 1e-9
"""How far outside the domain a point may be, over R: rounding."""
_OUTSIDE_APPROXIMATELY = 1e-6
"""The same where points are found by Frank-Wolfe and membership is tested numerically."""


class ConvexProblem(ABC):
    """A `Problem` with a convex loss; a subclass says who chooses the data.

    Subclasses set `spec` and make an episode's adversary in `_start`. Every round costs one test of
    membership for all replicas at once: a point outside the domain is refused, not moved, for
    there the constants hold no longer. Points of the ball of radius r around the centre pass
    without a closer look, which on a ball costs 3 of about 10 microseconds at R = 64.

    The sum of `Step.regret` is the sum of the losses; `hindsight` brings the comparator.
    """

    spec: ConvexSpec

    @abstractmethod
    def _start(self, streams: Streams) -> Adversary: ...

    def reset(self, streams: Streams) -> None:
        """Start an episode, one replica for each stream."""
        R, loss = len(streams), self.spec.loss
        self._adversary = self._start(streams)
        self._comparator = loss.comparator(R)
        self._late_reward = Delay(self.spec.delay, R)
        self._shape, self._oracle = (R, loss.domain.dim), np.zeros(R)
        domain = loss.domain
        allowed = _OUTSIDE if domain.has_projection else _OUTSIDE_APPROXIMATELY
        self._tolerance = allowed * domain.outer_radius
        self._ball: tuple[Floats, float] | None = None
        if domain.basis is None:
            self._ball = domain.centre, (domain.inner_radius + self._tolerance) ** 2
        self._context: Floats = np.zeros((R, *self.spec.context_shape))
        self._late_data: deque[Floats] = deque([np.zeros((R, *loss.datum_shape))] * self.spec.delay)
        for shared in (self._oracle, self._context):
            shared.flags.writeable = False
        self._best: tuple[Floats, Floats] | None = None

    def context(self) -> Floats:
        """(R, 1) zeros with feedback "value"; else the datum told last, zeros before any."""
        return self._context

    def step(self, action: AnyArray) -> Step:
        """Suffer the loss of `action` (R, N) and move on to the next round."""
        spec, x = self.spec, self._points(action)
        datum = self._adversary(x)
        suffered = spec.loss.value(x, datum)
        oracle, regret = self._against(datum, suffered)
        expected = -suffered
        reward = self._late_reward(expected) if spec.delay else expected
        if spec.feedback == "value":
            return Step(reward, expected, oracle, regret)
        if spec.delay:
            self._late_data.append(datum)
            datum = self._late_data.popleft()
        self._context = datum
        return Step(reward, expected, oracle, regret, datum)

    def _against(self, datum: Floats, suffered: Floats) -> tuple[Floats, Floats]:
        """The comparator's reward of the round, and the regret."""
        self._comparator.add(datum)
        self._best = None
        return self._oracle, suffered

    def best_fixed(self) -> Floats:
        """The point (R, N) with the least total loss over the rounds so far."""
        return self._in_hindsight()[0].copy()

    def hindsight(self) -> Floats:
        """Minus the total loss of the best fixed point, (R,)."""
        return -self._in_hindsight()[1]

    def _in_hindsight(self) -> tuple[Floats, Floats]:
        if self._best is None:
            self._best = self._comparator.best()
        return self._best

    def _points(self, action: Any) -> Floats:
        """`action` as points of the domain (R, N); raises `InputError` where it is anything
        else."""
        try:
            plain = isinstance(action, np.ndarray) and action.dtype == np.float64
            x = action if plain else reals(action)
        except ValueError:
            raise InputError(f"Expected points as actions, got {action!r}.") from None
        if x.shape != self._shape:
            raise InputError(f"Expected actions of shape {self._shape}, got {x.shape}.")
        domain = self.spec.loss.domain
        if self._ball is not None:
            y = x - self._ball[0]
            if np.maximum.reduce(np.vecdot(y, y)) <= self._ball[1]:
                return x
        inside = domain.contains(x, self._tolerance)  # False for what is no number
        if not inside.all():
            worst = x[int(np.argmin(inside))]
            raise InputError(f"Expected points of {domain}, got {worst}.")
        return x
