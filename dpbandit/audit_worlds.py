"""Neighbouring streams: the same public users, but for the one of a single round."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpbandit.arrays import Floats
from dpbandit.protocols import BanditSpec, ContextualSpec

_QUIET = 1e-6
"""Length of a quiet user's context, in units of the public bound."""
_LOUD = 10.0
"""How far beyond the public bounds a user is who does not keep them."""


@dataclass(frozen=True)
class World:
    """A stream of T users, all that they would answer included; the same for all runs."""

    context: Floats
    """(T, *context_shape)"""
    reward: Floats
    """(T, K): what each user would answer to every arm; K = 1 where actions are numbers"""

    def with_user(self, t: int, context: Floats, reward: Floats | float) -> "World":
        """The same stream with another user in round t; one reward: alike to every arm."""
        contexts, rewards = self.context.copy(), self.reward.copy()
        contexts[t], rewards[t] = context, reward
        return replace(self, context=contexts, reward=rewards)


@dataclass(frozen=True)
class Pair:
    """Two neighbouring streams."""

    note: str
    round: int
    """t, from 0: where they differ"""
    first: World
    second: World


def pairs(spec: BanditSpec, seed: int) -> Iterator[Pair]:
    """A handful of pairs that push mechanisms to their bounds.

    The differing user is in round 1, which touches every level of a tree, or in a random round.
    Her context goes from x to -x, with all coordinates alike or one alone, her reward from the
    highest to the lowest, or both turn; her answer may depend on the arm, so that a random arm does
    not hide her; she keeps the public bounds, or is far beyond them (an honest agent clips).
    Everybody else is quiet, with a context along x, too short to move a sum of x's, and actions
    that show what was learned in that direction; or an ordinary user.
    """
    rng = np.random.default_rng((seed, 7))
    x, y = (_at_the_bound(spec, v) for v in _directions(spec, rng))
    low, high = spec.reward_low, spec.reward_high
    later = int(rng.integers(1, max(2, spec.horizon - 1))) if spec.horizon > 2 else 0
    quiet, busy = _quiet(spec, x), _ordinary(spec, rng)
    far = high + _LOUD * (high - low)
    edge = _at_the_bound(spec, np.eye(spec.dim)[0])
    users: dict[str, tuple[tuple[Floats, Any], tuple[Floats, Any]]] = {
        "context from x to -x": ((x, high), (-x, high)),
        "context from e_1 to -e_1": ((edge, high), (-edge, high)),
        "reward from high to low": ((x, high), (x, low)),
        "context turned by 60 degrees, reward from high to low": ((x, high), (y, low)),
        "rewards high and low by turns of the arms, the other way round": (
            (x, np.where(np.arange(_arms(spec)) % 2, low, high)),
            (x, np.where(np.arange(_arms(spec)) % 2, high, low)),
        ),
        "context from x to -x beyond the bounds": ((_LOUD * x, far), (-_LOUD * x, far)),
    }
    for note, (one, two) in users.items():
        first, second = quiet.with_user(0, *one), quiet.with_user(0, *two)
        yield Pair(f"round 1, {note}", 0, first, second)
    one, two = users["context from x to -x"]
    where = f"round {later + 1}, context from x to -x"
    yield Pair(where, later, quiet.with_user(later, *one), quiet.with_user(later, *two))
    first, second = busy.with_user(0, *one), busy.with_user(0, *two)
    yield Pair("round 1, context from x to -x among ordinary users", 0, first, second)


def _directions(spec: BanditSpec, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """x along the diagonal (d,), and another direction at 60 degrees to it."""
    x = np.full(spec.dim, spec.dim**-0.5)
    if spec.dim == 1:
        return x, -x
    v = rng.standard_normal(spec.dim)
    v -= (v @ x) * x
    return x, 0.5 * x + 0.75**0.5 * v / np.linalg.norm(v)


def _at_the_bound(spec: BanditSpec, direction: Floats) -> Floats:
    """The longest public context in that direction, (*context_shape); all rows are alike."""
    size = float(np.linalg.norm(direction, ord=spec.context_order))
    return np.broadcast_to(spec.context_bound * direction / size, spec.context_shape).copy()


def _quiet(spec: BanditSpec, x: Floats) -> World:
    reward = min(max(0.0, spec.reward_low), spec.reward_high)
    context = np.broadcast_to(_QUIET * x, (spec.horizon, *x.shape)).copy()
    if isinstance(spec, ContextualSpec) and spec.shared:
        context[..., 1::2, :] *= -1  # rows apart, so that actions show a sign
    return World(context, np.full((spec.horizon, _arms(spec)), reward))


def _ordinary(spec: BanditSpec, rng: np.random.Generator) -> World:
    context = rng.standard_normal((spec.horizon, *spec.context_shape))
    context *= spec.context_bound / np.linalg.norm(
        context, ord=spec.context_order, axis=-1, keepdims=True
    )
    reward = rng.uniform(spec.reward_low, spec.reward_high, (spec.horizon, _arms(spec)))
    return World(context, reward)


def _arms(spec: BanditSpec) -> int:
    return spec.n_actions if isinstance(spec, ContextualSpec) else 1
