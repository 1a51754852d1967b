"""Table of the cost of privacy measured on the suite, from which recommendations are made.

`answers.csv` is written by `dpbandit suite freeze`. README, the page of the suite, the catalogue,
`dpbandit agents`, `recommend` and `frontier` read it; no other source names a best agent. Roles of
rows: "chosen", the best agent for a problem at an epsilon (infinity: without privacy), measured on
fresh users that had no part in the choice; "zero", play that learns nothing, on those fresh users;
"candidate", an agent that competed, on the users of the choice; "horizon", the chosen agent with
another number of users.
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
"""Kind of problems whose privacy does not rely on a trusted central server."""


class Answer(NamedTuple):
    """Row of the table; regret is in the problem's unit, and missing values are NaN."""

    problem: str
    """name in the suite"""
    kind: str
    """kind of problem, see `Spec.measured_as`"""
    environment: str
    arguments: str
    """arguments of the environment without its horizon, in JSON"""
    role: str
    epsilon: float
    """target epsilon; inf without privacy"""
    agent: str
    horizon: int
    replicas: int
    mean: float
    """mean regret"""
    se: float
    """standard error of the mean"""
    median: float
    """regret that half of the replicas do not exceed"""
    q95: float
    """regret that 95 % of the replicas do not exceed"""
    worst: float
    """largest regret of a replica"""
    times: float
    """regret over that of the best agent without privacy"""
    times_low: float
    """lower end of the 95 % bootstrap interval of `times`, paired if users are equal"""
    times_high: float
    score: float
    """0 for the regret of uniform play, 1 for that of the best agent without privacy, linear"""
    score_low: float
    score_high: float
    above_fixed: float
    """regret over that of the best fixed action; inf if that action has none"""


_COLUMN_TYPES: Mapping[str, type] = Answer.__annotations__


def answer_file() -> Any:
    """Return the path of the table; the file is missing while it is being made."""
    return files("dpbandit.running").joinpath("answers.csv")


@cache
def answers() -> tuple[Answer, ...]:
    """Return all rows of the table."""
    text = answer_file().read_text(encoding="utf-8")
    return tuple(
        Answer(**{name: _COLUMN_TYPES[name](value) for name, value in row.items()})
        for row in csv.DictReader(line for line in text.splitlines() if line[:1] != "#")
    )


@cache
def chosen() -> Mapping[tuple[str, float], Answer]:
    """Return the chosen agents' rows by (problem, epsilon); epsilon is inf without privacy."""
    return {(one.problem, one.epsilon): one for one in answers() if one.role == CHOSEN}


def epsilons() -> tuple[float, ...]:
    """Return the measured epsilons, infinity among them, in increasing order."""
    return tuple(sorted({epsilon for _, epsilon in chosen()}))


def nearest(epsilon: float) -> float:
    """Return the measured finite epsilon nearest in logarithm; infinity for infinity."""
    finite = [one for one in epsilons() if one < inf]
    return epsilon if epsilon == inf else min(finite, key=lambda one: abs(log(one / epsilon)))


def same_problem(
    environment: str,
    arguments: Mapping[str, Any],
    horizon: int,
    brief: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> str | None:
    """Return the name of the suite's problem with these arguments, else None.

    Of several, it is the one with the nearest horizon. Problems of kind `TRUST` are left out: they
    repeat others' environments with another kind of privacy.

    Args:
        environment, arguments, horizon: environment of the problem, its arguments and horizon.
        brief: function that leaves out arguments equal to the environment's defaults.
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
    """Return arguments of an environment without its horizon as JSON, as in the table."""
    compared = {name: value for name, value in arguments.items() if name != "horizon"}
    return json.dumps(compared, sort_keys=True, default=repr)


def ranked(kind: str, epsilon: float) -> list[str]:
    """Sort the agents measured on a kind of problem by geometric mean of `times`, best first.

    Agents that competed on more problems of the kind come first. Without privacy, the means of
    private agents at epsilon infinity are multiplied by `WITHOUT_PRIVACY_FACTOR`.
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
"""Handicap of private agents at epsilon infinity against agents made without privacy."""
_LEAST_TIMES = 1e-3
"""Least value of `times` in a geometric mean, which a regret near 0 would dominate."""


@cache
def mean_scores(epsilon: float) -> Mapping[str, float]:
    """Return each agent's mean score over the problems on which it competed at an epsilon."""
    found: dict[str, list[float]] = {}
    for one in answers():
        if one.role == CANDIDATE and one.epsilon == epsilon:
            found.setdefault(one.agent, []).append(one.score)
    return {agent: sum(some) / len(some) for agent, some in found.items()}


@cache
def starting() -> frozenset[str]:
    """Return ids of the best agents of each kind of problem, at epsilon 1 and without privacy.

    Settings and wrappers, such as "guarded:", are left out.
    """
    ids = {one["id"] for one in catalogue("dpbandit.agents")}
    kinds = {one.kind for one in answers() if one.kind != TRUST}
    best = [ranked(kind, epsilon)[0] for kind in kinds for epsilon in (1.0, inf)]
    return frozenset(next(word for word in agent.split(":") if word in ids) for agent in best)


def score(agent: str) -> float | None:
    """Return an id's mean score at epsilon 1, of agents without epsilon the score at infinity."""
    return mean_scores(1.0).get(agent, mean_scores(inf).get(agent))


def by_score(some: Iterable[T]) -> list[T]:
    """Sort entries of the catalogue by score, best first, entries without a score last."""

    def place(one: Any) -> float:
        return inf if (mean := score(one.id)) is None else -mean

    return sorted(some, key=place)


AFFORDABLE = 1.5
"""Ratio to the regret of the best agent without privacy up to which privacy is affordable."""


class UsersNeeded(NamedTuple):
    """Numbers of users from which on a private agent is good; None if not reached."""

    affordable: int | None
    """users from which on regret is at most `AFFORDABLE` times that of the best without privacy"""
    beats_fixed: int | None
    """users from which on regret is below that of the best fixed action"""
    measured: int
    """largest number of users that was measured"""


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
    """Return the first of `places` from which on all `holds` are True; None if the last is not.

    >>> first_for_good([1, 2, 4, 8], [True, False, True, True])
    4
    """
    found = None
    for place, true in zip(places, holds, strict=True):
        found = (place if found is None else found) if true else None
    return found


def written(rows: Iterable[Answer], head: str) -> str:
    """Return rows as CSV text, numbers to six digits, below the lines of `head` after a #."""
    out = StringIO()
    out.writelines(f"# {line}\n" for line in head.splitlines())
    table = csv.writer(out, lineterminator="\n")
    table.writerow(Answer._fields)
    for row in rows:
        table.writerow(f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row)
    return out.getvalue()
