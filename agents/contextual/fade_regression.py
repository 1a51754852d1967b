"""Greedy agents on ridge regressions of Gram matrices and moments, released by a fading sum."""

from math import sqrt
from typing import Any, Literal

import numpy as np
from scipy.special import expit

from dpbandit.agent import Arms, Least0, Positive, started
from dpbandit.agents.contextual.fading import OnDevices, check_layout
from dpbandit.agents.contextual.released_scores import LONGEST_STEP, MAX_NORM
from dpbandit.base import (
    Bools,
    Floats,
    InputError,
    Ints,
    best_allowed,
    clip_norm,
    norms,
    picks,
    random_allowed,
)
from dpbandit.privacy import FadingSum, SecondMoments
from dpbandit.specs import LINKS

_LEAST_EIGENVALUE = 0.3
"""Floor on eigenvalues of the regularised Gram matrix, in units of its noise's spectral norm"""
_MAX_ADVANCE = 2.0
"""Cap on the extra weight of the latest release, which would grow without bound as fade nears 1"""
_RESPONSE_BOUND = 0.75
"""Clipping bound of the norm of working response times row, in the logistic model at most 1"""
_UNCLIPPED = 1e4
"""Bound on working responses, so large that only the clipping of moments takes effect"""


class SummedRegression(Arms):
    """Base class of agents that play the best arm of a ridge regression on released sums.

    Release k sums N_k rounds (old rounds count less) with noise of stddev s_G off the Gram matrix's
    diagonal and s_u in the moment. Release k has the public weight N_k / (s_u^2 + N_k C^2 / d)
    in both sums, C the bound of contexts, so that E moment = E gram theta; then::

        theta = A^-1 moment,    A = gram + shift Gamma I,    Gamma = 2 sqrt(d) (added-up s_G),

    with the eigenvalues of A raised to at least 0.3 Gamma. Rewards are scaled to [-1, 1], or
    replaced by the sign of the scaled reward. The arm played maximises::

        x . theta + `bonus` s |A^-1 x|,       s = the added-up s_u,

    the prediction plus `bonus` standard deviations of its privacy noise, to try arms that few users
    with similar contexts have had. The first batch, and ties, are played uniformly at random.
    """

    masks = ("public", "user")
    sums = started(FadingSum)
    statistic = started(SecondMoments)
    _advance = 0.0
    """share, added at once, of the total weight that the latest users will get in later releases"""
    _least_noise = 0.0
    """smallest standard deviation of a release's noise that the bonus assumes"""

    def regress(
        self,
        statistic: SecondMoments,
        sums: Any,
        *,
        shift: float,
        bonus: float,
        signs: bool = False,
    ) -> None:
        """Initialise the regression on the releases of `sums`, such as a `FadingSum`."""
        self.sums, self.statistic = sums, statistic
        self._shift, self._bonus, self._signs = shift, bonus, signs
        self._uniforms = self.streams.uniforms("exploration")
        self._end, self._users = 0, 0.0
        R, (G, _), D = self.R, statistic.shape, statistic.block_dim
        self._gram, self._moment = np.zeros((R, G, D, D)), np.zeros((R, G, D))
        self._variance = 0.0  # of the moment's noise, in units of the statistic
        self._missing = 0.0  # variance by which noise falls short of `_least_noise`
        self._theta: Floats = np.zeros((R, G, D))
        self._width: Floats = np.zeros((R, G, D, D))  # bonus s A^-1

    @property
    def rounds_to_release(self) -> int:
        return self.sums.rounds_to_release

    def act(self, context: Floats) -> Ints:
        # Arms (R,), or (n, R); at random before the first release and where scores are equal
        score = self._indices(context)
        random = (self._uniforms.over(score.shape[:-1]) * self.spec.n_actions).astype(np.int64)
        tied = score.max(axis=-1) == score.min(axis=-1)
        return np.where(tied, random, score.argmax(axis=-1))

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        # As `act`, among the arms of `mask`
        score = self._indices(context)
        random = random_allowed(self._uniforms.over(mask.shape[:-1]), mask)
        highest = np.where(mask, score, -np.inf).max(axis=-1)
        tied = highest == np.where(mask, score, np.inf).min(axis=-1)
        return np.where(tied, random, best_allowed(score, mask))

    def scores(self, context: Floats) -> Floats:
        # Predicted rewards plus bonus, (R, K); with signs they order arms, on another scale
        low, high = self.spec.reward_low, self.spec.reward_high
        return (low + high) / 2 + (high - low) / 2 * self._predictors(context)

    def _indices(self, context: Floats) -> Floats:
        """Return the index of each arm, (R, K), the largest of which is played."""
        return self.scores(context)

    def learn(self, context: Floats, action: Ints, feedback: Floats) -> None:
        release = self.sums.take_rounds(action.shape, *self.row(context, action, feedback))
        if release is not None:
            self.add_release(release)

    def add_release(self, release: Floats) -> None:
        """Learn from a release of the statistic, after `round` has been set to its last round."""
        count, self._end = self.round - self._end, self.round
        self._users = self.sums.fade * self._users + count
        statistic, D = self.statistic, self.statistic.block_dim
        moment_unit = statistic.moment_bound / statistic.moment_weight
        weight = self._weight((moment_unit * self.sums.stddev) ** 2)
        gram, moment = statistic.unpack(release)
        self._forget()
        self._gram += weight * gram
        self._moment += weight * moment
        noise = (weight * self.sums.stddev) ** 2
        self._variance += noise
        more = min(self._advance * self.sums.fade / (1 - self.sums.fade), _MAX_ADVANCE)
        once_more = (1 + more) ** 2 - 1
        stddev = sqrt(self._variance + once_more * noise)
        missing = weight**2 * max(0.0, self._least_noise**2 - self.sums.stddev**2)
        self._missing += missing
        gram, moment = (
            total + more * weight * latest
            for total, latest in ((self._gram, gram), (self._moment, moment))
        )
        Gamma = 2 * sqrt(D) * statistic.context_bound**2 * stddev / sqrt(2)
        user = weight * statistic.context_bound**2
        self._theta, inverse = self._fit(Gamma, user, gram, moment)
        trying = sqrt(stddev**2 + self._missing + once_more * missing) if self._missing else stddev
        self._width = self._bonus * moment_unit * trying * inverse

    def _weight(self, noise: float) -> float:
        """Return the weight of a release whose moment has noise of variance `noise`."""
        statistic = self.statistic
        sampling = self._users * statistic.context_bound**2 / statistic.block_dim
        return self._users / (noise + sampling)

    def _predictors(self, context: Floats) -> Floats:
        """Return predictions x . theta_a plus the bonus of each arm, (R, K)."""
        predictor, width = self._predicted(context)
        return predictor + width

    def _predicted(self, context: Floats) -> tuple[Floats, Floats]:
        """Return predictions x . theta_a and exploration bonuses of all arms, (R, K) each."""
        if self.spec.shared:
            predictor, wide = np.matvec(context, self._theta[:, 0]), context @ self._width[:, 0]
        else:
            predictor = np.matvec(self._theta, context)
            wide = np.matvec(self._width, context[..., None, :])
        return predictor, norms(wide)[..., 0]

    def row(self, context: Floats, action: Ints, reward: Floats) -> tuple[Floats, Ints, Floats]:
        """Return the mechanism's input: contexts, actions and rewards scaled to [-1, 1]."""
        low, high = self.spec.reward_low, self.spec.reward_high
        scaled = (2 * np.asarray(reward, np.float64) - low - high) / (high - low)
        return context, action, np.sign(scaled) if self._signs else scaled

    def _forget(self) -> None:
        """Fade the sums of releases before another is added; does nothing in a linear model."""

    def _fit(
        self, Gamma: float, user: float, gram: Floats, moment: Floats
    ) -> tuple[Floats, Floats]:
        return self._solve(self._shift * Gamma + user, Gamma, gram, moment)

    def _solve(
        self, ridge: float, Gamma: float, gram: Floats, moment: Floats
    ) -> tuple[Floats, Floats]:
        """Return A^-1 moment and A^-1 for A = gram + ridge I, its eigenvalues bounded below."""
        eigenvalues, U = np.linalg.eigh(gram)
        positive = np.maximum(eigenvalues + ridge, max(_LEAST_EIGENVALUE * Gamma, 1e-12))
        inverse = (U / positive[..., None, :]) @ U.swapaxes(-1, -2)
        return np.matvec(U, np.vecmat(moment, U) / positive), inverse


class FadeRegression(OnDevices, SummedRegression):
    """Play slates by a ridge regression on fading sums of x x' and r x, one shared parameter.

    FADE's model of a shared parameter with coding="rewards", with more than 50 features, or if arms
    come and go, because the Gram matrix contains only contexts that were played::

        each round       sum x x' and r x, r the sign of the reward about the middle of its range,
                         or the reward scaled to [-1, 1] (`SecondMoments`)
        after release k  theta = A^-1 moment of all releases, A the regularised Gram matrix (see
                         `SummedRegression`)
        play             argmax_a x_a . theta + bonus s |A^-1 x_a|, s the noise of the moment

    Guarantee:
        The guarantee of `Fading`, with sensitivity 2 in units of r x: for rows x, y of norm at most
        1 and rewards r, s in [-1, 1], `|xx' - yy'|^2 / 2 + |rx - sy|^2 <= 4`, so that the Gram
        matrix at weight 1 / sqrt(2) adds nothing to the sensitivity.

    **Limits.** Predictions of signs rank arms and are not in units of the reward.

    >>> from dpbandit import certify
    >>> round(certify(FadeRegression(epsilon=1.0), "Recommendation").epsilon, 6)
    1.0
    """

    # 11 settings: three of a regression, and those of every fading sum on devices
    response: Literal["auto", "sign", "linear"] = "auto"
    """response of the regression, the reward's sign or ("linear") the scaled reward; "auto" is
    "sign" for identity, logistic and probit links, otherwise "linear" """
    shift: Positive = 1.0
    """ridge, in units of the spectral norm of the Gram matrix's noise"""
    bonus: Least0 = 0.0
    """size of the bonus, in standard deviations of the privacy noise in a prediction"""
    _shared = True

    def begin(self) -> None:
        spec = self.spec
        check_layout(self, shared=self._shared)
        statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=spec.context_norm,
            reward_low=-1.0,
            reward_high=1.0,
            # at w^2 = 2 the Gram matrix is free, sensitivity 2 for a moment of length 1
            moment_weight=sqrt(2),
        )
        blocks = 1 if spec.shared else spec.n_actions
        self.sum_up(statistic, self.releases.first(spec, 4 * sqrt(spec.dim) * blocks))
        linked = self.response == "auto" and spec.link in LINKS
        signs = self.response == "sign" or linked
        self.regress(statistic, self.sums, shift=self.shift, bonus=self.bonus, signs=signs)


class FadeTrying(FadeRegression):
    """Play arms with parameters of their own by ridge regressions with randomised bonuses.

    FADE's model of few features with coding="rewards", or with a logistic link and little noise, of
    very few without a known link, and of arms that come and go. It sums x x' and r x as
    `FadeRegression` does, but for each arm by itself, and plays the arm with the largest::

        x . theta_a + bonus s |A_a^-1 x| z_a,       z_a ~ N(0, 1), drawn for every user and arm

    A_a is the regularised Gram matrix, s the noise of the moment (`SummedRegression`). A fixed
    bonus would send a whole batch of users in a new part of context space to one arm; draws send
    them to all arms, so that one batch suffices to compare arms. s is at least the noise of one
    release at epsilon 10: with width 0 the agent could lock in an arm that was the best by chance.
    Users of the latest batch will get fade / (1 - fade) times their current weight in later
    releases; half of that is added at once. All this is post-processing of releases and coins.

    Guarantee:
        The guarantee of `FadeRegression`.

    >>> from dpbandit import certify
    >>> round(certify(FadeTrying(epsilon=1.0), "GLMBandit").epsilon, 6)
    1.0
    """

    bonus: Least0 = 1.5
    """width of the random draws, in standard deviations of the privacy noise in a prediction"""
    _shared = False
    _advance = 0.5
    _least_noise = 1.4

    def begin(self) -> None:
        super().begin()
        self._draws = self.streams.normals("tries", self.spec.n_actions)

    def _indices(self, context: Floats) -> Floats:
        predictor, width = self._predicted(context)
        return predictor + width * self._draws.over(context.shape[:-1])

    def _predictors(self, context: Floats) -> Floats:
        return self._predicted(context)[0]


class FadeLogistic(OnDevices, SummedRegression):
    """Play slates by a logistic model of one shared parameter, fitted by damped Newton steps.

    FADE's model of sales with coding="rewards", inside `Priced`, and of rewards r in [0, 1]. It
    sums Gram matrix and moment of reweighted rows (iteratively reweighted least squares, Green,
    JRSS B 1984): at the parameter theta played in a batch, with z = x . theta, p = logistic(z) and
    weight h = 4 p (1 - p) in [0, 1], the rows::

        sqrt(h) x,     working response (r - p + h z / 4) / sqrt(h)

    make linear regression a Newton step, and their moments are bounded: `|r - p + h z / 4| <= 1`.
    The ridge shrinks towards the previous parameter, not towards 0, and sums linearised at older
    parameters fade by 0.8 per release. Steps have norm at most 3 and end in a public ball: for
    steep demand full Newton steps diverge, the more so the smaller the noise. All this is
    post-processing of releases. The arm with the largest predictor plus bonus is played.

    Guarantee:
        The guarantee of `Fading`, with sensitivity sqrt(5) in units of x x'.

    >>> from dpbandit import certify
    >>> round(certify(FadeLogistic(epsilon=1.0), "Recommendation").epsilon, 6)
    1.0
    """

    shift: Positive = 0.5
    """ridge, in units of the spectral norm of the Gram matrix's noise"""
    bonus: Least0 = 0.0
    """size of the bonus, in standard deviations of the privacy noise in a prediction"""
    _forgetting = 0.8

    def begin(self) -> None:
        spec, C = self.spec, self.spec.context_norm
        if not spec.shared or (spec.reward_low, spec.reward_high) != (0.0, 1.0):
            raise InputError(
                "Expected response='logistic' only with one shared parameter and rewards in "
                "[0, 1]: choose another agent, such as fade."
            )
        statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared",
            context_bound=C,
            reward_low=-_UNCLIPPED,
            reward_high=_UNCLIPPED,
            moment_clip=_RESPONSE_BOUND * C,
            moment_weight=1.0,
        )
        self.sum_up(statistic, self.releases.first(spec, 4 * sqrt(spec.dim)))
        self.regress(statistic, self.sums, shift=self.shift, bonus=self.bonus)

    def scores(self, context: Floats) -> Floats:
        return np.asarray(expit(self._predictors(context)))

    def row(self, context: Floats, action: Ints, reward: Floats) -> tuple[Floats, Ints, Floats]:
        x = picks(context, action)
        z = np.vecdot(x, self._theta[:, 0])
        p = expit(z)
        h = np.maximum(4 * p * (1 - p), 1e-8)
        root = np.sqrt(h)
        return context * root[..., None, None], action, (reward - p + h * z / 4) / root

    def _forget(self) -> None:
        self._gram *= self._forgetting
        self._moment *= self._forgetting
        self._variance *= self._forgetting**2

    def _fit(
        self, Gamma: float, user: float, gram: Floats, moment: Floats
    ) -> tuple[Floats, Floats]:
        ridge = (self._shift * Gamma + user) / 4
        moment = moment + ridge * self._theta
        theta, inverse = self._solve(ridge, Gamma / 4, gram / 4, moment)
        step = clip_norm(theta - self._theta, LONGEST_STEP)
        return clip_norm(self._theta + step, MAX_NORM), inverse
