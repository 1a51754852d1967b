"""Statistical comparisons of runs: paired differences, Holm's correction, bootstrap bands."""

from collections.abc import Sequence
from math import inf, nan, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import scipy

from dpbandit.base import Floats, InputError, abbrev, one_of, positive
from dpbandit.results.problems import labels, several_problems
from dpbandit.results.runs import AgentRun, without_epsilon

if TYPE_CHECKING:
    import pandas as pd


LEVEL = 0.95
"""Confidence level of all intervals"""
_EQUAL_GAPS_TOLERANCE = 1e-12
"""Standard error of differences, divided by their mean, below which they all count as equal."""


class Paired(NamedTuple):
    """Mean difference of paired values, with its confidence interval and t-test."""

    mean: float
    low: float
    """lower end of the confidence interval of the mean"""
    high: float
    p: float
    """two-sided p-value of the t-test of no difference"""
    pairs: int


def paired(values: Floats, others: Floats) -> Paired:
    """Estimate the mean of `values` - `others`, arrays (R,), with Student's interval and test.

    With common random numbers this is much more precise than comparing two means. The interval is
    NaN for a single pair, or if all R differences are equal, where p = 2^(1 - R) as in a sign test.

    >>> paired(np.array([3.0, 5.0, 4.0]), np.array([1.0, 2.0, 3.0])).mean
    2.0
    """
    gaps = values - others
    pairs, mean = len(gaps), float(gaps.mean())
    if pairs < 2:
        return Paired(mean, nan, nan, nan, pairs)
    se = float(gaps.std(ddof=1)) / sqrt(pairs)
    if se <= _EQUAL_GAPS_TOLERANCE * abs(mean):
        return Paired(mean, nan, nan, 1.0 if mean == 0 else 2.0 ** (1 - pairs), pairs)
    half = float(scipy.special.stdtrit(pairs - 1, (1 + LEVEL) / 2)) * se
    p = float(2 * scipy.special.stdtr(pairs - 1, -abs(mean) / se))
    return Paired(mean, mean - half, mean + half, p, pairs)


def holm(p: Sequence[float]) -> Floats:
    """Adjust p-values for multiple tests by Holm's method (1979, Scand. J. Stat.).

    The probability that any true null hypothesis gets an adjusted value below 0.05 is at most 5 %,
    if p-values are valid. NaNs, for tests that were not made, stay NaN and do not count.

    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.array(p, dtype=float)
    order = np.argsort(values)  # NaNs last
    tests = int(np.isfinite(values).sum())
    factors = np.maximum(tests - np.arange(len(values)), 1)
    adjusted = np.empty_like(values)
    adjusted[order] = np.minimum(np.maximum.accumulate(values[order] * factors), 1)
    return adjusted


def bootstrap_band(values: Floats) -> tuple[Floats, Floats]:
    """Return lower and upper ends of a pointwise bootstrap interval of the mean over replicas.

    The percentiles of bootstrap means are widened about the mean to correct for few replicas: by
    sqrt(R / (R - 1)) for the variance, and by Student's quantile divided by the normal one
    (Hesterberg 2015, The American Statistician).

    Args:
        values: (..., R), R >= 2; replicas are drawn with replacement, each with all its values.
    """
    samples = values @ resampled(values.shape[-1])
    return _band(values.mean(axis=-1), samples, values.shape[-1])


def ratio_band(values: Floats, over: Floats) -> tuple[float, float, float]:
    """Return the mean over rows of mean(values) / mean(over), and its bootstrap interval.

    Args:
        values: (rows, R), R >= 2; a drawn replica enters with all its rows of `values` and `over`.
        over: denominators, (rows, R).

    >>> ratio_band(np.array([[1.0, 2.0, 3.0]]), np.array([[2.0, 4.0, 6.0]]))
    (0.5, 0.5, 0.5)
    """
    R = values.shape[-1]
    weights = resampled(R)
    found = (values.mean(axis=-1) / over.mean(axis=-1)).mean()
    samples = ((values @ weights) / (over @ weights)).mean(axis=0)
    low, high = _band(found, samples, R)
    return float(found), float(low), float(high)


def _band(found: Any, samples: Floats, R: int) -> tuple[Any, Any]:
    tail, special = (1 - LEVEL) / 2, scipy.special
    low, high = np.quantile(samples, [tail, 1 - tail], axis=-1)
    stretch = sqrt(R / (R - 1)) * special.stdtrit(R - 1, 1 - tail) / special.ndtri(1 - tail)
    return found - stretch * (found - low), found + stretch * (high - found)


def differences(runs: Sequence[AgentRun], baseline: str) -> "pd.DataFrame":
    """Compare each run's final regret with that of `baseline` on the same users, by replica.

    One row for each run: `problem`, `horizon`, `agent`, `epsilon`, `delta`; the mean `difference`
    (negative: less regret than the baseline), its 95 % confidence interval `low` to `high`,
    the two-sided `p` of a paired t-test, `p_holm`, corrected for all tests of the table, `pairs`,
    and `verdict`: "less", "more" or "no difference found" at 5 % after the correction, or
    "not tested" if fewer than two replicas are shared. If the baseline ran for several (epsilon,
    delta), a run is compared with the baseline's run of equal target.

    Raises:
        InputError: no run is called `baseline`.
    """
    import pandas as pd

    one_of("baseline", baseline, {run.name for run in runs})
    names = labels(run.setup for run in runs)
    rows = [
        _row(run, names[run.place[0]], _partner(runs, run, baseline))
        for run in runs
        if run.name != baseline
    ]
    table = pd.DataFrame(rows, columns=_DIFFERENCE_COLUMNS)
    table["p_holm"] = holm(table["p"].to_list())
    sure = table["p_holm"] < 1 - LEVEL
    words = np.where(table["difference"] < 0, "less", "more")
    words = np.where(sure, words, "no difference found")
    table["verdict"] = np.where(table["p"].isna(), "not tested", words)
    return table


_DIFFERENCE_COLUMNS = ["problem", "horizon", "agent", "epsilon", "delta"]  # of `differences`
_DIFFERENCE_COLUMNS += ["difference", "low", "high", "p", "pairs"]  # and `p_holm`, `verdict`


def _partner(runs: Sequence[AgentRun], run: AgentRun, baseline: str) -> AgentRun | None:
    """Return the baseline's run on the problem of `run`; of several, the run with equal target."""
    there = [other for other in runs if other.name == baseline and other.place == run.place]
    if len(there) > 1:
        there = [other for other in there if _target(other) == _target(run)]
    return there[0] if len(there) == 1 else None


def _target(run: AgentRun) -> tuple[float, float]:
    return run.certificate.claimed_epsilon, run.certificate.claimed_delta


def _row(run: AgentRun, name: str, partner: AgentRun | None) -> tuple[Any, ...]:
    of = (name, run.setup.horizon, run.name, *_target(run))
    if partner is None:
        return (*of, nan, nan, nan, nan, 0)
    _, ours, theirs = np.intersect1d(run.replicas, partner.replicas, return_indices=True)
    if len(ours) == 0:
        return (*of, nan, nan, nan, nan, 0)
    found = paired(run.regret[-1, ours], partner.regret[-1, theirs])
    return (*of, found.mean, found.low, found.high, found.p, found.pairs)


class Needed(NamedTuple):
    """Smallest epsilon at which an agent's mean regret is at most a given bound."""

    epsilon: float
    """certified epsilon; inf if no run meets the bound, the runs' smallest one if all meet it"""
    low: float
    """lower end of the bootstrap interval of `epsilon`"""
    high: float
    least: float
    """smallest mean regret among all runs of the agent"""


def epsilon_for(runs: Sequence[AgentRun], regret: float, *, agent: str | None = None) -> Needed:
    """Compute the smallest certified epsilon at which the mean regret is at most `regret`.

    Between two runs the mean is interpolated in the logarithm of epsilon. The bootstrap draws
    replicas, each with its runs at all epsilons, which have the same users.

    Args:
        runs: runs on one problem, some of them private, with replicas 0, 1, ... in common.
        regret: bound on the mean regret, in units of the reward, > 0.
        agent: name of the agent without epsilon; needed if several agents are private.

    Raises:
        InputError: no run is private, several agents are, or runs are on several problems.
    """
    positive("regret", regret)
    runs_of_agent: dict[str, list[AgentRun]] = {}
    for run in runs:
        if 0 < run.certificate.epsilon < inf:
            runs_of_agent.setdefault(without_epsilon(run.name), []).append(run)
    if not runs_of_agent:
        raise InputError("Expected runs of which some are private, got none.")
    if agent is None and len(runs_of_agent) == 1:
        (agent,) = runs_of_agent
    if not isinstance(agent, str) or agent not in runs_of_agent:
        agent_text = "agent" if agent is None else f"agent={abbrev(agent)}"
        raise InputError(
            f"Expected {agent_text} to be a private one of {', '.join(runs_of_agent)}."
        )
    mine = sorted(runs_of_agent[agent], key=lambda run: run.certificate.epsilon)
    if len({run.place for run in mine}) > 1:
        raise several_problems(run.setup for run in mine)
    epsilons = np.array([run.certificate.epsilon for run in mine])
    many = min(len(run.replicas) for run in mine)
    curves = np.array([run.regret[-1, :many] for run in mine])
    samples = _first_below(epsilons, curves @ resampled(many), regret)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(samples, [tail, 1 - tail], method="nearest")
    means = curves.mean(axis=1, keepdims=True)
    (found,) = _first_below(epsilons, means, regret)
    return Needed(float(found), float(low), float(high), float(means.min()))


def _first_below(epsilons: Floats, means: Floats, regret: float) -> Floats:
    """Return the smallest epsilon (n,), interpolated, at which means (epsilons, n) are <= `regret`.

    >>> _first_below(np.array([1.0, 4.0]), np.array([[8.0, 1.0, 9.0], [2.0, 1.0, 9.0]]), 5.0)
    array([ 2.,  1., inf])
    """
    below = means <= regret
    k, n = below.argmax(axis=0), np.arange(means.shape[1])
    before = np.maximum(k - 1, 0)
    above, there = means[before, n], means[k, n]
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.where(k > 0, (above - regret) / (above - there), 0.0)
    found = epsilons[before] * (epsilons[k] / epsilons[before]) ** part
    return np.where(below.any(axis=0), found, inf)


def resampled(R: int) -> Floats:
    """Draw the relative frequency of each of R replicas in bootstrap samples, (R, 2000)."""
    return np.random.default_rng(0).multinomial(R, np.full(R, 1 / R), size=2000).T / R
