"""One expert at random, by weights."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints


def drawn(weights: Floats, luck: Floats) -> Ints:
    """Expert i with probability weights_i over their sum: (R, d) and uniforms (R,) -> (R,).

    Weights are >= 0, and some positive.

    >>> drawn(np.array([[1.0, 0.0, 3.0]] * 2), np.array([0.2, 0.3]))
    array([0, 2])
    """
    heights = weights.cumsum(axis=1)
    # 1 - 2^-53 of the last height, rounded, may be that height
    aim = np.minimum(luck * heights[:, -1], np.nextafter(heights[:, -1], 0.0))
    chosen: Ints = (heights > aim[:, None]).argmax(axis=1)
    return chosen


def soft(scores: Floats) -> Floats:
    """Weights exp(score - largest score), (R, d): a softmax before it is normalised."""
    return np.exp(scores - scores.max(axis=1, keepdims=True))
