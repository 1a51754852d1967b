"""Agents that learn from contexts, or from rewards, minus a released mean."""

from dataclasses import field, replace
from math import ceil, inf, sqrt
from typing import Any

import numpy as np

from dpbandit.agent import Around, Inner
from dpbandit.agents.contextual.fading import (
    Fading,
    check_coordinates,
    check_layout,
    coded_likelihood,
    in_force,
    spec_after,
    trust_after,
)
from dpbandit.base import (
    MOST_ROUNDS,
    Bools,
    Floats,
    InputError,
    Ints,
    clip_norm,
    pick,
    rounds_in,
    rows,
)
from dpbandit.privacy import (
    BatchSum,
    ClippedVectors,
    FadingSum,
    Gaussian,
    GaussianSpend,
    Parallel,
    delta_of,
    epsilon_of,
    ledger_of,
    mu_of,
)
from dpbandit.privacy.fading import column_norm, growing_batches, released_ends
from dpbandit.privacy.premises import ALL_FACTS
from dpbandit.privacy.residuals import CentredResiduals, along, directions, unit
from dpbandit.specs import ContextualSpec, ScoringAgent, acted

_CENTRE_USERS = 20
"""Number of users whose contexts are summed for the centre, in units of sqrt(d) / mu"""
_MIN_CENTRE_USERS = 200.0
"""Smallest number of users whose contexts are summed for the centre, but for short runs"""
_MIN_FIRST_USERS = 40.0
"""Smallest number of users per arm in the first batch, against overfitting"""
_IMAGINED_USERS = 400
"""Number of synthetic users drawn to represent the users of a past batch"""
_LEAST_NOISE = 1.0
"""Floor of a release's assumed noise, in units of a user's score, as one score may be an outlier"""
_DRAW_WIDTH = 0.5
"""Width of exploration draws without privacy noise, in standard deviations of the sampling error"""
_LEVEL_SHARE = 1.5
"""Ratio c^2 / (1 - c^2) for the constant c, times sqrt(d) for d features. With 1 predictions would
have the least noise if slopes had no prior; they have one, so that levels matter more"""
_SLOPE_SD, _CONSTANT_SD = 0.3, 1.0
"""Prior standard deviations of a feature's coefficient, before a fit, and of the constant"""
_EM_STEPS = 3  # EM steps for the prior variance of coefficients after a release
_MAX_PARAMETER_NORM = 5.0
"""Largest norm of an arm's parameter, in units of the range of rewards"""


class FadeCentred(Fading):
    """Play arms with parameters of their own, learned from directions of contexts from their mean.

    FADE's model of arms whose rewards are answers at the ends of their range (`FadeAsking`), or, if
    nobody is asked, without a known link and with too few users to learn level and spread. With
    u = (constant, direction of x from its released mean), y the reward scaled to [0, 1], and p the
    prediction of y::

        first            release the mean context of n users, the centre, and nothing else of these
                         users (`BatchSum`)
        each round       sum y - p at the released theta, along u, coded by arm
                         (`CentredResiduals`)
        after release k  H_a = n E[u u' w; arm a is played], h_a = n E[u p w; arm a is played],
                         w = 1 / max(p, 1 - p), n rounds, E over synthetic users of the batch;
                         A = fade A + H,  c = fade c + h:  release k = A truth - c + noise,
                         whose likelihood multiplies that of earlier releases;
                         theta = the posterior mean under a normal prior, whose variance is fitted
                         trust = t / (t + 100) after t rounds
        play             argmax_a u . played_a,  played = theta, or if noise is small a draw near it

    Without centring, most of a user's bounded score would lie along the mean context, which all
    users share. Directions from the mean separate classes of users. Until the end of the first
    batch play is random and p is 1/2, which gives up to twice the information per unit of
    sensitivity; later p is 1/2 and the prediction at theta, averaged with weights 1 - trust and
    trust: residuals from predictions have expectation 0 at the true theta for all contexts.

    Guarantee:
        The guarantee of `Fading`, with sensitivity 2. No user is in both sums, so that all releases
        cost the larger cost of the two mechanisms (`Parallel`). All else is a function of releases,
        public coins and the user's own context.

    **Limits.** Contexts are assumed to be symmetric and roughly isotropic about their mean.

    >>> from dpbandit import certify
    >>> round(certify(FadeCentred(epsilon=1.0), "ClassificationBandit").epsilon, 6)
    1.0
    """

    def begin(self) -> None:
        spec, streams, mu = self.spec, self.streams, self.releases.mu
        check_layout(self, shared=False)
        check_coordinates(self)
        R, K, d, D = self.R, spec.n_actions, spec.dim, 1 + spec.dim
        # first rounds, whose contexts are summed and whose scores are not
        self._before = centre_users(spec, mu)
        bound = spec.context_norm
        noise = Gaussian(2 * bound / mu).sampler(streams.child("centre"), "noise", (d,))
        paid = GaussianSpend(mu, "a mean")
        self._first = BatchSum(d, bound, users=self._before, noise=noise, spend=paid)
        self.statistic = CentredResiduals(
            n_actions=K,
            dim=d,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            constant=sqrt(_LEVEL_SHARE / (_LEVEL_SHARE + sqrt(d))),
        )
        later = spec_after(spec, self._before)
        second, first = self.first_batches(later)
        self._random_rounds = first[-1]
        self.sums = self.releases.sums(self.statistic, later, streams, second, first)
        spend = Parallel((self.sums.spend, self._first.spend), "contexts or scores")
        self.ledger = self.releases.ledger(spend)
        self._uniforms = streams.uniforms("exploration")
        self._users = streams.normals("imagined users", _IMAGINED_USERS, d)
        self._ends = np.zeros(0, np.int64)
        self._centre: Floats = np.zeros((R, d))
        self._trust = 0.0
        self._theta: Floats = np.zeros((R, K, D))
        self._played: Floats = self._theta  # theta plus an exploration draw
        self._policies: list[Floats | None] = []  # `_played` after each release; None is random
        self._normals = streams.normals("posterior", K, D)
        self._information: Floats = np.zeros((R, K, D, D))  # of all users, on theta
        self._design, self._offset = np.zeros((R, K, D, D)), np.zeros((R, K, D))
        self._b, self._precision = np.zeros((R, K, D)), np.zeros((R, K, D, K, D))
        self._variance: Floats = np.full(R, _SLOPE_SD**2)

    @property
    def rounds_to_release(self) -> int:
        return super().rounds_to_release if self.round >= self._before else 1

    def act(self, context: Floats) -> Ints:
        # Arms (R,), or of several rounds (n, R); at random before the first release
        if self._policies and self._policies[-1] is not None:
            return self._shares(context, self._played).argmax(axis=-1)
        return (self._uniforms.over(context.shape[:-1]) * self.spec.n_actions).astype(np.int64)

    def scores(self, context: Floats) -> Floats:
        low, high = self.spec.reward_low, self.spec.reward_high
        return low + (high - low) * self._shares(context, self._theta)

    def _shares(self, context: Floats, theta: Floats) -> Floats:
        """Return the predicted rewards of all arms, as shares of the range, (..., R, K)."""
        return np.matvec(theta, directions(context, self._centre, self.statistic.constant))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        # Sum contexts at first, scores later; fit after every release of scores
        if self.round < self._before:
            self.round += 1
            total = self._first(context)
            if total is not None:
                self.centre_on(total / self._before)
            return
        self.round += rounds_in(action.shape)
        data = (*self.reference(context, action), context, action, feedback)
        release = self.sums.take_rounds(action.shape, *data)
        if release is not None:
            self.add_release(release)

    def _explored(self) -> Floats:
        """Return the policy until the next release, theta plus a draw if noise is small.

        The draw's covariance is that of theta's sampling error, by the number of users, as the
        likelihood is that of the privacy noise alone.
        """
        missing = max(0.0, 1 - self.sums.stddev / _LEAST_NOISE)
        if not missing:
            return self._theta
        ridge = np.eye(self._theta.shape[-1]) / self._variance[:, None, None, None]
        root = np.linalg.cholesky(self._information + ridge).swapaxes(-1, -2)
        draw = np.linalg.solve(root, self._normals()[..., None])[..., 0]
        return self._theta + _DRAW_WIDTH * missing * draw

    def first_batches(self, spec: ContextualSpec) -> tuple[int, tuple[int]]:
        """Return the length of the second batch, and the end of the first, played at random."""
        least = _MIN_FIRST_USERS * spec.n_actions
        first = self.releases.first(spec, 4 * sqrt(spec.dim) * spec.n_actions, least)
        return max(1, ceil(self.growth * first)), (first,)

    def sum_no_contexts(self) -> None:
        """Sum scores from the first round on: others release the centre."""
        self._before = 0

    def centre_on(self, mean: Floats) -> None:
        """Set the centre to the first users' released mean context, (R, d)."""
        self._centre = clip_norm(mean, self.spec.context_norm)

    def reference(self, context: Floats, action: Ints) -> tuple[Floats, Floats, Floats]:
        """Return parameter, trust and centre of rounds in which the arms `action` were played."""
        trust = np.full(action.shape, self._trust)
        return pick(self._theta, action), trust, np.broadcast_to(self._centre, context.shape)

    def add_release(self, release: Floats) -> None:
        """Learn from a release of the statistic, after `round` has been set to its last round."""
        self._ends = np.append(self._ends, self.round - self._before)
        self._add(self.statistic.unpack(release))
        self._fit()

    def _add(self, scores: Floats) -> None:
        """Add the released sum of scores of each arm, (R, K, d + 1), to the likelihood."""
        theta, K = self._theta, self.spec.n_actions
        u = along(unit(self._users()), self.statistic.constant)  # (R, N, D)
        releases_used = in_force(self._ends[-2:], self.spec.delay, _IMAGINED_USERS)[-1]
        releases_used = releases_used + max(0, len(self._ends) - 2)
        played = np.full((len(theta), _IMAGINED_USERS, K), 1 / K)
        for k in np.unique(releases_used[releases_used > 0]):
            if (policy := self._policies[k - 1]) is None:
                continue
            shares = np.matvec(policy[:, None], u[:, releases_used == k])
            played[:, releases_used == k] = 1.0 * (shares.argmax(axis=2)[..., None] == rows(K))
        p = self.statistic.chance(u @ theta.swapaxes(1, 2), self._trust)  # (R, N, K)
        n = self._ends[-1] - (self._ends[-2] if len(self._ends) > 1 else 0)
        weight = (n / _IMAGINED_USERS * played / np.maximum(p, 1 - p)).swapaxes(1, 2)  # (R, K, N)
        fade = self.sums.fade
        design = (weight[..., None] * u[:, None]).swapaxes(2, 3) @ u[:, None]
        self._design = fade * self._design + design
        self._information += design
        self._offset = fade * self._offset + (weight * p.swapaxes(1, 2)) @ u
        gram = self.statistic.gram / max(self.sums.stddev, _LEAST_NOISE) ** 2
        b, precision = coded_likelihood(self._design, self._offset, scores, gram)
        self._b += b
        self._precision += precision

    def _fit(self) -> None:
        """Set theta to its posterior mean by a normal prior whose variance is fitted by EM."""
        R, K, D = self._b.shape
        for _ in range(_EM_STEPS):
            ridge = np.tile(1 / self._variance[:, None, None], (1, K, D))
            ridge[..., 0] = _CONSTANT_SD**-2
            precision = self._precision.reshape(R, K * D, K * D)
            inverse = np.linalg.inv(precision + ridge.reshape(R, K * D, 1) * np.eye(K * D))
            theta = np.matvec(inverse, self._b.reshape(R, K * D)).reshape(R, K, D)
            spread = np.diagonal(inverse, axis1=1, axis2=2).reshape(R, K, D)
            self._variance = (theta**2 + spread)[..., 1:].mean(axis=(1, 2))
        self._theta = clip_norm(theta, _MAX_PARAMETER_NORM)
        self._played = self._explored()
        self._policies.append(self._played if self._ends[-1] >= self._random_rounds else None)
        self._trust = trust_after(int(self._ends[-1]))


def centre_users(spec: ContextualSpec, mu: float) -> int:
    """Return the number of first users whose contexts are summed for the centre."""
    least = ceil(max(_MIN_CENTRE_USERS, _CENTRE_USERS * sqrt(spec.dim) / mu))
    return max(1, min(least, spec.horizon // 20))


_CENTRE_SHARE = 0.04
"""Share of the squared budget mu^2 for the centre; the inner agent's noise grows by 2 %"""
_CENTRE_FIRST, _CENTRE_GROWTH, _CENTRE_FADE = 50, 0.2, 0.7
"""Rounds in the first batch of rewards for the centre, growth of batches, and fade of their sums"""
_MIN_DEVIATIONS = 3.0
"""Distance from the middle at which the released mean moves the centre, in its noise's stddevs"""


class PrivatelyCentred(Around[ContextualSpec]):
    """Wrapper whose inner agent gets rewards minus a centre, the released mean reward so far.

    Rewards are scaled to [-1, 1]; their faded sums are released after 50 rounds (a tenth of a
    shorter run) and then in batches each a fifth longer. The mean over all releases is the next
    centre if it is more than three standard deviations of its noise from 0. A centre is fixed
    before the users arrive to whom it is applied. The sign of r - centre is most informative with a
    centre amid the rewards, and constant if all rewards lie on one side of it, as can happen with
    the middle of a public range that is too wide.

    Guarantee:
        The inner agent is mu sqrt(0.96)-GDP for rewards that are a function of the user's reward
        and of releases; the sums of rewards, which a user moves by at most 2, are
        mu sqrt(0.04)-GDP; together mu-GDP with the mu of (epsilon, delta), adaptively composed.
    """

    # the inner agent's rewards are a function of the user's and of releases; rounds are unchanged
    hands_on = ALL_FACTS

    plays = ContextualSpec
    agent: Inner = field(kw_only=False)
    """config of the inner agent, with Gaussian releases; its target holds for agent and centre"""

    def check(self) -> None:
        if getattr(self.agent, "trust", "central") != "central":
            raise InputError(
                "Expected trust='aggregated' to be 'central' with a private centre: nobody keeps "
                "exact sums there."
            )

    def start(self) -> None:
        inner: Any = self.agent
        epsilon, delta, streams = inner.epsilon, inner.delta, self.streams
        if getattr(inner, "anytime", False):
            self.spec = replace(self.spec, horizon=MOST_ROUNDS)
        spec, private = self.spec, epsilon < inf
        mu = mu_of(epsilon, delta) * (1 - 1e-6) if private else inf
        first = max(1, min(_CENTRE_FIRST, spec.horizon // 10))
        ends = growing_batches(spec.horizon, first=first, growth=_CENTRE_GROWTH)
        releases = len(released_ends(ends, spec.horizon))
        share = _CENTRE_SHARE if releases else 0.0
        self._sums = FadingSum(
            ClippedVectors(1),
            streams.child("centre"),
            ends=ends,
            horizon=spec.horizon,
            fade=_CENTRE_FADE,
            noise_multiplier=column_norm(releases, _CENTRE_FADE) / (mu * sqrt(_CENTRE_SHARE)),
        )
        width = spec.reward_high - spec.reward_low
        self._middle, self._half = (spec.reward_low + spec.reward_high) / 2, width / 2
        if private:
            less = mu * sqrt(1 - share)  # as (epsilon, delta), one of which stays
            if epsilon > 1:
                inner = replace(inner, epsilon=epsilon_of(less, delta))
            else:
                inner = replace(inner, delta=delta_of(less, epsilon))
        self.inner: ScoringAgent = inner.make(
            replace(spec, reward_low=-width, reward_high=width), streams.child("centred")
        )
        vars(self).update(masks=getattr(self.inner, "masks", ()))
        inner_ledger = self.inner.ledger
        self.ledger = ledger_of(
            epsilon, *inner_ledger.spends, self._sums.spend, notion=inner_ledger.notion
        )
        self._round, self._end, self._users = 0, 0, 0.0
        self._counted, self._total, self._weights = 0.0, np.zeros(self.R), 0
        self._centre: Floats = np.full(self.R, self._middle)

    def act(self, context: Floats) -> Ints:
        return self.inner.act(context)

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        return acted(self.inner, context, mask)

    def scores(self, context: Floats) -> Floats:
        return self.inner.scores(context) + self._centre[:, None]

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.inner.update(context, action, feedback - self._centre)
        self._round += 1
        scaled = (np.asarray(feedback, np.float64) - self._middle) / self._half
        release = self._sums(scaled[:, None])
        if release is None:
            return
        self._users = _CENTRE_FADE * self._users + self._round - self._end
        self._end = self._round
        self._counted += self._users
        self._total += release[:, 0]
        self._weights += 1
        mean, error = self._total, self._sums.stddev * sqrt(self._weights)
        sure = np.where(np.abs(mean) > _MIN_DEVIATIONS * error, mean, 0.0)
        self._centre = self._middle + self._half * np.clip(sure / self._counted, -1.0, 1.0)
