"""An estimate as the mean of one term for each row, so that one code of intervals serves all."""

from dataclasses import dataclass

import numpy as np

from dpbandit.base.arrays import Floats


@dataclass(frozen=True, eq=False)
class Terms:
    """mean(base) + sum(excess) / sum(weight), or without `normalised` / n.

    Whatever is built so is a mean of n terms, up to a normaliser whose luck `errors` account for.
    """

    base: Floats
    """(n,), what needs no weight, such as a model's value of the policy"""
    excess: Floats
    """(n,), what is weighted, with its weight"""
    weight: Floats
    """(n,), of mean 1 if the log's probabilities are true"""
    normalised: bool = False

    @property
    def values(self) -> Floats:
        """(n,), whose mean is the estimate."""
        return self.base + self.excess / self._normaliser

    @property
    def estimate(self) -> float:
        """NaN where normalised weights are all 0."""
        return float(self.values.mean())

    @property
    def errors(self) -> Floats:
        """(n,) of mean 0, the estimate's error to first order in 1 / sqrt(n)."""
        if not self.normalised:
            return self.values - self.estimate
        ratio = self.excess.sum() / (self.weight.sum() or np.nan)
        drift = (self.excess - self.weight * ratio) / self._normaliser
        return np.asarray(self.base - self.base.mean() + drift)

    @property
    def effective(self) -> float:
        """Rows of equal weight that would be as good, (sum w)^2 / sum w^2."""
        squares = float(np.square(self.weight).sum())
        return float(self.weight.sum()) ** 2 / squares if squares else 0.0

    @property
    def matches(self) -> int:
        """Rows with any weight."""
        return int(np.count_nonzero(self.weight))

    @property
    def weights_are_off(self) -> bool:
        """Whether their mean is further from 1 than 4 standard errors, with 10 to judge by."""
        n = len(self.weight)
        room = 4 * float(self.weight.std()) / n**0.5 + 1e-6
        return self.matches >= 10 and abs(float(self.weight.mean()) - 1) > room

    @property
    def _normaliser(self) -> float:
        mean = float(self.weight.mean()) if self.normalised else 1.0
        return mean or np.nan
