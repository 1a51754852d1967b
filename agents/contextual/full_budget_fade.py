"""Baseline of FADE that spends the whole budget on each release."""

from math import inf

from dpbandit.agent import Arms
from dpbandit.agents.contextual.fade import FADE
from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_curve import FadeCurve
from dpbandit.agents.contextual.fade_prices import FadePrices
from dpbandit.agents.contextual.fade_slates import FadeSlates
from dpbandit.agents.contextual.fading import Fading, FadingReleases, link_fixes_middle
from dpbandit.base import gaussian_target
from dpbandit.privacy import GaussianSpend, Ledger
from dpbandit.privacy.notion import IN_FULL
from dpbandit.privacy.spends import Spend
from dpbandit.specs import BanditSpec, ContextualSpec

_FIRST_BATCH_RATIO = 0.3
"""Length of the first batch divided by that of FADE's first batch, whose release is noisier"""


class FullBudgetFADE(Arms):
    """FADE that spends the whole budget on each release: a baseline that is not private.

    Release k is the sum of ALL users so far, with the noise that this release alone would need for
    (release_epsilon, release_delta), and play uses all releases. No private noisy sums are as
    informative: there the vector of a user's weights has norm 1, but here every weight is 1. The
    first batch, played at random, is also shorter than FADE's. If most noise is due to privacy,
    FADE's regret beyond this baseline is the price of many releases; from epsilon 4 on the baseline
    may be worse, because it treats the sampling error of the users so far as new in every release.

    Guarantee:
        None: m releases together are sqrt(m) mu-GDP, if each is mu-GDP, and the ledger states
        infinity, so that the baseline cannot be mistaken for a private agent.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=1000)
    >>> certify(FullBudgetFADE(release_epsilon=1.0), spec).epsilon
    inf
    """

    release_epsilon: float = 1.0
    """epsilon of each release alone, > 0; inf adds no noise"""
    release_delta: float = 1e-5
    """delta of each release alone, in (0, 1)"""

    def check(self) -> None:
        gaussian_target(self.release_epsilon, self.release_delta)

    def chosen(self, spec: ContextualSpec) -> Fading:
        epsilon, delta = self.release_epsilon, self.release_delta
        if spec.priced:
            if isinstance(FADE().chosen(spec), FadeCurve):
                return CurveInFull(epsilon=epsilon, delta=delta)
            return PricesInFull(epsilon=epsilon, delta=delta, features="shrunk")
        if spec.shared:
            return SlatesInFull(epsilon=epsilon, delta=delta)
        return ArmsInFull(epsilon=epsilon, delta=delta, level=not link_fixes_middle(spec))


class _WholeBudget(FadingReleases):
    def first(self, spec: BanditSpec, units: float, least: float = 30.0) -> int:
        return max(1, round(_FIRST_BATCH_RATIO * super().first(spec, units, least)))

    def noise_multiplier(self, releases: int) -> float:
        return 1 / self.mu

    def ledger(self, spend: Spend) -> Ledger:
        return Ledger((GaussianSpend(inf, "every release in full"),), IN_FULL)


class InFull(Fading):
    """Base class of fading agents that spend the whole (epsilon, delta) on each release."""

    def plan(self) -> FadingReleases:
        return _WholeBudget.of(self, fade=1.0)


class SlatesInFull(InFull, FadeSlates):
    """`FadeSlates` that spends the whole (epsilon, delta) on each release."""


class ArmsInFull(InFull, FadeArms):
    """`FadeArms` that spends the whole (epsilon, delta) on each release."""


class PricesInFull(InFull, FadePrices):
    """`FadePrices` that spends the whole (epsilon, delta) on each release."""


class CurveInFull(InFull, FadeCurve):
    """`FadeCurve` that spends the whole (epsilon, delta) on each release."""
