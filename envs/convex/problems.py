"""Base class of convex problems, adversaries, and the best point in hindsight.

Where the losses of a convex problem come from: fixed in advance, or chosen after watching.

An adversary is asked once a round, with the actions it may look at or not::

    datum = adversary(action)                              (R, N) -> (R, *datum_shape)

  oblivious            draws blocks ahead and never looks;
  adaptive             looks at the actions of the rounds before, x_1..x_{t-1};
  strongly adaptive    looks at x_t too. One-point bandit methods do not survive these: they are
                       for negative controls only.

A `Course` gives the direction of the round, a unit vector e_t of V; a `Law` says what data users
bring given e_t, with noise of its own. Corners are users whose datum is a unit vector: customers
who each choose one of N things.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from dpbandit.base import AnyArray, Draws, Floats, InputError, Streams, norms, reals, rows
from dpbandit.domains import Simplex
from dpbandit.domains.domain import Domain
from dpbandit.envs.nonstationarity import Delay
from dpbandit.losses.decisions import (
    Experts,
    Kink,
    Linear,
    OffsetQuadratic,
    Quadratic,
    TiltedQuadratic,
)
from dpbandit.losses.loss import Loss
from dpbandit.losses.predictions import Hinge, Logistic, Prediction, Ramp
from dpbandit.specs import ConvexSpec, Step

Law: TypeAlias = Callable[[Floats], Floats]
"""Directions (n, R, N) -> n rounds of admissible data `(n, R, *datum_shape)`."""


def law(loss: Loss, streams: Streams, *, gap: float, size: float) -> Law:
    """The law of users' data for a family of losses."""
    if isinstance(loss, Experts):
        return partial(_costs, min(gap, 0.5), streams.uniforms("users", loss.domain.dim))
    if isinstance(loss, Ramp):
        normals = streams.normals("users", loss.domain.affine_dim)
        return partial(_satisfiable, loss, gap, size, normals, streams.uniforms("answers"))
    if isinstance(loss, Prediction):
        return _Answers(loss, streams, gap)
    if isinstance(loss, OffsetQuadratic):
        return partial(_signs, gap, streams.uniforms("users", 1))
    if isinstance(loss, Linear | Quadratic | TiltedQuadratic | Kink):
        return Mixture(loss, streams, gap, size)
    raise InputError(f"No users are known for loss={loss!r}: give an adversary of your own.")


def sphere(domain: Domain, normals: Floats) -> Floats:
    """Normals (..., k), overwritten -> points uniform on the unit sphere of V, (..., N)."""
    normals /= norms(normals)
    return domain.embedded(normals)


class Mixture:
    """origin + size (gap e_t + (1 - gap) v_t), v_t uniform on the unit sphere of V."""

    def __init__(self, loss: Loss, streams: Streams, gap: float, size: float) -> None:
        domain = loss.domain
        self._loss, self._gap = loss, gap
        self._origin: Floats | None = None
        if isinstance(loss, Quadratic | Kink):
            self._origin = domain.centre
            size *= loss.spread if isinstance(loss, Kink) else domain.outer_radius
        elif isinstance(loss, TiltedQuadratic):
            size *= loss.tilt
        self._size = size
        # in a ball there is nothing to clip but rounding
        self._clip = isinstance(loss, Quadratic) and domain.inner_radius < domain.outer_radius
        self._normals = streams.normals("users", domain.affine_dim)

    def __call__(self, directions: Floats) -> Floats:
        """Data of the next n rounds."""
        constant = directions.strides[0] == 0
        data: Floats = self._size * self._gap * (directions[:1] if constant else directions)
        if self._origin is not None:
            data = data + self._origin
        if self._gap < 1:
            v = sphere(self._loss.domain, self._normals.take(len(directions)))
            v *= self._size * (1 - self._gap)
            v += data
            data = v
        elif constant:
            data = np.repeat(data, len(directions), axis=0)
        if not self._clip:
            return data
        shape = data.shape
        return self._loss.admissible(data.reshape(-1, shape[-1])).reshape(shape)


def _costs(gap: float, uniforms: Draws, directions: Floats) -> Floats:
    """Each expert's cost is 1 with probability 1/2, 1/2 - gap for the one where e_t is least."""
    best = directions.argmin(axis=-1)[..., None]
    chance = 0.5 - gap * (rows(directions.shape[-1]) == best)
    return 1.0 * (uniforms.take(len(directions)) < chance)


class _Answers:
    """Features v uniform on the sphere of V; answers by a truth e_t, in part noise.

    Labels (hinge, logistic) are the sign of <v, e_t>, flipped with probability (1 - gap) / 2;
    others are bound (gap <v, e_t> + (1 - gap) w) with w uniform on [-1, 1].
    """

    def __init__(self, loss: Prediction, streams: Streams, gap: float) -> None:
        self._loss, self._gap = loss, gap
        self._labels = isinstance(loss, Hinge | Logistic)
        self._normals = streams.normals("users", loss.domain.affine_dim)
        self._uniforms = streams.uniforms("answers")

    def __call__(self, directions: Floats) -> Floats:
        count, gap = len(directions), self._gap
        features = sphere(self._loss.domain, self._normals.take(count))
        score, uniforms = np.vecdot(features, directions), self._uniforms.take(count)
        if self._labels:
            answers = np.where(uniforms < (1 - gap) / 2, -1.0, 1.0) * np.copysign(1.0, score)
        else:
            answers = self._loss.bound * (gap * score + (1 - gap) * (2 * uniforms - 1))
        return self._loss.admissible(np.concatenate([features, answers[..., None]], axis=-1))


def _satisfiable(
    loss: Ramp, gap: float, size: float, normals: Draws, uniforms: Draws, directions: Floats
) -> Floats:
    """Features v uniform on the sphere of V; no loss at x* = centre + size R e_t.

    Answers are <v, x* - centre> + (1 - gap) R w, w uniform on [0, 1], clipped to R.
    """
    count, R = len(directions), loss.bound
    features = sphere(loss.domain, normals.take(count))
    needed = size * R * np.vecdot(features, directions)
    answers = needed + (1 - gap) * R * uniforms.take(count)
    return loss.admissible(np.concatenate([features, answers[..., None]], axis=-1))


def _signs(gap: float, uniforms: Draws, directions: Floats) -> Floats:
    """Fair signs, or 1 with gap = 1."""
    return np.where(uniforms.take(len(directions)) < (1 + gap) / 2, 1.0, -1.0)


Adversary: TypeAlias = Callable[[Floats], Floats]
"""The round's actions (R, N) -> its data `(R, *datum_shape)`."""

_VALUES_AHEAD = 1 << 15
"""Numbers drawn at once, for all replicas. Changes speed, never values."""

Course: TypeAlias = Callable[[int, int], Floats]
"""`first`, `count` -> directions of rounds first, ..., first + count - 1, fixed in advance, as unit
vectors of V, (count, R, N)."""


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
        return self._block[self._next - 1]


def repeated(datum: Floats) -> Adversary:
    """The same datum in every round."""
    datum.flags.writeable = False  # agents are shown it
    return partial(_repeated, datum)


def _repeated(datum: Floats, action: Floats) -> Floats:
    return datum


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


def constantly(direction: Floats) -> Course:
    """The same direction in every round."""
    return partial(_constantly, direction)


def _constantly(direction: Floats, first: int, count: int) -> Floats:
    return np.broadcast_to(direction, (count, *direction.shape))


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


@dataclass(frozen=True)
class Corners:
    """A recipe for adversaries, see `scenarios`: e_i with probability `chances[i]`, independently.

    For losses on a simplex whose datum is a point of it, such as `Quadratic`.
    """

    chances: tuple[float, ...]
    """of the first corners, adding up to 1; 0 for the others"""

    def __post_init__(self) -> None:
        if min(self.chances, default=-1.0) < 0 or abs(sum(self.chances) - 1) > 1e-9:
            raise InputError(f"Expected chances={self.chances} >= 0 to add up to 1.")

    def __call__(self, loss: Loss, streams: Streams, horizon: int) -> Adversary:
        """One episode's adversary."""
        N, R = loss.domain.dim, len(streams)
        fitting = isinstance(loss.domain, Simplex) and loss.datum_shape == (N,)
        if not fitting or len(self.chances) > N:
            raise InputError(
                f"Expected a loss of points of a simplex with {len(self.chances)} corners or more, "
                f"got {loss}."
            )
        upto, uniforms = np.cumsum(self.chances)[:-1], streams.uniforms("corners")
        users = partial(_corners, upto, N, uniforms)
        return Oblivious(constantly(np.zeros((R, N))), users, R * N)


def _corners(upto: Floats, dim: int, uniforms: Draws, directions: Floats) -> Floats:
    """Unit vectors of R^N by inverting the distribution function."""
    chosen = np.searchsorted(upto, uniforms.take(len(directions)), side="right")
    return np.eye(dim)[chosen]


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
        # (R, 1) zeros with feedback "value"; else the datum told last, zeros before any
        return self._context

    def step(self, action: AnyArray) -> Step:
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
        return self._in_hindsight()[0].copy()

    def hindsight(self) -> Floats:
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
