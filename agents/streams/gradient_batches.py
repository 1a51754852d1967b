"""Batches of gradients, one large and many small: their bounds, their noise, what they cost.

The first batch sums gradients at one point, every other one differences of gradients at two points
that are a step of Frank-Wolfe, eta times the diameter at most, apart.
"""

from math import inf, isqrt, log, sqrt
from typing import NamedTuple

from dpbandit.agents.streams.frank_wolfe import Bounds, bounds_of
from dpbandit.base.streams import Streams
from dpbandit.losses.loss import Loss
from dpbandit.losses.regressions import Regression
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.spends import GaussianSpend, Spend
from dpbandit.privacy.noise.generalised_gaussian import (
    GeneralisedGaussian,
    GeneralisedGaussianSpend,
)
from dpbandit.privacy.noise.laws import Gaussian
from dpbandit.privacy.noise.printed_laws import PrintedGaussian
from dpbandit.privacy.sums.batch_sums import BatchSum
from dpbandit.privacy.sums.generalised_sums import Printed

_NOTHING = 1e-12
"""Gradients of linear losses do not change: what differences are clipped to, over L."""


class Batch(NamedTuple):
    """The public numbers of one batch; the noise is that of the sum."""

    users: int
    bound: float
    order: float
    law: Gaussian | GeneralisedGaussian | PrintedGaussian
    spend: Spend

    def door(self, dim: int, streams: Streams) -> BatchSum:
        """Its mechanism."""
        return BatchSum(
            dim,
            self.bound,
            order=self.order,
            users=self.users,
            noise=self.law.sampler(streams, "noise", (dim,)),
            spend=self.spend,
        )


def sizes(horizon: int) -> tuple[int, int, int]:
    """Users of the first batch, T/2, of the others, sqrt(T)/2, and how many others there are.

    >>> sizes(10_000), sizes(24), sizes(1)
    ((5000, 50, 99), (12, 2, 3), (1, 1, 0))
    """
    first, other = max(1, horizon // 2), max(1, isqrt(horizon) // 2)
    return first, other, min(isqrt(horizon) - 1, (horizon - first) // other)


def bounds(loss: Loss, *, order: float, eta: float, clip: float) -> tuple[float, float]:
    """The largest l_order norms of a gradient, L, and of a difference, beta eta D, times `clip`."""
    own = bounds_of(loss)
    long, change = own.lipschitz, own.smoothness * own.diameter
    if order == 2:
        longest = loss.longest if isinstance(loss, Regression) else 1.0
        long, change = loss.lipschitz, min(change * longest, loss.smoothness * loss.domain.diameter)
    return clip * long, clip * min(2 * long, max(change * eta, _NOTHING * long))


def certified_batches(
    loss: Loss, horizon: int, *, eta: float, clip: float, epsilon: float, delta: float
) -> tuple[Batch, Batch]:
    """Gaussian noise of stddev S / mu: exact GDP, each batch at the target."""
    mu = mu_of(epsilon, delta)
    first, other, _ = sizes(horizon)
    pairs = zip((first, other), bounds(loss, order=2.0, eta=eta, clip=clip), strict=True)
    return tuple(  # type: ignore[return-value]
        Batch(n, bound, 2.0, Gaussian(2 * bound / mu), GaussianSpend(mu, _note(n)))
        for n, bound in pairs
    )


def printed_batches(
    loss: Loss,
    horizon: int,
    *,
    eta: float,
    clip: float,
    epsilon: float,
    delta: float,
    printed: Printed,
    assumed: Bounds,
) -> tuple[Batch, Batch]:
    """The printed noise with the constants `assumed`, certified with the loss's own.

    mean of    first                                            others
    size       4 sqrt(2 kappa ln(1/delta)) L / (T epsilon)      .. beta D eta / (sqrt(T) epsilon)
    """
    q = loss.order if isinstance(loss, Regression) else 2.0
    order, dim = max(2.0, q), loss.domain.affine_dim
    r, kappa = printed.norm(dim=dim, q=q)
    common = 4 * sqrt(2 * kappa * log(1 / delta)) / epsilon
    means = (
        common * assumed.lipschitz / horizon,
        common * assumed.smoothness * assumed.diameter * eta / sqrt(horizon),
    )
    made = []
    limits = bounds(loss, order=order, eta=eta, clip=clip)
    for n, bound, mean in zip(sizes(horizon), limits, means, strict=False):
        sigma = n * (sqrt(mean) if printed.radius == "printed" else mean)
        law: GeneralisedGaussian | PrintedGaussian = PrintedGaussian(sigma, r, printed.direction)
        spend: Spend = GaussianSpend(inf, f"{_note(n)}, printed: nothing is proved")
        if r >= 2 and printed.direction == "corrected":
            law = GeneralisedGaussian(sigma, r)
            ratio = 2 * bound / sigma if sigma else inf
            spend = GeneralisedGaussianSpend(r, dim, ratio, order, 1, _note(n))
        made.append(Batch(n, bound, order, law, spend))
    return made[0], made[1]


def _note(users: int) -> str:
    return f"sum over a batch of {users} gradients"
