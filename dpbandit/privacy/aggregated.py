"""Sums of batches with noise from every device, for secure aggregation and shuffling."""

from collections.abc import Sequence
from math import inf, sqrt

from dpbandit.base import (
    Streams,
    share,
)
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import FadingSlots, FadingSum
from dpbandit.privacy.mechanism import ADDED_UP, Statistic, moving
from dpbandit.privacy.spends import GaussianSpend


class AggregatedSum(FadingSum):
    """The sum of each batch, of n devices of which a fraction h adds its noise and stays::

        each device adds N(0, (S / mu)^2 / (h n) I) to its statistic, S the sensitivity
        the server sees the sum of the batch, by cryptography, and nothing else of it

    Of those who are not honest no noise is expected for the promise; here they add theirs, which
    makes the sum noisier than it had to be by 1 / sqrt(h). With h = 1 this IS a central release of
    each batch, with fade 0.

    Guarantee:
        The honest devices of a batch carry N(0, (S / mu)^2 I), so every batch is mu-GDP, and so are
        all together: a user is in one. It needs no trusted server, but one that adds up and no
        more (a secure aggregation protocol, which is not simulated), and h.
    """

    trust = ADDED_UP

    def __init__(
        self,
        statistic: Statistic,
        streams: Streams,
        *,
        ends: Sequence[int],
        horizon: int,
        epsilon: float,
        delta: float,
        honest: float = 1.0,
    ) -> None:
        share("honest", honest)  # somebody has to add noise
        mu = inf if epsilon == inf else mu_of(epsilon, delta)
        super().__init__(
            statistic,
            streams,
            ends=ends,
            horizon=horizon,
            fade=0.0,
            noise_multiplier=1 / (mu * sqrt(honest)),
        )
        self.honest = honest
        batches = len(self._ends)
        note = f"aggregated sums, {batches} batches, {100 * honest:g} % of devices honest"
        slots = FadingSlots(self._ends, 0.0, moving(statistic))
        self.spend = GaussianSpend(mu if batches else 0.0, note, slots)
