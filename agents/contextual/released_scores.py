"""Posterior of a logistic model, given noisy fading sums of scores."""

from collections.abc import Callable
from copy import copy
from typing import NamedTuple

import numpy as np

from dpbandit.agents.contextual.fading import NoPrior
from dpbandit.base import Bools, Floats, Ints, clip_norm, norms, rows

MAX_NORM = 40.0
"""Largest Euclidean norm of a logistic model's parameter, to which it is clipped"""
LONGEST_STEP = 3.0
"""Largest Euclidean norm of a Newton step"""
_MIN_STEP = 1e-3
"""Euclidean norm of a Newton step below which a fit ends"""
_MIN_MOVE = 0.03
"""Length of a Newton step in posterior standard deviations below which a fit ends, too"""
_STEP_CUTS = 4
"""Number of lengths at which a Newton step is tried, each a third of the one before"""


class ReleasedScores:
    """Gaussian likelihood of m releases Y_k = sum_b F_kb n_b g_b(theta) + noise, and its maximum::

        g_b(theta) = E [ (q - p_b) w_b v_b ],     q = logistic(phi_b . theta),

    n_b is the number of rounds of batch b and F_kb its weight in release k. E is the mean over N
    synthetic users, phi_b a row of features that batch b offered, p_b the prediction subtracted
    from the answer, and w_b v_b length and direction of the score; g_b is 0 at the released theta
    if p_b is its q. The noise, of privacy and of sampling, has the same
    covariance over releases in all D coordinates, and is whitened by its Cholesky factor. Counts of
    answers, released before with noise of their own, can be a factor of the likelihood, too.

    Args:
        scores: scores of synthetic users in all batches.
        design: weights F_kb n_b of batches in releases, whitened, (m, m).
        released: released sums, whitened, (R, m, D).
        ridge: precision of a normal prior around 0, (D,).
        admissible: map of parameters (R, D) to the nearest ones that are allowed.
        prior: prior from another study, added to that of `ridge`.
        counts: released counts of answers, none by default.
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
        counts: "Counts | None" = None,
    ) -> None:
        self._prior = prior or NoPrior()
        self._phi = self._v = _by_coordinate(scores.phi)
        if scores.directions is not scores.phi:
            self._v = _by_coordinate(scores.directions)
        R, _, N, D = scores.phi.shape
        self._p, self._lengths = scores.p, scores.lengths / N
        self._counts = counts or Counts(np.zeros((R, 0, N, D)), 0.0, np.zeros((R, 0)))
        self._design, self._released = design, released
        self._ridge, self._admissible = ridge, admissible

    def maximise(self, theta: Floats, steps: int) -> "Fit":
        """Return the most probable parameter near `theta`, (R, D).

        Gauss-Newton steps have norm at most 3, and are tried at lengths 1, 1/3, 1/9 and 1/27. A
        step that raises the objective is not taken, so that the fit cannot diverge. The fit of a
        replica ends after `steps` steps, or after one that is shorter than 1e-3 or 0.03 posterior
        standard deviations.
        """
        theta = np.array(self._admissible(theta))
        at = self._at(theta)
        if self._prior.informed:
            precision, gradient = self._quadratic(at)
            b = np.matvec(precision, theta) + gradient
            # the ridge is no release; its mean 0 adds nothing to b
            self._prior.widen(b, precision - np.diag(self._ridge))
            at = self._at(theta)
        found = Fit(
            theta, np.empty((*theta.shape, theta.shape[1])), np.empty_like(theta), at.value.copy()
        )
        fit, moving = self, rows(len(theta))  # the replicas whose fit has not ended
        for step in range(steps + 1):
            precision, gradient = fit._posterior(at)
            found.precision[moving], found.gradient[moving] = precision, gradient
            if step == steps:
                break
            move = np.linalg.solve(precision, gradient[..., None])[..., 0]
            before = at.theta
            at, longer = fit._step(at, precision, clip_norm(move, LONGEST_STEP))
            # of the quadratic approximation, where a fit ends after a short step
            found.gradient[moving] -= np.matvec(precision, at.theta - before)
            found.theta[moving], found.value[moving] = at.theta, at.value
            moving = moving[longer]
            if not len(moving):
                break
            fit, at = fit.of_replicas(longer), _Point(*(x[longer] for x in at))
        return found

    def _step(self, at: "_Point", precision: Floats, step: Floats) -> tuple["_Point", Bools]:
        """Return the point after a step (R, D), or a part of it, and where it has moved, (R,)."""
        move = self._admissible(at.theta + step) - at.theta
        size = np.sqrt(np.vecdot(move, np.matvec(precision, move)))
        moved = (norms(move)[:, 0] >= _MIN_STEP) & (size >= _MIN_MOVE)
        left, after = moved.copy(), _Point(*(x.copy() for x in at))
        for _ in range(_STEP_CUTS):
            if not left.any():
                break
            tried = self.of_replicas(left)._at(self._admissible(at.theta[left] + step[left]))
            better = tried.value <= at.value[left]
            taken = np.flatnonzero(left)[better]
            for old, new in zip(after, tried, strict=True):
                old[taken] = new[better]
            left[taken], step = False, step / 3
        return after, moved & ~left  # without a better point the same steps would be tried again

    def of_replicas(self, some: Bools) -> "ReleasedScores":
        """Return the likelihood for the replicas selected by a mask."""
        if some.all():
            return self
        part = copy(self)
        part._phi = part._v = self._phi[some]
        if self._v is not self._phi:
            part._v = self._v[some]
        part._p, part._lengths = self._p[some], self._lengths[some]
        part._released, part._prior = self._released[some], self._prior.of_replicas(some)
        part._counts = self._counts.of_replicas(some)
        return part

    def under(self, ridge: Floats, admissible: Callable[[Floats], Floats]) -> "ReleasedScores":
        """Return the same likelihood with another prior, and other parameters allowed."""
        other = copy(self)
        other._ridge, other._admissible = ridge, admissible
        return other

    def log_evidence(self, fit: "Fit") -> Floats:
        """Return the model's log evidence by Laplace's approximation, up to a constant, (R,)."""
        _, size = np.linalg.slogdet(fit.precision)
        return np.asarray(0.5 * (np.log(self._ridge).sum() - size - fit.value))

    def _at(self, theta: Floats) -> "_Point":
        (R, D), (_, m, N) = theta.shape, self._p.shape
        z = np.vecmat(theta, self._phi.reshape(R, D, m * N)).reshape(R, m, N)
        q = _logistic(z)
        g = np.vecdot(self._v, (self._lengths * (q - self._p))[:, None])  # (R, D, m)
        misfit = (self._released - self._design @ g.swapaxes(1, 2)).reshape(R, m * D)
        counted, missed = self._counts.predict(theta)
        normal = np.vecdot(self._ridge * theta, theta) + self._prior.loss(theta)
        value = np.vecdot(misfit, misfit) + np.vecdot(missed, missed) + normal
        return _Point(theta, q, misfit, counted, missed, value)

    def _posterior(self, at: "_Point") -> tuple[Floats, Floats]:
        """Return the objective's Gauss-Newton precision (R, D, D) and minus half its gradient."""
        precision, gradient = self._quadratic(at)
        return precision + self._prior.precision, gradient + self._prior.gradient(at.theta)

    def _quadratic(self, at: "_Point") -> tuple[Floats, Floats]:
        """Return precision and minus half the gradient, without the prior from another study."""
        R, D, m, _ = self._phi.shape
        weighted = self._v * (self._lengths * at.q * (1 - at.q))[:, None]
        slopes = weighted.swapaxes(1, 2) @ self._phi.transpose(0, 2, 3, 1)  # (R, m, D, D)
        slopes = (self._design @ slopes.reshape(R, m, D * D)).reshape(R, m * D, D)
        of_counts = self._counts.slopes(at.counted)
        precision = slopes.swapaxes(1, 2) @ slopes + of_counts.swapaxes(1, 2) @ of_counts
        gradient = np.vecmat(at.misfit, slopes) + np.vecmat(at.missed, of_counts)
        return precision + np.diag(self._ridge), gradient - self._ridge * at.theta


class Fit(NamedTuple):
    """Most probable parameter given releases."""

    theta: Floats
    """parameter, (R, D)"""
    precision: Floats
    """precision of the posterior's quadratic approximation, (R, D, D)"""
    gradient: Floats
    """gradient of the log posterior, (R, D), 0 where nothing but releases limits the parameter"""
    value: Floats
    """-2 log(likelihood x prior) up to a constant, (R,)"""


class _Point(NamedTuple):
    """Parameters with their predictions, residuals and objective."""

    theta: Floats
    """D parameters of each replica, (R, D)"""
    q: Floats
    """predicted probabilities for N synthetic users in m batches, (R, m, N)"""
    misfit: Floats
    """whitened releases minus their expectations, flattened, (R, m D)"""
    counted: Floats
    """predicted probabilities for N synthetic users in K counts, (R, K, N)"""
    missed: Floats
    """whitened counts minus their expectations, (R, K)"""
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


class Counts(NamedTuple):
    """Released counts of the answers 1 of K groups of users, all divided by their noise's stddev.

    The expectation of a count is `users` times the mean probability over N synthetic users.
    """

    phi: Floats
    """rows of D features that were offered, (R, K, N, D)"""
    users: float
    """number of users of a group, divided by the noise's standard deviation"""
    released: Floats
    """counts, divided by the noise's standard deviation, (R, K)"""

    def of_replicas(self, some: Bools) -> "Counts":
        """Return the counts of the replicas selected by a mask."""
        return Counts(self.phi[some], self.users, self.released[some])

    def predict(self, theta: Floats) -> tuple[Floats, Floats]:
        """Return probabilities (R, K, N) by parameters (R, D), and misfits of counts (R, K)."""
        q = _logistic(np.matvec(self.phi, theta[:, None]))
        return q, self.released - self.users * q.mean(axis=2)

    def slopes(self, q: Floats) -> Floats:
        """Return the derivatives (R, K, D) of the expected counts by the parameters."""
        return self.users / q.shape[2] * np.vecmat(q * (1 - q), self.phi)


def _logistic(z: Floats) -> Floats:
    """Return 1 / (1 + exp(-z)), without overflow, since |z| <= 2 MAX_NORM."""
    return np.asarray(1 / (1 + np.exp(-z)))


def _by_coordinate(vectors: Floats) -> Floats:
    """Return vectors (R, m, N, D) as contiguous coordinates, (R, D, m, N)."""
    return np.ascontiguousarray(vectors.transpose(0, 3, 1, 2))


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
