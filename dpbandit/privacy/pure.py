"""Privacy costs of pure mechanisms, and of Laplace and K-norm noise.

Selection (exponential mechanism, noisy maximum), sparse vector and randomised response: the cost of
many such mechanisms, each with its own epsilon or range of its loss, composed exactly. Then Laplace
and K-norm releases.

**One worst pair.** The density p of noise b is `exp(-|b| / c)` up to a constant, so the loss of a
release whose input moved by v is `(|b - v| - |b|) / c`, between -`|v| / c` and `|v| / c`: pure DP,
summed over the releases. The curve delta(epsilon) is far below that sum, and needs only one pair of
neighbours::

    H(v) = 1 - integral of min(p(b), e^epsilon p(b - v)) db

is quasi-convex in v, because the minimum of two log-concave functions is log-concave in (b, v)
and so is its integral over b (Prekopa 1973). So the worst v in a ball is an extreme point: any
point of the Euclidean sphere for K-norm noise, by symmetry, and one coordinate alone for Laplace
noise with a movement bounded in l_1, i.e. the Laplace mechanism of one dimension. Dominating
pairs compose adaptively (Zhu, Dong and Wang, "Optimal accounting of differential privacy via
characteristic function", AISTATS 2022).

**K-norm, numerically.** In units of c let `s = |b| ~ Gamma(k, 1)` and u = cos(b, v), (1 + u) / 2 ~
Beta((k-1)/2, (k-1)/2), independent. The loss sqrt(s^2 - 2 a s u + a^2) - s, `a = |v|`, decreases in
both, so that on a cell of an (s, u) grid it is at most its value at the lower corner. Every cell
has that value, rounded up once more onto a fine grid; mass below the grid has the maximum a. These
atoms are split onto the requested grid, again pessimistically.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import ceil, exp, expm1, fsum, inf, log, sqrt
from typing import Any, ClassVar, Self, cast

import numpy as np
import scipy

from dpbandit.base import Floats, InputError, whole
from dpbandit.privacy.loss_distributions import PrivacyLoss, connected, constant, split
from dpbandit.privacy.spends import NORM_ROUNDING, Composed, Slots, check_loss

_GROUPS = 512
"""Largest number of groups of equal epsilons; with more, epsilons are rounded up to a grid"""
_MAX_RATIO = 1.05
"""Largest ratio of the rounding grid's neighbours at which `pure` and `rho` sum exact epsilons"""
_SUM_TOLERANCE = 1e-9
"""Relative tolerance between a sum of epsilons over groups and one over all mechanisms"""
_MIN_CELLS_PER_LOSS = 2.0
"""Least number of grid cells per unit of loss, as delta(epsilon) curves where losses are large"""


@dataclass(frozen=True)
class PureSpend(Composed):
    """Cost of adaptively composed mechanisms of which only the pure epsilons are known.

    Guarantee:
        If the i-th mechanism is epsilon_i-DP, then all are pure-DP, pure = sum of epsilon_i, and
        rho-zCDP, rho = sum of epsilon_i^2 / 2 (Bun and Steinke, TCC 2016, Prop. 1.4). `delta` and
        `losses` hold because randomised response, losses +-epsilon, dominates: the hockey stick
        E_Q[(W - e^x)+] is convex in the likelihood ratio W, which lies in [e^-epsilon, e^epsilon]
        and has mean 1, so the law on the two ends is the worst. Products of dominating pairs
        dominate adaptive compositions (Zhu, Dong and Wang, AISTATS 2022).

    >>> PureSpend.of("two questions", [0.5, 0.25]).pure
    0.75
    """

    note: str
    pure: float
    """epsilon at delta = 0, the sum over mechanisms"""
    rho: float
    """zCDP parameter, the sum over mechanisms"""
    groups: tuple[tuple[float, int], ...]
    """(epsilon, number of mechanisms of that epsilon or rounded up to it), at most 512 rows"""
    _rho_per_square: ClassVar[float] = 1 / 2

    def __post_init__(self) -> None:
        for epsilon, count in self.groups:
            check_loss(f"an epsilon of {self.note!r}, epsilon", epsilon)
            whole("count", count, 1)
        pure = fsum(epsilon * count for epsilon, count in self.groups)
        rho = self._rho_per_square * fsum(e * e * count for e, count in self.groups)
        up = self._rounding_ratio()
        for name, value, most, least in (
            ("pure", self.pure, pure, pure / up),
            ("rho", self.rho, rho, rho / up**2),
        ):
            if not least * (1 - _SUM_TOLERANCE) <= value <= most * (1 + _SUM_TOLERANCE):
                raise InputError(
                    f"Expected {name}={value} of {self.note!r} to be that of its groups, {most}."
                )

    def _rounding_ratio(self) -> float:
        """Return the largest ratio of a group's epsilon to one that `pure` and `rho` may sum."""
        each = sorted(epsilon for epsilon, _ in self.groups)
        if sum(count for _, count in self.groups) <= _GROUPS or not 0 < each[0] <= each[-1] < inf:
            return 1.0
        up = _level_ratio(each[0], each[-1])
        return up if up <= _MAX_RATIO else 1.0

    @classmethod
    def of(cls, note: str, epsilons: Sequence[float] | Floats) -> Self:
        """Return the joint spend of mechanisms whose pure epsilons or ranges are `epsilons`."""
        each = np.asarray(epsilons, dtype=float)
        values, counts = np.unique(each, return_counts=True)
        if len(values) > _GROUPS and np.isfinite(values[-1]):
            levels = np.geomspace(values[0], values[-1], _GROUPS)[1:-1]
            last = np.flatnonzero(np.diff(np.searchsorted(levels, values), append=_GROUPS))
            values = values[last]  # the largest of a cell for all of it: epsilons are rounded up
            counts = np.diff(np.cumsum(counts)[last], prepend=0)
            if _level_ratio(values[0], values[-1]) > _MAX_RATIO:
                each = np.repeat(values, counts)  # too coarse for the exact sum
        groups = tuple(zip(values.tolist(), counts.tolist(), strict=True))
        rho = cls._rho_per_square * fsum((each * each).tolist())
        return cls(note, fsum(each.tolist()), rho, groups)

    @classmethod
    def alike(cls, note: str, epsilon: float, count: int) -> Self:
        """Return the joint spend of `count` mechanisms of one `epsilon`, without building a list.

        >>> PureSpend.alike("", 0.1, 7) == PureSpend.of("", 7 * [0.1])
        True
        """
        if count == 0:
            return cls.of(note, [])
        rho = cls._rho_per_square * (epsilon * epsilon * count)
        return cls(note, float(epsilon * count), rho, ((float(epsilon), int(count)),))

    @property
    def mu(self) -> float | None:
        # None, as not Gaussian; 0 without any mechanism
        return None if self.groups else 0.0

    def curve(self, epsilon: float, x: Floats) -> Floats:
        """Return the exact delta at x, of any sign, of the worst epsilon-DP mechanism.

        It is (e^epsilon - e^x) / (e^epsilon + 1) for x between -epsilon and epsilon.
        """
        inner = -np.expm1(np.minimum(x - epsilon, 0.0)) / (1 + np.exp(-epsilon))
        return np.where(x < -epsilon, -np.expm1(np.minimum(x, 0.0)), inner)

    def delta(self, epsilon: float) -> float:
        if [count for _, count in self.groups] == [1] and self.pure < inf:
            return float(self.curve(self.pure, np.array(epsilon))) if epsilon < self.pure else 0.0
        return super().delta(epsilon)

    @property
    def step(self) -> float:
        count = sum(count for _, count in self.groups)
        square = fsum(count * epsilon**2 for epsilon, count in self.groups)
        if not 0 < square < inf:
            return inf
        largest = self.groups[-1][0]
        return largest / ceil(largest * max(12 / sqrt(square / count), _MIN_CELLS_PER_LOSS))

    def losses(self, step: float) -> tuple[PrivacyLoss, ...]:
        # one loss for every group, from grid points of its curve
        if self.pure == inf:
            return (constant(inf, step=step),)
        return tuple(
            connected(partial(self.curve, epsilon), reach=epsilon, step=step, count=count)
            for epsilon, count in self.groups
            if epsilon > 0
        )


def _level_ratio(least: float, most: float) -> float:
    """Return the ratio of neighbours on a geometric grid of `_GROUPS` numbers `least` to `most`."""
    return float(exp((log(most) - log(least)) / (_GROUPS - 2)))


@dataclass(frozen=True)
class BoundedRangeSpend(PureSpend):
    """Cost of adaptively composed mechanisms of bounded range, like the exponential mechanism.

    epsilon-bounded range: for neighbours the log-ratio of the two laws varies over outputs by
    at most epsilon (Durfee and Rogers, NeurIPS 2019), so it lies in some [t - epsilon, t] around 0.

    Guarantee:
        If the i-th mechanism has epsilon_i-bounded range, then all together are (sum of
        epsilon_i)-DP and rho-zCDP, rho = sum of epsilon_i^2 / 8 (Cesar and Rogers, ALT 2021).
        `delta` and `losses` hold because, as in `PureSpend` with [e^(t - epsilon), e^t], the law on
        the two ends is the worst for given t; it has delta(x) = (e^epsilon - e^t) (1 - e^(x - t)) /
        (e^epsilon - 1), largest at t = (epsilon + x) / 2, which gives the curve below (Dong, Durfee
        and Rogers, ICML 2020). A supremum of hockey-stick curves is the curve of some pair (Zhu,
        Dong and Wang), which dominates in both directions: exchanging neighbours takes t to epsilon
        - t.
    """

    _rho_per_square: ClassVar[float] = 1 / 8

    def curve(self, epsilon: float, x: Floats) -> Floats:
        inner = np.expm1(np.minimum(x - epsilon, 0.0) / 2) ** 2 / -expm1(-epsilon)
        return np.where(x < -epsilon, -np.expm1(np.minimum(x, 0.0)), inner)


_RADII, _COSINE_CELLS, _ATOM_POINTS, _CURVE_POINTS = 1000, 8000, 4000, 500
"""Numbers of radii and cosines for K-norm losses, and of grid points of their law and its curve"""
_MAX_STEP = 0.5
"""Largest grid step of privacy losses, as delta(epsilon) curves on the scale of 1"""
MAX_RELEASE_LOSS = 300.0
"""Largest loss of one release for which a loss distribution is computed; beyond it, pure DP only"""


class _Releases(Composed):
    """Base class of the spends of `count` equal releases of Laplace or K-norm noise."""

    count: int

    @property
    def _law(self) -> tuple[int, float]:
        """Dimension, and the largest change of a release divided by the scale of its noise."""
        raise NotImplementedError

    @property
    def mu(self) -> float | None:
        return None

    @property
    def pure(self) -> float:
        return self.count * self._law[1] if self.count else 0.0

    @property
    def rho(self) -> float:
        # as pure DP implies
        return self.count * self._law[1] ** 2 / 2 if self.count else 0.0

    @property
    def step(self) -> float:
        # a 500th of the standard deviation of one loss
        dim, ratio = self._law
        if not self.count or not 0 < ratio < inf:
            return inf
        return min(ratio / (_CURVE_POINTS * sqrt(dim)), _MAX_STEP)

    def losses(self, step: float) -> tuple[PrivacyLoss, ...]:
        dim, ratio = self._law
        if not self.count or ratio == 0 or ratio > MAX_RELEASE_LOSS:
            return (constant(ratio and self.count and inf, step=step),)
        if dim == 1:
            return (connected(self._curve, reach=ratio, step=step, count=self.count),)
        return (split(*_atoms(dim, ratio), step=step, count=self.count),)

    def for_share(self, share: float) -> Self:
        """Return the spend of a `share` of the releases."""
        spend: Self = replace(cast(Any, self), count=round(share * self.count))  # of a dataclass
        return spend

    def _curve(self, epsilon: Floats) -> Floats:
        """Return the delta of one Laplace release at `epsilon` >= 0."""
        return -np.expm1(np.minimum(epsilon - self._law[1], 0.0) / 2)


@dataclass(frozen=True)
class LaplaceSpend(_Releases):
    """Cost of `count` Laplace releases, each moved by one user by epsilon x scale in l_1.

    Guarantee:
        Pure DP with count x epsilon, zCDP with count x epsilon^2 / 2 (Bun and Steinke, TCC 2016),
        and the curve of the module, 1 - e^((x - epsilon) / 2) at x for one release.

    >>> spend = LaplaceSpend(0.1, count=10)
    >>> spend.pure, round(spend.rho, 6)
    (1.0, 0.05)
    """

    epsilon: float
    count: int = 1
    note: str = "Laplace noise"
    slots: Slots | None = field(default=None, compare=False, repr=False)
    """release plan of a running sum, for its cost by age; None if not known"""

    def __post_init__(self) -> None:
        check_loss("epsilon", self.epsilon)
        whole("count", self.count, 0)

    @property
    def _law(self) -> tuple[int, float]:
        return 1, self.epsilon

    def for_share(self, share: float) -> Self:
        if self.count != 1:
            return super().for_share(share)
        moved = min(1.0, share * (1 + NORM_ROUNDING))
        return replace(self, epsilon=moved * self.epsilon if moved else 0.0)


@dataclass(frozen=True)
class KNormSpend(_Releases):
    """Cost of `count` K-norm releases in dimension `dim`, each moved by ratio x scale in l_2.

    Guarantee:
        Pure DP with count x ratio, zCDP with count x ratio^2 / 2, and the curve of the module. The
        movement must lie in the subspace of the noise; `dim` is the dimension of that subspace.

    >>> spend = KNormSpend(5, 1 / 15, count=15, note="tree of 15 nodes")
    >>> round(spend.pure, 12), bool(spend.delta(0.322) < 1.02e-4)
    (1.0, True)
    """

    dim: int
    ratio: float
    """largest movement by one user, divided by the scale of the noise"""
    count: int = 1
    note: str = "K-norm noise"
    slots: Slots | None = field(default=None, compare=False, repr=False)
    """release plan of a running sum, for its cost by age; None if not known"""

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        check_loss("ratio", self.ratio)
        whole("count", self.count, 0)

    @property
    def _law(self) -> tuple[int, float]:
        return self.dim, self.ratio


@lru_cache(maxsize=64)
def _atoms(dim: int, ratio: float) -> tuple[Floats, Floats]:
    """Return losses, from -ratio to ratio, and masses that dominate the loss of one release."""
    a, half = ratio, (dim - 1) / 2
    special = scipy.special
    least, most = max(special.gammaincinv(dim, 1e-20), 1e-3 * a), special.gammainccinv(dim, 1e-20)
    radii = ceil(_RADII * min(1.0, 0.1 + 10 * a / dim))  # fewer do for a small movement
    s = np.append(0.0, np.geomspace(least, max(most, 2 * least), radii))  # lower corners
    lower, upper = special.gammainc(dim, s), special.gammaincc(dim, s)
    of_s = np.where(lower < 0.5, np.diff(lower, append=1.0), -np.diff(upper, append=0.0))
    wide = min(1.0, 12 / sqrt(dim))  # P(u < -wide) < 1e-30 where this is below 1
    u = np.append(-1.0, np.linspace(-wide, wide, _COSINE_CELLS))
    of_u = np.maximum(np.diff(special.betainc(half, half, (1 + u) / 2), append=1.0), 0.0)
    fine = a / ceil(_ATOM_POINTS * sqrt(dim))
    bins = 2 * ceil(_ATOM_POINTS * sqrt(dim))
    masses = np.zeros(bins + 1)
    for radius, mass in zip(s, of_s, strict=True):
        moved = np.sqrt(np.maximum(radius * (radius - 2 * a * u) + a * a, 0.0))
        loss = a * (a - 2 * radius * u) / (moved + radius)  # moved - radius, without cancellation
        index = np.ceil(loss / fine).astype(np.int64) + bins // 2
        masses += mass * np.bincount(np.clip(index, 0, bins), weights=of_u, minlength=bins + 1)
    return fine * np.arange(-(bins // 2), bins // 2 + 1), masses
