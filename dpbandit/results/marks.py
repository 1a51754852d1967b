"""The rounds at which regret is written down."""

import numpy as np

from dpbandit.base.arrays import Ints
from dpbandit.base.inputs import MOST_ROUNDS, whole

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
