"""The best assortment under a multinomial logit, exactly: at fixed prices, of a list, or any.

Of A the expected margin is R(A) = sum_A v_j r_j / (1 + sum_A v_j), which is at least z if and only
if sum_A v_j (r_j - z) >= z. So with g(z) the sum of the S largest positive v_j (r_j - z) the best
margin R* is the root of g(z) = z, and Dinkelbach's steps reach it::

    z_0 = 0,   A_k attains g(z_k),   z_{k+1} = R(A_k),   until z no longer increases

Where z_k < R*, g(z_k) > z_k and so R(A_k) > z_k; sets are finitely many, so the last is the best.
With prices v_j (r_j - z) is replaced by the largest v_j(p) (p - c_j - z) over p: from a list, or in
closed form, because log v_j(p) + log(p - c_j - z) is concave where v_j(p) = exp(a_j - b_j p).
"""

from collections.abc import Callable

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.losses.click_models import weights


def best_levels(weight: Floats, margins: Floats, at_most: int) -> tuple[Ints, Floats]:
    """The best set, as levels (..., N) with 0 for what is not offered, and its margin R*, (...).

    Args:
        weight: v of each product at each of its prices, (..., N, P).
        margins: r, broadcasting against it.
        at_most: S.

    >>> best_levels(np.array([[1.0], [1.0], [9.0]]), np.array([[1.0], [0.8], [0.1]]), 2)
    (array([1, 1, 0]), array(0.6))
    """

    def choose(z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        gain = weight * (margins - z[..., None, None])
        level = gain.argmax(axis=-1)[..., None]
        v = np.take_along_axis(weight, level, axis=-1)[..., 0]
        r = np.take_along_axis(np.broadcast_to(margins, weight.shape), level, axis=-1)[..., 0]
        return gain.max(axis=-1), level[..., 0] + 1.0, v, r

    best, margin = _dinkelbach(choose, weight.shape[:-1], at_most)
    return best.astype(np.int64), margin


def best_prices(
    appeal: Floats, slope: Floats, costs: Floats, low: float, high: float, at_most: int
) -> tuple[Floats, Floats]:
    """The best set and its prices, (..., N) with 0 for what is not offered, and R*, (...).

    Args:
        appeal: a, utilities at price 0, (..., N).
        slope: b > 0, what a unit of money costs of utility; broadcasts against it, as the next.
        costs: c, of a unit.
        low, high: the range of prices, 0 < low <= high.
        at_most: S.
    """

    def choose(z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        p = np.clip(costs + z[..., None] + 1 / slope, low, high)
        p = np.broadcast_to(p, appeal.shape)
        v, r = weights(appeal - slope * p), p - costs
        return v * (r - z[..., None]), p, v, r

    return _dinkelbach(choose, appeal.shape, at_most)


def _dinkelbach(
    choose: Callable[[Floats], tuple[Floats, Floats, Floats, Floats]],
    shape: tuple[int, ...],
    at_most: int,
) -> tuple[Floats, Floats]:
    """`choose(z)`: of each product the largest v (r - z), at which price, and there v and r."""
    z, best = np.zeros(shape[:-1]), np.zeros(shape)
    while True:
        gain, price, v, r = choose(z)
        last = np.argsort(-gain, axis=-1, kind="stable")[..., at_most:]
        np.put_along_axis(gain, last, 0.0, axis=-1)
        v = np.where(gain > 0, v, 0.0)
        margin = (v * r).sum(axis=-1) / (1 + v.sum(axis=-1))
        better = margin > z
        if not better.any():
            return best, z
        best = np.where(better[..., None], np.where(gain > 0, price, 0.0), best)
        z = np.where(better, margin, z)
