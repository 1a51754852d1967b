"""Agent of FADE for one parameter shared by all arms, learned from released sums of residuals."""

from math import sqrt

import numpy as np

from dpbandit.agents.contextual.fading import (
    GOLDEN_STEP,
    OnDevices,
    WarmStarted,
    check_layout,
    in_force,
    trust_after,
)
from dpbandit.agents.contextual.released_scores import (
    ReleasedScores,
    Scores,
    faded,
    in_ball,
    with_latest,
)
from dpbandit.base import Floats, Ints, Streams, rows
from dpbandit.privacy.residuals import SlateResiduals, unit
from dpbandit.specs import LINKS

_PRIOR, _INTERCEPT_PRIOR = 1.0, 5.0
"""Prior standard deviations of a coefficient, for contexts divided by their bound, and of the
intercept, wide for very rare rewards"""
_SCORE_VARIANCE = 0.6
"""Variance of one user's score, summed over its coordinates, a rough public guess"""
_PRIOR_COUNT = 2
"""Number of coordinates that the first guess of their prior variance counts as"""
_NEWTON_STEPS, _FIRST_NEWTON_STEPS = 2, 6
"""Largest number of Newton steps after a release, and after the first release"""


class FadeSlates(OnDevices, WarmStarted):
    """Play slates by one shared parameter, learned from fading sums of residuals of rewards.

    FADE's model of slates, a row of features for each arm. y is the reward scaled to [0, 1], or
    with a known link (identity, logistic, probit) the indicator of a reward above the middle of its
    range; p is its prediction at the released theta::

        each round       sum (y - p) (chosen row - mean row of the slate), scaled to norm at most 1,
                         and the slate's moments (`SlateResiduals`)
        after release m  draw slates with the released moments (`ImaginedSlates`) and let all
                         past policies, which are public, choose from them;
                         theta = argmax of the likelihood of ALL releases times a normal prior
                         (`ReleasedScores`), whose variance is fitted to theta and its uncertainty
                         trust = t / (t + 100) after t rounds
        play             argmax_a x_a . theta

    In the first batch p is 1/2; later it is 1/2 and the prediction at theta, averaged with weights
    1 - trust and trust. 1/2 gives more information per unit of sensitivity, but only residuals from
    predictions have expectation 0 at the true theta for all slates. p uses the theta in force when
    the reward arrives. With delayed rewards the rows of a batch were therefore chosen by older
    policies, each for its share of the synthetic slates.

    Guarantee:
        The guarantee of `Fading`, with sensitivity sqrt(4 (1 + 0.3^2) + 2 (0.5 0.55)^2).

    **Limits.** Predictions rank arms and are not in units of the reward. Fits take time O(d^2).

    >>> from dpbandit import certify
    >>> round(certify(FadeSlates(epsilon=1.0), "Recommendation").epsilon, 6)
    1.0
    """

    def begin(self) -> None:
        spec = self.spec
        check_layout(self, shared=True)
        self.statistic = SlateResiduals(dim=spec.dim, context_bound=spec.context_norm)
        self.sum_up(self.statistic, self.releases.first(spec, 4 * sqrt(spec.dim)))
        R, D = self.R, 1 + spec.dim
        self.start_from(D, f"of an intercept and {spec.dim} features of an arm")
        self._uniforms = self.streams.uniforms("exploration")
        self._slates = ImaginedSlates(self.streams, spec.n_actions, spec.dim)
        self._ends = np.zeros(0, np.int64)
        self._theta: Floats = np.zeros((R, D))
        self._trust: Floats = np.zeros(R)
        self._variance: Floats = np.full(R, _PRIOR**2)  # of a coordinate, a priori
        self._thetas: Floats = np.zeros((R, 0, D))  # reference points of past batches
        self._trusts: Floats = np.zeros((R, 0))
        self._releases: Floats = np.zeros((R, 0, *self.statistic.shape))
        self._precision = np.tile(np.diag(self._ridge(0)), (R, 1, 1)) + self.known.precision
        if self.known.informed:
            self._theta = in_ball(self.known.mode(self._precision))

    def act(self, context: Floats) -> Ints:
        # Arms (R,), or of several rounds (n, R); at random before the first release
        random = (self._uniforms.over(context.shape[:-2]) * self.spec.n_actions).astype(np.int64)
        informed = self.known.informed or len(self._ends) > 0
        return self.scores(context).argmax(axis=-1) if informed else random

    def scores(self, context: Floats) -> Floats:
        return np.matvec(context, self._theta[:, 1:])

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        low, high = self.spec.reward_low, self.spec.reward_high
        y: Floats = (np.asarray(feedback, np.float64) - low) / (high - low)
        if self.spec.link in LINKS:
            y = 1.0 * (y > 0.5)
        theta = np.broadcast_to(self._theta, (*action.shape, self._theta.shape[1]))
        trust = np.broadcast_to(self._trust, action.shape)
        release = self.sums.take_rounds(action.shape, theta, trust, context, action, y)
        if release is None:
            return
        self._ends = np.append(self._ends, self.round)
        self._thetas = with_latest(self._thetas, self._theta)
        self._trusts = with_latest(self._trusts, self._trust)
        self._releases = with_latest(self._releases, release)
        self._theta = self._theta.copy()  # `_fit` writes in place; past references stay
        self._fit_all()

    def _fit_all(self) -> None:
        statistic, d = self.statistic, self.spec.dim
        users, noise, sampling = faded(self._ends, self.sums.fade, self.sums.stddev)
        released, moments = statistic.unpack(self._releases)
        spread = SLATE_SPREAD / d**2 * sampling
        self._slates.learn(moments, users.sum(axis=1), noise / statistic.moment_weight**2 + spread)
        whiten = np.linalg.inv(np.linalg.cholesky(noise + _SCORE_VARIANCE / d * sampling))
        for r in range(len(self._theta)):  # one at a time, which needs less memory
            self._fit(slice(r, r + 1), whiten @ users, whiten @ released[r : r + 1])
        self._trust = np.full(len(self._theta), trust_after(self.round))

    def _fit(self, one: slice, design: Floats, released: Floats) -> None:
        d = self.spec.dim
        fitted = ReleasedScores(
            self._scores(one),
            design,
            released,
            ridge=self._ridge(one.start),
            admissible=in_ball,
            prior=self.known.of_replicas(one),
        )
        steps = _NEWTON_STEPS if len(self._ends) > 1 else _FIRST_NEWTON_STEPS
        found = fitted.maximise(self._theta[one], steps)
        self._theta[one], self._precision[one] = found.theta, found.precision
        theta, covariance = self._theta[one, 1:], np.linalg.inv(self._precision[one])[:, 1:, 1:]
        squares = np.vecdot(theta, theta) + np.trace(covariance, axis1=1, axis2=2)
        self._variance[one] = (squares + _PRIOR_COUNT * _PRIOR**2) / (d + _PRIOR_COUNT)

    def _ridge(self, replica: int) -> Floats:
        return np.append(
            _INTERCEPT_PRIOR**-2, np.repeat(1 / self._variance[replica], self.spec.dim)
        )

    def _scores(self, one: slice) -> Scores:
        """Return the scores of synthetic users in all batches, at the parameters of the batches."""
        met = in_force(self._ends, self.spec.delay, self._slates.count // 2)
        row, mean = self._slates.chosen(
            one, self._thetas[one, :, 1:], met, random=not self.known.informed
        )  # (1, m, N, d)
        theta, trust = self._thetas[one, :, None], self._trusts[one, :, None]
        p = self.statistic.chance(theta, trust, row)
        v = self.statistic.coded(theta, trust, row, mean)
        phi = np.concatenate([np.ones((*row.shape[:-1], 1)), row], axis=-1)
        return Scores(phi, p, 1 / np.maximum(p, 1 - p), v)


_N_SLATES = 128
"""Number of synthetic slates of a replica; a mirror image of each is used, too"""
SLATE_SPREAD = 0.2
"""Sampling variance of an entry of d M, M one slate's second moment matrix, a rough public guess"""
_LEAST_EIGENVALUE = 0.02
"""Floor on eigenvalues of the estimated moments of rows, as a share of their mean, since noise may
make them negative"""
_LEAST_TRACE = 0.2
"""Floor on the trace of the estimated moments of a user's rows"""


class ImaginedSlates:
    """Synthetic slates of random unit vectors, transformed to the released second moments of rows.

    The mean of a release is its faded number of users times M, the clipped second moments of a
    user's rows. Generalised least squares over all releases estimates M up to a factor, which does
    not matter. The deviation of M from the identity is shrunk by the share of its square that noise
    explains (James and Stein). Unit vectors are drawn once, so that slates change only as M does.
    """

    count = 2 * _N_SLATES

    def __init__(self, streams: Streams, n_actions: int, dim: int) -> None:
        self._slates = unit(streams.normals("imagined slates", _N_SLATES, n_actions, dim)())
        self._root: Floats = np.tile(np.eye(dim), (len(streams), 1, 1))  # M^1/2, up to a factor

    def learn(self, moments: Floats, users: Floats, covariance: Floats) -> None:
        """Estimate the distribution of slates from m released sums of moments, (R, m, d, d).

        `users`, (m,), are the faded numbers of users; `covariance`, (m, m), is that of the errors
        of a diagonal entry in different releases, twice that of other entries.
        """
        R, m, d, _ = moments.shape
        weights = np.linalg.solve(covariance, users)
        weights = weights / (weights @ users)
        variance = weights @ covariance @ weights
        mean = np.vecmat(weights, moments.reshape(R, m, d * d)).reshape(R, d, d)
        size = np.clip(np.trace(mean, axis1=1, axis2=2), _LEAST_TRACE, 1)[:, None, None] / d
        excess = np.trace(mean, axis1=1, axis2=2)[:, None, None] / d
        deviation = (mean - excess * np.eye(d)) / size
        noise = variance / size**2 * d * (d + 1) / 2
        seen = (deviation**2).sum(axis=(1, 2), keepdims=True)
        shrinkage = np.maximum(0.0, 1 - noise / np.maximum(seen, 1e-12))
        eigenvalues, U = np.linalg.eigh(np.eye(d) + shrinkage * deviation)
        root = np.sqrt(np.clip(eigenvalues, _LEAST_EIGENVALUE, d))  # their sum is d
        self._root = U * root[:, None] @ U.swapaxes(1, 2)

    def chosen(
        self, one: slice, policies: Floats, in_force: Ints, *, random: bool = True
    ) -> tuple[Floats, Floats]:
        """Return rows of the chosen arms, and slates' mean rows, by batch: (R, m, 2 N, d) each.

        `one` is a slice of replicas. Policies are parameters (R, m, d), the first one uniform play
        if `random`; `in_force`, (m, N), is the index of the policy that chose from a slate. The
        last N slates are the first N reflected in the line along the policy's parameter, with the
        same arms chosen, so that components orthogonal to the parameter cancel in sums.
        """
        slates, root = self._slates[one], self._root[one, None]
        R, N, K, d = slates.shape
        axes = unit(np.matvec(root, policies))  # (R, m, d)
        scores = slates.reshape(R, N * K, d) @ axes.swapaxes(1, 2)
        best = scores.reshape(R, N, K, -1).argmax(axis=2)  # (R, N, m)
        if random:
            best[..., 0] = rows(N) * GOLDEN_STEP % 1 * K
            axes[:, 0] = 0.0
        of_batch = best[:, rows(N), in_force]  # (R, m, N)
        row = slates[rows(R)[:, None, None], rows(N), of_batch]  # (R, m, N, d)
        mean = np.broadcast_to(slates.mean(axis=2)[:, None], row.shape)
        along = axes[:, in_force]
        return _with_images(row, along) @ root, _with_images(mean, along) @ root


def _with_images(vectors: Floats, along: Floats) -> Floats:
    mirrored = 2 * np.vecdot(vectors, along)[..., None] * along - vectors
    return np.concatenate([vectors, mirrored], axis=2)
