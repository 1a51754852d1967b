"""WDP-COCOP: the approximate leader of gradient sums that protect the last users only."""

from dataclasses import dataclass
from typing import Literal

import numpy as np

from dpbandit.agents.convex.expiring import Calibration, ExpiringSums, window_on
from dpbandit.agents.convex.leaders import (
    GradientLeader,
    Leader,
    Resting,
    curvature_of,
    leader_of,
    with_gradients,
)
from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.domains import Domain, nearest
from dpbandit.privacy.sums.processes import NoiseLaw
from dpbandit.privacy.sums.window_tree import Mode
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class WDPCOCOP:
    """PFTAL whose users' privacy expires: less noise, and none that grows with the horizon.

    Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
    privacy expiration", WI-IAT 2020, Algorithm 1::

        x_1 = c0, the centre; for t = 1..T:
          1. play x_t
          2. g_t = P_V gradient f_t(x_t), clipped to norm L
          3. v_t = g_1 + ... + g_t + n_t               through one sum on a window tree
          4. x_{t+1} = nearest point of C to  mean(x_1..x_t) - v_t / (H t)

    On quadratics `(H/2) |x - z_t|^2` step 4 is the projection of mean(z_1..z_t) - n_t / (H t).
    Losses without curvature are regularised as in `PFTAL`: c0 in place of the mean.

    Code:
        Steps 1 to 3 are `GradientLeader.act` and `GradientLeader.update` (leaders.py), step 4
        `Leader.follow`.

    Guarantee:
        WINDOW DP, not ordinary DP: for every T', the points released up to T' are (epsilon,
        delta)-DP for replacing the datum of one of the last `window` rounds. Later points may
        reveal an older datum completely. Given the points one g_t moves by at most 2 L, is in at
        most log2(W) + 1 noisy nodes, W = `window` rounded up to a power of two, and in no clean sum
        before round t + W. A window of T - 1 or more makes this `PFTAL`, bit for bit, and its DP
        for ever.

    **Regret** for H-strongly convex losses, on every run: as in `PFTAL` with n_t for B_t, at most::

        sum of  L min(D, |n_{t-1}| / (H (t-1))) + (L + min(H D, |n_{t-1}| / (t-1)))^2 / (2 H t),

    n_0 = 0: of order ln T where that has ln^2.5 T. For independent quadratics noise costs only
    sum of E|n_t|^2 / (2 H t^2), bounded in T.

    Differs from the paper:
        calibration="paper" is it in 1 and 4, update="printed" in 2.

        1. The printed scales have L + H D for 2 L, how far a gradient moves: with K-norm noise
           ("Gamma") that buys 2 L / (L + H D) epsilon, more than epsilon where H D < L; the
           Gaussian one is 8 to 25 times too large.
        2. Line 3 prints the nearest point to sum(x_1..x_t) - v_t / H, without the 1/t.
        3. The window is read per prefix; at the horizon alone it would protect the last users there
           only.
        4. mode="lazy" adds less noise than "exact", which is the paper's.
        5. Gradients are clipped.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Quadratic
    >>> spec = ConvexSpec(loss=Quadratic(Ball(5)), feedback="datum", horizon=1024)
    >>> proof = certify(WDPCOCOP(epsilon=1.0, window=100), spec)
    >>> round(proof.epsilon, 6), proof.ledger.brief
    (1.0, 'window-DP, last 100')
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, 0 with the others"""
    noise: NoiseLaw = "k-norm"
    """one of "k-norm" (the paper's "gamma" is taken for it), "laplace" and "gaussian" noise"""
    window: int | None = 256
    """rounds for which a user is protected, >= 1; if None, the problem's `retention`"""
    mode: Mode | None = None
    """"lazy" trees or, as in the paper, "exact" ones; if None, as the calibration"""
    calibration: Calibration = "certified"
    """"certified" is noise for the claim, "paper" as printed, whatever that buys"""
    update: Literal["corrected", "printed"] = "corrected"
    """as corrected here, or as printed"""
    curvature: float | None = None
    """H; if None, the loss's own, or that of the regulariser, see `leaders.curvature_of`"""

    def __post_init__(self) -> None:
        one_of("update", self.update, ("corrected", "printed"))
        if self.curvature is not None:
            positive("curvature", self.curvature)
        sums = self._sums(1 if self.window is None else self.window)
        object.__setattr__(self, "delta", sums.delta)
        object.__setattr__(self, "noise", sums.noise)

    def make(self, spec: Spec, streams: Streams) -> GradientLeader | Resting:
        """A running agent; raises `InputError` for anything but convex losses with their data."""
        spec = with_gradients(self, spec)
        loss, T, R = spec.loss, spec.horizon, len(streams)
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, R)
        curvature = self.curvature or curvature_of(loss, T, epsilon=self.epsilon)
        expiring = self._sums(window_on(spec, self.window))
        sums = expiring.make(loss, curvature, streams, horizon=T)
        leader = leader_of(loss, R, curvature=curvature)
        if self.update == "printed":
            leader = PrintedLeader(loss.domain, R, curvature)
        return GradientLeader(loss, sums, leader, expiring.ledger(sums, horizon=T))

    def _sums(self, window: int) -> ExpiringSums:
        return ExpiringSums(
            epsilon=self.epsilon,
            delta=self.delta,
            noise=self.noise,
            window=window,
            mode=self.mode,
            calibration=self.calibration,
        )


class PrintedLeader(Leader):
    """Line 3 of the paper to the letter: no mean, a sum."""

    def __init__(self, domain: Domain, replicas: int, curvature: float) -> None:
        super().__init__(domain, replicas, curvature=curvature, anchored=True)
        self._total = np.zeros((replicas, domain.dim))

    def follow(self, taken: Floats, total: Floats) -> None:
        """The nearest point to sum(x_1..x_t) - v_t / H."""
        self._total = self._total + taken
        q = self._total - self._domain.embedded(total / self._curvature)
        self.point = nearest(self._domain, q, self.point).point
