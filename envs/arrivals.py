"""Arrivals of people who come back: the visitor of every slot of the public clock.

A slot has one candidate, fixed before anybody comes; she comes unless the slot stays empty or she
was not pleased last time.
"""

from typing import Any

import numpy as np

from dpbandit.base import (
    MOST_ROUNDS,
    Floats,
    InputError,
    Ints,
    Streams,
    inside,
    one_of,
    rows,
    whole,
)
from dpbandit.envs.nonstationarity import Arrivals
from dpbandit.specs import Visits
from dpbandit.specs.people import MOST_PEOPLE, NOBODY, ReturningSpec
from dpbandit.specs.protocols import BanditSpec

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
        uniforms = streams.uniforms("candidates").take(T)
        found = [np.searchsorted(share[r], uniforms[:, r]) for r in range(R)]
        return np.minimum(np.column_stack(found), N - 1)
    if N * cap > MOST_VISITS:
        raise InputError(
            f"Expected people * visits = {N * cap} to be at most {MOST_VISITS}, of which slots are "
            'drawn: choose fewer visits, or arrivals="robin" or "poisson".'
        )
    order: Floats = streams.uniforms("candidates", N * cap)()
    return np.asarray((np.argsort(order, axis=1)[:, :T] % N).T)


class Visitors:
    """The slots of a public clock, each with one candidate who comes, or does not.

    With "loyal" `arrivals`, who was not pleased last time comes half as often.

    Args:
        problem: has `people`, `visits`, `arrivals`, `empty` and `horizon`, as `ReturningUsers` has.
    """

    def __init__(self, problem: Any) -> None:
        whole("people", problem.people, 1, MOST_PEOPLE)
        whole("visits", problem.visits, 1, MOST_ROUNDS)
        one_of("arrivals", problem.arrivals, ARRIVALS)
        inside("empty", problem.empty, 0, 1, ends=True)
        self._arrivals, self._empty = problem.arrivals, problem.empty
        self._people, self._horizon = problem.people, problem.horizon
        self.visits = Visits(problem.visits, self._people if self._arrivals == "robin" else 1)
        """what a person may do"""

    def spec(self, visit: BanditSpec) -> ReturningSpec:
        """The public facts of people who come for such a visit."""
        return ReturningSpec(
            visit=visit,
            people=self._people,
            visits=self.visits,
            horizon=self._horizon,
            reward_unit=visit.reward_unit,
        )

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
