"""Exact privacy costs of bits that are added up with coins.

Somebody sends a bit for each of d coordinates, and everybody else adds the same in both worlds, so
that what can be told apart is her bit among B fair coins::

    one against nought       1 + (B coins)   against   B coins
    a bit against a coin     1 + (B coins)   against   B + 1 coins

The second is for two people who play different arms, where bits are sent for the arm that was
played and coins for all others: it comes 2 d times, d times in each direction. Which of the two
costs more is not proved, so both are computed, and the larger is what is said.

**Fair coins.** B = N coins of others are added, whose number is public: the law of the loss is
explicit, whatever the data and however many people there are.

**Randomised response** (Warner, JASA 1965), in random order: everybody flips her bit with
probability p, that is, throws a coin in its place with probability 2 p. Tell the server which bits
of the others are no coins, and these; then her bit, flipped with probability p itself, lies among
B ~ Bin(n - 1, 2 p) coins, B told. Telling only helps, so the cost is bounded from above.
"""

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import ceil, floor, inf, log, sqrt
from typing import ClassVar, NamedTuple, Self

import numpy as np
import scipy

from dpbandit.base import Floats, InputError, Ints, flag, gaussian_target, inside, whole
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss, constant, split

_FINE = 1000
"""Grid points to a standard deviation of the loss of a bit, about"""
_FAR = 20.0
"""Standard deviations of a count; what lies beyond, less than 1e-80, is an infinite loss"""
_NUMBERS = 400
"""Numbers of coins that are told apart, at most; between them coins are left out"""
_ROUNDED = 1 + 1e-11
"""Masses are taken for more, by what they may be off by"""
_MOST_COINS, _LEAST_FLIP, _CLOSE, _REMEMBERED = 10**9, 1e-300, 1e-4, 1024
_LEFT_OUT = 1e-70
"""A smaller delta is less than what is left out of counts"""


class _Pair(NamedTuple):
    """The law of one loss; the rest of its mass is at infinity."""

    losses: Floats
    masses: Floats
    infinite: float


@dataclass(frozen=True)
class BitSpend:
    """`bits` bits of a person, each among B ~ Bin(coins, chance) coins, B told.

    Guarantee:
        The loss is that of the module, rounded up; pure DP with bits x log((1 - flip) / flip).

    >>> spend = BitSpend.among_coins(558, bits=10)
    >>> spend.delta(1.0) <= 1e-5 < BitSpend.among_coins(557, bits=10).delta(1.0)
    True
    """

    bits: int
    """d"""
    coins: int
    """of which B are thrown"""
    chance: float = 1.0
    flip: float = 0.0
    """the probability p with which she flips her own bit"""
    arms: bool = False
    """whether people may play different arms"""
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
        """Bits that are sent as they are, with so many fair coins of others."""
        return cls(bits, coins, arms=arms, note=f"{bits} bits, each among {coins} fair coins")

    @classmethod
    def flipped(cls, flip: float, *, others: int, bits: int, arms: bool = False) -> Self:
        """Bits that everybody flips with probability `flip`, hers and those of so many others."""
        note = f"{bits} bits, flipped with probability {flip:.4g}, among those of {others} others"
        return cls(bits, others, 2 * flip, flip, arms, note)

    @property
    def pure(self) -> float:
        """Of the messages as they are sent, bits x log((1 - flip) / flip)."""
        if self.bits == 0:
            return 0.0
        return self.bits * log((1 - self.flip) / self.flip) if self.flip else inf

    @property
    def rho(self) -> float:
        """The zCDP parameter that pure DP of each bit implies."""
        return self.pure**2 / (2 * self.bits) if self.bits else 0.0

    @property
    def step(self) -> float:
        """A fine grid."""
        return 2 / sqrt(max(self.coins * self.chance, 1)) / _FINE

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        """Of all bits; None where people play different arms and either way may cost more."""
        if self.pure == 0:
            return (constant(0.0, step=step),)
        return None if self.arms else self._on_grid((self._one_against_nought(),), step)

    def delta(self, epsilon: float) -> float:
        """The larger of the two ways to differ; 0 from the pure epsilon on."""
        if epsilon >= self.pure:
            return 0.0
        return min(1.0, max(curve.delta(epsilon) for curve in self._curves))

    def least_epsilon(self, delta: float) -> float:
        """The larger of the two ways to differ; at most the pure epsilon."""
        if delta <= 0 or self.pure == 0:
            return self.pure
        return min(self.pure, max(curve.least_epsilon(delta) for curve in self._curves))

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
            if not finite.any():  # without coins a bit is told
                return (constant(inf, step=step),)
            loss = split(losses[finite], masses[finite] * _ROUNDED, step=step, count=self.bits)
            found.append(replace(loss, infinite=min(1.0, lost)))
        return tuple(found)

    def _one_against_nought(self) -> _Pair:
        masses, one, lost = self._worlds
        return _pair(masses * one, one, 2 - one, lost)

    def _bit_against_coin(self) -> tuple[_Pair, _Pair]:
        masses, one, lost = self._worlds
        coin = np.ones_like(one)
        return _pair(masses * one, one, coin, lost), _pair(masses, coin, one, lost)

    @cached_property
    def _worlds(self) -> tuple[Floats, Floats, float]:
        """Numbers of coins and of heads: their mass, for B + 1 coins, what it is multiplied by
        where one of these is her bit, a one, and the mass of those that are left out."""
        from scipy.stats import binom  # takes as long to import as all else together

        numbers, weights, lost = _numbers(self.coins, self.chance)
        masses, ones = [], []
        for b, weight in zip(numbers.tolist(), weights.tolist(), strict=True):
            reach = ceil(_FAR * sqrt(b + 1) / 2)
            j = np.arange(max(0, (b + 1) // 2 - reach), min(b + 1, (b + 1) // 2 + 1 + reach) + 1)
            masses.append(weight * binom.pmf(j, b + 1, 0.5))
            ones.append(2 * ((1 - self.flip) * j + self.flip * (b + 1 - j)) / (b + 1))
            lost += 2 * weight * float(binom.sf(j[-1], b + 1, 0.5))
        return np.concatenate(masses), np.concatenate(ones), 2 * lost


def _numbers(coins: int, chance: float) -> tuple[Ints, Floats, float]:
    """Numbers of coins, at most `_NUMBERS`, rounded down; their chances, and what is left out."""
    from scipy.stats import binom

    if chance == 1:
        return np.array([coins]), np.ones(1), 0.0
    reach = _FAR * (sqrt(coins * chance * (1 - chance)) + 1)
    low, high = max(0, floor(coins * chance - reach)), min(coins, ceil(coins * chance + reach))
    width = max(1, ceil((high - low + 1) / _NUMBERS))
    numbers = np.arange(low, high + 1, width)
    below = binom.cdf(np.append(numbers - 1, coins), coins, chance)
    return numbers, np.diff(below), float(below[0])


def _pair(masses: Floats, one: Floats, other: Floats, lost: float) -> _Pair:
    """`one` against `other`, densities; `masses` are of the former."""
    never = other == 0
    with np.errstate(divide="ignore"):
        losses = np.log(one) - np.log(other)
    return _Pair(losses[~never], masses[~never], lost + float(masses[never].sum()))


@lru_cache(maxsize=_REMEMBERED)
def least_coins(*, bits: int, arms: bool, epsilon: float, delta: float) -> int:
    """The least number of fair coins whose certificate meets the target; infinity needs none.

    >>> least_coins(bits=1, arms=False, epsilon=1.0, delta=1e-5)
    62
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf or bits == 0:
        return 0
    low, high = 0, 1
    while BitSpend.among_coins(high, bits=bits, arms=arms).delta(epsilon) > delta:
        low, high = high, 2 * high
        if high > _MOST_COINS:
            raise InputError(f"Expected epsilon={epsilon} at delta={delta} to be within reach.")
    while high - low > 1:
        middle = (low + high) // 2
        found = BitSpend.among_coins(middle, bits=bits, arms=arms).delta(epsilon)
        low, high = (low, middle) if found <= delta else (middle, high)
    return high


@lru_cache(maxsize=_REMEMBERED)
def least_flip(*, others: int, bits: int, arms: bool, epsilon: float, delta: float) -> float:
    """The least probability of a flip whose certificate meets the target; infinity needs none.

    At worst that of each message for itself, whatever others do.

    >>> round(least_flip(others=299, bits=10, arms=False, epsilon=1.0, delta=1e-5), 4)
    0.244
    """
    gaussian_target(epsilon, delta)
    if epsilon == inf or bits == 0:
        return 0.0
    low = _LEAST_FLIP
    high = min(0.5, max(2 * low, (1 + 1e-12) * float(scipy.special.expit(-epsilon / bits))))
    if BitSpend.flipped(low, others=others, bits=bits, arms=arms).pure <= epsilon:
        return low
    if delta < _LEFT_OUT:  # only each message for itself is enough
        return high
    while high - low > _CLOSE * high:
        middle = (low + high) / 2
        found = BitSpend.flipped(middle, others=others, bits=bits, arms=arms).delta(epsilon)
        low, high = (low, middle) if found <= delta else (middle, high)
    return high
