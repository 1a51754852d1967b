"""FADE's learners that sum scores of residuals against what was released before."""

from dataclasses import dataclass, replace
from math import ceil, sqrt

import numpy as np

from dpbandit.agents.contextual.centred_arms import CentredArms
from dpbandit.agents.contextual.demand import Features, demand_spec
from dpbandit.agents.contextual.fading_releases import FadingReleases
from dpbandit.agents.contextual.public_prior import prior_of
from dpbandit.agents.contextual.residual_arms import ResidualArms
from dpbandit.agents.contextual.residual_pricing import CurvedPricing, ResidualPricing, asked_first
from dpbandit.agents.contextual.residual_slates import ResidualSlates
from dpbandit.base import InputError, Streams
from dpbandit.privacy import Parallel, ledger_of
from dpbandit.privacy.batches import BatchSum, CountedSums
from dpbandit.privacy.noise import Gaussian
from dpbandit.privacy.residuals import (
    CentredResiduals,
    SaleResiduals,
    SignedResiduals,
    SlateResiduals,
)
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.specs import LINKS, ContextualSpec, PriceListSpec, Prior

_LEVEL = 0.2
"""What of a user tells the level of rewards, beside a vector of length 1."""
_FORGETTING, _BATCHES = 60, 100
"""With so many coordinates K d at most parameters may change: no batch is longer than a hundredth
of T, or half the first, which is longer where noise is large."""
_CENTRED = 20
"""Users whose contexts are summed for their mean, times sqrt(d) / mu."""
_EACH = 40.0
"""Users of each arm in the first batch of answers, at least: what is learned of fewer is chance."""
_LEAST_WIDTH = 0.5
"""Of the draws of a model of demand, as a share of the posterior's: a draw costs as much as the
posterior is wide, and under noise it is wide for long."""
_CROSSED_WIDTH = 0.2
"""The same with interactions, of which the posterior has twice the dimensions."""


def middle_is_told(spec: ContextualSpec) -> bool:
    """Whether the link says that rewards at x . theta = 0 lie in the middle of their range."""
    if spec.link not in LINKS:
        return False
    middle = (spec.reward_low + spec.reward_high) / 2
    return abs(float(LINKS[spec.link].mean(np.zeros(1))[0]) - middle) < 1e-6 * spec.half_range


def _without(spec: ContextualSpec, first: int) -> ContextualSpec:
    """The problem of those who come after so many; of one round at least."""
    rounds = max(1, spec.horizon - first)
    return replace(spec, horizon=rounds, delay=min(spec.delay, rounds))


@dataclass(frozen=True, kw_only=True)
class FadingArms:
    """Arms with parameters of their own: sums of scores of residuals.

    With `level` rewards are compared with a level that is learned, else with the middle of their
    range.
    """

    releases: FadingReleases
    prior: Prior | None = None
    level: bool = False

    def make(self, spec: ContextualSpec, streams: Streams) -> ResidualArms:
        """A `ResidualArms`; raises `InputError` where arms share a parameter."""
        if spec.shared:
            raise InputError("Expected model='arms' only where each arm has its own parameter.")
        K = spec.n_actions
        statistic = SignedResiduals(
            n_actions=K,
            dim=spec.dim,
            reward_low=spec.reward_low,
            reward_high=spec.reward_high,
            common=0.25 if K == 2 else 0.5,
            level_weight=_LEVEL if self.level else 0.0,
        )
        few = K * spec.dim <= _FORGETTING
        forgets = few and not self.level and self.releases.fade < 1
        first = self.releases.first(spec, 4.5 * sqrt(spec.dim) * K / 2)
        longest = max(1, spec.horizon // _BATCHES, first // 2) if forgets else None
        releases = replace(self.releases, longest=longest)
        looks = releases.looks(spec) if self.level else ()
        sums = releases.sums(statistic, spec, streams, first, looks)
        meaning = f"a parameter of {spec.dim} features for each of {K} arms"
        prior = prior_of(self.prior, len(streams), K * spec.dim, meaning=meaning)
        ledger = releases.ledger(sums)
        return ResidualArms(spec, sums, statistic, streams, ledger, prior, forgets=forgets)


@dataclass(frozen=True, kw_only=True)
class FadingAnswers:
    """Arms with parameters of their own: sums of scores along directions from a released mean."""

    releases: FadingReleases

    def make(self, spec: ContextualSpec, streams: Streams) -> CentredArms:
        """A `CentredArms`; raises `InputError` where arms share a parameter, or for trust."""
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
        later = _without(spec, users)
        batch = self.releases.first(later, 4 * sqrt(d) * spec.n_actions, _EACH * spec.n_actions)
        next_one = max(1, ceil(self.releases.growth * batch))
        sums = self.releases.sums(statistic, later, streams, next_one, (batch,))
        spend = Parallel((sums.spend, first.spend), "contexts or scores")
        ledger = ledger_of(self.releases.epsilon, spend)
        return CentredArms(spec, first, sums, statistic, streams, ledger)


@dataclass(frozen=True, kw_only=True)
class FadingSlates:
    """A shared parameter: sums of scores of a model of rows, and of slates' moments."""

    releases: FadingReleases
    prior: Prior | None = None

    def make(self, spec: ContextualSpec, streams: Streams) -> ResidualSlates:
        """A `ResidualSlates`; raises `InputError` where each arm has its own parameter."""
        if not spec.shared:
            raise InputError("Expected model='slates' only where arms share one parameter.")
        statistic = SlateResiduals(dim=spec.dim, context_bound=spec.context_norm)
        first = self.releases.first(spec, 4 * sqrt(spec.dim))
        sums = self.releases.sums(statistic, spec, streams, first)
        return ResidualSlates(
            spec,
            sums,
            statistic,
            streams,
            self.releases.ledger(sums),
            signs=spec.link in LINKS,
            prior=prior_of(
                self.prior,
                len(streams),
                1 + spec.dim,
                meaning=f"of an intercept and {spec.dim} features of an arm",
            ),
        )


@dataclass(frozen=True, kw_only=True)
class FadingPrices:
    """Price lists: sums of scores of a model of sales, and of customers' moments.

    A curve is learned beside counts of sales, see `CurvedPricing`.
    With interactions customers matter more, since scores are aimed by them: their moments have more
    weight.
    """

    releases: FadingReleases
    prior: Prior | None = None
    features: Features = "additive"

    def make(self, spec: PriceListSpec, streams: Streams) -> ResidualPricing:
        """A `ResidualPricing`, or for a curve a `CurvedPricing`."""
        additive = self.features != "interactions"
        statistic = SaleResiduals(
            dim=demand_spec(spec, self.features).dim,
            features=spec.dim,
            moment_weight=0.35 if additive else 0.5,
        )
        if self.features == "curve":
            return self._curved(spec, statistic, streams)
        first = self.releases.first(spec, 5 * sqrt(statistic.dim), least=7.5)
        sums = self.releases.sums(statistic, spec, streams, first)
        return ResidualPricing(
            spec,
            sums,
            statistic,
            streams,
            self.releases.ledger(sums),
            prior=prior_of(
                self.prior,
                len(streams),
                statistic.dim,
                meaning=f"of {spec.dim} features of a customer and of the price"
                + ("" if additive else ", times each of them"),
            ),
            width=max(_LEAST_WIDTH, min(1.0, self.releases.mu)) if additive else _CROSSED_WIDTH,
            features=self.features,
        )

    def _curved(
        self, spec: PriceListSpec, statistic: SaleResiduals, streams: Streams
    ) -> CurvedPricing:
        if self.prior is not None or self.releases.trust != "central":
            raise InputError(
                "Expected features='curve' without a prior and with trust='central': sales are "
                "counted first."
            )
        K, epsilon = spec.n_actions, self.releases.epsilon
        each = asked_first(spec, epsilon)
        counts = CountedSums(
            streams.child("counts"), K, low=0, high=1, epsilon=epsilon, uses=max(1, K * each)
        )
        later = _without(spec, K * each)
        first = self.releases.first(later, 5 * sqrt(spec.dim + 1), least=7.5)
        sums = self.releases.sums(statistic, later, streams, first)
        spend = Parallel((sums.spend, counts.spend), "counted or summed")
        return CurvedPricing(
            spec,
            sums,
            statistic,
            streams,
            ledger_of(epsilon, spend),
            width=max(_LEAST_WIDTH, min(1.0, self.releases.mu)),
            counts=counts,
            each=each,
            noise=2 / epsilon**2,
        )
