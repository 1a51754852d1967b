"""Agents with window privacy, which protects recent users only, and an agent without privacy.

`Expiring`, the base class of the two algorithms of Lou and Cheung, has sums on a window tree.
"""

from dataclasses import dataclass
from math import log, log2, sqrt
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
from dpbandit.privacy import ClippedVectors, Ledger, Tree, Window, ledger_of
from dpbandit.privacy.notion import Notion
from dpbandit.specs import ConvexSpec


def window_on(spec: ConvexSpec, window: int | None) -> int:
    """Return `window`, or the problem's retention period if it is None.

    Raises:
        InputError: both are None, or the window is shorter than the retention period.
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
    """Return the step in [0, 1], (R,), along `towards` that minimises a quadratic objective."""
    square = kappa * np.vecdot(towards, towards)
    best = -np.vecdot(gradient, towards) / np.where(square > 0, square, 1.0)
    return np.clip(best, 0.0, 1.0)


class OnlineConditionalGradient(Gradients):
    """Take a Frank-Wolfe step each round: the counterpart of WDP-COCOL without privacy.

    Hazan and Kale, "Projection-free online learning", ICML 2012, online Frank-Wolfe; with the line
    search of Wan and Zhang, "Projection-free online learning over strongly convex sets", AAAI
    2021::

        x_1 = c0, the centre of the domain C; for t = 1..T:
          1. play x_t;  v_t = v_{t-1} + gradient f_t(x_t) on the span of C, clipped to norm L
          2. y = argmin <gradient J_t(x_t), y> over C             the linear oracle
          3. x_{t+1} = x_t + s (y - x_t), s in [0, 1] where J_t is least

    with J_t(x) = `<v_t, x> + (H/2) (|x - x_1|^2 + .. + |x - x_t|^2)` for H-strongly convex losses,
    `<v_t, x> + (2 L T^(3/4) / D) |x - x_1|^2` for others, D the diameter of C.

    Guarantee:
        None: exact data reaches later actions.

    **Regret** is of order L D T^(3/4), or T^(2/3) for strongly convex losses, for every adversary.
    `FTAL` has ln T, but needs a projection in each round, not a single vertex.

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
    """strong convexity of losses; if None, the loss's own"""

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
    """Base class of agents with noisy gradient sums that protect a user for `window` rounds.

    `privacy.factors.Window` is the process, with W = `window` rounded up to 2^w. A gradient,
    clipped to the Lipschitz constant L, is in at most w + 1 nodes, and moves by at most 2 L if a
    datum is replaced. In k dimensions, with curvature H and diameter D::

        calibration  noise        scale of a node
        certified    k-norm       2 L (w + 1) / epsilon, less with delta > 0
                     laplace      sqrt(k) times the scale of k-norm
                     gaussian     stddev 2 L sqrt(w + 1) / mu, exact
        paper        k-norm       (L + H D) (w + 1) / epsilon
                     gaussian     stddev sqrt 8 (L + H D) (w + 1) ln(2 / delta) / epsilon

    A window of T - 1 rounds or more never ends: then tree and ledger have no window. The paper's
    scales are certified at their true cost: if H D < L the K-norm scale is too small, because a
    gradient moves by 2 L, not by L + H D, which is a surrogate's Lipschitz constant. With `mode`
    None "certified" has "lazy" trees, and "paper" the paper's "exact" trees.
    """

    window: Count | None = 256
    """rounds for which a user is protected, >= 1; if None, the problem's `retention`"""
    mode: Literal["exact", "lazy"] | None = None
    """"lazy" trees, or "exact" ones as in the paper; if None, by `calibration`"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""
    curvature: Positive | None = None
    """curvature of surrogates; if None, by `leaders.curvature_of`, from loss or regulariser"""

    def check(self) -> None:
        super().check()
        if self.calibration == "paper" and self.noise == "laplace":
            raise InputError("Expected calibration='paper' with k-norm or gaussian noise.")

    def begin(self) -> None:
        self.H = self.curvature or curvature_of(self.loss, self.spec.horizon, epsilon=self.epsilon)
        self.W = window_on(self.spec, self.window)
        self.lasting = self.spec.horizon - 1 <= self.W
        mode = self.mode or ("exact" if self.calibration == "paper" else "lazy")
        self.process = Tree() if self.lasting else Window(self.W, lazy=mode == "lazy")
        super().begin()

    def promise(self) -> Ledger:
        notion = Notion(window=None if self.lasting else self.W)
        return ledger_of(self.epsilon, self.sums.spend, notion=notion)

    def printed_multiplier(self, statistic: ClippedVectors) -> float:
        steep = self.loss.lipschitz + self.H * self.domain.diameter
        scale = steep * Window(self.W).nodes()
        if self.noise == "gaussian":
            scale *= sqrt(8) * log(2 / (self.delta or 1.0))
        return scale / self.epsilon / statistic.sensitivity


class WDPCOCOP(GradientLeader, Expiring):
    """PFTAL that protects only a window of recent users, with noise that does not grow over time.

    Lou and Cheung, "Projection-free online empirical risk minimization with privacy-preserving and
    privacy expiration", WI-IAT 2020, Algorithm 1::

        x_1 = c0, the centre of the domain C; for t = 1..T:
          1. play x_t
          2. g_t = gradient f_t(x_t) on the span of C, clipped to the Lipschitz constant L
          3. v_t = g_1 + ... + g_t + n_t               through one sum on a window tree
          4. x_{t+1} = nearest point of C to  mean(x_1..x_t) - v_t / (H t)

    H is the losses' curvature. On quadratics `(H/2) |x - z_t|^2` step 4 is the projection of
    mean(z_1..z_t) - n_t / (H t). Losses without curvature are regularised as in `PFTAL`.

    Guarantee:
        WINDOW DP, not ordinary DP: for every T', the points released up to T' are (epsilon,
        delta)-DP for replacing the datum of one of the last `window` rounds. Later points may
        reveal an older datum completely. Given the points one g_t moves by at most 2 L, is in at
        most log2(W) + 1 noisy nodes, W = `window` rounded up to a power of two, and in no exact sum
        before round t + W. A window of T - 1 or more makes this `PFTAL`, bit for bit, with ordinary
        DP.

    **Regret** for H-strongly convex losses is on every run, with D the diameter of C, at most::

        sum of  L min(D, |n_{t-1}| / (H (t-1))) + (L + min(H D, |n_{t-1}| / (t-1)))^2 / (2 H t),

    with n_0 = 0, which is of order ln T, where `PFTAL` has ln^2.5 T. For independent quadratics
    noise costs only sum of E|n_t|^2 / (2 H t^2), bounded in T.

    Differs from the paper:
        Items 1 and 4 do not apply with calibration="paper", nor item 2 with rule="printed".

        1. The paper's scales have L + H D for the sensitivity 2 L of a gradient: K-norm noise
           ("Gamma") then costs 2 L / (L + H D) epsilon, more than epsilon if H D < L; the paper's
           Gaussian noise is 8 to 25 times too large.
        2. The paper's line 3 has the nearest point to sum(x_1..x_t) - v_t / H, without factor 1/t.
        3. The window holds at every prefix; at the horizon alone it would protect only the last
           users.
        4. mode="lazy" adds less noise than "exact", the paper's.
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
    """formula of step 4; "printed" is the paper's line 3"""

    def first_leader(self) -> Leader:
        # Step 4
        if self.rule == "printed":
            return PrintedLeader(self.domain, self.R, self.H)
        return leader_of(self.loss, self.R, curvature=self.H)


class PrintedLeader(Leader):
    """Leader as in line 3 of the paper, which prints a sum of points in place of their mean."""

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
    """Steps of `WDPCOCOL` with the constants of the paper."""

    alpha: float
    """step size"""
    weight: float
    """weight of the first point among the anchors"""
    length: float
    """factor of the local oracle's radius, which is `length` / the objective's curvature"""

    def radius(self, moved: Floats, kappa: float, gap: Floats) -> Floats:
        """Return the local oracle's radius, (R,), for an objective of curvature `kappa`."""
        return np.full(len(gap), self.length / kappa)


class Certified:
    """Steps of `WDPCOCOL` for C0 = 1; a ball of its radius is proved to contain the minimiser.

    J_t is the objective of round t, of curvature kappa_t, x_t the point, H_t the `bound` on h_t =
    J_t(x_t) - min J_t, r_t the radius. On every run H_t >= h_t: the oracle's point is within rho
    r_t of x_t, and a step of size alpha = 1 / (2 rho^2) towards it reduces H_t to (1 - 1/(4 rho^2))
    H_t; J_t - J_{t-1} is `(H/2) |x - x_t|^2`, H the losses' curvature, plus a linear function with
    a slope of norm `moved`, which adds at most moved sqrt(2 h_t / kappa_t).
    """

    weight = 1.0

    def __init__(self, diameter: float, rho: float, replicas: int) -> None:
        self.alpha, self._diameter = 1 / (2 * rho**2), diameter
        self._left = 1 - 1 / (4 * rho**2)
        self.bound = np.zeros(replicas)
        """bound on the objective at the point minus its minimum, (R,)"""

    def radius(self, moved: Floats, kappa: float, gap: Floats) -> Floats:
        """Return the radius, given the norm of a new slope and the Frank-Wolfe gap, all (R,)."""
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
          1. play x_t;  g_t = gradient f_t(x_t) on the domain's span, clipped to norm L
          2. v_t = g_1 + ... + g_t + n_t                through one sum on a window tree
          3. p = the local oracle at x_t, radius r_t, for the gradient of J_t at x_t
          4. x_{t+1} = x_t + alpha (p - x_t)

    Anchors a_t are the points of the gradients, or for losses without curvature the centre, with H
    as in `PFTAL`. The suboptimality h_t = J_t(x_t) - min J_t is at most the public H_t::

        b_t = |v_t - v_{t-1} + H (x_t - a_t)| sqrt(2 / kappa_t),    v_0 = 0,  C0 = 1
        H_t = ((b_t + sqrt(b_t^2 + 4 (1 - 1/(4 rho^2)) H_{t-1})) / 2)^2,  or the Frank-Wolfe gap,
              max <gradient J_t(x_t), x_t - y>, if smaller
        r_t = min(D, sqrt(2 H_t / kappa_t)),    alpha = 1 / (2 rho^2), |p - x_t| <= rho r_t

    Guarantee:
        WINDOW DP, not ordinary DP, as for `WDPCOCOP`; data enter only the sums v_t.

    **Regret** for H-strongly convex losses is at most the bound of `WDPCOCOP`, plus C0 H D^2 / 2,
    plus L sum of sqrt(2 H_t / kappa_t), the points' distance to the leaders, of order rho^2 L ln T
    / H times a gradient's norm.

    Differs from the paper:
        1. The paper's line 7 has sum(x) + C0 x_1 - v_t as the gradient: its sign is wrong, and
           H (t + C0) x_t is missing.
        2. Radius and alpha are certified, see above, by our proof. parameters="paper", implied by
           calibration="paper", has rho = c sqrt N, c the polytope's constant `geometry`, alpha =
           1 / (5 rho^2), C0 = (25 rho^2)^2 and, with C_W for noise and C1 = 26 rho^2 (L + H D) (1 +
           C_W), r_t^2 = (2 C1 / (H (t + C0)))^2 + (2 (L + H D) / (H (t + C0)))^2, where the paper
           omits the second square: C0 = 62,500 on a simplex of 10, where points hardly move for as
           many rounds.
        3. Noise has the sensitivity 2 L of a gradient, not L + H D, as in `WDPCOCOP`.
        4. There is no local oracle for the paper's spectrahedra.
        5. step="line-search" minimises J_t between x_t and p: the proof allows it, but the points
           follow the noise.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Simplex
    >>> from dpbandit.losses import Quadratic
    >>> spec = ConvexSpec(loss=Quadratic(Simplex(5)), feedback="datum", horizon=1024)
    >>> certify(WDPCOCOL(epsilon=1.0, window=100), spec).ledger.brief
    'window-DP, last 100'
    """

    parameters: Literal["certified", "paper"] | None = None
    """parameters of the steps; if None, by `calibration`"""
    step: Literal["fixed", "line-search"] = "fixed"
    """step size, fixed or by line search"""
    geometry: Positive | None = None
    """polytope's constant for `local_oracle`; if None, the domain's own, and 1 for the paper's"""
    failure: Inside01 = 0.05
    """failure probability of the bound on noise in the paper's radius"""
    oracle = cast(LocalOracle, None)
    steps = cast(Steps, None)

    def check(self) -> None:
        super().check()
        if self.by_paper and self.noise == "laplace":
            raise InputError("Expected parameters='paper' with k-norm or gaussian noise.")

    @property
    def by_paper(self) -> bool:
        """True if steps have the paper's parameters."""
        return (self.parameters or self.calibration) == "paper"

    def begin(self) -> None:
        self.oracle = local_oracle(self.domain, self.R, geometry=self.geometry)
        super().begin()

    def prepare(self) -> None:
        # Start where the oracle does; all state is made of released sums, hence public
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
        """Return the paper's step size, weight of the first point and radius."""
        N, rho = self.domain.dim, (self.geometry or 1.0) * sqrt(self.domain.dim)
        alpha = 1 / (5 * rho**2)
        growth = N * log(N / self.failure)
        if self.noise == "gaussian":
            growth = sqrt(N) * log(1 / self.failure)
        noisy = 2 * alpha * growth * log2(self.W) ** 1.5 / ((1 - alpha) * self.epsilon)
        steep = self.loss.lipschitz + self.H * self.domain.diameter
        width = 26 * rho**2 * steep * (1 + noisy)
        return Printed(alpha, (25 * rho**2) ** 2, 2 * sqrt(width**2 + steep**2))
