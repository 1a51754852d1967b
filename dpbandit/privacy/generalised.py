"""Generalised Gaussian noise, shaped by an l_r norm, and the sums of gradients that it protects.

`GeneralisedGaussianSpend` is a zCDP cost, proved by the norm's smoothness. `PrintedGaussian` and
`printed_tree_sum` are the noise of Han et al. (`DPTOFW`) as published, with its errors.
"""

from dataclasses import dataclass
from functools import cached_property
from math import ceil, exp, inf, lgamma, log, nan, prod, sqrt
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Streams,
    at_least,
    clip_norm,
    clip_range,
    gaussian_target,
    one_of,
    positive,
    whole,
)
from dpbandit.losses.loss import Loss
from dpbandit.losses.regressions import Regression
from dpbandit.privacy.certificate import SPEND_KINDS
from dpbandit.privacy.curves import (
    delta_of,
    epsilon_of,
    mu_of,
    zcdp_delta_of,
    zcdp_epsilon_of,
    zcdp_rho_of,
)
from dpbandit.privacy.loss_distributions import PrivacyLoss, affordable, constant
from dpbandit.privacy.noise import Shape, Shaped, rescaled
from dpbandit.privacy.prefix_sums import PrefixSum, Tree, leaves
from dpbandit.privacy.premises import Fact
from dpbandit.privacy.spends import GaussianSpend, Spend, check_loss

_MAX_LOG_TAIL = 740.0
"""Minus log of the probability of the loss's tail, which counts as an infinite loss"""


@dataclass(frozen=True)
class GeneralisedGaussian:
    """Law of noise b with density proportional to `exp(-|b|_r^2 / (2 s^2))`, for the norm l_r.

    In k dimensions `|b|_r^2 ~ Gamma(k/2, scale 2 s^2)`; the direction has the cone measure of the
    l_r ball, `x / |x|_r` with independent coordinates of density `e^(-|x|^r)`, drawn as G^(1/r)
    times uniform on [-1, 1), G ~ Gamma(1 + 1/r) (Calafiore, Dabbene and Tempo, "Uniform sample
    generation in l_p balls", CDC 1998).

    Bassily, Guzman and Nandi, "Non-Euclidean differentially private stochastic convex
    optimization", COLT 2021. Differs from printed versions: the radius has scale 2 s^2, not 2 s,
    and the direction is not a shifted generalised normal.

    Guarantee:
        See `GeneralisedGaussianSpend`, for r >= 2. With r = 2 the law is Gaussian(s).
    """

    sigma: float
    r: float

    def __post_init__(self) -> None:
        at_least("sigma", self.sigma, 0)
        at_least("r", self.r, 1)

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        # A source of `(R, *shape)` noise, one vector of k = prod(shape) coordinates
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
        # k s^2 E B^(2/r), as `|b_i / |b|_r|^r` is B ~ Beta(1/r, (k-1)/r) whatever `|b|_r` is
        r = self.r
        moment = exp(lgamma(3 / r) - lgamma(1 / r) + lgamma(dim / r) - lgamma((dim + 2) / r))
        return dim * self.sigma**2 * moment


@dataclass(frozen=True)
class GeneralisedGaussianSpend:
    """Cost of `count` releases with `GeneralisedGaussian(sigma, r)` noise in dimension `dim`.

    One user moves each release by at most S = ratio x sigma in l_q, r <= q <= infinity.

    Guarantee:
        rho-zCDP with rho = count kappa ratio^2 / 2 and kappa = (r - 1) d^(2/r - 2/q), r >= 2. Lemma
        1: `|.|_r^2` is (r-1)-smooth, so for noise z, movement v and w = z - v the inequalities at
        w - (a-1) v and w + v (times a - 1) add up to::

            |z - a v|^2 + (a - 1) |z|^2 <= a |z - v|^2 + (r - 1) a (a - 1) |v|^2,

        which bounds the Renyi divergence of order a by `a (r - 1) |v|_r^2 / (2 sigma^2)`; and
        `|v|_r <= d^(1/r - 1/q) |v|_q`. At r = 2 the noise is Gaussian and mu is exact.

    Bassily, Guzman and Nandi, COLT 2021. Differs from the paper: kappa is of the norm in use.
    """

    r: float
    dim: int
    ratio: float
    """largest change of a release by one user, divided by the scale of the noise"""
    q: float = inf
    count: int = 1
    note: str = "generalised Gaussian noise"

    def __post_init__(self) -> None:
        check_loss("ratio", self.ratio)
        whole("count", self.count, 0)
        smoothness(self.r, dim=self.dim, q=self.q)

    @property
    def mu(self) -> float | None:
        # sqrt(2 rho) at r = 2, where the noise is Gaussian; None otherwise
        return sqrt(2 * self.rho) if self.r == 2 else None

    @property
    def pure(self) -> float:
        return inf if self.rho else 0.0

    @property
    def rho(self) -> float:
        kappa = smoothness(self.r, dim=self.dim, q=self.q)
        return self.count * kappa * self.ratio**2 / 2 if self.count else 0.0

    @property
    def step(self) -> float:
        return sqrt(2 * self.rho) / 2000 if 0 < self.rho < inf else inf

    def losses(self, step: float) -> tuple[PrivacyLoss, ...]:
        # Rounded up.
        #
        # At r > 2 the law with P(loss > l) = exp(-(l - rho)^2 / 4 rho) for l > rho, which rho-zCDP
        # bounds by Chernoff, at every round and whatever was released before
        rho = self.rho
        if self.mu is not None:
            return GaussianSpend(self.mu, self.note).losses(step)
        if rho in (0, inf):
            return (constant(rho, step=step),)
        reach = 2 * sqrt(rho * _MAX_LOG_TAIL)
        step = affordable(step, rho + reach)
        first = ceil(rho / step)
        edges = np.arange(first, ceil((rho + reach) / step) + 1)
        survival = np.exp(-np.square(np.maximum(edges * step - rho, 0)) / (4 * rho))
        masses = -np.diff(survival, prepend=1.0)
        return (PrivacyLoss(step, first, masses, float(survival[-1])),)

    def law(self, sensitivity: float) -> GeneralisedGaussian:
        """Return the noise of a release that one user moves by `sensitivity`."""
        return GeneralisedGaussian(sensitivity / self.ratio, self.r)

    def delta(self, epsilon: float) -> float:
        # From zCDP by Canonne, Kamath and Steinke (NeurIPS 2020), exact for a Gaussian
        if self.mu is not None:
            return delta_of(self.mu, epsilon)
        return zcdp_delta_of(self.rho, epsilon)

    def least_epsilon(self, delta: float) -> float:
        # The least epsilon at `delta`, from zCDP likewise
        if self.mu is not None:
            return epsilon_of(self.mu, delta)
        return zcdp_epsilon_of(self.rho, delta)


def smoothness(r: float, *, dim: int, q: float) -> float:
    """Return kappa = (r - 1) dim^(2/r - 2/q) of an l_q change under l_r noise, 2 <= r <= q."""
    whole("dim", dim, 1)
    at_least("r", r, 2)
    if not r <= q:
        raise InputError(f"Expected r={r} <= q={q}: the noise norm is at most the data's.")
    return (r - 1) * dim ** (2 / r - 2 / q)


def smoothest(*, dim: int, q: float) -> float:
    """Return the norm index r in [2, min(q, 50)] of the noise with the least `smoothness`.

    d log kappa / dr = 1 / (r - 1) - 2 L / r^2 = 0 at r = L + sqrt(L^2 - 2 L), L = log(dim).
    """
    L, top = log(dim), min(q, 50.0)
    stationary = min(top, L + sqrt(max(0.0, L * L - 2 * L)))
    return min((2.0, max(2.0, stationary), top), key=lambda r: smoothness(r, dim=dim, q=q))


Reading: TypeAlias = Literal["corrected", "printed"]


@dataclass(frozen=True)
class PrintedGaussian:
    """Law of noise printed in a paper, b = rho `x / |x|_r`, rho^2 ~ Gamma(k/2, scale 2 s^2), r > 0.

    Han et al. (see `DPTOFW`); k is the dimension, s the scale. Unlike `GeneralisedGaussian`::

        r < 1       "l_r" is no norm; below 2 its square is not smooth. The printed index
                    min(q - 1, ln d - 1) is the smoothness constant of the norm, not its index
        direction   "printed": x_j = +-(h + 1/r), h a generalised normal of density ~ e^(-|h|^r), a
                    misreading of Calafiore's generalised GAMMA law G(1/r, r), whose x_j are
                    Gamma(1/r)^(1/r) with a random sign, as drawn where direction is "corrected"

    The printed radius, Gamma(k/2, 2 s), is the radius for s' = sqrt(s), and needs no separate law.

    Guarantee:
        None: no proof is known.
    """

    sigma: float
    r: float
    direction: Reading = "printed"

    def __post_init__(self) -> None:
        at_least("sigma", self.sigma, 0)
        positive("r", self.r)
        one_of("direction", self.direction, ("corrected", "printed"))

    def sampler(self, streams: Streams, name: str, shape: Shape) -> Shaped:
        # A source of `(R, *shape)` noise, one vector of k = prod(shape) coordinates
        sources = (
            streams.gammas(f"{name} size", 1 / self.r, *shape),
            streams.uniforms(f"{name} side", *shape),
            streams.uniforms(f"{name} sign", *shape),
            streams.gammas(f"{name} radius", prod(shape) / 2),
        )
        return Shaped(self._scaled, sources)

    def _scaled(self, size: Floats, side: Floats, sign: Floats, radius: Floats) -> Floats:
        r = self.r
        x = np.copysign(size ** (1 / r), side - 0.5)
        if self.direction == "printed":
            x = np.where(sign < 0.5, -1.0, 1.0) * (x + 1 / r)
        x = x.reshape(*radius.shape, -1)
        length = (np.abs(x) ** r).sum(axis=-1, keepdims=True) ** (1 / r)
        drawn: Floats = x * (self.sigma * np.sqrt(2 * radius)[..., None] / length)
        return drawn.reshape(size.shape)

    def variance(self, dim: int) -> float:
        # unknown with the printed direction
        if self.direction == "printed":
            return nan
        r = self.r
        moment = exp(lgamma(3 / r) - lgamma(1 / r) + lgamma(dim / r) - lgamma((dim + 2) / r))
        return dim * self.sigma**2 * moment


@dataclass(frozen=True, kw_only=True)
class RecursiveLossGradients:
    """Sum of recursive gradients of a loss, in coordinates of the domain's affine hull.

    Xie, Shen, Zhang, Wang and Qian, "Efficient projection-free online methods with stochastic
    recursive gradient", AAAI 2020. The user of step i adds::

        g_i = (i+1) grad f(theta_i; z_i) - i grad f(theta_{i-1}; z_i),

    which for a quadratic loss is the gradient at u_i = (i+1) theta_i - i theta_{i-1}; for a
    `Regression` it is one number, the residual, times the features. (g_1 + .. + g_t) / (t+1) is
    the paper's estimate of the gradient of the mean loss at theta_t, started with d_0 = 0.

    A round is (theta, previous, steps, datum): theta_i and theta_{i-1}, (R, N), released or public;
    i, a number, 0 for a round that adds nothing; z_i, `(R, *datum_shape)`.

    Guarantee:
        The datum is moved into the public set of the loss, the residual clipped to
        +-`residual_clip` = k, and g_i scaled down to l_order norm `gradient_clip` = c, whatever is
        fed. So replacing a user moves the sum by at most `sensitivity` in l_order (l_q is the
        loss's norm)::

            2 min(c, k A),  A = N^max(0, 1/order - 1/q), the largest |a|_order where |a|_q <= 1.
    """

    # "The datum is moved into the public set of the loss"
    needs = frozenset({Fact.LOSS})
    controls = (0, 1, 2)

    loss: Loss
    order: float = 2
    """order of the norm of `sensitivity`"""
    gradient_clip: float = inf
    residual_clip: float = inf
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        for name in ("order", "gradient_clip", "residual_clip"):
            if not getattr(self, name) > 0:
                raise InputError(f"Expected {name}={getattr(self, name)!r} to be a number > 0.")
        if self.residual_clip < inf and not isinstance(self.loss, Regression):
            raise InputError(f"Expected residual_clip only with a regression, got {self.loss}.")

    @property
    def shape(self) -> tuple[int]:
        return (self.loss.domain.affine_dim,)

    @cached_property
    def sensitivity(self) -> float:
        # 2 min(c, k A), A the largest norm of features
        bound = self.gradient_clip
        if isinstance(self.loss, Regression):
            bound = min(bound, self.residual_clip * longest(self.loss, self.order))
        return 2 * bound

    def total(self, *batch: AnyArray) -> Floats:
        # Arrays (n, ...) of n rounds -> the sum of their gradients, (R, k)
        parts = [self.gradient(*datum) for datum in zip(*batch, strict=True)]
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        return *datum[:3], self.loss.admissible(datum[3])

    def gradient(self, *datum: AnyArray) -> Floats:
        theta, previous, steps, z = datum
        loss, i = self.loss, float(steps)
        if i == 0:
            return np.zeros((len(theta), *self.shape))
        z = loss.admitted(z, len(theta))
        if isinstance(loss, Regression):
            a, y = z[:, :-1], z[:, -1]
            now = loss.slope(np.vecdot(a, theta), y)
            residual: Floats = now + i * (now - loss.slope(np.vecdot(a, previous), y))
            if self.residual_clip < inf:
                residual = clip_range(residual, -self.residual_clip, self.residual_clip)
            g: Floats = residual[:, None] * a
        else:
            with np.errstate(over="ignore", invalid="ignore"):
                now = loss.gradient(theta, z)
                g = loss.domain.coordinates(now + i * (now - loss.gradient(previous, z)))
        return g if self.gradient_clip == inf else clip_norm(g, self.gradient_clip, self.order)


def longest(loss: Regression, order: float) -> float:
    """Return the largest l_order norm of features in the unit ball of the loss's norm."""
    return float(loss.domain.dim ** max(0.0, 1 / order - 1 / loss.order))


_MAX_NODE_EPSILON = 3.0
"""Largest epsilon of a tree node for which the paper's noise formula is proved"""
_MARGIN = 1 - 1e-9
"""Factor on rho that covers rounding errors of its conversion from (epsilon, delta) and back"""


def certified_tree_sum(
    statistic: RecursiveLossGradients,
    streams: Streams,
    *,
    horizon: int,
    epsilon: float,
    delta: float,
) -> PrefixSum:
    """Return the (epsilon, delta)-DP tree sum of least noise, with the best norm index r.

    Guarantee:
        (epsilon, delta)-DP of all releases: a user is in m = bit_length(leaves) nodes, whose costs,
        a `GeneralisedGaussianSpend`, add up adaptively; where r = 2 they are exact GDP.
    """
    gaussian_target(epsilon, delta)
    (d,), q, count = statistic.shape, statistic.order, leaves(horizon, 1).bit_length()
    r = smoothest(dim=d, q=q)
    kappa = smoothness(r, dim=d, q=q)
    squared = mu_of(epsilon, delta) ** 2 if r == 2 else 2 * zcdp_rho_of(epsilon, delta) * _MARGIN
    ratio = sqrt(squared / (max(1, count) * kappa))
    spend = GeneralisedGaussianSpend(r, d, ratio, q, count, _note(horizon, r))
    law = GeneralisedGaussian(statistic.sensitivity / ratio, r)
    return _tree_sum(statistic, streams, law, spend, horizon)


@dataclass(frozen=True)
class Printed:
    """Misprints of Han et al. (see `DPTOFW`) to follow, each chosen independently."""

    norm_index: Reading = "corrected"
    """index p of the noise's l_p norm in d dimensions, for sensitivity in l_q, which is
    min(q, max(2, ln d)), or printed min(q - 1, ln d - 1) with kappa min(q - 1, e^2 (ln d - 1))"""
    radius: Reading = "corrected"
    """law of the noise's squared norm, Gamma(d/2, 2 sigma^2), or as printed Gamma(d/2, 2 sigma)"""
    direction: Reading = "corrected"
    """law of the noise's direction, cone measure of the l_r ball, or as in `PrintedGaussian`"""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            one_of(name, value, ("corrected", "printed"))

    def norm(self, *, dim: int, q: float) -> tuple[float, float]:
        """Return the noise's norm index and smoothness for gradients in l_q; (2, 1) if q < 2."""
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
    """Return the tree sum with noise of equation (3.2) of Han et al. (see `DPTOFW`)::

        sigma_+^2 = 8 m^2 kappa ln(m / delta) (S / 2)^2 / epsilon^2,     m = ceil(log2 n) + 1,

    kappa is that of `Printed.norm`, S / 2 = beta D + L for losses of smoothness beta
    and Lipschitz constant L on a domain of diameter D, and n = T - 1 the users who can influence an
    action. q is the norm index of the gradients, whose sensitivity is in l_max(2, q).

    Guarantee:
        `spend`, not the claim: its epsilon may exceed it with a printed radius, a proper law with
        sqrt(sigma_+) in place of sigma_+. Printed laws without a proof (norm index below 2, or the
        printed direction) have infinite cost.
    """
    gaussian_target(epsilon, delta)
    (d,), m = statistic.shape, max(0, leaves(horizon, 1) - 1).bit_length() + 1
    if epsilon / m > _MAX_NODE_EPSILON and not beyond_validity:
        raise InputError(
            f"Expected epsilon={epsilon!r} <= {_MAX_NODE_EPSILON * m:g}, {_MAX_NODE_EPSILON:g} for "
            f"each of {m} levels, with calibration='paper': its proof ends there. Set "
            "beyond_validity to run it and see the certificate."
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


SPEND_KINDS[GeneralisedGaussianSpend.__name__] = GeneralisedGaussianSpend
