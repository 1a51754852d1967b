"""DP-FTRL: a regularised leader of noisy gradient sums, tuned for losses that can be zero."""

from dataclasses import dataclass
from math import inf, log, sqrt
from typing import Literal

from dpbandit.agents.convex.leaders import (
    GradientLeader,
    Leader,
    Resting,
    gradients,
    with_gradients,
)
from dpbandit.agents.convex.one_point import Noise
from dpbandit.base.inputs import InputError, noise_target, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.losses.loss import Loss
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.sums.certified_sums import Target, certified_sum
from dpbandit.privacy.sums.processes import NoiseLaw, Tree
from dpbandit.specs.convex import ConvexSpec
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class DPFTRL:
    """Follow the regularised leader of a tree's gradient sums.

    Kairouz, McMahan, Song, Thakkar, Thakurta and Xu, "Practical and private (deep) learning without
    sampling or shuffling", ICML 2021; tuned as in Asi, Feldman, Koren and Talwar, "Near-optimal
    algorithms for private online optimization in the realizable regime", ICML 2023, Algorithm 3::

        v_0 = 0; for t = 1..T:
          1. play x_t = nearest point of C to  c0 - v_{t-1} / lambda
          2. g_t = P_V gradient l_t(x_t), clipped to norm L
          3. v_t = g_1 + ... + g_t + b_t                    through one tree sum

    With a smoothness beta, the radius R around the centre c0 and V >= E|b_t|^2, h k times the
    variance of a node in one of k coordinates, h = bit_length(T-1) nodes to a leaf::

        tuning        lambda
        "certified"   max(4 beta, (8 beta T V / R^2)^(1/3))
        "paper"       32 beta + ((beta / epsilon^2) (L/R)^2 T k ln T ln(1/delta))^(1/3)
        "general"     sqrt(T (L^2 + 2 L sqrt V)) / R
        a number      that

    Code:
        Step 1 is `Leader.follow` (leaders.py), step 2 `slope` with the clip of `sums`, step 3
        `GradientLeader.update`.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one round's datum, whatever losses are
        chosen by: given the points, one g_t moves by at most 2 L and lies in at most h nodes; g_T
        reaches no point. Gaussian noise is exact, K-norm and Laplace noise as in `PFTAL`.

    **Regret** in expectation, x* best in hindsight with total loss L*::

        lambda >= 4 beta    at most  L* + 4 beta T V / lambda^2 + lambda R^2
        "general"           at most  R sqrt(T (L^2 + 2 L sqrt V)),      for any convex losses.

    The first, T^(1/3) where L* = 0, is for losses that are beta-smooth and non-negative on ALL of
    c0 + V, so that `|gradient|^2 <= 2 beta l`, and for data fixed in advance.

    Differs from the paper:
        1. Non-negativity on the domain, which it asks for, is not enough: l_t(x) = 1 - <x, e_1> on
           the unit ball is smooth for every beta > 0 and 0 at e_1, but at beta = 1/T, T = 10^4,
           epsilon = 1, delta = 10^-6 the regret is 210 in 10 dimensions and 500 in 50, not
           O(lambda) = O(11), O(19). So losses with a smoothness of 0 or negative values are refused
           where lambda is made from beta.
        2. E|b_t|^2 grows like ln^2 T, not ln T.
        3. Noise is exact, gradients are clipped, lambda "certified" is ours.
        4. Any domain, about its centre.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Squared
    >>> spec = ConvexSpec(loss=Squared(Ball(2), bound=0.9), feedback="datum", horizon=1000)
    >>> round(certify(DPFTRL(epsilon=1.0), spec).epsilon, 6)
    1.0
    >>> round(DPFTRL(tuning="paper").strength(spec), 1)
    120.3
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with the others"""
    noise: NoiseLaw = "gaussian"
    """its law"""
    tuning: Literal["certified", "paper", "general"] | float | None = None
    """lambda; if None, "certified" where the losses allow it, else "general" """

    def __post_init__(self) -> None:
        one_of("noise", self.noise, ("k-norm", "laplace", "gaussian"))
        if isinstance(self.tuning, str):
            one_of("tuning", self.tuning, ("certified", "paper", "general"))
        elif self.tuning is not None:
            positive("tuning", self.tuning)
        noise_target(self)
        if self.tuning == "paper" and self.delta == 0 and self.epsilon < inf:
            raise InputError("Expected delta > 0 with tuning='paper', whose lambda grows with it.")

    def make(self, spec: Spec, streams: Streams) -> GradientLeader | Resting:
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_gradients(self, spec)
        loss, R = spec.loss, len(streams)
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, R)
        target = Target(self.epsilon, self.delta or 0.0, horizon=spec.horizon, refresh_every=1)
        sums = certified_sum(Tree(), gradients(loss), streams, target, law=self.noise)
        leader = Leader(loss.domain, R, curvature=0.0, anchored=False, start=self.strength(spec))
        return GradientLeader(loss, sums, leader, ledger_of(self.epsilon, sums.spend))

    def strength(self, spec: ConvexSpec) -> float:
        """lambda."""
        if not isinstance(self.tuning, str | None):
            return self.tuning
        loss, T, R = spec.loss, spec.horizon, spec.loss.domain.outer_radius
        L, beta, k = loss.lipschitz, loss.smoothness, loss.domain.affine_dim
        if self._tuning(loss) == "paper":
            nats = log(T) * log(1 / self.delta) if self.delta else 0.0
            return 32 * beta + (beta / self.epsilon**2 * (L / R) ** 2 * T * k * nats) ** (1 / 3)
        noise = Noise(law=self.noise, epsilon=self.epsilon, delta=self.delta or 0.0)
        spread = noise.spread(gradients(loss), T - 1)  # sqrt V
        if self._tuning(loss) == "general":
            return sqrt(T * (L**2 + 2 * L * spread)) / R
        return max(4 * beta, (8 * beta * T * (spread / R) ** 2) ** (1 / 3))

    def _tuning(self, loss: Loss) -> str | float:
        fit = 0 < loss.smoothness < inf and loss.value_range[0] >= 0
        if self.tuning in ("certified", "paper") and not fit:
            raise InputError(
                f"Expected tuning={self.tuning!r} only for smooth losses that are never negative, "
                f"got {type(loss).__name__}: choose tuning='general'."
            )
        return self.tuning or ("certified" if fit else "general")
