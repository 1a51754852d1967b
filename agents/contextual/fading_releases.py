"""The releases on which FADE's learners play: their batches, their noise and what they cost."""

from dataclasses import dataclass
from math import ceil, inf
from typing import Any, Literal

from dpbandit.base import Streams
from dpbandit.privacy import FadingSum, Ledger, Statistic, certified_fading_sum, ledger_of, mu_of
from dpbandit.privacy.aggregated import AggregatedSum
from dpbandit.privacy.fading import growing_batches
from dpbandit.specs import BanditSpec

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
        return ledger_of(self.epsilon, sums.spend, trust=self.trust, honest=self.honest)
