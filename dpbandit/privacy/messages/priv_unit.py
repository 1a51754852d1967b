"""PrivUnit: of a unit vector, a point of the sphere that is more likely to lie in her cap."""

from dataclasses import dataclass
from functools import lru_cache
from math import exp, expm1, lgamma, log, tanh

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betainc, betaincinv

from dpbandit.base.arrays import Floats, norms
from dpbandit.base.inputs import positive, whole


@dataclass(frozen=True)
class PrivUnit:
    """The law of a message about a unit vector u of R^D, a point of the sphere of radius `scale`::

        the cap {v . u >= g} has the share q of the sphere
        with probability p = e^epsilon q / (1 - q + e^epsilon q) a uniform point v of the cap,
        else one of the rest;        send scale v, which has mean u

    `g` >= 0 makes `scale` least: all of epsilon goes into one cap. With g = 0 it is the half space
    of Duchi, Jordan and Wainwright (JASA 2018), one bit.

    Bhowmick, Duchi, Freudiger, Kapoor and Rogers, "Protection against reconstruction and its
    applications in private federated learning", 2018; that one cap is optimal, Asi, Feldman and
    Talwar, "Optimal algorithms for mean estimation under local differential privacy", ICML 2022.

    Guarantee:
        Locally epsilon-DP, pure, whatever the inputs: the density of v has two values, whose ratio
        p (1 - q) / ((1 - p) q) is e^epsilon.

    >>> law = PrivUnit.of(dim=10, epsilon=1.0)
    >>> round(law.scale, 4), round(law.cap, 4), round(law.p, 4), round(law.variance(10), 4)
    (7.7931, 0.1283, 0.5978, 5.9733)
    """

    dim: int
    epsilon: float
    cap: float
    """g, in [0, 1)"""

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        positive("epsilon", self.epsilon)

    @classmethod
    def of(cls, *, dim: int, epsilon: float) -> "PrivUnit":
        """The law of least variance."""
        return _best(dim, epsilon)

    @property
    def share(self) -> float:
        """q."""
        if self.dim == 1:
            return 0.5
        return float(betainc((self.dim - 1) / 2, 0.5, 1 - self.cap**2)) / 2

    @property
    def p(self) -> float:
        """The probability of the cap."""
        return 1 / (1 + exp(-self.epsilon) * (1 - self.share) / self.share)

    @property
    def scale(self) -> float:
        """The length of a message; 1 / E v . u."""
        if self.dim == 1:
            return 1 / tanh(self.epsilon / 2)
        a, q = (self.dim - 1) / 2, self.share
        log_beta = lgamma(a) + lgamma(0.5) - lgamma(a + 0.5)
        mean = exp(a * np.log1p(-(self.cap**2)) - log_beta) / (
            self.dim - 1
        )  # of v . u in the cap, q
        # p / q - (1 - p) / (1 - q), without a difference of what is nearly equal
        odds = -expm1(-self.epsilon) * self.p / q
        return float(1 / (odds * mean))

    def variance(self, dim: int) -> float:
        """Of a coordinate of a message, on average over the sphere in `dim` = D."""
        return (self.scale**2 - 1) / dim

    def message(self, u: Floats, normals: Floats, uniforms: Floats) -> Floats:
        """Messages (R, D) about unit vectors u, from standard normals (R, D), uniforms (R,)."""
        inside, q = uniforms < self.p, self.share
        beyond = np.where(  # of the sphere, on u's side of v
            inside, q * uniforms / self.p, q + (1 - q) * (uniforms - self.p) / (1 - self.p)
        )
        along = _height(beyond, self.dim)[:, None]
        across = normals - np.vecdot(normals, u)[:, None] * u
        across /= np.maximum(norms(across), np.finfo(float).tiny)
        sent: Floats = self.scale * (along * u + np.sqrt(1 - along**2) * across)
        return sent


@lru_cache(maxsize=64)
def _best(dim: int, epsilon: float) -> PrivUnit:
    if dim == 1:
        return PrivUnit(dim, epsilon, 0.0)
    found = minimize_scalar(
        lambda g: log(PrivUnit(dim, epsilon, float(g)).scale),
        bounds=(0.0, 1.0),
        method="bounded",
        options={"xatol": 1e-9},
    )
    return PrivUnit(dim, epsilon, float(found.x))


def _height(beyond: Floats, dim: int) -> Floats:
    """The v . u that a share `beyond` of the sphere exceeds."""
    if dim == 1:
        return np.where(beyond < 0.5, 1.0, -1.0)
    nearer = np.minimum(beyond, 1 - beyond)
    size = np.sqrt(1 - betaincinv((dim - 1) / 2, 0.5, 2 * nearer))
    return np.where(beyond < 0.5, size, -size)
