"""Centre rewards by a private mean that costs a small part of the budget.

The sign of r - centre says most when the centre lies in the middle of the rewards, and nothing when
all rewards lie on one side of it. The middle of the public range is such a centre only if the range
is not too generous.
"""

from dataclasses import field, replace
from math import inf, sqrt
from typing import Any

import numpy as np

from dpbandit.agent import Around, Inner
from dpbandit.base import MOST_ROUNDS, Bools, Floats, InputError, Ints
from dpbandit.privacy import ClippedVectors, FadingSum, delta_of, epsilon_of, ledger_of, mu_of
from dpbandit.privacy.fading import column_norm, growing_batches, released_ends
from dpbandit.privacy.premises import ALL
from dpbandit.specs import ContextualSpec, ScoringAgent, acted

_SHARE = 0.04
"""Of mu^2, for the centre: the rest loses 2 % of its signal."""
_FIRST, _GROWTH, _FADE = 50, 0.2, 0.7
"""Batches of the centre's own releases."""
_DOUBT = 3.0
"""Standard deviations from the middle of the range below which the centre stays there."""


class PrivatelyCentred(Around[ContextualSpec]):
    """Wraps an agent that is told rewards minus a centre, the released mean of all so far.

    Rewards are scaled to [-1, 1]; their faded sums are released after 50 rounds (a tenth of a
    shorter run) and then in batches each a fifth longer; the mean over all releases, if it is more
    than three standard deviations of its noise from 0, is the centre from then on. It is fixed
    before a user arrives to whom it is applied.

    Guarantee:
        The inner agent is mu sqrt(0.96)-GDP for rewards that are a function of the user's own and
        of releases; the sums of rewards, which a user moves by at most 2, are mu sqrt(0.04)-GDP;
        together mu-GDP with the mu of (epsilon, delta), adaptively composed.
    """

    # rewards less a centre "that is a function of releases"; rounds are passed on as they are
    hands_on = ALL

    plays = ContextualSpec
    agent: Inner = field(kw_only=False)
    """what plays on rewards less a centre, with Gaussian releases; it has the whole target"""

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
        if private:
            less = mu * sqrt(1 - share)  # the same mu as (epsilon, delta), whichever is not 0
            if epsilon > 1:
                inner = replace(inner, epsilon=epsilon_of(less, delta))
            else:
                inner = replace(inner, delta=delta_of(less, epsilon))
        self._inner: ScoringAgent = inner.make(
            replace(spec, reward_low=-width, reward_high=width), streams.child("centred")
        )
        vars(self).update(masks=getattr(self._inner, "masks", ()))
        own = self._inner.ledger
        self.ledger = ledger_of(epsilon, *own.spends, self._sums.spend, notion=own.notion)
        self._round, self._end, self._users = 0, 0, 0.0
        self._counted, self._total, self._weights = 0.0, np.zeros(self.R), 0
        self._centre: Floats = np.full(self.R, self._middle)

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
