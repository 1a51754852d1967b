"""Projections that are one threshold: find lambda, then cut x = q - lambda off at the bounds."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.domains.domain import tame


def onto_simplex(q: Floats, total: float = 1.0) -> Floats:
    """The nearest point with x >= 0 and sum x = total, (R, N) -> (R, N).

    Held, Wolfe & Crowder (1974): x = max(q - lambda, 0), lambda from the sorted entries. Entries
    `total` below the largest are 0 in x whatever they are, so they may be raised: this keeps the
    sums exact where q is huge.

    >>> onto_simplex(np.array([[0.8, 0.6, -9.0]])).round(3)
    array([[0.6, 0.4, 0. ]])
    """
    q = tame(q)
    y = np.maximum(q - q.max(axis=-1, keepdims=True), -total)
    falling = -np.sort(-y, axis=-1)
    thresholds = (falling.cumsum(axis=-1) - total) / np.arange(1, q.shape[-1] + 1)
    support = (falling > thresholds).sum(axis=-1, keepdims=True)
    return np.maximum(y - np.take_along_axis(thresholds, support - 1, axis=-1), 0.0)


def onto_capped_simplex(q: Floats, total: int) -> Floats:
    """The nearest point with 0 <= x <= 1 and sum x = total, 0 < total < N, (R, N) -> (R, N).

    x = clip(q - lambda, 0, 1), whose sum falls in lambda and is linear between the 2 N numbers
    q_i - 1 and q_i: binary search among these, then one interpolation. With q shifted so that its
    total-th largest entry is 0 there is a lambda in [-1, 0] (the sum is >= total at -1 and
    < total at 0), hence q may be cut off at +-1.

    >>> onto_capped_simplex(np.array([[5.0, 0.9, 0.7, -3.0]]), 2).round(3)
    array([[1. , 0.6, 0.4, 0. ]])
    """
    q = tame(q)
    pivot = np.sort(q, axis=-1)[..., -total, None]
    y = np.clip(q - pivot, -1.0, 1.0)
    corners = np.sort(np.clip(np.concatenate([y - 1, y], axis=-1), -1.0, 0.0), axis=-1)

    def cut(index: Ints) -> tuple[Floats, Floats]:
        corner = np.take_along_axis(corners, index, axis=-1)
        return corner, np.clip(y - corner, 0.0, 1.0).sum(axis=-1, keepdims=True)

    low = np.zeros((*q.shape[:-1], 1), dtype=np.int64)
    high = np.full_like(low, corners.shape[-1] - 1)
    for _ in range(corners.shape[-1].bit_length()):
        middle = (low + high) // 2
        enough = cut(middle)[1] >= total
        low, high = np.where(enough, middle, low), np.where(enough, high, middle)
    (left, most), (right, least) = cut(low), cut(high)
    share = (most - total) / np.where(most > least, most - least, 1.0)
    return np.clip(y - (left + share * (right - left)), 0.0, 1.0)
