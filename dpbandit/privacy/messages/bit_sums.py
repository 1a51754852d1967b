"""Sums of sign bits over batches, which somebody mixes: bits among coins, or flipped."""

from collections.abc import Sequence
from math import ceil, floor, inf
from typing import Any, Literal, TypeAlias

import numpy as np
import numpy.typing as npt

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, inside, one_of
from dpbandit.base.random_streams import Streams
from dpbandit.privacy.coins import BitSpend, least_coins, least_flip
from dpbandit.privacy.mechanism import MIXED, Mechanism
from dpbandit.privacy.spends import GaussianSpend, Parallel, Spend
from dpbandit.privacy.statistics.sign_bits import SignBits
from dpbandit.privacy.sums.fading import released_ends

Cover: TypeAlias = Literal["coins", "flips"]
COVERS: tuple[Cover, ...] = ("coins", "flips")
_RATIO = 1.2
"""Between numbers of devices for which the chance of a flip is found; others are rounded down"""


class BitSum(Mechanism):
    """The sum of q over each batch of n devices, q in {-1, 1}^(blocks x d) made of `SignBits`::

        coins   every device sends its bits, and its share of N fair coins for every coordinate
        flips   every device flips each bit with probability p: randomised response

    Each bit is a message of its own, labelled by its coordinate alone. Where the statistic has
    nothing to say, in blocks of arms that were not played, a fair coin is sent, so that the number
    of messages tells nothing. A release is the sum of bits, debiased, at the end of a batch.

    Guarantee:
        (epsilon, delta)-DP for one user's round: her bits are in one batch, and there among coins
        (`BitSpend`). A fraction h of the devices is honest and stays. "coins": each device sends
        ceil(N / (h n)) coins, so that the honest send N (with h = 1, N in all); whoever mixes and
        colludes with the server sees true bits: there is no local guarantee at all. "flips": p is
        what the others, h n - 1 of them, make enough of, and each message keeps a local guarantee
        of its own, pure d log((1 - p) / p), whoever colludes.
    """

    trust = MIXED
    fade = 0.0

    def __init__(
        self,
        statistic: SignBits,
        streams: Streams,
        *,
        cover: Cover,
        ends: Sequence[int],
        horizon: int,
        epsilon: float,
        delta: float,
        honest: float = 1.0,
    ) -> None:
        one_of("cover", cover, COVERS)
        inside("honest", honest, 0, 1, ends=True)
        if honest == 0:
            raise InputError("Expected honest=0 to be above 0: somebody has to throw coins.")
        self._statistic, self._ends = statistic, released_ends(ends, horizon)
        self.sensitivity, self.uses = statistic.sensitivity, horizon
        batches = np.diff([0, *self._ends])
        bits, arms = statistic.dim, statistic.n_actions > 1
        self._flips, self._coins = np.zeros((2, len(batches)))
        self.spend: Spend
        if epsilon == inf:
            self.spend = GaussianSpend(inf if len(batches) else 0.0, "sums of bits")
        elif cover == "coins":
            N = least_coins(bits=bits, arms=arms, epsilon=epsilon, delta=delta)
            each = np.ceil(N / (honest * batches)) * batches
            self._coins = each if honest < 1 else np.full(len(batches), N)
            self.spend = BitSpend.among_coins(N, bits=bits * min(1, len(batches)), arms=arms)
        else:
            others = [_rounded(floor(honest * n)) - 1 for n in batches]
            found = [
                least_flip(others=m, bits=bits, arms=arms, epsilon=epsilon, delta=delta)
                for m in others
            ]
            self._flips = np.array(found)
            self.spend = Parallel(
                tuple(
                    BitSpend.flipped(p, others=m, bits=bits, arms=arms)
                    for p, m in sorted(set(zip(found, others, strict=True)))
                ),
                f"{bits} flipped bits in each of {len(batches)} batches",
            )
        self._streams = streams.child("coins")
        self._fair = streams.uniforms("fair bits", *statistic.shape)
        self._flipped = streams.uniforms("flipped bits", *statistic.shape)
        self._released, self._sum = 0, np.zeros((len(streams), *statistic.shape))

    def noise(self, batch: int) -> float:
        """The variance of a coordinate of a release, beyond that of n random signs in one block."""
        n = np.diff([0, *self._ends])[batch]
        bits = n * (1 / (1 - 2 * self._flips[batch]) ** 2 - 1 / self._statistic.n_actions)
        return float(self._coins[batch] + bits)

    def query(self, *datum: npt.NDArray[Any]) -> Floats:
        """-1 or 1, or 0 where a fair coin is sent: (R, blocks, d)."""
        return self._statistic.total(*(array[None] for array in datum))

    def _release(self, *datum: npt.NDArray[Any]) -> Floats | None:
        if self._released == len(self._ends):
            return None
        q, p = self.query(*datum), self._flips[self._released]
        sent = np.where(q == 0, np.where(self._fair() < 0.5, 1.0, -1.0), q)
        self._sum += np.where(self._flipped() < p, -sent, sent) if p else sent
        if self._used < self._ends[self._released]:
            return None
        N = int(self._coins[self._released])
        heads = self._streams.binomials(f"of batch {self._released}", N, *q.shape[1:])()
        release: Floats = (self._sum + 2 * heads - N) / (1 - 2 * p)
        self._released += 1
        self._sum = np.zeros_like(self._sum)
        return release


def _rounded(devices: int) -> int:
    """Down to one of few numbers."""
    if devices < 1:
        raise InputError("Expected batches of at least one honest device: make honest larger.")
    power = floor(np.log(devices) / np.log(_RATIO) + 1e-9)
    return max(1, min(devices, ceil(_RATIO**power)))
