"""The multinomial logit: who is offered a set of products buys one of them, or none."""

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats

FARTHEST = 30.0
"""Utilities are clipped to +-30, so that their exponentials are far from overflow."""


def weights(utility: Floats) -> Floats:
    """exp(utility), of utilities of any shape; what is no number becomes the least there is."""
    return np.exp(np.nan_to_num(utility, nan=-FARTHEST).clip(-FARTHEST, FARTHEST))


def chances(weight: Floats, offered: npt.NDArray[np.bool_]) -> Floats:
    """P(each is bought), w_j / (1 + sum of the offered w), 0 where not offered: (..., S).

    >>> chances(np.array([1.0, 2.0, 9.0]), np.array([True, True, False]))
    array([0.25, 0.5 , 0.  ])
    """
    w = np.where(offered, weight, 0.0)
    return np.asarray(w / (1 + w.sum(axis=-1, keepdims=True)))
