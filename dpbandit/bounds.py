"""The bounds that a spec promises, and how often what its problem hands over lies beyond them.

Agents clip what they learn from to these bounds, so what lies beyond is not what was learned. The
count is a diagnostic of the simulator: made of raw data, not private, outside every certificate.
"""

from collections.abc import Callable
from dataclasses import dataclass
from math import inf, prod, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.arrays import Floats, norms
from dpbandit.convex.spec import ConvexSpec
from dpbandit.experts.spec import ExpertsSpec
from dpbandit.inputs import BadInput
from dpbandit.protocols import BanditSpec, Spec, Step

MOST_BEYOND = 0.01
"""The share of rounds that may break the spec: where more do, one of the two is in other units."""
_ROUNDING = 1e-6
"""Relative to a bound, or to the width of a range."""
_ROUNDS, _VALUES = 64, 1 << 15
"""Kept until they are looked at together, at most. Changes speed, never counts."""


@dataclass(frozen=True)
class Bound:
    """What one kind of array is held against, (R, *shape) in a round."""

    array: Callable[[Floats, Step], Any]
    """out of a round's context and step"""
    shape: tuple[int, ...]
    size: Callable[[Floats], Floats]
    """(n, R, *shape) -> (n, R), by which it is judged"""
    low: float
    high: float
    sentence: str
    """what is expected; the size that was found comes next"""
    told: bool = True
    """after the delay; contexts are shown at once"""


class Bounds:
    """Counts each replica's rounds with a context, a datum or a reward beyond its bound.

    A problem that breaks its spec in more than a hundredth of the rounds is refused: after the last
    one, or as soon as it is plain, by three standard errors.
    """

    def __init__(self, spec: Spec, replicas: int) -> None:
        self._bounds, self._delay, self._rounds = bounds_of(spec), spec.delay, 0
        largest = replicas * max(prod(bound.shape) for bound in self._bounds)
        room = min(_ROUNDS, max(1, _VALUES // largest))
        self._kept = [np.empty((room, replicas, *bound.shape)) for bound in self._bounds]
        self._room, self._held, self._due = room, 0, 1
        self._beyond, self._first = np.zeros(replicas, np.int64), ""

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
        """Of the rounds of each replica, (R,); to be asked after the last one."""
        if self._held:
            self._judge_kept()
        self._refuse_more_than(MOST_BEYOND)
        return self._beyond / self._rounds

    def _judge_kept(self) -> None:
        n, self._held = self._held, 0
        self._judge([kept[:n] for kept in self._kept])

    def _judge(self, arrays: list[Floats]) -> None:
        """The next n rounds of every bound, (n, R, *shape)."""
        before, self._rounds = self._rounds, self._rounds + len(arrays[0])
        either: npt.NDArray[np.bool_] | bool = False
        for bound, rounds in zip(self._bounds, arrays, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                sizes = bound.size(rounds)
            broken = ~((sizes >= bound.low) & (sizes <= bound.high))  # true where there is a NaN
            broken[: max(0, self._delay - before) if bound.told else 0] = False
            either = either | broken
            if not self._first and broken.any():
                i, r = np.argwhere(broken)[0]
                self._first = f"In round {before + i + 1}: {bound.sentence} {sizes[i, r]:g}"
        if np.any(either):
            self._beyond += np.sum(either, axis=0)
            self._refuse_more_than(MOST_BEYOND + 3 * sqrt(MOST_BEYOND / self._rounds))

    def _refuse_more_than(self, most: float) -> None:
        share = self._beyond.mean() / self._rounds
        if share > most:
            raise BadInput(
                f"{self._first}; so far {share:.2g} of all rounds break the problem's spec: widen "
                "its bounds, or scale or clip the data in the problem."
            )


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
