"""PrivateGLM: a private generalised linear model that is refitted a few times."""

from math import ceil, inf, log2, sqrt
from typing import Any

import numpy as np
import numpy.typing as npt

from dpbandit.agent import Arms, Positive, PrivateAgent
from dpbandit.base import Bools, Floats, InputError, Ints, clip_norm, clip_range, pick
from dpbandit.privacy import BLT, BudgetExceededError, GaussianSpend, Mechanism, ledger_of, mu_of
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.moments import Grams
from dpbandit.privacy.prefix_sums import leaves
from dpbandit.privacy.premises import SUMMED
from dpbandit.specs import LINKS, BanditSpec, ContextualSpec, Link, fits

_GRAM_SHARE = 0.2
"""Share of the squared budget mu^2 for the Gram matrix; the rest is for refits"""
_NEWTON_STEPS = 3
"""Number of Newton steps of a refit"""
_LEAST_EIGENVALUE = 0.3
"""Floor on eigenvalues of the shifted Gram matrix, in units of its noise's spectral norm"""
_BOUND_TOLERANCE = 1e-6
"""Ratio of lower to upper eigenvalue bound below which rounding makes the lower one unreliable"""


class PrivateGLM(PrivateAgent[ContextualSpec], Arms):
    """Play greedily on a generalised linear model, refitted when its Gram matrix has doubled.

    After Sarmasarkar, "Shuffle and joint differential privacy for generalized linear contextual
    bandits", arXiv 2602.00417 (2026), with noise by exact accounting. With zeta the inverse link,
    S a bound on `|theta|` and M = ceil(log2(T / first))::

          1. the first rounds: uniformly at random, until the first refit
          2. G = sum of x x', released every ceil(T / 100) rounds with noise of spectral norm Gamma:
             A = G + (Gamma + 1) I
          3. refit after the first rounds, then when the largest eigenvalue of A_last^-1 A exceeds
             2 (A_last at the last refit), at most M times; a refit is three steps on all rows:
                 theta <- theta - P^-1 (sum of (zeta(x . theta) - r) x + N(0, s^2 I)),
                 P = zeta'(0) A + s sqrt(d)/S I,  then |theta| <= S
          4. play argmax x_a . theta

    `first` is 8 sqrt(d) / mu, at least 30 and at most T / 10. The link is probit if that is the
    environment's, else logistic; rewards r are scaled to [0, 1], contexts to norm 1.

    Guarantee:
        (epsilon, delta)-joint DP under continual observation for replacing one user's round, and
        exactly mu-GDP: G is a Gaussian prefix sum of sensitivity sqrt(2), with a fifth of mu^2;
        when to refit is a function of G; each of at most 3 M steps adds N(0, s^2 I) to a sum that
        one row moves by at most 2, at a released parameter, s = 2 sqrt(3 M / .8) / mu. The number
        of rows is public. Actions of all other users are post-processing.

    Differs from the paper:
        1. No optimism: the bonus of its theory is larger than the signal at T = 10^4.
        2. No warm-up rounds, no elimination.
        3. Exact composition, and a public cap M on the number of refits.
        4. Newton steps on all rows, by the released Gram matrix, in place of tens of DP-SGD steps.
        5. An unweighted Gram matrix, from a BLT in place of a tree.

    **Worse than FADE.** Every refit uses all rows again, which multiplies the noise by sqrt(3 M), 4
    to 5, against 1.4 for a fading sum: `FADE` has less regret, although its linear model is wrong.

    >>> from dpbandit import certify
    >>> round(certify(PrivateGLM(epsilon=4.0), "Recommendation").epsilon, 6)
    4.0
    """

    parameter_norm: Positive = 4.0
    """bound S on `|theta|`, for contexts of norm 1"""

    def start(self) -> None:
        self.model = OneModel(self, self.spec)
        R, T, d, streams = self.R, self.spec.horizon, self.spec.dim, self.streams
        mu = inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)
        self.first = max(1, min(max(ceil(8 * sqrt(d) / mu), 30), T // 10))
        refits, every = max(1, ceil(log2(T / self.first))), ceil(T / 100)
        self.left = np.full(R, refits)
        self.statistic = Grams(dim=d)
        multiplier = BLT().column_norm(leaves(T, every)) / (sqrt(_GRAM_SHARE) * mu)
        self.grams = noisy_prefix_sum(
            BLT(),
            self.statistic,
            streams,
            horizon=T,
            refresh_every=every,
            noise_multiplier=multiplier,
        )
        self.refits = NewtonRefits(
            self.model.link,
            np.array(streams.normals("refit noise", refits, _NEWTON_STEPS, d).take(1)[0]),
            mu=sqrt(1 - _GRAM_SHARE) * mu,
            uses=T,
            norm=self.parameter_norm,
        )
        self.ledger = ledger_of(self.epsilon, self.grams.spend, self.refits.spend)
        self.uniforms = streams.uniforms("exploration")
        self.theta: Floats = np.zeros((R, d))
        # before the first release A is that of a Gram matrix of 0 with the noise of a release
        self.A, _ = self.shifted(np.zeros((R, *self.statistic.shape)), multiplier * sqrt(2))
        self.root = whitening(self.A)

    def act(self, context: Floats) -> Ints:
        # Arms (R,); at random before the first refit
        if self.round < self.first:
            return (self.uniforms() * self.spec.n_actions).astype(np.int64)
        return self.predictors(context).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        return self.model.reward(self.predictors(context))

    def predictors(self, context: Floats) -> Floats:
        """Return the linear predictors x . theta of all arms, (R, K)."""
        return np.matvec(self.model.rows(context), self.theta)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        x = pick(self.model.rows(context), action)
        refitting = np.full(len(x), self.round == self.first)
        release = self.grams(x)
        if release is not None:
            self.A, raw = self.shifted(release, self.grams.stddev)
            if self.round > self.first:
                refitting = outgrown(raw, self.root, 2.0)
        refitting &= self.left > 0
        P = self.model.link.largest_slope * self.A
        fitted = self.refits(x, self.model.share(feedback), refitting, self.theta, P)
        if fitted is not None:
            self.theta = fitted
            self.left = self.left - refitting
            self.root = np.where(refitting[:, None, None], whitening(self.A), self.root)

    def shifted(self, release: Floats, stddev: float) -> tuple[Floats, Floats]:
        """Return the shifted Gram matrix, (R, d, d), with and without a floor on eigenvalues."""
        d = self.spec.dim
        Gamma = 2 * sqrt(d) * stddev / sqrt(2)
        raw = self.statistic.unpack(release) + (Gamma + 1) * np.eye(d)
        return floored(raw, max(_LEAST_EIGENVALUE * Gamma, 1e-12)), raw


def eigenvalue_bounds(A: Floats) -> tuple[Floats, Floats]:
    """Return lower and upper bounds on the eigenvalues of symmetric A, (..., d, d) -> (...) each.

    They are m -+ s sqrt(d - 1), m the mean and s the standard deviation of the eigenvalues, from
    trace and Frobenius norm: Wolkowicz and Styan, "Bounds for eigenvalues using traces", Linear
    Algebra and its Applications 1980. In most rounds they make computing eigenvalues unnecessary.

    >>> low, high = eigenvalue_bounds(np.array([[2.0, 1.0], [1.0, 2.0]]))
    >>> round(float(low), 6), round(float(high), 6)
    (1.0, 3.0)
    """
    d = A.shape[-1]
    mean = np.asarray(np.trace(A, axis1=-2, axis2=-1)) / d
    rest = (A - mean[..., None, None] * np.eye(d)).reshape(*mean.shape, d * d)
    away = np.sqrt((1 - 1 / d) * np.vecdot(rest, rest))
    return mean - away, mean + away


def floored(A: Floats, least: float) -> Floats:
    """Return symmetric A, (R, ..., d, d), with eigenvalues raised to at least `least` > 0."""
    low, result = _doubtful(A, least), A.copy()
    if low.any():
        values, U = np.linalg.eigh(A[low])
        result[low] = (U * np.maximum(values, least)[:, None]) @ U.swapaxes(1, 2)
    return result


def floored_inverse(A: Floats, least: float) -> Floats:
    """Return the inverse of symmetric A, its eigenvalues first raised to at least `least` > 0."""
    low = _doubtful(A, least)
    result: Floats = np.linalg.inv(np.where(low[..., None, None], np.eye(A.shape[-1]), A))
    if low.any():
        values, U = np.linalg.eigh(A[low])
        result[low] = (U / np.maximum(values, least)[:, None]) @ U.swapaxes(1, 2)
    return result


def _doubtful(A: Floats, least: float) -> Bools:
    low, high = eigenvalue_bounds(A)
    return np.asarray(low <= np.maximum(least, _BOUND_TOLERANCE * high))


def whitening(B: Floats) -> Floats:
    """Return the inverse of the Cholesky factor of positive definite B, (R, d, d)."""
    return np.asarray(np.linalg.inv(np.linalg.cholesky(B)))


def outgrown(A: Floats, root: Floats, limit: float) -> Bools:
    """Return (R,), True if B^-1 A has an eigenvalue above `limit`; `root` is `whitening(B)`."""
    ratio = root @ A @ root.swapaxes(1, 2)
    above: Bools = np.asarray(eigenvalue_bounds(ratio)[1] > limit)
    if above.any():
        above[above] = np.linalg.eigvalsh(ratio[above])[:, -1] > limit
    return above


class OneModel:
    """Scaled problem, with rewards in [0, 1] and rows of norm at most 1.

    The mean reward is zeta(x . theta), zeta probit if the environment's link is, else logistic.
    """

    def __init__(self, config: object, spec: BanditSpec) -> None:
        self.spec = fits(config, spec, ContextualSpec, shared=True)
        if not self.spec.shared:
            raise InputError(
                f"{type(config).__name__} plays arms that share a parameter, got arms with their "
                "own: choose another agent or environment, such as fade."
            )
        self.link: Link = LINKS["probit" if self.spec.link == "probit" else "logistic"]

    def rows(self, context: Floats) -> Floats:
        """Return contexts (R, K, d) divided by their public bound."""
        return context / self.spec.context_norm

    def share(self, reward: Floats) -> Floats:
        """Return rewards scaled from their public range to [0, 1]."""
        low, high = self.spec.reward_low, self.spec.reward_high
        return (np.asarray(reward, np.float64) - low) / (high - low)

    def reward(self, predictor: Floats) -> Floats:
        """Return mean rewards, in their public range, for linear predictors x . theta."""
        low, high = self.spec.reward_low, self.spec.reward_high
        return low + (high - low) * self.link.mean(predictor)


class NewtonRefits(Mechanism):
    """Mechanism of noisy Newton steps on all rows so far, with a public preconditioner P::

        theta <- theta - (P + s sqrt(D)/S I)^-1 (sum of (zeta(x . theta) - y) x + N(0, s^2 I)),

    then theta is clipped to norm S, `steps` times; zeta is the inverse link, D the number of
    parameters, s the least noise for mu. Rows (x, y) are clipped to `|x| <= 1` and y in [0, 1].

    A call takes a round's row x, (R, D), and y, (R,); a mask `refitting` of replicas, (R,); the
    released parameter theta to start from, (R, D); and P, (R, D, D). It returns the new parameters,
    or None if no replica refits. A replica has at most `most` fits, with noise (R, most, steps, D).

    Steps start from released iterates. `query` returns the round's term in the first step's sum,
    the gradient (zeta(x . theta) - y) x, clipped to norm 1.

    Guarantee:
        mu-GDP, also if rows, parameters and P depend on releases: each of at most `most` times
        `steps` sums is released with noise s, and a row moves it by at most 2. So
        mu = 2 sqrt(most steps) / s (adaptive composition).
    """

    # "rows, parameters and P depend on releases"
    needs = SUMMED
    controls = (2, 3, 4)
    sensitivity = 2.0

    def __init__(self, link: Link, noise: Floats, *, mu: float, uses: int, norm: float) -> None:
        R, self._most, steps, D = noise.shape
        self.uses = uses
        self.spend = GaussianSpend(mu, f"{self._most} Gaussian refits of {steps} steps")
        self._link, self._noise, self._norm = link, noise, norm
        self._x, self._y = np.empty((R, uses, D)), np.empty((R, uses))
        self._fits = np.zeros(R, np.int64)
        self.stddev = self.sensitivity * (self._most * steps) ** 0.5 / mu

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        x, y, _, theta, _ = datum
        return self._gradients(*_clipped(x, y), theta)

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        x, y, refitting, theta, P = datum
        n = self._used
        self._x[:, n - 1], self._y[:, n - 1] = _clipped(x, y)
        if not refitting.any():
            return None
        if self._fits[refitting].max() >= self._most:
            raise BudgetExceededError(f"{self.spend.note}: more than {self._most} fits.")
        fitted = np.array(theta)
        for i in np.flatnonzero(refitting).tolist():
            fitted[i] = self._fit(i, self._x[i, :n], self._y[i, :n], theta[i], P[i])
        self._fits[refitting] += 1
        return fitted

    def _fit(self, i: int, x: Floats, y: Floats, theta: Floats, P: Floats) -> Floats:
        """Return the parameter of replica i, fitted from theta to n rows, x (n, D) and y (n,)."""
        D = len(theta)
        P = P + self.stddev * D**0.5 / self._norm * np.eye(D)
        for z in self._noise[i, self._fits[i]]:
            gradient = self._gradients(x, y, theta).sum(axis=0) + self.stddev * z
            theta = clip_norm(theta - np.linalg.solve(P, gradient), self._norm)
        return theta

    def _gradients(self, x: Floats, y: Floats, theta: Floats) -> Floats:
        """Return the clipped gradients of n rows, x (n, D) and y (n,), at theta, (D,) or (n, D)."""
        residual = self._link.mean(np.vecdot(x, theta)) - y
        return clip_norm(residual[:, None] * x, 1.0)


def _clipped(x: Floats, y: Floats) -> tuple[Floats, Floats]:
    return clip_norm(x, 1.0), clip_range(y, 0.0, 1.0)
