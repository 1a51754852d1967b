"""What time does to problems: rewards that are told some rounds later, and tastes that change.

Tastes have a season, a drift, a shock. Every agent meets the same.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any

import numpy as np

from dpbandit.base import Floats, Streams, inside, positive, vector, whole


class Delay:
    """Hands out rewards `rounds` later, and 0 before there are any."""

    def __init__(self, rounds: int, replicas: int) -> None:
        self._queue: deque[Floats] = deque(np.zeros((rounds, replicas)))

    def __call__(self, reward: Floats) -> Floats:
        """The reward of this round in, that of `rounds` ago out."""
        self._queue.append(reward)
        return self._queue.popleft()


_MOST = 20.0
"""Of utility; more is certainty."""


@dataclass(frozen=True, kw_only=True)
class Tides:
    """What is added to everybody's utility of a purchase in round t, from 1 on.

    Args:
        season: (amplitude, period): amplitude sin(2 pi t / period); rounds are public.
        drift: (step, range): a random walk with normal steps of that stddev, reflected so that it
            stays within +-range; drawn for each replica.
        shock: (round, size): size from that round on.
    """

    season: Sequence[float] | None = None
    drift: Sequence[float] | None = None
    shock: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.season is not None:
            amplitude, period = vector("season", self.season, 2).tolist()
            inside("amplitude of season", amplitude, -_MOST, _MOST, ends=True)
            positive("period of season", period)
        if self.drift is not None:
            step, width = vector("drift", self.drift, 2).tolist()
            positive("step of drift", step)
            inside("range of drift", width, 0, _MOST, ends=False)
        if self.shock is not None:
            start, size = vector("shock", self.shock, 2).tolist()
            whole("round of shock", int(start) if start == int(start) else start, 1)
            inside("size of shock", size, -_MOST, _MOST, ends=True)

    def start(self, streams: Streams) -> "RunningTides":
        """From round 1 on, for each replica."""
        return RunningTides(self, streams)


class RunningTides:
    """See `Tides`."""

    def __init__(self, tides: Tides, streams: Streams) -> None:
        self._tides, self._round, self._replicas = tides, 0, len(streams)
        self._steps = None if tides.drift is None else streams.world.normals("drift")
        self._walk = np.zeros(len(streams))

    def clock(self, count: int) -> Floats:
        """Where the season stands in the next `count` rounds, sine and cosine, (count, 2)."""
        season: Any = self._tides.season
        turned = 2 * pi * (self._round + 1.0 + np.arange(count)) / season[1]
        return np.column_stack([np.sin(turned), np.cos(turned)])

    def take(self, count: int) -> Floats:
        """Of the next `count` rounds, (count, R)."""
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
