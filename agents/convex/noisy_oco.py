"""NoisyOCO: follow the regularised leader of gradient sums that are released with noise."""

from dataclasses import dataclass
from math import log, sqrt
from typing import Literal

import numpy as np

from dpbandit.agents.convex.leaders import (
    GradientLeader,
    Leader,
    Resting,
    gradients,
    with_gradients,
)
from dpbandit.agents.convex.one_point import Noise
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, noise_target, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Simplex
from dpbandit.domains.domain import Domain
from dpbandit.losses.loss import Loss
from dpbandit.privacy.accounting.ledger import ledger_of
from dpbandit.privacy.sums.certified_sums import Target, certified_sum
from dpbandit.privacy.sums.processes import NoiseLaw, Tree
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class NoisyOCO:
    """A mirror map of noisy gradient sums, told every round's datum.

    Ene, Nguyen and Vladu, "Projection-free bandit optimization with privacy guarantees", AAAI
    2021, Algorithm 2, with gradients of the datum told and a tree as its noisy map::

        s_0 = 0; for t = 1..T:
          1. play x_t = argmin over C of  eta <s_{t-1}, x> + w(x)
          2. g_t = P_V gradient f_t(x_t), clipped to norm L
          3. s_t = g_1 + ... + g_t + noise                         through one tree sum

        map          w(x)                       D_w^2 = max w    x_t
        euclidean    |x - c0|^2 / 2             R^2 / 2          nearest point to c0 - eta s_{t-1}
        entropic     sum x_i ln x_i + ln N      ln N             softmax of -eta s_{t-1}, simplex

        eta = D_w / (kappa sqrt T),    kappa >= the dual norm of a gradient (l_2, max norm)

    Code:
        Step 1 is `Leader.follow` (leaders.py) or `Entropic.follow`, steps 2 and 3 are
        `GradientLeader.update`.

    Guarantee:
        epsilon-DP (k-norm, laplace) or (epsilon, delta)-DP (gaussian, or any with delta > 0) of all
        points for replacing one round's datum, whatever losses are chosen by: given the points, one
        g_t moves by at most 2 L and lies in at most bit_length(T-1) nodes; g_T reaches no point.

    **Regret** is at most D_w^2 / eta + eta T (kappa^2 / 2 + kappa E|noise|), the noise of a prefix
    in the dual norm; parameters="tuned" makes that least.

    Differs from the paper:
        1. eta has D_w where it prints D_w^(1/2), and s_t adds to s_{t-1}, not to itself.
        2. Noise is calibrated to replacing a datum and to the exact count of nodes.
        3. It lives in the affine hull of the domain; the softmax sees no other part of it anyway.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), feedback="datum", horizon=1000)
    >>> round(certify(NoisyOCO(epsilon=1.0), spec).epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with the others. Above 0 trees have
    the least noise whose loss distribution meets it"""
    noise: NoiseLaw = "k-norm"
    """its law"""
    map: Literal["euclidean", "entropic"] = "euclidean"
    """the mirror map"""
    parameters: Literal["paper", "tuned"] = "paper"
    """how eta is chosen, as in the paper or with the noise in mind (public numbers only)"""
    gradient_bound: float | None = None
    """kappa, utility only; if None, the losses' Lipschitz constant L"""
    eta: float | None = None
    """length of a step; if None, by `parameters`"""

    def __post_init__(self) -> None:
        one_of("noise", self.noise, ("k-norm", "laplace", "gaussian"))
        one_of("map", self.map, ("euclidean", "entropic"))
        one_of("parameters", self.parameters, ("paper", "tuned"))
        noise_target(self)
        for name in ("gradient_bound", "eta"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))

    def make(self, spec: Spec, streams: Streams) -> GradientLeader | Resting:
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_gradients(self, spec)
        loss, T, R = spec.loss, spec.horizon, len(streams)
        if self.map == "entropic" and not isinstance(loss.domain, Simplex):
            raise InputError(f"Expected map='entropic' only on a simplex, got {loss.domain}.")
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, R)
        target = Target(self.epsilon, self.delta or 0.0, horizon=T, refresh_every=1)
        sums = certified_sum(Tree(), gradients(loss), streams, target, law=self.noise)
        rate = self.rate(loss, T)
        leader = Entropic(loss.domain, R, rate) if self.map == "entropic" else None
        euclidean = Leader(loss.domain, R, curvature=0.0, anchored=False, start=1 / rate)
        return GradientLeader(loss, sums, leader or euclidean, ledger_of(self.epsilon, sums.spend))

    def rate(self, loss: Loss, horizon: int) -> float:
        """eta."""
        if self.eta is not None:
            return self.eta
        kappa, domain = self.gradient_bound or loss.lipschitz, loss.domain
        width = sqrt(log(domain.dim)) if self.map == "entropic" else domain.outer_radius / sqrt(2)
        if self.parameters == "paper":
            return width / (kappa * sqrt(horizon))
        noise = Noise(law=self.noise, epsilon=self.epsilon, delta=self.delta or 0.0)
        spread = noise.spread(gradients(loss), horizon - 1)
        return width / sqrt(horizon * kappa * (kappa / 2 + spread))


class Entropic(Leader):
    """The leader with the negative entropy as its regulariser, on a simplex."""

    def __init__(self, domain: Domain, replicas: int, rate: float) -> None:
        super().__init__(domain, replicas, curvature=0.0, anchored=False, start=1 / rate)
        self._rate = rate

    def follow(self, taken: Floats, total: Floats) -> None:
        """softmax(-eta `total`), total in coordinates of V, (R, k)."""
        score = -self._rate * self._domain.embedded(total)
        weight = np.exp(score - score.max(axis=-1, keepdims=True))
        self.point = weight / weight.sum(axis=-1, keepdims=True)
