"""Whether anybody loses less than privacy allows."""

from math import inf, log, sqrt
from typing import NamedTuple

from dpbandit.experiments.experts.lower_bound import least_regret, news
from dpbandit.experiments.experts.runs import Found

FAILURE = 0.01
"""That any of all honest agents is called a liar."""


class Verdict(NamedTuple):
    """An agent's mean regret beside what no private agent can undercut."""

    judged_at: float
    """epsilon: what is certified, or claimed where nothing is certified"""
    mean: float
    upper: float
    """of the expected regret, with the stated confidence"""
    least: float
    """that an agent as private as that loses at least"""

    @property
    def refuted(self) -> bool:
        """Whether it cannot be as private as that."""
        return self.upper < self.least


def verdict(found: Found, statements: int) -> Verdict:
    """Judge a run on the lower bound's instance, one of so many.

    Regret lies in [0, k], k the rounds with news, so that by Hoeffding its expectation exceeds the
    mean of R replicas by k sqrt(ln(statements / `FAILURE`) / 2 R) with probability `FAILURE` /
    statements at most, whatever its law.
    """
    run = found.run
    d, k = run.problem.n_experts, news(run.problem.n_experts, run.problem.env_kwargs["epsilon"])
    epsilon = found.epsilon if 0 < found.epsilon < inf else run.epsilon
    mean = float(found.regret.mean())
    margin = k * sqrt(log(statements / FAILURE) / (2 * len(found.regret)))
    return Verdict(epsilon, mean, mean + margin, least_regret(d, epsilon, found.delta, tail=k))
