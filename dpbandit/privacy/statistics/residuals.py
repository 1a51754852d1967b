"""Scores of residuals: what a round says against the model that was released before it."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpbandit.base.arrays import Floats, clip_norm, clip_range, norms
from dpbandit.base.inputs import InputError, positive, whole
from dpbandit.privacy.statistics.directions import unit
from dpbandit.privacy.statistics.moments import added_up


@dataclass(frozen=True, kw_only=True)
class SaleResiduals:
    """Scores of a logistic model of sales at a public reference point, and moments of customers.

    A round is (theta, phi, y): the reference point (R, D), released or public, the row of features
    (R, D) of the price asked, and whether it sold, (R,) in [0, 1]. With p = logistic(phi . theta)
    it adds::

        v = (y - p) / max(p, 1 - p)  phi / |phi|,            |v| <= 1
        x and x_i x_j, i <= j,       x = sqrt(2) phi_1..d,   |x| <= 1

    where phi_1..d is what `demand_rows` makes of the customer alone. At the true parameter v is 0
    in expectation, whatever prices were asked; the moments say who the customers are. In `units`
    the second line is `moment_weight` = w times as long, and its half-vectorisation isometric. A
    round may bring a direction (R, D), along which v then lies in place of phi.

    Guarantee:
        Rows and x are clipped to norm 1, y to [0, 1] (no numbers become 0), residuals to [-1, 1],
        so that at every reference point, finite or not, replacing one user moves the sum by at most
        `sensitivity` = sqrt(4 + 4.5 w^2): two vectors v are at most 2 apart, and
        `|x - z|^2 + |xx' - zz'|^2 <= 4.5` for `|x|`, `|z| <= 1` (unit vectors at cosine c: 4 - 2c -
        2c^2, largest at c = -1/2).
    """

    dim: int
    """D, the length of a row"""
    features: int
    """d, how many of its entries are the customer's"""
    moment_weight: float = 0.35
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("features", self.features, 1)
        if self.features > self.dim:
            raise InputError(f"Expected features={self.features} <= dim={self.dim}.")
        positive("moment_weight", self.moment_weight)
        i, j = np.triu_indices(self.features)
        second = np.where(i == j, 1.0, sqrt(0.5))
        moments = np.concatenate([np.ones(self.features), second]) / self.moment_weight
        object.__setattr__(self, "units", np.concatenate([np.ones(self.dim), moments]))

    @property
    def shape(self) -> tuple[int]:
        """(D + d + d (d + 1) / 2,)."""
        return (self.dim + self.features + self.features * (self.features + 1) // 2,)

    @property
    def sensitivity(self) -> float:
        """sqrt(4 + 4.5 w^2)."""
        return sqrt(4 + 4.5 * self.moment_weight**2)

    @property
    def moved(self) -> float:
        """The same, as phi = 0 adds 0, and <v, v'> >= -1 and <x, z> + <xx', zz'> >= -1/4."""
        return self.sensitivity

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """theta (n, R, D), phi (n, R, D), y (n, R), perhaps directions -> `(R, *shape)`."""
        theta, phi, y, *aimed = batch
        phi = clip_norm(phi, 1.0)
        with np.errstate(over="ignore", invalid="ignore"):
            p = expit(np.vecdot(phi, theta))
            residual = clip_range((clip_range(y, 0, 1) - p) / np.maximum(p, 1 - p), -1, 1)
        x = clip_norm(sqrt(2) * phi[..., : self.features], 1.0)
        # contiguous, so that the same BLAS routine sums whatever R is
        by_replica = np.ascontiguousarray(x.transpose(1, 0, 2))
        second = by_replica.transpose(0, 2, 1) @ by_replica  # (R, d, d)
        i, j = np.triu_indices(self.features)
        direction = unit(aimed[0]) * phi.any(axis=-1, keepdims=True) if aimed else unit(phi)
        scores = added_up(residual[..., None] * direction)
        return np.concatenate([scores, added_up(x), second[:, i, j]], axis=-1)

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats, Floats]:
        """Sums `(..., *shape)` -> scores (..., D), of x (..., d), of x x' (..., d, d)."""
        D, d = self.dim, self.features
        i, j = np.triu_indices(d)
        second = np.empty((*vectors.shape[:-1], d, d))
        second[..., i, j] = second[..., j, i] = vectors[..., D + d :]
        return vectors[..., :D], vectors[..., D : D + d], second


def score_lengths(phi: Floats, p: Floats) -> Floats:
    """`1 / (|phi| max(p, 1 - p))`: what `SaleResiduals` makes of (y - p) phi, (..., D) -> (...)."""
    return 1 / (np.maximum(norms(phi)[..., 0], 1e-9) * np.maximum(p, 1 - p))
