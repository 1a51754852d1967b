"""Privacy costs of Gaussian releases of random samples of users."""

from dataclasses import dataclass
from functools import cache
from math import exp, expm1, inf, log, log1p, sqrt

import numpy as np

from dpbandit.base import Floats, gaussian_target, inside, whole
from dpbandit.privacy.certificate import SPEND_KINDS
from dpbandit.privacy.curves import MAX_Z, deltas_of, error_of, mu_of
from dpbandit.privacy.ledger import Ledger, most
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss, connected
from dpbandit.privacy.spends import GaussianSpend, check_loss, composed

_TARGET_PRECISION = 0.999
"""Share of the target epsilon at which the search ends, as each try costs a convolution"""
_START_SHARE = 0.85
"""Start of the search for `ratio` as a share of that of the GDP limit; results are 0.83 to 0.9"""
_MIN_RATIO, _MAX_RATIO = 1e-9, 20.0
"""Range of `ratio` (movement / noise) in which the certificate uses the sampling"""
_RATIO_MARGIN = 1 - 1e-12
"""Factor on `ratio` that covers the rounding of noise = movement / ratio and back"""


@dataclass(frozen=True)
class SampledGaussianSpend:
    """Cost of `count` Gaussian releases of b users drawn from n without replacement, rate b / n.

    Given the draw, replacing a drawn user moves a release by at most `ratio` = mu standard
    deviations. Drawing one user in each step, with replacement, is b = 1.

    Guarantee:
        For neighbours that replace a user, with E_a(P|Q) = sup over events S of P(S) - a Q(S)::

            delta(x) of one release <= g E_a'(N(mu, 1) | N(0, 1)),  a' = 1 + (e^x - 1) / g,
            g = `rate`,

        for epsilon = x >= 0. Proof. Let M1, M1' be the laws of the release given that the user was
        drawn and M0 given that she was not: P = (1-g) M0 + g M1 and Q = (1-g) M0 + g M1'. For a = 1
        + g (a' - 1)::

            P - a Q = g [ M1 - a' ((1-c) M0 + c M1') ],   c = a / a',

        so E_a(P|Q) = g E_a'(M1 | (1-c) M0 + c M1') <= g max(E_a'(M1|M0), E_a'(M1|M1')) by convexity
        in Q. M1 and M1' are mixtures over the same draws; if a random one of the b users drawn is
        replaced by her, a draw without her becomes a draw with her, which couples M1 to M0: all
        pairs are Gaussians with means at most mu apart, and E is jointly convex. At x < 0, E_a(P|Q)
        = 1 - a + a E_(1/a)(Q|P), bounded alike. Together it is the curve of (1-g) N(0,1) + g
        N(mu,1) against N(0,1) for x >= 0, and of the exchanged pair for x < 0. It is convex (its
        slope jumps up at 0), so it is the privacy curve of some pair, which dominates one release,
        and products of those dominate all of them, however steps depend on releases (Zhu, Dong and
        Wang, "Optimal accounting of differential privacy via characteristic function", AISTATS
        2022; the bound of one release: Balle, Barthe and Gaboardi, "Privacy amplification by
        subsampling", NeurIPS 2018). An accountant for Poisson sampling with added or removed users
        halves the ratio, and bounds another quantity.

    >>> spend = SampledGaussianSpend(ratio=1.0, rate=0.01, count=1000)
    >>> f"{spend.delta(1.0):.4f}"
    '0.0099'
    """

    ratio: float
    """largest movement of a release by a user, divided by the stddev of its noise"""
    rate: float
    """probability that a user is drawn"""
    count: int
    note: str = "sampled Gaussian releases"

    def __post_init__(self) -> None:
        check_loss("ratio", self.ratio)
        inside("rate", self.rate, 0, 1, ends=True)
        whole("count", self.count, 0)

    @property
    def mu(self) -> float | None:
        # Gaussian only if every user is in every release
        if not (self.ratio and self.rate and self.count):
            return 0.0
        return sqrt(self.count) * self.ratio if self.rate == 1 or self.ratio == inf else None

    @property
    def pure(self) -> float:
        return 0.0 if self.mu == 0 else inf

    @property
    def rho(self) -> float:
        # count mu^2 / 2, as without sampling; mixtures are no further apart than their parts
        return 0.0 if self.mu == 0 else self.count * self.ratio**2 / 2

    @property
    def clt(self) -> float:
        """mu of the GDP limit of all releases, rate * sqrt(count (e^(ratio^2) - 1)), no bound."""
        return self.rate * sqrt(self.count * expm1(min(self.ratio**2, 700.0)))

    def curve(self, epsilon: Floats) -> Floats:
        """Return the bound on delta of one release at each of `epsilon`, of any sign."""
        size, g = np.abs(epsilon), self.rate
        near = np.log1p(np.expm1(np.minimum(size, 30.0)) / g)  # log a', where e^e is no overflow
        inner = np.where(size < 30, near, size + np.log1p((g - 1) * np.exp(-size)) - log(g))
        amplified = g * deltas_of(self.ratio, inner)
        below = -np.expm1(-size) + np.exp(-size) * amplified
        return np.where(epsilon < 0, below, amplified)

    @property
    def step(self) -> float:
        # A grid that adds under 0.5 % to epsilon.
        #
        # Rounding a loss up to a grid of h adds to its variance about h^2, or h times its size
        # where that is smaller than h, and few large losses make up the rest: mu^2 / 2 each
        if self.mu is not None:
            return GaussianSpend(self.mu, self.note).step
        spread = self.clt / sqrt(self.count)
        widest = max(1e-2, 1e-3 * self.ratio**2)  # the curve of large losses bends on their scale
        return min(max(0.15 * spread, 0.05 * spread**2 / self.rate), widest)

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        # `count` losses of one release, from grid points of its curve
        if not self._counted:
            return self._unsampled.losses(step)
        # the largest loss of N(mu, 1) against N(0, 1), then that of its mixture
        unsampled_reach = self.ratio * (self.ratio / 2 + MAX_Z)
        reach = unsampled_reach + log(self.rate + (1 - self.rate) * exp(-unsampled_reach))
        error = 2 * error_of(self.ratio)
        return (connected(self.curve, reach=reach, step=step, count=self.count, rounding=error),)

    @property
    def _unsampled(self) -> GaussianSpend:
        """Cost as if every user were in every release, an upper bound."""
        return GaussianSpend(sqrt(2 * self.rho), self.note)

    def delta(self, epsilon: float) -> float:
        bound, curve = self._unsampled.delta(epsilon), self._composed
        return bound if curve is None else min(bound, curve.delta(epsilon))

    def least_epsilon(self, delta: float) -> float:
        bound, curve = self._unsampled.least_epsilon(delta), self._composed
        return bound if curve is None else min(bound, curve.least_epsilon(delta))

    @property
    def _composed(self) -> Composition | None:
        return composed(self) if self._counted else None

    @property
    def _counted(self) -> bool:
        return self.mu is None and _MIN_RATIO <= self.ratio <= _MAX_RATIO


@cache
def largest_ratio(*, rate: float, count: int, epsilon: float, delta: float) -> float:
    """Return the largest movement / noise that meets the target, to 0.1 % of epsilon; inf at inf.

    It is at least the ratio that meets the target without sampling. The search starts a little
    below the ratio at which `clt` meets the target, and mostly takes three or four certificates.

    >>> round(largest_ratio(rate=1.0, count=4, epsilon=1.0, delta=1e-5), 6)  # 0.268051 / 2
    0.134026
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf or not (rate and count):
        return inf
    mu = mu_of(epsilon, delta)
    unsampled = mu / sqrt(count)
    if rate == 1 or not _MIN_RATIO <= unsampled < _MAX_RATIO:
        return unsampled * _RATIO_MARGIN

    def ledger(ratio: float) -> Ledger:
        return Ledger((SampledGaussianSpend(ratio=ratio, rate=rate, count=count),))

    start = _START_SHARE * sqrt(log1p((mu / rate) ** 2 / count))  # whose clt is mu
    ratio = most(
        ledger,
        epsilon=epsilon,
        delta=delta,
        low=unsampled,
        high=_MAX_RATIO,
        start=start,
        slope=start**2 / -expm1(-(start**2)),
        close=_TARGET_PRECISION,
    )
    return ratio * _RATIO_MARGIN


SPEND_KINDS[SampledGaussianSpend.__name__] = SampledGaussianSpend
