"""Centre rewards by a private mean that costs a small part of the budget.

The sign of r - centre says most when the centre lies in the middle of the rewards, and nothing when
all rewards lie on one side of it. The middle of the public range is such a centre only if the range
is not too generous.
"""

from dataclasses import replace
from math import inf, sqrt
from typing import Any, Protocol

import numpy as np

from dpbandit.base import Bools, Floats, Ints, Streams
from dpbandit.privacy import ClippedVectors, FadingSum, delta_of, epsilon_of, ledger_of, mu_of
from dpbandit.privacy.fading import column_norm, growing_batches, released_ends
from dpbandit.privacy.premises import ALL
from dpbandit.specs import ContextualSpec, Masks, ScoringAgent, acted

_SHARE = 0.04
"""Of mu^2, for the centre: the rest loses 2 % of its signal."""
_FIRST, _GROWTH, _FADE = 50, 0.2, 0.7
"""Batches of the centre's own releases."""
_DOUBT = 3.0
"""Standard deviations from the middle of the range below which the centre stays there."""


class PrivateConfig(Protocol):
    """A config of an agent whose releases are Gaussian."""

    @property
    def epsilon(self) -> float:
        """Target of the agent."""
        ...

    @property
    def delta(self) -> float:
        """Target of the agent."""
        ...

    def make(self, spec: ContextualSpec, streams: Streams) -> ScoringAgent:
        """An agent for `spec`."""
        ...


class PrivatelyCentred:
    """Feeds another agent rewards minus a centre, the released mean of all rewards so far.

    Rewards are scaled to [-1, 1]; their faded sums are released after 50 rounds (a tenth of a
    shorter run) and then in batches each a fifth longer; the mean over all releases, if it is more
    than three standard deviations of its noise from 0, is the centre from then on. It is fixed
    before a user arrives to whom it is applied.

    Guarantee:
        The inner agent is mu sqrt(0.96)-GDP for rewards that are a function of the user's own and
        of releases; the sums of rewards, which a user moves by at most 2, are mu sqrt(0.04)-GDP;
        together mu-GDP with the mu of (epsilon, delta), adaptively composed.

    Args:
        config: the agent, with the whole target; it is made with a little less.
        spec: the problem; the inner agent plays one with rewards in +-(high - low).
        streams: one stream for each replica.
    """

    # rewards less a centre "that is a function of releases"; rounds are passed on as they are
    hands_on = ALL

    def __init__(self, config: PrivateConfig, spec: ContextualSpec, streams: Streams) -> None:
        private = config.epsilon < inf
        mu = mu_of(config.epsilon, config.delta) * (1 - 1e-6) if private else inf
        first = max(1, min(_FIRST, spec.horizon // 10))
        ends = growing_batches(spec.horizon, first=first, growth=_GROWTH)
        releases = len(released_ends(ends, spec.horizon))
        share = _SHARE if releases else 0.0
        self._sums = FadingSum(
            ClippedVectors(1),
            streams.child("centre"),
            ends=ends,
            horizon=spec.horizon,
            fade=_FADE,
            noise_multiplier=column_norm(releases, _FADE) / (mu * sqrt(_SHARE)) if private else 0.0,
        )
        width = spec.reward_high - spec.reward_low
        self._middle, self._half = (spec.reward_low + spec.reward_high) / 2, width / 2
        inner: Any = config
        if private:
            less = mu * sqrt(1 - share)  # the same mu as (epsilon, delta), whichever is not 0
            if config.epsilon > 1:
                inner = replace(inner, epsilon=epsilon_of(less, config.delta))
            else:
                inner = replace(inner, delta=delta_of(less, config.epsilon))
        self._inner: ScoringAgent = inner.make(
            replace(spec, reward_low=-width, reward_high=width), streams.child("centred")
        )
        self.masks: tuple[Masks, ...] = getattr(self._inner, "masks", ())
        own = self._inner.ledger
        self.ledger = ledger_of(config.epsilon, *own.spends, self._sums.spend, notion=own.notion)
        self._round, self._end, self._users = 0, 0, 0.0
        self._counted, self._total, self._weights = 0.0, np.zeros(len(streams)), 0
        self._centre: Floats = np.full(len(streams), self._middle)

    def act(self, context: Floats) -> Ints:
        return self._inner.act(context)

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        """Arms (R,) of those that are there."""
        return acted(self._inner, context, mask)

    def scores(self, context: Floats) -> Floats:
        return self._inner.scores(context) + self._centre[:, None]

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self._inner.update(context, action, feedback - self._centre)
        self._round += 1
        scaled = (np.asarray(feedback, np.float64) - self._middle) / self._half
        release = self._sums(scaled[:, None])
        if release is None:
            return
        self._users = _FADE * self._users + self._round - self._end
        self._end = self._round
        self._counted += self._users
        self._total += release[:, 0]
        self._weights += 1
        mean, error = self._total, self._sums.stddev * sqrt(self._weights)
        sure = np.where(np.abs(mean) > _DOUBT * error, mean, 0.0)
        self._centre = self._middle + self._half * np.clip(sure / self._counted, -1.0, 1.0)
