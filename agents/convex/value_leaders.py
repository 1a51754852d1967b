"""Follow-the-leader agents with values as feedback, by one-point gradient estimates.

With u_t uniform on the unit sphere of R^k, k the dimension of the domain C, which Q maps into the
span of C; c0 the centre of C and r its inner radius::

    x_t = w_t + beta Q u_t
    q_t = (k / beta) f_t(x_t) u_t       an unbiased gradient, at w_t, of f_t smoothed by a ball of
                                        radius beta
    w_t in C' = c0 + (1 - beta / r) (C - c0), so that x_t is in C
"""

from dataclasses import dataclass, replace
from math import log, log2, sqrt
from typing import Literal, cast

import numpy as np

from dpbandit.agent import Points, Positive, started
from dpbandit.agents.convex.leaders import Leader
from dpbandit.agents.convex.one_point import (
    MAX_SHRINK,
    Directions,
    Exploration,
    Noise,
    Offset,
    Sums,
    estimates_of,
    minimiser,
    with_values,
)
from dpbandit.base import Floats, InputError, inside, noise_target
from dpbandit.losses.loss import Loss
from dpbandit.privacy.batches import OnePointEstimates
from dpbandit.specs import Spec


@dataclass(frozen=True, kw_only=True)
class ValuePlan:
    """Public parameters of a run of a `ValueLeader`."""

    beta: float
    """radius of exploration"""
    curvature: float
    """curvature H of every surrogate"""
    leaves: int
    """number of values that can reach a point, which is the number of rounds - 1"""
    estimates: OnePointEstimates
    loss: Loss
    noise: Noise

    @property
    def regret_bound(self) -> float:
        """Bound on the expected regret against losses that do not depend on the points, about::

            T beta L (2 + R/r) + sum of L d_t + (G + H d_t)^2 / (2 H t)      [+ H T R^2 / 2]

        with L the Lipschitz constant, R and r the domain's radii, G the norm of an estimate, d_t =
        min(diameter, noise / (H t)) the leader's shift by noise, and H curvature; the last term is
        for a regulariser. An integral approximates the sum.
        """
        domain, L, H, T = self.loss.domain, self.loss.lipschitz, self.curvature, self.leaves + 1
        R, ratio = domain.outer_radius, domain.outer_radius / domain.inner_radius
        t = np.geomspace(1, T, 400)
        d = np.minimum(domain.diameter, self.noise.spread(self.estimates, self.leaves) / (H * t))
        G = self.noise.length(self.estimates)
        leader = float(np.trapezoid((L * d + (G + H * d) ** 2 / (2 * H * t)) * t, np.log(t)))
        extra = 0.0 if self.loss.curvature else H * T * R**2 / 2
        return T * self.beta * L * (2 + ratio) + leader + extra


class ValueLeader(Points):
    """Base class of leaders with values as feedback, with exploration of radius r / 2 at most::

        beta         radius of exploration, in k dimensions
        oblivious    k T^(-1/3), as in the paper, or r / 2
        adaptive     k T^(-1/4), as in the paper, or r / 2
        tuned        the minimiser of `ValuePlan.regret_bound` with noise; r / 2, which has the
                     least noise, if that bound exceeds T L D, which bounds any regret
        noiseless    the minimiser of that bound without noise, or r / 2

    Losses without curvature are regularised with H = (k M / (beta R)) sqrt(ln T / T), M the largest
    `|value|`, or its root mean square with local noise. R and r are the outer and inner radius of
    the domain, L the Lipschitz constant and D the diameter. The radius "noiseless" is (k^2 M^2 ln T
    / (H L T q))^(1/3) with q = 2 + R/r, and sqrt(k M R sqrt(ln T / T) / (L q)) for losses without
    curvature. The paper's radii depend on the unit of length of the domain.
    """

    beta: Literal["oblivious", "adaptive", "tuned", "noiseless"] | Positive = "tuned"
    """rule for the radius of exploration, or a number below 0.999 x the domain's inner radius"""
    curvature: Positive | None = None
    """curvature of surrogates; if None, the loss's curvature, or the class's regulariser H"""
    offset: Offset | None = None
    """public number subtracted from values; if None, 0 if it is in their range, else its middle"""
    feedback = "value"
    leader = started(Leader)
    directions = started(Directions)
    sums = cast(Sums, None)

    def noise_of_sums(self) -> Noise:
        """Return the noise of the sums of estimates."""
        return Noise(law="none")

    def printed_noise(self, plan: ValuePlan) -> Noise:
        """Return the noise of a run, with the paper's scale if `calibration` is "paper"."""
        return plan.noise

    def fit(self) -> None:
        with_values(self, self.spec)

    def flat(self) -> bool:
        low, high = self.loss.value_range
        return super().flat() or low == high

    def plan(self, spec: Spec, noise: Noise | None = None) -> ValuePlan:
        """Return the public parameters of a run on `spec`, with `noise` if given."""
        spec = with_values(self, spec)
        return self.planned(spec.loss, spec.horizon, noise or self.noise_of_sums())

    def begin(self) -> None:
        plan = self.plan(self.spec)
        noise = self.printed_noise(plan)
        exploration = Exploration(self.domain, plan.beta)
        self.leader = Leader(
            self.domain,
            self.R,
            curvature=plan.curvature,
            anchored=self.loss.curvature > 0,
            shrink=exploration.xi,
        )
        self.sums = noise.sums(plan.estimates, self.streams, leaves=plan.leaves)
        self.directions = exploration.directions(self.streams)
        self.ledger, self.useful = noise.ledger(self.sums.spend), plan.leaves

    def act(self, context: Floats) -> Floats:
        return self.point if self.resting else self.leader.point + self.directions.step

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        if self.useful:
            self.useful -= 1
            total = self.sums(0.0 - feedback, self.directions.u)
            self.leader.follow(self.leader.point, cast(Floats, total))  # released in every round
        self.directions.advance()

    def planned(self, loss: Loss, horizon: int, noise: Noise) -> ValuePlan:
        """Return the public parameters of a run over `horizon` rounds with `noise`."""
        T, r = horizon, loss.domain.inner_radius

        def plan(beta: float, noise: Noise = noise) -> ValuePlan:
            estimates = estimates_of(loss, beta, self.offset)
            length = noise.length(estimates)
            regulariser = length / loss.domain.outer_radius * sqrt(log(max(2, T)) / T)
            return ValuePlan(
                beta=beta,
                curvature=self.curvature or loss.curvature or regulariser,
                leaves=T - 1,
                estimates=estimates,
                loss=loss,
                noise=noise,
            )

        if not isinstance(self.beta, str):
            inside("beta", self.beta, 0, MAX_SHRINK * r, ends=False)
            return plan(self.beta)
        if self.beta == "noiseless":
            free = Noise(law="none")
            return plan(minimiser(lambda beta: plan(beta, free).regret_bound, r / 2))
        if self.beta == "tuned":
            best = plan(minimiser(lambda beta: plan(beta).regret_bound, r / 2))
            informative = best.regret_bound < T * loss.lipschitz * loss.domain.diameter
            return best if informative else plan(r / 2)
        printed = loss.domain.affine_dim * T ** (-1 / 3 if self.beta == "oblivious" else -1 / 4)
        return plan(min(printed, r / 2))


class BanditFTAL(ValueLeader):
    """Follow the approximate leader on one-point estimates: BanditPFTAL without noise.

    Smith and Thakurta, "(Nearly) optimal algorithms for private online learning in
    full-information and bandit settings", NIPS 2013, Section 3.1, on the one-point estimates of
    Flaxman, Kalai and McMahan, SODA 2005::

        w_1 = c0, the centre of the domain C; C' = c0 + (1 - beta/r) (C - c0); for t = 1..T:
          1. draw u_t on the unit sphere of C's span, play x_t = w_t + beta u_t, see y_t = f_t(x_t)
          2. v_t += (k / beta) (clip(y_t) - offset) u_t
          3. w_{t+1} = nearest point of C' to  mean(w_1..w_t) - v_t / (H t)

    Losses without curvature are regularised: c0 in place of the mean. `ValueLeader` has beta and H.

    Guarantee:
        None: exact values reach later actions.

    **Expected regret** for losses fixed in advance, with G = k M / beta and the letters of
    `ValueLeader`, is at most::

        T beta L (2 + R/r) + G^2 / (2 H) (1 + ln T).

    >>> import numpy as np
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(2)), horizon=1000)
    >>> from dpbandit.base.random_streams import Streams
    >>> agent = BanditFTAL(beta=0.1).make(spec, Streams([0]))
    >>> x = agent.act(np.zeros((1, 1)))
    >>> round(float(np.linalg.norm(x)), 9)
    0.1
    """


class BanditPFTAL(ValueLeader):
    """Follow the approximate leader on noisy running sums of one-point gradient estimates.

    Smith and Thakurta, "(Nearly) optimal algorithms for private online learning in
    full-information and bandit settings", NIPS 2013, Sections 3.1 and 3.2::

        w_1 = c0, the centre of the domain C; C' = c0 + (1 - beta/r) (C - c0); for t = 1..T:
          1. draw u_t on the unit sphere of C's span, play x_t = w_t + beta u_t, see y_t = f_t(x_t)
          2. q_t = (k / beta) (clip(y_t) - offset) u_t
          3. v_t = q_1 + ... + q_t + noise                      through one tree sum
          4. w_{t+1} = nearest point of C' to  mean(w_1..w_t) - v_t / (H t)

    Losses without curvature are regularised: c0 in place of the mean. `ValueLeader` has beta and H.

    Guarantee:
        epsilon-DP (k-norm, laplace, local) or (epsilon, delta)-DP (gaussian) of all points for
        replacing one round's loss, if later losses depend on earlier points alone. Given the
        directions, which depend on no data, y_t moves one estimate by at most W k / beta in L2, W
        the range of values, and the estimate lies in at most h = bit_length(T-1) nodes of the tree:
        K-norm scale W k h / (beta epsilon), Laplace scale sqrt(k) times that, Gaussian stddev W k
        sqrt(h) / (beta mu). Local noise is Laplace(W / epsilon) on the value itself.

    **Expected regret** for losses fixed in advance, with the letters of `ValueLeader`, G = k M /
    beta, B_t the noise in v_t and d_t = `min(D, |B_{t-1}| / (H (t-1)))`, is at most::

        T beta L (2 + R/r) + sum of E[ L d_t + (G + H d_t)^2 / (2 H t) ],

    which is O~(k T^(2/3)) + O~(k T^(1/3) / epsilon) with the paper's beta: privacy adds
    a lower order. Losses that depend on earlier points add R sqrt(T) G. No one-point method
    survives losses that depend on x_t: their adversary knows u_t.

    Differs from the paper:
        Item 1 does not apply with calibration="paper".

        1. The paper's K-norm scale, k M log2(T) / (beta epsilon) as we read it (the text prints an
           order), is for replacing a value `|y| <= M` by 0; if values have both signs, one moves
           by W = 2 M.
        2. The paper states its bound against strongly adaptive adversaries, too; this is false, see
           above.
        3. beta is capped at r/2, else points would leave C. The paper's beta has no unit.
        4. Step 4 has the mean of the leaders w_s and not of the played points x_s, as we read
           equations (8) and (9); Algorithm 3, in a supplement, was not at hand.
        5. `tuned`, Laplace, Gaussian and local noise, and regularisation are additions.

    >>> from dpbandit import certify
    >>> round(certify(BanditPFTAL(epsilon=1.0), "ConvexBandit").epsilon, 6)
    1.0
    """

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in (0, 1) with Gaussian noise; if None, 1e-6 with Gaussian noise, and 0 with other
    laws, which then meet epsilon at delta = 0"""
    noise: Literal["k-norm", "laplace", "gaussian", "local"] = "k-norm"
    """distribution of the noise"""
    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""

    def check(self) -> None:
        noise_target(self)
        if self.calibration == "paper" and self.noise != "k-norm":
            raise InputError(
                f"Expected noise={self.noise!r} to be k-norm with calibration='paper'."
            )

    def noise_of_sums(self) -> Noise:
        return Noise(law=self.noise, epsilon=self.epsilon, delta=self.delta or 0.0)

    def printed_noise(self, plan: ValuePlan) -> Noise:
        if self.calibration != "paper":
            return plan.noise
        times = log2(self.spec.horizon) / self.epsilon
        return replace(plan.noise, printed=times * plan.estimates.bound)
