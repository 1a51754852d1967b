"""Uniformly random sets of at most S of N products, and the Gymnasium spaces of such sets.

Everywhere an action has an entry for each product, 0 where it is not offered.
"""

from functools import cache
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.vector.utils.space_utils import batch_space
from scipy.special import gammaln

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.random_streams import Draws, Streams


@cache
def size_law(n_products: int, at_most: int, levels: int) -> Floats:
    """P(a random set has at most 1, 2, ..., S products), where each has so many prices.

    >>> size_law(3, 2, 1)
    array([0.5, 1. ])
    """
    k = np.arange(1, at_most + 1)
    count = gammaln(n_products + 1) - gammaln(k + 1) - gammaln(n_products - k + 1)
    count = np.exp(count + k * np.log(levels) - (count + k * np.log(levels)).max())
    law = np.asarray(np.cumsum(count) / count.sum())
    law[-1] = 1.0
    law.flags.writeable = False
    return law


def random_members(luck: Floats, at_most: int, levels: int = 1) -> Any:
    """Uniforms (..., 1 + N) -> which products are in a uniformly random set, (..., N)."""
    law = size_law(luck.shape[-1] - 1, at_most, levels)
    size = 1 + (luck[..., :1] >= law).sum(axis=-1, keepdims=True)
    rank = luck[..., 1:].argsort(axis=-1).argsort(axis=-1)
    return rank < size


class RandomSets:
    """Draws levels (R, N): 0, not offered, or one of 1, ..., `levels`; every set as likely."""

    def __init__(self, streams: Streams, n_products: int, at_most: int, levels: int) -> None:
        self._draws: Draws = streams.uniforms("exploration", 1 + 2 * n_products)
        self._most, self._levels = at_most, levels

    def __call__(self) -> Ints:
        """Fresh sets, one for each replica."""
        return _levels(self._draws(), self._most, self._levels)


class RandomPrices(RandomSets):
    """Draws prices (R, N): 0, not offered, or uniform in [low, high]; every set as likely."""

    def __init__(
        self, streams: Streams, n_products: int, at_most: int, low: float, high: float
    ) -> None:
        super().__init__(streams, n_products, at_most, 1)
        self._low, self._high = low, high

    def __call__(self) -> Any:
        """Fresh sets with prices, one for each replica."""
        return _prices(self._draws(), self._most, self._low, self._high)


def _levels(luck: Floats, at_most: int, levels: int) -> Ints:
    N = luck.shape[-1] // 2
    offered = random_members(luck[..., : 1 + N], at_most, levels)
    return offered * (1 + luck[..., 1 + N :] * levels).astype(np.int64)


def _prices(luck: Floats, at_most: int, low: float, high: float) -> Floats:
    N = luck.shape[-1] // 2
    offered = random_members(luck[..., : 1 + N], at_most)
    return np.where(offered, low + (high - low) * luck[..., 1 + N :], 0.0)


class _AtMost(gym.Space[Any]):
    """Of the sets that the space without this limit has: those of 1 to `at_most` products."""

    at_most: int
    settings: tuple[Any, ...]

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        """A uniformly random set."""
        luck = self.np_random.random((*self.shape[:-1], 1 + 2 * self.shape[-1]))  # type: ignore
        return self._set(luck).astype(self.dtype)

    def contains(self, x: Any) -> bool:
        """Whether all its sets are allowed."""
        if not super().contains(x):
            return False
        sizes = np.count_nonzero(np.asarray(x), axis=-1)
        return bool(((sizes >= 1) & (sizes <= self.at_most)).all())

    def _set(self, luck: Floats) -> Any:
        raise NotImplementedError


class Subsets(_AtMost, gym.spaces.MultiBinary):
    """Which products are offered, at most S of N: a `MultiBinary` of such masks, (N,)."""

    def __init__(self, n_products: int, at_most: int, *, batch: tuple[int, ...] = ()) -> None:
        self.settings, self.at_most = (n_products, at_most), at_most
        super().__init__([*batch, n_products])

    def _set(self, luck: Floats) -> Any:
        return _levels(luck, self.at_most, 1)


class PricedSubsets(_AtMost, gym.spaces.MultiDiscrete):
    """0 or the number of a price, 1 to P, for each product: a `MultiDiscrete`, (N,)."""

    def __init__(
        self, n_products: int, at_most: int, levels: int, *, batch: tuple[int, ...] = ()
    ) -> None:
        self.settings, self.at_most = (n_products, at_most, levels), at_most
        super().__init__(np.full((*batch, n_products), levels + 1))

    def _set(self, luck: Floats) -> Any:
        return _levels(luck, self.at_most, self.settings[2])


class FreelyPricedSubsets(_AtMost, gym.spaces.Box):
    """0 or a price in [low, high] for each product: a `Box`, (N,)."""

    def __init__(
        self,
        n_products: int,
        at_most: int,
        low: float,
        high: float,
        *,
        batch: tuple[int, ...] = (),
    ) -> None:
        self.settings, self.at_most = (n_products, at_most, low, high), at_most
        super().__init__(0.0, high, (*batch, n_products), np.float64)

    def contains(self, x: Any) -> bool:
        """Whether all its sets are allowed, at prices from `low` on."""
        low = self.settings[2]
        return super().contains(x) and bool(((x == 0) | (x >= low)).all())

    def _set(self, luck: Floats) -> Any:
        return _prices(luck, *self.settings[1:])


@batch_space.register(_AtMost)
def _batch(space: Any, n: int = 1) -> Any:
    """Gymnasium's space of n such actions at once, (n, N)."""
    return type(space)(*space.settings, batch=(n,))
