"""Generalised Gaussian noise, shaped by an l_r norm, and what it costs: zCDP by smoothness."""

from dataclasses import dataclass
from math import ceil, exp, inf, lgamma, log, prod, sqrt

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, at_least, whole
from dpbandit.base.random_streams import Streams
from dpbandit.privacy import curves
from dpbandit.privacy.loss_distributions import PrivacyLoss, affordable, constant
from dpbandit.privacy.noise.laws import Shape, rescaled
from dpbandit.privacy.noise.samplers import Shaped
from dpbandit.privacy.pure import positive_or_none
from dpbandit.privacy.spends import GaussianSpend

_DEEPEST = 740.0
"""-log of the mass of an infinite loss, about the smallest double."""


@dataclass(frozen=True)
class GeneralisedGaussian:
    """Noise with density proportional to `exp(-|b|_r^2 / (2 s^2))`, for the norm l_r.

    `|b|_r^2 ~ Gamma(k/2, scale 2 s^2)`; the direction has the cone measure of the l_r ball,
    `x / |x|_r` with independent coordinates of density `e^(-|x|^r)`, drawn as G^(1/r) times a
    uniform on [-1, 1) with G ~ Gamma(1 + 1/r) (Calafiore, Dabbene and Tempo, "Uniform sample
    generation in l_p balls", CDC 1998).

    Bassily, Guzman and Nandi, "Non-Euclidean differentially private stochastic convex
    optimization", COLT 2021. Differs from printed versions: the radius has scale 2 s^2, not 2 s,
    and the direction is not a shifted generalised normal.

    Guarantee:
        `GeneralisedGaussianSpend`, for r >= 2. r = 2 is Gaussian(s).
    """

    sigma: float
    r: float

    def __post_init__(self) -> None:
        at_least("sigma", self.sigma, 0)
        at_least("r", self.r, 1)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        """A source of `(R, *shape)` noise, one vector of k = prod(shape) coordinates."""
        sources = (
            streams.gammas(f"{name} size", 1 + 1 / self.r, *shape),
            streams.uniforms(f"{name} side", *shape),
            streams.gammas(f"{name} radius", prod(shape) / 2),
        )
        return Shaped(self._scaled, sources)

    def _scaled(self, size: Floats, side: Floats, radius: Floats) -> Floats:
        x = size ** (1 / self.r) * (2 * side - 1)
        return rescaled(x, self.sigma * np.sqrt(2 * radius), order=self.r)

    def variance(self, dim: int) -> float:
        """k s^2 E B^(2/r), as `|b_i / |b|_r|^r` is B ~ Beta(1/r, (k-1)/r) whatever `|b|_r` is."""
        r = self.r
        moment = exp(lgamma(3 / r) - lgamma(1 / r) + lgamma(dim / r) - lgamma((dim + 2) / r))
        return dim * self.sigma**2 * moment


@dataclass(frozen=True)
class GeneralisedGaussianSpend:
    """`count` releases with `GeneralisedGaussian(sigma, r)` noise in dimension `dim`.

    One user moves each of them by at most S = ratio x sigma in l_q, r <= q <= infinity.

    Guarantee:
        rho-zCDP with rho = count kappa ratio^2 / 2 and kappa = (r - 1) d^(2/r - 2/q), r >= 2. Lemma
        1: `|.|_r^2` is (r-1)-smooth, so with w = z - v the inequalities at w - (a-1) v and w + v
        (times a - 1) add up to::

            |z - a v|^2 + (a - 1) |z|^2 <= a |z - v|^2 + (r - 1) a (a - 1) |v|^2,

        which bounds the Renyi divergence of order a by `a (r - 1) |v|_r^2 / (2 sigma^2)`; and
        `|v|_r <= d^(1/r - 1/q) |v|_q`. At r = 2 the noise is Gaussian and mu is exact.

    Bassily, Guzman and Nandi, COLT 2021. Differs from the paper: kappa is that of the norm used.
    """

    r: float
    dim: int
    ratio: float
    """S / sigma"""
    q: float = inf
    count: int = 1
    note: str = "generalised Gaussian noise"

    def __post_init__(self) -> None:
        positive_or_none("ratio", self.ratio)
        whole("count", self.count, 0)
        smoothness(self.r, dim=self.dim, q=self.q)

    @property
    def mu(self) -> float | None:
        """sqrt(2 rho) at r = 2, where the noise is Gaussian; None otherwise."""
        return sqrt(2 * self.rho) if self.r == 2 else None

    @property
    def pure(self) -> float:
        """None to be had, infinity, unless nothing is released."""
        return inf if self.rho else 0.0

    @property
    def rho(self) -> float:
        """The zCDP parameter."""
        kappa = smoothness(self.r, dim=self.dim, q=self.q)
        return self.count * kappa * self.ratio**2 / 2 if self.count else 0.0

    @property
    def step(self) -> float:
        """A grid that adds little, a 2000th of the standard deviation of the loss."""
        return sqrt(2 * self.rho) / 2000 if 0 < self.rho < inf else inf

    def losses(self, step: float) -> tuple[PrivacyLoss, ...]:
        """Rounded up.

        At r > 2 the law with P(loss > l) = exp(-(l - rho)^2 / 4 rho) for l > rho, which rho-zCDP
        bounds by Chernoff, at every round and whatever was released before.
        """
        rho = self.rho
        if self.mu is not None:
            return GaussianSpend(self.mu, self.note).losses(step)
        if rho in (0, inf):
            return (constant(rho, step=step),)
        reach = 2 * sqrt(rho * _DEEPEST)
        step = affordable(step, rho + reach)
        first = ceil(rho / step)
        edges = np.arange(first, ceil((rho + reach) / step) + 1)
        survival = np.exp(-np.square(np.maximum(edges * step - rho, 0)) / (4 * rho))
        masses = -np.diff(survival, prepend=1.0)
        return (PrivacyLoss(step, first, masses, float(survival[-1])),)

    def delta(self, epsilon: float) -> float:
        """From zCDP by Canonne, Kamath and Steinke (NeurIPS 2020), exact for a Gaussian."""
        if self.mu is not None:
            return curves.delta_of(self.mu, epsilon)
        return curves.zcdp_delta_of(self.rho, epsilon)

    def least_epsilon(self, delta: float) -> float:
        """The least epsilon at `delta`, from zCDP likewise."""
        if self.mu is not None:
            return curves.epsilon_of(self.mu, delta)
        return curves.zcdp_epsilon_of(self.rho, delta)


def smoothness(r: float, *, dim: int, q: float) -> float:
    """kappa = (r - 1) dim^(2/r - 2/q) of an l_q movement under l_r noise, 2 <= r <= q."""
    whole("dim", dim, 1)
    at_least("r", r, 2)
    if not r <= q:
        raise InputError(f"Expected r={r} <= q={q}: the noise norm is at most the data's.")
    return (r - 1) * dim ** (2 / r - 2 / q)


def smoothest(*, dim: int, q: float) -> float:
    """The r in [2, min(q, 50)] of least kappa, for sampler and certificate alike.

    d log kappa / dr = 1 / (r - 1) - 2 log d / r^2 = 0 at r = L + sqrt(L^2 - 2 L), L = log d.
    """
    L, top = log(dim), min(q, 50.0)
    stationary = min(top, L + sqrt(max(0.0, L * L - 2 * L)))
    return min((2.0, max(2.0, stationary), top), key=lambda r: smoothness(r, dim=dim, q=q))
