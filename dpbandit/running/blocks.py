"""Blocks of replicas: how many are run together. Changes speed, never values."""

from collections.abc import Sequence

import numpy as np

from dpbandit.specs.convex import ExpertsSpec
from dpbandit.specs.lists import ReturningSpec
from dpbandit.specs.protocols import ContextualSpec, Spec

_CHUNK_BYTES = 1 << 20
"""Replicas run together while their d x d matrices fit the cache."""


def replicas_at_once(spec: Spec) -> int:
    """Replicas whose matrices fit the cache together. Changes speed, never values."""
    spec = spec.visit if isinstance(spec, ReturningSpec) else spec
    if isinstance(spec, ExpertsSpec):  # no matrices
        return max(1, _CHUNK_BYTES // (8 * spec.n_actions))
    arms = spec.n_actions if isinstance(spec, ContextualSpec) and not spec.shared else 1
    return max(1, _CHUNK_BYTES // (8 * arms * spec.context_shape[-1] ** 2))


def consecutive(replicas: Sequence[int], size: int) -> list[tuple[int, int]]:
    """(first, last + 1) of blocks of at most `size` neighbours.

    >>> consecutive([0, 1, 2, 5, 6], 2)
    [(0, 2), (2, 3), (5, 7)]
    """
    numbers = np.array(replicas, dtype=int)
    parts = np.split(numbers, np.flatnonzero(np.diff(numbers) > 1) + 1)
    return [
        (int(part[i]), int(part[min(i + size, len(part)) - 1]) + 1)
        for part in parts
        for i in range(0, len(part), size)
    ]
