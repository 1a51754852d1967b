"""What privacy costs, as it was measured on the suite: the table that recommendations come from.

`answers.csv` is written by `dpbandit suite freeze`. README, the page of the suite, the catalogue,
`dpbandit agents`, `recommend` and `frontier` read it, and nothing else names a best agent. The role
of a row is "chosen" for the best agent for a problem at an epsilon, or without privacy at infinity,
measured on users that no choice has seen; "zero" for play that learns nothing, on the same users;
"candidate" for an agent that competed, on the users of the choice; and "horizon" for the chosen
with another number of users.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from io import StringIO
from math import inf, log
from typing import Any, NamedTuple, TypeVar

from dpbandit.lazy import catalogue

T = TypeVar("T")
CHOSEN, ZERO, CANDIDATE, HORIZON = "chosen", "zero", "candidate", "horizon"
TRUST = "trust"
"""Kind of the problems whose promises trust less than a central server"""


class Answer(NamedTuple):
    """A row of the table. Money is in the problem's unit; what a row has not is NaN."""

    problem: str
    """name in the suite"""
    kind: str
    """of problem, see `Spec.measured_as`"""
    environment: str
    arguments: str
    """of the environment, but for its horizon, in JSON"""
    role: str
    epsilon: float
    """target; inf without privacy"""
    agent: str
    horizon: int
    replicas: int
    mean: float
    """regret"""
    se: float
    """standard error of the mean"""
    median: float
    """regret that half of the replicas do not exceed"""
    q95: float
    """regret that 95 % of the replicas do not exceed"""
    worst: float
    """the largest regret of a replica"""
    times: float
    """regret over that of the best agent without privacy"""
    times_low: float
    """end of its 95 % bootstrap interval, paired where users are the same"""
    times_high: float
    score: float
    """share of what uniform play loses that is saved, 1 for the best agent without privacy"""
    score_low: float
    score_high: float
    above_fixed: float
    """regret over that of the best fixed action; inf where that loses nothing"""


_KINDS: Mapping[str, type] = Answer.__annotations__


def answer_file() -> Any:
    """The table; it may be missing while it is being made."""
    return files("dpbandit.running").joinpath("answers.csv")


@cache
def answers() -> tuple[Answer, ...]:
    """All rows."""
    text = answer_file().read_text(encoding="utf-8")
    return tuple(
        Answer(**{name: _KINDS[name](value) for name, value in row.items()})
        for row in csv.DictReader(line for line in text.splitlines() if line[:1] != "#")
    )


@cache
def chosen() -> Mapping[tuple[str, float], Answer]:
    """The answers by problem and epsilon, infinity without privacy."""
    return {(one.problem, one.epsilon): one for one in answers() if one.role == CHOSEN}


def epsilons() -> tuple[float, ...]:
    """Those that were measured, and infinity."""
    return tuple(sorted({epsilon for _, epsilon in chosen()}))


def nearest(epsilon: float) -> float:
    """The measured epsilon whose logarithm is nearest; infinity is near to itself alone."""
    finite = [one for one in epsilons() if one < inf]
    return epsilon if epsilon == inf else min(finite, key=lambda one: abs(log(one / epsilon)))


def same_problem(
    environment: str,
    arguments: Mapping[str, Any],
    horizon: int,
    brief: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> str | None:
    """Name of the suite's problem that this is, of several the one of the nearest horizon.

    Problems that trust nobody, or a shuffler, are the same worlds with other promises: not these.
    None if there is none.

    Args:
        environment, arguments, horizon: of the problem.
        brief: leaves out arguments that are the environment's defaults, whoever says them.
    """
    arguments_wanted = arguments_text(brief(arguments))
    same = [
        one
        for one in chosen().values()
        if one.kind != TRUST
        and one.environment == environment
        and arguments_text(brief(json.loads(one.arguments))) == arguments_wanted
    ]
    nearby = min(same, key=lambda one: abs(log(one.horizon / horizon)), default=None)
    return None if nearby is None else nearby.problem


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Arguments of an environment without its horizon, as the table has them."""
    compared = {name: value for name, value in arguments.items() if name != "horizon"}
    return json.dumps(compared, sort_keys=True, default=repr)


def ranked(kind: str, epsilon: float) -> list[str]:
    """Agents for a kind of problem, the least geometric mean of `times` on the suite's first.

    Those that competed on all problems of the kind come before others. Without privacy, private
    agents at epsilon infinity come first only if they are better by more than
    `WITHOUT_PRIVACY_FACTOR`.
    """
    times: dict[str, dict[str, float]] = {}
    for one in answers():
        if one.kind == kind and one.epsilon == nearest(epsilon) and one.role == CANDIDATE:
            times.setdefault(one.agent, {})[one.problem] = max(one.times, _LEAST_TIMES)

    def place(agent: str) -> tuple[int, float]:
        logs = [log(some) for some in times[agent].values()]
        private = log(WITHOUT_PRIVACY_FACTOR) if agent.endswith(":epsilon=inf") else 0.0
        return -len(logs), sum(logs) / len(logs) + private

    return sorted(times, key=place)


WITHOUT_PRIVACY_FACTOR = 1.05
"""Factor by which an agent that has no privacy of its own may lose more than one without noise"""
_LEAST_TIMES = 1e-3
"""Smaller quotients, of next to no regret, count as this"""


@cache
def mean_scores(epsilon: float) -> Mapping[str, float]:
    """Mean score of each agent over the problems on which it competed at an epsilon."""
    found: dict[str, list[float]] = {}
    for one in answers():
        if one.role == CANDIDATE and one.epsilon == epsilon:
            found.setdefault(one.agent, []).append(one.score)
    return {agent: sum(some) / len(some) for agent, some in found.items()}


@cache
def starting() -> frozenset[str]:
    """Ids of the agents to start with: the best of a kind of problem at epsilon 1, or without.

    Settings, and what is put around an agent, are left out.
    """
    ids = {one["id"] for one in catalogue("dpbandit.agents")}
    kinds = {one.kind for one in answers() if one.kind != TRUST}
    best = [ranked(kind, epsilon)[0] for kind in kinds for epsilon in (1.0, inf)]
    return frozenset(next(word for word in agent.split(":") if word in ids) for agent in best)


def score(agent: str) -> float | None:
    """The mean score of an id: at epsilon 1, or without privacy where it has none."""
    return mean_scores(1.0).get(agent, mean_scores(inf).get(agent))


def by_score(some: Iterable[T]) -> list[T]:
    """Entries of the catalogue with the best score first, those without one last."""

    def place(one: Any) -> float:
        return inf if (mean := score(one.id)) is None else -mean

    return sorted(some, key=place)


AFFORDABLE = 1.5
"""Times the regret of the best agent without privacy, up to which privacy is called affordable"""


class UsersNeeded(NamedTuple):
    """From how many users on; None where that was not reached."""

    affordable: int | None
    """the private agent loses at most `AFFORDABLE` times as much as the best without privacy"""
    beats_fixed: int | None
    """it loses less than the best fixed action"""
    measured: int
    """the largest number of users that was measured"""


@cache
def users_needed(problem: str, epsilon: float) -> UsersNeeded | None:
    """From which of the measured numbers of users on both hold; None where none was measured."""
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
    """The first place from which on all hold; None if the last does not.

    >>> first_for_good([1, 2, 4, 8], [True, False, True, True])
    4
    """
    found = None
    for place, true in zip(places, holds, strict=True):
        found = (place if found is None else found) if true else None
    return found


def written(rows: Iterable[Answer], head: str) -> str:
    """The table as text, numbers to six digits, below lines that begin with #."""
    out = StringIO()
    out.writelines(f"# {line}\n" for line in head.splitlines())
    table = csv.writer(out, lineterminator="\n")
    table.writerow(Answer._fields)
    for row in rows:
        table.writerow(f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row)
    return out.getvalue()
