"""Channels: what a device sends, what the server sees of a batch, and how noisy that is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, inf, pi, sqrt
from typing import Any, Literal, Protocol, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from dpbandit.base import Floats, Ints, Streams
from dpbandit.privacy import SignedDirections, certified_fading_sum, mu_of
from dpbandit.privacy.aggregated import AggregatedSum, BitSum, SignBits
from dpbandit.privacy.fading import released_ends
from dpbandit.privacy.ledger import Trust
from dpbandit.privacy.messages import (
    MESSAGES as LOCAL,
    LocalVectors,
    Message as LocalMessage,
    law_of,
)
from dpbandit.privacy.spends import Spend

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
    """Sums of local messages over batches: post-processing.

    Args:
        send: raw rounds go in, the messages of one user of each replica come out.
        spend: what a message costs.
        variance: of the noise of a coordinate of one message.
        ends, horizon: as of `FadingSum`.
    """

    fade = 0.0

    def __init__(
        self,
        send: Callable[..., Floats | None],
        spend: Spend,
        *,
        variance: float,
        ends: Sequence[int],
        horizon: int,
    ) -> None:
        self.spend, self._send, self._variance = spend, send, variance
        self._ends = released_ends(ends, horizon)
        self._round, self._released = 0, 0
        self._sum: Floats = np.zeros(1)

    @property
    def stddev(self) -> float:
        """Of the noise of the latest sum."""
        return sqrt(self.noise(self._released - 1))

    def noise(self, batch: int) -> float:
        """That of as many messages."""
        return float(np.diff([0, *self._ends])[batch]) * self._variance

    def __call__(self, *datum: npt.NDArray[Any]) -> Floats | None:
        """One message of each replica's user; their sum at the end of a batch, else None."""
        if self._released == len(self._ends):
            return None
        self._sum = self._sum + cast(Floats, self._send(*datum))  # every call sends
        self._round += 1
        if self._round < self._ends[self._released]:
            return None
        release, self._sum, self._released = self._sum, np.zeros(1), self._released + 1
        return release


@dataclass
class DirectionMessages:
    """Signed directions, each sent as a message, a point of R^(blocks x d)."""

    messages: LocalVectors
    statistic: SignedDirections

    def __call__(self, x: Floats, block: Ints, reward: Floats) -> Floats:
        """(R, d), (R,) and (R,) -> (R, blocks, d)."""
        u = self.statistic.total(x[None], block[None], reward[None])
        sent = cast(Floats, self.messages(u.reshape(len(u), -1)))
        return sent.reshape(u.shape)


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
        send = DirectionMessages(messages, directions)
        return LocalSums(send, messages.spend, variance=messages.variance, **batches)
