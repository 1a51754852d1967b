"""Leaders of losses whose curvature is public: the mean slope is all that has to be learned.

Linear and quadratic losses, and the revenue of linear demand, have the form::

    f(x; z) = <g(z), y> + <y, Q y> / 2 + s(z),      y = x - c0, c0 the centre of the domain C,

with a public matrix Q (`Loss.quadratic`). The point that is best for all users depends on their
data through the mean of the slopes g(z) alone. So rounds are cut into growing batches, each with
one noisy sum, which may cost the whole budget, as a user is in one batch::

    rounds     1 .. n  |  n + 1 .. 3 n  |  3 n + 1 .. 7 n  |  ..
    plays      c0      |  best(g_1)     |  best(g_1, g_2)  |  ..
    releases          g_1              g_2                g_3

`SlopeLeader` observes data; `slope_bandit.SlopeBandit` observes values and has to explore.
"""

from math import ceil, sqrt

import numpy as np

from dpbandit.agent import Delta, Epsilon, Points, started
from dpbandit.agents.convex.leaders import slope
from dpbandit.base import Floats, InputError, positive
from dpbandit.domains.projections import nearest
from dpbandit.losses.loss import Loss, minimise_quadratic
from dpbandit.privacy import (
    BatchSum,
    Gaussian,
    GaussianSpend,
    KNorm,
    Parallel,
    ledger_of,
    mu_of,
    no_data,
)
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.pure import KNormSpend


class Slopes:
    """Posterior of the mean slope in the domain's k coordinates, from releases, and best points.

    The prior is N(0, (B^2 / k) I), B the public bound on slopes.
    """

    def __init__(self, loss: Loss, replicas: int) -> None:
        # |g + Q y| <= L at y = r g / |g|, r the inner radius, is at least |g| + H r
        self.bound = loss.lipschitz - loss.curvature * loss.domain.inner_radius
        if not loss.quadratic or self.bound <= 0 or not (self.bound**2):  # which may underflow
            raise InputError(
                f"Expected losses of public curvature with private slopes, got {loss}: choose "
                "pftal or noisy-sgd where data are observed, private-bandit where values are."
            )
        positive("lipschitz - curvature x inner_radius", self.bound)
        self.domain, k = loss.domain, loss.domain.affine_dim
        self._full, basis = loss.hessian, loss.domain.basis
        self.form: Floats = self._full if basis is None else basis.T @ self._full @ basis
        even = self.form[0, 0] * np.eye(k)  # but for the rounding of `basis`
        self._even = np.allclose(self.form, even, rtol=0, atol=1e-12 * abs(self.form[0, 0]))
        self.precision: Floats = np.tile(k / self.bound**2 * np.eye(k), (replicas, 1, 1))
        self._moment: Floats = np.zeros((replicas, k))

    @property
    def mean(self) -> Floats:
        """Posterior mean of the slope, (R, k)."""
        return np.linalg.solve(self.precision, self._moment[..., None])[..., 0]

    def observe(self, directions: Floats, weights: Floats, slopes: Floats) -> None:
        """Add noisy slopes (R, D) along unit vectors (R, D, k), with their precisions (R, D)."""
        self.precision = self.with_precision(directions, weights)
        self._moment = self._moment + np.vecmat(weights * slopes, directions)

    def with_precision(self, directions: Floats, weights: Floats) -> Floats:
        """Return the precision (R, k, k) after slopes along `directions` are observed."""
        scaled = (weights[..., None] * directions).swapaxes(-1, -2)
        return self.precision + np.matmul(scaled, directions)

    def best(self, slope: Floats) -> Floats:
        """Return the points (n, N) that are best for mean slopes (n, k)."""
        domain, tilt = self.domain, self.domain.embedded(slope)
        if not self.form.any():
            return domain.lowest(tilt)
        start = np.tile(domain.centre, (len(slope), 1))
        if self._even:
            return nearest(domain, domain.centre - tilt / self.form[0, 0], start).point
        forms = np.broadcast_to(self._full, (len(slope), *self._full.shape))
        enough = np.full(len(slope), 1e-6 * self.bound * domain.outer_radius)
        return minimise_quadratic(domain, forms, -tilt, start, enough)[0]

    def loss(self, slope: Floats, x: Floats) -> Floats:
        """Return <g, y> + <y, Q y> / 2 for slopes g (..., k) at points x (..., N)."""
        y = self.domain.coordinates(x - self.domain.centre)
        return np.vecdot(slope + np.matvec(self.form, y) / 2, y)


class SlopeLeader(Points):
    """Follow the leader on noisy mean slopes of growing batches, each released with all of epsilon.

    Follow the leader by batches, for losses of public curvature (`Loss.quadratic`), such as linear
    and quadratic ones; the slope g(z) of a round is its gradient at the centre c0 of the domain::

        m = 0, x_1 = c0; public batches, each twice as long as the last; for t = 1..T:
          1. play x_t
          2. G += g(z_t) on the span of C (k dimensions), clipped to its public bound B
          3. at the end of a batch of n rounds: release G + noise of variance v in a coordinate,
             G <- 0, m <- mean of all batches' slopes, which weigh n^2 / (v + n B^2 / k), and of 0,
             which weighs k / B^2
          4. x_{t+1} = argmin over C of  <m, y> + <y, Q y> / 2,   y = x - c0

        first n = |noise| / B, in the root mean square;  B = L - H r, r the inner radius of C

    Guarantee:
        epsilon-DP of all points for replacing one round's datum, even if an adversary chooses later
        losses by them: a datum is in one sum, which it moves by at most 2 B and which is released
        once (parallel composition). Slopes are clipped to B: a loss that declares a wrong curvature
        or Lipschitz constant costs regret, not privacy. K-norm noise has scale 2 B / epsilon; at
        delta > 0 noise is Gaussian of stddev 2 B / mu if this has less variance, and the guarantee
        (epsilon, delta)-DP. Weights and points are post-processing.

    **Regret.** If data are independent over rounds, a batch's error is of the order of |noise| / n
    and B / sqrt n. Where the loss rises as the square of the error (curved losses; linear losses on
    a ball, if the mean slope is not 0), regret is |noise| / B rounds times a loss, plus order ln T.
    There is no bound against adversaries, who may reverse the slopes of all batches before in the
    next: then play `pftal`, whose bound holds on every run.

    >>> from dpbandit import certify
    >>> proof = certify(SlopeLeader(epsilon=1.0), "OnlineConvex")
    >>> round(proof.epsilon, 6), proof.ledger.delta(1.0)
    (1.0, 0.0)
    """

    epsilon: Epsilon = 1.0
    """target, > 0; inf plays without privacy"""
    delta: Delta = 0.0
    """target, in [0, 1); noise is K-norm, or Gaussian if this has less variance at delta"""
    slopes = started(Slopes)

    def fit(self) -> None:
        if not self.flat():
            self.slopes = Slopes(self.loss, self.R)

    def begin(self) -> None:
        k, B = self.domain.affine_dim, self.slopes.bound
        mu, ratio = mu_of(self.epsilon, self.delta), self.epsilon * (1 - 1e-12)  # for rounding
        law: KNorm | Gaussian = KNorm(2 * B / ratio)
        spend: KNormSpend | GaussianSpend = KNormSpend(
            k, ratio, note="slopes of batches, K-norm noise"
        )
        if mu**2 * (k + 1) > ratio**2:
            law, spend = Gaussian(2 * B / mu), GaussianSpend(mu, "slopes of batches")
        self.variance = law.variance(k)
        first = max(1, ceil(sqrt(k * self.variance) / B))
        ends = growing_batches(self.spec.horizon, first=first, growth=1.0)
        self.ledger = ledger_of(self.epsilon, Parallel((spend,)), without="exact slopes")
        if not ends:  # no batch is over before the last round
            self.resting, self.ledger = True, no_data()
        self.batches = [
            BatchSum(
                k,
                B,
                users=n,
                noise=law.sampler(self.streams.child(f"batch {i}"), "slopes", (k,)),
                spend=spend,
            )
            for i, n in enumerate(np.diff((0, *ends)).tolist())
        ]

    def learn(self, context: Floats, action: Floats, feedback: Floats) -> None:
        if not self.batches:
            return
        centre = np.broadcast_to(self.domain.centre, action.shape)
        total = self.batches[0](slope(self.loss, centre, feedback))
        if total is None:
            return
        n, k = self.batches.pop(0).uses, self.domain.affine_dim
        weight = n**2 / (self.variance + n * self.slopes.bound**2 / k)
        axes = np.broadcast_to(np.eye(k), (self.R, k, k))
        self.slopes.observe(axes, np.full(total.shape, weight), total / n)
        self.point = self.slopes.best(self.slopes.mean)
