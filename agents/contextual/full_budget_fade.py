"""A baseline of FADE: how far from the best that Gaussian releases of a budget allow."""

from math import inf

from dpbandit.agent import Arms
from dpbandit.agents.contextual.fade_arms import FadeArms
from dpbandit.agents.contextual.fade_prices import FadePrices
from dpbandit.agents.contextual.fade_slates import FadeSlates
from dpbandit.agents.contextual.fading import Fading, FadingReleases, link_fixes_middle
from dpbandit.base import gaussian_target
from dpbandit.privacy import GaussianSpend, Ledger
from dpbandit.privacy.notion import IN_FULL
from dpbandit.privacy.spends import Spend
from dpbandit.specs import BanditSpec, ContextualSpec

_SHORTER = 0.3
"""First batch over that of FADE, whose single releases are noisier and fewer."""


class FullBudgetFADE(Arms):
    """FADE that spends the whole budget on each release; not private, shows what is achievable.

    Release k is the sum of ALL users so far, with the noise that this release alone would need for
    (release_epsilon, release_delta), and the players use all releases. Of noisy sums that keep the
    budget together none tells as much: a user's weights in them have norm 1 altogether, here in
    each. So the first batch, played at random, is shorter than FADE's, too. What FADE loses beyond
    this baseline is the price of releasing often, where privacy is most of the noise: players take
    what chance adds to the users so far for new in every release, so that from epsilon 4 on the
    baseline need not be ahead.

    Guarantee:
        None: m releases together are sqrt(m) mu-GDP, and the ledger says infinity, so that nobody
        takes the baseline for an agent.

    >>> from dpbandit import certify
    >>> from dpbandit.specs.protocols import ContextualSpec
    >>> spec = ContextualSpec(n_actions=2, dim=5, horizon=1000)
    >>> certify(FullBudgetFADE(release_epsilon=1.0), spec).epsilon
    inf
    """

    release_epsilon: float = 1.0
    """epsilon of each release alone, > 0; inf adds no noise"""
    release_delta: float = 1e-5
    """delta, in (0, 1)"""

    def check(self) -> None:
        gaussian_target(self.release_epsilon, self.release_delta)

    def chosen(self, spec: ContextualSpec) -> Fading:
        epsilon, delta = self.release_epsilon, self.release_delta
        if spec.priced:
            return PricesInFull(epsilon=epsilon, delta=delta)
        if spec.shared:
            return SlatesInFull(epsilon=epsilon, delta=delta)
        return ArmsInFull(epsilon=epsilon, delta=delta, level=not link_fixes_middle(spec))


class _WholeBudget(FadingReleases):
    def first(self, spec: BanditSpec, units: float, least: float = 30.0) -> int:
        return max(1, round(_SHORTER * super().first(spec, units, least)))

    def noise_multiplier(self, releases: int) -> float:
        return 1 / self.mu

    def ledger(self, spend: Spend) -> Ledger:
        return Ledger((GaussianSpend(inf, "every release in full"),), IN_FULL)


class InFull(Fading):
    """Spends the whole target on each release."""

    def plan(self) -> FadingReleases:
        return _WholeBudget.of(self, fade=1.0)


class SlatesInFull(InFull, FadeSlates):
    """Slates."""


class ArmsInFull(InFull, FadeArms):
    """Arms with parameters of their own."""


class PricesInFull(InFull, FadePrices):
    """Price lists."""
