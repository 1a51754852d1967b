"""FADE's learners: what each of them sums, in which batches, with what noise, and who plays.

Learners that sum rewards come first: what they sum does not depend on earlier releases. Those after
them sum scores of residuals against what was released before.
"""

from dataclasses import dataclass, replace
from math import ceil, sqrt
from typing import Literal, TypeAlias

from dpbandit.agents.contextual.centred_arms import CentredArms
from dpbandit.agents.contextual.demand import DemandPricing, Features, demand_spec
from dpbandit.agents.contextual.fading import FadingReleases, spec_after
from dpbandit.agents.contextual.fading_regression import (
    LogisticPlayer,
    RegressionPlayer,
    TryingPlayer,
)
from dpbandit.agents.contextual.moments import SHRINKAGES, MomentPlayer
from dpbandit.base import InputError, Streams
from dpbandit.privacy import (
    Parallel,
    SecondMoments,
    SignedDirections,
    ledger_of,
)
from dpbandit.privacy.batches import BatchSum
from dpbandit.privacy.noise import Gaussian
from dpbandit.privacy.residuals import (
    CentredResiduals,
)
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.specs import LINKS, ContextualSpec, PriceListSpec

Shrinkage: TypeAlias = Literal["none", "soft-threshold", "empirical-bayes"]
Response: TypeAlias = Literal["auto", "sign", "linear", "logistic"]

_RESPONSE = 0.75
"""Bound of a working response in the logistic model; 1 would never clip."""
_BONUS = 1.5
"""Of arms with parameters of their own: of a shared one every arm tells."""


@dataclass(frozen=True, kw_only=True)
class FadingMoments:
    """Arms with parameters of their own: sums of sign(r - centre) `x / |x|`, played by moments.

    A block for each arm, or the difference of two. Fields are those of `FADE`.
    """

    releases: FadingReleases
    shrinkage: Shrinkage
    debias: bool

    def make(self, spec: ContextualSpec, streams: Streams) -> MomentPlayer:
        if spec.shared:
            raise InputError("Expected model='moments' only where each arm has its own parameter.")
        K = spec.n_actions
        statistic = SignedDirections(
            n_actions=K,
            dim=spec.dim,
            layout="difference" if K == 2 else "blocks",
            centre=(spec.reward_low + spec.reward_high) / 2,
        )
        first = self.releases.first(spec, 4.5 * sqrt(spec.dim) * K / 2)
        sums = self.releases.sums(statistic, spec, streams, first)
        return MomentPlayer(
            sums,
            statistic,
            streams,
            self.releases.ledger(sums),
            shrink=SHRINKAGES[self.shrinkage],
            debias=self.debias and K > 2,
        )


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


_CENTRED = 20
"""Users whose contexts are summed for their mean, times sqrt(d) / mu."""
_EACH = 40.0
"""Users of each arm in the first batch of answers, at least: what is learned of fewer is chance."""


@dataclass(frozen=True, kw_only=True)
class FadingAnswers:
    """Arms with parameters of their own: sums of scores along directions from a released mean."""

    releases: FadingReleases

    def make(self, spec: ContextualSpec, streams: Streams) -> CentredArms:
        if spec.shared or self.releases.trust != "central":
            raise InputError(
                "Expected model='answers' only where each arm has its own parameter, with "
                "trust='central'."
            )
        mu, d, T = self.releases.mu, spec.dim, spec.horizon
        users = max(1, min(ceil(max(200.0, _CENTRED * sqrt(d) / mu)), T // 20))
        bound = spec.context_norm
        noise = Gaussian(2 * bound / mu).sampler(streams.child("centre"), "noise", (d,))
        first = BatchSum(d, bound, users=users, noise=noise, spend=GaussianSpend(mu, "a mean"))
        statistic = CentredResiduals(
            n_actions=spec.n_actions,
            dim=d,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
        )
        later = spec_after(spec, users)
        batch = self.releases.first(later, 4 * sqrt(d) * spec.n_actions, _EACH * spec.n_actions)
        next_one = max(1, ceil(self.releases.growth * batch))
        sums = self.releases.sums(statistic, later, streams, next_one, (batch,))
        spend = Parallel((sums.spend, first.spend), "contexts or scores")
        ledger = ledger_of(self.releases.epsilon, spend)
        return CentredArms(spec, first, sums, statistic, streams, ledger)
