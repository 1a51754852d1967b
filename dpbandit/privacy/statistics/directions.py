"""Signed directions: what one bit of a reward says about the parameter of a linear bandit."""

from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, norms, rows
from dpbandit.base.inputs import InputError, one_of

Layout = Literal["difference", "blocks"]


@dataclass(frozen=True, kw_only=True)
class SignedDirections:
    """The sum of `sign(r - centre) x / |x|`, for each arm, or of its difference between two arms::

        blocks       (K, d): the row of the arm played
        difference   (1, d): + for arm 0, - for arm 1; two arms only

    For isotropic contexts and symmetric noise, `E sign(r - centre) x / |x|` points along theta.
    Nothing has to be tuned to the scale of x or r: every user has length 1, however small her
    reward, which is also the most that a bounded vector can say per unit of sensitivity when noise
    dominates. x = 0, sign(0) and anything not finite give 0.

    **Sensitivity.** 2: one unit vector against its opposite (two different blocks: sqrt(2)).
    """

    n_actions: int
    dim: int
    layout: Layout = "blocks"
    centre: float = 0.0
    """a public number, such as the middle of the reward range"""
    units: ClassVar[float] = 1.0
    sensitivity: ClassVar[float] = 2.0
    moved: ClassVar[float] = 2.0

    def __post_init__(self) -> None:
        one_of("layout", self.layout, ("difference", "blocks"))
        if self.layout == "difference" and self.n_actions != 2:
            raise InputError(
                f"Expected n_actions={self.n_actions} to be 2 for layout='difference'."
            )

    @property
    def shape(self) -> tuple[int, ...]:
        """(1, d) or (K, d)."""
        return (1 if self.layout == "difference" else self.n_actions, self.dim)

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """context (n, R, d), action (n, R), reward (n, R) -> (R, blocks, d)."""
        context, action, reward = batch
        reward = np.asarray(reward, dtype=np.float64)
        sign = np.where(np.isfinite(reward), np.sign(reward - self.centre), 0.0)  # (n, R)
        if self.layout == "difference":
            played = np.where(action == 0, sign, -sign)[..., None]  # (n, R, 1)
        else:
            played = (action[..., None] == rows(self.n_actions)) * sign[..., None]  # (n, R, K)
        # contiguous, so that the same BLAS routine sums whatever R is
        weights = np.ascontiguousarray(played.transpose(1, 2, 0), dtype=np.float64)
        u = np.ascontiguousarray(unit(context).transpose(1, 0, 2))
        summed: Floats = weights @ u  # (R, blocks, d)
        return summed


def unit(x: npt.NDArray[Any]) -> Floats:
    """`x / |x|`, never longer than 1; 0 where x is 0 or not finite.

    Divided by the largest entry first: the squares of tiny entries would be 0, of huge ones inf.
    """
    x = np.asarray(x, dtype=np.float64)
    x = np.where(np.isfinite(x).all(axis=-1, keepdims=True), x, 0.0)
    largest = norms(x, np.inf)
    scaled = x / np.where(largest > 0, largest, 1.0)
    return scaled / np.maximum(norms(scaled), 1.0)
