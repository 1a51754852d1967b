"""The rounds at which regret is written down."""

from typing import Any

import numpy as np

from dpbandit.base.arrays import Ints
from dpbandit.base.inputs import MOST_ROUNDS, InputError, shown, whole

_MARKS = 500


def log_marks(horizon: int) -> Ints:
    """About 500 rounds at which regret is logged: all of the first, then evenly in log and time.

    >>> log_marks(6).tolist()
    [1, 2, 3, 4, 5, 6]
    """
    whole("horizon", horizon, 1, MOST_ROUNDS)
    ratios = np.geomspace(1, horizon, _MARKS // 2)
    steps = np.linspace(1, horizon, _MARKS // 2)
    return np.unique(np.concatenate([ratios, steps, [horizon]]).round().astype(np.int64))


def checked_marks(marks: Any) -> Ints:
    """`marks` as an array; `InputError` unless they are rounds, each after the one before."""
    found = np.asarray(marks)
    if found.ndim != 1 or found.dtype.kind not in "iu" or not len(found):
        raise InputError(f"Expected marks={shown(marks)} to be rounds, such as [100, 200].")
    if found[0] < 1 or (np.diff(found) <= 0).any():
        raise InputError(f"Expected marks={shown(marks)} to increase from 1 or more.")
    return found.astype(np.int64)
