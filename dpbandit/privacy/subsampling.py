"""Many Gaussian releases, each of a random few of the users: how sampling hides a user."""

from dataclasses import dataclass
from functools import cache
from math import ceil, exp, expm1, inf, log, log1p, sqrt
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import log_ndtr, ndtri

from dpbandit.arrays import Floats
from dpbandit.inputs import BadInput, gaussian_target, inside, whole
from dpbandit.privacy import gdp
from dpbandit.privacy.k_norm import HOPELESS, constant, positive_or_none
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.spends import ROUNDING, GaussianSpend

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution as PLD

_TAIL = 1e-17
"""Of one release's loss, divided by their number: counted as infinite."""
_CLOSE = 0.999
_ROUNDING = 2e-16
"""Of the convolution, for each release: some 4e-17 were measured, of either sign."""
"""A certificate of that much of the target is close enough: another one costs up to a second."""
_LARGEST = 20.0
"""A release with a larger ratio is certified as no privacy at all."""


@dataclass(frozen=True)
class SampledGaussianSpend:
    """`count` Gaussian releases, each of b users drawn from n without replacement, `rate` = b / n.

    Given who was drawn, replacing one of them by anybody moves a release by at most `ratio` = mu
    standard deviations. One user drawn with replacement in every step is b = 1.

    **Guarantee.** For neighbours that replace a user, with E_a(P|Q) = sup P(S) - a Q(S),

        delta(e) of one release <= g E_a'(N(mu, 1) | N(0, 1)),  a' = 1 + (e^e - 1) / g,  g = `rate`,

    for e >= 0. Proof. Let M1, M1' be the laws of the release given that the user was drawn and M0
    given that she was not: P = (1-g) M0 + g M1 and Q = (1-g) M0 + g M1'. For a = 1 + g (a' - 1),

        P - a Q = g [ M1 - a' ((1-c) M0 + c M1') ],   c = a / a',

    so E_a(P|Q) = g E_a'(M1 | (1-c) M0 + c M1') <= g max(E_a'(M1|M0), E_a'(M1|M1')) by convexity in
    Q. M1 and M1' are mixtures over the same draws; a draw without the user with a random one of
    its b put in her place is a draw with her, which couples M1 to M0: all pairs are Gaussians at
    most mu apart, E is jointly convex. At e < 0, E_a(P|Q) = 1 - a + a E_(1/a)(Q|P), bounded alike.
    Together it is the curve of (1-g) N(0,1) + g N(mu,1) against N(0,1) from e = 0 on and of
    the pair exchanged below. It is convex (its slope jumps up at e = 0), so it is a curve of some
    pair, which dominates one release, and products of those dominate all of them, however steps
    depend on releases (Zhu, Dong and Wang, "Optimal accounting of differential privacy via
    characteristic function", AISTATS 2022; the bound of one release: Balle, Barthe and Gaboardi,
    "Privacy amplification by subsampling", NeurIPS 2018). An accountant for Poisson sampling that
    adds or removes a user is told half the ratio and answers another question.

    >>> spend = SampledGaussianSpend(ratio=1.0, rate=0.01, count=1000)
    >>> f"{spend.delta(1.0):.4f}"
    '0.0099'
    """

    ratio: float
    rate: float
    count: int
    note: str = "sampled Gaussian releases"

    def __post_init__(self) -> None:
        positive_or_none("ratio", self.ratio)
        inside("rate", self.rate, 0, 1, ends=True)
        whole("count", self.count, 0)

    @property
    def mu(self) -> float | None:
        """Where everybody is in every release, sqrt(count) mu; else None: not Gaussian."""
        if not (self.ratio and self.rate and self.count):
            return 0.0
        return sqrt(self.count) * self.ratio if self.rate == 1 or self.ratio == inf else None

    @property
    def pure(self) -> float:
        """Infinity, unless nothing is released."""
        return 0.0 if self.mu == 0 else inf

    @property
    def rho(self) -> float:
        """count mu^2 / 2, as without sampling: mixtures are no further apart than their parts."""
        return 0.0 if self.mu == 0 else self.count * self.ratio**2 / 2

    @property
    def clt(self) -> float:
        """What mu-GDP all releases come close to: g sqrt(count (e^(mu^2) - 1)). No bound."""
        return self.rate * sqrt(self.count * expm1(min(self.ratio**2, 700.0)))

    def curve(self, epsilon: Floats) -> Floats:
        """The bound of one release at each of `epsilon`, of any sign."""
        size = np.abs(epsilon)
        inner = np.log1p(np.expm1(size) / self.rate)  # log a'
        high = log_ndtr(self.ratio / 2 - inner / self.ratio)
        low = log_ndtr(-self.ratio / 2 - inner / self.ratio) + inner
        amplified = self.rate * np.exp(high) * -np.expm1(np.minimum(low - high, 0.0))
        below = -np.expm1(-size) + np.exp(-size) * amplified
        return np.where(epsilon < 0, below, amplified)

    @property
    def step(self) -> float:
        """A grid that adds under 0.5 % to epsilon.

        Rounding a loss up to a grid of h adds to its variance about h^2, or h times its size
        where that is smaller than h, and few large losses make up the rest.
        """
        if self.mu is not None:
            return GaussianSpend(self.mu, self.note).step
        spread = self.clt / sqrt(self.count)
        return min(max(0.15 * spread, 0.05 * spread**2 / self.rate), 1e-2)

    def pld(self, step: float) -> "PLD | None":
        """The composed loss on a grid of `step`, rounded up by connecting the dots of the curve."""
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld import privacy_loss_distribution as pld

        if self.mu is not None:
            return GaussianSpend(self.mu, self.note).pld(step)
        if self.ratio > _LARGEST:
            return constant(inf, step)
        reach = self.ratio * (self.ratio / 2 - ndtri(_TAIL / self.count))  # the loss of N(mu, 1)
        top = ceil(log1p(self.rate * expm1(min(reach, HOPELESS))) / step) + 1
        grid = np.arange(-top, top + 1)
        deltas = np.clip(self.curve(grid * step), 0.0, 1.0)
        one = pld_pmf.create_pmf_pessimistic_connect_dots(step, grid, deltas)
        return pld.PrivacyLossDistribution(one.to_dense_pmf().self_compose(self.count))

    def delta(self, epsilon: float) -> float:
        """An upper bound of delta at `epsilon`."""
        if self.mu is not None:
            return gdp.delta_of(self.mu, epsilon)
        curve = _composed(self) if epsilon < inf else None
        if curve is None:
            return 0.0
        slack = max(ROUNDING, _ROUNDING * self.count)
        return min(1.0, max(0.0, float(curve.get_delta_for_epsilon(epsilon))) + slack)


@cache
def _composed(spend: SampledGaussianSpend) -> "PLD | None":
    return spend.pld(spend.step)


@cache
def largest_ratio(*, rate: float, count: int, epsilon: float, delta: float) -> float:
    """The largest `ratio` whose certificate meets the target, to 0.1 % of epsilon; inf for inf.

    From where the central limit theorem puts it, by secants in log ratio and log epsilon; a try
    that leaves the bracket of the ones before is replaced by its middle.

    >>> round(largest_ratio(rate=1.0, count=4, epsilon=1.0, delta=1e-5), 6)  # 0.268051 / 2
    0.134026
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf or not (rate and count):
        return inf
    mu = gdp.mu_of(epsilon, delta)
    if rate == 1:
        return mu / sqrt(count)
    low, high, slope, goal = 0.0, _LARGEST, 1.0, log((1 + _CLOSE) / 2 * epsilon)
    x = min(sqrt(log1p((mu / rate) ** 2 / count)), _LARGEST / 2)  # whose clt is mu
    before: tuple[float, float] | None = None
    best = 0.0
    for _ in range(30):
        found = Ledger((SampledGaussianSpend(ratio=x, rate=rate, count=count),)).epsilon(delta)
        if _CLOSE * epsilon <= found <= epsilon:
            return x
        low, high = (x, high) if found < epsilon else (low, x)
        best = max(best, low)
        if found == 0 and x > _LARGEST / 4:  # delta alone is enough
            break
        at = log(x), log(min(max(found, 1e-9), 1e9))
        if before is not None and at[1] != before[1]:
            slope = max((at[1] - before[1]) / (at[0] - before[0]), 0.1)
        before, x = at, exp(at[0] + (goal - at[1]) / slope)
        if not low < x < high:
            x = (low + high) / 2
    if best:
        return best
    raise BadInput(f"Expected epsilon={epsilon!r} at delta={delta!r} to be within reach.")
