"""Which policy was in force: the one public fact about past rounds that delays make intricate."""

import numpy as np

from dpbandit.base import Ints, rows


def in_force(ends: Ints, delay: int, count: int) -> Ints:
    """After how many releases actions were chosen, for `count` rounds all over each batch.

    Batches end with the answers of rounds `ends`, which arrive `delay` rounds late: (m, count).

    >>> in_force(np.array([2, 6]), 1, 4)
    array([[0, 0, 0, 0],
           [0, 1, 1, 1]])
    """
    lengths = np.diff(ends, prepend=0)
    passed = np.floor((rows(count) + 0.5) / count * lengths[:, None])
    rounds = 1 + ends[:, None] - lengths[:, None] + passed
    return np.searchsorted(ends + delay, rounds)
