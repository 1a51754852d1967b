"""The parameter behind users' answers: dense, sparse, random, or any point of the ball."""

from dataclasses import dataclass

import numpy as np

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import InputError, one_of, positive, vector, whole
from dpbandit.base.random_streams import Streams
from dpbandit.domains.lp_balls import LpBall

WORDS = ("dense", "sparse", "random-sparse", "gaussian")


@dataclass(frozen=True)
class Truth:
    """theta_0, one a replica::

        dense           all entries equal
        sparse          equal first `sparsity` entries, else 0
        random-sparse   the same, at random places
        gaussian        a normal vector

    all scaled to l_p length `norm`; or a vector, as it is.
    """

    domain: LpBall
    theta: str | tuple[float, ...] = "dense"
    norm: float = 1.0
    sparsity: int = 5

    def __post_init__(self) -> None:
        positive("norm", self.norm)
        if self.norm > self.domain.radius:
            raise InputError(f"Expected norm={self.norm} <= radius={self.domain.radius}.")
        if isinstance(self.theta, str):
            one_of("theta", self.theta, WORDS)
            if "sparse" in self.theta:
                whole("sparsity", self.sparsity, 1, self.domain.dim)
            return
        if not self.domain.contains(self._vector()[None]).all():
            raise InputError(f"Expected theta={self.theta} to lie in {self.domain}.")

    @property
    def length(self) -> float:
        """`|theta_0|_p`."""
        if isinstance(self.theta, str):
            return self.norm
        return float(norms(self._vector(), self.domain.p)[0])

    def draw(self, streams: Streams) -> Floats:
        """(R, N)."""
        R, N = len(streams), self.domain.dim
        if not isinstance(self.theta, str):
            return np.tile(self._vector(), (R, 1))
        if self.theta == "gaussian":
            direction = streams.world.normals("truth", N)()
        elif self.theta == "dense":
            direction = np.ones((R, N))
        else:
            place = np.tile(np.arange(N), (R, 1))
            if self.theta == "random-sparse":
                place = streams.world.uniforms("truth", N)().argsort(axis=1)
            direction = 1.0 * (place < self.sparsity)
        return self.norm * direction / norms(direction, self.domain.p)

    def _vector(self) -> Floats:
        return vector("theta", self.theta, self.domain.dim)
