"""How many were sold: the count that stands between a shelf and what is known of it."""

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, clip_range
from dpbandit.privacy.statistics.moments import added_up


class SalesCount:
    """The sum of sales in [0, 1], clipped (what is no number is 0); replacing one moves it by 1."""

    shape: ClassVar[tuple[int, ...]] = (1,)
    sensitivity: ClassVar[float] = 1.0
    units: ClassVar[float] = 1.0

    def total(self, *batch: npt.NDArray[Any]) -> Floats:
        """(n, R, 1) -> (R, 1)."""
        (sold,) = batch
        return added_up(clip_range(np.where(np.isfinite(sold), sold, 0.0), 0.0, 1.0))
