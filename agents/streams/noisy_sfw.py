"""NoisySFW: private Frank-Wolfe on batches, one large and many small ones."""

from dataclasses import dataclass
from math import inf, isqrt, log, sqrt
from typing import Literal, NamedTuple

import numpy as np

from dpbandit.agents.convex.leaders import Resting, slope
from dpbandit.agents.streams.frank_wolfe import Bounds, bounds_of, oracle_of
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import (
    InputError,
    at_least,
    gaussian_target,
    inside,
    one_of,
    positive,
    printed_target,
)
from dpbandit.base.random_streams import Streams
from dpbandit.losses.loss import Loss
from dpbandit.losses.regressions import Regression
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.accounting.spends import GaussianSpend, Parallel, Spend
from dpbandit.privacy.noise.generalised_gaussian import (
    GeneralisedGaussian,
    GeneralisedGaussianSpend,
)
from dpbandit.privacy.noise.laws import Gaussian
from dpbandit.privacy.noise.printed_laws import PrintedGaussian, Reading
from dpbandit.privacy.sums.batch_sums import BatchSum
from dpbandit.privacy.sums.generalised_sums import Printed
from dpbandit.specs.convex import with_feedback
from dpbandit.specs.protocols import Spec

_SELDOM = 0.2
"""Gradients of regressions are mostly shorter than that part of their bound."""
_NOTHING = 1e-12
"""Gradients of linear losses do not change: what differences are clipped to, over L."""


@dataclass(frozen=True, kw_only=True)
class NoisySFW:
    """Stochastic Frank-Wolfe with recursive gradients of disjoint batches.

    Bassily, Guzman and Nandi, "Non-Euclidean differentially private stochastic convex
    optimization", COLT 2021, Algorithm 3, as compared with by Han et al. (see `DPTOFW`)::

        eta = scale ln T / (2 sqrt T);  w_0 = the centre of C
          1. d_0 = mean of grad f(w_0; z) over the first T/2 users + noise of size s_1
          2. w_1 = (1 - eta) w_0 + eta v_0,  v_0 = argmin over C of <d_0, v>
          3. for t = 1..sqrt(T) - 1, each with the next sqrt(T)/2 users:
             d_t = d_{t-1} + mean of [grad f(w_t; z) - grad f(w_{t-1}; z)] + noise of size s_2
             w_{t+1} = (1 - eta) w_t + eta v_t,  v_t = argmin over C of <d_t, v>

    In the rounds of a batch its w_t is played; who comes after the last batch is not asked.

    Code:
        All steps are `NoisySFWAgent.update`, gradients are `slope` (leaders.py), the argmin is
        `oracle_of` (frank_wolfe.py), the noisy sum `Batch.mechanism`.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one datum, however data react to points.
        Given the points, only her own term differs, in one batch of b users: in d_0 it is a
        gradient, at most L long, and moves the sum by 2 L; later it is a difference, at most beta
        `|w_t - w_{t-1}| <= beta eta D` (and 2 L) long. Vectors are clipped to that (times `clip`),
        whatever is told. Batches are disjoint, so she pays for one of them (parallel composition),
        and Gaussian noise of stddev S / mu is exact GDP. Bounds are Euclidean: N^(1/2 - 1/q) times
        those in l_q, or the loss's own::

            calibration  s_1, per coordinate of the mean   s_2
            certified    S / (mu b), Gaussian              alike
            paper        4 sqrt(2 kappa ln(1/delta)) L /   4 sqrt(2 kappa ln(1/delta)) beta 2R eta
                         (T epsilon)                       / (sqrt(T) epsilon)

        where the paper's noise is generalised Gaussian (`GeneralisedGaussian`; Gaussian for q <=
        2), and is certified by zCDP with the true L and beta, whatever `lipschitz` and `smoothness`
        say.

    Differs from the paper:
        1. Certified noise is Gaussian, with exact constants and clips.
        2. The norm index is that of `DPTOFW`, whose `norm_index`, `radius` and `direction` =
           "printed" are those of the authors' comparison here, too: s < 1 makes the printed radius'
           noise LARGER.
        3. Batches of one user at least, eta at most 1.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.losses import LinearRegression
    >>> from dpbandit.specs.streams import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=1000)
    >>> def epsilon(calibration):
    ...     config = NoisySFW(delta=1e-3, calibration=calibration)
    ...     return round(certify(config, spec, accountants=False).epsilon, 2)
    >>> epsilon("certified"), epsilon("paper")
    (1.0, 0.8)
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-5
    """target, in (0, 1)"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    scale: float | None = None
    """of eta; if None, the paper's 1, which is too long a step, and 0.1 if certified"""
    clip: float | None = None
    """vectors are clipped to this part of their largest norm, in (0, 1]; if None, 1, but 0.2 for
    certified regressions, which seldom come near it"""
    norm_index: Reading = "corrected"
    """r of the noise's norm, as corrected here, or as printed"""
    radius: Reading = "corrected"
    """of the noise, as corrected here, or as printed"""
    direction: Reading = "corrected"
    """of the noise, as corrected here, or as printed"""
    lipschitz: float | None = None
    """(paper) L of the noise; if None, the loss's own, in l_q"""
    smoothness: float | None = None
    """(paper) beta of the noise"""
    beyond_validity: bool = False
    """(paper) run at epsilon > 3 too; the certificate tells what that is worth"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        one_of("calibration", self.calibration, ("certified", "paper"))
        printed_target(self.epsilon, self.calibration, beyond_validity=self.beyond_validity)
        if self.scale is not None:
            positive("scale", self.scale)
        if self.clip is not None:
            positive("clip", self.clip)
            inside("clip", self.clip, 0, 1, ends=True)
        if self.lipschitz is not None:
            positive("lipschitz", self.lipschitz)
        if self.smoothness is not None:
            at_least("smoothness", self.smoothness, 0)
        printed = (self.printed, self.lipschitz, self.smoothness)
        if self.calibration == "certified" and printed != (Printed(), None, None):
            raise InputError("Expected printed laws and other constants with calibration='paper'.")

    @property
    def printed(self) -> Printed:
        """Which of the printed laws are followed as printed."""
        return Printed(self.norm_index, self.radius, self.direction)

    def make(self, spec: Spec, streams: Streams) -> "NoisySFWAgent | Resting":
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_feedback(self, spec, "datum")
        if spec.loss.lipschitz == 0:  # every point is as good as any
            return Resting(spec.loss.domain, len(streams))
        return NoisySFWAgent(self, spec.loss, spec.horizon, streams)

    def eta(self, horizon: int) -> float:
        """Step size of every step."""
        scale = self.scale or (0.1 if self.calibration == "certified" else 1.0)
        return min(1.0, scale * log(horizon) / (2 * sqrt(horizon)))

    def batches(self, loss: Loss, horizon: int) -> "tuple[Batch, Batch]":
        """The first batch, and each of the others."""
        eta, own, given = self.eta(horizon), bounds_of(loss), (self.lipschitz, self.smoothness)
        seldom = isinstance(loss, Regression) and self.calibration == "certified"
        clip = self.clip or (_SELDOM if seldom else 1.0)
        if self.calibration == "certified" or self.epsilon == inf:
            return certified_batches(
                loss, horizon, eta=eta, clip=clip, epsilon=self.epsilon, delta=self.delta
            )
        L, beta = (a if b is None else b for a, b in zip(own, given, strict=False))
        return printed_batches(
            loss,
            horizon,
            eta=eta,
            clip=clip,
            epsilon=self.epsilon,
            delta=self.delta,
            printed=self.printed,
            assumed=Bounds(L, beta, own.diameter),
        )


class NoisySFWAgent:
    """See `NoisySFW`. Remembers w_t, w_{t-1} and d_t, all made of releases."""

    def __init__(self, config: NoisySFW, loss: Loss, horizon: int, streams: Streams) -> None:
        _, _, count = sizes(horizon)
        first, other = config.batches(loss, horizon)
        self._batches, self._streams = (first, *[other] * count), streams
        spends = tuple(dict.fromkeys(batch.spend for batch in self._batches))
        self.ledger = ledger_of(config.epsilon, Parallel(spends), without="exact gradient sums")
        domain = loss.domain
        self._loss, self._eta, self._oracle = loss, config.eta(horizon), oracle_of(domain)
        self._w = self._previous = np.tile(domain.centre, (len(streams), 1))
        self._gradient: Floats = np.zeros((len(streams), domain.affine_dim))
        self._batch = 0
        self._open()

    def act(self, context: Floats) -> Floats:
        """w_t, (R, N)."""
        return self._w

    def update(self, context: Floats, action: Floats, feedback: Floats) -> None:
        """Feed the datum `feedback` `(R, *datum_shape)` to its batch; at the end of one make a
        step."""
        loss = self._loss
        if self._batch == len(self._batches):
            return
        z = loss.admitted(feedback, len(self._w))
        vector = slope(loss, self._w, z)
        if self._batch:
            vector = vector - slope(loss, self._previous, z)
        total = self._mechanism(vector)
        if total is None:
            return
        self._gradient = self._gradient + total / self._batches[self._batch].users
        v = self._oracle(self._gradient)
        self._previous, self._w = self._w, (1 - self._eta) * self._w + self._eta * v
        self._batch += 1
        if self._batch < len(self._batches):
            self._open()

    def _open(self) -> None:
        streams = self._streams.child(f"batch {self._batch}")
        self._mechanism = self._batches[self._batch].mechanism(
            self._loss.domain.affine_dim, streams
        )


class Batch(NamedTuple):
    """The public numbers of one batch; the noise is that of the sum.

    The first batch sums gradients at one point, every other one differences of gradients at two
    points that are a step of Frank-Wolfe, eta times the diameter at most, apart.
    """

    users: int
    bound: float
    order: float
    law: Gaussian | GeneralisedGaussian | PrintedGaussian
    spend: Spend

    def mechanism(self, dim: int, streams: Streams) -> BatchSum:
        """The noisy sum of this batch's vectors."""
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
