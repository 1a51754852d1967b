"""The regression of clicks on features of the items that were looked at, without privacy."""

from math import sqrt

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.privacy.clicks import features, possible_clicks
from dpbandit.specs.lists import ListSpec

_TOGETHER = 5000
"""Items whose widths are computed at a time, to stay in the processor's cache."""


class ClickRegression:
    """Least squares of clicks on f phi, f what an item's position is known to have been worth::

        V = I + sum f^2 phi phi',      b = sum f click phi,      theta = V^-1 b.

    For a position-based model that is unbiased, and of less variance than dividing clicks by f.
    """

    def __init__(self, spec: ListSpec, replicas: int, regularization: float) -> None:
        d = spec.features
        self._spec = spec
        self._regularization = regularization
        self._gram = np.tile(regularization * np.eye(d), (replicas, 1, 1))
        self._moment = np.zeros((replicas, d))
        self.root = np.tile(np.eye(d) / sqrt(regularization), (replicas, 1, 1))
        """B with B' B = V^-1, (R, d, d)"""
        self.theta: Floats = np.zeros((replicas, d))
        """(R, d)"""

    def learn(self, u: Floats, vectors: Floats, clicks: Floats) -> None:
        """Users (R, q), vectors of their lists (R, m, q), clicks (R, m)."""
        phi = features(u, vectors)
        clicks = possible_clicks(self._spec.clicks, clicks)
        f = self._spec.clicks.looked_at(clicks)
        seen = f[..., None] * phi
        self._gram += seen.swapaxes(1, 2) @ seen
        self._moment += np.vecmat(clicks, seen)
        eigenvalues, Q = np.linalg.eigh(self._gram)
        eigenvalues = np.maximum(eigenvalues, self._regularization)  # but for rounding they are
        self.root = (Q / np.sqrt(eigenvalues)[:, None]).swapaxes(1, 2)
        self.theta = np.vecmat(np.matvec(self.root, self._moment), self.root)

    def widths(self, u: Floats) -> Floats:
        """`|B phi|` of every item, phi = (1, u v) / sqrt(2), (R, N), some thousands at a time."""
        u = np.where(np.isfinite(u), u, 0.0).clip(-1, 1)
        root = self.root / sqrt(2)
        items = self._spec.catalogue.items
        square = np.empty((len(u), items.shape[1]))
        for r, B in enumerate(root):
            first, own, v = B[:, :1], B[:, 1:] * u[r], items[r if len(items) > 1 else 0]
            for start in range(0, len(v), _TOGETHER):
                some = slice(start, start + _TOGETHER)
                found = first + own @ v[some].T
                np.einsum("dn,dn->n", found, found, out=square[r, some])
        return np.sqrt(square)
