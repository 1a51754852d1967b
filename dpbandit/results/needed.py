"""The least epsilon at which an agent loses no more than something."""

import re
from collections.abc import Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from dpbandit.base import Floats, InputError, positive
from dpbandit.results.runs import AgentRun


class Needed(NamedTuple):
    """The least epsilon at which an agent loses no more than something."""

    epsilon: float
    """certified; infinity if no run loses so little, the smallest that was run if all do"""
    low: float
    """lower end of the bootstrap interval"""
    high: float


def epsilon_for(
    runs: Sequence[AgentRun], regret: float, *, agent: str | None = None, level: float = 0.95
) -> Needed:
    """Compute the least certified epsilon at which the mean regret is at most `regret`.

    Between two runs the mean is interpolated in the logarithm of epsilon; replicas are drawn
    together for the interval, since they meet the same users at every epsilon.

    Args:
        runs: on one problem, some of them private, with replicas 0, 1, ... in common.
        regret: in units of the reward, > 0.
        agent: whose runs; its name without epsilon, needed where several are private.
        level: of the interval.

    Raises:
        InputError: no private runs, of several agents, or on several problems.
    """
    positive("regret", regret)
    own: dict[str, list[AgentRun]] = {}
    for run in runs:
        if 0 < run.certificate.epsilon < inf:
            own.setdefault(re.sub(r"[: ]epsilon=[^: ]+", "", run.name), []).append(run)
    if not own:
        raise InputError("Expected runs of which some are private, got none that is.")
    if agent is None and len(own) == 1:
        (agent,) = own
    if agent is None or agent not in own:
        raise InputError(f"Expected agent={agent!r} to be a private one of {', '.join(own)}.")
    mine = sorted(own[agent], key=lambda run: run.certificate.epsilon)
    if len({(run.setup.problem, run.setup.horizon, run.setup.seed) for run in mine}) > 1:
        raise InputError(
            "Expected runs on one problem: choose with where(problem=..., horizon=...)."
        )
    epsilons = np.array([run.certificate.epsilon for run in mine])
    many = min(len(run.replicas) for run in mine)
    curves = np.array([run.regret[-1, :many] for run in mine])
    samples = _first_below(epsilons, curves @ resampled(many, 2000, 0), regret)
    tail = (1 - level) / 2
    low, high = np.quantile(samples, [tail, 1 - tail], method="nearest")
    (found,) = _first_below(epsilons, curves.mean(axis=1, keepdims=True), regret)
    return Needed(float(found), float(low), float(high))


def _first_below(epsilons: Floats, means: Floats, regret: float) -> Floats:
    """Where means (E, n) first come down to `regret`, (n,).

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


def resampled(R: int, resamples: int, seed: int) -> Floats:
    """Weights of R replicas in each sample, (R, resamples)."""
    rng = np.random.default_rng(seed)
    return rng.multinomial(R, np.full(R, 1 / R), size=resamples).T / R
