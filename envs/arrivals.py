"""Arrivals of people who come back: who visits in which slot (round of a public clock).

A slot has one candidate, fixed at the start of an episode. With probability `empty` she does not
come; with "loyal" arrivals she comes half as often after a low reward.
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
from dpbandit.specs import BanditSpec, Visits
from dpbandit.specs.people import MOST_PEOPLE, NOBODY, ReturningSpec

MOST_VISITS = 100_000_000
"""Largest number of people times visits, because the order of all visits is kept in memory"""
ARRIVALS: tuple[Arrivals, ...] = ("exactly", "robin", "poisson", "loyal")  # see `candidates`


def candidates(
    arrivals: Arrivals, streams: Streams, *, people: int, cap: int, horizon: int
) -> Ints:
    """Draw the one person who may come in each slot (round of a public clock), (T, R).

    "exactly" and "loyal": each person has `cap` slots, in uniformly random order. "robin": people
    take turns, always in the same order. "poisson": each slot's person is drawn with probability
    proportional to her rate, an exponential variable; many come rarely, some more than `cap` times.
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
    """Visitors of the slots (rounds) of a public clock; the candidate of a slot comes, or does not.

    With "loyal" `arrivals`, a person whose last reward was low comes half as often.

    Args:
        problem: has the arguments `people`, `visits`, `arrivals`, `empty`, `horizon` of
            `ReturningUsers`.
    """

    def __init__(self, problem: Any) -> None:
        whole("people", problem.people, 1, MOST_PEOPLE)
        whole("visits", problem.visits, 1, MOST_ROUNDS)
        one_of("arrivals", problem.arrivals, ARRIVALS)
        inside("empty", problem.empty, 0, 1, ends=True)
        self._arrivals, self._empty = problem.arrivals, problem.empty
        self._people, self._horizon = problem.people, problem.horizon
        self.visits = Visits(problem.visits, self._people if self._arrivals == "robin" else 1)
        """largest number of visits of a person, and least distance of two of them in slots"""

    def spec(self, visit: BanditSpec) -> ReturningSpec:
        """Return the spec of a problem of returning people; `visit` is the spec of one visit."""
        return ReturningSpec(
            visit=visit,
            people=self._people,
            visits=self.visits,
            horizon=self._horizon,
            reward_unit=visit.reward_unit,
        )

    def start(self, streams: Streams) -> None:
        """Start an episode at its first slot, and draw the candidates of all slots."""
        self._candidates = candidates(
            self._arrivals, streams, people=self._people, cap=self.visits.cap, horizon=self._horizon
        )
        self._uniforms = streams.uniforms("presence")
        self._displeased = np.zeros((len(streams), self._people), np.bool_)
        self._slot = 0

    def next(self) -> Ints:
        """Return who comes in the next slot (round), (R,); -1 if nobody, as after the horizon."""
        uniforms, over = self._uniforms(), self._slot == self._horizon
        candidate = self._candidates[self._slot - over]
        presence = np.full(len(candidate), 1.0 - self._empty)  # the probability that she comes
        if self._arrivals == "loyal":
            presence[self._displeased[rows(len(candidate)), candidate]] /= 2
        self._slot += not over
        self._person: Ints = np.where((uniforms < presence) & (not over), candidate, NOBODY)
        return self._person

    def rewarded(self, reward: Floats, middle: float) -> None:
        """Record the last visitor's reward (R,); "loyal" people come more rarely below `middle`."""
        here = self._person != NOBODY
        whose = rows(len(here))[here], self._person[here]
        self._displeased[whose] = reward[here] < middle
