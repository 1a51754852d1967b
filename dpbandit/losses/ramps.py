"""Ramps: no loss on one side of a hyperplane, a linear one on the other."""

from dataclasses import dataclass

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.domains.domain import Domain
from dpbandit.losses.predictions import Prediction, hyperbola


@dataclass(frozen=True)
class Ramp(Prediction):
    """max(0, u - b) / (2 R), u = <a, x - centre>, b in [-R, R]: L = 1 / (2 R), values in [0, 1].

    Users whose b are at least <a, x* - centre> lose nothing at x*: the realizable regime. The
    slope at the kink is 0.
    """

    domain: Domain

    @property
    def bound(self) -> float:  # type: ignore[override]
        """R."""
        return self.domain.outer_radius

    @property
    def lipschitz(self) -> float:
        """1 / (2 R)."""
        return self._scale

    @property
    def value_range(self) -> tuple[float, float]:
        """[0, 1]."""
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
