"""Choose the directions of clipped scores, so that every feature is learned about."""

import numpy as np

from dpbandit.base import Floats

_FLOOR = 1.0
"""Added to eigenvalues, as a share of their mean: what hardly varies is hardly worth asking."""


class AimedScores:
    """The directions W phi of scores (y - p) W phi / |W phi|, W chosen anew after every release.

    A score is at most 1 long and the noise alike in all directions. Along phi most of that length
    is spent on what rows have in common, the constant and the price. With W the inverse root of
    E phi phi', of imagined customers at the prices that they will be asked, directions in which
    rows vary less have more nearly equal shares. The matrix W is a function of releases, and part
    of the reference point.
    """

    def __init__(self, replicas: int, dim: int) -> None:
        self._W: Floats = np.tile(np.eye(dim), (replicas, 1, 1))
        self._past: Floats = np.zeros((replicas, 0, dim, dim))  # of each batch that was released

    def along(self, phi: Floats) -> Floats:
        """Directions of the scores of a round's rows: (R, D) -> (R, D)."""
        return np.matvec(self._W, phi)

    def of_batches(self, phi: Floats) -> Floats:
        """Directions of the rows that each batch showed: (R, m, N, D) -> (R, m, N, D)."""
        return phi @ self._past.swapaxes(-1, -2)

    def batch_ends(self) -> None:
        """What was in force belongs to the batch that was just released."""
        self._past = np.concatenate([self._past, self._W[:, None]], axis=1)

    def aim(self, phi: Floats) -> None:
        """For a batch that will show rows like these, (R, N, D)."""
        eigenvalues, U = np.linalg.eigh(phi.swapaxes(1, 2) @ phi / phi.shape[1])
        floor = _FLOOR * eigenvalues.mean(axis=1, keepdims=True)
        root = np.sqrt(np.maximum(eigenvalues, 0.0) + floor)
        self._W = (U / root[:, None]) @ U.swapaxes(1, 2)
