"""Losses of a prediction: absolute, hinge, logistic, squared, ramps, ridge."""

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
import scipy

from dpbandit.base import Floats, clip_norm, clip_range, norms, positive
from dpbandit.domains.domain import Domain
from dpbandit.losses.loss import Comparator, DataSum, Loss, QuadraticSum, Smoothed


class Prediction(Loss):
    """Loss of a prediction u = <a, x - centre>, with features `|a| <= 1` and labels `|b| <= bound`.

    The datum is (N + 1,): a, then b. The norm of a is Euclidean, except in `Regression` and its
    subclasses, so u is at most the outer radius in absolute value. The best fixed point is found
    numerically over all data, to a certified suboptimality (`DataSum`).
    """

    domain: Domain
    bound: float = 1.0
    order: float = 2
    """Order q of the l_q norm in which features are bounded"""

    @property
    def reach(self) -> float:
        """Largest absolute prediction `|u|`."""
        return self.domain.outer_radius

    @property
    def datum_shape(self) -> tuple[int, ...]:
        return (self.domain.dim + 1,)

    @property
    def datum_bound(self) -> float:
        return max(1.0, self.bound)

    def admissible(self, z: Floats) -> Floats:
        # Features clipped to norm 1 (0 if not finite), labels to +-bound. The result may be `z`
        # itself, so callers must not write to it
        z = np.asarray(z, dtype=np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            lengths, sizes = norms(z[..., :-1], self.order), np.abs(z[..., -1])
        if lengths.max() <= 1 and sizes.max() <= self.bound:  # the usual case; False for NaN
            return z
        a = clip_norm(z[..., :-1], 1.0, self.order)
        b = clip_range(z[..., -1:], -self.bound, self.bound)
        return np.concatenate([a, b], axis=-1)

    def value(self, x: Floats, z: Floats) -> Floats:
        return self._phi(np.vecdot(z[..., :-1], x - self.domain.centre), z[..., -1])

    def gradient(self, x: Floats, z: Floats) -> Floats:
        u = np.vecdot(z[..., :-1], x - self.domain.centre)
        return self._slope(u, z[..., -1])[..., None] * z[..., :-1]

    def comparator(self, replicas: int) -> Comparator:
        return DataSum(self, replicas, self.datum_shape)

    def smoothed(self, x: Floats, data: Floats, mu: Floats) -> Smoothed:
        a, b = data[..., :-1], data[..., -1]
        u = np.matvec(a, x - self.domain.centre)  # (R, t)
        smooth, slack, slope, bend = self._smooth(u, b, mu[:, None])
        return Smoothed(
            value=self._phi(u, b).sum(axis=1),
            smooth=smooth.sum(axis=1),
            slack=slack.sum(axis=1),
            gradient=np.vecmat(slope, a),
            hessian=np.matmul((a * bend[..., None]).swapaxes(1, 2), a),
        )

    @abstractmethod
    def _phi(self, u: Floats, b: Floats) -> Floats: ...

    @abstractmethod
    def _slope(self, u: Floats, b: Floats) -> Floats:
        """Return a subgradient of the loss with respect to the prediction u, for the label b."""

    def _smooth(self, u: Floats, b: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        """Return a smooth bound on the loss, its slack (see `Smoothed`), slope and curvature."""
        raise NotImplementedError


@dataclass(frozen=True)
class Absolute(Prediction):
    """Absolute error `|u - b|` of a prediction u, label `|b| <= bound`; slope 0 at the kink."""

    domain: Domain
    bound: float = 1.0
    lipschitz = 1.0

    def __post_init__(self) -> None:
        positive("bound", self.bound)

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, self.domain.outer_radius + self.bound

    def _phi(self, u: Floats, b: Floats) -> Floats:
        return np.abs(u - b)

    def _slope(self, u: Floats, b: Floats) -> Floats:
        return np.sign(u - b)

    def _smooth(self, u: Floats, b: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        return hyperbola(u - b, mu)


@dataclass(frozen=True)
class Hinge(Prediction):
    """Hinge loss max(0, 1 - b u) of a prediction u for a label b in [-1, 1].

    Values lie in [max(0, 1 - R), 1 + R], R the outer radius. The slope at the kink is 0.
    """

    domain: Domain
    lipschitz = 1.0

    @property
    def value_range(self) -> tuple[float, float]:
        R = self.domain.outer_radius
        return max(0.0, 1 - R), 1 + R

    def _phi(self, u: Floats, b: Floats) -> Floats:
        return np.maximum(0.0, 1 - b * u)

    def _slope(self, u: Floats, b: Floats) -> Floats:
        return np.where(b * u < 1, -b, 0.0)

    def _smooth(self, u: Floats, b: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        short = 1 - b * u  # max(0, short) = (short + |short|) / 2
        root, slack, slope, bend = hyperbola(short, mu)
        return (short + root) / 2, slack / 2, -b * (1 + slope) / 2, b**2 * bend / 2


@dataclass(frozen=True)
class Logistic(Prediction):
    """Logistic loss log(1 + exp(-b u)) of a prediction u for a label b in [-1, 1]; smoothness 1/4.

    With R the domain's outer radius, gradients are at most 1 / (1 + e^-R), and values lie in
    [log(1 + e^-R), log(1 + e^R)].
    """

    domain: Domain
    smoothness = 0.25

    @property
    def lipschitz(self) -> float:
        return float(scipy.special.expit(self.domain.outer_radius))

    @property
    def value_range(self) -> tuple[float, float]:
        R = self.reach
        return float(np.logaddexp(0, -R)), float(np.logaddexp(0, R))

    def _phi(self, u: Floats, b: Floats) -> Floats:
        return np.logaddexp(0.0, -b * u)

    def _slope(self, u: Floats, b: Floats) -> Floats:
        return np.asarray(-b * scipy.special.expit(-b * u))

    def _smooth(self, u: Floats, b: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        value, p = self._phi(u, b), scipy.special.expit(-b * u)
        return value, np.zeros_like(value), -b * p, b**2 * p * (1 - p)


@dataclass(frozen=True)
class Squared(Prediction):
    """Squared error (u - b)^2 / 2 of a prediction u for a label `|b| <= bound`; smoothness 1.

    Gradients are at most L = R + bound, R the domain's outer radius, and values in [0, L^2 / 2].
    The best fixed point needs only the sums of a a', b a and b^2, a the features (`QuadraticSum`).
    """

    domain: Domain
    bound: float = 1.0
    smoothness = 1.0

    def __post_init__(self) -> None:
        positive("bound", self.bound)

    @property
    def lipschitz(self) -> float:
        return self.domain.outer_radius + self.bound

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, self.lipschitz**2 / 2

    def comparator(self, replicas: int) -> Comparator:
        return QuadraticSum(self.domain, replicas, self.datum_shape, self._sums, isotropic=False)

    def _sums(self, data: Floats) -> tuple[Floats, Floats, Floats]:
        a, b = data[..., :-1], data[..., -1]
        return np.matmul(a.swapaxes(1, 2), a), np.vecmat(b, a), np.vecdot(b, b) / 2

    def _phi(self, u: Floats, b: Floats) -> Floats:
        return (u - b) ** 2 / 2

    def _slope(self, u: Floats, b: Floats) -> Floats:
        return u - b


def hyperbola(r: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """Return h = `sqrt(r^2 + mu^2)`, `|r| - h' r`, and h's derivatives h' and h'' in r."""
    root = np.sqrt(r**2 + mu**2)
    slack = np.abs(r) * mu**2 / (root * (root + np.abs(r)))  # uncancelled
    return root, slack, r / root, mu**2 / root**3


@dataclass(frozen=True)
class Ramp(Prediction):
    """Ramp loss max(0, u - b) / (2 R), prediction u, label `|b| <= R`, R the domain's outer radius.

    Here u = <a, x - centre>. In the realizable regime some point x* has u <= b, so loss 0, for
    every user. The slope at the kink is 0.
    """

    domain: Domain

    @property
    def bound(self) -> float:  # type: ignore[override]
        """Largest absolute label, the outer radius of the domain."""
        return self.domain.outer_radius

    @property
    def lipschitz(self) -> float:
        return self._scale

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, 1.0

    @property
    def _scale(self) -> float:
        return 0.5 / self.domain.outer_radius

    def _phi(self, u: Floats, b: Floats) -> Floats:
        return self._scale * np.maximum(0.0, u - b)

    def _slope(self, u: Floats, b: Floats) -> Floats:
        return np.where(u > b, self._scale, 0.0)

    def _smooth(self, u: Floats, b: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        over, c = u - b, self._scale / 2  # max(0, over) = (over + |over|) / 2
        root, slack, slope, bend = hyperbola(over, mu)
        return c * (over + root), c * slack, c * (1 + slope), c * bend


@dataclass(frozen=True)
class Ridge(Squared):
    """Ridge loss `1/2 (u - b)^2 + H/2 |y|^2`, u = <a, y>, y = x - centre, `|a|_2 <= 1`,
    `|b| <= bound`.

    H is `curvature`, R the domain's outer radius. Smoothness is 1 + H, gradients are at most R +
    bound + H R, and values lie in [0, ((R + bound)^2 + H R^2) / 2].
    """

    domain: Domain
    bound: float = 1.0
    curvature: float = 1.0

    def __post_init__(self) -> None:
        positive("bound", self.bound)
        positive("curvature", self.curvature)

    @property
    def smoothness(self) -> float:  # type: ignore[override]
        return 1 + self.curvature

    @property
    def lipschitz(self) -> float:
        R = self.domain.outer_radius
        return R + self.bound + self.curvature * R

    @property
    def value_range(self) -> tuple[float, float]:
        R = self.domain.outer_radius
        return 0.0, ((R + self.bound) ** 2 + self.curvature * R**2) / 2

    def value(self, x: Floats, z: Floats) -> Floats:
        y = x - self.domain.centre
        return super().value(x, z) + self.curvature / 2 * np.vecdot(y, y)

    def gradient(self, x: Floats, z: Floats) -> Floats:
        return super().gradient(x, z) + self.curvature * (x - self.domain.centre)

    def _sums(self, data: Floats) -> tuple[Floats, Floats, Floats]:
        G, c, s = super()._sums(data)
        return G + self.curvature * data.shape[1] * np.eye(self.domain.dim), c, s
