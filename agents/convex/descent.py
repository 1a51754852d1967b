"""Gradient descent with and without privacy, and follow-the-leader on squared losses.

Zinkevich's descent, and the two algorithms of Jain, Kothari and Thakurta (2012), which are older
than tree sums of gradients.
"""

from math import inf, sqrt
from typing import cast

import numpy as np

from dpbandit.agent import Points, Positive, PrivateAgent, started
from dpbandit.agents.convex.leaders import curvature_of, slope
from dpbandit.base import AnyArray, Floats, InputError, Streams, clip_norm
from dpbandit.domains import nearest
from dpbandit.losses import (
    Experts,
    Linear,
    Logistic,
    Loss,
    OffsetQuadratic,
    Quadratic,
    Ridge,
    Squared,
    TiltedQuadratic,
)
from dpbandit.privacy import (
    GaussianSpend,
    Mechanism,
    PrefixSum,
    SecondMoments,
    Target,
    Tree,
    certified_sum,
    ledger_of,
    mu_of,
    no_privacy,
)
from dpbandit.privacy.notion import Notion
from dpbandit.privacy.premises import SUMMED, Fact
from dpbandit.specs import ConvexSpec

VERIFIED = (
    Linear,
    Experts,
    Quadratic,
    TiltedQuadratic,
    OffsetQuadratic,
    Squared,
    Logistic,
    Ridge,
)
"""Loss families whose curvature and smoothness are tested for every admissible datum."""
# condition under which the guarantee of POCP holds
CONDITION = "every loss is as curved and as smooth as its family says, gradients are not clipped"


class OGD(Points):
    """Online gradient descent with projections.

    Zinkevich, "Online convex programming and generalized infinitesimal gradient ascent", ICML
    2003; the steps for strongly convex losses are from Hazan, Agarwal and Kale, Machine
    Learning 2007::

        w_1 = the centre of the domain C, of diameter D; for t = 1..T:
          1. play w_t;  z_t = gradient f_t(w_t) projected on the span of C, clipped to norm L
          2. w_{t+1} = nearest point of C to  w_t - eta_t z_t

        losses               eta_t              regret at most
        convex               D / (L sqrt t)     1.5 L D sqrt T
        H-strongly convex    1 / (H t)          L^2 / (2 H) (1 + ln T)

    The bounds hold for every adversary.

    Guarantee:
        None: exact data reaches later actions.

    Differs from the paper:
        Gradients are clipped to the public Lipschitz constant L, as for private agents.

    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> spec = ConvexSpec(loss=Linear(Ball(1)), feedback="datum", horizon=100)
    >>> agent = OGD().make(spec, Streams([0]))
    >>> agent.update(np.zeros((1, 1)), agent.act(np.zeros((1, 1))), np.array([[0.25]]))
    >>> agent.act(np.zeros((1, 1)))
    array([[-0.5]])
    """

    curvature: Positive | None = None
    """strong convexity H that step sizes assume; if None, the loss's own, which may be 0"""

    def begin(self) -> None:
        self.ledger, self.rounds = no_privacy("exact gradients"), 0
        self.H = self.curvature or self.loss.curvature

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        loss, domain, start = self.loss, self.domain, self.point
        self.rounds += 1
        rate = domain.diameter / (loss.lipschitz * sqrt(self.rounds))
        if self.H:
            rate = 1 / (self.H * self.rounds)
        z = clip_norm(slope(loss, action, feedback), loss.lipschitz)
        self.point = nearest(domain, start - domain.embedded(rate * z), start).point


class NoisyDescent(Mechanism):
    """Noisy points of regularised gradient descent with steps of size 1 / (mu (t + t0)).

    w_{t+1} = Proj(w_t - (gradient f_t(w_t) + H (w_t - c0)) / (mu (t + t0))), c0 the centre, and a
    release is Proj(w_{t+1} + s_t N(0, I)), s_t = noise_multiplier 2 L / (mu (t + t0)): H is the
    regulariser's weight, L the Lipschitz constant, mu = curvature + H, t0 = (smoothness + H) / mu.

    Guarantee:
        If all losses are mu-strongly convex and mu t0-smooth with the regulariser, then replacing
        one moves w_{t+1} by at most 2 L / (mu (t + t0)) from its round on: by this distance at
        once, and every later step, of size 1 / (mu (t + t0)) <= 1 / (mu t0), shrinks a distance
        by the factor (t + t0 - 1) / (t + t0). So all m releases are mu-GDP with sqrt(m) /
        noise_multiplier, also if later losses depend on earlier releases. A single loss without
        curvature breaks the proof, and so would clipping: data are moved into the admissible set,
        on which L holds, and only `VERIFIED` families are accepted.
    """

    # "If all losses are mu-strongly convex and mu t0-smooth with the regulariser"
    needs = SUMMED | {Fact.LOSS}

    def __init__(
        self,
        loss: Loss,
        streams: Streams,
        *,
        regulariser: float,
        noise_multiplier: float,
        horizon: int,
    ) -> None:
        domain = loss.domain
        if type(loss) not in VERIFIED or not domain.has_projection:
            raise InputError(
                f"The curvature of {type(loss).__name__} on {domain} is not verified, and privacy "
                "rests on it here: choose another agent or environment."
            )
        m, steep = horizon - 1, sqrt(horizon - 1)
        mu = (steep / noise_multiplier if noise_multiplier else inf) if m else 0.0
        self.spend = GaussianSpend(mu, f"{m} points of a descent, Gaussian noise")
        self.sensitivity, self.uses = 2 * loss.lipschitz, horizon
        self._loss, self._H, self._multiplier = loss, regulariser, noise_multiplier
        self._mu = loss.curvature + regulariser
        self._t0 = (loss.smoothness + regulariser) / self._mu
        self._normals = streams.normals("descent noise", domain.affine_dim)
        self._w = np.tile(domain.centre, (len(streams), 1))

    def query(self, *datum: AnyArray) -> Floats:
        z = self._loss.admissible(datum[0])
        centre = np.tile(self._loss.domain.centre, (len(z), 1))
        return self._loss.domain.coordinates(self._loss.gradient(centre, z))

    def _release(self, *datum: AnyArray) -> Floats | None:
        if self._used == self.uses:  # the last datum reaches no point
            return None
        loss, domain, w = self._loss, self._loss.domain, self._w
        gradient = domain.coordinates(loss.gradient(w, loss.admissible(datum[0])))
        slope = domain.embedded(gradient) + self._H * (w - domain.centre)
        pace = 1 / (self._mu * (self._used + self._t0))
        self._w = domain.project(w - pace * slope)
        noise = self._multiplier * self.sensitivity * pace * self._normals()
        return domain.project(self._w + domain.embedded(noise))


class POCP(PrivateAgent[ConvexSpec], Points):
    """Gradient descent that adds fresh noise to every released point, with regret of order sqrt T.

    After Jain, Kothari and Thakurta, "Differentially private online learning", COLT 2012, private
    online convex programming with gradient steps ("POCG" in later work)::

        w_1 = c0, the centre of the domain C; for t = 1..T:
          1. play w_t with noise of standard deviation s 2 L / (mu (t - 1 + t0)), projected; w_1
             has none; L is the Lipschitz constant
          2. w_{t+1} = nearest point of C to  w_t - (gradient f_t(w_t) + H (w_t - c0)) / (mu (t +
             t0))                                              through one mechanism

    mu is the curvature of the losses and H = 0, or, for losses without curvature, mu = H as in
    `PFTAL`; t0 = (smoothness + H) / mu.

    Guarantee:
        CONDITIONAL (epsilon, delta)-DP of all points for replacing one round's datum: exact with s
        = sqrt(T - 1) / mu_GDP, if EVERY loss is mu-strongly convex and mu t0-smooth, as steps then
        contract and a datum's effect fades, see `NoisyDescent`. No clip can enforce this: losses
        whose curvature is not verified are refused, and the ledger says "conditional".

    **Regret** for mu-strongly convex losses is at most that of descent, of order (L^2 / mu) ln T,
    plus L sum of E|noise|; together of order L^2 sqrt(k T) ln T / (mu mu_GDP) in k dimensions.

    Differs from the paper:
        1. Exact Gaussian DP in place of advanced composition; step sizes have t + t0 in place of t,
           else the first steps would not contract.
        2. Losses without curvature are regularised.

    >>> from dpbandit import certify
    >>> proof = certify(POCP(epsilon=1.0), "OnlineConvex", env_kwargs={"loss": "quadratic"})
    >>> round(proof.epsilon, 6), proof.ledger.brief
    (1.0, 'conditional')
    """

    delta: float = 1e-6
    """target, in (0, 1)"""
    curvature: Positive | None = None
    """weight of the regulariser for losses without curvature; if None, by `leaders.curvature_of`"""
    descent = started(NoisyDescent)

    def begin(self) -> None:
        loss, T = self.loss, self.spec.horizon
        regulariser = 0.0
        if not loss.curvature:
            regulariser = self.curvature or curvature_of(loss, T, epsilon=self.epsilon)
        self.descent = NoisyDescent(
            loss,
            self.streams,
            regulariser=regulariser,
            noise_multiplier=sqrt(T - 1) / mu_of(self.epsilon, self.delta),
            horizon=T,
        )
        notion, free = Notion(conditions=(CONDITION,)), "points without noise"
        self.ledger = ledger_of(self.epsilon, self.descent.spend, notion=notion, without=free)

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        # `feedback` is the datum, `(R, *datum_shape)`; only the latest release is stored
        release = self.descent(feedback)
        if release is not None:
            self.point = release


class PQFTL(PrivateAgent[ConvexSpec], Points):
    """Minimise the sum of squared losses so far, from noisy tree sums of their moments.

    After Jain, Kothari and Thakurta, "Differentially private online learning", COLT 2012, the
    quadratic follow-the-leader with logarithmic regret, for losses 1/2 (<a, y> - b)^2 + H/2
    `|y|^2` with features a, `|a| <= 1`, an answer b, `|b| <= B`, and y = x - c0::

        x_1 = c0, the centre of the domain C; for t = 1..T:
          1. play x_t
          2. V += a a', u += b a, both clipped, in coordinates of C      through one tree sum
          3. x_{t+1} = nearest point of C to  c0 + (t H I + V+)^-1 u,    V+ = V, eigenvalues >= 0

    `Squared` losses have no ridge: H is then as in `PFTAL`.

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one round's datum, whatever it is: (a a', b
        a / B) moves by at most sqrt(4.5) in l_2 (reached at a cosine of 1/2 of old and new a), and
        lies in at most bit_length(T-1) nodes; features and answers are clipped, so nothing rests on
        the losses. Exact, by Gaussian DP.

    Differs from the paper:
        1. Noise is exact, for the joint sensitivity.
        2. Noise on V is symmetric, and V is made positive semi-definite.
        3. C need not be around 0, and the bound of answers need not be 1.

    >>> from dpbandit import certify
    >>> round(certify(PQFTL(epsilon=1.0), "OnlineConvex", env_kwargs={"loss": "ridge"}).epsilon, 6)
    1.0
    """

    delta: float = 1e-6
    """target, in (0, 1)"""
    curvature: Positive | None = None
    """weight H of a ridge for losses without a ridge; if None, by `leaders.curvature_of`"""
    sums = started(PrefixSum)

    def fit(self) -> None:
        if type(self.loss) not in (Squared, Ridge):
            raise InputError(
                f"PQFTL plays squared losses, got {type(self.loss).__name__}: choose another agent "
                "or environment."
            )

    def begin(self) -> None:
        loss, T = cast(Squared, self.loss), self.spec.horizon
        self.H = loss.curvature or self.curvature or curvature_of(loss, T, epsilon=self.epsilon)
        self.statistic = SecondMoments(
            n_actions=1,
            dim=self.domain.affine_dim,
            layout="shared",
            reward_low=-loss.bound,
            reward_high=loss.bound,
        )
        target = Target(self.epsilon, self.delta, horizon=T, refresh_every=1)
        self.sums = certified_sum(Tree(), self.statistic, self.streams, target)
        self.ledger, self.rounds = ledger_of(self.epsilon, self.sums.spend), 0

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        # Feed features and answer, (R, N + 1); step 3
        with np.errstate(over="ignore", invalid="ignore"):  # the clip comes after it
            features = self.domain.coordinates(feedback[..., :-1])
        only = np.zeros(len(feedback), dtype=np.int64)
        released = self.sums(features[:, None], only, feedback[..., -1])
        if released is None:
            return
        self.rounds += 1
        gram, moment = self.statistic.unpack(released[:, 0])
        values, vectors = np.linalg.eigh(gram)
        values = np.maximum(values, 0.0) + self.rounds * self.H
        y = np.matvec(vectors, np.vecmat(moment, vectors) / values)
        q = self.domain.centre + self.domain.embedded(y)
        self.point = nearest(self.domain, q, self.point).point
