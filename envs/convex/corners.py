"""Users whose datum is a unit vector: customers who each choose one of N things."""

from dataclasses import dataclass

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Simplex
from dpbandit.envs.convex.adversaries import Adversary, Constant, Oblivious
from dpbandit.losses.loss import Loss


@dataclass(frozen=True)
class Corners:
    """A recipe for adversaries, see `scenarios`: e_i with probability `chances[i]`, independently.

    For losses on a simplex whose datum is a point of it, such as `Quadratic`.
    """

    chances: tuple[float, ...]
    """of the first corners, adding up to 1; 0 for the others"""

    def __post_init__(self) -> None:
        if min(self.chances, default=-1.0) < 0 or abs(sum(self.chances) - 1) > 1e-9:
            raise InputError(f"Expected chances={self.chances} >= 0 to add up to 1.")

    def __call__(self, loss: Loss, streams: Streams, horizon: int) -> Adversary:
        """One episode's adversary."""
        N, R = loss.domain.dim, len(streams)
        fitting = isinstance(loss.domain, Simplex) and loss.datum_shape == (N,)
        if not fitting or len(self.chances) > N:
            raise InputError(
                f"Expected a loss of points of a simplex with {len(self.chances)} corners or more, "
                f"got {loss}."
            )
        return Oblivious(Constant(np.zeros((R, N))), _Draws(self.chances, streams, N), R * N)


class _Draws:
    """Unit vectors of R^N by inverting the distribution function."""

    def __init__(self, chances: tuple[float, ...], streams: Streams, dim: int) -> None:
        self._upto = np.cumsum(chances)[:-1]
        self._corners, self._uniforms = np.eye(dim), streams.uniforms("corners")

    def __call__(self, directions: Floats) -> Floats:
        chosen = np.searchsorted(self._upto, self._uniforms.take(len(directions)), side="right")
        corners: Floats = self._corners[chosen]
        return corners
