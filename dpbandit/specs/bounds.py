"""Count data beyond their public bounds, warn of the first one, and raise an error at too many.

A bound must be public, so none is computed from the data. Data beyond a bound are no breach of
privacy, since agents clip, but clipped data teach little: ages from 20 to 60 under a bound of 1
are all alike. The counts are a diagnostic of the simulator, made of raw data: they are not private,
and no certificate covers them.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import prod
from typing import Protocol, runtime_checkable

import numpy as np

from dpbandit.base import Bools, Floats, InputError, Ints, inside
from dpbandit.specs.protocols import BOUND_SLACK, Spec, Step

CLIPPED = (
    "clipped: the share of rounds whose context, datum or reward lay beyond the bounds that agents "
    "clip to; counted on raw data, so not private, and outside every certificate."
)
"""Footnote of tables that have a column `clipped`."""
_BUFFER_ROUNDS, _BUFFER_ENTRIES = 64, 1 << 15
"""Largest numbers of rounds and of array entries that are buffered before they are checked."""


@runtime_checkable
class Clips(Protocol):
    """Problem that clips data before agents observe them, and counts rounds in which it did."""

    def clipped(self) -> Floats:
        """Return the share of rounds since `reset` with data beyond a bound, (R,)."""
        ...


@dataclass(frozen=True)
class Outside:
    """Counts of data outside their public bounds.

    These are exact counts of private data: no certificate covers them, nor an error or a warning
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
    """Counter of data beyond a bound in R streams, one datum for each of `users` users.

    Raises `InputError` as soon as more than `most_outside` x `users` data of a stream lie beyond
    the bound. With `warns`, the first such datum gives a warning.
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
        """Number of data beyond the bound in each stream, (R,)."""

    def add(self, beyond: Bools, sizes: Floats) -> None:
        """Count values (n, R) that are `beyond` a bound; messages quote their `sizes` (n, R)."""
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
    """Counter of each replica's rounds with a context, datum or reward beyond the spec's bounds.

    Raises `InputError` if a share above the spec's `most_outside` of contexts, data or rewards
    lies beyond its bound.

    Args:
        spec: public facts that state the bounds.
        replicas: number R of replicas.
        rounds: rounds of each replica to come.
        at_door: check each round as it comes, warn of the first one beyond a bound, and take
            rewards as not delayed. Else rounds are buffered, and several are checked at a time.
    """

    def __init__(self, spec: Spec, replicas: int, rounds: int, *, at_door: bool = False) -> None:
        self._bounds = spec.bounds()
        tally = partial(Tally, users=rounds, most_outside=spec.most_outside, warns=at_door)
        self._tallies = [tally(bound.kind, bound.where, bound.advice) for bound in self._bounds]
        largest = replicas * max(prod(bound.shape) for bound in self._bounds)
        self._room = 1 if at_door else min(_BUFFER_ROUNDS, max(1, _BUFFER_ENTRIES // largest))
        self._buffers = [np.empty((self._room, replicas, *bound.shape)) for bound in self._bounds]
        self._delay, self._held, self._next_check, self._seen = (
            0 if at_door else spec.delay,
            0,
            1,
            0,
        )
        self._either = np.zeros(replicas, np.int64)

    def see(self, context: Floats, step: Step) -> None:
        """Check one round, now or together with later ones; callers may reuse the arrays."""
        if self._room == 1:
            self._judge([bound.array(context, step)[None] for bound in self._bounds])
            return
        for buffer, bound in zip(self._buffers, self._bounds, strict=True):
            buffer[self._held] = bound.array(context, step)
        self._held += 1
        if self._held == self._next_check:
            self._judge_buffered()
            self._next_check = min(2 * self._next_check, self._room)

    def see_several(self, context: Floats, step: Step) -> list[Bools]:
        """Check n rounds of arrays (n, R, ...); return which lie beyond each bound, (n, R)."""
        if self._held:
            self._judge_buffered()
        return self._judge([bound.array(context, step) for bound in self._bounds])

    def skip(self, rounds: int) -> None:
        """Count rounds whose data are known to lie within all bounds."""
        self._seen += rounds

    def share(self) -> Floats:
        """Return the share of each replica's rounds so far with data beyond a bound, (R,)."""
        if self._held:
            self._judge_buffered()
        return self._either / max(1, self._seen)

    @property
    def outside(self) -> Outside:
        """Counts of contexts and rewards beyond their bounds, summed over replicas."""
        rewards, contexts = (int(tally.counts.sum()) for tally in self._tallies)
        return Outside(contexts, rewards, self._seen * len(self._either))

    def _judge_buffered(self) -> None:
        n, self._held = self._held, 0
        self._judge([buffer[:n] for buffer in self._buffers])

    def _judge(self, arrays: list[Floats]) -> list[Bools]:
        """Check n rounds of arrays `(n, R, *shape)`; return which lie beyond each bound, (n, R)."""
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
    """Return a `Step` of one or several rounds with this reward; its means and regret are 0."""
    return Step(reward, *[np.zeros_like(reward)] * 3)


def scaled(
    x: Floats, low: Floats, high: Floats, names: Sequence[str], *, most_outside: float | None
) -> tuple[Floats, Bools]:
    """Scale columns (n, d) from public ranges (d,) to [-1, 1]; return them, and which were clipped.

    Raises `InputError` if more than a share `most_outside` of rows is clipped, and warns if fewer
    are; does neither if `most_outside` is None.
    """
    room = BOUND_SLACK * (high - low)
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
