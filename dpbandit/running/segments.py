"""Regret of a run by segment, a column of a user's table with public levels, such as her shop."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpbandit.base import Floats, InputError, abbrev
from dpbandit.offline.columns import Levels
from dpbandit.running.episode import Served
from dpbandit.specs import Problem


def levels_of(problem: Problem, by: Any) -> Levels:
    """Return the levels of the column `by`, which tell the segment of a user from her context.

    Raises:
        InputError: contexts of the problem do not tell it.
    """
    levels: Mapping[str, Levels] = getattr(problem, "segments", {})
    if not isinstance(by, str) or by not in levels:
        known = f"one of {', '.join(map(repr, levels))}" if levels else "left out here"
        raise InputError(
            f"Expected by={abbrev(by)} to be {known}: a segment is a feature of a log whose levels "
            "are listed, as shop=A,B, and people who come back have none."
        )
    return levels[by]


class Segments:
    """Counter of rounds and regret by the levels of the column `by`, for R replicas.

    These are exact functions of users' contexts: no certificate covers them.
    """

    def __init__(self, problem: Problem, by: str, replicas: int) -> None:
        self._by, self._levels = by, levels_of(problem, by)
        self._rounds = np.zeros((len(self._levels.names), replicas))
        self._regret = np.zeros((len(self._levels.names), replicas))

    def add(self, served: Served) -> None:
        """Count a round or a block of rounds."""
        level, regret = self._levels.of(served.context), served.step.regret
        if not served.is_block:
            level, regret = level[None], regret[None]
        for k in range(len(self._rounds)):
            there = level == k
            self._rounds[k] += there.sum(axis=0)
            self._regret[k] += np.where(there, regret, 0.0).sum(axis=0)

    def measures(self) -> dict[str, Floats]:
        """Return the totals so far, (R,) for each level, as measures of an `AgentRun`."""
        found = {}
        for k, level in enumerate(self._levels.names):
            found[f"rounds by {self._by}: {level}"] = self._rounds[k]
            found[f"regret by {self._by}: {level}"] = self._regret[k]
        return found
