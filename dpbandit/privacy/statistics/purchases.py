"""How often each product was bought, and how often nothing was while it was offered."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_norm, rows
from dpbandit.base.inputs import whole
from dpbandit.privacy.statistics.moments import added_up


@dataclass(frozen=True, kw_only=True)
class Purchases:
    """Counts of a user who was offered the set A and bought y: (1_y, 0), or (0, 1_A / sqrt(S)).

    Of independent choices from a multinomial logit b_y / z_y estimates v_y, whatever was offered
    beside it: b the purchases, z how often nothing was bought while y was offered.

    Guarantee:
        Replacing one user moves the counts by at most sqrt(2): whatever is fed, hers is a vector of
        non-negative numbers and of norm at most 1, and of two such `|a - b|^2 <= |a|^2 + |b|^2`.
        Two who bought different products are so far apart.

    >>> counts = Purchases(n_items=3, at_most=2)
    >>> counts.total(np.array([[[1, 0, 1]], [[1, 0, 1]]]), np.array([[2], [3]])).round(3)
    array([[0.   , 0.   , 1.   , 0.707, 0.   , 0.707]])
    """

    n_items: int
    """products; one at several prices is as many"""
    at_most: int
    """S, items of a set"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_items", self.n_items, 1)
        whole("at_most", self.at_most, 1, self.n_items)

    @property
    def shape(self) -> tuple[int]:
        """(2 n_items,)."""
        return (2 * self.n_items,)

    @property
    def sensitivity(self) -> float:
        """sqrt(2)."""
        return sqrt(2)

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """Which items were offered, (n, R, I), which was bought, (n, R), else none: (R, 2 I)."""
        there, y = batch
        offered = there > 0
        bought = 1.0 * ((y[..., None] == rows(self.n_items)) & offered)
        none = 1.0 * ~bought.any(axis=-1, keepdims=True)
        nothing = clip_norm(offered * none / sqrt(self.at_most), 1.0)
        return added_up(np.concatenate([bought, nothing], axis=-1))

    def unpack(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Sums (..., 2 I) -> purchases b and times of nothing z, (..., I) each."""
        I = self.n_items  # noqa: E741
        return vectors[..., :I], vectors[..., I:] * sqrt(self.at_most)
