"""Type aliases of arrays and small array operations that the whole package uses.

Axes: arrays of one round begin with R replicas, arrays of n rounds with (n, R); K arms; d features.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
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
    """Return from `values` (R, K, ...) each replica's entry for its chosen arm, (R, ...).

    Actions are (R,); actions (n, R) of n rounds with the same `values` give (n, R, ...).
    """
    return values[rows(len(values)), action]


def picks(values: Floats, action: Ints) -> Floats:
    """Return the chosen arms' rows (n, R, d) from `values` (n, R, K, d) that differ by round.

    With `action` (R,) and `values` (R, K, d) of a single round it does the same as `pick`.
    """
    if action.ndim == 1:
        return pick(values, action)
    return np.take_along_axis(values, action[..., None, None], axis=2)[:, :, 0]


def rounds_in(lead: tuple[int, ...]) -> int:
    """Return the number of rounds in arrays with first axes `lead`: 1 for (R,), n for (n, R).

    It is the sum of a replica's counts if the n entries are `counted_as` several rounds each.
    """
    if len(lead) == 1:
        return 1
    counts = record_counts()
    return lead[0] if counts is None else int(counts[:, 0].sum())


_record_counts: ContextVar[Ints | None] = ContextVar("counts of records", default=None)


def record_counts() -> Ints | None:
    """Return the counts (n, R) of the records that an agent learns from, None if all are 1."""
    return _record_counts.get()


@contextmanager
def counted_as(counts: Ints | None) -> Iterator[None]:
    """Make entry i of arrays (n, R, ...) stand for `counts[i, r]` rounds of replica r.

    The counts, (n, R), have the same sum in all replicas; None lets every entry be one round.
    """
    token = _record_counts.set(counts)
    try:
        yield
    finally:
        _record_counts.reset(token)


def predictions(context: Floats, theta: Floats, *, shared: bool) -> Floats:
    """Compute the scalar product of context and parameter of each arm, (R, K) or (n, R, K).

    If `shared`, contexts are (R, K, d), and all arms have the same theta (R, 1, d); otherwise
    contexts are (R, d), and theta is (R, K, d). An axis of n rounds may precede R.
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
    """Scale rows of `x` down to l_order norm `bound` if longer; replace non-finite rows by 0.

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
    """Return the allowed action with the largest score, the first of ties: (..., K) -> (...)."""
    return np.where(mask, scores, -np.inf).argmax(axis=-1)


def random_allowed(uniforms: Floats, mask: Bools) -> Ints:
    """Draw one of the actions that `mask` (..., K) allows, all equally likely, (...).

    >>> random_allowed(np.array([0.2, 0.9]), np.array([[False, True, True]] * 2))
    array([1, 2])
    """
    place = (uniforms * np.count_nonzero(mask, axis=-1)).astype(np.int64)
    return (mask.cumsum(axis=-1) > place[..., None]).argmax(axis=-1)


def added_up(vectors: Floats) -> Floats:
    """Sum vectors over rounds, (n, R, d) -> (R, d), with rounding that does not depend on R."""
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
    """Draw from each row of `weights` (R, K) an index with probability weight / sum, (R,).

    Weights are >= 0, at least one of each row is positive; `uniforms` (R,) are in [0, 1).

    >>> drawn(np.array([[1.0, 0.0, 3.0]] * 2), np.array([0.2, 0.3]))
    array([0, 2])
    """
    return at_height(weights.cumsum(axis=1), uniforms)


def at_height(heights: Floats, uniforms: Floats) -> Ints:
    """Draw indices (R,) as `drawn` does, given cumulative sums `heights` (R, K) of the weights."""
    # u x the last height, rounded, may be that height
    aim = np.minimum(uniforms * heights[:, -1], np.nextafter(heights[:, -1], 0.0))
    return np.asarray((heights > aim[:, None]).argmax(axis=1))
