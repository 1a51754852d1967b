"""The bounds that a spec promises, and how often what its problem hands over lies beyond them.

Agents clip what they learn from to these bounds, so what lies beyond is not what was learned. The
count is a diagnostic of the simulator: made of raw data, not private, outside every certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import inf, prod
from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import InputError
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.experts import ExpertsSpec
from dpbandit.specs.protocols import BanditSpec, Spec, Step
from dpbandit.specs.returning import ReturningSpec

CLIPPED = (
    "clipped: the share of rounds whose context, datum or reward lay beyond the bounds that agents "
    "clip to; counted on raw data, so not private, and outside every certificate."
)
"""What is said below a table."""
_ROUNDING = 1e-6
"""Relative to a bound, or to the width of a range."""
_ROUNDS, _VALUES = 64, 1 << 15
"""Kept until they are looked at together, at most. Changes speed, never counts."""


@runtime_checkable
class Clips(Protocol):
    """A problem that clips data from outside before it shows them, and counts where it did."""

    def clipped(self) -> Floats:
        """The share of the rounds since `reset`, (R,), in which anything lay beyond a bound."""
        ...


@dataclass(frozen=True)
class Bound:
    """What one kind of array is held against, `(R, *shape)` in a round."""

    array: Callable[[Floats, Step], Any]
    """out of a round's context and step"""
    shape: tuple[int, ...]
    size: Callable[[Floats], Floats]
    """`(n, R, *shape)` -> (n, R), by which it is judged"""
    low: float
    high: float
    sentence: str
    """what is expected; the size that was found comes next"""
    told: bool = True
    """after the delay; contexts are shown at once"""


class Bounds:
    """Counts each replica's rounds with a context, a datum or a reward beyond its bound.

    Data and bounds in different units are refused: once one kind is beyond in more of a replica's
    `rounds`, those that are still to come among them, than the spec's `most_outside`.
    """

    def __init__(self, spec: Spec, replicas: int, rounds: int) -> None:
        self._bounds, self._delay, self._most = bounds_of(spec), spec.delay, spec.most_outside
        largest = replicas * max(prod(bound.shape) for bound in self._bounds)
        room = min(_ROUNDS, max(1, _VALUES // largest))
        self._kept = [np.empty((room, replicas, *bound.shape)) for bound in self._bounds]
        self._room, self._held, self._due, self._seen, self._rounds = room, 0, 1, 0, rounds
        self._beyond = np.zeros((len(self._bounds), replicas), np.int64)
        self._either = np.zeros(replicas, np.int64)
        self._first = [""] * len(self._bounds)

    def see(self, context: Floats, step: Step) -> None:
        """One more round. Small arrays are copied, for a problem may use its own again."""
        arrays = [bound.array(context, step) for bound in self._bounds]
        if self._room == 1:
            self._judge([array[None] for array in arrays])
            return
        for kept, array in zip(self._kept, arrays, strict=True):
            kept[self._held] = array
        self._held += 1
        if self._held == self._due:
            self._judge_kept()
            self._due = min(2 * self._due, self._room)

    def share(self) -> Floats:
        """Of the rounds of each replica those with anything beyond, (R,); asked after the last."""
        if self._held:
            self._judge_kept()
        return self._either / self._seen

    def _judge_kept(self) -> None:
        n, self._held = self._held, 0
        self._judge([kept[:n] for kept in self._kept])

    def _judge(self, arrays: list[Floats]) -> None:
        """The next n rounds of every bound, `(n, R, *shape)`."""
        before, self._seen = self._seen, self._seen + len(arrays[0])
        either = np.zeros((len(arrays[0]), len(self._either)), np.bool_)
        for kind, (bound, rounds) in enumerate(zip(self._bounds, arrays, strict=True)):
            with np.errstate(over="ignore", invalid="ignore"):
                sizes = bound.size(rounds)
            broken = ~((sizes >= bound.low) & (sizes <= bound.high))  # true where there is a NaN
            broken[: max(0, self._delay - before) if bound.told else 0] = False
            if not broken.any():
                continue
            if not self._first[kind]:
                i, r = np.argwhere(broken)[0]
                self._first[kind] = f"In round {before + i + 1}: {bound.sentence} {sizes[i, r]:g}"
            self._beyond[kind] += broken.sum(axis=0)
            share, either = self._beyond[kind].max() / self._rounds, either | broken
            if share > self._most:
                raise InputError(
                    f"{self._first[kind]}, and so far {100 * share:.3g} % of {self._rounds} rounds "
                    f"are beyond, more than most_outside={self._most:g}: widen the bounds of the "
                    "problem's spec, scale or clip its data, or allow more to be clipped."
                )
        self._either += np.sum(either, axis=0)


def bounds_of(spec: Spec) -> list[Bound]:
    """Of rewards, and of contexts or else of data."""
    low, high = spec.reward_low, spec.reward_high
    slack = _ROUNDING * (high - low)
    found = [
        Bound(
            lambda context, step: step.reward,
            (),
            lambda rewards: rewards,
            low - slack,
            high + slack,
            f"Expected rewards in [{low:g}, {high:g}], got",
        )
    ]
    if isinstance(spec, BanditSpec):
        found.append(_contexts(spec))
    elif isinstance(spec, ReturningSpec):
        visit = _contexts(spec.visit)
        shown = replace(visit, array=lambda context, step: spec.shown(context))
        found.append(shown)
    elif isinstance(spec, ExpertsSpec):
        found.append(_losses(spec))
    elif isinstance(spec, ConvexSpec) and spec.feedback == "datum":
        found.append(_data(spec))
    return found


def _contexts(spec: BanditSpec) -> Bound:
    bound, order = spec.context_bound, spec.context_order

    def longest(contexts: Floats) -> Floats:
        lengths = norms(contexts, order)
        return lengths.reshape(*lengths.shape[:2], -1).max(axis=-1)

    return Bound(
        lambda context, step: context,
        spec.context_shape,
        longest,
        0.0,
        bound * (1 + _ROUNDING),
        f"Expected contexts of l_{order:g} norm at most context_bound={bound:g}, got",
        told=False,
    )


def _losses(spec: ExpertsSpec) -> Bound:
    return Bound(
        lambda context, step: step.datum,
        (spec.n_actions,),
        lambda losses: np.maximum(losses.max(axis=-1) - 1, -losses.min(axis=-1)),
        -inf,
        _ROUNDING,
        "Expected losses in [0, 1], got one beyond by",
    )


def _data(spec: ConvexSpec) -> Bound:
    loss = spec.loss

    def moved(data: Floats) -> Floats:
        flat = data.reshape(-1, *loss.datum_shape)
        away = np.abs(loss.admissible(flat) - flat)
        return away.reshape(*data.shape[:2], -1).max(axis=-1)

    return Bound(
        lambda context, step: step.datum,
        loss.datum_shape,
        moved,
        0.0,
        _ROUNDING * loss.datum_bound,
        f"Expected data that are admissible for {loss}, got one off by",
    )
