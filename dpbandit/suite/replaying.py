"""Hold stored results to the program: play their first rounds again."""

import warnings
from math import hypot
from typing import Any

import numpy as np

from dpbandit.base import Bools, Floats, InputError, cpu_of, provenance
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.running.compare import play_any
from dpbandit.running.loop import Log
from dpbandit.studies import Configuration
from dpbandit.suite.outcomes import Outcome

ROUNDING = 1e-9
"""Relative difference of numbers that are the same"""
MOST_ERRORS = 4.0
"""Combined standard errors by which two means of the same replicas may differ elsewhere"""


def replays(one: Configuration, run: AgentRun | Outcome) -> bool:
    """True if the rounds up to the run's first mark come out as they are stored.

    All replicas are played, with the horizon that the run has, since agents may depend on it.
    """
    here = _first_rounds(one, run)
    return here is not None and not _differing(run, here).any()


def holds(one: Configuration, run: AgentRun) -> bool:
    """True if a stored run is what the program plays, up to its first mark.

    On the type of CPU that it was made on no replica may differ. Elsewhere rounding differs, and a
    policy may take another turn: there the mean regret may not be `far_off`.
    """
    here = _first_rounds(one, run)
    if here is None:
        return False
    if cpu_of(run.provenance) == cpu_of(provenance()):
        return not _differing(run, here).any()
    return not far_off(run.regret[0], here.regret[0])


def _first_rounds(one: Configuration, run: AgentRun | Outcome) -> Log | None:
    """All replicas of a run up to its first mark; None where the agent is refused now."""
    seeds = [(one.setup.seed, r) for r in run.replicas.tolist()]
    with warnings.catch_warnings(action="ignore"):  # that it learns late, which its regret shows
        try:
            how: dict[str, Any] = {"marks": run.marks[:1], "answer_from": run.marks}
            return play_any(one.problem(), one.config, seeds, **how)
        except InputError:
            return None


def _differing(run: AgentRun | Outcome, here: Log) -> Bools:
    """Replicas (R,) that are not as stored at the first mark: regret, reward or switches."""
    other = np.zeros(len(run.replicas), dtype=bool)
    for name in ("regret", "reward", "switches"):
        played, stored = getattr(here, name)[0], getattr(run, name)[0]
        other |= np.abs(stored - played) > ROUNDING * np.maximum(1.0, np.abs(played))
    return other


def far_off(stated: Floats, here: Floats) -> bool:
    """True if two means of the same replicas differ by more than `MOST_ERRORS` combined errors.

    >>> far_off(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.1]))
    False
    >>> far_off(np.array([1.0, 2.0, 3.0]), np.array([6.0, 7.0, 8.0]))
    True
    """
    errors = hypot(standard_error(stated), standard_error(here))
    rounding = ROUNDING * max(1.0, abs(float(here.mean())))
    return abs(float(stated.mean() - here.mean())) > max(MOST_ERRORS * errors, rounding)
