"""Posterior of a logistic model, given noisy fading sums of scores."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dpbandit.agents.contextual.fading import NoPrior
from dpbandit.base import Bools, Floats, Ints, clip_norm, rows

BALL = 40.0
"""No parameter is longer."""
LONGEST_STEP = 3.0
"""Of Newton's method, from one parameter to the next."""
_HALVINGS = 4


class ReleasedScores:
    """The Gaussian likelihood of releases Y_k = sum_b F_kb n_b g_b(theta) + noise, its maximum::

        g_b(theta) = E [ (q - p_b) w_b v_b ],     q = logistic(phi_b . theta),

    over imagined users, phi_b the row of features that batch b showed them, p_b the chance that
    their answer was compared with, and w_b v_b what the statistic makes of phi_b; g_b is 0 at the
    reference point if that is right and p_b its q. The noise, of privacy and of sampling, has the
    same covariance over releases for every coordinate and is whitened by its Cholesky factor.

    Args:
        scores: what was shown, to whom, and how it enters the sums.
        design: F diag(n), whitened, (m, m).
        released: the sums, whitened, (R, m, D).
        ridge: the precision of a normal prior around 0, (D,).
        admissible: the nearest parameter (R, D) that is allowed.
        prior: from another study, on top of that.
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
        """The most probable parameter near `theta`, (R, D), and its precision, (R, D, D).

        Gauss-Newton steps at most 3 long, each shortened to a third until the objective no longer
        rises and at most four times, else not taken: nothing diverges.
        """
        at = self._at(np.array(self._admissible(theta)))
        if self._prior.informed:
            precision, gradient = self._quadratic(at)
            b = np.matvec(precision, at.theta) + gradient  # the ridge pulls towards 0: not in b
            self._prior.widen(b, precision - np.diag(self._ridge))  # and it is no release
            at = self._at(at.theta)
        moving = np.ones(len(theta), bool)
        for _ in range(steps):
            precision, gradient = self._posterior(at)
            step = clip_norm(np.linalg.solve(precision, gradient[..., None])[..., 0], LONGEST_STEP)
            left = moving.copy()
            some: slice | Bools = np.s_[:]
            for _ in range(_HALVINGS):
                tried = self._at(self._admissible(at.theta[some] + step[some]), some)
                better = left[some] & (tried.value <= at.value[some])
                for old, new in zip(at, tried, strict=True):
                    mask = better.reshape(-1, *[1] * (new.ndim - 1))
                    old[some] = np.where(mask, new, old[some])
                left[some] &= ~better
                some, step = left.copy(), step / 3
                if not left.any():
                    break
            moving &= ~left  # who stays where she is would try the same again
        return at.theta, self._posterior(at)[0]

    def log_evidence(self, theta: Floats, precision: Floats) -> Floats:
        """Return Laplace's logarithm of the likelihood over the prior, up to a constant, (R,)."""
        _, size = np.linalg.slogdet(precision)
        return np.asarray(0.5 * (np.log(self._ridge).sum() - size - self._objective(theta)))

    def _at(self, theta: Floats, some: slice | Bools = np.s_[:]) -> "_At":
        """The place of parameters (R, D), of all replicas or some."""
        phi, p, v, lengths = (x[some] for x in (self._phi, self._p, self._v, self._lengths))
        q = np.asarray(expit(np.matvec(phi, theta[:, None])))
        scores = np.vecmat(lengths * (q - p), v)  # g_b, (R, m, D)
        misfit = (self._released[some] - self._design @ scores).reshape(len(theta), -1)
        normal = np.vecdot(self._ridge * theta, theta) + self._prior.one(some).loss(theta)
        return _At(theta, q, misfit, np.vecdot(misfit, misfit) + normal)

    def _objective(self, theta: Floats) -> Floats:
        """Twice the negative logarithm of likelihood times prior, up to a constant, (R,)."""
        return self._at(theta).value

    def _posterior(self, at: "_At") -> tuple[Floats, Floats]:
        """The Gauss-Newton precision (R, D, D), and minus half the objective's gradient (R, D)."""
        precision, gradient = self._quadratic(at)
        return precision + self._prior.precision, gradient + self._prior.gradient(at.theta)

    def _quadratic(self, at: "_At") -> tuple[Floats, Floats]:
        """The same without another study's prior."""
        R, m, _, D = self._phi.shape
        weighted = self._v * (self._lengths * at.q * (1 - at.q))[..., None]
        slopes = (weighted.swapaxes(2, 3) @ self._phi).reshape(R, m, D * D)
        slopes = (self._design @ slopes).reshape(R, m * D, D)  # of all releases
        precision = slopes.swapaxes(1, 2) @ slopes + np.diag(self._ridge)
        return precision, np.vecmat(at.misfit, slopes) - self._ridge * at.theta


class _At(NamedTuple):
    """Parameters, what they predict and how that fits."""

    theta: Floats
    """(R, D)"""
    q: Floats
    """(R, m, N)"""
    misfit: Floats
    """of released sums, whitened, (R, m D)"""
    value: Floats
    """of the objective, (R,)"""


class Scores(NamedTuple):
    """Of m batches and N imagined users: a user adds lengths (answer - p) directions to a sum."""

    phi: Floats
    """(R, m, N, D)"""
    p: Floats
    """(R, m, N)"""
    lengths: Floats
    """(R, m, N)"""
    directions: Floats
    """(R, m, N, D)"""


class Faded(NamedTuple):
    """Public facts about the first m releases of a fading sum."""

    users: Floats
    """F diag(n), how many users of batch b release k shows, with their weights, (m, m)"""
    noise: Floats
    """covariance of the noise over releases, (m, m)"""
    sampling: Floats
    """the same of users whose statistic has variance 1, (m, m)"""


def faded(ends: Ints, fade: float, stddev: float) -> Faded:
    """Those of batches with these ends, (m,)."""
    lengths, batches = np.diff(ends, prepend=0), rows(len(ends))
    age = batches[:, None] - batches
    users = np.where(age >= 0, fade ** np.maximum(age, 0), 0.0) * lengths
    return Faded(users, stddev**2 * np.eye(len(ends)), users @ (users / lengths).T)


def in_ball(theta: Floats) -> Floats:
    """Shorten parameters (R, D) to the longest that is allowed."""
    return clip_norm(theta, BALL)


def with_latest(history: Floats, latest: Floats) -> Floats:
    """(R, m, ...) and (R, ...) -> (R, m + 1, ...)."""
    return np.concatenate([history, latest[:, None]], axis=1)
