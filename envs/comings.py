"""Who comes: the candidate of a slot, unless it stays empty or she was not pleased last time."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.base.inputs import MOST_ROUNDS, inside, one_of, whole
from dpbandit.base.random_streams import Streams
from dpbandit.envs.arrivals import ARRIVALS, Arrivals, candidates
from dpbandit.specs.returning import MOST_PEOPLE, NOBODY, Visits


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
