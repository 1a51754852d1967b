"""Frank-Wolfe on batches of users, with one step per batch."""

from itertools import pairwise
from math import exp, inf, isqrt, lgamma, log, pi, sqrt
from typing import Literal, NamedTuple

import numpy as np

from dpbandit.agent import Count, Points, Positive, PrivateAgent, Share
from dpbandit.agents.convex.leaders import slope
from dpbandit.agents.streams.frank_wolfe import PrintedNoise, Walk, bounds_of, lowest, usual_clip
from dpbandit.base import Floats, InputError, abbrev, inside, printed_target
from dpbandit.domains.lp_balls import second_moment
from dpbandit.losses.regressions import LinearRegression, Regression
from dpbandit.privacy import (
    BatchSum,
    Gaussian,
    GaussianSpend,
    Parallel,
    PrefixSum,
    Target,
    certified_sum,
    exact_prefix_sum,
    ledger_of,
    mu_of,
)
from dpbandit.privacy.factors import factorisation
from dpbandit.privacy.generalised import (
    GeneralisedGaussian,
    GeneralisedGaussianSpend,
    Printed,
    PrintedGaussian,
    RecursiveLossGradients,
)
from dpbandit.privacy.spends import Spend, different
from dpbandit.specs import ConvexSpec

_REGRESSION_CLIP_SHARE = 0.2
"""Default clip of a certified regression's gradients divided by their bound; most are shorter."""
_MIN_DIFFERENCE = 1e-12
"""Smallest clip of gradient differences (0 for linear losses) divided by the Lipschitz bound."""


class LocalisedTOFW(PrivateAgent[ConvexSpec], Walk):
    """Tree-based online Frank-Wolfe in phases, each in a smaller set around the last point.

    `DPTOFW` (Han, Liang, Liang, Wang, Yao and Zhang 2022, Algorithm 1) with the localisation of
    Feldman, Koren and Talwar, "Private stochastic convex optimization: optimal rates in linear
    time", STOC 2020. A design of this project::

        theta = the centre of the domain C; for block k = 1, 2, .., with shares_k T rounds:
          1. C_k = (1 - s) theta + s C with s = shrink^(k-1), inside C and around theta
          2. DP-TOFW on C_k from theta, one step for each of `batches` equal batches: every user's
             g clipped to l_2 norm `clip` x s, noisy prefix sums over the batches
          3. theta = the last point of the block

    Batches are long, so that a sum exceeds its noise. All parameters are public: functions of
    T, the loss and the domain, not of users. The defaults were chosen on simulated linear
    regressions of 5 to 20 features, T = 1,000 to 10,000 and epsilon 1, the same defaults for all;
    no certificate covers such a choice.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one datum: each user is in one batch of one
        block, whose sums are mu-GDP with the mu of the target, and blocks see disjoint users
        (parallel composition; later blocks depend on her through releases alone).

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=1000)
    >>> round(certify(LocalisedTOFW(delta=1e-3), spec).epsilon, 6)
    1.0
    """

    shares: tuple[float, ...] = (0.4, 0.6)
    """share of the rounds for each block"""
    shrink: Share = 0.25
    """factor by which the set shrinks from block to block, in (0, 1]"""
    batches: Count = 30
    """number of steps in a block"""
    step: Share = 0.4
    """step size of Frank-Wolfe in (0, 1]"""
    prefix_sums: Literal["tree", "blt", "square-root", "gradual"] = "blt"
    """mechanism that releases running sums"""
    clip: Positive | None = None
    """largest norm of a gradient in the first block; if None, 0.65 x `local_clip` for regressions
    on l_p balls, p > 1, else `usual_clip`"""

    def check(self) -> None:
        super().check()
        if not isinstance(self.shares, list | tuple):
            raise InputError(
                f"Expected shares={abbrev(self.shares)} to be numbers in [0, 1] of sum 1, such as "
                "(0.4, 0.6): set them in Python, as the command line has no tuples."
            )
        object.__setattr__(self, "shares", tuple(self.shares))
        for share in self.shares:
            inside("shares", share, 0, 1, ends=True)
        if not self.shares or abs(sum(self.shares) - 1) > 1e-9:
            shares = abbrev(self.shares)
            raise InputError(f"Expected shares={shares} to be numbers in [0, 1] of sum 1.")

    def begin(self) -> None:
        self.c = self.step
        ends = [round(end * self.spec.horizon) for end in np.cumsum([0.0, *self.shares])]
        self.sizes = [after - before for before, after in pairwise(ends) if after > before]
        self.sums = [self.block_sum(k, rounds) for k, rounds in enumerate(self.sizes)]
        spent = Parallel(different(sums.spend for sums in self.sums))
        self.ledger = ledger_of(self.epsilon, spent, without="exact gradient sums")
        self.block = 0
        self.set_out()

    def block_sum(self, number: int, rounds: int) -> PrefixSum:
        """Return the noisy sums of a block, one release for each of its batches."""
        clip = self.gradient_clip(self.shrink**number)
        statistic = RecursiveLossGradients(loss=self.loss, gradient_clip=clip)
        horizon, every = rounds + 1, -(-rounds // self.batches)
        if self.epsilon == inf:
            return exact_prefix_sum(statistic, horizon=horizon, refresh_every=every)
        target = Target(self.epsilon, self.delta, horizon, every)
        process, streams = factorisation(self.prefix_sums), self.streams.child(f"block {number}")
        return certified_sum(process, statistic, streams, target)

    def gradient_clip(self, share: float) -> float:
        """Return the largest norm of a gradient in a set `share` times the domain."""
        if self.clip is not None:
            return self.clip * share
        if isinstance(self.loss, Regression) and self.loss.domain.p > 1:
            return 0.65 * local_clip(self.loss, step=self.step, share=share)
        return usual_clip(self.loss, "gradient")

    def set_out(self) -> None:
        super().set_out()
        self.origin, self.left = self.point, self.sizes[self.block]

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        # `feedback` is the datum, `(R, *datum_shape)`; every release of the block's sum is a step
        number = np.asarray(self.moves + 1)
        release = self.sums[self.block](self.point, self.previous, number, feedback)
        if release is not None:
            s = self.shrink**self.block
            self.move((1 - s) * self.origin + s * lowest(self.domain, release))
        self.left -= 1
        if self.left == 0 and self.block + 1 < len(self.sizes):
            self.block += 1
            self.set_out()


def local_clip(loss: Regression, *, step: float, share: float) -> float:
    """Return the norm of a typical gradient during the steps, in a set `share` times the domain.

    For squared losses with best point theta and isotropic features (covariance s I), the mean
    gradient after a step of size c towards a vertex v has norm `2 s c |v - theta|_2`, here with 0
    for theta and a random v; one user's is sqrt(N) times longer in N dimensions. Gradients of other
    losses do not get shorter near theta.

    >>> from dpbandit.domains import LpBall
    >>> round(local_clip(LinearRegression(LpBall(20, 1.5, 2.0)), step=0.4, share=1.0), 3)
    0.565
    """
    if not isinstance(loss, LinearRegression):
        return usual_clip(loss, "gradient")
    d, q, radius = loss.domain.dim, loss.order, loss.domain.radius
    s = second_moment(d, q)
    return 2 * s * sqrt(d) * step * share * radius * _vertex_length(d, q)


def _vertex_length(dim: int, order: float) -> float:
    """Return the l_2 norm of the unit l_p ball's point that is furthest along a Gaussian g.

    Its coordinates are sign(g_j) |g_j|^(q-1) / |g|_q^(q-1), q = `order` dual to p. Sums are
    replaced by their means, so that the result is 1.5 times too large at p = 1.2.
    """
    if order == 1:
        return sqrt(dim)
    q = order
    squares, powers = (log(dim) + _log_moment(power) for power in (2 * (q - 1), q))
    longest = 0.0 if q > 2 else log(dim) / 2
    return exp(min(squares / 2 - powers * (q - 1) / q, longest))


def _log_moment(power: float) -> float:
    """Return the log of the moment E |g|^power of a standard normal g."""
    return power / 2 * log(2) + lgamma((power + 1) / 2) - log(pi) / 2


class NoisySFW(PrintedNoise, Points):
    """Stochastic Frank-Wolfe with noisy recursive gradients of disjoint batches.

    Bassily, Guzman and Nandi, "Non-Euclidean differentially private stochastic convex
    optimization", COLT 2021, Algorithm 3, a competitor in Han et al. (see `DPTOFW`)::

        eta = scale ln T / (2 sqrt T);  w_0 = the centre of the domain C
          1. d_0 = mean of grad f(w_0; z) over the first T/2 users + noise of size s_1
          2. w_1 = (1 - eta) w_0 + eta v_0,  v_0 = argmin over C of <d_0, v>
          3. for t = 1..sqrt(T) - 1, each with the next sqrt(T)/2 users:
             d_t = d_{t-1} + mean of [grad f(w_t; z) - grad f(w_{t-1}; z)] + noise of size s_2
             w_{t+1} = (1 - eta) w_t + eta v_t,  v_t = argmin over C of <d_t, v>

    In the rounds of batch t the point w_t is played; users after the last batch are not used.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one datum, even if data depend on points.
        Given the points, a user's datum enters one term of one batch of b users. In d_0 the term is
        a gradient of norm at most the Lipschitz constant L, and moves the sum by 2 L. Later it is a
        difference of norm at most beta eta D (smoothness beta, diameter D) and 2 L. Terms are
        clipped to these norms (times `clip`), whatever the data. Batches are disjoint, so a user
        costs one of them (parallel composition), and Gaussian noise of stddev S / mu is exact GDP
        at sensitivity S. Norms are Euclidean, or N^(1/2 - 1/q) times l_q norms in N dimensions::

            calibration  s_1, per coordinate of the mean   s_2
            certified    S / (mu b), Gaussian              S / (mu b), Gaussian
            paper        4 sqrt(2 kappa ln(1/delta)) L /   4 sqrt(2 kappa ln(1/delta)) beta 2R eta
                         (T epsilon)                       / (sqrt(T) epsilon)

        The paper's noise is generalised Gaussian (`GeneralisedGaussian`; Gaussian for q <= 2), and
        is certified by zCDP with the true L and beta, not with `lipschitz` and `smoothness`.

    Differs from the paper:
        1. Certified noise is Gaussian, with exact constants and clips.
        2. The norm index is as in `DPTOFW`. `norm_index`, `radius` and `direction` = "printed"
           restore the authors' comparison; for noise sizes below 1 the paper's radius is LARGER.
        3. Batches have at least one user, and eta is at most 1.

    >>> from dpbandit import certify
    >>> from dpbandit.domains import LpBall
    >>> from dpbandit.specs.convex import StreamSpec
    >>> spec = StreamSpec(loss=LinearRegression(LpBall(20, 1.5, 2.0)), horizon=1000)
    >>> def epsilon(calibration):
    ...     config = NoisySFW(delta=1e-3, calibration=calibration)
    ...     return round(certify(config, spec, accountants=False).epsilon, 2)
    >>> epsilon("certified"), epsilon("paper")
    (1.0, 0.8)
    """

    scale: Positive | None = None
    """factor of the step size; if None, 1 for "paper" (steps are too long), 0.1 if certified"""
    clip: Share | None = None
    """norm to which terms are clipped, as a share in (0, 1] of the largest norm; if None, 1, but
    0.2 for certified regressions, whose terms are mostly shorter"""
    beyond_validity: bool = False
    """True to run the paper's noise at epsilon > 3, too, certified at the epsilon that it meets"""

    def check(self) -> None:
        super().check()
        printed_target(self.epsilon, self.calibration, beyond_validity=self.beyond_validity)
        others = (self.printed, self.lipschitz, self.smoothness)
        if self.calibration == "certified" and others != (Printed(), None, None):
            raise InputError("Expected printed laws and other constants with calibration='paper'.")

    def begin(self) -> None:
        T, certified = self.spec.horizon, self.calibration == "certified"
        scale = self.scale or (0.1 if certified else 1.0)
        self.eta = min(1.0, scale * log(T) / (2 * sqrt(T)))
        printed = not certified and self.epsilon < inf
        first, other = self.printed_batches() if printed else self.certified_batches()
        self.batches = (first, *[other] * sizes(T)[2])
        spends = different(batch.spend for batch in self.batches)
        self.ledger = ledger_of(self.epsilon, Parallel(spends), without="exact gradient sums")
        self.previous, self.batch = self.point, 0
        self.gradient = np.zeros((self.R, self.domain.affine_dim))
        self.open()

    def open(self) -> None:
        """Set up the noisy sum of the current batch."""
        batch, dim = self.batches[self.batch], self.domain.affine_dim
        self.sum = BatchSum(
            dim,
            batch.bound,
            order=batch.order,
            users=batch.users,
            noise=batch.law.sampler(self.streams.child(f"batch {self.batch}"), "noise", (dim,)),
            spend=batch.spend,
        )

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        # Add the datum, `(R, *datum_shape)`, to its batch; make a step at the end of a batch
        if self.batch == len(self.batches):
            return
        z = self.loss.admitted(feedback, self.R)
        vector = slope(self.loss, self.point, z)
        if self.batch:
            vector = vector - slope(self.loss, self.previous, z)
        total = self.sum(vector)
        if total is None:
            return
        self.gradient = self.gradient + total / self.batches[self.batch].users
        v = lowest(self.domain, self.gradient)
        self.previous, self.point = self.point, (1 - self.eta) * self.point + self.eta * v
        self.batch += 1
        if self.batch < len(self.batches):
            self.open()

    def bounds(self, order: float) -> tuple[float, float]:
        """Return the clips of a gradient and of a difference of gradients, as l_order norms."""
        loss, bounds = self.loss, bounds_of(self.loss)
        regression = isinstance(loss, Regression)
        long, change = bounds.lipschitz, bounds.smoothness * bounds.diameter
        if order == 2:
            longest = loss.longest if isinstance(loss, Regression) else 1.0
            change = min(change * longest, loss.smoothness * loss.domain.diameter)
            long = loss.lipschitz
        clip = self.clip or (
            _REGRESSION_CLIP_SHARE if regression and self.calibration == "certified" else 1.0
        )
        return clip * long, clip * min(2 * long, max(change * self.eta, _MIN_DIFFERENCE * long))

    def certified_batches(self) -> "list[Batch]":
        """Return batches with Gaussian noise, each mu-GDP with the mu of epsilon and delta."""
        mu = mu_of(self.epsilon, self.delta)
        return [
            Batch(n, bound, 2.0, Gaussian(2 * bound / mu), GaussianSpend(mu, _note(n)))
            for n, bound in zip(sizes(self.spec.horizon), self.bounds(2.0), strict=False)
        ]

    def printed_batches(self) -> "list[Batch]":
        """Return batches with the paper's noise, at its certified cost, infinite without a proof.

        Its size for a batch's mean is c L / T in the first, c beta D eta / sqrt(T) in a later one,
        c = 4 sqrt(2 kappa ln(1/delta)) / epsilon, eta the step size, kappa the norm's smoothness,
        for a Lipschitz constant L, smoothness beta and diameter D, by default the problem's.
        """
        loss, T, dim = self.loss, self.spec.horizon, self.domain.affine_dim
        q = loss.order if isinstance(loss, Regression) else 2.0
        order, (r, kappa) = max(2.0, q), self.printed.norm(dim=dim, q=q)
        L, beta, D = bounds_of(loss).overridden(self.lipschitz, self.smoothness)
        common = 4 * sqrt(2 * kappa * log(1 / self.delta)) / self.epsilon
        means = common * L / T, common * beta * D * self.eta / sqrt(T)
        made = []
        for n, bound, mean in zip(sizes(T), self.bounds(order), means, strict=False):
            sigma = n * (sqrt(mean) if self.radius == "printed" else mean)
            law: GeneralisedGaussian | PrintedGaussian = PrintedGaussian(sigma, r, self.direction)
            spend: Spend = GaussianSpend(inf, f"{_note(n)}, printed: nothing is proved")
            if r >= 2 and self.direction == "corrected":
                law = GeneralisedGaussian(sigma, r)
                ratio = 2 * bound / sigma if sigma else inf
                spend = GeneralisedGaussianSpend(r, dim, ratio, order, 1, _note(n))
            made.append(Batch(n, bound, order, law, spend))
        return made


class Batch(NamedTuple):
    """Public parameters of one batch; `law` is the noise of its sum.

    The first batch sums gradients at one point. Every other batch sums differences of gradients at
    two points that are one step apart, a distance of at most the step size times the diameter.
    """

    users: int
    bound: float
    order: float
    law: Gaussian | GeneralisedGaussian | PrintedGaussian
    spend: Spend


def sizes(horizon: int) -> tuple[int, int, int]:
    """Return the users of the first batch and of each later batch, and the number of later batches.

    >>> sizes(10_000), sizes(24), sizes(1)
    ((5000, 50, 99), (12, 2, 3), (1, 1, 0))
    """
    first, other = max(1, horizon // 2), max(1, isqrt(horizon) // 2)
    return first, other, min(isqrt(horizon) - 1, (horizon - first) // other)


def _note(users: int) -> str:
    return f"sum over a batch of {users} gradients"
