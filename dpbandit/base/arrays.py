"""The letters of the axes, and the small array operations everybody needs.

R replicas, always axis 0 of a round; n rounds of a block, in front of R; K arms; d features.
"""

from contextlib import AbstractContextManager
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

Floats: TypeAlias = npt.NDArray[np.floating[Any]]
Ints: TypeAlias = npt.NDArray[np.int64]
Bools: TypeAlias = npt.NDArray[np.bool_]
AnyArray: TypeAlias = npt.NDArray[Any]


@cache
def rows(count: int) -> Ints:
    """The indices 0..count-1, made once (treat as read-only)."""
    index = np.arange(count)
    index.flags.writeable = False
    return index


def pick(values: Floats, action: Ints) -> Floats:
    """The chosen arm's entry of each replica: (R, K, ...) and (R,) -> (R, ...).

    For several rounds of one policy (n, R) -> (n, R, ...).
    """
    return values[rows(len(values)), action]


def picks(values: Floats, action: Ints) -> Floats:
    """The same where values are of every round, too: (n, R, K, d) and (n, R) -> (n, R, d)."""
    if action.ndim == 1:
        return pick(values, action)
    return np.take_along_axis(values, action[..., None, None], axis=2)[:, :, 0]


def rounds_in(lead: tuple[int, ...]) -> int:
    """1 of arrays (R, ...), whose `lead` is (R,), or n of those of several rounds, (n, R)."""
    return 1 if len(lead) == 1 else lead[0]


def predictions(context: Floats, theta: Floats, *, shared: bool) -> Floats:
    """x . theta_a of every arm, (R, K), or of several rounds (n, R, K).

    Contexts (R, K, d) of arms that share theta (R, 1, d), or (R, d) for theta (R, K, d).
    """
    return np.matvec(context, theta[:, 0]) if shared else np.matvec(theta, context)


def norms(x: Floats, order: float = 2) -> Floats:
    """The l_order norm along the last axis, which is kept: (..., d) -> (..., 1)."""
    if order == 2:
        return np.sqrt(np.vecdot(x, x))[..., None]
    if order == np.inf:
        return np.abs(x).max(axis=-1, keepdims=True)
    size = np.abs(x)
    most: Floats | float = 1.0
    if order > 4:  # whose powers underflow, or overflow
        most = size.max(axis=-1, keepdims=True)
        size = size / np.where(most > 0, most, 1.0)
    return np.asarray(most * np.power(size, order).sum(axis=-1, keepdims=True) ** (1 / order))


def clip_norm(x: Floats, bound: float, order: float = 2) -> Floats:
    """`x` scaled down to l_order norm `bound` where it is longer; non-finite rows become 0.

    A row with a NaN, an infinity or an overflowing norm carries no usable direction: it becomes
    the public constant 0, because clipping alone lets a NaN through. Integers become floats first:
    their squares wrap around, and a wrapped norm clips nothing.
    """
    x = np.asarray(x, dtype=np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        length = norms(x, order)
        if (length <= bound).all():  # as it mostly is, and false where anything is not finite
            return np.positive(x)  # a copy: callers keep it
        clipped: Floats = x * (bound / np.maximum(length, bound))
    return np.where(np.isfinite(length), clipped, 0.0)


def clip_range(x: Floats, low: float, high: float) -> Floats:
    """`x` clipped to [low, high]; non-finite entries become the public constant `low`."""
    x = np.asarray(x, dtype=np.float64)
    if x.min(initial=high) >= low and x.max(initial=low) <= high:  # false where there is a NaN
        return np.positive(x)  # a copy: callers keep it
    return np.clip(np.where(np.isfinite(x), x, low), low, high)


def best_allowed(scores: Floats, mask: Bools) -> Ints:
    """The action with the largest score of those allowed, the lowest of equals: (..., K) each."""
    return np.where(mask, scores, -np.inf).argmax(axis=-1)


def random_allowed(uniforms: Floats, mask: Bools) -> Ints:
    """One of the allowed actions (..., K), each as likely as any other, by uniforms (...).

    >>> random_allowed(np.array([0.2, 0.9]), np.array([[False, True, True]] * 2))
    array([1, 2])
    """
    place = (uniforms * np.count_nonzero(mask, axis=-1)).astype(np.int64)
    return (mask.cumsum(axis=-1) > place[..., None]).argmax(axis=-1)


def added_up(vectors: Floats) -> Floats:
    """(n, R, d) -> (R, d), in an order that does not depend on R (as it might for d = 1)."""
    if len(vectors) == 1:
        return vectors[0] + 0.0  # a sum has no -0.0
    return np.asarray(np.ascontiguousarray(vectors.transpose(1, 2, 0)).sum(axis=2))


def one_thread() -> AbstractContextManager[Any]:
    """A context in which BLAS runs on one thread.

    More threads only wait for each other on vectors this short, and add in another order.
    """
    return _threads().limit(limits=1)


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def drawn(weights: Floats, uniforms: Floats) -> Ints:
    """Place i with probability weights_i over their sum: (R, K) and uniforms (R,) -> (R,).

    Weights are >= 0, and some positive.

    >>> drawn(np.array([[1.0, 0.0, 3.0]] * 2), np.array([0.2, 0.3]))
    array([0, 2])
    """
    return at_height(weights.cumsum(axis=1), uniforms)


def at_height(heights: Floats, uniforms: Floats) -> Ints:
    """The same of weights that are added up already."""
    # luck x the last height, rounded, may be that height
    aim = np.minimum(uniforms * heights[:, -1], np.nextafter(heights[:, -1], 0.0))
    return np.asarray((heights > aim[:, None]).argmax(axis=1))
