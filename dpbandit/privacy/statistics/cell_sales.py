"""How often each price sold, and how often it did not, in each cell of customers."""

from dataclasses import dataclass
from math import sqrt
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, clip_norm, clip_range
from dpbandit.base.inputs import InputError, positive, whole

_MOST_NUMBERS = 1_000_000
"""Of one release."""


@dataclass(frozen=True, kw_only=True)
class CellSales:
    """Sales and non-sales of every price in every cell: (s 1_(c, p), (1 - s) 1_(c, p)).

    A customer is in one cell, the place of some coordinates of her context on a dyadic grid of
    [-`context_bound`, `context_bound`]; s in [0, 1] is her margin over that of the price p.

    Guarantee:
        Replacing one customer moves the counts by at most sqrt(2): whatever is fed, hers is a
        vector of non-negative numbers of norm at most 1, and of two such `|a - b|^2 <= |a|^2 +
        |b|^2`. Two buyers of different cells are so far apart.

    >>> sales = CellSales(margins=(1.0, 2.0), coordinates=(1,), depth=1)
    >>> sales.cells(np.array([[0.5, -0.1], [0.5, np.nan]]))
    array([0, 1])
    """

    margins: tuple[float, ...]
    """dollars earned by a sale at each price, > 0"""
    coordinates: tuple[int, ...]
    """of the context; no cells but one if there are none"""
    depth: int
    """how often each is halved"""
    context_bound: float = 1.0
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("depth", self.depth, 0)
        positive("context_bound", self.context_bound)
        numbers = 2.0 ** (1 + self.depth * len(self.coordinates)) * len(self.margins)
        if numbers > _MOST_NUMBERS:
            raise InputError(
                f"Expected depth={self.depth} of {len(self.coordinates)} coordinates to make fewer "
                f"cells: {numbers:.3g} numbers a release are more than {_MOST_NUMBERS:,}."
            )

    @property
    def n_cells(self) -> int:
        """2^(depth x coordinates)."""
        return 1 << (self.depth * len(self.coordinates))

    @property
    def shape(self) -> tuple[int, int, int]:
        """(2, cells, K), sales before what was not sold."""
        return 2, self.n_cells, len(self.margins)

    @property
    def sensitivity(self) -> float:
        """sqrt(2)."""
        return sqrt(2)

    def cells(self, context: Floats) -> Ints:
        """Contexts (..., d) -> cells (...); what is no number is 0, in the cell above the middle.

        Coordinates beyond the bound are moved to it.
        """
        sides = 1 << self.depth
        x = clip_norm(context[..., list(self.coordinates), None], self.context_bound)[..., 0]
        place = np.floor((x / self.context_bound + 1) / 2 * sides).astype(np.int64)
        digits = np.minimum(place, sides - 1)
        powers = sides ** np.arange(len(self.coordinates))
        return np.asarray(digits @ powers, np.int64)

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """context (n, R, d), price (n, R), reward (n, R) in dollars -> (R, 2, cells, K)."""
        context, action, reward = batch
        price = action.astype(np.int64)
        margin = np.array(self.margins)[price]
        s = np.minimum(clip_range(reward, 0.0, max(self.margins)) / margin, 1.0)
        replicas, (_, C, K) = s.shape[1], self.shape
        place = (np.arange(replicas) * 2 * C + self.cells(context)) * K + price
        places = np.concatenate([place.ravel(), place.ravel() + C * K])
        answers = np.concatenate([s.ravel(), 1 - s.ravel()])
        counts = np.bincount(places, answers, minlength=replicas * 2 * C * K)
        return np.asarray(counts.reshape(replicas, *self.shape), np.float64)
