"""Prefix sums with gradual privacy expiration: recent rounds are protected more than old ones."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

import numpy as np

from dpbandit.base import Floats, positive
from dpbandit.privacy.certificate import SLOTS
from dpbandit.privacy.factors import FACTORISATIONS
from dpbandit.privacy.prefix_sums import LAWS, Factorisation, NoiseLaw


@dataclass(unsafe_hash=True)
class Gradual(Factorisation):
    """Prefix noise N_t, the sum of the noises of all dyadic intervals with t, one per level.

    Andersson, Henzinger, Pagh, Steiner and Upadhyay, "Continual counting with gradual privacy
    expiration", NeurIPS 2024 (arXiv 2406.03802), reconstructed: we have read its abstract and the
    caption of its first figure, not its algorithms. With lambda = `rate`::

        level 2:          [4        7]      N_5 = z[5] + z[4-5] + z[4-7],
        level 1:    [2 3] [4 5] [6 7]       noises of level l have scale b_l = (1 + l)^(1 - lambda)
        level 0: [1][2][3][4][5][6][7]      in units of the source

    An interval of level l starts at a positive multiple of 2^l, so that t has bit_length(t) noises,
    whatever the horizon. An observer of the releases x to x + d cannot tell a change at x from
    changed noises of intervals that start at x or later, cover [x, x + d] and may end later::

        x = 3, d = 2:   z[3] and z[4-7] move, or z[3] and z[4-5]

    Cover [x, x + d] greedily by the longest interval that starts next: number i starts at
    x + 2^i - 1 or later and has level i or more. So for lambda <= 1 epsilon after d releases is at
    most the sum of 1 / b_i over 2^i <= d + 1, of order log^lambda d, and x = 1 attains it. For
    lambda > 1 epsilon is of that order as well, by at most two intervals a level, and the noise of
    late releases is O(log^(3 - 2 lambda) t), bounded for lambda > 3/2.

    Guarantee:
        Laplace noises: all releases up to d after a user's are epsilon-DP with `noises`, the
        largest over users of the least l_1 cost of a cover by intervals that start at x or later;
        no earlier release has these noises, so streams may be adaptive. With Gaussian noise the
        exact cost is `early_norm`, the largest sqrt(a' Sigma^-1 a), a the 0/1 vector of prefixes
        with a user, Sigma the covariance of N; also if adaptive (Denisov et al., NeurIPS 2022).

    Differs from the paper:
        1. Gaussian noise, and exact costs in place of bounds.
        2. No delay: the paper can hold every datum back for some rounds.
    """

    rate: float = 2.0
    """decay lambda > 0 of the noise scale over levels; 2 in the paper's figures"""

    def __post_init__(self) -> None:
        positive("rate", self.rate)

    @property
    def word(self) -> str:  # type: ignore[override]  # a constant of the others
        return "gradual" if self.rate == 2 else f"gradual-{self.rate:g}"

    @property
    def laws(self) -> tuple[NoiseLaw, ...]:  # type: ignore[override]
        """Available laws of noise; K-norm noises would only compose if all had the same scale."""
        return LAWS if self.rate == 1 else ("gaussian", "laplace")

    def scale_of(self, level: int) -> float:
        """Return the scale of the noises of `level`, in units of the source's noise."""
        return float((1 + level) ** (1 - self.rate))

    def nodes(self, leaves: int) -> int:
        return int(leaves).bit_length()

    def noises(self, leaves: int, releases: int | None = None) -> tuple[float, int]:
        # equal noises are counted; others are one noise, moved by the l_1 cost of a cover
        seen = leaves if releases is None else min(leaves, releases)
        return (1.0, self.nodes(seen)) if self.rate == 1 else (_covered(self, leaves, seen), 1)

    def column_norm(self, leaves: int) -> float:
        return _hidden(self, leaves, leaves)

    def early_norm(self, leaves: int, releases: int) -> float:
        return _hidden(self, leaves, min(leaves, releases))

    def begin(self) -> None:
        self._above: list[Floats] = []  # [level]: the noises of all levels >= it

    def __call__(self) -> Floats:
        t = self.step()
        fresh = (t & -t).bit_length()  # levels 0 .. fresh - 1 begin an interval at t
        del self._above[:fresh]
        for level in reversed(range(fresh)):
            z = self.scale_of(level) * self.source()
            self._above.insert(0, z + self._above[0] if self._above else z)
        variance = sum(self.scale_of(level) ** 2 for level in range(t.bit_length()))
        self.stddev = sqrt(variance) * self.scale
        return self._above[0]


class _Windows:
    """Windows of leaves x..e, e = x + releases - 1, for dynamic programs on dyadic intervals.

    `least` goes from the leaves to the root. The cost of an interval is a function of c, the sum of
    changes of the noises of the intervals above it. For a leaf it is the cost of a change of 0 - c
    before x and of 1 - c in x..e; costs of two siblings are added, and `through` minimises over the
    change of the interval's own noise.
    """

    def __init__(self, leaves: int, releases: int) -> None:
        self.x = np.arange(1, leaves + 1)
        self.e = np.minimum(self.x + releases - 1, leaves)
        self.height = int(leaves).bit_length()

    def least(
        self, leaf: tuple[Floats, Floats], through: Callable[[Floats, int], Floats], *, fresh: bool
    ) -> Floats:
        """Return the cost functions at the root for each first leaf x, (coefficients, leaves)."""
        before, inside = leaf  # of whole intervals: all leaves before x, all in x..e
        with_x = with_e = np.repeat(inside[:, None], len(self.x), axis=1)
        for level in range(1, self.height + 1):
            x, e = self.x >> level - 1, self.e >> level - 1
            apart = x != e
            paired = apart & (x ^ 1 == e)
            right = np.where(paired, with_e, np.where(apart, inside[:, None], 0.0))
            with_x = with_x + np.where(x & 1, before[:, None], right)
            with_e = with_e + np.where(e & 1, inside[:, None], 0.0)
            before, inside = (through(2 * one, level) for one in (before, inside))
            mine = x >> 1 > 0
            if fresh:
                mine &= (self.x >> level << level) == self.x
            with_x = np.where(mine, through(with_x, level), with_x)
            with_e = through(with_e, level)
        return with_x


def _in_l1(w: float, cost: Floats) -> Floats:
    """Return an interval's l_1 costs if noises above it move by 0 or 1; w prices its own noise.

    No other need be tried: interval matrices are totally unimodular, so whole numbers are best.
    """
    return np.minimum(cost, cost[::-1] + w)


def _in_l2(variance: float, cost: Floats) -> Floats:
    """Return an interval's l_2 cost coefficients, from `cost`, those of the intervals in it."""
    a, b, r = cost  # the minimum over s of s^2 / variance + a (c + s)^2 - 2 b (c + s) + r
    share = 1 / (1 + a * variance)
    return np.array([a * share, b * share, r - b**2 * variance * share])


@lru_cache(maxsize=256)
def _covered(one: Gradual, leaves: int, releases: int) -> float:
    """Return the least l_1 change of noises that hides one leaf's change, for the worst leaf."""
    if min(leaves, releases) < 1:
        return 0.0
    leaf = np.array([0.0, 1.0]), np.array([1.0, 0.0])
    up = _Windows(leaves, releases).least(
        leaf, lambda cost, level: _in_l1(1 / one.scale_of(level), cost), fresh=True
    )
    return float(up[0].max())


@lru_cache(maxsize=256)
def _hidden(one: Gradual, leaves: int, releases: int) -> float:
    """Return the least l_2 change of noises that hides one leaf's change, for the worst leaf."""
    if min(leaves, releases) < 1:
        return 0.0
    leaf = np.array([1.0, 0.0, 0.0]), np.ones(3)
    up = _Windows(leaves, releases).least(
        leaf, lambda cost, level: _in_l2(one.scale_of(level) ** 2, cost), fresh=False
    )
    return sqrt(float(up[2].max()))


FACTORISATIONS.update({one.word: one for one in (Gradual(), Gradual(1.0))})
SLOTS["Gradual"] = Gradual
