"""Arms with parameters of their own, learned from released sums of signs of residuals."""

from math import pi, sqrt

import numpy as np

from dpbandit.agents.contextual.moments import SelectedMoments, uniform_moments
from dpbandit.agents.contextual.public_prior import NoPrior
from dpbandit.agents.contextual.residual_spread import ResidualSpread
from dpbandit.agents.contextual.scale_mixture import ScaleMixture
from dpbandit.base import Floats, Ints, Streams, clip_norm, pick, rows
from dpbandit.privacy import FadingSum, Ledger
from dpbandit.privacy.residuals import SignedResiduals, unit
from dpbandit.specs import ContextualSpec, Prior, posterior

_FLOOR = 0.8
"""Least squared weight of a coordinate, where the mean is 1."""
_LEAST_NOISE = 1.0
"""Releases are taken to be at least as noisy as one user: she may be an exception."""
_LEAST_VARIANCE = 1e-12
"""Of a parameter, in units of half the range of rewards, squared."""
_GOLDEN = 0.6180339887498949


class ResidualArms:
    """Plays argmax_a x . theta_a, theta from sums of sign(r - theta_a . u) v, `u = x / |x|`::

        each round       sign of the residual times the weighted direction, in the code of its arm,
                         and whether the residual is large (`SignedResiduals`)
        after release k  kappa = sqrt(2 / pi) / sd, the slope of the sign in the mean residual, sd
                         from the released counts (`ResidualSpread`);
                         H_a = n kappa E[v u' 1(a)], of imagined users (`SelectedMoments`);
                         A = fade A + H,  c = fade c + H theta:  release k = A truth - c + noise,
                         which is added to the likelihood of the truth;
                         theta = its mean under a fitted prior (`ScaleMixture`)
                         weights of coordinates that the next batch can still tell apart (`_focus`)

    The first batch, and ties, are played uniformly at random. A residual is compared with the theta
    in force when it arrives, so with delayed rewards H is of the older policies that were played.

    Guarantee:
        That of the sums. All else is a function of releases, public coins and the user's own
        context.
    """

    def __init__(
        self,
        spec: ContextualSpec,
        sums: FadingSum,
        statistic: SignedResiduals,
        streams: Streams,
        ledger: Ledger,
        prior: NoPrior | None = None,
    ) -> None:
        self.ledger = ledger
        self._spec, self._sums, self._statistic = spec, sums, statistic
        self._luck = streams.uniforms("exploration")
        R, K, d = len(streams), spec.n_actions, spec.dim
        self._selected = SelectedMoments(streams, K)
        self._round, self._ends = 0, np.zeros(0, np.int64)
        self._theta: Floats = np.zeros((R, K, d))
        self._weights: Floats = np.ones((R, K, d))
        self._spread = ResidualSpread(R, spec.half_range)
        self._counts: Floats = np.zeros(R)
        self._design, self._offset = np.zeros((R, K, d, d)), np.zeros((R, K, d))
        self._b, self._precision = np.zeros((R, K, d)), np.zeros((R, K, d, K, d))
        self._posterior = ScaleMixture(R, K * d)
        self._moments: list[Floats] = [np.tile(uniform_moments(K, d), (R, 1, 1, 1))]
        self._forgotten = 0  # how many policies before the first of these
        self._prior = prior or NoPrior()
        if self._prior.informed:
            self._fit()
            self._moments = [self._selected(self._theta)]

    def act(self, context: Floats) -> Ints:
        """Arms (R,); ties at random."""
        score, luck = self._above_middle(context), self._luck()
        best = score >= score.max(axis=1, keepdims=True)
        order = (luck[:, None] + _GOLDEN * rows(self._spec.n_actions)) % 1
        if not (len(self._ends) or self._prior.informed):
            return (luck * self._spec.n_actions).astype(np.int64)
        return np.where(best, 1 + order, 0.0).argmax(axis=1)

    def scores(self, context: Floats) -> Floats:
        """Predicted rewards, (R, K)."""
        middle = (self._spec.reward_low + self._spec.reward_high) / 2
        return middle + self._above_middle(context)

    def _above_middle(self, context: Floats) -> Floats:
        """Which is larger must not depend on where the range lies, not by rounding either."""
        return np.matvec(self._theta, unit(context))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Feed the mechanism; fit when it releases."""
        self._round += 1
        reference = pick(self._theta, action), pick(self._weights, action), self._spread.estimate
        release = self._sums(*reference, context, action, feedback)
        if release is None:
            return
        signs, counts = self._statistic.unpack(release)
        moments, n = self._of_the_batch()
        kappa = sqrt(2 / pi) / self._learn_spread(counts, n)
        self._add(signs, (n * kappa)[:, None, None, None] * moments)
        self._prior.widen(*self._likelihood())
        variance = self._fit()
        self._moments.append(self._selected(self._theta))
        per_user = (kappa / variance[0].size)[:, None, None]
        variance = np.maximum(variance, _LEAST_VARIANCE * self._spec.half_range**2)
        self._weights = _focus(variance, per_user * n, self._sums.stddev)

    def _likelihood(self) -> tuple[Floats, Floats]:
        R, K, d = self._b.shape
        return self._b.reshape(R, K * d), self._precision.reshape(R, K * d, K * d)

    def _fit(self) -> Floats:
        """theta, and the variances of its coordinates, (R, K, d)."""
        b, precision = self._likelihood()
        mean, variance = self._posterior.fit(
            b + self._prior.weighted_mean, precision + self._prior.precision
        )
        self._theta = clip_norm(mean.reshape(self._b.shape), self._spec.half_range)
        return variance.reshape(self._b.shape)

    def learned(self, replica: int = 0) -> Prior:
        """What all releases say of the parameters, as the prior of another study.

        Their likelihood and the prior of this study, without the fitted one, times a normal law
        with half the range of rewards for standard deviation of each coordinate.
        """
        b, precision = self._likelihood()
        P = precision + self._prior.precision + np.eye(b.shape[1]) / self._spec.half_range**2
        mean = np.linalg.solve(P[replica], (b + self._prior.weighted_mean)[replica])
        return posterior(mean, P[replica])

    def _of_the_batch(self) -> tuple[Floats, int]:
        """E[u u' 1(a)] over the rounds of the batch that ends now, and how many they are."""
        start = int(self._ends[-1]) if len(self._ends) else 0
        self._ends = np.append(self._ends, self._round)
        rounds = np.arange(start + 1, self._round + 2)  # and the next one
        policy = np.searchsorted(self._ends + self._spec.delay, rounds) - self._forgotten
        n = self._round - start
        share = np.bincount(policy[:-1]) / n
        parts = [s * m for s, m in zip(share, self._moments, strict=False) if s]
        next_policy = int(policy[-1])
        moments = parts[0] if len(parts) == 1 else np.asarray(sum(parts))
        keep = min(next_policy, len(self._moments))
        self._moments, self._forgotten = self._moments[keep:], self._forgotten + keep
        return moments, n

    def _learn_spread(self, counts: Floats, n: int) -> Floats:
        fade = self._sums.fade if len(self._ends) > 1 else 0.0
        fresh = (counts - fade * self._counts) / n
        noise = self._sums.stddev / self._statistic.spread_weight / n
        self._counts = counts
        self._spread.update(fresh, noise**2 * (1 + fade**2) + 1 / n)
        return self._spread.estimate

    def _add(self, signs: Floats, moments: Floats) -> None:
        """One release of signs (R, K, d), with n kappa E[u u' 1(a)] of its fresh batch."""
        fade = self._sums.fade
        size = np.sqrt(np.vecdot(self._weights, self._weights) / self._spec.dim)
        fresh = (self._weights / size[..., None])[..., None] * moments
        self._design = fade * self._design + fresh
        self._offset = fade * self._offset + np.matvec(fresh, self._theta)
        gram = self._statistic.gram / max(self._sums.stddev, _LEAST_NOISE) ** 2
        seen = gram @ (signs + self._offset)
        self._b += np.vecmat(seen, self._design)
        pairs = self._design[:, :, None].swapaxes(-1, -2) @ self._design[:, None]  # (R, K, K, d, d)
        self._precision += (gram[:, :, None, None] * pairs).transpose(0, 1, 3, 2, 4)


def _focus(variance: Floats, slope: Floats, stddev: float) -> Floats:
    """Weights of coordinates for the next batch, (R, K, d): by water-filling, with a floor.

    A squared weight w of a coordinate, of mean 1, makes the next batch tell w slope^2 / stddev^2 of
    it, so that variance v is worth max(0, level - stddev^2 / (slope^2 v)) of it.
    """
    with np.errstate(divide="ignore"):  # what is certain needs infinitely much
        needed = stddev**2 / slope**2 / variance
    low = needed.min(axis=-1, keepdims=True)
    high = low + needed.shape[-1]
    for _ in range(50):
        level = (low + high) / 2
        over = np.maximum(level - needed, 0.0).mean(axis=-1, keepdims=True) > 1
        high, low = np.where(over, level, high), np.where(over, low, level)
    return np.sqrt((1 - _FLOOR) * np.maximum(low - needed, 0.0) + _FLOOR)
