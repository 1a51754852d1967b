"""Where the losses of a convex problem come from: fixed in advance, or chosen after watching.

An adversary is asked once a round, with the actions it may look at or not::

    datum = adversary(action)                              (R, N) -> (R, *datum_shape)

  oblivious            draws blocks ahead and never looks;
  adaptive             looks at the actions of the rounds before, x_1..x_{t-1};
  strongly adaptive    looks at x_t too. One-point bandit methods do not survive these: they are
                       for negative controls only.

A `Course` gives the direction of the round, a unit vector e_t of V; a `user_laws.Law` turns
directions into users' data, with noise of its own.
"""

from collections.abc import Callable
from typing import Protocol, TypeAlias

import numpy as np

from dpbandit.base.arrays import Floats, norms, rows
from dpbandit.base.random_streams import Streams
from dpbandit.domains.domain import Domain
from dpbandit.envs.convex.user_laws import Law, sphere
from dpbandit.losses.quadratic import OffsetQuadratic

Adversary: TypeAlias = Callable[[Floats], Floats]
"""The round's actions (R, N) -> its data `(R, *datum_shape)`."""

_VALUES_AHEAD = 1 << 15
"""Numbers drawn at once, for all replicas. Changes speed, never values."""


class Course(Protocol):
    """The directions of rounds first, ..., first + count - 1: (count, R, N) unit vectors of V."""

    def __call__(self, first: int, count: int) -> Floats:
        """Data of `count` rounds from `first`, fixed in advance."""
        ...


class Oblivious:
    """Blocks of data, drawn ahead: a round costs a look-up."""

    def __init__(self, course: Course, law: Law, values: int) -> None:
        self._course, self._law = course, law
        self._ahead = max(1, _VALUES_AHEAD // values)
        self._block: Floats = np.empty(0)
        self._first = self._next = self._drawn = 0

    def __call__(self, action: Floats) -> Floats:
        """The round's data, whatever the action."""
        if self._next == self._drawn:
            self._block = self._law(self._course(self._first, self._ahead))
            self._block.flags.writeable = False  # agents are shown it
            self._first, self._drawn, self._next = self._first + self._ahead, self._ahead, 0
        self._next += 1
        datum: Floats = self._block[self._next - 1]
        return datum


class Repeated:
    """The same datum in every round."""

    def __init__(self, datum: Floats) -> None:
        self._datum = datum
        self._datum.flags.writeable = False  # agents are shown it

    def __call__(self, action: Floats) -> Floats:
        """The datum that answers `action`."""
        return self._datum


class Adaptive:
    """e_t points from the centre to the mean of x_1..x_{t-1}: losses rise where the agent went.

    `strongly` to x_t itself. e_1 is the first direction, and so is any that has no length.
    """

    def __init__(self, domain: Domain, first: Floats, law: Law, *, strongly: bool) -> None:
        self._domain, self._first, self._law, self._strongly = domain, first, law, strongly
        self._total = np.zeros_like(first)

    def __call__(self, action: Floats) -> Floats:
        """The round's data; then remembers the action."""
        away = action - self._domain.centre
        towards = away if self._strongly else self._total
        length = norms(towards)
        far = length > 1e-12
        direction = np.where(far, towards / np.where(far, length, 1.0), self._first)
        self._total = self._total + away
        return self._law(direction[None])[0]


class OffsetGuesser:
    """The offset of `OffsetQuadratic` from the sign of the direction the agent explores.

    The sign is guessed from released points x = w + beta u alone, w in the domain shrunk by beta.
    Beyond the edge of that, or exactly beta inside of it, u shows; elsewhere x_t - x_{t-1} jumps by
    2 beta when it flips, and w moves much less. `strongly` it is that of this round, which breaks
    one-point estimates; else that of the round before, which does no harm.
    """

    def __init__(self, loss: OffsetQuadratic, replicas: int, *, strongly: bool) -> None:
        self._beta, self._strongly = loss.offset / (3 * loss.slope), strongly
        self._centre = loss.domain.centre[0]
        self._edge = loss.domain.inner_radius - self._beta  # of the shrunken domain
        self._before = np.full(replicas, self._centre)
        self._guess = np.ones(replicas)

    def __call__(self, action: Floats) -> Floats:
        """The signs (R, 1)."""
        move, y = action[:, 0] - self._before, action[:, 0] - self._centre
        sign = np.where(np.abs(move) > self._beta, np.sign(move), self._guess)
        sign = np.where(np.abs(y) > self._edge + 1e-9, np.sign(y), sign)
        on_edge = np.abs(np.abs(y) - (self._edge - self._beta)) < 1e-9  # w there, u inwards
        sign = np.where(on_edge, -np.sign(y), sign)
        datum = sign if self._strongly else self._guess
        self._before, self._guess = action[:, 0].copy(), sign
        return datum[:, None].copy()


class Constant:
    """The same direction in every round."""

    def __init__(self, direction: Floats) -> None:
        self._direction = direction

    def __call__(self, first: int, count: int) -> Floats:
        """The direction, `count` times."""
        return np.broadcast_to(self._direction, (count, *self._direction.shape))


class Switching:
    """`switches` changes at evenly spaced rounds; the directions after them are uniform on V."""

    def __init__(
        self, domain: Domain, direction: Floats, streams: Streams, horizon: int, switches: int
    ) -> None:
        fresh = sphere(domain, streams.world.normals("switches", domain.affine_dim).take(switches))
        self._directions = np.concatenate([direction[None], fresh])
        self._horizon = horizon

    def __call__(self, first: int, count: int) -> Floats:
        """Those of the rounds' segments."""
        segments = len(self._directions)
        which = (first + rows(count)) * segments // self._horizon
        return self._directions[np.minimum(which, segments - 1)]


class Drifting:
    """A circle in V, travelled `turns` times in `horizon` rounds."""

    def __init__(
        self, domain: Domain, direction: Floats, streams: Streams, horizon: int, turns: float
    ) -> None:
        other = domain.embedded(streams.world.normals("drift", domain.affine_dim)())
        other = other - np.vecdot(other, direction)[:, None] * direction
        length = norms(other)
        # in one dimension there is no other direction: then a swing through 0
        other = np.where(length > 1e-9, other / np.where(length > 1e-9, length, 1.0), 0.0)
        self._pair, self._pace = (direction, other), 2 * np.pi * turns / horizon

    def __call__(self, first: int, count: int) -> Floats:
        """cos e + sin e'."""
        angle = (self._pace * (first + rows(count)))[:, None, None]
        return np.cos(angle) * self._pair[0] + np.sin(angle) * self._pair[1]
