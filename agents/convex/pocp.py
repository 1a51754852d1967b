"""POCP: gradient descent whose points are released with noise, one by one."""

from dataclasses import dataclass
from math import inf, sqrt

import numpy as np

from dpbandit.agents.convex.leaders import Resting, curvature_of, with_gradients
from dpbandit.agents.convex.noisy_descent import CONDITION, NoisyDescent
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import gaussian_target, positive
from dpbandit.base.streams import Streams
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.ledger import Ledger, no_privacy
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class POCP:
    """Every point pays for itself: regret of order sqrt T, a yardstick for sums on trees.

    After Jain, Kothari and Thakurta, "Differentially private online learning", COLT 2012, private
    online convex programming with gradient steps ("POCG" in later work).

        w_1 = c0, the centre; for t = 1..T:
          1. play w_t with noise of standard deviation s (2 L / (mu (t - 1 + t0))), projected; w_1
             has none
          2. w_{t+1} = nearest point of C to  w_t - (gradient f_t(w_t) + H (w_t - c0)) / (mu (t +
             t0))                                              through one mechanism

    mu is the losses' own curvature and H = 0, or, where they have none, mu = H as in `PFTAL`; t0 =
    smoothness / mu, the regulariser counted in.

    **Guarantee.** CONDITIONAL (epsilon, delta)-DP of all points for replacing one round's datum:
    exact with s = sqrt(T - 1) / mu_GDP, if EVERY loss is mu-strongly convex and mu t0-smooth, for
    then steps contract and a datum's effect fades, see `convex.noisy_descent`. No clip can enforce
    that: losses whose curvature is not verified are refused, and the ledger says "conditional".

    **Regret** for mu-strongly convex losses: that of descent, of order (L^2 / mu) ln T, and at most
    L sum of E|noise|, together of order L^2 sqrt(k T) ln T / (mu mu_GDP).

    **Differs from the paper.** (1) Exact Gaussian DP in place of advanced composition; the step
    sizes are moved by t0, without which the first steps do not contract. (2) Regularisation.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Quadratic
    >>> spec = ConvexSpec(loss=Quadratic(Ball(5)), feedback="datum", horizon=1024)
    >>> proof = certify(POCP(epsilon=1.0), spec)
    >>> round(proof.epsilon, 6), proof.ledger.brief
    (1.0, 'conditional')
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float = 1e-6
    """target, in (0, 1)"""
    curvature: float | None = None
    """H of the regulariser for losses that have no curvature; None: see `leaders.curvature_of`"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if self.curvature is not None:
            positive("curvature", self.curvature)

    def make(self, spec: Spec, streams: Streams) -> "POCPAgent | Resting":
        """A running agent; raises `BadInput` for losses whose curvature is not verified."""
        spec = with_gradients(self, spec)
        loss, T = spec.loss, spec.horizon
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, len(streams))
        regulariser = 0.0
        if not loss.curvature:
            regulariser = self.curvature or curvature_of(loss, T, epsilon=self.epsilon)
        descent = NoisyDescent(
            loss,
            streams,
            regulariser=regulariser,
            noise_multiplier=sqrt(T - 1) / mu_of(self.epsilon, self.delta),
            horizon=T,
        )
        ledger = Ledger((descent.spend,), condition=CONDITION)
        if self.epsilon == inf:
            ledger = no_privacy("points without noise")
        return POCPAgent(descent, np.tile(loss.domain.centre, (len(streams), 1)), ledger)


class POCPAgent:
    """See `POCP`. Remembers the latest release alone."""

    def __init__(self, descent: NoisyDescent, start: Floats, ledger: Ledger) -> None:
        self.ledger = ledger
        self._descent, self._point = descent, start

    def act(self, context: Floats) -> Floats:
        """The latest release, (R, N)."""
        return self._point

    def update(self, context: Floats, action: Floats, told: Floats) -> None:
        """Feed the datum `told`, (R, *datum_shape)."""
        release = self._descent(told)
        if release is not None:
            self._point = release
