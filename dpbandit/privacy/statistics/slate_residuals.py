"""Scores of residuals on slates: what the row chosen has beyond its slate, and what it earned."""

from dataclasses import dataclass, field
from math import sqrt
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpbandit.base.arrays import Floats, clip_norm, clip_range, norms, rows
from dpbandit.base.inputs import inside, positive, whole
from dpbandit.privacy.statistics.directions import unit


@dataclass(frozen=True, kw_only=True)
class SlateResiduals:
    """Scores of a logistic model of rows at a public reference point, and moments of slates.

    A round is (theta, trust, x, a, y): of the reference point, released or public, the parameter
    (R, 1 + d), intercept first, and a number in [0, 1], (R,); then the slate (R, K, d), the row
    chosen, (R,), and the answer, (R,) in [0, 1]. With rows x_i in units of `context_bound` and::

        z_i = x_i - (1 - g) mean of the slate,      v = z_a, times h along theta, over its norm
        q = logistic(theta_0 + theta_1.. . x_a),    p = 1/2 + trust (q - 1/2)

    it adds::

        (y - p) / max(p, 1 - p)  (c_0, v)
        clip(mean over rows i of u_i u_i'),         u_i = z_i / |z_i|

    where clip shortens to Frobenius norm `moment_clip`. What the rows of a slate have in common is
    damped by `common` = g, since no comparison of rows depends on it, and what all chosen rows have
    in common by `along` = h; of the intercept one number tells, c_0. In `units` the second line is
    `moment_weight` = w times as long, and its half-vectorisation isometric.

    Guarantee:
        Rows are clipped to norm `context_bound`, y to [0, 1] (no numbers become 0), residuals to
        [-1, 1]; a slate with a number that is none adds nothing, z = 0 only the scalar. So at every
        reference point, finite or not, replacing one user moves the sum by at most `sensitivity` =
        sqrt(4 (1 + c_0^2) + 2 (w moment_clip)^2): two vectors of norm at most sqrt(1 + c_0^2) may
        be opposite, but <M, M'> >= 0 for positive semi-definite M and M', so that
        `|M - M'|^2 <= |M|^2 + |M'|^2`.
    """

    dim: int
    """d, the length of a row"""
    context_bound: float = 1.0
    common: float = 0.25
    """g, in [0, 1]"""
    along: float = 0.3
    """h, in [0, 1]"""
    intercept_weight: float = 0.1
    """c_0"""
    moment_weight: float = 0.5
    moment_clip: float = 0.55
    units: Floats = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        for name in ("context_bound", "intercept_weight", "moment_weight", "moment_clip"):
            positive(name, getattr(self, name))
        inside("common", self.common, 0, 1, ends=True)
        inside("along", self.along, 0, 1, ends=True)
        i, j = np.triu_indices(self.dim)
        moments = np.where(i == j, 1.0, sqrt(0.5)) / self.moment_weight
        object.__setattr__(self, "units", np.concatenate([np.ones(1 + self.dim), moments]))

    @property
    def shape(self) -> tuple[int]:
        """(1 + d + d (d + 1) / 2,)."""
        return (1 + self.dim + self.dim * (self.dim + 1) // 2,)

    @property
    def sensitivity(self) -> float:
        """sqrt(4 (1 + c_0^2) + 2 (w moment_clip)^2)."""
        moments = self.moment_weight * self.moment_clip
        return sqrt(4 * (1 + self.intercept_weight**2) + 2 * moments**2)

    @property
    def moved(self) -> float:
        """The same, as nobody adds 0, and <v, v'> >= -(1 + c_0^2)."""
        return self.sensitivity

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """(n, R, 1 + d), (n, R), (n, R, K, d), (n, R), (n, R) -> (R, *shape)."""
        theta, trust, x, action, y = batch
        valid = 1.0 * np.isfinite(x).all(axis=(-2, -1))  # (n, R)
        x = clip_norm(x, self.context_bound) / self.context_bound
        mean = x.mean(axis=-2)  # (n, R, d)
        chosen = 1.0 * (action[..., None] == rows(x.shape[-2]))  # (n, R, K)
        row = np.vecmat(chosen, x)
        p = self.chance(theta, trust, row)
        with np.errstate(invalid="ignore"):
            residual = clip_range((clip_range(y, 0, 1) - p) / np.maximum(p, 1 - p), -1, 1) * valid
        u = _shortened(x - (1 - self.common) * mean[..., None, :])
        moments = (u.swapaxes(-1, -2) @ u / x.shape[-2]).reshape(*action.shape, -1)
        clipped = np.minimum(1, self.moment_clip / np.maximum(norms(moments)[..., 0], 1e-9))
        i, j = np.triu_indices(self.dim)
        return np.concatenate(
            [
                _weighed(residual, self.coded(theta, row, mean)),
                _weighed(clipped * valid, moments)[:, i * self.dim + j],
            ],
            axis=-1,
        )

    def chance(self, theta: Floats, trust: Floats, x: Floats) -> Floats:
        """p of rows (..., d) at reference points (..., 1 + d) and (...)."""
        with np.errstate(over="ignore", invalid="ignore"):
            q = expit(theta[..., 0] + np.vecdot(theta[..., 1:], x))
            return np.clip(0.5 + trust * (q - 0.5), 0, 1)

    def coded(self, theta: Floats, x: Floats, mean: Floats) -> Floats:
        """(c_0, v) of rows (..., d) and means of their slates, (..., 1 + d)."""
        z = x - (1 - self.common) * mean
        axis = unit(theta[..., 1:])
        v = _shortened(z - (1 - self.along) * np.vecdot(z, axis)[..., None] * axis)
        scalar = np.full((*v.shape[:-1], 1), self.intercept_weight)
        return np.concatenate([scalar, v], axis=-1)

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Sums (..., *shape) -> scores (..., 1 + d), moments (..., d, d)."""
        D = 1 + self.dim
        i, j = np.triu_indices(self.dim)
        second = np.empty((*vectors.shape[:-1], self.dim, self.dim))
        second[..., i, j] = second[..., j, i] = vectors[..., D:]
        return vectors[..., :D], second


def _shortened(z: Floats) -> Floats:
    """`z / |z|` of finite vectors; shorter than 1 next to 0."""
    return z / np.maximum(norms(z), 1e-9)


def _weighed(weights: Floats, vectors: Floats) -> Floats:
    """The sum over n of weights (n, R) times vectors (n, R, d), (R, d)."""
    # contiguous, so that the same BLAS routine sums whatever R is
    by_replica = np.ascontiguousarray(weights.T)[:, None]
    return (by_replica @ np.ascontiguousarray(vectors.transpose(1, 0, 2)))[:, 0]
