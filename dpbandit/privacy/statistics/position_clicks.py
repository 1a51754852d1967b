"""Clicks on lists where nobody is told how often users look at a position."""

from dataclasses import dataclass
from math import sqrt
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm
from dpbandit.base.inputs import whole
from dpbandit.losses.click_models import UntoldPositions
from dpbandit.privacy.statistics.list_clicks import ListStatistic, features, possible_clicks
from dpbandit.privacy.statistics.moments import added_up


@dataclass(frozen=True)
class PositionCounts:
    """Clicks (m,) at each position, scaled down to length 1 where a user has several.

    Guarantee:
        Replacing one user moves the counts by at most sqrt(2), not sqrt(m): both vectors are no
        longer than 1 and no entry is negative, so `|x - x'|^2 <= |x|^2 + |x'|^2 <= 2`; by 1 if
        m = 1. It is attained by one click each, at different positions.
    """

    length: int
    """m"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("length", self.length, 1)

    @property
    def shape(self) -> tuple[int, ...]:
        """(m,)."""
        return (self.length,)

    @property
    def sensitivity(self) -> float:
        """sqrt(2), or 1."""
        return sqrt(2) if self.length > 1 else 1.0

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        """Clicks (n, R, m) -> (R, m)."""
        (said,) = batch
        return added_up(clip_norm(possible_clicks(UntoldPositions(self.length), said), 1.0))


@dataclass(frozen=True, kw_only=True)
class WeightedClicks(ListStatistic):
    """Clicked items as in `ListClicks`, by position weights that are part of the round.

    A round is (f, u, v, clicks): weights (R, m), released or public and clipped to [0, 1], then as
    in `ListClicks`::

        z = sum click_k phi_k, clipped to length 1;    G = sum f_k phi_k phi_k' / sum f_k

    Guarantee:
        At every f, finite or not, replacing one user moves the sum by at most sqrt(2 + 2 g^2), as
        in `ListClicks`: z knows nothing of f, and G is positive semidefinite with trace 1 at most,
        because no f_k is negative.
    """

    @property
    def sensitivity(self) -> float:
        """sqrt(2 + 2 g^2)."""
        return sqrt(2 + 2 * self.gram_weight**2)

    def total(self, *batch: npt.NDArray[np.float64]) -> Floats:
        """(n, R, m), u (n, R, q), vectors (n, R, m, q), clicks (n, R, m) -> (R, p)."""
        f, u, v, said = batch
        f = np.where(np.isfinite(f), f, 0.0).clip(0, 1)
        phi = features(u, v)
        z = np.matvec(phi.swapaxes(-1, -2), possible_clicks(self.model, said))
        total = np.maximum(f.sum(axis=-1, keepdims=True), 1e-300)
        return self._summed(clip_norm(z, 1.0), phi, f / total)

    def datum(self, reference: Floats, *round: Floats) -> tuple[Floats, ...]:
        """What a round is to `total`: weights, users, vectors and clicks."""
        return reference, *round
