"""Agents with window privacy, which protects recent users only, and one without privacy.

`Expiring` is what the two algorithms of Lou and Cheung share: sums on a window tree.
"""

from dataclasses import dataclass
from math import log, log2, prod, sqrt
from typing import Literal, cast

import numpy as np

from dpbandit.agent import Count, Inside01, Positive
from dpbandit.agents.convex.leaders import (
    GradientLeader,
    Gradients,
    Leader,
    PrivateGradients,
    curvature_of,
    leader_of,
)
from dpbandit.base import Floats, InputError
from dpbandit.domains import Domain, nearest
from dpbandit.domains.projections import LocalOracle, local_oracle
from dpbandit.privacy import ClippedVectors, Ledger, PrefixSum, Tree, Window, ledger_of
from dpbandit.privacy.calibrated import least_multiplier, noisy_prefix_sum
from dpbandit.privacy.notion import Notion
from dpbandit.privacy.prefix_sums import Factorisation
from dpbandit.specs import ConvexSpec


def window_on(spec: ConvexSpec, window: int | None) -> int:
    """`window`, or the problem's retention period where it is None.

    Raises:
        InputError: neither is given, or the window ends before users may be revealed.
    """
    found = spec.retention if window is None else window
    if found is None:
        raise InputError(
            "Expected a number of rounds as window, or a problem with a retention period, got "
            "window=None and retention=None."
        )
    if spec.retention is not None and found < min(spec.retention, spec.horizon - 1):
        raise InputError(
            f"Expected window={found} >= {spec.retention}, the rounds for which users of this "
            "problem are to be protected (window=None takes those)."
        )
    return found


def least_along(towards: Floats, gradient: Floats, kappa: float) -> Floats:
    """The s in [0, 1], (R,), where `s <gradient, towards> + s^2 kappa/2 |towards|^2` is least."""
    square = kappa * np.vecdot(towards, towards)
    best = -np.vecdot(gradient, towards) / np.where(square > 0, square, 1.0)
    return np.clip(best, 0.0, 1.0)


class OnlineConditionalGradient(Gradients):
    """One Frank-Wolfe step per round: the counterpart of WDP-COCOL without privacy.

    Hazan and Kale, "Projection-free online learning", ICML 2012, online Frank-Wolfe; with the line
    search of Wan and Zhang, "Projection-free online learning over strongly convex sets", AAAI
    2021::

        x_1 = c0, the centre; for t = 1..T:
          1. play x_t;  v_t = v_{t-1} + P_V gradient f_t(x_t), clipped to norm L
          2. y = argmin <gradient J_t(x_t), y> over C             the linear oracle
          3. x_{t+1} = x_t + s (y - x_t), s in [0, 1] where J_t is least

    with J_t(x) = `<v_t, x> + (H/2) (|x - x_1|^2 + .. + |x - x_t|^2)` for H-strongly convex losses,
    `<v_t, x> + (2 L T^(3/4) / D) |x - x_1|^2` for others.

    Guarantee:
        None: exact data reaches later actions.

    **Regret**: of order L D T^(3/4), and T^(2/3) for H-strongly convex losses, for every adversary;
    what is lost to FTAL, which has ln T, is the price of one vertex a round.

    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Simplex
    >>> from dpbandit.losses import Quadratic
    >>> spec = ConvexSpec(loss=Quadratic(Simplex(3)), feedback="datum", horizon=100)
    >>> from dpbandit.base.random_streams import Streams
    >>> agent = OnlineConditionalGradient().make(spec, Streams([0]))
    >>> agent.update(np.zeros((1, 3)), agent.act(np.zeros((1, 3))), np.array([[1.0, 0.0, 0.0]]))
    >>> agent.act(np.zeros((1, 3)))
    array([[1., 0., 0.]])
    """

    curvature: Positive | None = None
    """H of strongly convex losses, in place of the loss's own"""

    def prepare(self) -> None:
        # Start without a quadratic part: `(kappa_t / 2) |x - anchor_t|^2`, kappa_t = H t around
        # the mean of the points, or kappa around the first one
        loss = self.loss
        self.H = self.curvature or loss.curvature
        if not loss.curvature:
            self.H = 4 * loss.lipschitz * self.spec.horizon**0.75 / self.domain.diameter
        self.rounds, self.anchor = 0, np.zeros_like(self.point)

    def follow(self, taken: Floats, total: Floats) -> None:
        # Steps 2 and 3
        self.rounds += 1
        kappa, x = self.H, self.point
        if self.loss.curvature:
            kappa = self.H * self.rounds
            self.anchor = self.anchor + (taken - self.anchor) / self.rounds
        elif self.rounds == 1:
            self.anchor = taken
        gradient = self.domain.embedded(total) + kappa * (x - self.anchor)
        towards = self.domain.lowest(gradient) - x
        self.point = x + least_along(towards, gradient, kappa)[:, None] * towards


class Expiring(PrivateGradients):
    """Noisy sums of gradients clipped to L, each user protected for `window` rounds.

    See `privacy.factors.Window`, W there being `window` = W rounded up to 2^w; a
    gradient is in at most w + 1 nodes, replacing a datum moves it by 2 L::

        calibration  noise        scale of a node
        certified    k-norm       2 L (w + 1) / epsilon, less with delta > 0
                     laplace      sqrt(k) times that
                     gaussian     stddev 2 L sqrt(w + 1) / mu, exact
        paper        k-norm       (L + H D) (w + 1) / epsilon
                     gaussian     stddev sqrt 8 (L + H D) (w + 1) ln(2 / delta) / epsilon

    A window of T - 1 rounds or more never ends: the tree, and the ledger, are then the ordinary
    ones. Printed scales are certified as what they are: where H D < L the K-norm one falls short,
    for L + H D, the Lipschitz constant of a surrogate, is not how far a gradient moves. `mode` None
    follows the calibration: "lazy" trees for "certified", the paper's "exact" ones for "paper".
    """

    window: Count | None = 256
    """rounds for which a user is protected, >= 1; if None, the problem's `retention`"""
    mode: Literal["exact", "lazy"] | None = None
    """"lazy" trees or, as in the paper, "exact" ones; if None, as the calibration"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the least noise for the claim, "paper" the printed noise, whatever its
    epsilon"""
    curvature: Positive | None = None
    """H; if None, the loss's own, or that of the regulariser, see `leaders.curvature_of`"""

    def check(self) -> None:
        super().check()
        if self.calibration == "paper" and self.noise == "laplace":
            raise InputError("Expected calibration='paper' with k-norm or gaussian noise.")

    def begin(self) -> None:
        self.H = self.curvature or curvature_of(self.loss, self.spec.horizon, epsilon=self.epsilon)
        self.W = window_on(self.spec, self.window)
        self.lasting = self.spec.horizon - 1 <= self.W
        super().begin()

    def gradient_sums(self, statistic: ClippedVectors) -> PrefixSum:
        mode = self.mode or ("exact" if self.calibration == "paper" else "lazy")
        process: Factorisation = Tree() if self.lasting else Window(self.W, lazy=mode == "lazy")
        T = self.spec.horizon
        if self.calibration == "paper":
            multiplier = self.printed_scale() / statistic.sensitivity
        else:
            multiplier = least_multiplier(
                process,
                horizon=T,
                refresh_every=1,
                epsilon=self.epsilon,
                delta=self.delta or 0.0,
                law=self.noise,
                dim=prod(statistic.shape),
            )
        return noisy_prefix_sum(
            process,
            statistic,
            self.streams,
            horizon=T,
            refresh_every=1,
            noise_multiplier=multiplier,
            law=self.noise,
        )

    def promise(self) -> Ledger:
        notion = Notion(window=None if self.lasting else self.W)
        return ledger_of(self.epsilon, self.sums.spend, notion=notion)

    def printed_scale(self) -> float:
        """Of a node's noise, in the paper."""
        steep = self.loss.lipschitz + self.H * self.domain.diameter
        scale = steep * Window(self.W).nodes()
        if self.noise == "gaussian":
            scale *= sqrt(8) * log(2 / (self.delta or 1.0))
        return scale / self.epsilon


class WDPCOCOP(GradientLeader, Expiring):
    """PFTAL that protects only a window of recent users; its noise does not grow with T.

    Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
    privacy expiration", WI-IAT 2020, Algorithm 1::

        x_1 = c0, the centre; for t = 1..T:
          1. play x_t
          2. g_t = P_V gradient f_t(x_t), clipped to norm L
          3. v_t = g_1 + ... + g_t + n_t               through one sum on a window tree
          4. x_{t+1} = nearest point of C to  mean(x_1..x_t) - v_t / (H t)

    On quadratics `(H/2) |x - z_t|^2` step 4 is the projection of mean(z_1..z_t) - n_t / (H t).
    Losses without curvature are regularised as in `PFTAL`: c0 in place of the mean.

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
        calibration="paper" is it in 1 and 4, rule="printed" in 2.

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

    rule: Literal["corrected", "printed"] = "corrected"
    """line 3 as corrected here, or as printed"""

    def first_leader(self) -> Leader:
        # Step 4
        if self.rule == "printed":
            return PrintedLeader(self.domain, self.R, self.H)
        return leader_of(self.loss, self.R, curvature=self.H)


class PrintedLeader(Leader):
    """Line 3 of the paper to the letter: no mean, a sum."""

    def __init__(self, domain: Domain, replicas: int, curvature: float) -> None:
        super().__init__(domain, replicas, curvature=curvature, anchored=True)
        self._total = np.zeros((replicas, domain.dim))

    def follow(self, taken: Floats, total: Floats) -> None:
        # The nearest point to sum(x_1..x_t) - v_t / H
        self._total = self._total + taken
        q = self._total - self._domain.embedded(total / self._curvature)
        self.point = nearest(self._domain, q, self.point).point


@dataclass(frozen=True)
class Printed:
    """The paper's constants."""

    alpha: float
    weight: float
    """C0"""
    length: float
    """r_t = length / kappa_t"""

    def radius(self, moved: Floats, kappa: float, gap: Floats) -> Floats:
        """r_t, (R,)."""
        return np.full(len(gap), self.length / kappa)


class Certified:
    """The radius that contains the leader, from public numbers, for a weight C0 of x_1 of one.

    H_t >= h_t = J_t(x_t) - min J_t holds on every run: a step by alpha = 1 / (2 rho^2) towards an
    answer within rho r_t leaves (1 - 1/(4 rho^2)) H_t, and J_t - J_{t-1} is `(H/2) |x - x_t|^2` and
    a linear function of slope `moved`, so h_t <= that + moved sqrt(2 h_t / kappa_t).
    """

    weight = 1.0

    def __init__(self, diameter: float, rho: float, replicas: int) -> None:
        self.alpha, self._diameter = 1 / (2 * rho**2), diameter
        self._left = 1 - 1 / (4 * rho**2)
        self.bound = np.zeros(replicas)
        """H_t, (R,)"""

    def radius(self, moved: Floats, kappa: float, gap: Floats) -> Floats:
        """r_t (R,), for the length `moved` of J's new slope, (R,), and the gap at x_t, (R,)."""
        b = moved * sqrt(2 / kappa)
        bound = ((b + np.sqrt(b**2 + 4 * self._left * self.bound)) / 2) ** 2
        self.bound = np.minimum(bound, np.maximum(gap, 0.0))
        return np.minimum(self._diameter, np.sqrt(2 * self.bound / kappa))


Steps = Printed | Certified


class WDPCOCOL(Expiring):
    """Follow noisy gradient sums by a local linear oracle; protect a window of recent users.

    Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
    privacy expiration", WI-IAT 2020, Algorithm 2. With kappa_t = H (t + C0) and::

        J_t(x) = <v_t, x> + (H/2) (|x - a_1|^2 + .. + |x - a_t|^2) + (C0 H / 2) |x - x_1|^2:

        x_1, the oracle's start (the centre); for t = 1..T:
          1. play x_t;  g_t = P_V gradient f_t(x_t), clipped to norm L
          2. v_t = g_1 + ... + g_t + n_t                through one sum on a window tree
          3. p = the local oracle at x_t, radius r_t, for the gradient of J_t at x_t
          4. x_{t+1} = x_t + alpha (p - x_t)

    Anchors a_t are where gradients were taken, for losses without curvature the centre, with H as
    in `PFTAL`. What is left to gain, h_t = J_t(x_t) - min J_t, is at most H_t, known to all::

        b_t = |v_t - v_{t-1} + H (x_t - a_t)| sqrt(2 / kappa_t),    v_0 = 0,  C0 = 1
        H_t = ((b_t + sqrt(b_t^2 + 4 (1 - 1/(4 rho^2)) H_{t-1})) / 2)^2,  or the gap of Frank and
              Wolfe, max <gradient J_t(x_t), x_t - y>, where that is less
        r_t = min(D, sqrt(2 H_t / kappa_t)),    alpha = 1 / (2 rho^2), rho the oracle's

    Guarantee:
        WINDOW DP, not ordinary DP: that of `WDPCOCOP`; all but v_t is public.

    **Regret** for H-strongly convex losses: that of `WDPCOCOP`, and L sum of sqrt(2 H_t / kappa_t)
    for not being the leader, of order rho^2 L ln T / H times a gradient's length, and C0 H D^2 / 2.

    Differs from the paper:
        1. Line 7 prints sum(x) + C0 x_1 - v_t for the gradient: its sign is wrong and H (t + C0)
           x_t is missing.
        2. Radius and alpha are certified, see above, by our proof. parameters="paper" has rho = c
           sqrt N, alpha = 1 / (5 rho^2), C0 = (25 rho^2)^2 and, with C1 = 26 rho^2 (L + H D) (1 +
           C_W), r_t^2 = (2 C1 / (H (t + C0)))^2 + (2 (L + H D) / (H (t + C0)))^2, where the second
           square is missing in print: C0 = 62,500 on a simplex of 10, which hardly moves for as
           many rounds; calibration="paper" brings it.
        3. Noise as in `WDPCOCOP`.
        4. There is no local oracle for spectrahedra, which the paper names.
        5. step="line-search" goes to the least J_t between x_t and p: the proof allows it, but it
           follows the noise.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Simplex
    >>> from dpbandit.losses import Quadratic
    >>> spec = ConvexSpec(loss=Quadratic(Simplex(5)), feedback="datum", horizon=1024)
    >>> certify(WDPCOCOL(epsilon=1.0, window=100), spec).ledger.brief
    'window-DP, last 100'
    """

    parameters: Literal["certified", "paper"] | None = None
    """parameters of the steps; if None, those of the calibration"""
    step: Literal["fixed", "line-search"] = "fixed"
    """length of a step, as proved or by line search"""
    geometry: Positive | None = None
    """mu of a polytope, see `local_oracles`; as c in the printed rho, 1 if None"""
    failure: Inside01 = 0.05
    """beta in the printed C_W"""
    oracle = cast(LocalOracle, None)
    steps = cast(Steps, None)

    def check(self) -> None:
        super().check()
        if self.by_paper and self.noise == "laplace":
            raise InputError("Expected parameters='paper' with k-norm or gaussian noise.")

    @property
    def by_paper(self) -> bool:
        """Whether steps are those of the paper."""
        return (self.parameters or self.calibration) == "paper"

    def begin(self) -> None:
        self.oracle = local_oracle(self.domain, self.R, geometry=self.geometry)
        super().begin()

    def prepare(self) -> None:
        # Start where the oracle does.
        #
        # What is remembered, sums that were released, points and bounds made of them, is public
        self.steps = Certified(self.domain.diameter, self.oracle.rho, self.R)
        if self.by_paper:
            self.steps = self.printed_steps()
        self.first = self.point = np.tile(self.oracle.start, (self.R, 1))
        self.anchors = self.steps.weight * self.point  # a_1 + .. + a_t + C0 x_1
        self.released: Floats = np.zeros((self.R, self.domain.affine_dim))  # v_{t-1}
        self.rounds = 0

    def follow(self, taken: Floats, total: Floats) -> None:
        # Steps 3 and 4
        anchor = taken if self.loss.curvature else self.first
        domain, H, x = self.domain, self.H, self.point
        self.rounds += 1
        kappa = H * (self.rounds + self.steps.weight)
        self.anchors = self.anchors + anchor
        gradient = domain.embedded(total) + (kappa * x - H * self.anchors)
        change = total - self.released + H * domain.coordinates(x - anchor)
        self.released = total
        gap = np.vecdot(gradient, x - domain.lowest(gradient))
        radius = self.steps.radius(np.sqrt(np.vecdot(change, change)), kappa, gap)
        proposal = self.oracle.propose(x, radius, gradient)
        towards = proposal.point - x
        share = np.full(len(x), self.steps.alpha)
        if self.step == "line-search":
            share = least_along(towards, gradient, kappa)
        self.oracle.accept(proposal, share)
        self.point = x + share[:, None] * towards

    def printed_steps(self) -> Printed:
        """Alpha, C0 and r_t of the paper."""
        N, rho = self.domain.dim, (self.geometry or 1.0) * sqrt(self.domain.dim)
        alpha = 1 / (5 * rho**2)
        growth = N * log(N / self.failure)
        if self.noise == "gaussian":
            growth = sqrt(N) * log(1 / self.failure)
        noisy = 2 * alpha * growth * log2(self.W) ** 1.5 / ((1 - alpha) * self.epsilon)
        steep = self.loss.lipschitz + self.H * self.domain.diameter
        width = 26 * rho**2 * steep * (1 + noisy)
        return Printed(alpha, (25 * rho**2) ** 2, 2 * sqrt(width**2 + steep**2))
