"""Sums of scores of one of two models, by a released choice for each replica."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpbandit.base import AnyArray, Floats, added_up
from dpbandit.privacy.mechanism import Statistic
from dpbandit.privacy.premises import NO_FACTS
from dpbandit.privacy.residuals import CentredResiduals, SignedResiduals

SIGNED, CENTRED = 0, 1
"""Parts of the vector that `ChosenScores` sums"""


@dataclass(frozen=True, kw_only=True)
class ChosenScores:
    """Sum of signed or of centred residuals, side by side in one vector.

    A round is (part, reference of `signed`, reference of `centred`, x, a, r). Where part (R,) is
    `SIGNED` it adds signed residuals to the first part of the vector, and where it is `CENTRED`
    centred residuals to the second, each in units of its sensitivity. It adds 0 to the other part.
    Rounds with different parts, which no agent here sends in one batch, are added one by one, so
    that no round's part decides for another.

    Guarantee:
        Both residuals have norm at most half their sensitivity, at every reference point. So a
        round adds a vector of norm at most 1/2, and replacing one user moves the sum by at most
        `sensitivity` = 1, whatever the part is, even if it were not released.
    """

    # "whatever the part is, even if it were not released"
    needs = NO_FACTS

    signed: SignedResiduals
    centred: CentredResiduals
    sensitivity: ClassVar[float] = 1.0
    move_sensitivity: ClassVar[float] = 1.0

    @property
    def shape(self) -> tuple[int]:
        return (sum(length for length, _ in self._parts),)

    @property
    def units(self) -> Floats:
        # of each coordinate, the sensitivity of its part
        lengths, sensitivities = zip(*self._parts, strict=True)
        return np.repeat(sensitivities, lengths)

    @property
    def _parts(self) -> list[tuple[int, float]]:
        statistics = self.signed, self.centred
        return [(one.shape[0], one.sensitivity) for one in statistics]

    def total(self, *batch: AnyArray) -> Floats:
        # (n, R), references (n, R, ...), x (n, R, d), a (n, R), r (n, R) -> `(R, *shape)`
        part, references, data = batch[0], batch[1:-3], batch[-3:]
        if len(part) > 1 and (part != part[0]).any():
            each = [self.total(*(array[t : t + 1] for array in batch)) for t in range(len(part))]
            return added_up(np.stack(each))
        signed, centred = references[:-3], references[-3:]
        inputs = (*signed, *data), (*centred, *data)
        statistics: list[Statistic] = [self.signed, self.centred]
        sums = []
        for place, statistic, mine in zip((SIGNED, CENTRED), statistics, inputs, strict=True):
            chosen = part[0] == place
            total = np.zeros((len(chosen), *statistic.shape))
            if chosen.any():
                total = np.where(chosen[:, None], statistic.total(*mine), total)
            sums.append(total)
        return np.concatenate(sums, axis=1)

    def split(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return the two parts of sums `(R, *shape)`."""
        signed, centred = np.split(vectors, [self._parts[0][0]], axis=1)
        return signed, centred
