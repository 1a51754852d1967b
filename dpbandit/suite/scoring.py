"""Score agents at certified epsilons: 0 is uniform play, 1 the best agent without privacy."""

from collections.abc import Iterable, Mapping, Sequence
from math import inf, nan
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dpbandit.base import Floats, InputError
from dpbandit.results.comparisons import ratio_band
from dpbandit.results.runs import AgentRun
from dpbandit.suite.candidates import CLAIM_SLACK
from dpbandit.suite.catalogue import SuiteProblem, epsilons, problems

if TYPE_CHECKING:
    import pandas as pd


class Ends(NamedTuple):
    """Final regrets for the scores 0 (uniform play) and 1 (best non-private agent) of a problem."""

    uniform: Floats
    """regret of uniform play, (R,)"""
    best: Floats
    """regret of the best agent without privacy, (R,)"""
    name: str
    """name of the best agent without privacy"""


def ends_of(runs: Iterable[AgentRun]) -> dict[str, Ends]:
    """Return the `Ends` of every problem by name; raise `InputError` if their runs are missing."""
    found: dict[str, dict[str, AgentRun]] = {}
    for run in runs:
        found.setdefault(run.setup.problem, {})[run.name] = run
    ends = {}
    for one in problems().values():
        there = found.get(one.name, {})
        for name in ("uniform", one.without_privacy):
            if name not in there:
                raise InputError(f"Expected runs of {name} on {one.name!r}: they score all others.")
        best = there[one.without_privacy]
        ends[one.name] = Ends(there["uniform"].regret[-1], best.regret[-1], best.name)
    return ends


def scores(runs: Iterable[AgentRun], ends: Mapping[str, Ends]) -> "pd.DataFrame":
    """Score every agent on every problem and by capability, at every epsilon.

    A row has agent, capability, problem, epsilon, and `score` = (U - A) / (U - B) with a 95 %
    bootstrap interval `low` to `high` over replicas, whose users all agents share. A, U and B are
    mean regrets: of the agent's run with the largest certified epsilon up to the row's (infinity
    for runs without privacy), of uniform play, and of the best agent without privacy. Rows with an
    empty problem are means over a capability, if all its problems have a score.

    Args:
        runs: runs at one size of the suite.
        ends: regrets that define scores 0 and 1 at that size, see `ends_of`.
    """
    import pandas as pd

    by_agent: dict[str, dict[str, list[AgentRun]]] = {}
    for run in runs:
        by_agent.setdefault(run.name, {}).setdefault(run.setup.problem, []).append(run)
    rows = [
        {"agent": agent, **row}
        for agent, by_problem in by_agent.items()
        for capability in dict.fromkeys(one.capability for one in problems().values())
        for row in _rows(by_problem, capability, ends)
    ]
    return pd.DataFrame(rows, columns=_SCORE_COLUMNS)


_SCORE_COLUMNS = ["agent", "capability", "problem", "epsilon", "score", "low", "high"]
_SCORE_COLUMNS += ["regret", "se", "certified"]


def _rows(
    by_problem: Mapping[str, Sequence[AgentRun]], capability: str, ends: Mapping[str, Ends]
) -> Iterable[dict[str, Any]]:
    some = [one for one in problems().values() if one.capability == capability]
    for epsilon in (*epsilons(), inf):
        counted = [(one, best_at(by_problem.get(one.name, ()), one, epsilon)) for one in some]
        there = [(one, run) for one, run in counted if run is not None]
        for one, run in there:
            at = {"capability": capability, "problem": one.name, "epsilon": epsilon}
            R = run.regret[-1]
            yield {
                **at,
                **_score([(ends[one.name], R)]),
                "regret": float(R.mean()),
                "se": float(R.std(ddof=1) / len(R) ** 0.5),
                "certified": one.counted(run.certificate),
            }
        if len(there) == len(some):
            every = [(ends[one.name], run.regret[-1]) for one, run in there]
            at = {"capability": capability, "problem": "", "epsilon": epsilon}
            yield {**at, **_score(every), "regret": nan, "se": nan, "certified": nan}


def best_at(runs: Iterable[AgentRun], problem: SuiteProblem, epsilon: float) -> AgentRun | None:
    """Return the run with the largest certified epsilon up to `epsilon`; None without such a run.

    For infinity it is the first run if no run has a finite certified epsilon, or else None.
    """

    def counted(run: AgentRun) -> float:
        return problem.counted(run.certificate)

    finite = [run for run in runs if counted(run) < inf]
    if epsilon == inf:
        return None if finite else next(iter(runs), None)
    within = [run for run in finite if counted(run) <= epsilon * CLAIM_SLACK]
    return max(within, key=counted, default=None)


def _score(parts: Sequence[tuple[Ends, Floats]]) -> dict[str, float]:
    many = min(len(each) for end, regret in parts for each in (end.uniform, end.best, regret))
    saved = np.array([(end.uniform[:many] - regret[:many]) for end, regret in parts])
    possible = np.array([(end.uniform[:many] - end.best[:many]) for end, _ in parts])
    score, low, high = ratio_band(saved, possible)
    return {"score": score, "low": low, "high": high}
