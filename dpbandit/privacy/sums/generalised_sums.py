"""Tree sums with generalised Gaussian noise: certified, and as printed."""

from dataclasses import dataclass
from math import exp, inf, log, prod, sqrt

from dpbandit.base.inputs import InputError, gaussian_target, one_of
from dpbandit.base.random_streams import Streams
from dpbandit.privacy import curves
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.gradients import RecursiveLossGradients
from dpbandit.privacy.noise.generalised_gaussian import (
    GeneralisedGaussian,
    GeneralisedGaussianSpend,
    smoothest,
    smoothness,
)
from dpbandit.privacy.noise.printed_laws import PrintedGaussian, Reading
from dpbandit.privacy.spends import GaussianSpend, Spend
from dpbandit.privacy.sums.prefix_sums import PrefixSum, Tree, leaves

_VALID = 3.0
"""The conversion behind the printed noise of a node reaches its claim up to this epsilon."""
_SAFE = 1 - 1e-9
"""For the rounding of rho(epsilon, delta) and back."""


def certified_tree_sum(
    statistic: RecursiveLossGradients,
    streams: Streams,
    *,
    horizon: int,
    epsilon: float,
    delta: float,
) -> PrefixSum:
    """The least noise whose certificate meets the target, of the best norm l_r, 2 <= r <= q.

    Guarantee:
        (epsilon, delta)-DP of all releases: a user is in m = bit_length(leaves) nodes, which
        compose adaptively to m kappa S^2 / (2 sigma^2) of zCDP; to exact GDP where r = 2.
    """
    gaussian_target(epsilon, delta)
    (d,), q, count = statistic.shape, statistic.order, leaves(horizon, 1).bit_length()
    r = smoothest(dim=d, q=q)
    kappa = smoothness(r, dim=d, q=q)
    squared = (
        mu_of(epsilon, delta) ** 2 if r == 2 else 2 * curves.zcdp_rho_of(epsilon, delta) * _SAFE
    )
    ratio = sqrt(squared / (max(1, count) * kappa))
    spend = GeneralisedGaussianSpend(r, d, ratio, q, count, _note(horizon, r))
    law = GeneralisedGaussian(statistic.sensitivity / ratio, r)
    return _tree_sum(statistic, streams, law, spend, horizon)


@dataclass(frozen=True)
class Printed:
    """Which of the misprints to follow, each on its own."""

    norm_index: Reading = "corrected"
    """r = min(q, max(2, ln d)); if printed, min(q - 1, ln d - 1), and kappa the same with e^2"""
    radius: Reading = "corrected"
    """`|b|_r^2 ~ Gamma(d/2, 2 sigma^2)`; if printed, Gamma(d/2, 2 sigma)"""
    direction: Reading = "corrected"
    """the cone measure; if printed, see `PrintedGaussian`"""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            one_of(name, value, ("corrected", "printed"))

    def norm(self, *, dim: int, q: float) -> tuple[float, float]:
        """r and kappa of gradients in l_q; for q < 2 the noise is Gaussian, and kappa cancels."""
        if q < 2:
            return 2.0, 1.0
        if self.norm_index == "corrected":
            r = min(q, max(2.0, log(dim)))
            return r, smoothness(r, dim=dim, q=q)
        if dim < 4:
            raise InputError(
                f"Expected dim={dim} >= 4 with norm_index='printed': ln d - 1 is small."
            )
        return min(q - 1, log(dim) - 1), min(q - 1, exp(2) * (log(dim) - 1))


def printed_tree_sum(
    statistic: RecursiveLossGradients,
    streams: Streams,
    *,
    q: float,
    horizon: int,
    epsilon: float,
    delta: float,
    printed: Printed,
    beyond_validity: bool = False,
) -> PrefixSum:
    """Noise of the size of equation (3.2) of Han et al. (see `DPTOFW`), with S / 2 = beta D + L::

        sigma_+^2 = 8 m^2 kappa ln(m / delta) (S / 2)^2 / epsilon^2,     m = ceil(log2 n) + 1,

    n = T - 1 the users who can influence an action.

    Guarantee:
        What `spend` certifies, which is less than the claim; with corrected laws more. Where a
        printed law has no proof at all it says infinity: a norm index below 2, or the printed
        direction. The printed radius is a proper law with sqrt(sigma_+) in place of sigma_+.

    q is that of the gradients, whose sensitivity is in l_max(2, q).
    """
    gaussian_target(epsilon, delta)
    (d,), m = statistic.shape, max(0, leaves(horizon, 1) - 1).bit_length() + 1
    if epsilon / m > _VALID and not beyond_validity:
        raise InputError(
            f"Expected epsilon={epsilon!r} <= {_VALID * m:g}, {_VALID:g} for each of {m} levels, "
            "with calibration='paper': its proof ends there. Set beyond_validity to run it and see "
            "the certificate."
        )
    r, kappa = printed.norm(dim=d, q=q)
    sigma = m * sqrt(8 * kappa * log(m / delta)) * statistic.sensitivity / 2 / epsilon
    if printed.radius == "printed":
        sigma = sqrt(sigma)
    count = leaves(horizon, 1).bit_length()
    if r < 2 or printed.direction == "printed":
        wrong: Spend = GaussianSpend(inf, f"{_note(horizon, r)}, printed: nothing is proved")
        law = PrintedGaussian(sigma, r, printed.direction)
        return _tree_sum(statistic, streams, law, wrong, horizon)
    ratio = statistic.sensitivity / sigma
    spend = GeneralisedGaussianSpend(r, d, ratio, statistic.order, count, _note(horizon, r))
    return _tree_sum(statistic, streams, GeneralisedGaussian(sigma, r), spend, horizon)


def _note(horizon: int, r: float) -> str:
    return f"tree sum, {leaves(horizon, 1)} releases, l_{r:.4g} generalised Gaussian"


def _tree_sum(
    statistic: RecursiveLossGradients,
    streams: Streams,
    law: GeneralisedGaussian | PrintedGaussian,
    spend: Spend,
    horizon: int,
) -> PrefixSum:
    node = law.sampler(streams, "tree noise", statistic.shape)
    noise = Tree().of(node, stddev=sqrt(law.variance(prod(statistic.shape))))
    return PrefixSum(statistic, noise, spend, horizon=horizon, order=statistic.order)
