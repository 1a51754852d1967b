"""Agent of FADE for arms with parameters of their own, learned from released sums of residuals."""

from dataclasses import replace
from math import pi, sqrt

import numpy as np
from scipy.special import ndtr

from dpbandit.agents.contextual.fading import (
    GOLDEN_STEP,
    OnDevices,
    WarmStarted,
    check_coordinates,
    check_layout,
    coded_likelihood,
    few_features,
    link_fixes_middle,
)
from dpbandit.agents.contextual.moments import SelectedMoments, uniform_moments
from dpbandit.base import Bools, Floats, Ints, clip_norm, pick, rows
from dpbandit.privacy.residuals import Reference, SignedResiduals, along, directions, unit
from dpbandit.specs import LINKS, ContextualSpec, Prior, posterior

_WEIGHT_FLOOR = 0.8
"""Floor of a coordinate's squared weight in the next batch; the mean of squared weights is 1"""
_LEAST_NOISE = 1.0
"""Floor of a release's assumed noise, in units of a user's score, as one score may be an outlier"""
_DRAW_WIDTH = 0.5
"""Width of exploration draws without privacy noise, in standard deviations of the sampling error"""
_LEAST_VARIANCE = 1e-12
"""Floor of a parameter's posterior variance, in units of (half the range of rewards)^2"""
_MAX_NOISE_RATIO = 1e12
"""Cap on noise variance / posterior variance, which is infinite if a batch sums no directions"""
_LEVEL_WEIGHT = 0.2
"""Weight of the coordinate that locates the level of rewards, beside a direction of norm 1"""
_MAX_FORGETTING_COORDINATES, _MIN_BATCHES = 60, 100
"""Largest K d with which parameters may change over time; batches then have at most T / 100 rounds,
or half the rounds of the first batch if more, which grows with the noise"""

_SIGN_WIDTH, MEAN_WIDTH = 0.5, 2.0
"""Clipping bounds of a residual's score, in standard deviations, if the link is known (the score is
nearly the sign) and if not (rewards may be skewed; it is nearly the residual itself)"""
_CONSTANT = 0.3
"""Constant coordinate of features of norm 1, if contexts have a centre"""
_SPREADS = np.geomspace(1 / 500, 1.0, 80)
"""Grid of standard deviations of residuals, as shares of half the range of rewards"""
_SMALL_SPREAD, _SMALL_SPREAD_PENALTY = 1 / 60, 3.0
"""Share of half the range below which a residual's standard deviation has exp(-3) times the
prior probability of a larger one, and the number 3 in it"""
_DRIFT_WEIGHTS = np.array([0.1, 0.15, 0.2, 0.3, 0.15, 0.07, 0.03])
"""Probabilities that the residuals' standard deviation moves by -3 to 3 grid steps between
releases; residuals shrink more often than they grow"""
_FIRST_SPREAD = 0.2
"""First threshold above which a residual counts as large, in halves of the range of rewards"""
_LEVEL_GRID = np.linspace(-4, 4, 33)
"""Grid of levels of rewards, in posterior standard deviations around the posterior mean"""
_LEVEL_DRIFT = 0.1
"""Standard deviation of the level's random step per release, divided by that of residuals"""
_LEVEL_REACH = 2.0
"""Clipping bound of residuals that locate the level, in the level's posterior stddevs"""


class FadeArms(OnDevices, WarmStarted):
    """Play arms with parameters of their own, learned from fading sums of scores of residuals.

    FADE's model of arms that share no parameter::

        each round       sum three values (`SignedResiduals`), the score (a clipped multiple) of the
                         residual r - theta_a . u times v, the weighted features u, coded by arm;
                         the sign of |residual| - bound; for a level, the clipped residual
        after release k  kappa, the slope of the score in the mean residual, from the released
                         counts of large residuals (`ResidualLaw`);
                         H_a = n kappa E[v u'; arm a is played], n the batch's rounds, E over
                         synthetic users (`SelectedMoments`);
                         A = fade A + H,  c = fade c + H theta:  release k = A truth - c + noise,
                         whose likelihood multiplies that of earlier releases, which may fade if
                         K d is at most 60 (`Forgetting`);
                         theta = the posterior mean under a fitted prior (`ScaleMixture`)
                         weights of coordinates, large where a batch can reduce variance (`_focus`)
        play             argmax_a u . played_a,  played = theta, or if noise is small a draw near it

    Features u are the direction x / |x|, or if `centred` a constant 0.3 and 0.95 times the
    direction of x from a centre: arms have levels of their own then, and contexts may have a mean.

    If `level` is False, rewards are compared with the middle of their public range, and the score
    is the sign. Else their level is learned, too, and three short batches come first. A batch sums
    directions only if the standard error of the level is at most the standard deviation of
    residuals; until then it sums residuals that locate the level.

    Noise of releases makes greedy play try arms. Where that noise is less than one user's score, a
    random draw from the sampling error of theta, the same for a whole batch, is added to theta. Up
    to epsilon 10 (at delta 1e-5) no draw is added.

    Ties are played uniformly at random. Residuals use the theta in force when the reward arrives,
    so with delayed rewards H is computed for the older policies that were played. Without `level`,
    if K d is at most 60 and `fade` < 1, parameters may change: batches after the first have at most
    T / 100 rounds, or half those of the first if that is more.

    Guarantee:
        The guarantee of `Fading`, with sensitivity 2 sqrt(1 + 0.15^2), or, if the level is learned,
        2 sqrt(1 + 0.15^2 + 0.2^2).

    **Limits.** Contexts are assumed to be symmetric about 0, or the centre, and roughly isotropic:
    where they are not, such as with a constant feature and no centre, the agent learns more slowly,
    and may never learn. It stores a (K d, K d) matrix.

    >>> from dpbandit import certify
    >>> round(certify(FadeArms(epsilon=1.0), "GLMBandit").epsilon, 6)
    1.0
    """

    level: bool | None = None
    """True if the level of rewards is learned; if None, it is learned if a known link does not put
    it in the middle of the range, or if the link is not known and features are few"""
    centred: bool = False
    """True if features are a constant and the direction of contexts from a centre, which is 0
    unless `FadeAsking` tells another; else the direction of contexts from 0"""

    def begin(self) -> None:
        spec, releases = self.spec, self.releases
        check_layout(self, shared=False)
        check_coordinates(self)
        R, K, d = self.R, spec.n_actions, spec.dim + self.centred
        level = self._asks_level() if self.level is None else self.level
        self.statistic = SignedResiduals(
            n_actions=K,
            dim=spec.dim,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            common=0.25 if K == 2 else 0.5,
            level_weight=_LEVEL_WEIGHT if level else 0.0,
            constant=_CONSTANT if self.centred else 0.0,
        )
        forgets = K * spec.dim <= _MAX_FORGETTING_COORDINATES and not level and releases.fade < 1
        first = self.first_rounds(spec)
        longest = max(1, spec.horizon // _MIN_BATCHES, first // 2) if forgets else None
        self.releases = replace(releases, longest=longest)
        self.sum_up(self.statistic, first, releases.level_ends(spec) if level else ())
        self.start_from(K * d, f"a parameter of {d} features for each of {K} arms")
        self._uniforms = self.streams.uniforms("exploration")
        self._selected = SelectedMoments(self.streams, K)
        self._answers = np.zeros(R, np.bool_)
        self._centre: Floats = np.zeros((R, spec.dim))
        self._ends = np.zeros(0, np.int64)
        self._theta: Floats = np.zeros((R, K, d))
        self._played: Floats = self._theta
        self._normals = self.streams.normals("posterior", K, d)
        self._missing_noise = max(0.0, 1 - self.sums.stddev / _LEAST_NOISE)
        self._information: Floats = np.zeros((R, K, d, d))  # of users, on theta; fading
        self._weights: Floats = np.ones((R, K, d))
        soft = _SIGN_WIDTH if spec.link in LINKS else MEAN_WIDTH
        self._law = ResidualLaw(R, spec.half_range, level_known=not level, soft=soft)
        self._counts: Floats = np.zeros(R)
        self._levels: Floats = np.zeros(R)
        self._design, self._offset = np.zeros((R, K, d, d)), np.zeros((R, K, d))
        self._b: Floats = np.zeros((R, K, d))
        self._precision: Floats = np.zeros((R, K, d, K, d))
        self._memory = Forgetting(R, K * d, spec.half_range) if forgets else None
        self._posterior = ScaleMixture(R, K * d)
        self._moments = [self._uniform_moments()]
        self._forgotten = 0  # number of policies before the first in `_moments`
        if self.known.informed:
            self._fit()
            self._played = self._theta
            self._moments = [self._moments_of(self._played)]

    def first_rounds(self, spec: ContextualSpec) -> int:
        """Return the rounds of the first batch, which is played uniformly at random."""
        return self.releases.first(spec, 4.5 * sqrt(spec.dim) * spec.n_actions / 2)

    def _asks_level(self) -> bool:
        """Return True if the agent learns the level of rewards by default (`level` is None)."""
        linked = self.spec.link != "other" or few_features(self.spec, self.releases.mu)
        return linked and not link_fixes_middle(self.spec)

    def act(self, context: Floats) -> Ints:
        # Arms (R,), or of several rounds (n, R); ties at random
        uniforms = self._uniforms.over(context.shape[:-1])
        if not (len(self._ends) or self.known.informed):
            return (uniforms * self.spec.n_actions).astype(np.int64)
        # without level and middle: rounding must not let the order depend on where the range lies
        score = np.matvec(self._played, self._features(context))
        best = score >= score.max(axis=-1, keepdims=True)
        order = (uniforms[..., None] + GOLDEN_STEP * rows(self.spec.n_actions)) % 1
        return np.where(best, 1 + order, 0.0).argmax(axis=-1)

    def scores(self, context: Floats) -> Floats:
        middle = (self.spec.reward_low + self.spec.reward_high) / 2
        return middle + self._law.level[:, None] + np.matvec(self._theta, self._features(context))

    def _features(self, context: Floats) -> Floats:
        """Return the features u of contexts, of norm 1, (..., d) or (..., 1 + d)."""
        return directions(context, self._centre, _CONSTANT) if self.centred else unit(context)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        data = (*self.reference(action).arrays, context, action, feedback)
        release = self.sums.take_rounds(action.shape, *data)
        if release is not None:
            self.add_release(release)

    def reference(self, action: Ints) -> Reference:
        """Return the reference points of rounds in which the arms `action` were played."""
        rest = {name: np.broadcast_to(x, action.shape) for name, x in self._law.reference.items()}
        if self.centred:
            rest["centre"] = np.broadcast_to(self._centre, (*action.shape, self.spec.dim))
        return Reference(pick(self._compared, action), pick(self._weights, action), **rest)

    @property
    def _compared(self) -> Floats:
        """Parameters with whose predictions rewards are compared, (R, K, d); 0 is the middle."""
        return np.where(self._answers[:, None, None], 0.0, self._theta)

    def add_release(self, release: Floats) -> None:
        """Learn from a release of the statistic, after `round` has been set to its last round."""
        signs, counts, levels = self.statistic.unpack(release)
        moments, n = self._batch_moments()
        kappa = self._learn_law(counts, levels, n)
        kappa = np.where(self._answers, 1 / self.spec.half_range, kappa)
        design = (n * kappa)[:, None, None, None] * moments
        self._add(signs, design)
        # Fisher information of one user's score: slope^2 / E score^2 along her direction
        per_score = (kappa / self._law.score_variance)[:, None, None, None]
        self._information = self.sums.fade * self._information + per_score * design
        self.known.widen(*self._likelihood())
        variance = self._fit()
        variance = np.maximum(variance, _LEAST_VARIANCE * self.spec.half_range**2)
        self._played = self._explored(variance)
        self._moments.append(self._moments_of(self._played))
        per_user = (kappa / variance[0].size)[:, None, None]
        self._weights = _focus(variance, per_user * n, max(self.sums.stddev, _LEAST_NOISE))

    def start_level(self, level: Floats, error: float, width: Floats) -> None:
        """Begin with a level (R,) of rewards, released by others, and its standard deviation.

        The level is the distance from the middle of the range; both are shares of the range. Scores
        of residuals are clipped at `width` (R,), in standard deviations of residuals.
        """
        span = self.spec.reward_high - self.spec.reward_low
        self._law.start(span * level, span * error, width)

    def start_contexts(self, centre: Floats) -> None:
        """Begin with a centre (R, d) of contexts, released by others."""
        self._centre = centre

    def start_answers(self, answers: Bools) -> None:
        """Compare rewards with the middle of their range, and not with predictions, where `answers`
        (R,) is True: those rewards are at its ends, so that a residual's sign says no more."""
        self._answers = answers

    def _moments_of(self, theta: Floats) -> Floats:
        """Return E[u u' 1(arm a is played)] for the policy argmax_a u . theta_a, (R, K, d, d)."""
        if not self.centred:
            return self._selected(theta)
        return self._selected.with_constant(theta, _CONSTANT)

    def _uniform_moments(self) -> Floats:
        """Return E[u u' 1(arm a is played)] for uniform play, (R, K, d, d)."""
        R, K, d = self.R, self.spec.n_actions, self.spec.dim
        if not self.centred:
            return np.tile(uniform_moments(K, d), (R, 1, 1, 1))
        squares = along(np.full(d, 1 / sqrt(d)), _CONSTANT) ** 2
        return np.tile(np.diag(squares) / K, (R, K, 1, 1))

    def _explored(self, variance: Floats) -> Floats:
        """Return the policy until the next release, (R, K, d): theta plus an exploration draw.

        The draw's covariance is that of theta's sampling error, by the faded number of users, with
        a normal prior of variance theta^2 + `variance`, so that coordinates near 0 stay there.
        """
        if not self._missing_noise:
            return self._theta
        prior = np.eye(self._theta.shape[2]) / (self._theta**2 + variance)[..., None]
        root = np.linalg.cholesky(self._information + prior).swapaxes(-1, -2)
        draw = np.linalg.solve(root, self._normals()[..., None])[..., 0]
        drawn = self._theta + _DRAW_WIDTH * self._missing_noise * draw
        # while the level alone is learned arms have no information: ties, played at random
        known = self._information.max(axis=(1, 2, 3))[:, None, None] > 0
        return np.where(known, drawn, self._theta)

    def _likelihood(self) -> tuple[Floats, Floats]:
        R, K, d = self._b.shape
        return self._b.reshape(R, K * d), self._precision.reshape(R, K * d, K * d)

    def _fit(self) -> Floats:
        """Set theta to its posterior mean and return the posterior variances, (R, K, d)."""
        b, precision = self._likelihood()
        mean, variance = self._posterior.fit(
            b + self.known.weighted_mean, precision + self.known.precision
        )
        self._theta = clip_norm(mean.reshape(self._b.shape), self.spec.half_range)
        return variance.reshape(self._b.shape)

    def learned(self, replica: int = 0) -> Prior:
        # The likelihood and the prior of this study, without the fitted one, times a normal law
        # with half the range of rewards for standard deviation of each coordinate
        b, precision = self._likelihood()
        P = precision + self.known.precision + np.eye(b.shape[1]) / self.spec.half_range**2
        mean = np.linalg.solve(P[replica], (b + self.known.weighted_mean)[replica])
        return posterior(mean, P[replica])

    def _batch_moments(self) -> tuple[Floats, int]:
        """Return E[u u' 1(arm a played)] of a batch, (R, K, d, d), and batch length; |u| = 1."""
        start = int(self._ends[-1]) if len(self._ends) else 0
        self._ends = np.append(self._ends, self.round)
        rounds = np.arange(start + 1, self.round + 2)  # and the next one
        policy = np.searchsorted(self._ends + self.spec.delay, rounds) - self._forgotten
        n = self.round - start
        share = np.bincount(policy[:-1]) / n
        parts = [s * m for s, m in zip(share, self._moments, strict=False) if s]
        next_policy = int(policy[-1])
        moments = parts[0] if len(parts) == 1 else np.asarray(sum(parts))
        keep = min(next_policy, len(self._moments))
        self._moments, self._forgotten = self._moments[keep:], self._forgotten + keep
        return moments, n

    def _learn_law(self, counts: Floats, levels: Floats | None, n: int) -> Floats:
        """Learn the residuals' law from a batch of n rounds; return the slope of scores, (R,)."""
        fade = self.sums.fade if len(self._ends) > 1 else 0.0
        noise = self.sums.stddev * sqrt(1 + fade**2) / n
        large = (counts - fade * self._counts) / n
        self._counts = counts
        if levels is None:
            return self._law.update(large, noise / self.statistic.spread_weight, n)
        weight = self.statistic.weight_of_level(self._law.share)
        fresh = (levels - fade * self._levels) / n / weight
        self._levels = levels
        return self._law.update(
            large, noise / self.statistic.spread_weight, n, fresh, noise / weight
        )

    def _add(self, signs: Floats, moments: Floats) -> None:
        """Add released scores (R, K, d) to the likelihood; their slope in theta is `moments`."""
        fade = self.sums.fade
        # |weights u| for directions u that are uniform on the sphere
        square = self._weights**2
        size = square[..., -self.spec.dim :].mean(axis=-1)
        size = np.sqrt(size + self.centred * _CONSTANT**2 * (square[..., 0] - size))
        fresh = (self._weights / size[..., None])[..., None] * moments
        self._design = fade * self._design + fresh
        self._offset = fade * self._offset + np.matvec(fresh, self._compared)
        gram = self.statistic.gram / max(self.sums.stddev, _LEAST_NOISE) ** 2
        b, precision = coded_likelihood(self._design, self._offset, signs, gram)
        if self._memory is None:
            self._b += b
            self._precision += precision
            return
        R, K, d = b.shape
        flat = b.reshape(R, K * d), precision.reshape(R, K * d, K * d)
        estimate = self._memory.add(*flat, self._theta.reshape(R, K * d))
        self._b = estimate[0].reshape(R, K, d)
        self._precision = estimate[1].reshape(R, K, d, K, d)


def _focus(variance: Floats, slope: Floats, stddev: float) -> Floats:
    """Return weights of coordinates for the next batch, (R, K, d), by water-filling with a floor.

    A squared weight w, of mean 1 over coordinates, adds precision w slope^2 / stddev^2. Without the
    floor a coordinate of variance v gets w = max(0, c - stddev^2 / (slope^2 v)), c equal for all.
    """
    with np.errstate(divide="ignore"):  # slope 0
        needed = np.minimum(stddev**2 / slope**2 / variance, _MAX_NOISE_RATIO)
    low = needed.min(axis=-1, keepdims=True)
    high = low + needed.shape[-1]
    for _ in range(50):
        level = (low + high) / 2
        over = np.maximum(level - needed, 0.0).mean(axis=-1, keepdims=True) > 1
        high, low = np.where(over, level, high), np.where(over, low, level)
    return np.sqrt((1 - _WEIGHT_FLOOR) * np.maximum(low - needed, 0.0) + _WEIGHT_FLOOR)


class ResidualLaw:
    """Posterior of the level and standard deviation of normal residuals, from released batches.

    With m the true level minus the level in force, s the standard deviation, e a residual, and
    `threshold` and `reach` constants of a batch::

        E [ +1 if |e| > threshold else -1 ] = 1 - 2 P(|e| <= threshold),      e ~ N(m, s^2)
        E clip(e / reach, -1, 1)              in closed form, too

    s has a posterior on a grid, whose geometric mean, `estimate`, is the next threshold; m has a
    normal posterior, of mean 0 because `level` moves to its mean. With `level_known` the level is
    the middle of the range, and m = 0.
    """

    def __init__(
        self, replicas: int, half_range: float, *, level_known: bool = True, soft: float = 0.0
    ) -> None:
        self._half, self._level_known = half_range, level_known
        self._soft: Floats = np.full(replicas, soft)
        self._grid = half_range * _SPREADS
        log_prior = np.where(_SPREADS > _SMALL_SPREAD, 0.0, -_SMALL_SPREAD_PENALTY)
        self._log: Floats = np.tile(log_prior, (replicas, 1))
        self.estimate: Floats = np.full(replicas, half_range * _FIRST_SPREAD)
        self.level: Floats = np.zeros(replicas)
        self._variance: Floats = np.full(replicas, 0.0 if level_known else half_range**2 / 3)

    def start(self, level: Floats, error: float, soft: Floats) -> None:
        """Begin with a released level (R,) that has the standard deviation `error`.

        Scores are clipped at `soft` (R,) standard deviations of residuals.
        """
        self.level, self._soft = level, soft
        self._variance = np.minimum(self._variance, error**2)

    @property
    def reference(self) -> dict[str, Floats]:
        """Fields of the next batch's `Reference` that follow from this posterior, (R,) each."""
        if self._level_known:
            return {"threshold": self.estimate}
        return {
            "threshold": self.estimate,
            "level": self.level,
            "width": self._soft * self.estimate,
            "reach": self._reach,
            "share": self.share,
        }

    @property
    def score_variance(self) -> Floats:
        """Mean squared score of a normal residual in batches that sum directions, not the level."""
        if self._level_known:
            return np.ones(1)  # signs
        w = self._soft  # E min(1, z^2 / w^2) of z ~ N(0, 1)
        density, beyond = sqrt(2 / pi) * np.exp(-0.5 * w * w), 2 * ndtr(-w)
        return (1 - beyond - w * density) / w**2 + beyond

    @property
    def share(self) -> Floats:
        """Weight of directions in the next batch, (R,); 0 while the level is uncertain, else 1."""
        return 1.0 * (self._variance <= self.estimate**2)

    @property
    def _reach(self) -> Floats:
        return np.clip(_LEVEL_REACH * np.sqrt(self._variance), self.estimate, self._half)

    def update(
        self,
        large: Floats,
        noise: float,
        n: int,
        fresh: Floats | None = None,
        level_noise: Floats | float = 0.0,
    ) -> Floats:
        """Learn from noisy means over a batch of n rounds; return the slope of its scores, (R,).

        `large` is the mean of +1 for residuals e beyond the threshold and -1 for others, `fresh`
        that of e / reach, clipped to [-1, 1].
        """
        nodes = np.zeros(1) if fresh is None else _LEVEL_GRID
        at = np.sqrt(self._variance)[:, None] * nodes  # (R, L)
        m, s = at[..., None], self._grid
        threshold = self.estimate[:, None, None]
        misfit = (large[:, None, None] - 1 + 2 * _within(m, s, threshold)) ** 2
        log = self._log[:, None] - 0.5 * misfit / (noise**2 + 1 / n) - 0.5 * nodes[:, None] ** 2
        if fresh is not None:
            reach = self._reach[:, None, None]
            doubt = np.reshape(level_noise, (-1, 1, 1)) ** 2 + np.minimum(1, (s / reach) ** 2) / n
            misfit = (fresh[:, None, None] - _clipped(m, s, reach)) ** 2
            log = log - 0.5 * misfit / doubt - 0.5 * np.log(doubt)
        chance = np.exp(log - log.max(axis=(1, 2), keepdims=True))
        chance /= chance.sum(axis=(1, 2), keepdims=True)
        if fresh is not None:
            width = (self._soft * self.estimate)[:, None, None]
            mean_slope = np.sum(chance * _within(m, s, width) / width, axis=(1, 2))
            slope = self.share * mean_slope
        spread = chance.sum(axis=1)
        self.estimate = np.exp(np.vecdot(spread, np.log(self._grid)))
        size, most = len(_SPREADS), len(_DRIFT_WEIGHTS) // 2
        padded = np.pad(spread, ((0, 0), (most, most)), mode="edge")
        changed = [w * padded[:, 2 * most - i :][:, :size] for i, w in enumerate(_DRIFT_WEIGHTS)]
        self._log = np.log(sum(changed) + 1e-12)
        if fresh is None:
            return np.asarray(sqrt(2 / pi) / self.estimate)
        levels = chance.sum(axis=2)
        moved = np.vecdot(levels, at)
        self.level = np.clip(self.level + moved, -self._half, self._half)
        self._variance = np.vecdot(levels, (at - moved[:, None]) ** 2)
        self._variance = self._variance + (_LEVEL_DRIFT * self.estimate) ** 2
        return slope


def _within(m: Floats, s: Floats, w: Floats) -> Floats:
    """Return the probability that a residual from N(m, s^2) lies within +-w."""
    return np.asarray(ndtr((w - m) / s) - ndtr((-w - m) / s))


def _clipped(m: Floats, s: Floats, w: Floats) -> Floats:
    """Return the mean of clip(e / w, -1, 1) for a residual e from N(m, s^2)."""
    a, b = (-w - m) / s, (w - m) / s
    density = (np.exp(-0.5 * a * a) - np.exp(-0.5 * b * b)) / sqrt(2 * pi)
    inside = (m * (ndtr(b) - ndtr(a)) + s * density) / w
    return np.asarray(ndtr(-b) - ndtr(a) + inside)


_SCALES = np.concatenate([[0.0], np.geomspace(0.1, 1000.0, 13)])
"""Prior variances of `ScaleMixture`, in units of the coordinates' median variance given the rest"""
_SWEEPS, _EM_STEPS = 5, 4
"""Number of coordinate sweeps of a fit, and of EM steps for the mixture's weights after each"""
_MIN_PRECISION_RATIO = 1e-20
"""Floor of a coordinate's precision, as a share of the largest coordinate's"""


class ScaleMixture:
    """Posterior of parameters x for likelihood exp(b . x - x' L x / 2) and a fitted scale mixture.

    Kim, Wang, Carbonetto and Stephens, "A flexible empirical Bayes approach to multiple linear
    regression and connections with penalized regression", JMLR 2024 (mr.ash): coordinates are
    independent a priori, each from a mixture of N(0, variance_k) on a grid that contains 0; the
    posterior is approximated by independent coordinates, updated one after the other given the
    means of all others (all at once they diverge); the mixture's weights are fitted by EM, with
    one pseudo-observation of 0. The next fit starts from these weights and means.
    """

    def __init__(self, replicas: int, size: int) -> None:
        self.mean: Floats = np.zeros((replicas, size))
        self._weights: Floats = np.full((replicas, len(_SCALES)), 1 / len(_SCALES))

    def fit(self, b: Floats, precision: Floats) -> tuple[Floats, Floats]:
        """Fit to b (R, n) and `precision` L (R, n, n); return means and variances, (R, n)."""
        R, n = b.shape
        diagonal = np.diagonal(precision, axis1=1, axis2=2)
        least = _MIN_PRECISION_RATIO * diagonal.max(axis=1, keepdims=True)
        diagonal = np.maximum(diagonal, np.where(least > 0, least, 1.0))
        s2 = 1 / diagonal
        prior = (_SCALES / np.median(diagonal, axis=1)[:, None])[:, None]  # (R, 1, k)
        total = prior + s2[..., None]
        gain, spread = prior / total, np.log(total)
        columns = np.ascontiguousarray(precision.transpose(1, 0, 2))
        mean, variance, seen = self.mean.copy(), np.empty((R, n)), np.empty((R, n))
        for _ in range(_SWEEPS):
            for j in range(n):
                x = (b[:, j] - np.vecdot(columns[j], mean)) * s2[:, j] + mean[:, j]
                seen[:, j] = x
                share = _posterior(x[:, None] ** 2 / total[:, j] + spread[:, j], self._weights)
                means = x[:, None] * gain[:, j]
                mean[:, j] = np.vecdot(share, means)
                second = np.vecdot(share, gain[:, j] * s2[:, j, None] + means**2)
                variance[:, j] = second - mean[:, j] ** 2
            loss = seen[..., None] ** 2 / total + spread
            for _ in range(_EM_STEPS):
                shares = _posterior(loss, self._weights[:, None])
                self._weights = (shares.sum(axis=1) + (_SCALES == 0)) / (n + 1)
        self.mean = mean
        return mean, np.maximum(variance, 0.0)


def _posterior(loss: Floats, weights: Floats) -> Floats:
    """Return posterior probabilities, weights times exp(-loss / 2), along the last axis."""
    share = np.exp(-0.5 * (loss - loss.min(axis=-1, keepdims=True))) * weights + 1e-300
    return np.asarray(share / share.sum(axis=-1, keepdims=True))


_FADE_RATES = np.array([1.0, 0.7, 0.5])
"""Candidate rates, factors by which the weight of earlier releases falls at each new release"""
_FADE_PENALTY = 3.0
"""Log prior odds of no forgetting (rate 1) against each smaller rate"""
_MAX_EVIDENCE_GAP = 12.0
"""Largest lag of a rate's log evidence behind the best rate's, so that it can catch up again"""
_FIRST_VARIANCE, _MIN_VARIANCE = 0.05, 0.001
"""Prior variance of a coordinate without estimates, and its floor, in units of its squared bound"""


class Forgetting:
    """Likelihood exp(b . x - x' L x / 2) of a changing x; old releases fade by 1, 0.7 or 0.5::

        evidence of a rate  +=  log of the predictive density of the release, x ~ N(0, v I) a priori
        b, L                 =  rate (b, L) + (b, L) of the release

    The rate with the largest evidence is used; no evidence falls more than 12 below the largest. v
    is the mean square of the last estimate. Whether and when x changes need not be known.

    Args:
        replicas: number of replicas, R.
        size: number of coordinates of x.
        largest: bound of the absolute value of a coordinate of x.
    """

    def __init__(self, replicas: int, size: int, largest: float) -> None:
        self._b: Floats = np.zeros((replicas, len(_FADE_RATES), size))
        self._L: Floats = np.zeros((replicas, len(_FADE_RATES), size, size))
        self._evidence = np.tile(np.where(_FADE_RATES < 1, -_FADE_PENALTY, 0.0), (replicas, 1))
        self._first, self._least = _FIRST_VARIANCE * largest**2, _MIN_VARIANCE * largest**2

    def add(self, b: Floats, L: Floats, mean: Floats) -> tuple[Floats, Floats]:
        """Add the linear term b (R, n) and precision L (R, n, n) of a release's log likelihood.

        Returns the sums of both, faded at the rate of the largest evidence.
        """
        variance = np.maximum((mean**2).mean(axis=1), self._least)
        variance = np.where(mean.any(axis=1), variance, self._first)
        ridge = np.eye(b.shape[1]) / variance[:, None, None, None]
        before = _FADE_RATES[:, None] * self._b, _FADE_RATES[:, None, None] * self._L
        self._b, self._L = before[0] + b[:, None], before[1] + L[:, None]
        gained = _evidence(self._b, self._L + ridge) - _evidence(before[0], before[1] + ridge)
        self._evidence = self._evidence + gained
        best = self._evidence.argmax(axis=1)
        behind = self._evidence - self._evidence.max(axis=1, keepdims=True)
        self._evidence = np.maximum(behind, -_MAX_EVIDENCE_GAP)
        each = rows(len(best))
        return self._b[each, best], self._L[each, best]


def _evidence(b: Floats, L: Floats) -> Floats:
    """Return the log of the integral of exp(b . x - x' L x / 2) over x, up to a constant."""
    _, size = np.linalg.slogdet(L)
    return np.asarray(0.5 * (np.vecdot(b, np.linalg.solve(L, b[..., None])[..., 0]) - size))
