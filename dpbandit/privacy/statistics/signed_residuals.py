"""Signs of residuals: one bit of a reward against what was released about its arm."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_range, rows
from dpbandit.base.inputs import inside, positive
from dpbandit.privacy.statistics.directions import unit


@dataclass(frozen=True, kw_only=True)
class SignedResiduals:
    """The sum of sign(residual) q_a (x) v over rounds, and how often residuals are large.

    A round is (theta, weights, threshold, x, a, r); the first three are the reference point,
    released or public: of the arm played a parameter and a weight for each coordinate, (R, d) each,
    and a number, (R,). With `u = x / |x|` and residual e = clip(r) - middle - theta . u it adds::

        sign(e) q_a (x) v,   v = weights u / |weights u|     K d numbers
        c if |e| > threshold, else -c                        one number, 0 if x is no number

    where the unit vectors q_a have products q_a . q_b = G_ab, `gram`: what all arms have in common
    is damped by `common`, since no comparison of arms depends on it.

    Guarantee:
        Rewards are clipped to their range (no numbers become `reward_low`), x = 0 and x that is no
        number add nothing to the first part, and a round's two parts have norm at most sqrt(1 +
        c^2) at every reference point, finite or not. So replacing one user moves the sum by at most
        `sensitivity` = 2 sqrt(1 + c^2).
    """

    n_actions: int
    dim: int
    reward_low: float = 0.0
    reward_high: float = 1.0
    common: float = 0.5
    """g, in (0, 1]"""
    spread_weight: float = 0.15
    """c"""
    units: ClassVar[float] = 1.0
    gram: Floats = field(init=False, repr=False, compare=False)
    """G = (I - J + g^2 J) / its diagonal, J = 1/K everywhere; (K, K)"""
    codes: Floats = field(init=False, repr=False, compare=False)
    """the q_a, as rows, (K, K)"""

    def __post_init__(self) -> None:
        positive("spread_weight", self.spread_weight)
        inside("common", self.common, 1e-3, 1, ends=True)
        K = self.n_actions
        gram = np.eye(K) - (1 - self.common**2) / K
        gram = gram / gram[0, 0]
        object.__setattr__(self, "gram", gram)
        object.__setattr__(self, "codes", np.linalg.cholesky(gram))

    @property
    def shape(self) -> tuple[int]:
        """(K d + 1,)."""
        return (self.n_actions * self.dim + 1,)

    @property
    def sensitivity(self) -> float:
        """2 sqrt(1 + c^2)."""
        return 2 * sqrt(1 + self.spread_weight**2)

    @property
    def moved(self) -> float:
        """The same, as nobody adds 0."""
        return self.sensitivity

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """(n, R, d), (n, R, d), (n, R), (n, R, d), (n, R), (n, R) -> `(R, *shape)`."""
        theta, weights, threshold, context, action, reward = batch
        u = unit(context)
        middle = (self.reward_low + self.reward_high) / 2
        with np.errstate(over="ignore", invalid="ignore"):
            v = unit(weights * u)
            residual = clip_range(reward, self.reward_low, self.reward_high) - middle
            residual = residual - np.vecdot(theta, u)
            large = np.abs(residual) > threshold  # (n, R)
        sign = np.where(np.isfinite(residual), np.sign(residual), 0.0)
        played = (action[..., None] == rows(self.n_actions)) * sign[..., None]  # (n, R, K)
        # contiguous, so that the same BLAS routine sums whatever R is
        by_arm = np.ascontiguousarray(played.transpose(1, 2, 0), dtype=np.float64)
        blocks = by_arm @ np.ascontiguousarray(v.transpose(1, 0, 2))  # (R, K, d)
        coded = (self.codes.T @ blocks).reshape(len(blocks), -1)
        somebody = np.isfinite(context).all(axis=-1)  # (n, R)
        often = self.spread_weight * (somebody * (2.0 * large - 1)).sum(axis=0)
        return np.concatenate([coded, often[:, None]], axis=1)

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Sums `(R, *shape)` -> those of sign(e) v of each arm (R, K, d), and of +-1 (R,).

        White noise of variance s^2 becomes noise of covariance s^2 G^-1 between the arms.
        """
        coded = vectors[:, :-1].reshape(-1, self.n_actions, self.dim)
        return np.linalg.inv(self.codes).T @ coded, vectors[:, -1] / self.spread_weight
