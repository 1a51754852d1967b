"""Regret of private agents on arms without contexts, beside a lower bound."""

from collections.abc import Iterable, Iterator
from math import log

import numpy as np

from dpbandit.envs.arms.arms import MEANS
from dpbandit.experiments.figure import RunLines
from dpbandit.results.plots import DASHES, Overlay


def lower_bound(means: Iterable[float], epsilon: float) -> float:
    """Return a lower bound on regret / log T for consistent epsilon-DP agents, as T grows.

    Azize and Basu, NeurIPS 2022, Theorem 2, for rewards of 0 or 1: the sum of D / min(kl(m, m*),
    6 epsilon D) over arms with mean m below the best mean m*, where D = m* - m.

    >>> round(lower_bound((0.6, 0.4), 1.0), 3), round(lower_bound((0.6, 0.4), 0.01), 2)
    (2.466, 16.67)
    """
    m = np.array(list(means))
    best = m.max()
    m = m[m < best]
    kl = m * np.log(m / best) + (1 - m) * np.log((1 - m) / (1 - best))
    return float(((best - m) / np.minimum(kl, 6 * epsilon * (best - m))).sum())


def bounds(lines: RunLines, x: str) -> Iterator[Overlay]:
    """Yield the lower bound against epsilon at the panel's horizon, or against T at epsilon 1."""
    setup = lines["Uniform"][0].setup
    means = MEANS[str(setup.env_kwargs["means"])]
    over = {
        "epsilon": lambda epsilon: lower_bound(means, epsilon) * log(setup.horizon),
        "T": lambda T: lower_bound(means, 1.0) * log(T),
    }
    yield Overlay("lower bound", over[x], DASHES[3])  # other dashes than uniform play
