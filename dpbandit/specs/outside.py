"""Data from outside against public bounds: what lies beyond is counted, said, and refused if much.

A bound is public or worth nothing, so none is ever read off the data. One that does not fit is no
breach of privacy, since agents clip, but clipped data teach little: ages from 20 to 60 under a
bound of 1 are all alike.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import InputError, inside
from dpbandit.specs.protocols import BanditSpec

_ROUNDING = 1e-6
"""Beyond a bound by less, relatively, is on it: contexts of norm 1 may come as float32."""


@dataclass(frozen=True)
class Outside:
    """How much lay outside its public bounds.

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
    """Counts one kind of data in R streams of `users`; each stream may have a share of it outside.

    Warns at the first that it counts. Raises `InputError` once more than `most_outside` of a
    stream's `users`, those that are still to come among them, lie outside.
    """

    def __init__(
        self, kind: str, where: str, advice: str, *, users: int, most_outside: float
    ) -> None:
        inside("most_outside", most_outside, 0, 1, ends=True)
        self._kind, self._where, self._advice = kind, where, advice
        self._users, self._most = users, most_outside
        self._seen = 0
        self.counts: npt.NDArray[np.int64] = np.zeros(1, dtype=np.int64)
        """(R,)"""

    def add(self, beyond: npt.NDArray[np.bool_], values: Floats) -> None:
        """`beyond` (n, R): which of n users' `values` (n, R) lie outside."""
        self._seen += len(beyond)
        if not beyond.any():
            return
        first = not self.counts.any()
        self.counts = self.counts + beyond.sum(axis=0)
        count, such = int(self.counts.max()), _largest(values[beyond])
        if count / self._users > self._most:
            raise InputError(
                f"Expected at most {100 * self._most:.3g} % of {self._users} {self._kind} "
                f"{self._where}, got {count} of {self._seen}, such as {such:.4g}: {self._advice}, "
                "or allow more to be clipped by most_outside=."
            )
        if first:
            share = _percent(count, self._seen)
            warnings.warn(
                f"{count} of {self._seen} {self._kind} ({share}) lie {self._where}, such as "
                f"{such:.4g}: private agents clip them.",
                stacklevel=2,
            )


class Watch:
    """Holds R streams of `users` against the bounds of a spec, as they come."""

    def __init__(self, spec: BanditSpec, users: int) -> None:
        self._spec, self._users, self._rounds = spec, 0, 0
        self._either: npt.NDArray[np.int64] | int = 0
        low, high, order = spec.reward_low, spec.reward_high, spec.context_order
        tally = partial(Tally, users=users, most_outside=spec.most_outside)
        self._contexts = tally(
            "contexts",
            f"beyond context_bound={spec.context_bound:.4g} in the l_{order:g} norm",
            "scale features by public ranges, or say a larger public bound",
        )
        self._rewards = tally(
            "rewards",
            f"outside reward_low={low:.4g} to reward_high={high:.4g}",
            "say a wider public range of rewards",
        )

    @property
    def outside(self) -> Outside:
        """The counts so far, of all streams together."""
        contexts, rewards = (int(t.counts.sum()) for t in (self._contexts, self._rewards))
        return Outside(contexts, rewards, self._users)

    @property
    def share(self) -> Floats:
        """Of the users so far of each stream, (R,), those of whom anything lay outside."""
        return np.asarray(self._either / max(1, self._rounds))

    def see(self, context: Floats, reward: Floats) -> npt.NDArray[np.bool_]:
        """Count contexts `(n, R, *context_shape)`, rewards (n, R); which contexts are outside."""
        self._users += reward.size
        self._rounds += len(reward)
        spec = self._spec
        with np.errstate(over="ignore", invalid="ignore"):
            length = norms(context, spec.context_order).reshape(*reward.shape, -1).max(axis=2)
        beyond = np.logical_not(length <= spec.context_bound * (1 + _ROUNDING))  # also NaNs
        self._contexts.add(beyond, length)
        room = _ROUNDING * spec.reward_bound
        low, high = spec.reward_low - room, spec.reward_high + room
        outside = np.logical_not((low <= reward) & (reward <= high))
        self._rewards.add(outside, reward)
        self._either = self._either + np.asarray(beyond | outside).sum(axis=0)
        return beyond


def scaled(
    x: Floats, low: Floats, high: Floats, names: Sequence[str], *, most_outside: float | None
) -> tuple[Floats, npt.NDArray[np.bool_]]:
    """Columns (n, d) from public ranges, (d,) each, to [-1, 1], clipped; where they had to be.

    Raises `InputError` where more than a share `most_outside` of rows had to be, and warns of
    fewer; with None neither.
    """
    room = _ROUNDING * (high - low)
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


def _largest(values: Floats) -> float:
    """In size; NaN if there is one."""
    return float(values[np.abs(values).argmax()])


def _percent(count: int, users: int) -> str:
    return f"{100 * count / max(1, users):.3g} %"
