"""Late rewards, utilities that change over time, and actions that come and go.

Utilities change by a season, a drift and a shock, equally for every agent. Actions arrive and
retire by a public schedule, or are unavailable to some users.
"""

import re
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import pi
from typing import Any, Literal, TypeAlias

import numpy as np

from dpbandit.base import (
    MOST_ROUNDS,
    Bools,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    inside,
    positive,
    vector,
    whole,
)
from dpbandit.specs import Masks


class Delay:
    """Queue that returns rewards `rounds` rounds later, and 0 in the first `rounds` rounds."""

    def __init__(self, rounds: int, replicas: int) -> None:
        self._queue: deque[Floats] = deque(np.zeros((rounds, replicas)))

    def __call__(self, reward: Floats) -> Floats:
        """Append this round's reward (R,) and return the reward of `rounds` rounds ago."""
        self._queue.append(reward)
        return self._queue.popleft()


# "first-last:start-end" of actions and rounds, where -last, start and end may be missing
_WINDOW = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?:([0-9]{0,9})-([0-9]{0,9})")


@dataclass(frozen=True, kw_only=True)
class Availability:
    """Schedule of the actions that are available in rounds 1 to T, and their random absences.

    Args:
        n_actions: number N of all actions.
        least: number of actions that must be available in every round.
        horizon: number T of rounds.
        available: public schedule, texts ACTION:FIRST-LAST such as "3:200-" (arrives in round 200),
            "0:-500" (retires after round 500) or "4-6:200-500"; an action may have several periods;
            without one it is always available.
        absent: probability that a scheduled action is unavailable to a user, independently of other
            actions; if fewer than `least` would be left to her, some of them remain available.

    >>> when = Availability(n_actions=3, least=1, horizon=9, available=["2:4-", "0:-5"])
    >>> when.scheduled(np.array([3, 4, 6])).astype(int).tolist()
    [[1, 1, 0], [1, 1, 1], [0, 1, 1]]
    """

    n_actions: int
    least: int
    horizon: int
    available: Sequence[str] | str | None = None
    absent: float = 0.0

    def __post_init__(self) -> None:
        inside("absent", self.absent, 0, 1, ends=True)
        turns = {1, *(edge for _, first, last in self._windows for edge in (first, last + 1))}
        for t in sorted(turn for turn in turns if turn <= self.horizon):
            left = np.count_nonzero(self.scheduled(np.array([t])))
            if left < self.least:
                raise InputError(
                    f"Expected available={self.available!r} to leave at least {self.least} of "
                    f"{self.n_actions} actions in every round, got {left} in round {t}."
                )

    @property
    def masks(self) -> Masks:
        """Privacy of masks, "user" (private data of a user), "public", or "none" without masks."""
        return "user" if self.absent else "public" if self._windows else "none"

    @property
    def _windows(self) -> list[tuple[slice, int, int]]:
        """Periods of availability in the schedule, as (actions, first round, last round)."""
        words: Any = [] if self.available is None else self.available
        words = words if isinstance(words, list | tuple) else [words]
        return [self._window(word) for word in words]

    def _window(self, word: Any) -> tuple[slice, int, int]:
        parsed = _WINDOW.fullmatch(word) if isinstance(word, str) else None
        if parsed is None:
            raise InputError(
                f"Expected available={abbrev(word)} to be words such as '3:200-', '0:-500' or "
                "'4-6:200-500': an action or several, the first round, the last."
            )
        low, high, start, end = parsed.groups()
        actions = range(int(low), int(high or low) + 1)
        first, last = int(start or 1), int(end or MOST_ROUNDS)
        if not (actions and actions[-1] < self.n_actions and 1 <= first <= last):
            raise InputError(
                f"Expected available={word!r} to name actions from 0 to {self.n_actions - 1}, and "
                "a first round that is not after the last."
            )
        if first > self.horizon:
            raise InputError(
                f"Expected available={word!r} to begin within horizon={self.horizon} rounds."
            )
        return slice(actions.start, actions.stop), first, last

    def scheduled(self, t: Ints) -> Bools:
        """Return a mask (n, actions) of the actions that are scheduled in rounds t (n,)."""
        windows = self._windows
        there = np.ones((len(t), self.n_actions), np.bool_)
        for actions, _, _ in windows:
            there[:, actions] = False
        for actions, first, last in windows:
            there[:, actions] |= ((t >= first) & (t <= last))[:, None]
        return there

    def start(self, streams: Streams) -> "RunningAvailability":
        """Start an episode at round 1, with absences drawn for each replica."""
        return RunningAvailability(self, streams)


class RunningAvailability:
    """Masks of available actions in the rounds of one episode, drawn by `Availability`."""

    def __init__(self, when: Availability, streams: Streams) -> None:
        self._when, self._round, self._replicas = when, 0, len(streams)
        self._uniforms = streams.uniforms("availability", when.n_actions) if when.absent else None

    def take(self, count: int) -> Bools:
        """Draw read-only masks of the next `count` rounds, (count, R, actions)."""
        t = np.minimum(self._round + 1 + np.arange(count), self._when.horizon)  # drawn ahead
        there = self._when.scheduled(t)[:, None]
        self._round += count
        masks = np.repeat(there, self._replicas, axis=1)
        if self._uniforms is not None:
            uniforms, least = self._uniforms.take(count), self._when.least
            uniforms = np.where(masks, uniforms, -1.0)
            chosen_uniform = np.partition(uniforms, -least)[..., -least, None]
            masks = (uniforms >= np.minimum(chosen_uniform, self._when.absent)) & masks
        masks.flags.writeable = False
        return masks

    def now(self) -> Bools:
        """Return the mask of actions that are scheduled in the latest round, before absences."""
        return self._when.scheduled(np.array([self._round]).clip(1, self._when.horizon))[0]


class WithAvailability:
    """Base of problems whose actions may be unavailable in some rounds or to some users."""

    spec: Any
    _availability: Availability | None = None

    def restrict(self, available: Any, absent: Any) -> None:
        """Set `available` and `absent` of `Availability`, from the next episode on."""
        masked = replace(self.spec, masks="user")  # raises where actions cannot be masked
        size, least = masked.mask_size
        self._availability = Availability(
            n_actions=size,
            least=least,
            horizon=self.spec.horizon,
            available=available,
            absent=absent,
        )
        order: tuple[Masks, ...] = ("none", "public", "user")  # private masks stay private
        masks = max(self.spec.masks, self._availability.masks, key=order.index)
        self.spec = replace(self.spec, masks=masks)


MAX_SHIFT = 20.0
"""Largest amplitude, range or size of a shift of utility; beyond it purchases are certain"""


@dataclass(frozen=True, kw_only=True)
class Tides:
    """Shift of everybody's utility of a purchase in round t = 1, 2, ...: season + drift + shock.

    Args:
        season: (amplitude, period): amplitude sin(2 pi t / period); rounds are public.
        drift: (step, range): a random walk with normal steps of stddev `step`, reflected at range
            and -range; drawn for each replica.
        shock: (round, size): 0 before `round`, `size` from then on.
    """

    season: Sequence[float] | None = None
    drift: Sequence[float] | None = None
    shock: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.season is not None:
            amplitude, period = vector("season", self.season, 2).tolist()
            inside("amplitude of season", amplitude, -MAX_SHIFT, MAX_SHIFT, ends=True)
            positive("period of season", period)
        if self.drift is not None:
            step, width = vector("drift", self.drift, 2).tolist()
            positive("step of drift", step)
            inside("range of drift", width, 0, MAX_SHIFT, ends=False)
        if self.shock is not None:
            start, size = vector("shock", self.shock, 2).tolist()
            whole("round of shock", int(start) if start == int(start) else start, 1)
            inside("size of shock", size, -MAX_SHIFT, MAX_SHIFT, ends=True)

    def start(self, streams: Streams) -> "RunningTides":
        """Start an episode at round 1; a drift is drawn for each replica."""
        return RunningTides(self, streams)


class RunningTides:
    """Shifts of utility in the rounds of one episode, drawn by `Tides`."""

    def __init__(self, tides: Tides, streams: Streams) -> None:
        self._tides, self._round, self._replicas = tides, 0, len(streams)
        self._steps = None if tides.drift is None else streams.world.normals("drift")
        self._walk = np.zeros(len(streams))

    def clock(self, count: int) -> Floats:
        """Return sine and cosine of the season's phase in the next `count` rounds, (count, 2)."""
        season: Any = self._tides.season
        turned = 2 * pi * (self._round + 1.0 + np.arange(count)) / season[1]
        return np.column_stack([np.sin(turned), np.cos(turned)])

    def take(self, count: int) -> Floats:
        """Draw the shifts of utility of the next `count` rounds, (count, R)."""
        t = self._round + 1.0 + np.arange(count)[:, None]
        self._round += count
        found = np.zeros((count, self._replicas))
        season: Any = self._tides.season
        if season is not None:
            found = found + season[0] * np.sin(2 * pi * t / season[1])
        if self._tides.shock is not None:
            found = found + np.where(t >= self._tides.shock[0], self._tides.shock[1], 0.0)
        if self._steps is not None and self._tides.drift is not None:
            step, width = self._tides.drift
            steps = np.concatenate([self._walk[None], step * self._steps.take(count)])
            path = np.add.accumulate(steps)[1:]  # one by one, so that blocks change no last bit
            self._walk = path[-1]
            # reflected at both ends: a walk on a circle, folded
            found = found + width - np.abs((path + width) % (4 * width) - 2 * width)
        return found


Arrivals: TypeAlias = Literal["exactly", "robin", "poisson", "loyal"]
"""Name of a law by which people come back; `dpbandit.envs.arrivals` describes the four laws"""
