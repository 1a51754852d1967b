"""Agent of FADE that asks its first users how rewards are distributed, and then chooses a model."""

from math import ceil, sqrt
from typing import Any, NamedTuple, cast

import numpy as np

from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_centred import (
    FadeCentred,
    centre_users,
)
from dpbandit.agents.contextual.fading import (
    MIN_DIRECTIONS,
    Fading,
    check_coordinates,
    check_layout,
    crowded,
    link_fixes_middle,
    spec_after,
)
from dpbandit.base import Floats, InputError, Ints, clip_range, rounds_in
from dpbandit.privacy import BatchSum, ClippedVectors, FadingSum, Laplace, Parallel
from dpbandit.privacy.chosen_scores import CENTRED, CONTEXTS, SIGNED, ChosenScores
from dpbandit.privacy.fading import released_ends
from dpbandit.privacy.premises import ALL_FACTS
from dpbandit.privacy.pure import LaplaceSpend
from dpbandit.specs import ContextualSpec, Prior

_ROUNDING = 1e-9
"""Distance, as a share of the range, within which a reward is at an end of the range"""
_QUESTIONS, _MIN_QUESTIONS = (100, 50), (60, 40)
"""Number of users who are asked, times epsilon, and its floor, each without a known link and with
one; at most T / 20 and at most `first_batch` users are asked"""
_MAX_INSIDE = 0.5
"""Largest share of rewards inside the range for which rewards count as answers, without a link"""
_MIN_OFF_MIDDLE = 0.2
"""Distance of the mean answer from the middle of the range, as a share of the range, from which
rewards are summed as answers if the link is known"""
_MAX_NOISE = 0.1
"""Largest noise of a count, as a share of the users who are asked, with which they are asked"""
_REWARD_SD = 0.25
"""Rough standard deviation of rewards, as a share of the range"""
_LAPLACE_SD = sqrt(8)
"""Standard deviation of the noise of a count, times epsilon; one user moves two counts by 1"""


class FadeAsking(Fading):
    """Ask the first users how rewards are distributed, then play arms by the model that fits.

    With asks=True FADE's model of arms with parameters of their own, if the link is logistic or not
    known. Which of `FadeArms` and `FadeCentred` is better depends on the law of rewards, which no
    public fact tells::

        first            play n users at random; count those whose reward is the low end of the
                         range, and the high end, and sum rewards inside; release these three
                         numbers, and nothing else of these users (`BatchSum`)
        then choose      without a link, `FadeCentred` if half of the rewards or more are ends of
                         the range, such as 0 and 1, and `FadeArms`, whose level begins at the mean
                         released, if rewards are numbers inside; with a link, `FadeCentred` if
                         answers at the two ends are so unequal that their mean is more than 0.2
                         of the range from its middle, by the noise's standard deviation
        each round       sum the scores of the chosen model (`ChosenScores`); without a link the
                         first batch of `FadeCentred` sums contexts, whose mean is the centre
        after release k  learn as the chosen model does
        play             as the chosen model does, and at random before its first release

    Replicas may choose different models: their scores are parts of one vector.

    Guarantee:
        The guarantee of `Fading`, with sensitivity 1 in units of the sensitivities of scores of
        both models and of contexts.
        A user who is asked adds at most 1 to one of three numbers, with Laplace noise of the whole
        epsilon, and is not summed, so that all releases cost the larger cost of the two mechanisms
        (`Parallel`). The choice and the level are functions of these three numbers.

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
        self._queried = questions(spec, self.epsilon, self.first_batch)
        epsilon = self.epsilon * (1 - 1e-12)  # leaves room for `ledger.MOVEMENT_ROUNDING`
        self._counts = BatchSum(
            3,
            1.0,
            order=1,
            users=self._queried,
            noise=Laplace(2 / epsilon).sampler(streams, "counts", (3,)),
            spend=LaplaceSpend(epsilon, note="counts of rewards"),
        )
        later = spec_after(spec, self._queried)
        names = "epsilon", "delta", "first_batch", "growth", "fade"
        settings: dict[str, Any] = {name: getattr(self, name) for name in names}
        self._arms = FadeArms(**settings, level=not self._linked).make(later, streams.child("arms"))
        self._answers = FadeCentred(**settings).make(later, streams.child("answers"))
        ends = released_ends(self._ends(later), later.horizon)
        centring = 0 if self._linked or not ends else ends[0]
        self._answers.centre_after(centring)
        self._centring = centring  # rounds of the batch that sums contexts for the centre
        self.statistic = ChosenScores(
            signed=self._arms.statistic,
            centred=self._answers.statistic,
            contexts=ClippedVectors(spec.dim, spec.context_norm),
        )
        self.sums = FadingSum(
            self.statistic,
            streams,
            ends=ends,
            horizon=later.horizon,
            fade=self.fade,
            noise_multiplier=self.releases.noise_multiplier(len(ends)),
        )
        for model in (self._arms, self._answers):  # which learn from parts of the releases
            noise = self.sums.stddev * model.statistic.sensitivity
            model.sums = cast(FadingSum, PartOfSums(noise, self.fade))
        spend = Parallel((self.sums.spend, self._counts.spend), "asked or summed")
        self.ledger = self.releases.ledger(spend)
        self._uniforms = streams.uniforms("exploration")
        self._part: Ints = np.full(self.R, SIGNED)  # model of each replica, as its part of the sums
        self._released = False

    def _ends(self, later: ContextualSpec) -> tuple[int, ...]:
        """Return the ends of batches, those of the model that public facts alone would choose."""
        if self._linked:
            return self._arms.sums.ends
        if crowded(self.spec, self.releases.mu):
            centring = centre_users(later, self.releases.mu)
            return (centring, *(centring + end for end in self._answers.sums.ends))
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
        if (self._part == CENTRED).all():
            return self._answers.act(context)
        actions = self._arms.act(context), self._answers.act(context)
        return np.where(self._part == SIGNED, *actions)

    def scores(self, context: Floats) -> Floats:
        signed = (self._part == SIGNED)[:, None]
        return np.where(signed, self._arms.scores(context), self._answers.scores(context))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        # Count rewards at first, sum scores later; learn after every release
        if self.round < self._queried:
            self.round += 1
            counts = self._counts(at_ends(self.spec, feedback))
            if counts is not None:
                self._choose(counts / self._queried)
            return
        for one in (self, self._arms, self._answers):
            one.round += rounds_in(action.shape)
        centring = self._arms.round <= self._centring
        part = np.where(self._part == CENTRED, CONTEXTS, SIGNED) if centring else self._part
        release = self.sums.take_rounds(
            action.shape,
            np.broadcast_to(part, action.shape),
            *self._arms.reference(action).arrays,
            *self._answers.reference(context, action),
            context,
            action,
            feedback,
        )
        if release is None:
            return
        self._released = True
        signed, centred, contexts = self.statistic.split(release)
        if (self._part == SIGNED).any():
            self._arms.add_release(signed)
        if (self._part == CENTRED).any():
            if centring:
                self._answers.centre_on(contexts)
            else:
                self._answers.add_release(centred)

    def _choose(self, shares: Floats) -> None:
        """Choose each replica's model and level by released shares (R, 3) of the asked users."""
        low, high, inside = shares.T
        noise = _LAPLACE_SD / self.epsilon / self._queried
        if self._linked:
            off = np.abs(high - low) / 2
            self._part = np.where(off > _MIN_OFF_MIDDLE + noise / sqrt(2), CENTRED, SIGNED)
            return
        self._part = np.where(low + high >= 1 - _MAX_INSIDE, CENTRED, SIGNED)
        level = np.clip(high + inside, 0.0, 1.0) - 0.5
        self._arms.start_level(level, sqrt(2 * noise**2 + _REWARD_SD**2 / self._queried))

    def learned(self, replica: int = 0) -> Prior:
        """Return the posterior of a replica that chose `FadeArms` as a prior for another study."""
        if self._part[replica] != SIGNED:
            raise InputError(
                f"Expected replica={replica} to have chosen the model arms, whose parameters can "
                "be a prior: its rewards are answers. Set model='arms'."
            )
        return self._arms.learned(replica)


class PartOfSums(NamedTuple):
    """Noise and fade of a part of released sums, for a model that feeds no mechanism itself."""

    stddev: float
    fade: float


def at_ends(spec: ContextualSpec, reward: Floats) -> Floats:
    """Return (1, 0, 0) for rewards (R,) at the low end, (0, 1, 0) at the high end, (R, 3).

    A reward inside the range is (0, 0, share), its share of the range. What is no number is low.
    """
    low, high = spec.reward_low, spec.reward_high
    share = (clip_range(reward, low, high) - low) / (high - low)
    at_low, at_high = share <= _ROUNDING, share >= 1 - _ROUNDING
    return np.stack([at_low, at_high, np.where(at_low | at_high, 0.0, share)], axis=1)


def questions(spec: ContextualSpec, epsilon: float, first_batch: int | None = None) -> int:
    """Return the number of first users who are asked, 1 to `first_batch`, if that is set."""
    linked = link_fixes_middle(spec)
    users = max(_MIN_QUESTIONS[linked], ceil(_QUESTIONS[linked] / epsilon))
    return max(1, min(users, spec.horizon // 20, first_batch or users))


def can_ask(spec: ContextualSpec, epsilon: float, first_batch: int | None = None) -> bool:
    """Return True if rewards arrive at once, and counts are precise enough to choose a model.

    Their noise is at most 10 % of the users who are asked. Without a known link there have to be
    enough features for the model of answers.
    """
    precise = _LAPLACE_SD / epsilon <= _MAX_NOISE * questions(spec, epsilon, first_batch)
    return precise and not spec.delay and (link_fixes_middle(spec) or spec.dim >= MIN_DIRECTIONS)
