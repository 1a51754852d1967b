"""WDP-COCOL: window DP by local linear oracles, one short step a round and no projection."""

from dataclasses import dataclass
from math import log, log2, sqrt
from typing import Literal

from dpbandit.agents.convex.expiring import Calibration, ExpiringSums, window_on
from dpbandit.agents.convex.leaders import Resting, curvature_of, with_gradients
from dpbandit.agents.convex.local_steps import Certified, LocalFollower, Printed, Steps
from dpbandit.base.inputs import InputError, inside, one_of, positive
from dpbandit.base.random_streams import Streams
from dpbandit.domains.local_oracles import local_oracle
from dpbandit.losses.loss import Loss
from dpbandit.privacy.sums.processes import NoiseLaw
from dpbandit.privacy.sums.window_tree import Mode
from dpbandit.specs.protocols import Spec


@dataclass(frozen=True, kw_only=True)
class WDPCOCOL:
    """A step towards the leader of noisy gradient sums, as far as a local linear oracle knows it.

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

    Code:
        Step 1 is `LocalFollower.act` (local_steps.py), its gradient `slope` (leaders.py), step 2
        `LocalFollower.update`, steps 3 and 4 are `LocalFollower._follow`, H_t is
        `Certified.radius`.

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
    """of the noise"""
    parameters: Literal["certified", "paper"] | None = None
    """of the steps; if None, as the calibration"""
    step: Literal["fixed", "line-search"] = "fixed"
    """length of a step, as proved or to the least of the model"""
    geometry: float | None = None
    """mu of a polytope, see `local_oracles`; as c in the printed rho, 1 if None"""
    failure: float = 0.05
    """beta in the printed C_W"""
    curvature: float | None = None
    """H; if None, the loss's own, or that of the regulariser, see `leaders.curvature_of`"""

    def __post_init__(self) -> None:
        if self.parameters is not None:
            one_of("parameters", self.parameters, ("certified", "paper"))
        one_of("step", self.step, ("fixed", "line-search"))
        inside("failure", self.failure, 0, 1, ends=False)
        for name in ("geometry", "curvature"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        sums = self._sums(1 if self.window is None else self.window)
        object.__setattr__(self, "delta", sums.delta)
        object.__setattr__(self, "noise", sums.noise)
        if self._parameters == "paper" and self.noise == "laplace":
            raise InputError("Expected parameters='paper' with k-norm or gaussian noise.")

    def make(self, spec: Spec, streams: Streams) -> LocalFollower | Resting:
        """A running agent; raises `InputError` for domains without a local oracle."""
        spec = with_gradients(self, spec)
        loss, T, R = spec.loss, spec.horizon, len(streams)
        if loss.lipschitz == 0:  # every point is as good as any
            return Resting(loss.domain, R)
        oracle = local_oracle(loss.domain, R, geometry=self.geometry)
        curvature = self.curvature or curvature_of(loss, T, epsilon=self.epsilon)
        window = window_on(spec, self.window)
        sums = self._sums(window).make(loss, curvature, streams, horizon=T)
        steps: Steps = Certified(loss.domain.diameter, oracle.rho, R)
        if self._parameters == "paper":
            steps = self._printed(loss, curvature, window)
        return LocalFollower(
            loss,
            sums,
            oracle,
            steps,
            self._sums(window).ledger(sums, horizon=T),
            replicas=R,
            curvature=curvature,
            search=self.step == "line-search",
        )

    @property
    def _parameters(self) -> str:
        return self.calibration if self.parameters is None else self.parameters

    def _printed(self, loss: Loss, curvature: float, window: int) -> Printed:
        N, rho = loss.domain.dim, (self.geometry or 1.0) * sqrt(loss.domain.dim)
        alpha = 1 / (5 * rho**2)
        growth = N * log(N / self.failure)
        if self.noise == "gaussian":
            growth = sqrt(N) * log(1 / self.failure)
        noisy = 2 * alpha * growth * log2(window) ** 1.5 / ((1 - alpha) * self.epsilon)
        steep = loss.lipschitz + curvature * loss.domain.diameter
        width = 26 * rho**2 * steep * (1 + noisy)
        return Printed(alpha, (25 * rho**2) ** 2, 2 * sqrt(width**2 + steep**2))

    def _sums(self, window: int) -> ExpiringSums:
        return ExpiringSums(
            epsilon=self.epsilon,
            delta=self.delta,
            noise=self.noise,
            window=window,
            mode=self.mode,
            calibration=self.calibration,
        )
