"""Agent of FADE that asks its first users how rewards are distributed, and then chooses a model."""

from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Any, NamedTuple, cast

import numpy as np

from dpbandit.agents.contextual.fade_arms import MEAN_WIDTH, FadeArms
from dpbandit.agents.contextual.fade_centred import FadeCentred, centre_users
from dpbandit.agents.contextual.fade_regression import FadeTrying
from dpbandit.agents.contextual.fading import (
    MIN_DIRECTIONS,
    Fading,
    FadingReleases,
    check_coordinates,
    check_layout,
    crowded,
    few_features,
    gram_noise,
    link_fixes_middle,
    spec_after,
)
from dpbandit.base import Bools, Floats, InputError, Ints, clip_norm, clip_range, rounds_in
from dpbandit.privacy import BatchSum, FadingSum, Gaussian, GaussianSpend, Parallel
from dpbandit.privacy.chosen_scores import ALTERNATIVE, SIGNED, ChosenScores
from dpbandit.privacy.fading import released_ends
from dpbandit.privacy.premises import ALL_FACTS
from dpbandit.specs import LINKS, ContextualSpec, Prior

_ROUNDING = 1e-9
"""Distance, as a share of the range, within which a reward is at an end of the range"""
_QUESTIONS, _MIN_QUESTIONS = 60, 40
"""Number of users who are asked if the link is known, times epsilon, and its floor; at most T / 20
and at most `first_batch` users are asked, with or without a link"""
_CONTEXT_WEIGHT, _FEW_CONTEXT_WEIGHT = 0.9, 0.7
"""Norm of the context in a vector of norm 1 that also has the answers; of 2 or 3 features less"""
_INSIDE_ERRORS, _INSIDE_LIMITS = 2.5, (0.05, 0.5)
"""Share of rewards inside the range up to which rewards count as answers, in standard deviations of
its noise, and the limits to which it is clipped"""
_MIN_SD = 0.11
"""Standard deviation of rewards, as a share of the range, from which rewards count as answers, too,
if most are at an end: the noise of the model of answers is in units of the range"""
_MIN_SKEWED, _NUMBER_WIDTH = 0.2, 1.0
"""Share of rewards at the ends of the range below which numbers are taken for hardly skewed, and
the clipping bound of their residuals' scores then, in standard deviations of residuals"""
_MIN_OFF_MIDDLE = 0.2
"""Distance of the mean answer from the middle of the range, as a share of the range, from which the
sign of a residual says little more than the answer"""
_MIN_MEAN_PART = 1 / 3
"""Squared norm of the mean context, as a share of the mean squared norm of contexts, from which
directions of contexts say less than directions from their mean"""
_MAX_NOISE, _MAX_NOISE_WITH_CONTEXTS = 0.2, 0.1
"""Largest noise of the share of rewards at the ends of the range, with which users are asked, and
with which contexts are, too, if the link is known"""
_FEW_FEATURES_MARGIN = 2
"""Factor on the noise with which `few_features` must hold for users to be asked with 2 or 3
features and no link; with a factor of 10 regression plays whatever the law of rewards"""
_REWARD_SD = 0.25
"""Rough standard deviation of rewards, as a share of the range"""


class FadeAsking(Fading):
    """Ask the first users how rewards are distributed, then play arms by the model that fits.

    FADE's model of arms with parameters of their own, if the link is logistic or not known. Whether
    `FadeArms` is better, or another model, depends on the law of rewards, which no public fact
    tells. The alternative is `FadeCentred`, or without a link and with 2 or 3 features
    `FadeTrying`::

        first            play n users at random; sum rewards, and whether each is an end of its
                         range, such as 0 and 1; without a link, or if the noise is small, contexts
                         x and |x|^2, too; release the sum, and nothing else of these users
                         (`BatchSum`)
        then choose      rewards are answers if all but 5 %, or but 2.5 standard deviations of the
                         noise in their share, are ends of the range, or if most are and the others
                         so far off that their standard deviation is 0.11 of the range or more;
                         `FadeTrying` plays answers, and `FadeCentred` if, too, their mean is more
                         than 0.2 of the range off its middle, by the noise's standard deviation,
                         or, without a link, users are few (`crowded`), or |mean of x|^2 is a third
                         or more of the mean of |x|^2; else `FadeArms` plays. The released mean of
                         contexts is the centre of `FadeCentred`, and without a link of `FadeArms`,
                         too, whose first level is the mean of rewards; with a link it compares
                         answers with the middle of the range, and not with predictions, if the
                         noise of a Gram matrix is above its sampling error
        each round       sum the scores of the chosen model (`ChosenScores`)
        after release k  learn as the chosen model does
        play             as the chosen model does, and at random before its first release

    Replicas may choose different models: their scores are parts of one vector.

    Guarantee:
        The guarantee of `Fading`, with sensitivity 1 in units of the sensitivities of scores of
        both models. A user who is asked adds one vector of norm at most 1, with Gaussian noise of
        the whole budget, and is in no other sum, so that all releases cost the larger cost of the
        two mechanisms (`Parallel`). Choice, centre and level are functions of the first release.

    **Limits.** Users who return or whose rewards arrive late are not asked; then FADE chooses by
    public facts alone. A law of rewards that changes after the first users is not noticed.

    >>> from dpbandit import certify
    >>> round(certify(FadeAsking(epsilon=1.0), "ClassificationBandit").epsilon, 6)
    1.0
    """

    # rounds are handed on as they are; rewards are a function of the user's and of releases
    hands_on = ALL_FACTS

    def begin(self) -> None:
        spec, streams = self.spec, self.streams
        check_layout(self, shared=False)
        check_coordinates(self)
        if spec.delay:
            raise InputError(
                f"Expected delay={spec.delay} to be 0, since the first users' rewards decide what "
                "the next ones contribute: choose another agent, such as fade."
            )
        self._linked = link_fixes_middle(spec)
        self._crowded = not self._linked and crowded(spec, self.releases.mu)
        self._questions = Questions.of(spec, self.releases)
        self._queried, stddev = self._questions.users, self._questions.noise_of_sum
        size = self._questions.size
        self._first = BatchSum(
            size,
            1.0,
            users=self._queried,
            noise=Gaussian(stddev).sampler(streams, "questions", (size,)),
            spend=GaussianSpend(self.releases.mu, "contexts and answers"),
        )
        later = spec_after(spec, self._queried)
        names = "epsilon", "delta", "first_batch", "growth", "fade"
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        settings_of_arms = settings | {"level": not self._linked, "centred": not self._linked}
        self._arms = FadeArms(**settings_of_arms).make(later, streams.child("arms"))
        alternative: FadeTrying | FadeCentred
        alternative = FadeTrying(**settings) if regresses(spec) else FadeCentred(**settings)
        self._alternative = alternative.make(later, streams.child("answers"))
        if isinstance(self._alternative, FadeCentred):
            self._alternative.sum_no_contexts()
        ends = released_ends(self._ends(later), later.horizon)
        self.statistic = ChosenScores(
            signed=self._arms.statistic, alternative=self._alternative.statistic
        )
        self.sums = FadingSum(
            self.statistic,
            streams,
            ends=ends,
            horizon=later.horizon,
            fade=self.fade,
            noise_multiplier=self.releases.noise_multiplier(len(ends)),
        )
        for model in (self._arms, self._alternative):  # which learn from parts of the releases
            noise = self.sums.stddev * model.statistic.sensitivity
            model.sums = cast(FadingSum, PartOfSums(noise, self.fade))
        spend = Parallel((self.sums.spend, self._first.spend), "asked or summed")
        self.ledger = self.releases.ledger(spend)
        self._uniforms = streams.uniforms("exploration")
        self._part: Ints = np.full(self.R, SIGNED)  # model of each replica, as its part of the sums
        self._released = False

    def _ends(self, later: ContextualSpec) -> tuple[int, ...]:
        """Return the ends of batches, those of the model that public facts alone would choose."""
        if self._linked:
            return self._arms.sums.ends
        if self._crowded and isinstance(self._alternative, FadeCentred):
            return self.releases.ends(later, *self._alternative.first_batches(later))
        return self.releases.ends(later, self._arms.first_rounds(later))

    @property
    def rounds_to_release(self) -> int:
        return super().rounds_to_release if self.round >= self._queried else 1

    def act(self, context: Floats) -> Ints:
        # Arms (R,), or of several rounds (n, R); at random before the first release
        if not self._released:
            return (self._uniforms.over(context.shape[:-1]) * self.spec.n_actions).astype(np.int64)
        if (self._part == SIGNED).all():
            return self._arms.act(context)
        if (self._part == ALTERNATIVE).all():
            return self._alternative.act(context)
        actions = self._arms.act(context), self._alternative.act(context)
        return np.where(self._part == SIGNED, *actions)

    def scores(self, context: Floats) -> Floats:
        signed = (self._part == SIGNED)[:, None]
        return np.where(signed, self._arms.scores(context), self._alternative.scores(context))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        # Sum answers at first, scores later; learn after every release
        if self.round < self._queried:
            self.round += 1
            total = self._first(self._questions.vectors(context, feedback))
            if total is not None:
                self._choose(self._questions.means(total))
            return
        for one in (self, self._arms, self._alternative):
            one.round += rounds_in(action.shape)
        release = self.sums.take_rounds(
            action.shape,
            np.broadcast_to(self._part, action.shape),
            *self._references(context, action, feedback),
            context,
            action,
            feedback,
        )
        if release is None:
            return
        self._released = True
        signed, rest = self.statistic.split(release)
        if (self._part == SIGNED).any():
            self._arms.add_release(signed)
        if (self._part == ALTERNATIVE).any():
            self._alternative.add_release(rest)

    def _references(self, context: Floats, action: Ints, feedback: Floats) -> tuple[Floats, ...]:
        """Return the references of `ChosenScores` for rounds in which `action` was played."""
        signed = self._arms.reference(action).arrays
        if isinstance(self._alternative, FadeTrying):
            return *signed, self._alternative.row(context, action, feedback)[2]
        return *signed, *self._alternative.reference(context, action)

    def _choose(self, means: "Means") -> None:
        """Choose each replica's model, level and centre by released means over the asked users."""
        questions, level = self._questions, means.level
        fits = np.abs(level) > _MIN_OFF_MIDDLE + questions.noise_of_level
        if not self._linked:
            error = sqrt(questions.noise_of_level**2 + _REWARD_SD**2 / self._queried)
            width = np.where(means.at_ends < _MIN_SKEWED, _NUMBER_WIDTH, MEAN_WIDTH)
            self._arms.start_level(np.clip(level, -0.5, 0.5), error, width)
            self._arms.start_contexts(questions.mean_context(means))
        if isinstance(self._alternative, FadeTrying):
            fits[:] = True
        elif questions.contexts:
            self._alternative.centre_on(means.context)
            if not self._linked:
                fits |= self._crowded | (questions.mean_part(means) >= _MIN_MEAN_PART)
        inside = np.clip(_INSIDE_ERRORS * questions.noise_of_ends, *_INSIDE_LIMITS)
        answers = (means.at_ends >= 1 - inside) | spread_wide(means)
        # with less noise estimates that are too long did no harm, and short runs lost less by them
        if self._linked and gram_noise(self.spec, self.releases.mu) > self.spec.dim:
            self._arms.start_answers(answers)
        self._part = np.where(answers & fits, ALTERNATIVE, SIGNED)

    def learned(self, replica: int = 0) -> Prior:
        """Return the posterior of a replica that chose `FadeArms` as a prior for another study.

        Raises:
            InputError: the replica's parameters are no prior, as rewards are answers or parameters
                have a released centre.
        """
        answers = self._part[replica] != SIGNED
        if answers or not self._linked:
            why = "its rewards are answers" if answers else "its contexts have a released centre"
            raise InputError(
                f"Expected replica={replica} to have parameters of contexts, which can be a prior, "
                f"but {why}: set model='arms'."
            )
        return self._arms.learned(replica)


class PartOfSums(NamedTuple):
    """Noise and fade of a part of released sums, for a model that feeds no mechanism itself."""

    stddev: float
    fade: float


class Means(NamedTuple):
    """Released means over the users who are asked."""

    at_ends: Floats
    """share of rewards at an end of the range, (R,)"""
    level: Floats
    """mean reward minus the middle of the range, as a share of the range, (R,)"""
    square: Floats
    """mean of |x|^2 for contexts x in units of their bound, (R,); 0 if contexts are not asked"""
    context: Floats
    """mean context, (R, d), or (R, 0) if contexts are not asked"""


@dataclass(frozen=True, kw_only=True)
class Questions:
    """Vectors of the first users, of norm at most 1, and what their released sum says.

    With y the reward as a share of its range, e = 1 if it is at an end of the range, else 0, and x
    the context in units of its bound, a vector has the parts::

        b (e - 1/2),   sqrt(3) b (y - 1/2)                              without contexts, b = 1
        b (e - 1/2),   sqrt(3) b (y - 1/2),   b (|x|^2 - 1/2),   c x    with contexts, c = 0.9,
                                                                        or 0.7 with 2 or 3 features
    """

    spec: ContextualSpec
    users: int
    mu: float
    contexts: bool
    """True if contexts are asked, of which models without a link learn a centre"""

    @classmethod
    def of(cls, spec: ContextualSpec, releases: FadingReleases) -> "Questions":
        """Return the questions of `FadeAsking`."""
        linked = link_fixes_middle(spec)
        if linked:
            users = max(_MIN_QUESTIONS, ceil(_QUESTIONS / releases.epsilon))
        else:
            users = centre_users(spec, releases.mu)
        many = not (linked or crowded(spec, releases.mu) or regresses(spec))
        most = spec.horizon // (50 if many else 20)
        users = max(1, min(users, most, releases.first_batch or users))
        found = cls(spec=spec, users=users, mu=releases.mu, contexts=True)
        return replace(
            found, contexts=not linked or found.noise_of_ends <= _MAX_NOISE_WITH_CONTEXTS
        )

    @property
    def size(self) -> int:
        """Length of a vector."""
        return 3 + self.spec.dim if self.contexts else 2

    @property
    def noise_of_sum(self) -> float:
        """Standard deviation of the noise of a sum that one user moves by at most 2."""
        return 2 / self.mu

    @property
    def _weight(self) -> float:
        return sqrt((1 - self._context_weight**2) * 4 / 5) if self.contexts else 1.0

    @property
    def _context_weight(self) -> float:
        return _FEW_CONTEXT_WEIGHT if regresses(self.spec) else _CONTEXT_WEIGHT

    @property
    def noise_of_ends(self) -> float:
        """Standard deviation of the noise in the released share of rewards at the ends."""
        return self.noise_of_sum / self.users / self._weight

    @property
    def noise_of_level(self) -> float:
        """Standard deviation of the noise in the released mean reward, as a share of the range."""
        return self.noise_of_ends / sqrt(3)

    def vectors(self, context: Floats, reward: Floats) -> Floats:
        """Return the vectors (R, n) of a round; a reward that is no number counts as low."""
        low, high, bound = self.spec.reward_low, self.spec.reward_high, self.spec.context_norm
        share = (clip_range(reward, low, high) - low) / (high - low)
        at_ends = (share <= _ROUNDING) | (share >= 1 - _ROUNDING)
        answers = [at_ends - 0.5, sqrt(3) * (share - 0.5)]
        if not self.contexts:
            return np.stack(answers, axis=1)
        x = clip_norm(context, bound) / bound
        answers.append(np.vecdot(x, x) - 0.5)
        weighted = self._weight * np.stack(answers, axis=1)
        return np.concatenate([weighted, self._context_weight * x], axis=1)

    def means(self, total: Floats) -> Means:
        """Return the means that a released sum (R, n) of all vectors says."""
        ends, level, *more = (total[:, :3] / self.users / self._weight).T
        square = more[0] + 0.5 if more else np.zeros(len(total))
        context = total[:, 3:] / self.users / self._context_weight * self.spec.context_norm
        return Means(ends + 0.5, level / sqrt(3), square, context)

    def mean_context(self, means: Means) -> Floats:
        """Return the mean of contexts (R, d), shrunk by its noise."""
        mean, d, bound = means.context, self.spec.dim, self.spec.context_norm
        noise = (bound * self.noise_of_sum / self.users / self._context_weight) ** 2
        size = np.maximum(np.vecdot(mean, mean), _ROUNDING * bound**2)
        return np.asarray(np.maximum(0, 1 - d * noise / size)[:, None] * mean)

    def mean_part(self, means: Means) -> Floats:
        """Return |mean x|^2 / mean |x|^2, (R,), without the part of the noise in |mean x|^2."""
        x = means.context / self.spec.context_norm
        noise = self.spec.dim * (self.noise_of_sum / self.users / self._context_weight) ** 2
        return np.asarray(np.vecdot(x, x) - noise) / np.maximum(means.square, _ROUNDING)


def spread_wide(means: Means) -> Bools:
    """Return True where most rewards are at an end of the range, and others far from it, (R,).

    With a share e of rewards at an end, and a mean that is m off it, the variance of rewards is at
    least m^2 e / (1 - e).
    """
    e, m = means.at_ends, np.maximum(0.5 - np.abs(means.level), 0.0)
    return np.asarray((e >= 0.5) & (m**2 * e >= _MIN_SD**2 * (1 - e)))


def regresses(spec: ContextualSpec) -> bool:
    """Return True if `FadeTrying` is the alternative, since contexts have too few directions."""
    return spec.link not in LINKS and spec.dim < MIN_DIRECTIONS


def can_ask(spec: ContextualSpec, releases: FadingReleases) -> bool:
    """Return True if rewards arrive at once, and answers are precise enough to choose a model.

    Without a known link there have to be at least 4 features, or users enough to regress on 2 or 3.
    """
    precise = Questions.of(spec, releases).noise_of_ends <= _MAX_NOISE
    if regresses(spec):
        precise &= spec.dim > 1 and few_features(spec, releases.mu, times=_FEW_FEATURES_MARGIN)
    elif not link_fixes_middle(spec):
        precise &= spec.dim >= MIN_DIRECTIONS
    return precise and not spec.delay
