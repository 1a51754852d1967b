"""Table of the cost of privacy measured on the suite, from which recommendations are made.

`dpbandit suite freeze` writes `answers.csv`. README, the page of the suite, the catalogue,
`dpbandit agents`, `recommend` and `frontier` read it; no other source names a best agent. The
role of a row is "candidate" for each agent among which the best was chosen for a problem at an
epsilon (infinity: without privacy). It is "chosen" for the best agent, measured again on new users,
"zero" for an agent that learns nothing, played on these new users, and "horizon" for the best agent
with a number of users other than the problem's own.
"""

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from importlib.resources import files
from io import StringIO
from math import inf, log
from typing import Any, NamedTuple, TypeVar

from dpbandit.lazy import catalogue

T = TypeVar("T")  # class of the entries of a catalogue
CHOSEN, ZERO, CANDIDATE, HORIZON = "chosen", "zero", "candidate", "horizon"
TRUST = "trust"
"""Value of `Answer.kind` for problems whose privacy does not rely on a trusted central server."""


class Answer(NamedTuple):
    """Row of the table answers.csv; regret is in the problem's unit, missing values are NaN."""

    problem: str
    """name of the problem in the suite"""
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
    """mean regret divided by that of the best agent without privacy"""
    times_low: float
    """lower end of the 95 % bootstrap interval of `times`, paired if both had the same users"""
    times_high: float
    score: float
    """regret on a linear scale, 0 for uniform play and 1 for the best agent without privacy"""
    score_low: float
    score_high: float
    above_fixed: float
    """mean regret divided by that of the best fixed action; inf if the latter is 0"""


_COLUMN_TYPES: Mapping[str, type] = Answer.__annotations__  # of answers.csv


def answer_file() -> Any:
    """Return the path of answers.csv, which does not exist while it is being made."""
    return files("dpbandit.running").joinpath("answers.csv")


@cache
def answers() -> tuple[Answer, ...]:
    """Return all rows of answers.csv."""
    text = answer_file().read_text(encoding="utf-8")
    return tuple(
        Answer(**{name: _COLUMN_TYPES[name](value) for name, value in row.items()})
        for row in csv.DictReader(line for line in text.splitlines() if line[:1] != "#")
    )


@cache
def chosen() -> Mapping[tuple[str, float], Answer]:
    """Return the rows of role "chosen" by (problem, epsilon); epsilon is inf without privacy."""
    return {(one.problem, one.epsilon): one for one in answers() if one.role == CHOSEN}


def epsilons() -> tuple[float, ...]:
    """Return the epsilons of the suite's measurements, infinity among them, in increasing order."""
    return tuple(sorted({epsilon for _, epsilon in chosen()}))


def nearest(epsilon: float) -> float:
    """Return the suite's finite epsilon whose logarithm is nearest; infinity for infinity."""
    finite = [one for one in epsilons() if one < inf]
    return epsilon if epsilon == inf else min(finite, key=lambda one: abs(log(one / epsilon)))


def same_problem(
    environment: str,
    arguments: Mapping[str, Any],
    horizon: int,
    brief: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> str | None:
    """Return the name of the suite's problem with these arguments, else None.

    If several have these arguments, the problem with the nearest horizon is returned. Problems of
    kind `TRUST` are left out, as they are other problems with another kind of privacy.

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
    """Return an environment's arguments without its horizon as JSON, as answers.csv has them."""
    compared = {name: value for name, value in arguments.items() if name != "horizon"}
    return json.dumps(compared, sort_keys=True, default=repr)


def ranked(kind: str, epsilon: float) -> list[str]:
    """Sort the agents measured on a kind of problem by the geometric mean of costs, best first.

    The cost on a problem is `Answer.times`. Agents that were measured on more problems come first.
    At epsilon infinity, private agents' means are multiplied by `WITHOUT_PRIVACY_FACTOR`.
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
"""Factor on the cost of private agents at epsilon infinity, so that other agents win near ties."""
_LEAST_TIMES = 1e-3
"""Lower limit of ratios of regrets in a geometric mean; a ratio near 0 would dominate the mean."""


@cache
def mean_scores(epsilon: float) -> Mapping[str, float]:
    """Return each agent's mean `Answer.score` over the problems measured with it at `epsilon`."""
    found: dict[str, list[float]] = {}
    for one in answers():
        if one.role == CANDIDATE and one.epsilon == epsilon:
            found.setdefault(one.agent, []).append(one.score)
    return {agent: sum(some) / len(some) for agent, some in found.items()}


@cache
def starting() -> frozenset[str]:
    """Return ids of the best agents of each kind of problem, at epsilon 1 and without privacy.

    The ids are without settings and without wrappers such as "guarded:".
    """
    ids = {one["id"] for one in catalogue("dpbandit.agents")}
    kinds = {one.kind for one in answers() if one.kind != TRUST}
    best = [ranked(kind, epsilon)[0] for kind in kinds for epsilon in (1.0, inf)]
    return frozenset(next(word for word in agent.split(":") if word in ids) for agent in best)


def score(agent: str) -> float | None:
    """Return an agent's mean `Answer.score` at epsilon 1; if it has no epsilon, without privacy."""
    return mean_scores(1.0).get(agent, mean_scores(inf).get(agent))


_LOW_SCORE = 0.5
"""Mean score on the suite below which lists of agents fold an agent."""


def folded(agent: str) -> bool:
    """Return True if lists hide an agent, as its score is low and it is the best of no kind."""
    mean = score(agent)
    return mean is not None and mean < _LOW_SCORE and agent not in starting()


def by_score(some: Iterable[T]) -> list[T]:
    """Sort entries of the catalogue by score, best first, entries without a score last."""

    def place(one: Any) -> float:
        return inf if (mean := score(one.id)) is None else -mean

    return sorted(some, key=place)


def written(rows: Iterable[Answer], head: str) -> str:
    """Return CSV text of rows, numbers to six digits, after the lines of `head` as comments."""
    out = StringIO()
    out.writelines(f"# {line}\n" for line in head.splitlines())
    table = csv.writer(out, lineterminator="\n")
    table.writerow(Answer._fields)
    for row in rows:
        table.writerow(f"{cell:.6g}" if isinstance(cell, float) else cell for cell in row)
    return out.getvalue()
