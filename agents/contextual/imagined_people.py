"""Simulated people: the moments of the contexts that a greedy policy serves."""

import numpy as np

from dpbandit.base import Floats

_PEOPLE = 3000
_AT_ONCE, _ENTRIES = 500, 2**18
"""People, and numbers of their rows, that are held at once"""


class ImaginedPeople:
    """E[f(x) x' 1(block)] of the rows x that a greedy policy plays, f the identity or the sign.

    Rows are uniform on the unit sphere: one of each person for all arms, or one for each arm, which
    then share a parameter. Every call imagines new people, the same in all replicas: their numbers
    are a constant of the program.

    Args:
        arms, dim: K and d.
        shared: whether every arm has a row of its own; then there is one block.
        signs: whether f is the sign.
    """

    def __init__(self, arms: int, dim: int, *, shared: bool, signs: bool) -> None:
        self._shape, self._signs = (_PEOPLE, arms if shared else 1, dim), signs
        self._public = np.random.default_rng(0)

    def moments(self, theta: Floats) -> Floats:
        """For parameters (R, blocks, d) -> (R, blocks, d, d); ties are played at random."""
        n, rows, d = self._shape
        people = self._public.standard_normal(self._shape)
        x = (people / np.linalg.norm(people, axis=2, keepdims=True)).reshape(n * rows, d)
        f = np.sign(x) if self._signs else x
        theta, place = np.unique(theta, axis=0, return_inverse=True)  # at first all are 0
        R, blocks, _ = theta.shape
        moments = np.zeros((R, blocks, d * d))
        for begin in range(
            0, n * rows, step := rows * min(_AT_ONCE, 1 + _ENTRIES // (rows * d * d))
        ):
            part = slice(begin, begin + step)
            outer = (f[part, :, None] * x[part, None]).reshape(-1, d * d)
            moments += self._played(theta @ x[part].T) @ outer
        return (moments.reshape(R, blocks, d, d) / n)[place.ravel()]

    def _played(self, scores: Floats) -> Floats:
        """How often each row is played, in each block, of scores (R, blocks, people x rows)."""
        R, blocks, length = scores.shape
        options = scores.reshape(R, blocks, -1, self._shape[1])  # rows or blocks are 1
        best = options == options.max(axis=(1, 3), keepdims=True)
        played: Floats = best / best.sum(axis=(1, 3), keepdims=True)
        return played.reshape(R, blocks, length)
