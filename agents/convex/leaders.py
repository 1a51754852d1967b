"""Follow the approximate leader: minimise simple surrogates of all losses so far.

The surrogate of round s is `<g_s, w> + (H/2) |w - a_s|^2` with slope g_s, anchor a_s and curvature
H. Whatever the slopes are, the sum of t surrogates is least on the domain C at::

    w = the nearest point of C to  mean(a_1..a_t) - v_t / (H t),      v_t = g_1 + ... + g_t,

so the sum v_t, exact or noisy, is the only statistic of the data::

    losses               anchor a_s                     the surrogate
    H-strongly convex    w_s, where g_s was taken       touches the loss from below
    convex               c0, the centre of C            is its tangent + (H/2) |w - c0|^2

`Leader` and the base classes come first, then the agents.
"""

import sys
from math import inf, log, log2, sqrt
from typing import Annotated, Literal, TypeAlias, cast

import numpy as np

from dpbandit.agent import Agent, Points, Positive, started
from dpbandit.agents.convex.one_point import Noise
from dpbandit.base import Floats, InputError, noise_target
from dpbandit.domains import Simplex
from dpbandit.domains.domain import Domain
from dpbandit.domains.projections import nearest
from dpbandit.losses.loss import Loss
from dpbandit.privacy import (
    ClippedVectors,
    Gaussian,
    GaussianSpend,
    KNorm,
    Laplace,
    Ledger,
    PrefixSum,
    PureSpend,
    Target,
    Tree,
    certified_sum,
    exact_prefix_sum,
    ledger_of,
    mu_of,
    no_data,
    no_privacy,
)
from dpbandit.privacy.calibrated import law_named, noisy_prefix_sum
from dpbandit.privacy.factors import Hybrid, factorisation
from dpbandit.privacy.prefix_sums import Factorisation, NoiseLaw, Padded
from dpbandit.privacy.spends import Spend
from dpbandit.specs import ConvexSpec

Law: TypeAlias = Annotated[NoiseLaw, lambda name, value: law_named(value)]


class Leader:
    """Minimiser of the sum of all surrogates; it stores its point and the mean anchor, both public.

    Args:
        domain: domain C, in whose coordinates sums are given; its centre is c0, its diameter D.
        replicas: number of replicas.
        curvature: curvature H of every surrogate.
        anchored: True to anchor surrogates where slopes are taken, False at the centre.
        start: weight of a surrogate `(start / 2) |w - c0|^2` before round 1, if not `anchored`.
        shrink: C is replaced by c0 + (1 - shrink) (C - c0).

    Without an exact projection the leader is approximate: Frank-Wolfe stops at a gap of 1e-6 D^2, a
    distance of D / 700, or after 10,000 steps.
    """

    def __init__(
        self,
        domain: Domain,
        replicas: int,
        *,
        curvature: float,
        anchored: bool,
        start: float = 0.0,
        shrink: float = 0.0,
    ) -> None:
        self._domain, self._curvature, self._anchored = domain, curvature, anchored
        self._start, self._shrink = start, shrink
        self._rounds = 0
        self._mean = self.point = np.tile(domain.centre, (replicas, 1))

    def follow(self, taken: Floats, total: Floats) -> None:
        """Add the surrogate of a round, and move `point` to the minimiser.

        Args:
            taken: point at which the slope was taken, (R, N).
            total: sum of all slopes so far in the domain's k coordinates, (R, k).
        """
        self._rounds += 1
        if self._anchored:
            self._mean = self._mean + (taken - self._mean) / self._rounds
        step = self._domain.embedded(total / (self._start + self._curvature * self._rounds))
        q = self._mean - step
        self.point = nearest(self._domain, q, self.point, shrink=self._shrink).point


class Entropic(Leader):
    """Leader on a simplex, regularised by negative entropy."""

    def __init__(self, domain: Domain, replicas: int, rate: float) -> None:
        super().__init__(domain, replicas, curvature=0.0, anchored=False, start=1 / rate)
        self._rate = rate

    def follow(self, taken: Floats, total: Floats) -> None:
        score = -self._rate * self._domain.embedded(total)
        weight = np.exp(score - score.max(axis=-1, keepdims=True))
        self.point = weight / weight.sum(axis=-1, keepdims=True)


def slope(loss: Loss, point: Floats, datum: Floats) -> Floats:
    """Return the gradient (R, k) in the k coordinates of the domain's span, not yet clipped."""
    with np.errstate(over="ignore", invalid="ignore"):  # data may be anything before the clip
        return loss.domain.coordinates(loss.gradient(point, datum))


def gradients(loss: Loss) -> ClippedVectors:
    """Return the statistic of gradients in coordinates, clipped to the loss's Lipschitz bound."""
    return ClippedVectors(loss.domain.affine_dim, loss.lipschitz)


def leader_of(loss: Loss, replicas: int, *, curvature: float) -> Leader:
    """Return a leader anchored at the played points if the loss is curved, else at the centre."""
    anchored = loss.curvature > 0
    return Leader(loss.domain, replicas, curvature=curvature, anchored=anchored)


def curvature_of(loss: Loss, horizon: int, *, epsilon: float = inf) -> float:
    """Return the curvature of the loss, or if it is 0 the weight of a regulariser::

        max( (L/R) sqrt(ln T / T),  (L/D) sqrt(k ln^2.5 T / (epsilon T)) )

    for Lipschitz constant L and a domain of radius R, diameter D and dimension k. The first term
    balances regret without privacy, the second the noise of a private sum.
    """
    if loss.curvature > 0:
        return loss.curvature
    domain, L, T = loss.domain, loss.lipschitz, max(2, horizon)
    plain = L / domain.outer_radius * sqrt(log(T) / T)
    private = L / domain.diameter * sqrt(domain.affine_dim * log(T) ** 2.5 / (epsilon * T))
    return max(plain, private)


class Gradients(Points):
    """Base class of agents that learn from sums of gradients, exact or noisy."""

    sums = started(PrefixSum)

    def begin(self) -> None:
        self.sums = self.gradient_sums(gradients(self.loss))
        self.ledger = self.promise()
        self.prepare()

    def gradient_sums(self, statistic: ClippedVectors) -> PrefixSum:
        """Return the mechanism that sums the gradients."""
        return exact_prefix_sum(statistic, horizon=self.spec.horizon, refresh_every=1)

    def promise(self) -> Ledger:
        """Return the ledger of the gradient sums."""
        return no_privacy("exact gradient sums")

    def prepare(self) -> None:
        """Set up the state that `follow` updates."""

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        total = self.sums(slope(self.loss, action, feedback))
        if total is not None:
            self.follow(action, total)

    def follow(self, taken: Floats, total: Floats) -> None:
        """Move the point, given the sum (R, k) of gradients; the last is at `taken` (R, N)."""
        raise NotImplementedError


class GradientLeader(Gradients):
    """Base class of agents that play the `Leader` of the gradient sums."""

    leader = started(Leader)

    def prepare(self) -> None:
        self.leader = self.first_leader()

    def first_leader(self) -> Leader:
        """Return the leader before round 1."""
        raise NotImplementedError

    def follow(self, taken: Floats, total: Floats) -> None:
        self.leader.follow(taken, total)
        self.point = self.leader.point


class PrivateGradients(Gradients):
    """Base class of agents with noisy gradient sums."""

    epsilon: float = 1.0
    """target, > 0; inf plays without privacy"""
    delta: float | None = None
    """target, in [0, 1); if None, 1e-6 with Gaussian noise, else 0. If delta > 0, trees have the
    least noise whose privacy loss distribution meets the target"""
    noise: Law = "k-norm"
    """one of "k-norm" (also called "gamma"), "laplace" and "gaussian" noise"""
    process = cast(Factorisation, Tree())
    """factorisation of the prefix sums, by default a binary tree"""
    calibration = "certified"

    def check(self) -> None:
        object.__setattr__(self, "noise", law_named(self.noise))
        noise_target(self)

    def gradient_sums(self, statistic: ClippedVectors) -> PrefixSum:
        T, delta = self.spec.horizon, self.delta or 0.0
        if self.calibration == "certified":
            target = Target(self.epsilon, delta, T, refresh_every=1)
            return certified_sum(self.process, statistic, self.streams, target, law=self.noise)
        return noisy_prefix_sum(
            self.process,
            statistic,
            self.streams,
            horizon=T,
            refresh_every=1,
            noise_multiplier=self.printed_multiplier(statistic),
            law=self.noise,
        )

    def printed_multiplier(self, statistic: ClippedVectors) -> float:
        """Return the scale of a node's noise as printed in the paper, over the sensitivity."""
        raise NotImplementedError

    def promise(self) -> Ledger:
        return ledger_of(self.epsilon, self.sums.spend)


class PrivateLeader(GradientLeader, PrivateGradients):
    """Base class of agents that play the leader of noisy gradient sums."""

    def spread(self, loss: Loss, horizon: int) -> float:
        """Return sqrt E|noise|^2 of the sum of all gradients but the last, the last sum used."""
        noise = Noise(law=self.noise, epsilon=self.epsilon, delta=self.delta or 0.0)
        return noise.spread(gradients(loss), horizon - 1)

    def regularised(self, strength: float) -> Leader:
        """Return the leader of linear losses with a regulariser of this weight at the centre."""
        return Leader(self.domain, self.R, curvature=0.0, anchored=False, start=strength)


class Centre(Agent[ConvexSpec]):
    """Play the centre of the domain in every round.

    For curved losses it loses far less than uniformly random points, by Jensen's inequality.

    Guarantee:
        Epsilon 0: no user's data is looked at.

    >>> import numpy as np
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(2)), horizon=100)
    >>> from dpbandit.base.random_streams import Streams
    >>> Centre().make(spec, Streams([0])).act(np.zeros((1, 1)))
    array([[0., 0.]])
    """

    plays = ConvexSpec

    def start(self) -> None:
        self.ledger = no_data()
        self.point = np.tile(self.spec.loss.domain.centre, (self.R, 1))

    def act(self, context: Floats) -> Floats:
        return self.point

    def update(self, context: Floats, action: Floats, feedback: Floats) -> None: ...


class FTAL(GradientLeader):
    """Follow the approximate leader: PFTAL without noise.

    Hazan, Agarwal and Kale, "Logarithmic regret algorithms for online convex optimization",
    Machine Learning 2007, for strongly convex losses: the leader of quadratic lower bounds::

        w_1 = c0, the centre of the domain C; for t = 1..T:
          1. play w_t;  z_t = gradient f_t(w_t) on the span of C, clipped to Lipschitz constant L
          2. w_{t+1} = nearest point of C to  mean(w_1..w_t) - (z_1 + ... + z_t) / (H t)

    While step 2 needs no projection it is w_t - z_t / (H t), online gradient descent. Losses
    without curvature are regularised: c0 in place of the mean, and H by `curvature_of`.

    Guarantee:
        None: exact data reaches later actions.

    **Regret** of H-strongly convex losses: at most L^2 / (2 H) (1 + ln T), for every adversary.

    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> import numpy as np
    >>> spec = ConvexSpec(loss=Linear(Ball(2)), feedback="datum", horizon=100)
    >>> from dpbandit.base.random_streams import Streams
    >>> agent = FTAL(curvature=0.5).make(spec, Streams([0]))
    >>> agent.update(np.zeros((1, 2)), agent.act(np.zeros((1, 2))), np.array([[0.25, 0.0]]))
    >>> agent.act(np.zeros((1, 2)))
    array([[-0.5,  0. ]])
    """

    curvature: Positive | None = None
    """curvature H of surrogates; if None, by `curvature_of`, from the loss or a regulariser"""

    def first_leader(self) -> Leader:
        # Step 2
        H = self.curvature or curvature_of(self.loss, self.spec.horizon)
        return leader_of(self.loss, self.R, curvature=H)


class PFTAL(PrivateLeader):
    """Follow the approximate leader on noisy running sums of gradients.

    Smith and Thakurta, "(Nearly) optimal algorithms for private online learning in
    full-information and bandit settings", NIPS 2013, Algorithm 1::

        w_1 = c0, the centre of the domain C; for t = 1..T:
          1. play w_t
          2. z_t = gradient f_t(w_t) on the span of C (k dimensions), clipped to Lipschitz bound L
          3. v_t = z_1 + ... + z_t + noise                   through one tree sum
          4. w_{t+1} = nearest point of C to  mean(w_1..w_t) - v_t / (H t)

    H is the losses' curvature. Losses without curvature are regularised, `f + (H/2) |w - c0|^2`:
    the regulariser's gradient is public and cancels in step 4, where c0 replaces the mean.

    Guarantee:
        (epsilon, delta)-DP of all points w_1, w_2, .. for replacing one round's datum, even if an
        adversary chooses later losses by them: given the points, one z_t moves by at most 2 L, and
        lies in at most h = bit_length(T-1) nodes of the tree (z_T reaches no point). K-norm noise
        of scale 2 L h / epsilon and Laplace noise of sqrt(k) times this scale have delta = 0; with
        delta > 0 scales are the least that their privacy loss distribution allows. Gaussian noise
        of stddev 2 L sqrt(h) / mu is exact. `anytime` noise has the guarantee at every horizon;
        steps 1 to 4 then depend on T through the regulariser's H alone.

    **Regret** for H-strongly convex losses. Let B_t be the noise in v_t, D the diameter, d_1 = 0,
    d_t = `min(D, |B_{t-1}| / (H (t-1)))`, e_t = min(d_t, L / H). On every run regret is at most::

        sum of  L e_t - (H/2) e_t^2 + (L + H d_t)^2 / (2 H t),

    of order k L^2 ln^2.5 T / (epsilon H) with K-norm noise, against all adversaries. With a
    regulariser it is of order L D sqrt(k T ln^2.5 T / epsilon) for the default H.

    Differs from the paper:
        Item 1 does not apply with calibration="paper".

        1. The paper's K-norm scale, L log2(T) / epsilon as we read it (the text prints an order),
           is too small: replacing a datum moves a gradient by 2 L, so that the cost is 2 epsilon
           or more, as the certificate shows.
        2. The tree's root and right children need no noise, and none is drawn.
        3. The regularised H is proportional to sqrt(k ln^2.5 T / (epsilon T)) / D, as in the
           paper's introduction; its Section 2 prints k ln^2.5 T / (epsilon sqrt T).
        4. Laplace and Gaussian noise and anytime sums are additions.
        5. Gradients are clipped, whatever the data.
        6. prefix_sums="gradual" is an addition, see `privacy.gradual.Gradual`.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.convex import ConvexSpec
    >>> from dpbandit.domains import Ball
    >>> from dpbandit.losses import Linear
    >>> spec = ConvexSpec(loss=Linear(Ball(5)), feedback="datum", horizon=1024)
    >>> round(certify(PFTAL(epsilon=1.0), spec).epsilon, 6)
    1.0
    >>> round(certify(PFTAL(epsilon=1.0, calibration="paper"), spec).epsilon, 6)
    2.0
    """

    calibration: Literal["certified", "paper"] = "certified"
    """"certified" is the smallest noise that meets epsilon and delta, "paper" the noise that the
    paper prints, whatever epsilon it meets"""
    anytime: bool = False
    """True for a hybrid tree, with the same privacy at every horizon and some more noise; laws that
    are not Gaussian then meet epsilon at delta = 0"""
    prefix_sums: Literal["tree", "gradual"] = "tree"
    """mechanism that releases running sums; "gradual" has laplace or gaussian noise"""
    curvature: Positive | None = None
    """curvature H of surrogates; if None, by `curvature_of`, from the loss or a regulariser"""

    def check(self) -> None:
        super().check()
        tree = self.prefix_sums == "tree" and not self.anytime
        if self.calibration == "paper" and (self.noise != "k-norm" or not tree):
            raise InputError("Expected calibration='paper' only with k-norm noise on a tree.")
        if self.prefix_sums == "gradual" and (self.noise == "k-norm" or self.anytime):
            raise InputError(
                "Expected prefix_sums='gradual' with laplace or gaussian noise and without anytime,"
                f" got noise={self.noise!r} and anytime={self.anytime}."
            )

    def begin(self) -> None:
        self.process = factorisation(self.prefix_sums)
        super().begin()

    def first_leader(self) -> Leader:
        # Step 4
        H = self.curvature or curvature_of(self.loss, self.spec.horizon, epsilon=self.epsilon)
        return leader_of(self.loss, self.R, curvature=H)

    def gradient_sums(self, statistic: ClippedVectors) -> PrefixSum:
        # Step 3
        if self.anytime:
            return self._hybrid(statistic)
        return super().gradient_sums(statistic)

    def printed_multiplier(self, statistic: ClippedVectors) -> float:
        # scale L log2(T) / epsilon over the sensitivity 2 L
        return log2(self.spec.horizon) / (2 * self.epsilon)

    def _hybrid(self, statistic: ClippedVectors) -> PrefixSum:
        """Return prefix sums for any horizon; the hybrid tree's noise grows with its depth."""
        k, sensitivity = statistic.dim, statistic.sensitivity
        law: Gaussian | Laplace | KNorm
        norm: Literal[1, 2] = 1
        epsilon = self.epsilon * (1 - 1e-12)  # for the rounding of sums
        spend: Spend = PureSpend.of(f"hybrid tree sum, {self.noise} releases", [epsilon])
        if self.noise == "gaussian":
            mu = mu_of(self.epsilon, self.delta or 0.0)
            law, norm = Gaussian(sensitivity / mu), 2
            spend = GaussianSpend(mu, "hybrid tree sum, Gaussian releases")
        elif self.noise == "laplace":
            law = Laplace(sensitivity * sqrt(k) / epsilon)
        else:
            law = KNorm(sensitivity / epsilon)
        node = law.sampler(self.streams, "hybrid noise", statistic.shape)
        noise = Hybrid(norm).of(node, stddev=sqrt(law.variance(k)))
        return PrefixSum(statistic, noise, spend, horizon=sys.maxsize)


class LinearFTRL(PrivateLeader):
    """Follow the regularised leader on sums of linear losses; every sum has noise of the same law.

    Agarwal and Singh, "The price of differential privacy for online learning", ICML 2017, with
    the Euclidean regulariser::

        w_1 = c0, the centre of the domain C, of radius R and diameter D; for t = 1..T:
          1. play w_t;  z_t = gradient of f_t on the span of C, clipped to the Lipschitz constant L
          2. v_t = z_1 + ... + z_t + noise                     through one padded tree
          3. w_{t+1} = nearest point of C to  c0 - eta v_t,    eta = R / (L sqrt T)

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one round's datum, as for `PFTAL`: padding
        is post-processing.

    **Regret** against an adversary that fixes linear losses in advance: the noise B of every v_t
    has the same law, so the regret is the regret of a leader of perturbed losses, at most::

        R L sqrt T + D E|B|     in expectation,

    so noise adds to regret once, not in every round. Adaptive adversaries are not covered, and
    curved losses are refused.

    Differs from the paper:
        Regulariser and eta are Euclidean, and noise is calibrated to replacing a datum (2 L).

    >>> from dpbandit import certify
    >>> proof = certify(LinearFTRL(epsilon=1.0), "OnlineConvex", env_kwargs={"loss": "linear"})
    >>> round(proof.epsilon, 6)
    1.0
    """

    rate: Positive | None = None
    """step size; if None, radius of the domain / (Lipschitz constant x sqrt T)"""
    process = cast(Factorisation, Padded())

    def fit(self) -> None:
        if self.loss.smoothness != 0:
            name = type(self.loss).__name__
            raise InputError(f"LinearFTRL plays linear losses, got {name}: choose pftal instead.")

    def first_leader(self) -> Leader:
        # Step 3
        L, T = self.loss.lipschitz, self.spec.horizon
        return self.regularised(1 / (self.rate or self.domain.outer_radius / (L * sqrt(T))))


class DPFTRL(PrivateLeader):
    """Follow the regularised leader on gradient sums that a noisy tree releases.

    Kairouz, McMahan, Song, Thakkar, Thakurta and Xu, "Practical and private (deep) learning without
    sampling or shuffling", ICML 2021; tuned as in Asi, Feldman, Koren and Talwar, "Near-optimal
    algorithms for private online optimization in the realizable regime", ICML 2023, Algorithm 3::

        v_0 = 0; for t = 1..T:
          1. play x_t = nearest point of the domain C to  c0 - v_{t-1} / lambda, c0 its centre
          2. g_t = gradient l_t(x_t) on the span S of C, clipped to the Lipschitz constant L
          3. v_t = g_1 + ... + g_t + b_t                    through one tree sum

    With smoothness beta of losses, radius R of C and V >= E|b_t|^2, which is h k times a node's
    variance in one of k coordinates, with h = bit_length(T-1) nodes to a leaf::

        tuning        lambda
        "certified"   max(4 beta, (8 beta T V / R^2)^(1/3))
        "paper"       32 beta + ((beta / epsilon^2) (L/R)^2 T k ln T ln(1/delta))^(1/3)
        "general"     sqrt(T (L^2 + 2 L sqrt V)) / R
        a number      the number

    Guarantee:
        (epsilon, delta)-DP of all points for replacing one round's datum, even if losses depend on
        earlier points: given the points, one g_t moves by at most 2 L and lies in at most h nodes;
        g_T reaches no point. Gaussian noise is exact, K-norm and Laplace noise as in `PFTAL`.

    **Regret** in expectation, L* the total loss of the best point in hindsight::

        lambda >= 4 beta    at most  L* + 4 beta T V / lambda^2 + lambda R^2
        "general"           at most  R sqrt(T (L^2 + 2 L sqrt V)),      for any convex losses.

    The first, of order T^(1/3) if L* = 0, is for data fixed in advance and losses that are
    beta-smooth and non-negative on ALL of c0 + S, so that `|gradient|^2 <= 2 beta l`.

    Differs from the paper:
        1. Non-negativity on the domain, as in the paper, is not enough: l_t(x) = 1 - <x, e_1> on
           the unit ball is smooth for every beta > 0 and 0 at e_1, but at beta = 1/T, T = 10^4,
           epsilon = 1, delta = 10^-6 the regret is 210 in 10 dimensions and 500 in 50, not
           O(lambda) = O(11) and O(19). So losses with a smoothness of 0 or negative values are
           refused where lambda is made from beta.
        2. E|b_t|^2 grows like ln^2 T, not ln T.
        3. Noise is exact, gradients are clipped, and the tuning "certified" is ours.
        4. The domain need not be around 0.

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

    noise: Law = "gaussian"
    """distribution of the noise"""
    tuning: Literal["certified", "paper", "general"] | Positive | None = None
    """weight of the regulariser, or rule for it; if None, "certified" if possible, or "general" """

    def check(self) -> None:
        super().check()
        if self.tuning == "paper" and self.delta == 0 and self.epsilon < inf:
            raise InputError("Expected delta > 0 with tuning='paper', whose lambda grows with it.")

    def first_leader(self) -> Leader:
        # Step 1
        return self.regularised(self.strength(self.spec))

    def strength(self, spec: ConvexSpec) -> float:
        """Return the weight of the regulariser for a problem."""
        if not isinstance(self.tuning, str | None):
            return self.tuning
        loss, T, R = spec.loss, spec.horizon, spec.loss.domain.outer_radius
        L, beta, k = loss.lipschitz, loss.smoothness, loss.domain.affine_dim
        if self._tuning(loss) == "paper":
            nats = log(T) * log(1 / self.delta) if self.delta else 0.0
            return 32 * beta + (beta / self.epsilon**2 * (L / R) ** 2 * T * k * nats) ** (1 / 3)
        spread = self.spread(loss, T)  # sqrt V
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


class NoisyOCO(PrivateLeader):
    """Dual averaging: apply a mirror map to noisy sums of gradients.

    Ene, Nguyen and Vladu, "Projection-free bandit optimization with privacy guarantees", AAAI
    2021, Algorithm 2, with gradients of observed data and a tree as its noisy map::

        s_0 = 0; for t = 1..T:
          1. play x_t = argmin over the domain C of  eta <s_{t-1}, x> + w(x)
          2. g_t = gradient f_t(x_t) on the span of C, clipped to the Lipschitz constant L
          3. s_t = g_1 + ... + g_t + noise                         through one tree sum

        map          w(x)                       D_w^2 = max w    x_t
        euclidean    |x - centre|^2 / 2         R^2 / 2          nearest to centre - eta s_{t-1}
        entropic     sum x_i ln x_i + ln N      ln N             softmax of -eta s_{t-1}, simplex

        eta = D_w / (kappa sqrt T),  kappa >= the dual norm of a gradient (l_2, max norm), R radius

    Guarantee:
        epsilon-DP (k-norm, laplace) or (epsilon, delta)-DP (gaussian, or any with delta > 0) of all
        points for replacing one round's datum, even if losses depend on earlier points: given the
        points, one g_t moves by at most 2 L and lies in at most bit_length(T-1) nodes; g_T reaches
        no point.

    **Regret** is at most D_w^2 / eta + eta T (kappa^2 / 2 + kappa E|noise|), with the dual norm of
    a prefix sum's noise; parameters="tuned" minimises this bound.

    Differs from the paper:
        1. eta has D_w in place of the paper's D_w^(1/2), and s_t adds to s_{t-1}, not to itself.
        2. Noise is calibrated to replacing a datum and to the exact count of nodes.
        3. Noise lies in the affine hull of the domain; the softmax ignores any other part.

    >>> from dpbandit import certify
    >>> proof = certify(NoisyOCO(epsilon=1.0), "OnlineConvex", env_kwargs={"loss": "linear"})
    >>> round(proof.epsilon, 6)
    1.0
    """

    map: Literal["euclidean", "entropic"] = "euclidean"
    """mirror map of the points, Euclidean or entropic"""
    parameters: Literal["paper", "tuned"] = "paper"
    """"paper" for the paper's step size, "tuned" for the least regret bound with noise"""
    gradient_bound: Positive | None = None
    """bound on gradients' dual norm, for utility only; if None, the losses' Lipschitz constant"""
    eta: Positive | None = None
    """step size; if None, by `parameters`"""

    def fit(self) -> None:
        if self.map == "entropic" and not isinstance(self.domain, Simplex):
            raise InputError(f"Expected map='entropic' only on a simplex, got {self.domain}.")

    def first_leader(self) -> Leader:
        # Step 1
        rate = self.rate(self.loss, self.spec.horizon)
        if self.map == "entropic":
            return Entropic(self.domain, self.R, rate)
        return self.regularised(1 / rate)

    def rate(self, loss: Loss, horizon: int) -> float:
        """Return the step size for a loss."""
        if self.eta is not None:
            return self.eta
        kappa, domain = self.gradient_bound or loss.lipschitz, loss.domain
        width = sqrt(log(domain.dim)) if self.map == "entropic" else domain.outer_radius / sqrt(2)
        if self.parameters == "paper":
            return width / (kappa * sqrt(horizon))
        spread = self.spread(loss, horizon)
        return width / sqrt(horizon * kappa * (kappa / 2 + spread))
