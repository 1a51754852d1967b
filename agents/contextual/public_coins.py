"""Who explores, by coins that are public and drawn before the data."""

from dataclasses import dataclass
from math import ceil, log, sqrt

import numpy as np

from dpbandit.base import InputError, Ints

_CHUNK = 1 << 20
"""Coins drawn at once. Part of the arithmetic: never derived from anything else."""


@dataclass(frozen=True)
class PublicCoins:
    """Round t = 1, 2, .. explores with probability min(1, c t^(-1/3)), and half of those for a net.

    What a net is made for, `most`, follows from T and c alone: not from the coins.
    """

    horizon: int
    """T"""
    rate: float
    """c, in (0, T^(1/3)]"""

    def __post_init__(self) -> None:
        if not 0 < self.rate <= self.horizon ** (1 / 3) * (1 + 1e-12):
            raise InputError(
                f"Expected rate={self.rate} to be above 0 and at most the cube root of "
                f"horizon={self.horizon}."
            )

    @property
    def expected(self) -> float:
        """A bound on the expected number of net explorers, the sum of c t^(-1/3) / 2."""
        return 0.75 * self.rate * self.horizon ** (2 / 3)

    @property
    def most(self) -> int:
        """Net explorers at most; more would come with probability 1/T, and are not the net's.

        Bernstein's inequality, solved for the number.
        """
        tail = log(self.horizon)
        return ceil(self.expected + tail / 3 + sqrt(tail**2 / 9 + 2 * self.expected * tail))

    def draw(self, seed: int) -> tuple[Ints, Ints]:
        """Rounds of net explorers, and of others: increasing, the first round is 0."""
        draw = np.random.Generator(np.random.SFC64(seed)).random
        T, net, others = self.horizon, [], []
        for start in range(0, T, _CHUNK):
            t = np.arange(start, min(T, start + _CHUNK))
            first, second = draw((2, len(t)))
            explores = first < np.minimum(1.0, self.rate * (t + 1.0) ** (-1 / 3))
            net.append(t[explores & (second < 0.5)])
            others.append(t[explores & (second >= 0.5)])
        found = np.concatenate(net)
        return found[: self.most], np.concatenate([*others, found[self.most :]])
