"""Simulated customers, drawn from the released law of contexts."""

import numpy as np

from dpbandit.base import Floats, Streams, clip_norm

_COUNT = 300
CUSTOMER_SPREAD = 0.05
"""Variance that one customer adds to a coordinate of the released moments; a rough public guess."""
_LEAST, _MOST = 1e-4, 1.0
"""Of the eigenvalues of a covariance of vectors in the unit ball."""


class ImaginedCustomers:
    """Normal vectors with the released mean and covariance, clipped to the unit ball.

    Release k has mean (F n)_k (m, M), with m and M the first two moments of a customer, n the
    lengths of batches and F their weights. The covariance of its noise is public, so generalised
    least squares over all releases estimates m and M. The normals are drawn once: estimates that
    hardly move make customers that hardly move.
    """

    def __init__(self, streams: Streams, dim: int) -> None:
        self._normals = streams.normals("imagined customers", _COUNT, dim)()  # (R, N, d)

    def __call__(self, first: Floats, second: Floats, users: Floats, covariance: Floats) -> Floats:
        """Released sums of x (R, m, d) and x x' (R, m, d, d) -> customers (R, N, d).

        Users in each release, faded, (m,); the covariance of a coordinate over releases, (m, m).
        """
        R, m, d = first.shape
        weights = np.linalg.solve(covariance, users)
        weights = weights / (weights @ users)
        mean = clip_norm(np.vecmat(weights, first), 1.0)  # (R, d)
        moments = np.vecmat(weights, second.reshape(R, m, d * d)).reshape(R, d, d)
        eigenvalues, U = np.linalg.eigh(moments - mean[:, :, None] * mean[:, None])
        root = U * np.sqrt(np.clip(eigenvalues, _LEAST, _MOST))[:, None]
        return clip_norm(mean[:, None] + self._normals @ root.transpose(0, 2, 1), 1.0)
