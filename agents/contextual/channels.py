"""Channels: what a device sends, what the server sees of a batch, and how noisy that is."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, inf, pi, sqrt
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.accounting.gdp import mu_of
from dpbandit.privacy.accounting.ledger import Trust
from dpbandit.privacy.accounting.spends import Spend
from dpbandit.privacy.messages.aggregated_sums import AggregatedSum
from dpbandit.privacy.messages.bit_sums import BitSum
from dpbandit.privacy.messages.local_vectors import MESSAGES as LOCAL
from dpbandit.privacy.messages.local_vectors import LocalVectors, law_of
from dpbandit.privacy.messages.local_vectors import Message as LocalMessage
from dpbandit.privacy.statistics.directions import SignedDirections
from dpbandit.privacy.statistics.sign_bits import SignBits
from dpbandit.privacy.sums.fading import certified_fading_sum, released_ends

Message: TypeAlias = Literal[
    "directions", "coins", "flips", "privunit", "gaussian", "laplace", "k-norm"
]
SENT: dict[Trust, tuple[Message, ...]] = {
    "central": ("directions",),
    "aggregated": ("directions", "coins"),
    "shuffled": ("coins", "flips"),
    "local": ("privunit", "gaussian", "laplace", "k-norm"),
}
"""What can be sent, by who is trusted; the first is what "auto" sends"""


class Channel(Protocol):
    """Rows (R, d), blocks (R,) and rewards (R,) go in, the noisy sum of a batch comes out."""

    spend: Spend
    fade: float
    """weight of the batch before in a sum"""

    def __call__(self, x: Floats, block: Ints, reward: Floats, /) -> Floats | None:
        """(R, blocks, d) at the end of a batch, else None."""
        ...

    def noise(self, batch: int) -> float:
        """The variance of a coordinate of a sum, counted from 0, beyond that of directions."""
        ...


class LocalSums:
    """Sums of local messages over batches: post-processing of `LocalVectors`."""

    fade = 0.0

    def __init__(
        self,
        messages: LocalVectors,
        statistic: SignedDirections,
        *,
        ends: Sequence[int],
        horizon: int,
    ) -> None:
        self.spend, self._messages, self._statistic = messages.spend, messages, statistic
        self._ends = released_ends(ends, horizon)
        self._round, self._released = 0, 0
        self._sum: Floats = np.zeros((1, *statistic.shape))

    def noise(self, batch: int) -> float:
        """That of as many messages."""
        lengths = np.diff([0, *self._ends])
        return float(lengths[batch]) * self._messages.variance

    def __call__(self, x: Floats, block: Ints, reward: Floats) -> Floats | None:
        """One message of each replica's user; their sum at the end of a batch."""
        if self._released == len(self._ends):
            return None
        u = self._statistic.total(x[None], block[None], reward[None])
        sent = cast(Floats, self._messages(u.reshape(len(u), -1)))  # every call releases
        self._sum, self._round = self._sum + sent.reshape(u.shape), self._round + 1
        if self._round < self._ends[self._released]:
            return None
        release: Floats = self._sum
        self._sum, self._released = np.zeros_like(release), self._released + 1
        return release


@dataclass(frozen=True, kw_only=True)
class Sending:
    """What is sent, and under which promise."""

    message: Message
    epsilon: float
    delta: float
    honest: float
    fade: float
    blocks: int
    dim: int
    centre: float

    def first_batch(self, horizon: int) -> int:
        """Rounds of uniform play until the noise of a sum hides no direction, at most T / 10."""
        D, V = self.blocks * self.dim, self._variance
        if self.message in LOCAL:
            rounds = 18 * D * V
        else:
            told = 1.0 if self.message == "directions" else sqrt(2 * self.dim / pi)
            rounds = 3 * D * sqrt(V + 1) / (0.9 * told)
        return max(1, ceil(min(max(100.0, rounds), horizon / 10)))

    @property
    def _variance(self) -> float:
        """Of the noise of a sum, or of a message, about."""
        if self.epsilon == inf:
            return 0.0
        if self.message in LOCAL:
            law = law_of(self.message, self.blocks * self.dim, self.epsilon, self.delta)
            return law.variance(self.blocks * self.dim)
        gaussian = (2 / mu_of(self.epsilon, self.delta)) ** 2
        if self.message == "directions":
            return gaussian / self.honest / (1 - self.fade**2)
        return gaussian * self.dim

    def open(self, streams: Streams, *, ends: Sequence[int], horizon: int) -> Channel:
        """A channel that is (epsilon, delta)-DP for one user's round."""
        K, d, centre, message = self.blocks, self.dim, self.centre, self.message
        target: dict[str, Any] = {"epsilon": self.epsilon, "delta": self.delta}
        batches: dict[str, Any] = {"ends": ends, "horizon": horizon}
        if message in ("coins", "flips"):
            bits = SignBits(n_actions=K, dim=d, centre=centre)
            return BitSum(bits, streams, cover=message, honest=self.honest, **batches, **target)
        directions = SignedDirections(n_actions=K, dim=d, centre=centre)
        if message == "directions":
            if self.fade:
                return certified_fading_sum(
                    directions, streams, fade=self.fade, **batches, **target
                )
            return AggregatedSum(directions, streams, honest=self.honest, **batches, **target)
        law = cast(LocalMessage, message)
        messages = LocalVectors(streams, dim=K * d, law=law, uses=horizon, **target)
        return LocalSums(messages, directions, **batches)
