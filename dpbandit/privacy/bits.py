"""Sums of bits, made private by fair coins or flips, for secure aggregation and shuffling."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, floor, inf, log, sqrt
from typing import ClassVar, Literal, NamedTuple, Self, TypeAlias

import numpy as np
import scipy

from dpbandit.base import (
    AnyArray,
    Floats,
    InputError,
    Ints,
    Streams,
    flag,
    gaussian_target,
    inside,
    one_of,
    rows,
    share,
    whole,
)
from dpbandit.privacy.certificate import SPEND_KINDS
from dpbandit.privacy.fading import released_ends
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss, constant, split
from dpbandit.privacy.mechanism import SHUFFLED_TRUST, Mechanism
from dpbandit.privacy.premises import NO_FACTS, SUMMED
from dpbandit.privacy.spends import GaussianSpend, Parallel, Spend, largest_epsilon


@dataclass(frozen=True, kw_only=True)
class SignBits:
    """Sum of sign(reward - centre) sign(context) in the block of the arm played, 0 in all others.

    A sign is 0 where its argument is 0, and all are if the context or reward is not finite: a
    device then has no bit to send, and sends a fair coin instead.

    **Sensitivity.** 2 sqrt(d), for d signs against their opposites (for two different arms sqrt(2
    d)).
    """

    # "d signs against their opposites"
    needs = NO_FACTS

    n_actions: int
    """K, the number of arms, each with a block of its own"""
    dim: int
    """d, the length of a context"""
    centre: float = 0.0
    """public level with which rewards are compared, such as the middle of their range"""
    units: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        whole("n_actions", self.n_actions, 1)
        whole("dim", self.dim, 1)

    @property
    def sensitivity(self) -> float:
        return 2 * sqrt(self.dim)

    @property
    def shape(self) -> tuple[int, ...]:
        return (self.n_actions, self.dim)

    def total(self, *batch: AnyArray) -> Floats:
        # context (n, R, d), action (n, R), reward (n, R) -> (R, K, d)
        x, action, reward = batch
        known = np.isfinite(x).all(axis=-1) & np.isfinite(reward)
        towards = np.where(known, np.sign(reward - self.centre), 0.0)
        bits = towards[..., None] * np.sign(np.where(known[..., None], x, 0.0))
        played = action[..., None] == rows(self.n_actions)
        return np.einsum("nrk,nrd->rkd", played.astype(float), bits)


Cover: TypeAlias = Literal["coins", "flips"]
COVERS: tuple[Cover, ...] = ("coins", "flips")  # ways to hide bits, see `BitSum`
_DEVICES_RATIO = 1.2
"""Ratio of neighbouring device counts for which a flip probability is searched; a count between two
of them is rounded down, which is safe and saves searches"""


class BitSum(Mechanism):
    """Private sum of `SignBits` over each batch of n devices, with d bits for every block::

        coins   every device sends its bits, and its share of N fair coins for every coordinate
        flips   every device flips each bit with probability p: randomised response

    Each bit is a message of its own, labelled by its coordinate alone. Where the statistic is 0, as
    in blocks of arms that were not played, a device sends a fair coin, so that the number of
    messages reveals nothing. A release is the debiased sum of bits at the end of a batch.

    Guarantee:
        (epsilon, delta)-DP for one user's round: her bits are in one batch, hidden among coins or
        flips (`BitSpend`). A fraction h of the devices is honest and stays. "coins": each device
        sends ceil(N / (h n)) coins, so that honest devices send N (with h = 1, N in all); a
        shuffler that colludes with the server sees true bits: there is no local guarantee at all.
        "flips": p is the least at which the flips of the other h n - 1 honest devices hide her
        bits, and a user's messages are locally d log((1 - p) / p)-DP, whoever colludes.
    """

    # "her bits are in one batch"
    needs = SUMMED

    trust = SHUFFLED_TRUST
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
        share("honest", honest)  # somebody has to add noise
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
        """Return the variance that coins and flips add to a batch's sum, mean over coordinates."""
        n = np.diff([0, *self._ends])[batch]
        bits = n * (1 / (1 - 2 * self._flips[batch]) ** 2 - 1 / self._statistic.n_actions)
        return float(self._coins[batch] + bits)

    def query(self, *datum: AnyArray) -> Floats:
        # -1 or 1, or 0 where a fair coin is sent: (R, blocks, d)
        return self._statistic.total(*(array[None] for array in datum))

    def admissible(self, *datum: AnyArray) -> tuple[AnyArray, ...]:
        """Return the round clipped to the bounds of the statistic, for `dpbandit.testing`."""
        x, action, reward = datum
        known = np.isfinite(x).all(axis=-1) & np.isfinite(reward)
        signs = np.sign(np.where(known[:, None], x, 0.0))
        return signs, action, np.where(known, reward, self._statistic.centre)

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
    """Round a number of devices down to a power of `_DEVICES_RATIO`."""
    if devices < 1:
        raise InputError("Expected batches of at least one honest device: make honest larger.")
    power = floor(np.log(devices) / np.log(_DEVICES_RATIO) + 1e-9)
    return max(1, min(devices, ceil(_DEVICES_RATIO**power)))


_CELLS_PER_STDDEV = 1000
"""Approximate number of loss-grid cells per standard deviation of the privacy loss of one bit"""
_STDDEVS = 20.0
"""Half-width of the counts in standard deviations; mass outside, < 1e-80, is infinite loss"""
_MAX_COUNTS = 400
"""Largest number of coin counts that are evaluated; counts between them are rounded down"""
_MASS_MARGIN = 1 + 1e-11
"""Factor by which probability masses are raised to cover their rounding errors"""
_MAX_COINS, _MIN_FLIP, _FLIP_PRECISION, _CACHED_TARGETS = 10**9, 1e-300, 1e-4, 1024
_OMITTED_MASS = 1e-70
"""Least delta that can be certified, as counts beyond `_STDDEVS` are left out"""


class _Pair(NamedTuple):
    """Law of a privacy loss: finite losses, their masses, and the mass of an infinite loss."""

    losses: Floats
    masses: Floats
    infinite: float


@dataclass(frozen=True)
class BitSpend:
    """Cost of `bits` bits of a person, each hidden among B coins, B ~ Bin(coins, chance) public.

    Guarantee:
        The privacy loss is exact given B, rounded up; pure epsilon: bits x log((1 - flip) / flip).

    >>> spend = BitSpend.among_coins(558, bits=10)
    >>> spend.delta(1.0) <= 1e-5 < BitSpend.among_coins(557, bits=10).delta(1.0)
    True
    """

    bits: int
    """number of bits of one person"""
    coins: int
    """number of fair coins of other users, each thrown with probability `chance`"""
    chance: float = 1.0
    """probability with which each of the coins is thrown"""
    flip: float = 0.0
    """probability with which a person flips her own bit"""
    arms: bool = False
    """True if neighbours may have played different arms"""
    note: str = "bits among fair coins"
    mu: ClassVar[float | None] = None

    def __post_init__(self) -> None:
        whole("bits", self.bits, 0)
        whole("coins", self.coins, 0)
        inside("chance", self.chance, 0, 1, ends=True)
        inside("flip", self.flip, 0, 0.5, ends=True)
        flag("arms", self.arms)

    @classmethod
    def among_coins(cls, coins: int, *, bits: int, arms: bool = False) -> Self:
        """Return the spend of unflipped bits, each among `coins` fair coins of other users."""
        return cls(bits, coins, arms=arms, note=f"{bits} bits, each among {coins} fair coins")

    @classmethod
    def flipped(cls, flip: float, *, others: int, bits: int, arms: bool = False) -> Self:
        """Return the spend of bits that a person and `others` flip with probability `flip`."""
        note = f"{bits} bits, flipped with probability {flip:.4g}, among those of {others} others"
        return cls(bits, others, 2 * flip, flip, arms, note)

    @property
    def pure(self) -> float:
        # Of the messages as they are sent, bits x log((1 - flip) / flip)
        if self.bits == 0:
            return 0.0
        return self.bits * log((1 - self.flip) / self.flip) if self.flip else inf

    @property
    def rho(self) -> float:
        return self.pure**2 / (2 * self.bits) if self.bits else 0.0

    @property
    def step(self) -> float:
        return 2 / sqrt(max(self.coins * self.chance, 1)) / _CELLS_PER_STDDEV

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        # None where people may play different arms: which of two pairs of laws is worse depends
        if self.pure == 0:
            return (constant(0.0, step=step),)
        return None if self.arms else self._on_grid((self._one_against_nought(),), step)

    def delta(self, epsilon: float) -> float:
        # The larger of the two ways to differ; 0 from the pure epsilon on
        if epsilon >= self.pure:
            return 0.0
        return min(1.0, max(curve.delta(epsilon) for curve in self._curves))

    def least_epsilon(self, delta: float) -> float:
        # The larger of the two ways to differ; at most the pure epsilon
        if delta <= 0 or self.pure == 0:
            return self.pure
        return min(self.pure, largest_epsilon(self._curves, delta))

    @cached_property
    def _curves(self) -> list[Composition]:
        ways: list[tuple[_Pair, ...]] = [(self._one_against_nought(),)]
        if self.arms:
            ways.append(self._bit_against_coin())
        return [Composition(self._on_grid(way, self.step)) for way in ways]

    def _on_grid(self, way: tuple[_Pair, ...], step: float) -> tuple[PrivacyLoss, ...]:
        found = []
        for losses, masses, lost in way:
            finite = masses > 0
            if not finite.any():  # without coins a bit is revealed
                return (constant(inf, step=step),)
            loss = split(losses[finite], masses[finite] * _MASS_MARGIN, step=step, count=self.bits)
            found.append(replace(loss, infinite=min(1.0, lost)))
        return tuple(found)

    def _one_against_nought(self) -> _Pair:
        masses, one, lost = self._worlds
        return _loss_pair(masses * one, one, 2 - one, lost)

    def _bit_against_coin(self) -> tuple[_Pair, _Pair]:
        masses, one, lost = self._worlds
        coin = np.ones_like(one)
        return _loss_pair(masses * one, one, coin, lost), _loss_pair(masses, coin, one, lost)

    @cached_property
    def _worlds(self) -> tuple[Floats, Floats, float]:
        """Masses of pairs (B, number of heads of B + 1 fair coins), the factors on them if one coin
        is replaced by a user's bit that is 1, and the omitted mass."""
        from scipy.stats import binom  # takes as long to import as all else together

        numbers, weights, lost = _numbers(self.coins, self.chance)
        middle, reach = (numbers + 1) // 2, np.ceil(_STDDEVS * np.sqrt(numbers + 1) / 2).astype(int)
        first, last = np.maximum(0, middle - reach), np.minimum(numbers, middle + reach) + 1
        sizes = last - first + 1
        b, weight = np.repeat(numbers, sizes), np.repeat(weights, sizes)
        j = np.arange(len(b)) - np.repeat(np.cumsum(sizes) - sizes - first, sizes)
        masses = weight * binom.pmf(j, b + 1, 0.5)
        ones = 2 * ((1 - self.flip) * j + self.flip * (b + 1 - j)) / (b + 1)
        lost += 2 * float(np.dot(weights, binom.sf(last, numbers + 1, 0.5)))
        return masses, ones, 2 * lost


def _numbers(coins: int, chance: float) -> tuple[Ints, Floats, float]:
    """Return up to `_MAX_COUNTS` values of the coin count B, their probabilities, omitted mass."""
    from scipy.stats import binom

    if chance == 1:
        return np.array([coins]), np.ones(1), 0.0
    reach = _STDDEVS * (sqrt(coins * chance * (1 - chance)) + 1)
    low, high = max(0, floor(coins * chance - reach)), min(coins, ceil(coins * chance + reach))
    width = max(1, ceil((high - low + 1) / _MAX_COUNTS))
    numbers = np.arange(low, high + 1, width)
    below = binom.cdf(np.append(numbers - 1, coins), coins, chance)
    return numbers, np.diff(below), float(below[0])


def _loss_pair(masses: Floats, one: Floats, other: Floats, lost: float) -> _Pair:
    """Return the law of the loss log(one / other) of two densities, with `masses` of the first."""
    never = other == 0
    with np.errstate(divide="ignore"):
        losses = np.log(one) - np.log(other)
    return _Pair(losses[~never], masses[~never], lost + float(masses[never].sum()))


@lru_cache(maxsize=_CACHED_TARGETS)
def least_coins(*, bits: int, arms: bool, epsilon: float, delta: float) -> int:
    """Return the least number of fair coins that is (epsilon, delta)-DP; 0 for epsilon = inf.

    >>> least_coins(bits=1, arms=False, epsilon=1.0, delta=1e-5)
    62
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf or bits == 0:
        return 0
    low, high = 0, 1
    while BitSpend.among_coins(high, bits=bits, arms=arms).delta(epsilon) > delta:
        low, high = high, 2 * high
        if high > _MAX_COINS:
            raise InputError(f"Expected epsilon={epsilon} at delta={delta} to be within reach.")
    while high - low > 1:
        middle = (low + high) // 2
        found = BitSpend.among_coins(middle, bits=bits, arms=arms).delta(epsilon)
        low, high = (low, middle) if found <= delta else (middle, high)
    return high


@lru_cache(maxsize=_CACHED_TARGETS)
def least_flip(*, others: int, bits: int, arms: bool, epsilon: float, delta: float) -> float:
    """Return the least flip probability that is (epsilon, delta)-DP; 0 for epsilon = inf.

    It is at most the probability at which a person's bits are private whatever others send.

    >>> round(least_flip(others=299, bits=10, arms=False, epsilon=1.0, delta=1e-5), 4)
    0.244
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf or bits == 0:
        return 0.0
    low = _MIN_FLIP
    high = min(0.5, max(2 * low, (1 + 1e-12) * float(scipy.special.expit(-epsilon / bits))))
    if BitSpend.flipped(low, others=others, bits=bits, arms=arms).pure <= epsilon:
        return low
    if delta < _OMITTED_MASS:  # each message has to be private by itself
        return high
    while high - low > _FLIP_PRECISION * high:
        middle = (low + high) / 2
        found = BitSpend.flipped(middle, others=others, bits=bits, arms=arms).delta(epsilon)
        low, high = (low, middle) if found <= delta else (middle, high)
    return high


SPEND_KINDS[BitSpend.__name__] = BitSpend
