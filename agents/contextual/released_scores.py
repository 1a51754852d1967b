"""Posterior of a logistic model, given noisy fading sums of scores."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dpbandit.agents.contextual.fading import NoPrior
from dpbandit.base import Bools, Floats, Ints, clip_norm, rows

MAX_NORM = 40.0
"""Largest Euclidean norm of a logistic model's parameter, to which it is clipped"""
LONGEST_STEP = 3.0
"""Largest Euclidean norm of a Newton step"""
_STEP_CUTS = 4
"""Number of lengths at which a Newton step is tried, each a third of the one before"""


class ReleasedScores:
    """Gaussian likelihood of m releases Y_k = sum_b F_kb n_b g_b(theta) + noise, and its maximum::

        g_b(theta) = E [ (q - p_b) w_b v_b ],     q = logistic(phi_b . theta),

    n_b is the number of rounds of batch b and F_kb its weight in release k. E is the mean over N
    synthetic users, phi_b a row of features that batch b offered, p_b the prediction subtracted
    from the answer, and w_b v_b length and direction of the score; g_b is 0 at the released theta
    if p_b is its q. The noise, of privacy and of sampling, has the same
    covariance over releases in all D coordinates, and is whitened by its Cholesky factor.

    Args:
        scores: scores of synthetic users in all batches.
        design: weights F_kb n_b of batches in releases, whitened, (m, m).
        released: released sums, whitened, (R, m, D).
        ridge: precision of a normal prior around 0, (D,).
        admissible: map of parameters (R, D) to the nearest ones that are allowed.
        prior: prior from another study, added to that of `ridge`.
    """

    def __init__(
        self,
        scores: "Scores",
        design: Floats,
        released: Floats,
        *,
        ridge: Floats,
        admissible: Callable[[Floats], Floats],
        prior: NoPrior | None = None,
    ) -> None:
        self._prior = prior or NoPrior()
        self._phi, self._p, self._design, self._released = scores.phi, scores.p, design, released
        self._lengths, self._v = scores.lengths / scores.phi.shape[2], scores.directions
        self._ridge, self._admissible = ridge, admissible

    def maximise(self, theta: Floats, steps: int) -> tuple[Floats, Floats]:
        """Return the most probable parameter near `theta`, (R, D), and its precision, (R, D, D).

        Gauss-Newton steps have norm at most 3, and are tried at lengths 1, 1/3, 1/9 and 1/27. A
        step that raises the objective is not taken, so that the fit cannot diverge.
        """
        at = self._at(np.array(self._admissible(theta)))
        if self._prior.informed:
            precision, gradient = self._quadratic(at)
            b = np.matvec(precision, at.theta) + gradient
            # the ridge is no release; its mean 0 adds nothing to b
            self._prior.widen(b, precision - np.diag(self._ridge))
            at = self._at(at.theta)
        moving = np.ones(len(theta), bool)
        for _ in range(steps):
            precision, gradient = self._posterior(at)
            step = clip_norm(np.linalg.solve(precision, gradient[..., None])[..., 0], LONGEST_STEP)
            left = moving.copy()
            some: slice | Bools = np.s_[:]
            for _ in range(_STEP_CUTS):
                tried = self._at(self._admissible(at.theta[some] + step[some]), some)
                better = left[some] & (tried.value <= at.value[some])
                for old, new in zip(at, tried, strict=True):
                    mask = better.reshape(-1, *[1] * (new.ndim - 1))
                    old[some] = np.where(mask, new, old[some])
                left[some] &= ~better
                some, step = left.copy(), step / 3
                if not left.any():
                    break
            moving &= ~left  # a replica without a better point would try the same steps again
        return at.theta, self._posterior(at)[0]

    def log_evidence(self, theta: Floats, precision: Floats) -> Floats:
        """Return the model's log evidence by Laplace's approximation, up to a constant, (R,)."""
        _, size = np.linalg.slogdet(precision)
        return np.asarray(0.5 * (np.log(self._ridge).sum() - size - self._objective(theta)))

    def _at(self, theta: Floats, some: slice | Bools = np.s_[:]) -> "_Point":
        """Return the `_Point` at parameters `theta` of all replicas, or of the replicas `some`."""
        phi, p, v, lengths = (x[some] for x in (self._phi, self._p, self._v, self._lengths))
        q = np.asarray(expit(np.matvec(phi, theta[:, None])))
        scores = np.vecmat(lengths * (q - p), v)  # g_b, (R, m, D)
        misfit = (self._released[some] - self._design @ scores).reshape(len(theta), -1)
        normal = np.vecdot(self._ridge * theta, theta) + self._prior.of_replicas(some).loss(theta)
        return _Point(theta, q, misfit, np.vecdot(misfit, misfit) + normal)

    def _objective(self, theta: Floats) -> Floats:
        """Return the objective, -2 log(likelihood x prior) up to a constant, (R,)."""
        return self._at(theta).value

    def _posterior(self, at: "_Point") -> tuple[Floats, Floats]:
        """Return the objective's Gauss-Newton precision (R, D, D) and minus half its gradient."""
        precision, gradient = self._quadratic(at)
        return precision + self._prior.precision, gradient + self._prior.gradient(at.theta)

    def _quadratic(self, at: "_Point") -> tuple[Floats, Floats]:
        """Return precision and minus half the gradient, without the prior from another study."""
        R, m, _, D = self._phi.shape
        weighted = self._v * (self._lengths * at.q * (1 - at.q))[..., None]
        slopes = (weighted.swapaxes(2, 3) @ self._phi).reshape(R, m, D * D)
        slopes = (self._design @ slopes).reshape(R, m * D, D)  # of all releases
        precision = slopes.swapaxes(1, 2) @ slopes + np.diag(self._ridge)
        return precision, np.vecmat(at.misfit, slopes) - self._ridge * at.theta


class _Point(NamedTuple):
    """Parameters with their predictions, residuals and objective."""

    theta: Floats
    """D parameters of each replica, (R, D)"""
    q: Floats
    """predicted probabilities for N synthetic users in m batches, (R, m, N)"""
    misfit: Floats
    """whitened releases minus their expectations, flattened, (R, m D)"""
    value: Floats
    """value of the objective, -2 log(likelihood x prior), (R,)"""


class Scores(NamedTuple):
    """Scores of N synthetic users in m batches, lengths x (answer - p) x directions."""

    phi: Floats
    """rows of D features that were offered, (R, m, N, D)"""
    p: Floats
    """predicted probabilities that are subtracted from answers, (R, m, N)"""
    lengths: Floats
    """factors that bound the norm of a score, (R, m, N)"""
    directions: Floats
    """directions of the scores, (R, m, N, D)"""


class Faded(NamedTuple):
    """Weights and error covariances of the first m releases of a fading sum, which are public."""

    users: Floats
    """number of users of each batch (column) times their weight in each release (row), (m, m)"""
    noise: Floats
    """covariance of the privacy noise between releases, (m, m)"""
    sampling: Floats
    """covariance of the releases' sampling errors for a statistic of variance 1, (m, m)"""


def faded(ends: Ints, fade: float, stddev: float) -> Faded:
    """Return weights and error covariances of m releases, made after the rounds `ends`, (m,)."""
    lengths, batches = np.diff(ends, prepend=0), rows(len(ends))
    age = batches[:, None] - batches
    users = np.where(age >= 0, fade ** np.maximum(age, 0), 0.0) * lengths
    return Faded(users, stddev**2 * np.eye(len(ends)), users @ (users / lengths).T)


def in_ball(theta: Floats) -> Floats:
    """Return parameters (R, D) clipped to the norm `MAX_NORM`."""
    return clip_norm(theta, MAX_NORM)


def with_latest(history: Floats, latest: Floats) -> Floats:
    """Return a history (R, m, ...) with the latest value (R, ...) appended."""
    return np.concatenate([history, latest[:, None]], axis=1)
