"""Estimators of a policy's mean reward from a log of prices drawn from a density.

With k = K((pi(x) - b) / h) / (h p), K a kernel and h a bandwidth in dollars::

    ips     k r                                    bias of order h^2
    snips   k r / mean(k)                          the same
    dr      q(x, pi(x)) + k (r - q(x, b))          bias of order h^2 of what q misses

Kallus and Zhou, "Policy evaluation and optimization with continuous treatments", AISTATS 2018. A
policy that draws its price is the mean over its draws.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from math import pi, sqrt

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.offline.terms import Terms

KERNELS: dict[str, Callable[[Floats], Floats]] = {
    "gaussian": lambda u: np.exp(-u * u / 2) / sqrt(2 * pi),
    "epanechnikov": lambda u: 0.75 * np.maximum(1 - u * u, 0),
}


@dataclass(eq=False)
class PriceRows:
    """What estimators need of n rows."""

    price: Floats
    reward: Floats
    density: Floats
    policy: Floats
    """(draws, n), dollars"""
    model: Callable[[], Callable[[Floats], Floats]]
    """gives q, from prices (n,) to rewards (n,)"""
    bandwidth: float
    kernel: str

    @cached_property
    def weight(self) -> Floats:
        """k, (n,)."""
        K, h = KERNELS[self.kernel], self.bandwidth
        near = [K((price - self.price) / h) for price in self.policy]
        return np.asarray(sum(near) / (len(near) * h * self.density))

    @cached_property
    def q(self) -> Callable[[Floats], Floats]:
        """The model."""
        return self.model()


def _ips(rows: PriceRows) -> Terms:
    return Terms(np.zeros_like(rows.weight), rows.weight * rows.reward, rows.weight)


def _snips(rows: PriceRows) -> Terms:
    return Terms(np.zeros_like(rows.weight), rows.weight * rows.reward, rows.weight, True)


def _dr(rows: PriceRows) -> Terms:
    value = np.mean([rows.q(price) for price in rows.policy], axis=0)
    return Terms(value, rows.weight * (rows.reward - rows.q(rows.price)), rows.weight)


PRICES: dict[str, Callable[[PriceRows], Terms]] = {"ips": _ips, "snips": _snips, "dr": _dr}
