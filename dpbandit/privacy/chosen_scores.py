"""Sums of scores of one of two models, by a released choice for each replica."""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, added_up
from dpbandit.privacy.mechanism import Statistic
from dpbandit.privacy.moments import SecondMoments
from dpbandit.privacy.premises import NO_FACTS
from dpbandit.privacy.residuals import CentredResiduals, SignedResiduals

SIGNED, ALTERNATIVE = 0, 1
"""Parts of the vector that `ChosenScores` sums"""


@dataclass(frozen=True, kw_only=True)
class ChosenScores:
    """Sum of signed residuals or of an alternative, side by side in one vector.

    The alternative is centred residuals, or Gram matrices and moments. A round is (part, reference
    of `signed`, reference of `alternative`, x, a, r), where the reference of moments is the reward
    that is summed. Where part (R,) is `SIGNED` it adds signed residuals to the first part of the
    vector, and where it is `ALTERNATIVE` the alternative to the second, each in units of its
    sensitivity. It adds 0 to the other part. Rounds with different parts, which no agent here sends
    in one batch, are added one by one, so that no round's part decides for another.

    Guarantee:
        In units of its sensitivity a round's residuals have norm at most 1/2, at every reference
        point, and its moments at most sqrt(3/8), if the moment's weight is sqrt(2). So a user who
        is replaced by one with another part moves the sum by at most sqrt(1/4 + 3/8), by one with
        the same part by at most `sensitivity` = 1, whatever the part is, even if it were not
        released. The same holds if she moves to another time slot.

    Raises:
        InputError: moments of another weight, or with a clip or a precise trace, which cost more.
    """

    # "whatever the part is, even if it were not released"
    needs = NO_FACTS

    signed: SignedResiduals
    alternative: CentredResiduals | SecondMoments
    sensitivity: ClassVar[float] = 1.0
    move_sensitivity: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        one = self.alternative
        if isinstance(one, SecondMoments) and not (
            abs(one.moment_weight**2 - 2) < 1e-9
            and one.move_sensitivity <= one.sensitivity * (1 + 1e-9)
            and not one.precise_trace
        ):
            raise InputError(
                f"Expected moment_weight={one.moment_weight:g} to be sqrt(2) without a moment clip "
                "and without a precise trace, for moments beside residuals."
            )

    @property
    def shape(self) -> tuple[int]:
        return (len(self.units),)

    @property
    def units(self) -> Floats:
        # of each coordinate, that of its statistic times the sensitivity of its part
        each = (np.broadcast_to(one.units, one.shape) * one.sensitivity for one in self._parts)
        return np.concatenate([units.ravel() for units in each])

    @property
    def _parts(self) -> tuple[Statistic, Statistic]:
        return self.signed, self.alternative

    def total(self, *batch: AnyArray) -> Floats:
        # (n, R), references (n, R, ...), x (n, R, d), a (n, R), r (n, R) -> `(R, *shape)`
        part, references, data = batch[0], batch[1:-3], batch[-3:]
        if len(part) > 1 and (part != part[0]).any():
            each = [self.total(*(array[t : t + 1] for array in batch)) for t in range(len(part))]
            return added_up(np.stack(each))
        if isinstance(self.alternative, SecondMoments):  # of the reward that is its reference
            of_signed, of_alternative = references[:-1], (*data[:2], references[-1])
        else:
            of_signed, of_alternative = references[:-3], (*references[-3:], *data)
        sums = []
        for place, inputs in ((SIGNED, (*of_signed, *data)), (ALTERNATIVE, of_alternative)):
            chosen, statistic = part[0] == place, self._parts[place]
            total = np.zeros((len(chosen), prod(statistic.shape)))
            if chosen.any():
                found = statistic.total(*inputs).reshape(total.shape)
                total = np.where(chosen[:, None], found, total)
            sums.append(total)
        return np.concatenate(sums, axis=1)

    def split(self, vectors: Floats) -> tuple[Floats, Floats]:
        """Return the sums of both statistics, each `(R, *shape)` of its own."""
        signed, rest = np.split(vectors, [prod(self.signed.shape)], axis=1)
        return signed, rest.reshape(len(rest), *self.alternative.shape)
