"""Orthonormal bases of the subspaces V that flat domains live in."""

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.domains.domain import constant


def sum_zero_basis(dim: int) -> Floats:
    """Helmert's basis of {v: sum v = 0}, (N, N - 1).

    Column j is 1 on the first j entries, -j on the next, over its length sqrt(j (j + 1)).

    >>> sum_zero_basis(3).round(3)
    array([[ 0.707,  0.408],
           [-0.707,  0.408],
           [ 0.   , -0.816]])
    """
    j = np.arange(1, dim)
    columns = np.triu(np.ones((dim, dim - 1)))
    columns[j, j - 1] = -j
    return constant(columns / np.sqrt(j * (j + 1.0)))


def null_basis(equations: Floats) -> Floats:
    """A basis of {v: equations v = 0}, (M, N) -> (N, N - rank)."""
    _, singular, right = np.linalg.svd(equations)
    rank = int((singular > 1e-10 * max(singular[0], 1.0)).sum())
    return constant(right[rank:].T)
