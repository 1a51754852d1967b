"""Sums of batches with noise from every device, for secure aggregation and shuffling."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, sqrt
from typing import ClassVar, Literal, TypeAlias

import numpy as np

from dpbandit.base import AnyArray, Floats, InputError, Streams, inside, one_of, rows, whole
from dpbandit.privacy.coins import BitSpend, least_coins, least_flip
from dpbandit.privacy.curves import mu_of
from dpbandit.privacy.fading import FadingSlots, FadingSum, released_ends
from dpbandit.privacy.mechanism import ADDED_UP, MIXED, Mechanism
from dpbandit.privacy.moments import Statistic, moving
from dpbandit.privacy.spends import GaussianSpend, Parallel, Spend


@dataclass(frozen=True, kw_only=True)
class SignBits:
    """The sum of sign(r - centre) sign(x) in the block of the arm played, 0 in all others.

    An entry is 0, too, where x is 0, where r is the centre and where either is no number: there is
    no bit to be sent, and a fair coin goes instead.

    **Sensitivity.** 2 sqrt(d): d signs against their opposites (of two different arms: sqrt(2 d)).
    """

    n_actions: int
    """blocks"""
    dim: int
    """d"""
    centre: float = 0.0
    """a public number, such as the middle of the reward range"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_actions", self.n_actions, 1)
        whole("dim", self.dim, 1)

    @property
    def sensitivity(self) -> float:
        """2 sqrt(d)."""
        return 2 * sqrt(self.dim)

    @property
    def shape(self) -> tuple[int, ...]:
        """(K, d)."""
        return (self.n_actions, self.dim)

    def total(self, *batch: AnyArray) -> Floats:
        """context (n, R, d), action (n, R), reward (n, R) -> (R, K, d)."""
        x, action, reward = batch
        known = np.isfinite(x).all(axis=-1) & np.isfinite(reward)
        towards = np.where(known, np.sign(reward - self.centre), 0.0)
        bits = towards[..., None] * np.sign(np.where(known[..., None], x, 0.0))
        played = action[..., None] == rows(self.n_actions)
        return np.einsum("nrk,nrd->rkd", played.astype(float), bits)


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
        inside("honest", honest, 0, 1, ends=True)
        if honest == 0:
            raise InputError("Expected honest=0 to be above 0: somebody has to add noise.")
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

    def query(self, *datum: AnyArray) -> Floats:
        """-1 or 1, or 0 where a fair coin is sent: (R, blocks, d)."""
        return self._statistic.total(*(array[None] for array in datum))

    def _release(self, *datum: AnyArray) -> Floats | None:
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
