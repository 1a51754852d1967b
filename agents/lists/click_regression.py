"""The regression of clicks on features of the items that were looked at, without privacy."""

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.privacy.statistics.list_clicks import features, possible_clicks
from dpbandit.specs.lists import ListSpec


class ClickRegression:
    """Least squares of clicks on f phi, f what an item's position is known to have been worth::

        V = I + sum f^2 phi phi',      b = sum f click phi,      theta = V^-1 b.

    For a position-based model that is unbiased, and of less variance than dividing clicks by f.
    """

    def __init__(self, spec: ListSpec, replicas: int, regularization: float) -> None:
        d = spec.features
        self._spec = spec
        self._gram = np.tile(regularization * np.eye(d), (replicas, 1, 1))
        self._moment = np.zeros((replicas, d))
        self.inverse = np.linalg.inv(self._gram)
        """V^-1, (R, d, d)"""
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
        self.inverse = np.linalg.inv(self._gram)
        self.theta = np.matvec(self.inverse, self._moment)

    def widths(self, u: Floats) -> Floats:
        """`|phi|` of every item in the norm of V^-1, (R, N): no array of features of all items."""
        u = np.where(np.isfinite(u), u, 0.0).clip(-1, 1)
        A, items = self.inverse, self._spec.catalogue.items
        own = u[:, :, None] * A[:, 1:, 1:] * u[:, None, :]
        linear = self._spec.catalogue.products(2 * u * A[:, 0, 1:])
        square = A[:, :1, 0] + linear
        for r, matrix in enumerate(own):
            v = items[r if len(items) > 1 else 0]
            square[r] += np.vecdot(v @ matrix, v)
        return np.asarray(np.sqrt(square / 2))
