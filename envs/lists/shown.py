"""What was shown in an episode: how much of a catalogue, and how unlike the items of a list are."""

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats, Ints, rows
from dpbandit.specs.catalogues import Catalogue


class Shown:
    """Diagnostics of lists, for R replicas: nobody learns from them."""

    def __init__(self, catalogue: Catalogue, replicas: int) -> None:
        self._catalogue, self._clock = catalogue, catalogue.clock
        self._seen = np.zeros((replicas, catalogue.n_items), np.bool_)
        self._gone = np.zeros(replicas, np.int64)
        self._distance, self._lists = np.zeros(replicas), np.zeros(replicas, np.int64)
        self._refilled = catalogue.refilled.copy()

    def see(self, lists: Ints, here: npt.NDArray[np.bool_]) -> None:
        """One round, lists (R, m), where anybody is `here` (R,)."""
        if self._catalogue.clock != self._clock:
            self._forget()
        self._seen[rows(len(lists))[here, None], lists[here]] = True
        v = self._catalogue.vectors(lists)
        total, m = v.sum(axis=1), lists.shape[1]
        alike = np.vecdot(total, total) - np.square(v).sum(axis=(1, 2))  # twice every pair
        self._distance += here * (1 - alike / (m * (m - 1))) / 2 if m > 1 else np.nan
        self._lists += here

    @property
    def coverage(self) -> Floats:
        """See `ListProblem.coverage`."""
        there = self._seen.shape[1] + self._catalogue.clock
        return np.asarray((self._gone + self._seen.sum(axis=1)) / there)

    @property
    def intra_list_distance(self) -> Floats:
        """See `ListProblem.intra_list_distance`."""
        return np.where(self._lists > 0, self._distance / np.maximum(self._lists, 1), np.nan)

    def _forget(self) -> None:
        """Places with new items have not been shown; what was there has, or has not."""
        new = self._catalogue.refilled != self._refilled
        self._gone += (self._seen & new).sum(axis=1)
        self._seen &= ~new
        self._clock, self._refilled = self._catalogue.clock, self._catalogue.refilled.copy()
