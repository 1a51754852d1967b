"""Regret of a run by segment, a column of a user's table with public levels, such as her shop."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import Floats, InputError, Ints, abbrev
from dpbandit.offline.columns import Levels
from dpbandit.running.episode import Served
from dpbandit.specs import Problem


class Part(NamedTuple):
    """Totals of the rounds of one segment, for each replica."""

    rounds: Ints
    """number of rounds whose users were in the segment, (R,)"""
    regret: Floats
    """regret of these rounds, (R,)"""

    def measures(self, by: str, level: str) -> dict[str, Floats]:
        """Return the totals as measures of an `AgentRun`."""
        return {
            f"rounds by {by}: {level}": 1.0 * self.rounds,
            f"regret by {by}: {level}": self.regret,
        }


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
    """Counter of rounds and regret by segment, for R replicas.

    These are exact functions of users' contexts: no certificate covers them.
    """

    def __init__(self, levels: Levels, replicas: int) -> None:
        self._levels = levels
        self._rounds = np.zeros((len(levels.names), replicas), np.int64)
        self._regret = np.zeros((len(levels.names), replicas))

    def add(self, served: Served) -> None:
        """Count a round or a block of rounds."""
        level, regret = self._levels.of(served.context), served.step.regret
        if not served.is_block:
            level, regret = level[None], regret[None]
        for k in range(len(self._rounds)):
            there = level == k
            self._rounds[k] += there.sum(axis=0)
            self._regret[k] += np.where(there, regret, 0.0).sum(axis=0)

    def parts(self) -> dict[str, Part]:
        """Return the totals so far, by name of the level."""
        parts = map(Part, self._rounds, self._regret)
        return dict(zip(self._levels.names, parts, strict=True))
