"""Simulated slates, drawn from the released law of rows."""

import numpy as np

from dpbandit.base import Floats, Ints, Streams, rows
from dpbandit.privacy.residuals import unit

_COUNT = 128
"""Slates; each is seen once more in a mirror."""
SLATE_SPREAD = 0.2
"""Variance that a slate adds to an entry of d times the released moments; a rough public guess."""
_LEAST_EIGENVALUE = 0.02
"""Of the estimated moments, where their mean is 1."""
_LEAST_TRACE = 0.2
"""Of the moments of one user, which are clipped."""
_GOLDEN = 0.6180339887498949


class ImaginedSlates:
    """Slates of independent unit vectors, stretched to the released second moments of rows.

    Release k has mean (F n)_k M, M the clipped moments of a user's rows, n the lengths of batches
    and F their weights; generalised least squares over all releases estimates M up to its size,
    which does not matter. What deviates from the identity is shrunk by the share of its square that
    noise explains (James and Stein). The unit vectors are drawn once: estimates that hardly move
    make slates that hardly move.
    """

    count = 2 * _COUNT

    def __init__(self, streams: Streams, n_actions: int, dim: int) -> None:
        self._slates = unit(streams.normals("imagined slates", _COUNT, n_actions, dim)())
        self._root: Floats = np.tile(np.eye(dim), (len(streams), 1, 1))  # M^1/2, up to its size

    def learn(self, moments: Floats, users: Floats, covariance: Floats) -> None:
        """The law of slates, from released moments (R, m, d, d) of faded numbers of users (m,).

        The covariance of an entry of the diagonal over releases is (m, m); off it half of that.
        """
        R, m, d, _ = moments.shape
        weights = np.linalg.solve(covariance, users)
        weights = weights / (weights @ users)
        variance = weights @ covariance @ weights
        mean = np.vecmat(weights, moments.reshape(R, m, d * d)).reshape(R, d, d)
        size = np.clip(np.trace(mean, axis1=1, axis2=2), _LEAST_TRACE, 1)[:, None, None] / d
        excess = np.trace(mean, axis1=1, axis2=2)[:, None, None] / d
        deviation = (mean - excess * np.eye(d)) / size
        noise = variance / size**2 * d * (d + 1) / 2
        seen = (deviation**2).sum(axis=(1, 2), keepdims=True)
        kept = np.maximum(0.0, 1 - noise / np.maximum(seen, 1e-12))
        eigenvalues, U = np.linalg.eigh(np.eye(d) + kept * deviation)
        root = np.sqrt(np.clip(eigenvalues, _LEAST_EIGENVALUE, d))  # their sum is d
        self._root = U * root[:, None] @ U.swapaxes(1, 2)

    def chosen(
        self, one: slice, policies: Floats, in_force: Ints, *, random: bool = True
    ) -> tuple[Floats, Floats]:
        """Of the slates that each batch met, the rows chosen and the means, (R, m, 2 N, d) each.

        For the replicas `one`, from here on R. Policies are parameters (R, m, d), the first of them
        played at `random` if that is so; `in_force` says which one met a slate, (m, N). The second
        half are mirror images about the direction played: what was chosen there is chosen here, and
        what goes across that direction cancels exactly.
        """
        slates, root = self._slates[one], self._root[one, None]
        R, N, K, d = slates.shape
        axes = unit(np.matvec(root, policies))  # (R, m, d)
        scores = slates.reshape(R, N * K, d) @ axes.swapaxes(1, 2)
        best = scores.reshape(R, N, K, -1).argmax(axis=2)  # (R, N, m)
        if random:
            best[..., 0] = rows(N) * _GOLDEN % 1 * K
            axes[:, 0] = 0.0
        of_batch = best[:, rows(N), in_force]  # (R, m, N)
        row = slates[rows(R)[:, None, None], rows(N), of_batch]  # (R, m, N, d)
        mean = np.broadcast_to(slates.mean(axis=2)[:, None], row.shape)
        along = axes[:, in_force]
        return _with_images(row, along) @ root, _with_images(mean, along) @ root


def _with_images(vectors: Floats, along: Floats) -> Floats:
    mirrored = 2 * np.vecdot(vectors, along)[..., None] * along - vectors
    return np.concatenate([vectors, mirrored], axis=2)
