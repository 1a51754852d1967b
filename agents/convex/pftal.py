"""PFTAL: the private approximate leader, told every round's datum."""

import sys
from dataclasses import dataclass
from math import log2, sqrt
from typing import Literal

from dpbandit.agents.convex.leaders import (
    GradientLeader,
    Resting,
    curvature_of,
    gradients,
    leader_of,
    with_gradients,
)
from dpbandit.base.inputs import InputError, flag, noise_target, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.accounting.pure import PureSpend
from dpbandit.privacy.accounting.spends import GaussianSpend, Spend
from dpbandit.privacy.noise.laws import Gaussian, KNorm, Laplace
from dpbandit.privacy.statistics.moments import ClippedVectors
from dpbandit.privacy.sums.calibrate import law_named, noisy_prefix_sum
from dpbandit.privacy.sums.certified_sums import Target, certified_sum
from dpbandit.privacy.sums.prefix_sums import PrefixSum
from dpbandit.privacy.sums.processes import NoiseLaw, Tree
from dpbandit.privacy.sums.unknown_horizon import HybridNoise
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class PFTAL:
    """Follow the approximate leader on noisy running sums of gradients.

    Smith and Thakurta, "(Nearly) optimal algorithms for private online learning in
    full-information and bandit settings", NIPS 2013, Algorithm 1::

        w_1 = c0, the centre; for t = 1..T:
          1. play w_t
          2. z_t = P_V gradient f_t(w_t), clipped to norm L
          3. v_t = z_1 + ... + z_t + noise                   through one tree sum
          4. w_{t+1} = nearest point of C to  mean(w_1..w_t) - v_t / (H t)

    Losses without curvature are regularised, `f + (H/2) |w - c0|^2`: the regulariser's gradient is
    public and cancels in step 4, where c0 takes the place of the mean.

    Code:
        Steps 1 to 3 are `GradientLeader.act` and `GradientLeader.update` (leaders.py), step 4
        `Leader.follow`.

    Guarantee:
        (epsilon, delta)-DP of all points w_1, w_2, .. for replacing one round's datum, whatever the
        adversary chooses its losses by: given the points, one z_t moves by at most 2 L, and lies in
        at most h = bit_length(T-1) nodes of the tree (z_T reaches no point). K-norm scale 2 L h /
        epsilon and Laplace scale sqrt(k) times that are pure, and with delta > 0 the least scales
        by their loss distribution; a Gaussian stddev of 2 L sqrt(h) / mu is exact. `anytime` noise
        keeps the promise at every horizon; steps 1 to 4 then know T through the regulariser's H
        alone.

    **Regret** for H-strongly convex losses, on every run, with B_t the noise in v_t, d_1 = 0, d_t =
    `min(D, |B_{t-1}| / (H (t-1)))` and e_t = min(d_t, L / H): at most::

        sum of  L e_t - (H/2) e_t^2 + (L + H d_t)^2 / (2 H t),

    of order k L^2 ln^2.5 T / (epsilon H) with K-norm noise, against all adversaries. Regularised
    it is of order L D sqrt(k T ln^2.5 T / epsilon) with the default H.

    Differs from the paper:
        calibration="paper" keeps 1.

        1. The printed K-norm scale is L log2(T) / epsilon: replacing a datum moves a gradient by 2
           L, so that it buys 2 epsilon and more, as the certificate shows.
        2. The root of the tree and right children are never needed and never drawn.
        3. The regularised H is proportional to sqrt(k ln^2.5 T / (epsilon T)) / D, as in the
           paper's introduction; its Section 2 prints k ln^2.5 T / (epsilon sqrt T).
        4. Laplace and Gaussian noise, anytime sums.
        5. Gradients are clipped, whatever is told.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), feedback="datum", horizon=1024)
    >>> round(certify(PFTAL(epsilon=1.0), spec).epsilon, 6)
    1.0
    >>> round(certify(PFTAL(epsilon=1.0, calibration="paper"), spec).epsilon, 6)
    2.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with the others. Above 0 trees have
    the least noise whose loss distribution meets it; anytime noise that is not Gaussian meets
    epsilon at delta = 0 always"""
    noise: NoiseLaw = "k-norm"
    """one of "k-norm" (also called "gamma"), "laplace" and "gaussian" noise"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    anytime: bool = False
    """a hybrid tree in place of the tree; the same privacy at every horizon, some more noise"""
    curvature: float | None = None
    """H; if None, the loss's own, or that of the regulariser, see `leaders.curvature_of`"""

    def __post_init__(self) -> None:
        object.__setattr__(self, "noise", law_named(self.noise))
        one_of("calibration", self.calibration, ("certified", "paper"))
        flag("anytime", self.anytime)
        noise_target(self)
        if self.curvature is not None:
            positive("curvature", self.curvature)
        if self.calibration == "paper" and (self.noise != "k-norm" or self.anytime):
            raise InputError("Expected calibration='paper' only with k-norm noise on a tree.")

    def make(self, spec: Spec, streams: Streams) -> GradientLeader | Resting:
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_gradients(self, spec)
        loss, T = spec.loss, spec.horizon
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, len(streams))
        statistic = gradients(loss)
        sums = (
            self._hybrid(statistic, streams) if self.anytime else self._tree(statistic, streams, T)
        )
        ledger = ledger_of(self.epsilon, sums.spend)
        curvature = self.curvature or curvature_of(loss, T, epsilon=self.epsilon)
        leader = leader_of(loss, len(streams), curvature=curvature)
        return GradientLeader(loss, sums, leader, ledger)

    def _tree(self, statistic: ClippedVectors, streams: Streams, horizon: int) -> PrefixSum:
        if self.calibration == "certified":
            target = Target(self.epsilon, self.delta or 0.0, horizon, refresh_every=1)
            return certified_sum(Tree(), statistic, streams, target, law=self.noise)
        return noisy_prefix_sum(  # c = L log2(T) / epsilon, over 2 L
            Tree(),
            statistic,
            streams,
            horizon=horizon,
            refresh_every=1,
            noise_multiplier=log2(horizon) / (2 * self.epsilon),
            law=self.noise,
        )

    def _hybrid(self, statistic: ClippedVectors, streams: Streams) -> PrefixSum:
        """Noise for one release of a datum; the hybrid tree grows it with its levels."""
        k, moved = statistic.dim, statistic.sensitivity
        law: Gaussian | Laplace | KNorm
        norm: Literal[1, 2] = 1
        spend: Spend = PureSpend.of(f"hybrid tree sum, {self.noise} releases", [self.epsilon])
        if self.noise == "gaussian":
            mu = mu_of(self.epsilon, self.delta or 0.0)
            law, norm = Gaussian(moved / mu), 2
            spend = GaussianSpend(mu, "hybrid tree sum, Gaussian releases")
        elif self.noise == "laplace":
            law = Laplace(moved * sqrt(k) / self.epsilon)
        else:
            law = KNorm(moved / self.epsilon)
        node = law.sampler(streams, "hybrid noise", statistic.shape)
        noise = HybridNoise(node, stddev=sqrt(law.variance(k)), norm=norm)
        return PrefixSum(statistic, noise, spend, horizon=sys.maxsize)
