"""Type aliases of arrays and small array operations that the whole package uses.

Axes: R replicas, the first axis of one round; n rounds of a block, before R; K arms; d features.
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
    """Return the indices 0..count-1 as a cached, read-only array."""
    index = np.arange(count)
    index.flags.writeable = False
    return index


def pick(values: Floats, action: Ints) -> Floats:
    """Return each replica's entry for its chosen arm: (R, K, ...) and (R,) -> (R, ...).

    Actions (n, R) of n rounds in which `values` stay the same give (n, R, ...).
    """
    return values[rows(len(values)), action]


def picks(values: Floats, action: Ints) -> Floats:
    """Return the chosen arms' rows where `values` differ by round: (n, R, K, d) -> (n, R, d).

    With actions (R,) of a single round this is `pick`.
    """
    if action.ndim == 1:
        return pick(values, action)
    return np.take_along_axis(values, action[..., None, None], axis=2)[:, :, 0]


def rounds_in(lead: tuple[int, ...]) -> int:
    """Return the number of rounds in arrays whose first axes are `lead`: (R,) is 1, (n, R) is n."""
    return 1 if len(lead) == 1 else lead[0]


def predictions(context: Floats, theta: Floats, *, shared: bool) -> Floats:
    """Compute x . theta_a of every arm, (R, K), or (n, R, K) for n rounds.

    Contexts (R, K, d) of arms that share theta (R, 1, d), or (R, d) for theta (R, K, d).
    """
    return np.matvec(context, theta[:, 0]) if shared else np.matvec(theta, context)


def norms(x: Floats, order: float = 2) -> Floats:
    """Compute l_order norms along the last axis: (..., d) -> (..., 1)."""
    if order == 2:
        return np.sqrt(np.vecdot(x, x))[..., None]
    if order == np.inf:
        return np.abs(x).max(axis=-1, keepdims=True)
    size = np.abs(x)
    most: Floats | float = 1.0
    if order > 4:  # high powers of entries underflow or overflow
        most = size.max(axis=-1, keepdims=True)
        size = size / np.where(most > 0, most, 1.0)
    return np.asarray(most * np.power(size, order).sum(axis=-1, keepdims=True) ** (1 / order))


def clip_norm(x: Floats, bound: float, order: float = 2) -> Floats:
    """Scale rows of `x` down to l_order norm `bound` where longer; replace non-finite rows by 0.

    A row with a NaN, an infinity or an overflowing norm carries no usable direction: it becomes
    the public constant 0, because clipping alone lets a NaN through.
    """
    x = np.asarray(x, dtype=np.float64)  # squares of integers wrap around, and would clip nothing
    with np.errstate(over="ignore", invalid="ignore"):
        length = norms(x, order)
        if (length <= bound).all():  # the usual case; False where anything is not finite
            return np.positive(x)  # a copy: callers store it
        clipped: Floats = x * (bound / np.maximum(length, bound))
    return np.where(np.isfinite(length), clipped, 0.0)


def clip_range(x: Floats, low: float, high: float) -> Floats:
    """Clip `x` to [low, high]; replace non-finite entries by the public constant `low`."""
    x = np.asarray(x, dtype=np.float64)
    if x.min(initial=high) >= low and x.max(initial=low) <= high:  # false where there is a NaN
        return np.positive(x)  # a copy: callers store it
    return np.clip(np.where(np.isfinite(x), x, low), low, high)


def best_allowed(scores: Floats, mask: Bools) -> Ints:
    """Return the allowed action with the largest score, the lowest of ties: (..., K) -> (...)."""
    return np.where(mask, scores, -np.inf).argmax(axis=-1)


def random_allowed(uniforms: Floats, mask: Bools) -> Ints:
    """Draw one of the allowed actions (..., K) uniformly, from uniforms (...).

    >>> random_allowed(np.array([0.2, 0.9]), np.array([[False, True, True]] * 2))
    array([1, 2])
    """
    place = (uniforms * np.count_nonzero(mask, axis=-1)).astype(np.int64)
    return (mask.cumsum(axis=-1) > place[..., None]).argmax(axis=-1)


def added_up(vectors: Floats) -> Floats:
    """Sum vectors over rounds, (n, R, d) -> (R, d), with roundings that do not depend on R."""
    if len(vectors) == 1:
        return vectors[0] + 0.0  # a sum has no -0.0
    return np.asarray(np.ascontiguousarray(vectors.transpose(1, 2, 0)).sum(axis=2))


def one_thread() -> AbstractContextManager[Any]:
    """Return a context manager under which BLAS runs on one thread."""
    # on short vectors more threads are slower, and they add in another order
    return _threads().limit(limits=1)


@cache
def _threads() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def drawn(weights: Floats, uniforms: Floats) -> Ints:
    """Draw an index i with probability weights_i / sum(weights): (R, K), uniforms (R,) -> (R,).

    Weights are >= 0, and at least one of each row is positive.

    >>> drawn(np.array([[1.0, 0.0, 3.0]] * 2), np.array([0.2, 0.3]))
    array([0, 2])
    """
    return at_height(weights.cumsum(axis=1), uniforms)


def at_height(heights: Floats, uniforms: Floats) -> Ints:
    """Draw an index as `drawn` does, from cumulative weights `heights` (R, K)."""
    # u x the last height, rounded, may be that height
    aim = np.minimum(uniforms * heights[:, -1], np.nextafter(heights[:, -1], 0.0))
    return np.asarray((heights > aim[:, None]).argmax(axis=1))
