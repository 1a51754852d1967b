"""Sign bits: for each coordinate, whether it agrees with the reward."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, rows
from dpbandit.base.inputs import whole


@dataclass(frozen=True, kw_only=True)
class SignBits:
    """The sum of sign(r - centre) sign(x) in the block of the arm played, 0 in all others.

    An entry is 0, too, where x is 0, where r is the centre and where either is no number: there is
    no bit to be sent, and a fair coin goes instead.

    **Sensitivity.** 2 sqrt(d): d signs against their opposites (of two different arms: sqrt(2 d)).
    """

    n_actions: int
    """blocks"""
    dim: int
    """d"""
    centre: float = 0.0
    """a public number, such as the middle of the reward range"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_actions", self.n_actions, 1)
        whole("dim", self.dim, 1)

    @property
    def sensitivity(self) -> float:
        """2 sqrt(d)."""
        return 2 * sqrt(self.dim)

    @property
    def shape(self) -> tuple[int, ...]:
        """(K, d)."""
        return (self.n_actions, self.dim)

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """context (n, R, d), action (n, R), reward (n, R) -> (R, K, d)."""
        x, action, reward = batch
        known = np.isfinite(x).all(axis=-1) & np.isfinite(reward)
        towards = np.where(known, np.sign(reward - self.centre), 0.0)
        bits = towards[..., None] * np.sign(np.where(known[..., None], x, 0.0))
        played = action[..., None] == rows(self.n_actions)
        summed: Floats = np.einsum("nrk,nrd->rkd", played.astype(float), bits)
        return summed
