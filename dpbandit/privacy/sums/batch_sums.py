"""The sum of one batch of vectors, released once with noise: a mechanism for each batch."""

from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm
from dpbandit.base.inputs import InputError, positive, shaped, whole
from dpbandit.privacy.mechanism import Mechanism
from dpbandit.privacy.noise.samplers import Sampler
from dpbandit.privacy.spends import Spend


class BatchSum(Mechanism):
    """x_1 + ... + x_n + noise, at the n-th call; None before.

    Args:
        dim: of the vectors.
        bound: they are clipped to this l_order norm.
        order: of the norm.
        users: n.
        noise: draws the noise of the sum, (R, dim).
        spend: what that noise costs one user.

    Guarantee:
        Replacing a user moves the sum by at most 2 `bound` in l_order, whatever is fed; what noise
        makes of that is said by `spend`. Batches of other users are other mechanisms: a user pays
        for hers alone (parallel composition).

    >>> from dpbandit.privacy.spends import GaussianSpend
    >>> total = BatchSum(1, 2.0, users=2, noise=lambda: 0.5, spend=GaussianSpend(1.0, "a batch"))
    >>> total(np.array([[9.0]])), total(np.array([[-1.0]]))
    (None, array([[1.5]]))
    """

    def __init__(
        self,
        dim: int,
        bound: float,
        *,
        order: float = 2,
        users: int,
        noise: Sampler,
        spend: Spend,
    ) -> None:
        positive("bound", bound)
        whole("users", users, 1)
        self.spend, self.uses, self.order = spend, users, order
        self.sensitivity = 2 * bound
        self._noise, self._dim = noise, dim
        self._exact: Floats = np.zeros(dim)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The clipped vector, (R, dim)."""
        (x,) = datum
        if x.ndim != 2 or x.shape[1] != self._dim:
            raise InputError(f"Expected vectors of shape {('R', self._dim)}, got {x.shape}.")
        return clip_norm(x, self.sensitivity / 2, self.order)

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        self._exact = self._exact + self.query(*datum)
        if self._used < self.uses:
            return None
        noise = np.asarray(self._noise())
        if noise.shape:  # else there is none: the same noise in two rows would cancel
            shaped("sum", self._exact, noise.shape)
        return self._exact + noise
