"""Gradient descent behind the door: points are released with noise, the descent goes on without.

Jain, Kothari and Thakurta, "Differentially private online learning", COLT 2012: private online
convex programming with implicit or explicit gradient steps.
"""

from math import inf, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import BadInput
from dpbandit.base.streams import Streams
from dpbandit.losses import (
    Experts,
    Linear,
    Logistic,
    Loss,
    OffsetQuadratic,
    Quadratic,
    Ridge,
    Squared,
    TiltedQuadratic,
)
from dpbandit.privacy.accounting.spends import GaussianSpend
from dpbandit.privacy.mechanism import Mechanism

VERIFIED = (
    Linear,
    Experts,
    Quadratic,
    TiltedQuadratic,
    OffsetQuadratic,
    Squared,
    Logistic,
    Ridge,
)
"""Families whose curvature and smoothness hold for every admissible datum, by a test."""
CONDITION = "every loss is as curved and as smooth as its family says, gradients are not clipped"


class NoisyDescent(Mechanism):
    """w_{t+1} = Proj(w_t - (gradient f_t(w_t) + H (w_t - c0)) / (mu (t + t0))), released noisily.

    A release is Proj(w_{t+1} + s_t N(0, I)), s_t = noise_multiplier 2 L / (mu (t + t0)), with mu
    the curvature of the losses plus the regulariser's H, and t0 = smoothness / mu, H counted in.

    Guarantee. If all losses are mu-strongly convex and mu t0-smooth with the regulariser, then
    replacing one moves w_{t+1} by at most 2 L / (mu (t + t0)) from its round on: that much at once,
    and every later step, 1 / (mu (t + t0)) <= 1 / smoothness, shrinks a distance by the factor
    (t + t0 - 1) / (t + t0). So all m releases are mu-GDP with sqrt(m) / noise_multiplier, also if
    later losses are chosen by what was released. One loss without curvature breaks the chain, and
    so would clipping; data are made admissible, where L holds, and `VERIFIED` families taken only.
    """

    def __init__(
        self,
        loss: Loss,
        streams: Streams,
        *,
        regulariser: float,
        noise_multiplier: float,
        horizon: int,
    ) -> None:
        domain = loss.domain
        if type(loss) not in VERIFIED or not domain.has_projection:
            raise BadInput(
                f"The curvature of {type(loss).__name__} on {domain} is not verified, and privacy "
                "rests on it here: choose another agent or environment."
            )
        m, steep = horizon - 1, sqrt(horizon - 1)
        mu = (steep / noise_multiplier if noise_multiplier else inf) if m else 0.0
        self.spend = GaussianSpend(mu, f"{m} points of a descent, Gaussian noise")
        self.sensitivity, self.uses = 2 * loss.lipschitz, horizon
        self._loss, self._H, self._multiplier = loss, regulariser, noise_multiplier
        self._mu = loss.curvature + regulariser
        self._t0 = (loss.smoothness + regulariser) / self._mu
        self._normals = streams.normals("descent noise", domain.affine_dim)
        self._w = np.tile(domain.centre, (len(streams), 1))

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """The gradient at the centre, in coordinates of V, (R, k)."""
        z = self._loss.admissible(datum[0])
        centre = np.tile(self._loss.domain.centre, (len(z), 1))
        return self._loss.domain.coordinates(self._loss.gradient(centre, z))

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        if self._used == self.uses:  # reaches no point
            return None
        loss, domain, w = self._loss, self._loss.domain, self._w
        gradient = domain.coordinates(loss.gradient(w, loss.admissible(datum[0])))
        slope = domain.embedded(gradient) + self._H * (w - domain.centre)
        pace = 1 / (self._mu * (self._used + self._t0))
        self._w = domain.project(w - pace * slope)
        noise = self._multiplier * self.sensitivity * pace * self._normals()
        return domain.project(self._w + domain.embedded(noise))
