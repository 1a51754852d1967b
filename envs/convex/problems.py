"""Base class of convex problems, and adversaries that choose their losses.

An adversary is called once per round with the actions, and returns the losses' data::

    datum = adversary(action)                              (R, dim) -> (R, *datum_shape)

  oblivious            draws blocks ahead and ignores actions;
  adaptive             uses the actions of earlier rounds, x_1..x_{t-1};
  strongly adaptive    uses x_t, too. One-point bandit methods may have linear regret against these
                       adversaries, which are negative controls.

A `Course` returns the direction of round t, a unit vector e_t in the domain's span; a `Law` draws
users' data given e_t, with noise. The datum of users of `Corners` is a coordinate vector.
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
"""Function that draws data of n rounds, `(n, R, *datum_shape)`, given directions (n, R, dim)"""


def law(loss: Loss, streams: Streams, *, gap: float, size: float) -> Law:
    """Return the law of users' data for the family of `loss`."""
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
    raise InputError(
        f"Expected a loss with a known law of users, got loss={loss!r}: pass adversary=."
    )


def sphere(domain: Domain, normals: Floats) -> Floats:
    """Map normals, overwritten, to uniform unit vectors (..., dim) in the domain's span."""
    normals /= norms(normals)
    return domain.embedded(normals)


class Mixture:
    """Law of data origin + size (gap e_t + (1 - gap) v_t), e_t the direction, v_t uniform noise."""

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
        # data lie in a ball, up to rounding, so only other domains need clipping
        self._clip = isinstance(loss, Quadratic) and domain.inner_radius < domain.outer_radius
        self._normals = streams.normals("users", domain.affine_dim)

    def __call__(self, directions: Floats) -> Floats:
        """Draw data of the next n rounds, given their directions (n, R, dim)."""
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
    """Draw costs 0 or 1 of mean 1/2, or 1/2 - gap for the expert of the direction's least entry."""
    best = directions.argmin(axis=-1)[..., None]
    chance = 0.5 - gap * (rows(directions.shape[-1]) == best)
    return 1.0 * (uniforms.take(len(directions)) < chance)


class _Answers:
    """Law of users with uniform unit features v, noisy answers to <v, e_t>, e_t the direction.

    Labels (hinge, logistic) are the sign of <v, e_t>, flipped with probability (1 - gap) / 2; other
    answers are bound (gap <v, e_t> + (1 - gap) w) with w uniform on [-1, 1].
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
    """Draw users of ramp losses that are all 0 at x* = centre + size R e_t, R the bound of answers.

    Features v are uniform on the unit sphere of the domain's span, answers are <v, x* - centre> +
    (1 - gap) R w, w uniform on [0, 1], clipped to R; e_t is the round's direction.
    """
    count, R = len(directions), loss.bound
    features = sphere(loss.domain, normals.take(count))
    needed = size * R * np.vecdot(features, directions)
    answers = needed + (1 - gap) * R * uniforms.take(count)
    return loss.admissible(np.concatenate([features, answers[..., None]], axis=-1))


def _signs(gap: float, uniforms: Draws, directions: Floats) -> Floats:
    """Draw signs that are 1 with probability (1 + gap) / 2, else -1."""
    return np.where(uniforms.take(len(directions)) < (1 + gap) / 2, 1.0, -1.0)


Adversary: TypeAlias = Callable[[Floats], Floats]
"""Function that returns a round's data, `(R, *datum_shape)`, given its actions (R, dim)"""

_VALUES_AHEAD = 1 << 15
"""Number of values drawn at once, for all replicas; changes speed, never values"""

Course: TypeAlias = Callable[[int, int], Floats]
"""Function of (first, count) that returns directions of `count` rounds from round `first` on,
unit vectors in the domain's span, (count, R, dim)"""


class Oblivious:
    """Adversary that draws blocks of data ahead and ignores actions."""

    def __init__(self, course: Course, law: Law, values: int) -> None:
        self._course, self._law = course, law
        self._ahead = max(1, _VALUES_AHEAD // values)
        self._block: Floats = np.empty(0)
        self._first = self._next = self._drawn = 0

    def __call__(self, action: Floats) -> Floats:
        """Return the data of the next round, whatever the action."""
        if self._next == self._drawn:
            self._block = self._law(self._course(self._first, self._ahead))
            self._block.flags.writeable = False  # agents get views of it
            self._first, self._drawn, self._next = self._first + self._ahead, self._ahead, 0
        self._next += 1
        return self._block[self._next - 1]


def repeated(datum: Floats, action: Floats) -> Floats:
    """Return `datum`, whatever the action, as the adversary `partial(repeated, datum)` does."""
    return datum


class Adaptive:
    """Adversary whose direction points to the mean of earlier points, to raise losses there.

    With `strongly` it points to this round's point. In round 1, or from the centre, it is `first`.
    """

    def __init__(self, domain: Domain, first: Floats, law: Law, *, strongly: bool) -> None:
        self._domain, self._first, self._law, self._strongly = domain, first, law, strongly
        self._total = np.zeros_like(first)

    def __call__(self, action: Floats) -> Floats:
        """Return the round's data, then add the action to the mean."""
        away = action - self._domain.centre
        towards = away if self._strongly else self._total
        length = norms(towards)
        far = length > 1e-12
        direction = np.where(far, towards / np.where(far, length, 1.0), self._first)
        self._total = self._total + away
        return self._law(direction[None])[0]


class OffsetGuesser:
    """Adversary that sets the offset of `OffsetQuadratic` to a guess of the exploration's sign.

    The agent plays x = w + beta u, u = 1 or -1, its iterate w in the domain shrunk by beta. If x is
    outside the shrunken domain, or exactly beta inside its boundary, u is certain; elsewhere x
    jumps by 2 beta when u flips, while w changes much less. With `strongly` the offset is the guess
    in this round, which biases one-point estimates; else the guess in the round before, which is
    harmless.
    """

    def __init__(self, loss: OffsetQuadratic, replicas: int, *, strongly: bool) -> None:
        self._beta, self._strongly = loss.offset / (3 * loss.slope), strongly
        self._centre = loss.domain.centre[0]
        self._edge = loss.domain.inner_radius - self._beta  # of the shrunken domain
        self._before = np.full(replicas, self._centre)
        self._guess = np.ones(replicas)

    def __call__(self, action: Floats) -> Floats:
        """Return the guessed signs of the exploration, (R, 1)."""
        move, y = action[:, 0] - self._before, action[:, 0] - self._centre
        sign = np.where(np.abs(move) > self._beta, np.sign(move), self._guess)
        sign = np.where(np.abs(y) > self._edge + 1e-9, np.sign(y), sign)
        on_edge = np.abs(np.abs(y) - (self._edge - self._beta)) < 1e-9  # w there, u inwards
        sign = np.where(on_edge, -np.sign(y), sign)
        datum = sign if self._strongly else self._guess
        self._before, self._guess = action[:, 0].copy(), sign
        return datum[:, None].copy()


def constantly(direction: Floats, first: int, count: int) -> Floats:
    """Return `direction`, (R, dim), in every round, as the course `partial(constantly, e)` does."""
    return np.broadcast_to(direction, (count, *direction.shape))


class Switching:
    """Course that switches at evenly spaced rounds to directions uniform in the domain's span."""

    def __init__(
        self, domain: Domain, direction: Floats, streams: Streams, horizon: int, switches: int
    ) -> None:
        fresh = sphere(domain, streams.world.normals("switches", domain.affine_dim).take(switches))
        self._directions = np.concatenate([direction[None], fresh])
        self._horizon = horizon

    def __call__(self, first: int, count: int) -> Floats:
        """Return the directions of `count` rounds from round `first` on, (count, R, dim)."""
        segments = len(self._directions)
        segment = (first + rows(count)) * segments // self._horizon
        return self._directions[np.minimum(segment, segments - 1)]


class Drifting:
    """Course around a random circle in the domain's span, `turns` times in `horizon` rounds."""

    def __init__(
        self, domain: Domain, direction: Floats, streams: Streams, horizon: int, turns: float
    ) -> None:
        other = domain.embedded(streams.world.normals("drift", domain.affine_dim)())
        other = other - np.vecdot(other, direction)[:, None] * direction
        length = norms(other)
        # in one dimension there is no second direction: then e_t = cos e swings through 0
        other = np.where(length > 1e-9, other / np.where(length > 1e-9, length, 1.0), 0.0)
        self._pair, self._pace = (direction, other), 2 * np.pi * turns / horizon

    def __call__(self, first: int, count: int) -> Floats:
        """Return the directions of `count` rounds from round `first` on, (count, R, dim)."""
        angle = (self._pace * (first + rows(count)))[:, None, None]
        return np.cos(angle) * self._pair[0] + np.sin(angle) * self._pair[1]


@dataclass(frozen=True)
class Corners:
    """Factory of adversaries whose data are independent, random coordinate vectors.

    They fit losses on a simplex whose datum is a point of the simplex, such as `Quadratic`.
    """

    chances: tuple[float, ...]
    """probabilities of the first corners, with sum 1; other corners have probability 0"""

    def __post_init__(self) -> None:
        if min(self.chances, default=-1.0) < 0 or abs(sum(self.chances) - 1) > 1e-9:
            raise InputError(f"Expected chances={self.chances} >= 0 to add up to 1.")

    def __call__(self, loss: Loss, streams: Streams, horizon: int) -> Adversary:
        """Return the adversary of one episode."""
        N, R = loss.domain.dim, len(streams)
        fitting = isinstance(loss.domain, Simplex) and loss.datum_shape == (N,)
        if not fitting or len(self.chances) > N:
            raise InputError(
                f"Expected a loss of points of a simplex with {len(self.chances)} corners or more, "
                f"got {loss}."
            )
        upto, uniforms = np.cumsum(self.chances)[:-1], streams.uniforms("corners")
        users = partial(_corners, upto, N, uniforms)
        return Oblivious(partial(constantly, np.zeros((R, N))), users, R * N)


def _corners(upto: Floats, dim: int, uniforms: Draws, directions: Floats) -> Floats:
    """Draw coordinate vectors, given cumulative probabilities `upto` of all but the last one."""
    chosen = np.searchsorted(upto, uniforms.take(len(directions)), side="right")
    return np.eye(dim)[chosen]


_EXACT_TOLERANCE = 1e-9
"""Largest tolerated distance from a point to a domain with exact projection, in outer radii"""
_NUMERICAL_TOLERANCE = 1e-6
"""Largest tolerated distance from a point to a domain without projection, in outer radii"""


class ConvexProblem(ABC):
    """A `Problem` with a convex loss; subclasses set `spec` and make an adversary in `_start`.

    In every round the points of all replicas are tested: a point outside the domain raises
    `InputError` and is not projected, as the loss's constants do not hold there. Points of the
    inner ball around the centre skip the full test, which saves time.

    `Step.regret` sums to the total loss; `hindsight` is minus the best fixed point's total loss.
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
        allowed = _EXACT_TOLERANCE if domain.has_projection else _NUMERICAL_TOLERANCE
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
        # (R, 1) zeros with feedback "value"; else the datum observed last, zeros before any
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
        """Return the comparator's reward and the regret in this round, both (R,)."""
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
        """Return `action` as points (R, dim); raise `InputError` unless all lie in the domain."""
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
