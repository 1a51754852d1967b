"""FADE's learners: what each of them sums, in which batches, with what noise, and who plays.

Learners that sum rewards come first: what they sum does not depend on earlier releases. Those after
them sum scores of residuals against what was released before.
"""

from dataclasses import dataclass, replace
from math import ceil, inf, sqrt
from typing import Any, Literal, TypeAlias

import numpy as np

from dpbandit.agents.contextual.centred_arms import CentredArms
from dpbandit.agents.contextual.demand import Features, Priced, demand_spec
from dpbandit.agents.contextual.fading_regression import (
    LogisticPlayer,
    RegressionPlayer,
    TryingPlayer,
)
from dpbandit.agents.contextual.moments import SHRINKAGES, MomentPlayer
from dpbandit.agents.contextual.public_prior import prior_of
from dpbandit.agents.contextual.residual_arms import ResidualArms
from dpbandit.agents.contextual.residual_pricing import CurvedPricing, ResidualPricing, asked_first
from dpbandit.agents.contextual.residual_slates import ResidualSlates
from dpbandit.base import InputError, Streams
from dpbandit.privacy import (
    FadingSum,
    Ledger,
    Parallel,
    SecondMoments,
    SignedDirections,
    Statistic,
    certified_fading_sum,
    ledger_of,
    mu_of,
)
from dpbandit.privacy.aggregated import AggregatedSum
from dpbandit.privacy.batches import BatchSum, CountedSums
from dpbandit.privacy.fading import growing_batches
from dpbandit.privacy.noise import Gaussian
from dpbandit.privacy.notion import Notion, Trust
from dpbandit.privacy.residuals import (
    CentredResiduals,
    SaleResiduals,
    SignedResiduals,
    SlateResiduals,
)
from dpbandit.privacy.spends import GaussianSpend
from dpbandit.specs import LINKS, BanditSpec, ContextualSpec, PriceListSpec, Prior

_LOOKS, _LOOK, _SHORTEST_LOOK = 3, 15, 10


@dataclass(frozen=True, kw_only=True)
class FadingReleases:
    """Settings of a fading sum that is (epsilon, delta)-DP, whatever it sums.

    Guarantee:
        That of `certified_fading_sum`, or of `AggregatedSum`.
    """

    epsilon: float
    delta: float
    first_batch: int | None
    growth: float
    fade: float
    trust: Literal["central", "aggregated"] = "central"
    """with "aggregated" a batch is in one release, fade 0"""
    honest: float = 1.0
    """the fraction of devices that add noise and stay"""
    longest: int | None = None
    """rounds of a batch, at most"""

    @property
    def mu(self) -> float:
        """Of all releases together."""
        return inf if self.epsilon == inf else mu_of(self.epsilon, self.delta)

    def first(self, spec: BanditSpec, units: float, least: float = 30.0) -> int:
        """Rounds of uniform play: `units` in units of the noise, at least `least`, at most T/10."""
        if self.first_batch is not None:
            return self.first_batch
        return max(1, min(ceil(max(least, 2 * units / self.mu)), spec.horizon // 10))

    def sums(
        self,
        statistic: Statistic,
        spec: BanditSpec,
        streams: Streams,
        first: int,
        looks: tuple[int, ...] = (),
    ) -> FadingSum:
        """The mechanism, with a first batch of that length."""
        target: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
        batches: dict[str, Any] = {"ends": self.ends(spec, first, looks), "horizon": spec.horizon}
        if self.trust == "aggregated":
            return AggregatedSum(statistic, streams, honest=self.honest, **batches, **target)
        return certified_fading_sum(statistic, streams, fade=self.fade, **batches, **target)

    def ends(self, spec: BanditSpec, first: int, looks: tuple[int, ...] = ()) -> tuple[int, ...]:
        """The last round of each batch, `looks` before all others."""
        start = looks[-1] if looks else 0
        later = growing_batches(
            max(1, spec.horizon - start), first=first, growth=self.growth, longest=self.longest
        )
        return (*looks, *(start + end for end in later))

    def looks(self, spec: BanditSpec) -> tuple[int, ...]:
        """Ends of three short batches before the first, in which the level of rewards is learned.

        In each of them noise is a tenth of the range or less, but T / 50 is the longest, and a
        first batch that was asked for.
        """
        longest = min(spec.horizon // 50, self.first_batch or spec.horizon)
        length = max(1, min(ceil(max(_SHORTEST_LOOK, _LOOK / self.mu)), longest))
        return tuple(length * (k + 1) for k in range(_LOOKS))

    def ledger(self, sums: FadingSum) -> Ledger:
        """What the sums cost."""
        return ledger_of(
            self.epsilon, sums.spend, notion=Notion(trust=Trust(self.trust, self.honest))
        )


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

    def make(self, spec: PriceListSpec, streams: Streams) -> Priced:
        dim = demand_spec(spec, self.features).dim
        first = self.releases.first(spec, 20 * sqrt(dim))
        releases = replace(self.releases, first_batch=first)
        inner = FadingRegression(
            releases=releases,
            response="logistic",
            shift=self.shift,
            bonus=self.bonus,
        )
        return Priced(inner, features=self.features, explore=first).make(spec, streams)


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
