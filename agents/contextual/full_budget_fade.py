"""A baseline of FADE: how far from the best that Gaussian releases of a budget allow."""

from dataclasses import dataclass
from math import inf
from typing import Any

from dpbandit.agents.contextual.fade import FADE
from dpbandit.base.inputs import InputError, gaussian_target
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.spends import GaussianSpend
from dpbandit.privacy.statistics.moments import Statistic
from dpbandit.privacy.sums.fading import FadingSum, growing_batches
from dpbandit.specs.protocols import BanditSpec, ContextualSpec, PriceListSpec, ScoringAgent, fits

_NOT_PRIVATE = "none: a baseline, each release of which spends the whole budget"


@dataclass(frozen=True, kw_only=True)
class FullBudgetFADE:
    """FADE that spends its whole budget on every release, not private: what the best could do.

    Release k is the sum of ALL users so far, with the noise that this release alone would need for
    (release_epsilon, release_delta), and the players use all releases. Of noisy sums that keep the
    budget together none tells as much: a user's weights in them have norm 1 altogether, here in
    each. What FADE loses beyond this baseline is the price of releasing often.

    Code:
        The players are those of `FADE` (fade.py), on sums that do not fade: `ResidualArms`
        (residual_arms.py) with `SelectedMoments` (moments.py), `ResidualSpread`
        (residual_spread.py) and `ScaleMixture` (scale_mixture.py), and `ResidualPricing`
        (residual_pricing.py).

    Guarantee:
        None: m releases together are sqrt(m) mu-GDP, and the ledger says infinity, so that nobody
        takes the baseline for an agent.

    >>> from dpbandit import certify
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=1000)
    >>> certify(FullBudgetFADE(release_epsilon=1.0), spec).epsilon
    inf
    """

    release_epsilon: float = 1.0
    """what each release alone costs, > 0; inf adds no noise"""
    release_delta: float = 1e-5
    """the same, in (0, 1)"""

    def __post_init__(self) -> None:
        gaussian_target(self.release_epsilon, self.release_delta)

    def make(self, spec: BanditSpec, streams: Streams) -> ScoringAgent:
        """A running agent; raises `InputError` where FADE does not learn from residuals."""
        spec = fits(self, spec, ContextualSpec)
        if spec.shared:
            raise InputError(
                "FullBudgetFADE plays arms with parameters of their own, and prices: choose FADE."
            )
        agent: Any = _WholeBudget(
            epsilon=self.release_epsilon,
            delta=self.release_delta,
            model="prices" if isinstance(spec, PriceListSpec) else "arms",
        ).make(spec, streams)
        agent.ledger = Ledger((GaussianSpend(inf, "every release in full"),), _NOT_PRIVATE)
        running: ScoringAgent = agent
        return running


class _WholeBudget(FADE):
    def _sums(
        self, statistic: Statistic, spec: ContextualSpec, streams: Streams, first: int
    ) -> FadingSum:
        return FadingSum(
            statistic,
            streams,
            ends=growing_batches(spec.horizon, first=first, growth=self.growth),
            horizon=spec.horizon,
            fade=1.0,
            noise_multiplier=0.0 if self.epsilon == inf else 1 / mu_of(self.epsilon, self.delta),
        )
