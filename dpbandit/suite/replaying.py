"""Hold stored results to the program: play their first rounds again."""

import warnings

import numpy as np

from dpbandit.base import Bools, InputError
from dpbandit.results.runs import AgentRun
from dpbandit.running.loop import play
from dpbandit.studies import Configuration
from dpbandit.suite.outcomes import Outcome

ROUNDING = 1e-9
"""Relative difference of numbers that are the same"""


def replays(one: Configuration, run: AgentRun | Outcome) -> bool:
    """True if the rounds up to the run's first mark come out as they are stored.

    All replicas are played, with the horizon that the run has, since agents may depend on it.
    """
    return not differing(one, run).any()


def differing(one: Configuration, run: AgentRun | Outcome) -> Bools:
    """Replicas (R,) that are not as stored at the run's first mark: regret, reward, switches."""
    first = run.marks[:1]
    seeds = [(one.setup.seed, r) for r in run.replicas.tolist()]
    with warnings.catch_warnings(action="ignore"):
        try:
            log = play(one.problem(), one.config, seeds, marks=first)
        except InputError:
            return np.ones(len(seeds), dtype=bool)
    other = np.zeros(len(seeds), dtype=bool)
    for here, stored in zip(
        (log.regret, log.reward, log.switches), (run.regret, run.reward, run.switches), strict=True
    ):
        scale = ROUNDING * np.maximum(1.0, np.abs(here[0]))
        other |= np.abs(stored[0] - here[0]) > scale
    return other
