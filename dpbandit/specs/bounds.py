"""Data from outside, held against public bounds: what lies beyond is counted, said, and refused.

A bound is public or worth nothing, so none is ever read off the data. One that does not fit is no
breach of privacy, since agents clip, but clipped data teach little: ages from 20 to 60 under a
bound of 1 are all alike. The count is a diagnostic of the simulator: made of raw data, not
private, outside every certificate.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np

from dpbandit.base import Bools, Floats, InputError, Ints, inside
from dpbandit.specs.protocols import ROUNDING, Spec, Step

CLIPPED = (
    "clipped: the share of rounds whose context, datum or reward lay beyond the bounds that agents "
    "clip to; counted on raw data, so not private, and outside every certificate."
)
"""What is said below a table."""
_ROUNDS, _VALUES = 64, 1 << 15
"""Kept until they are looked at together, at most. Changes speed, never counts."""


@runtime_checkable
class Clips(Protocol):
    """A problem that clips data from outside before it shows them, and counts where it did."""

    def clipped(self) -> Floats:
        """The share of the rounds since `reset`, (R,), in which anything lay beyond a bound."""
        ...


@dataclass(frozen=True)
class Outside:
    """Counts of data outside their public bounds.

    These are exact counts of private data: no certificate covers them, nor a refusal or a warning
    that follows from them.

    >>> print(Outside(contexts=3, rewards=0, users=1000))
    3 of 1000 contexts (0.3 %) and 0 rewards (0 %) outside their bounds
    """

    contexts: int
    rewards: int
    users: int

    def __bool__(self) -> bool:
        return bool(self.contexts or self.rewards)

    def __str__(self) -> str:
        contexts, rewards = (_percent(n, self.users) for n in (self.contexts, self.rewards))
        return (
            f"{self.contexts} of {self.users} contexts ({contexts}) and {self.rewards} rewards "
            f"({rewards}) outside their bounds"
        )


class Tally:
    """Counts one kind of data in R streams of `users`, each of which may have a share beyond.

    Raises `InputError` once more than `most_outside` of a stream's `users`, those that are still
    to come among them, lie beyond; where it `warns`, says the first that do.
    """

    def __init__(
        self,
        kind: str,
        where: str,
        advice: str,
        *,
        users: int,
        most_outside: float,
        warns: bool = True,
    ) -> None:
        inside("most_outside", most_outside, 0, 1, ends=True)
        self._kind, self._where, self._advice = kind, where, advice
        self._users, self._most, self._warns = users, most_outside, warns
        self._seen = self._first = 0
        self.counts: Ints = np.zeros(1, np.int64)
        """(R,)"""

    def add(self, beyond: Bools, sizes: Floats) -> None:
        """`beyond` (n, R): which of the next n users' data, of such `sizes` (n, R), do not fit."""
        before, self._seen = self._seen, self._seen + len(beyond)
        if not beyond.any():
            return
        new, self._first = (
            not self._first,
            self._first or before + 1 + int(np.argwhere(beyond)[0, 0]),
        )
        self.counts = self.counts + beyond.sum(axis=0)
        count, found = int(self.counts.max()), sizes[beyond]
        largest = float(found[np.abs(found).argmax()])  # NaN if there is one
        if count / self._users > self._most:
            raise InputError(
                f"Expected at most {100 * self._most:.3g} % of {self._users} {self._kind} "
                f"{self._where}, got {count} of {self._seen} "
                f"({_percent(count, self._seen)}), the first is number {self._first}, "
                f"such as {largest:.4g}: {self._advice}, or allow more to be clipped by "
                "most_outside=."
            )
        if new and self._warns:
            share = _percent(count, self._seen)
            warnings.warn(
                f"{count} of {self._seen} {self._kind} ({share}) lie {self._where}, such as "
                f"{largest:.4g}: private agents clip them.",
                stacklevel=2,
            )


class Bounds:
    """Counts each replica's rounds with a context, a datum or a reward beyond the spec's bounds.

    More of one kind than the spec's `most_outside` is refused, as a `Tally` does.

    Args:
        spec: whose bounds they are.
        replicas: R.
        rounds: that are to come, of each replica.
        at_door: each round is judged as it comes, with a warning of the first beyond; rewards are
            not late there. Else small arrays are copied, and judged several at a time.
    """

    def __init__(self, spec: Spec, replicas: int, rounds: int, *, at_door: bool = False) -> None:
        self._bounds = spec.bounds()
        tally = partial(Tally, users=rounds, most_outside=spec.most_outside, warns=at_door)
        self._tallies = [tally(bound.kind, bound.where, bound.advice) for bound in self._bounds]
        largest = replicas * max(prod(bound.shape) for bound in self._bounds)
        self._room = 1 if at_door else min(_ROUNDS, max(1, _VALUES // largest))
        self._buffers = [np.empty((self._room, replicas, *bound.shape)) for bound in self._bounds]
        self._delay, self._held, self._next_check, self._seen = (
            0 if at_door else spec.delay,
            0,
            1,
            0,
        )
        self._either = np.zeros(replicas, np.int64)

    def see(self, context: Floats, step: Step) -> None:
        """One more round; a problem may use its arrays again."""
        arrays = [bound.array(context, step) for bound in self._bounds]
        if self._room == 1:
            self._judge([array[None] for array in arrays])
            return
        for buffer, array in zip(self._buffers, arrays, strict=True):
            buffer[self._held] = array
        self._held += 1
        if self._held == self._next_check:
            self._judge_buffered()
            self._next_check = min(2 * self._next_check, self._room)

    def see_several(self, context: Floats, step: Step) -> list[Bools]:
        """Several more rounds, all arrays (n, R, ...); which lie beyond each bound, (n, R)."""
        if self._held:
            self._judge_buffered()
        return self._judge([bound.array(context, step) for bound in self._bounds])

    def share(self) -> Floats:
        """Of the rounds of each replica so far those with anything beyond, (R,)."""
        if self._held:
            self._judge_buffered()
        return self._either / max(1, self._seen)

    @property
    def outside(self) -> Outside:
        """The counts so far, of contexts and rewards, over all replicas together."""
        rewards, contexts = (int(tally.counts.sum()) for tally in self._tallies)
        return Outside(contexts, rewards, self._seen * len(self._either))

    def _judge_buffered(self) -> None:
        n, self._held = self._held, 0
        self._judge([buffer[:n] for buffer in self._buffers])

    def _judge(self, arrays: list[Floats]) -> list[Bools]:
        """The next n rounds of every bound, `(n, R, *shape)`; which of them lie beyond, (n, R)."""
        n, late, judged = len(arrays[0]), max(0, self._delay - self._seen), []
        either = np.zeros((n, len(self._either)), np.bool_)
        self._seen += n
        for bound, tally, rounds in zip(self._bounds, self._tallies, arrays, strict=True):
            with np.errstate(over="ignore", invalid="ignore"):
                sizes = bound.size(rounds)
            beyond = ~((sizes >= bound.low) & (sizes <= bound.high))  # true where there is a NaN
            beyond[: late if bound.delayed else 0] = False
            tally.add(beyond, sizes)
            either |= beyond
            judged.append(beyond)
        self._either += either.sum(axis=0)
        return judged


def answered(reward: Floats) -> Step:
    """A round, or several, of which the reward alone is known."""
    return Step(reward, *[np.zeros_like(reward)] * 3)


def scaled(
    x: Floats, low: Floats, high: Floats, names: Sequence[str], *, most_outside: float | None
) -> tuple[Floats, Bools]:
    """Columns (n, d) from public ranges, (d,) each, to [-1, 1], clipped; where they had to be.

    Raises `InputError` where more than a share `most_outside` of rows had to be, and warns of
    fewer; with None neither.
    """
    room = ROUNDING * (high - low)
    out = np.logical_or(x < low - room, x > high + room)
    onto = 2 * ((x.clip(low, high) - low) / (high - low)) - 1
    if most_outside is None:
        return onto, out
    worst = int(out.sum(axis=0).argmax())
    tally = Tally(
        "rows",
        f"outside their public ranges, above all {names[worst]} outside "
        f"[{low[worst]:.4g}, {high[worst]:.4g}]",
        "say wider ranges that are public",
        users=len(x),
        most_outside=most_outside,
    )
    tally.add(np.asarray(out.any(axis=1))[:, None], np.where(out, x, 0.0)[:, [worst]])
    return onto, out


def _percent(count: int, users: int) -> str:
    return f"{100 * count / max(1, users):.3g} %"
