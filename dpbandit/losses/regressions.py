"""Losses of a prediction in l_p geometry: squared, logistic, pinball.

Parameters lie in an l_p ball and features in the dual ball.

With 1/p + 1/q = 1 Hoelder's inequality bounds the prediction, `|<a, theta>| <= |a|_q |theta|_p`, so
gradients phi'(u, y) a and their changes are measured in l_q, points in l_p::

    |gradient|_q <= dual_lipschitz,   |gradient(x) - gradient(y)|_q <= dual_smoothness |x - y|_p.

Euclidean constants follow from the largest `|a|_2` with `|a|_q <= 1`, N^max(0, 1/p - 1/2), which
all entries equal attain for p < 2, a unit vector for p >= 2; they are attained, too.
"""

from dataclasses import dataclass
from functools import cached_property
from math import inf

import scipy

from dpbandit.base import Floats, InputError, inside, positive
from dpbandit.domains.lp_balls import LpBall
from dpbandit.losses.predictions import Logistic, Prediction, Squared, hyperbola


class Regression(Prediction):
    """Loss of a prediction u = <a, theta> for a label `|y| <= bound`, with theta in an `LpBall`.

    The datum is (a, y). Features a have dual norm `|a|_q <= 1`, so u lies in [-radius, radius].
    """

    domain: LpBall

    def __post_init__(self) -> None:
        if not isinstance(self.domain, LpBall):
            raise InputError(f"Expected domain={self.domain!r} to be an LpBall.")
        positive("bound", self.bound)

    @cached_property
    def order(self) -> float:  # type: ignore[override]
        p = self.domain.p
        return inf if p == 1 else 1.0 if p == inf else p / (p - 1)

    @property
    def reach(self) -> float:
        return self.domain.radius

    @property
    def dual_lipschitz(self) -> float:
        """Bound L on the l_q norm of a gradient on the domain."""
        raise NotImplementedError

    dual_smoothness: float = inf
    """Lipschitz constant of the gradient, in the l_q norm, for distances in the l_p norm"""

    @cached_property
    def longest(self) -> float:
        """Largest Euclidean norm of features, N^max(0, 1/p - 1/2)."""
        return float(self.domain.dim ** max(0.0, 1 / self.domain.p - 1 / 2))

    @property
    def lipschitz(self) -> float:
        return self.dual_lipschitz * self.longest

    @cached_property
    def smoothness(self) -> float:  # type: ignore[override]
        return self.dual_smoothness * self.longest**2

    def slope(self, u: Floats, y: Floats) -> Floats:
        """Return the derivative of the loss in the prediction u, a factor of the gradient."""
        return self._slope(u, y)


@dataclass(frozen=True)
class LinearRegression(Regression, Squared):  # type: ignore[override]
    """Squared error (u - y)^2: L = 2 (radius + bound), beta = 2, values in [0, (radius + bound)^2].

    >>> loss = LinearRegression(LpBall(20, 1.5, 2.0), bound=1.25)
    >>> loss.dual_lipschitz, loss.dual_smoothness, round(loss.order, 9)
    (6.5, 2.0, 3.0)
    """

    domain: LpBall
    bound: float = 1.0
    dual_smoothness = 2.0

    @property
    def dual_lipschitz(self) -> float:
        return 2 * (self.reach + self.bound)

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, (self.reach + self.bound) ** 2

    def _sums(self, data: Floats) -> tuple[Floats, Floats, Floats]:
        form, slope, offset = super()._sums(data)
        return 2 * form, 2 * slope, 2 * offset

    def _phi(self, u: Floats, b: Floats) -> Floats:
        return (u - b) ** 2

    def _slope(self, u: Floats, b: Floats) -> Floats:
        return 2 * (u - b)


@dataclass(frozen=True)
class LogisticRegression(Regression, Logistic):  # type: ignore[override]
    """Logistic loss log(1 + exp(-y u)) of a prediction u for a label y clipped to [-1, 1].

    Gradients are at most 1 / (1 + e^-radius) in the dual norm, and their Lipschitz constant is 1/4.
    Values lie in [log(1 + e^-radius), log(1 + e^radius)].
    """

    domain: LpBall
    dual_smoothness = 0.25

    @property
    def dual_lipschitz(self) -> float:
        return float(scipy.special.expit(self.reach))


@dataclass(frozen=True)
class QuantileRegression(Regression):
    """Pinball loss: level (y - u) if y is above the prediction u, else (1 - level) (u - y).

    Gradients are at most L = max(level, 1 - level), values in [0, L (radius + bound)]; it is not
    smooth. The slope at the kink is 0. Koenker and Bassett, "Regression quantiles" (1978).
    """

    domain: LpBall
    level: float = 0.5
    """Level of the quantile, in (0, 1)"""
    bound: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        inside("level", self.level, 0, 1, ends=False)

    @property
    def dual_lipschitz(self) -> float:
        return max(self.level, 1 - self.level)

    @property
    def value_range(self) -> tuple[float, float]:
        return 0.0, self.dual_lipschitz * (self.reach + self.bound)

    def _phi(self, u: Floats, b: Floats) -> Floats:
        below = u - b
        return abs(below) / 2 + (0.5 - self.level) * below

    def _slope(self, u: Floats, b: Floats) -> Floats:
        return (1 - self.level) * (u > b) - self.level * (u < b)

    def _smooth(self, u: Floats, b: Floats, mu: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        below, tilt = u - b, 0.5 - self.level
        root, slack, slope, bend = hyperbola(below, mu)
        return root / 2 + tilt * below, slack / 2, slope / 2 + tilt, bend / 2
