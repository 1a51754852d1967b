"""Check stored results against the program by playing their first rounds again."""

import warnings
from math import hypot
from typing import Any

import numpy as np

from dpbandit.base import Bools, Floats, InputError, cpu_of, provenance
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.running.loop import Log
from dpbandit.studies import Configuration, play_any
from dpbandit.suite.outcomes import Outcome

REPLAY_TOLERANCE = 1e-9
"""Largest relative difference of two numbers that count as equal, to allow for rounding."""
MOST_ERRORS = 4.0
"""Largest difference of a mean on two CPUs, in standard errors, that counts as equal."""


def replays(one: Configuration, run: AgentRun | Outcome) -> bool:
    """Return True if playing a run again up to its first logged round gives the stored numbers.

    All replicas are played; agents are made for the run's full horizon, as they may depend on it.
    """
    here = _first_rounds(one, run)
    return here is not None and not _differing(run, here).any()


def holds(one: Configuration, run: AgentRun) -> bool:
    """Return True if the program reproduces a stored run up to its first logged round.

    On the type of CPU that made the run no replica may differ. On another type, rounding and so
    perhaps actions differ: there the two mean regrets must not be `far_off`.
    """
    here = _first_rounds(one, run)
    if here is None:
        return False
    if cpu_of(run.provenance) == cpu_of(provenance()):
        return not _differing(run, here).any()
    return not far_off(run.regret[0], here.regret[0])


def _first_rounds(one: Configuration, run: AgentRun | Outcome) -> Log | None:
    """Play a run again up to its first logged round; return None if the agent is now refused."""
    seeds = [(one.setup.seed, r) for r in run.replicas.tolist()]
    with warnings.catch_warnings(action="ignore"):  # of late learning, which the regret shows
        try:
            how: dict[str, Any] = {"marks": run.marks[:1], "answer_from": run.marks}
            return play_any(one.problem(), one.config, seeds, **how)
        except InputError:
            return None


def _differing(run: AgentRun | Outcome, here: Log) -> Bools:
    """Return a mask (R,) of replicas whose regret, reward or switches differ from the stored."""
    other = np.zeros(len(run.replicas), dtype=bool)
    for name in ("regret", "reward", "switches"):
        played, stored = getattr(here, name)[0], getattr(run, name)[0]
        other |= np.abs(stored - played) > REPLAY_TOLERANCE * np.maximum(1.0, np.abs(played))
    return other


def far_off(stated: Floats, here: Floats) -> bool:
    """Return True if two means differ by more than `MOST_ERRORS` combined standard errors.

    >>> far_off(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 3.1]))
    False
    >>> far_off(np.array([1.0, 2.0, 3.0]), np.array([6.0, 7.0, 8.0]))
    True
    """
    errors = hypot(standard_error(stated), standard_error(here))
    rounding = REPLAY_TOLERANCE * max(1.0, abs(float(here.mean())))
    return abs(float(stated.mean() - here.mean())) > max(MOST_ERRORS * errors, rounding)
