"""Greedy play on regressions whose Gram matrices and moments are released by a fading sum."""

from math import sqrt
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
from scipy.special import expit

from dpbandit.agents.contextual.released_scores import BALL, LONGEST_STEP
from dpbandit.base import (
    Bools,
    Floats,
    Ints,
    Streams,
    best_allowed,
    clip_norm,
    norms,
    picks,
    random_allowed,
    rounds_in,
)
from dpbandit.privacy import Ledger, SecondMoments
from dpbandit.specs import ContextualSpec, Masks

_LEAST_EIGENVALUE = 0.3
"""In units of the noise's spectral norm: what is smaller is taken for noise."""

_MOST_AHEAD = 2.0
"""By so much the latest release counts more, where users hardly fade."""


class Summing(Protocol):
    """What releases sums of batches, as `FadingSum` does."""

    @property
    def fade(self) -> float:
        """Weight of a batch in the next sum."""
        ...

    @property
    def stddev(self) -> float:
        """Of the noise of the latest sum."""
        ...

    @property
    def rounds_to_release(self) -> int:
        """Number of rounds until the batch ends."""
        ...

    def fed(self, lead: tuple[int, ...], *data: npt.NDArray[Any]) -> Floats | None:
        """Raw rounds, one or several -> the sum at the end of a batch, else None."""
        ...


class RegressionPlayer:
    """Plays the best predicted arm of a ridge regression on released sums.

    Release k, of N_k rounds (faded ones count less), has Gram noise of off-diagonal stddev s_G and
    moment noise s_u. All releases are added with weights N_k / (s_u^2 + N_k C^2 / D), public
    numbers, and the same for both sums, so that E moment = E gram theta exactly; then::

        theta = (gram + shift Gamma I)^-1 moment,       Gamma = 2 sqrt(D) (added-up s_G),

    where no eigenvalue of the matrix A that is solved with is less than 0.3 Gamma. Rewards enter on
    a scale from -1 to 1, or as the sign of that. What is played is the largest::

        x . theta + `bonus` s |A^-1 x|,       s = the added-up s_u,

    a prediction and as many standard deviations of what privacy alone adds to it: where no user
    like this one was ever sent, an arm keeps its width, and is tried. The first batch, and ties,
    are played uniformly at random.
    """

    masks: tuple[Masks, ...] = ("public", "user")
    _ahead = 0.0
    """Share of what its users have still to come by which the latest release counts more."""
    _least_noise = 0.0
    """Widths take releases for at least as noisy."""

    def __init__(
        self,
        spec: ContextualSpec,
        sums: Summing,
        statistic: SecondMoments,
        streams: Streams,
        ledger: Ledger,
        *,
        shift: float,
        bonus: float,
        signs: bool = False,
    ) -> None:
        self.ledger, self._signs, self._bonus = ledger, signs, bonus
        self._spec, self._sums, self._statistic, self._shift = spec, sums, statistic, shift
        self._luck = streams.uniforms("exploration")
        self._round, self._end, self._users = 0, 0, 0.0
        R, (G, _), D = len(streams), statistic.shape, statistic.block_dim
        self._gram, self._moment = np.zeros((R, G, D, D)), np.zeros((R, G, D))
        self._variance = 0.0  # of the moment's noise, in units of the statistic
        self._missing = 0.0  # of that to `_least_noise`
        self._theta: Floats = np.zeros((R, G, D))
        self._width: Floats = np.zeros((R, G, D, D))  # bonus s A^-1

    @property
    def rounds_to_release(self) -> int:
        """Number of rounds from now on with the same policy, which may be played at once."""
        return self._sums.rounds_to_release

    def act(self, context: Floats) -> Ints:
        # Arms (R,), or (n, R); at random before the first release and where scores are equal
        score = self._hopes(context)
        random = (self._luck.over(score.shape[:-1]) * self._spec.n_actions).astype(np.int64)
        tied = score.max(axis=-1) == score.min(axis=-1)
        return np.where(tied, random, score.argmax(axis=-1))

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        """The same of the arms that are there."""
        score = self._hopes(context)
        random = random_allowed(self._luck.over(mask.shape[:-1]), mask)
        highest = np.where(mask, score, -np.inf).max(axis=-1)
        tied = highest == np.where(mask, score, np.inf).min(axis=-1)
        return np.where(tied, random, best_allowed(score, mask))

    def scores(self, context: Floats) -> Floats:
        # Hoped-for rewards, (R, K); with signs on a scale of their own, in the same order
        low, high = self._spec.reward_low, self._spec.reward_high
        return (low + high) / 2 + (high - low) / 2 * self._predictors(context)

    def _hopes(self, context: Floats) -> Floats:
        """What decides, (R, K)."""
        return self.scores(context)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self._round += rounds_in(action.shape)
        release = self._sums.fed(action.shape, *self._row(context, action, feedback))
        if release is None:
            return
        count, self._end = self._round - self._end, self._round
        self._users = self._sums.fade * self._users + count
        statistic, D = self._statistic, self._statistic.block_dim
        moment_unit = statistic.moment_bound / statistic.moment_weight
        weight = self._weight((moment_unit * self._sums.stddev) ** 2)
        gram, moment = statistic.unpack(release)
        self._forget()
        self._gram += weight * gram
        self._moment += weight * moment
        noise = (weight * self._sums.stddev) ** 2
        self._variance += noise
        more = min(self._ahead * self._sums.fade / (1 - self._sums.fade), _MOST_AHEAD)
        once_more = (1 + more) ** 2 - 1
        stddev = sqrt(self._variance + once_more * noise)
        missing = weight**2 * max(0.0, self._least_noise**2 - self._sums.stddev**2)
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
        """Of a release, whose moment has noise of that variance."""
        statistic = self._statistic
        sampling = self._users * statistic.context_bound**2 / statistic.block_dim
        return self._users / (noise + sampling)

    def _predictors(self, context: Floats) -> Floats:
        """x . theta_a and the bonus, (R, K)."""
        predictor, width = self._predicted(context)
        return predictor + width

    def _predicted(self, context: Floats) -> tuple[Floats, Floats]:
        """x . theta_a, and `bonus` s |A^-1 x|, (R, K)."""
        if self._spec.shared:
            predictor, wide = np.matvec(context, self._theta[:, 0]), context @ self._width[:, 0]
        else:
            predictor = np.matvec(self._theta, context)
            wide = np.matvec(self._width, context[..., None, :])
        return predictor, norms(wide)[..., 0]

    def _row(self, context: Floats, action: Ints, reward: Floats) -> tuple[Floats, Ints, Floats]:
        """What the mechanism is fed: rewards on a scale from -1 to 1."""
        low, high = self._spec.reward_low, self._spec.reward_high
        scaled = (2 * np.asarray(reward, np.float64) - low - high) / (high - low)
        return context, action, np.sign(scaled) if self._signs else scaled

    def _forget(self) -> None:
        """A linear model may remember everything."""

    def _fit(
        self, Gamma: float, user: float, gram: Floats, moment: Floats
    ) -> tuple[Floats, Floats]:
        return self._solve(self._shift * Gamma + user, Gamma, gram, moment)

    def _solve(
        self, ridge: float, Gamma: float, gram: Floats, moment: Floats
    ) -> tuple[Floats, Floats]:
        """A^-1 moment (R, G, D) and A^-1 (R, G, D, D)."""
        eigenvalues, U = np.linalg.eigh(gram)
        positive = np.maximum(eigenvalues + ridge, max(_LEAST_EIGENVALUE * Gamma, 1e-12))
        inverse = (U / positive[..., None, :]) @ U.swapaxes(-1, -2)
        return np.matvec(U, np.vecmat(moment, U) / positive), inverse


class TryingPlayer(RegressionPlayer):
    """The same for arms with parameters of their own, each of which is tried while it may be best.

    What is played is the largest of::

        x . theta_a + `bonus` s |A_a^-1 x| z_a,       z_a ~ N(0, 1), drawn for every user and arm

    A fixed bonus sends a whole batch of users whom nobody was like to one and the same arm; draws
    send them to all arms, so that one batch is enough to compare these. With less noise than that
    of one release at epsilon 10, s is what it would be then: width 0 would keep to an arm that was
    the best by chance. Users fade in, too: of the
    weight that a user of the latest batch has still to come in later releases, fade / (1 - fade)
    times the one that she has, half is given to her at once. That is post-processing of releases,
    and public coins.
    """

    _ahead = 0.5
    _least_noise = 1.4

    def __init__(
        self,
        spec: ContextualSpec,
        sums: Summing,
        statistic: SecondMoments,
        streams: Streams,
        ledger: Ledger,
        **settings: Any,
    ) -> None:
        super().__init__(spec, sums, statistic, streams, ledger, **settings)
        self._draws = streams.normals("tries", spec.n_actions)

    def _hopes(self, context: Floats) -> Floats:
        predictor, width = self._predicted(context)
        return predictor + width * self._draws.over(context.shape[:-1])

    def _predictors(self, context: Floats) -> Floats:
        return self._predicted(context)[0]


class LogisticPlayer(RegressionPlayer):
    """The same for a logistic model of one shared parameter, fitted by damped Newton steps.

    Iteratively reweighted least squares (Green, JRSS B 1984): at the parameter theta_k played in a
    batch, with z = x . theta_k, p = logistic(z) and weight h = 4 p (1 - p) in [0, 1], the rows::

        sqrt(h) x,     working response (r - p + h z / 4) / sqrt(h)

    make linear regression a Newton step, and their moments are bounded: `|r - p + h z / 4| <= 1`.
    The ridge pulls towards the parameter before, not towards 0, and what was linearised at
    parameters of long ago is forgotten by a factor a release. Steps are at most 3 long and end in a
    public ball: where demand is steep, whole Newton steps diverge, the more the less noise there is
    to shorten them. That is post-processing of releases.
    """

    _forgetting = 0.8

    def scores(self, context: Floats) -> Floats:
        return np.asarray(expit(self._predictors(context)))

    def _row(self, context: Floats, action: Ints, reward: Floats) -> tuple[Floats, Ints, Floats]:
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
        return clip_norm(self._theta + step, BALL), inverse
