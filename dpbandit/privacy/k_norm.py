"""What noise shaped by a norm costs: Laplace and K-norm releases.

**One worst pair.** The density is exp(-|b| / c) up to a constant, hence the loss of a release
whose input moved by v is (|b - v| - |b|) / c, between -|v| / c and |v| / c: pure DP, summed over
the releases. The curve delta(epsilon) is far below that sum, and needs one pair of worlds only:

    H(v) = 1 - integral of min(p(b), e^epsilon p(b - v)) db

is quasi-convex in v, because the minimum of two log-concave functions is log-concave in (b, v)
and so is its integral over b (Prekopa 1973). So the worst v in a ball is an extreme point: any
point of the Euclidean sphere for K-norm noise, by symmetry, and one coordinate alone for Laplace
noise with a movement bounded in l_1, i.e. the Laplace mechanism of one dimension. Dominating
pairs compose adaptively (Zhu, Dong and Wang, "Optimal accounting of differential privacy via
characteristic function", AISTATS 2022).

**K-norm, numerically.** In units of c let s = |b| ~ Gamma(k, 1) and u = cos(b, v), (1 + u) / 2 ~
Beta((k-1)/2, (k-1)/2), independent. The loss sqrt(s^2 - 2 a s u + a^2) - s, a = |v|, decreases in
both, so that on a cell of an (s, u) grid it is at most its value at the lower corner. Every cell
carries that value, rounded up once more onto a fine grid; what lies below the grid carries the
maximum a. The curve of those atoms, an upper bound, goes onto the grid asked for by connecting
the dots (Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, PETS 2022), again pessimistic.
"""

from dataclasses import dataclass
from functools import cache
from math import ceil, inf, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import betainc, gammainc, gammaincc, gammainccinv, gammaincinv

from dpbandit.arrays import Floats
from dpbandit.inputs import at_least, whole
from dpbandit.privacy.spends import ROUNDING

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution as PLD

_RADII, _COSINES, _FINE, _COARSE = 1000, 8000, 4000, 500
"""Cells of the (s, u) grid; grid points of the atoms, and of a curve, from loss 0 to a."""
HOPELESS = 300.0
"""One release with a larger loss is certified as no privacy at all: e^loss overflows."""


class _Releases:
    """What the two spends share: `count` releases of a law in a dimension, each with a loss."""

    count: int

    @property
    def _law(self) -> tuple[int, float]:
        """The dimension, and the largest movement over the scale of the noise."""
        raise NotImplementedError

    @property
    def mu(self) -> float | None:
        """None: not Gaussian."""
        return None

    @property
    def pure(self) -> float:
        """The sum of the pure epsilons."""
        return self.count * self._law[1] if self.count else 0.0

    @property
    def rho(self) -> float:
        """The zCDP parameter that pure DP implies."""
        return self.count * self._law[1] ** 2 / 2 if self.count else 0.0

    @property
    def step(self) -> float:
        """A grid that adds little: a 500th of the standard deviation of one loss."""
        return _step(*self._law)

    def pld(self, step: float) -> "PLD":
        """The privacy loss on a grid of width `step`, rounded up."""
        return _composed(*self._law, self.count, step)

    def delta(self, epsilon: float) -> float:
        """An upper bound of delta; 0 from the pure epsilon on."""
        return _delta(*self._law, self.count, epsilon)


@dataclass(frozen=True)
class LaplaceSpend(_Releases):
    """`count` Laplace releases, each of which one user moves by epsilon x scale in l_1.

    **Guarantee.** Pure DP with count x epsilon, zCDP with count x epsilon^2 / 2 (Bun and Steinke,
    TCC 2016), and the exact curve by dp-accounting, rounded up.

    >>> spend = LaplaceSpend(0.1, count=10)
    >>> spend.pure, round(spend.rho, 6)
    (1.0, 0.05)
    """

    epsilon: float
    count: int = 1
    note: str = "Laplace noise"

    def __post_init__(self) -> None:
        positive_or_none("epsilon", self.epsilon)
        whole("count", self.count, 0)

    @property
    def _law(self) -> tuple[int, float]:
        return 1, self.epsilon


@dataclass(frozen=True)
class KNormSpend(_Releases):
    """`count` K-norm releases in dimension `dim`, each moved by ratio x scale in l_2.

    **Guarantee.** Pure DP with count x ratio, zCDP with count x ratio^2 / 2, and the curve of the
    module. The movement must lie in the subspace of the noise; `dim` is the subspace's.

    >>> spend = KNormSpend(5, 1 / 15, count=15, note="tree of 15 nodes")
    >>> round(spend.pure, 12), bool(spend.delta(0.322) < 1.02e-4)
    (1.0, True)
    """

    dim: int
    ratio: float
    """largest movement / scale of the noise"""
    count: int = 1
    note: str = "K-norm noise"

    def __post_init__(self) -> None:
        whole("dim", self.dim, 1)
        positive_or_none("ratio", self.ratio)
        whole("count", self.count, 0)

    @property
    def _law(self) -> tuple[int, float]:
        return self.dim, self.ratio


def _delta(dim: int, ratio: float, count: int, epsilon: float) -> float:
    if count == 0 or epsilon >= count * ratio:
        return 0.0
    if ratio > HOPELESS:
        return 1.0
    curve = _composed(dim, ratio, count, _step(dim, ratio))
    return min(1.0, float(curve.get_delta_for_epsilon(epsilon)) + ROUNDING)


def _step(dim: int, ratio: float) -> float:
    return ratio / (_COARSE * sqrt(dim)) if 0 < ratio <= HOPELESS else inf


@cache
def _composed(dim: int, ratio: float, count: int, step: float) -> "PLD":
    from dp_accounting.pld import privacy_loss_distribution as pld

    if count == 0 or ratio == 0 or ratio > HOPELESS:
        return constant(ratio if count else 0.0, step)
    if dim == 1:
        one = pld.from_laplace_mechanism(1 / ratio, value_discretization_interval=step)
    else:
        one = _one_release(dim, ratio, step)
    return one.self_compose(count) if count > 1 else one


def _one_release(dim: int, ratio: float, step: float) -> "PLD":
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    losses, masses = _atoms(dim, ratio)  # increasing
    above = np.append(np.cumsum(masses[::-1])[::-1], 0.0)
    weighted = np.append(np.cumsum((masses * np.exp(-losses))[::-1])[::-1], 0.0)
    top = ceil(ratio / step)
    epsilons = step * np.arange(-top, top + 1)
    place = np.searchsorted(losses, epsilons, side="right")
    deltas = np.clip(above[place] - np.exp(epsilons) * weighted[place], 0.0, 1.0)
    dots = pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap
    return pld.PrivacyLossDistribution(dots(step, -top, top, np.minimum.accumulate(deltas)))


@cache
def _atoms(dim: int, ratio: float) -> tuple[Floats, Floats]:
    """Losses and masses that dominate one release, the first loss -ratio, the last ratio."""
    a, half = ratio, (dim - 1) / 2
    least, most = max(gammaincinv(dim, 1e-20), 1e-3 * a), gammainccinv(dim, 1e-20)
    s = np.append(0.0, np.geomspace(least, max(most, 2 * least), _RADII))  # lower corners
    lower, upper = gammainc(dim, s), gammaincc(dim, s)
    of_s = np.where(lower < 0.5, np.diff(lower, append=1.0), -np.diff(upper, append=0.0))
    wide = min(1.0, 12 / sqrt(dim))  # P(u < -wide) < 1e-30 where this is below 1
    u = np.append(-1.0, np.linspace(-wide, wide, _COSINES))
    of_u = np.diff(betainc(half, half, (1 + u) / 2), append=1.0)
    fine = a / ceil(_FINE * sqrt(dim))
    bins = 2 * ceil(_FINE * sqrt(dim))
    masses = np.zeros(bins + 1)
    for radius, mass in zip(s, of_s, strict=True):
        moved = np.sqrt(np.maximum(radius * (radius - 2 * a * u) + a * a, 0.0))
        loss = a * (a - 2 * radius * u) / (moved + radius)  # moved - radius, without cancellation
        index = np.ceil(loss / fine).astype(np.int64) + bins // 2
        masses += mass * np.bincount(np.clip(index, 0, bins), weights=of_u, minlength=bins + 1)
    return fine * np.arange(-(bins // 2), bins // 2 + 1), masses


def constant(loss: float, step: float) -> "PLD":
    """No loss at all, or (for any positive one) an infinite loss."""
    return pessimistic(0, np.array([float(loss == 0)]), float(loss != 0), step)


def pessimistic(first: int, masses: Floats, infinite: float, step: float) -> "PLD":
    """Masses on the grid from `first` x step on, and the mass of an infinite loss."""
    from dp_accounting.pld import pld_pmf
    from dp_accounting.pld import privacy_loss_distribution as pld

    return pld.PrivacyLossDistribution(
        pld_pmf.DensePLDPmf(step, first, masses, float(infinite), True)
    )


def positive_or_none(name: str, value: float) -> None:
    """A loss: a number >= 0, infinite where no noise is added."""
    if value != inf:
        at_least(name, value, 0)
