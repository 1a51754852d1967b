"""FADE's learners: what each of them sums, in which batches, with what noise, and who plays.

Learners that sum rewards come first: what they sum does not depend on earlier releases. Those after
them sum scores of residuals against what was released before.
"""

from dataclasses import dataclass, replace
from math import sqrt
from typing import Literal, TypeAlias

from dpbandit.agents.contextual.demand import DemandPricing, Features, demand_spec
from dpbandit.agents.contextual.fading import FadingReleases
from dpbandit.agents.contextual.fading_regression import (
    LogisticPlayer,
    RegressionPlayer,
    TryingPlayer,
)
from dpbandit.base import InputError, Streams
from dpbandit.privacy import (
    SecondMoments,
)
from dpbandit.specs import LINKS, ContextualSpec, PriceListSpec

Shrinkage: TypeAlias = Literal["none", "soft-threshold", "empirical-bayes"]
Response: TypeAlias = Literal["auto", "sign", "linear", "logistic"]

_RESPONSE = 0.75
"""Bound of a working response in the logistic model; 1 would never clip."""
_BONUS = 1.5
"""Of arms with parameters of their own: of a shared one every arm tells."""


@dataclass(frozen=True, kw_only=True)
class FadingRegression:
    """Sums of x x' and r x, played by ridge regression. Fields are those of `FADE`."""

    releases: FadingReleases
    response: Response
    shift: float | None
    bonus: float | None

    def make(self, spec: ContextualSpec, streams: Streams) -> RegressionPlayer:
        logistic = self.response == "logistic"
        if logistic and (not spec.shared or (spec.reward_low, spec.reward_high) != (0.0, 1.0)):
            raise InputError(
                "Expected response='logistic' only with one shared parameter and rewards in [0, 1]."
            )
        C, large = spec.context_norm, 1e4
        statistic = SecondMoments(
            n_actions=spec.n_actions,
            dim=spec.dim,
            layout="shared" if spec.shared else "disjoint",
            context_bound=C,
            reward_low=-large if logistic else -1.0,
            reward_high=large if logistic else 1.0,
            moment_clip=_RESPONSE * C if logistic else None,
            # linear: at w^2 = 2 the Gram matrix is free, sensitivity 2 for a moment of length 1
            moment_weight=1.0 if logistic else sqrt(2),
        )
        blocks = 1 if spec.shared else spec.n_actions
        bonus = (0.0 if spec.shared else _BONUS) if self.bonus is None else self.bonus
        first = self.releases.first(spec, 4 * sqrt(spec.dim) * blocks)
        sums = self.releases.sums(statistic, spec, streams, first)
        linear = RegressionPlayer if spec.shared else TryingPlayer
        player = LogisticPlayer if logistic else linear
        return player(
            spec,
            sums,
            statistic,
            streams,
            self.releases.ledger(sums),
            shift=self.shift or (0.5 if logistic else 1.0),
            bonus=bonus,
            signs=self.response == "sign" or (self.response == "auto" and spec.link in LINKS),
        )


@dataclass(frozen=True, kw_only=True)
class FadingDemand:
    """Price lists: a logistic `FadingRegression` of sales, asked for the chance of one."""

    releases: FadingReleases
    shift: float | None
    bonus: float | None
    features: Features = "additive"

    def make(self, spec: PriceListSpec, streams: Streams) -> DemandPricing:
        dim = demand_spec(spec, self.features).dim
        first = self.releases.first(spec, 20 * sqrt(dim))
        releases = replace(self.releases, first_batch=first)
        inner = FadingRegression(
            releases=releases,
            response="logistic",
            shift=self.shift,
            bonus=self.bonus,
        )
        return DemandPricing(inner, spec, streams, features=self.features, explore=first)
