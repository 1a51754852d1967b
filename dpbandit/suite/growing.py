"""Measure the cost of privacy by horizon, to find how many users make privacy affordable."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from math import inf
from typing import NamedTuple

from dpbandit.base import Floats, InputError
from dpbandit.results.problems import Setup
from dpbandit.running.answers import HORIZON, Answer, answers, chosen
from dpbandit.studies import setup_of
from dpbandit.suite.candidates import cell
from dpbandit.suite.catalogue import SuiteProblem, epsilons, problems, suite
from dpbandit.suite.freezing import Blocks
from dpbandit.suite.tabulating import answer_row

SHORTEST, LONGEST = -4, 4
"""Smallest and largest number of doublings of a problem's horizon; -4 is a sixteenth of it."""
REPLICAS = 20  # of every run at a horizon other than the suite's own
AFFORDABLE = 1.5
"""Largest ratio of regret to that of the best agent without privacy that is called affordable."""
SETTLED = 2
"""Play ends after so many successive horizons with affordable privacy, fixed actions beaten."""


def grow(names: Iterable[str], blocks: Blocks, longest: int = LONGEST) -> list[Answer]:
    """Play the chosen agents at shorter and longer horizons; return answers with role "horizon".

    Horizons double from a sixteenth of the suite's to `longest` doublings of it. An epsilon is
    dropped after `SETTLED` successive horizons at which the cost of privacy is affordable and
    regret below that of the best fixed action.
    """
    return [found for name in names for found in _grown(problems()[name], blocks, longest)]


class _Played(NamedTuple):
    """Final regrets (R,): best non-private agent, baselines, and private agents by epsilon."""

    setup: Setup
    base: Floats
    uniform: Floats
    fixed: Floats
    private: dict[float, Floats]


def _grown(one: SuiteProblem, blocks: Blocks, longest: int) -> Iterator[Answer]:
    streak = dict.fromkeys(epsilons(), 0)
    for doublings in range(SHORTEST, longest + 1):
        open_ones = [epsilon for epsilon, many in streak.items() if many < SETTLED]
        played = _played(one, doublings, open_ones, blocks) if open_ones else None
        if played is None:
            return
        for epsilon, regret in played.private.items():
            agent = chosen()[one.name, epsilon].agent
            ends = (played.base, played.uniform, played.fixed)
            found = answer_row(played.setup, HORIZON, epsilon, agent, regret, *ends)
            good = found.times <= AFFORDABLE and found.above_fixed < 1
            streak[epsilon] = streak[epsilon] + 1 if good else 0
            yield found


def _played(
    one: SuiteProblem, doublings: int, some: Iterable[float], blocks: Blocks
) -> _Played | None:
    """Play the chosen agents at the doubled horizon; return None if one of them cannot play it."""
    horizon = max(1, round(one.horizon["small"] * 2.0**doublings))
    try:
        setup = setup_of(
            one.environment, one.arguments, horizon=horizon, seed=suite().seed, label=one.name
        )
        names = [(chosen()[one.name, epsilon].agent, epsilon) for epsilon in (inf, *some)]
        names += [("uniform", inf), ("best-fixed", inf)]
        cells = [cell(one, setup, agent, epsilon) for agent, epsilon in names]
    except InputError:
        return None
    runs, unfit = blocks.play(cells, REPLICAS, f"{horizon:,} users")
    if unfit:
        return None
    base, *private, uniform, fixed = (runs[each.key].regret[-1] for each in cells)
    return _Played(setup, base, uniform, fixed, dict(zip(some, private, strict=True)))


class UsersNeeded(NamedTuple):
    """Numbers of users from which on a private agent's regret is low; None if it never is."""

    affordable: int | None
    """users from which on regret is at most 1.5 times that of the best agent without privacy"""
    beats_fixed: int | None
    """users from which on regret is below that of the best fixed action"""
    measured: int
    """largest number of users with which regret was measured"""


@cache
def users_needed(problem: str, epsilon: float) -> UsersNeeded | None:
    """Return the `UsersNeeded` for a problem at an epsilon; None if no horizons were measured."""
    rows = [
        one
        for one in answers()
        if one.role == HORIZON and (one.problem, one.epsilon) == (problem, epsilon)
    ]
    if not rows:
        return None
    rows.sort(key=lambda one: one.horizon)
    horizons = [one.horizon for one in rows]
    return UsersNeeded(
        first_for_good(horizons, [one.times <= AFFORDABLE for one in rows]),
        first_for_good(horizons, [one.above_fixed < 1 for one in rows]),
        horizons[-1],
    )


def first_for_good(places: Sequence[int], holds: Sequence[bool]) -> int | None:
    """Return the first of `places` from which on all of `holds` are True; None if there is none.

    >>> first_for_good([1, 2, 4, 8], [True, False, True, True])
    4
    """
    found = None
    for place, true in zip(places, holds, strict=True):
        found = (place if found is None else found) if true else None
    return found
