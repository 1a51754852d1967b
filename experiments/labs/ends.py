"""Regret at the end of runs, and a mean with its error as text."""

from collections.abc import Iterable

import numpy as np

from dpbandit.base import Floats
from dpbandit.results.runs import AgentRun, standard_error


def plus_minus(values: Floats) -> str:
    """Return the mean over replicas and its standard error as text.

    >>> plus_minus(np.array([898.0, 912.0]))
    '905 +- 7'
    """
    mean, error = values.mean(), standard_error(values)
    digits = max(0, 1 - int(np.floor(np.log10(error)))) if 0 < error < 1 else 0
    return f"{mean:,.{digits}f} +- {error:.{digits}f}"


def at_end(results: Iterable[AgentRun]) -> dict[str, Floats]:
    """Return the regret of each agent after the last round, one number for each replica."""
    return {run.name: run.regret[-1] for run in results}
