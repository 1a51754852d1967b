"""The slope of log mean regret against log T, or of anything else, and its standard error."""

from collections.abc import Sequence
from math import nan, sqrt
from typing import NamedTuple

import numpy as np

from dpbandit.base.arrays import Floats


class Slope(NamedTuple):
    """An exponent: regret grows like T to this power."""

    value: float
    se: float

    def __str__(self) -> str:
        return f"{self.value:.4f} ± {self.se:.4f}"


def slope(horizons: Sequence[float], regrets: Sequence[Floats]) -> Slope:
    """Least squares on the larger half of the horizons, NaN where a mean is not positive.

    The standard error is the jackknife's over replicas: runs with one seed and several horizons
    meet the same users, so their errors are not independent.

    Args:
        horizons: increasing.
        regrets: for every horizon the replicas' regret, (R,), R >= 2.

    >>> several = [T**0.75 * np.array([0.9, 1.0, 1.1]) for T in (1, 2, 4, 8)]
    >>> print(slope([1, 2, 4, 8], several))
    0.7500 ± 0.0000
    """
    half = len(horizons) // 2
    x = np.log(np.array(horizons[half:], dtype=float))
    y = np.array(regrets[half:])  # (horizons, R)
    R = y.shape[1]
    weights = (x - x.mean()) / np.square(x - x.mean()).sum()
    without_one = (y.sum(axis=1, keepdims=True) - y) / (R - 1)
    if min(y.mean(axis=1).min(), without_one.min()) <= 0:
        return Slope(nan, nan)
    value = weights @ np.log(y.mean(axis=1))
    each = weights @ np.log(without_one)
    return Slope(float(value), sqrt((R - 1) * float(each.var())))
