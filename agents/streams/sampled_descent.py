"""Descent on random few of a block's users in every step: what its mechanisms share."""

from abc import abstractmethod
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.agents.convex.leaders import slope
from dpbandit.agents.streams.blocks import Block, BlockMechanism
from dpbandit.base.arrays import Floats, rows
from dpbandit.base.random_streams import Streams
from dpbandit.losses.quadratic_sums import row_sums


class SampledMechanism(BlockMechanism):
    """Keeps the block's data to its end; then m steps, each with b users and fresh noise.

    Each step takes b of the n users without replacement, anew for every step and replica, and the
    mean g of their gradients at the iterate w, plus N(0, sigma^2 I) in coordinates of the hull.
    The mean of the iterates after each step comes out.

    Guarantee:
        Given the iterates, g moves by at most 2 L / b where the user was drawn:
        `SampledGaussianSpend(2 L / (b sigma), b / n, m)` for all iterates at once, even if
        released.
    """

    def __init__(
        self, block: Block, streams: Streams, start: Floats, *, batch: int, steps: int, sigma: float
    ) -> None:
        super().__init__(block, start)
        domain, n = block.loss.domain, block.users
        self._batch, self._steps, self._sigma = batch, steps, sigma
        self._data: Floats = np.zeros((n, len(streams), *block.loss.datum_shape))
        self._noise = streams.normals("noise", domain.affine_dim)
        self._draws = streams.uniforms("who", *(() if batch == 1 else (n,)))

    def _learn(self, z: Floats) -> None:
        self._data[self._used - 1] = z

    def _answer(self) -> Floats:
        domain = self._loss.domain
        w, total = self._start, np.zeros_like(self._start)
        for _ in range(self._steps):
            g = self._gradient(w)
            w = self._step(w, domain.embedded(g + self._sigma * self._noise()))
            total += w
        del self._data
        mean: Floats = total / self._steps
        return mean

    @abstractmethod
    def _step(self, w: Floats, g: Floats) -> Floats:
        """From `w` against the noisy gradient `g`, both (R, N)."""

    def _gradient(self, w: Floats) -> Floats:
        """The mean gradient of users drawn anew, (R, k)."""
        n, b, everybody = self.uses, self._batch, rows(len(w))
        who: npt.NDArray[Any] = self._draws()
        if b == 1:
            index = np.minimum((who * n).astype(np.int64), n - 1)
            return slope(self._loss, w, self._data[index, everybody])
        if b == n:
            index = np.broadcast_to(rows(n), who.shape)
        else:
            index = np.argpartition(who, b - 1, axis=1)[:, :b]
        z = self._data[index, everybody[:, None]]  # (R, b, *datum_shape)
        return row_sums(slope(self._loss, w[:, None], z)) / b
