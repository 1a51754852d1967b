"""LinearFTRL: private regularised leaders for linear losses, with additive noise in the regret."""

from dataclasses import dataclass
from math import sqrt

from dpbandit.agents.convex.leaders import (
    GradientLeader,
    Leader,
    Resting,
    gradients,
    with_gradients,
)
from dpbandit.base.inputs import InputError, noise_target, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.sums.certified_sums import Target, certified_sum
from dpbandit.privacy.sums.processes import NoiseLaw, Padded
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class LinearFTRL:
    """Follow the regularised leader on noisy sums of linear losses, all with equally much noise.

    Agarwal and Singh, "The price of differential privacy for online learning", ICML 2017, with
    the Euclidean regulariser::

        w_1 = c0, the centre; for t = 1..T:
          1. play w_t;  z_t = P_V gradient f_t, clipped to norm L
          2. v_t = z_1 + ... + z_t + noise                     through one padded tree
          3. w_{t+1} = nearest point of C to  c0 - eta v_t,    eta = R / (L sqrt T)

    Code:
        Steps 1 and 2 are `GradientLeader.act` and `GradientLeader.update` (leaders.py), step 3
        `Leader.follow`.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one round's datum: as `PFTAL`, padding being
        post-processing.

    **Regret** against an adversary that fixes linear losses in advance: every v_t carries the same
    law of noise B, so it is that of the leader of perturbed losses, at most::

        R L sqrt T + D E|B|     in expectation:

    noise is paid for once and not in every round. Neither adaptive adversaries nor curved losses
    are covered; the latter are refused.

    Differs from the paper:
        Regulariser and eta are Euclidean, and noise is calibrated to replacing a datum, 2 L.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), feedback="datum", horizon=1000)
    >>> round(certify(LinearFTRL(epsilon=1.0), spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with the others. Above 0 trees have
    the least noise whose loss distribution meets it"""
    noise: NoiseLaw = "k-norm"
    """its law"""
    rate: float | None = None
    """eta; if None, R / (L sqrt T)"""

    def __post_init__(self) -> None:
        one_of("noise", self.noise, ("k-norm", "laplace", "gaussian"))
        noise_target(self)
        if self.rate is not None:
            positive("rate", self.rate)

    def make(self, spec: Spec, streams: Streams) -> GradientLeader | Resting:
        """A running agent; raises `InputError` for anything but linear losses with their data."""
        spec = with_gradients(self, spec)
        loss, domain, T = spec.loss, spec.loss.domain, spec.horizon
        if loss.smoothness != 0:
            raise InputError(
                f"LinearFTRL plays linear losses, got {type(loss).__name__}: choose pftal instead."
            )
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(domain, len(streams))
        statistic = gradients(loss)
        target = Target(self.epsilon, self.delta or 0.0, horizon=T, refresh_every=1)
        sums = certified_sum(Padded(), statistic, streams, target, law=self.noise)
        rate = self.rate or domain.outer_radius / (loss.lipschitz * sqrt(T))
        leader = Leader(domain, len(streams), curvature=0.0, anchored=False, start=1 / rate)
        ledger = ledger_of(self.epsilon, sums.spend)
        return GradientLeader(loss, sums, leader, ledger)
