"""What time does to problems: late rewards, tastes that change, and who comes in which slot.

Tastes have a season, a drift, a shock. Every agent meets the same.

Who comes in which slot of the public clock.

A slot has one candidate, fixed before anybody comes; she comes unless the slot stays empty or she
was not pleased last time.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from math import pi
from typing import Any, Literal, TypeAlias

import numpy as np

from dpbandit.base import (
    MOST_ROUNDS,
    Floats,
    InputError,
    Ints,
    Streams,
    inside,
    one_of,
    positive,
    rows,
    vector,
    whole,
)
from dpbandit.specs import MOST_PEOPLE, NOBODY
from dpbandit.specs.lists import Visits


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


Arrivals: TypeAlias = Literal["exactly", "robin", "poisson", "loyal"]
MOST_VISITS = 100_000_000
"""Of all people together, where their order is drawn"""
ARRIVALS: tuple[Arrivals, ...] = ("exactly", "robin", "poisson", "loyal")


def candidates(
    arrivals: Arrivals, streams: Streams, *, people: int, cap: int, horizon: int
) -> Ints:
    """Who may come in each slot, (T, R). A slot has one candidate, so nobody is ever displaced.

    "exactly" and "loyal": everybody has `cap` slots, in uniformly random order. "robin": all take
    turns, in the same order. "poisson": every slot is somebody's with probability in proportion to
    a rate of hers, an exponential variable; most come rarely, some beyond the cap.
    """
    N, T, R = people, horizon, len(streams)
    if arrivals != "poisson" and N * cap < T:
        raise InputError(
            f"Expected horizon={T} to be at most people * visits = {N * cap}: allow more visits "
            "or invite more people."
        )
    if arrivals == "robin":
        return np.repeat(np.arange(T)[:, None] % N, R, axis=1)
    if arrivals == "poisson":
        rates = streams.exponentials("rates", N)()
        share = np.cumsum(rates, axis=1) / rates.sum(axis=1, keepdims=True)
        luck = streams.uniforms("candidates").take(T)
        found = [np.searchsorted(share[r], luck[:, r]) for r in range(R)]
        return np.minimum(np.column_stack(found), N - 1)
    if N * cap > MOST_VISITS:
        raise InputError(
            f"Expected people * visits = {N * cap} to be at most {MOST_VISITS}, of which slots are "
            'drawn: choose fewer visits, or arrivals="robin" or "poisson".'
        )
    order: Floats = streams.uniforms("candidates", N * cap)()
    return np.asarray((np.argsort(order, axis=1)[:, :T] % N).T)


class Comings:
    """The slots of a public clock, each with one candidate who comes, or does not.

    With "loyal" `arrivals`, who was not pleased last time comes half as often.

    Args:
        people, visits: N, and the cap k.
        arrivals, empty, horizon: as in `ReturningUsers`.
    """

    def __init__(
        self, *, people: int, visits: int, arrivals: Arrivals, empty: float, horizon: int
    ) -> None:
        whole("people", people, 1, MOST_PEOPLE)
        whole("visits", visits, 1, MOST_ROUNDS)
        one_of("arrivals", arrivals, ARRIVALS)
        inside("empty", empty, 0, 1, ends=True)
        self._arrivals, self._empty, self._horizon = arrivals, empty, horizon
        self._people = people
        self.visits = Visits(visits, people if arrivals == "robin" else 1)
        """what a person may do, for the spec"""

    def start(self, streams: Streams) -> None:
        """The first slot of an episode."""
        self._candidates = candidates(
            self._arrivals,
            streams,
            people=self._people,
            cap=self.visits.cap,
            horizon=self._horizon,
        )
        self._coins = streams.uniforms("presence")
        self._displeased = np.zeros((len(streams), self._people), np.bool_)
        self._slot = 0

    def next(self) -> Ints:
        """Who comes in the next slot, (R,), or -1; nobody after the horizon."""
        coin, over = self._coins(), self._slot == self._horizon
        candidate = self._candidates[self._slot - over]
        often = np.full(len(candidate), 1.0 - self._empty)
        if self._arrivals == "loyal":
            often[self._displeased[rows(len(candidate)), candidate]] /= 2
        self._slot += not over
        self._person: Ints = np.where((coin < often) & (not over), candidate, NOBODY)
        return self._person

    def rewarded(self, reward: Floats, middle: float) -> None:
        """She who came is pleased if her reward (R,) is not below `middle`."""
        here = self._person != NOBODY
        whose = rows(len(here))[here], self._person[here]
        self._displeased[whose] = reward[here] < middle
