"""Specs, random sets, Gymnasium spaces and best sets of problems with assortments of products.

A customer is offered at most S of N products and buys one, or none. An action has an entry for
each product, 0 where it is not offered.

The best assortment under a multinomial logit is computed exactly, at fixed, listed or any prices.
With margins r_j and v_j = exp(utility) of products j, a set A has the expected margin R(A) = sum_A
v_j r_j / (1 + sum_A v_j), which is >= z if and only if sum_A v_j (r_j - z) >= z. If g(z) is the sum
of the S largest positive v_j (r_j - z), the best margin R* solves g(z) = z. Dinkelbach's steps::

    z_0 = 0,   A_k attains g(z_k),   z_{k+1} = R(A_k),   until z no longer increases

Where z_k < R*, g(z_k) > z_k and so R(A_k) > z_k; sets are finitely many, so the last is the best.
With prices p and unit costs c_j, v_j (r_j - z) becomes the maximum of v_j(p) (p - c_j - z) over p,
from a list or in closed form, as its logarithm is concave in p where v_j(p) = exp(a_j - b_j p).
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import scipy
from gymnasium.vector.utils.space_utils import batch_space

from dpbandit.base import (
    Bools,
    Draws,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    flag,
    reals,
    shaped,
    whole,
)
from dpbandit.specs.protocols import BanditSpec

MAX_UTILITY = 30.0
"""Utilities are clipped to +- this size, so that their exponentials are far from overflow."""


def weights(utility: Floats) -> Floats:
    """Return exp(utility) of utilities clipped to +-`MAX_UTILITY`; NaN counts as the lower end."""
    return np.asarray(np.exp(np.minimum(np.fmax(utility, -MAX_UTILITY), MAX_UTILITY)))


def chances(weight: Floats, offered: Bools, axis: int = -1) -> Floats:
    """Return each product's chance of sale, its weight / (1 + sum of offered weights along `axis`).

    >>> chances(np.array([1.0, 2.0, 9.0]), np.array([True, True, False]))
    array([0.25, 0.5 , 0.  ])
    """
    w = np.where(offered, weight, 0.0)
    return np.asarray(w / (1 + w.sum(axis=axis, keepdims=True)))


@cache
def size_law(n_products: int, at_most: int, levels: int) -> Floats:
    """Return P(at most k products) in a random assortment, for k = 1 to `at_most`.

    All sets, with one of `levels` prices for each product in a set, are equally likely.

    >>> size_law(3, 2, 1)
    array([0.5, 1. ])
    """
    k = np.arange(1, at_most + 1)
    gammaln = scipy.special.gammaln
    count = gammaln(n_products + 1) - gammaln(k + 1) - gammaln(n_products - k + 1)
    count = np.exp(count + k * np.log(levels) - (count + k * np.log(levels)).max())
    law = np.asarray(np.cumsum(count) / count.sum())
    law[-1] = 1.0
    law.flags.writeable = False
    return law


def random_members(uniforms: Floats, at_most: int, levels: int = 1) -> Any:
    """Turn uniforms (..., 1 + N) into masks (..., N) of random sets, of sizes as in `size_law`."""
    law = size_law(uniforms.shape[-1] - 1, at_most, levels)
    size = 1 + (uniforms[..., :1] >= law).sum(axis=-1, keepdims=True)
    rank = uniforms[..., 1:].argsort(axis=-1).argsort(axis=-1)
    return rank < size


def _fresh(draws: Draws, make: Callable[..., Any], *how: Any) -> Any:
    return make(draws(), *how)


def _levels(uniforms: Floats, at_most: int, levels: int) -> Ints:
    N = uniforms.shape[-1] // 2
    offered = random_members(uniforms[..., : 1 + N], at_most, levels)
    return offered * (1 + uniforms[..., 1 + N :] * levels).astype(np.int64)


def _prices(uniforms: Floats, at_most: int, low: float, high: float) -> Floats:
    N = uniforms.shape[-1] // 2
    offered = random_members(uniforms[..., : 1 + N], at_most)
    return np.where(offered, low + (high - low) * uniforms[..., 1 + N :], 0.0)


class _AtMost(gym.Space[Any]):
    """Mixin of a Gymnasium space that admits only sets of 1 to `at_most` products."""

    at_most: int
    settings: tuple[Any, ...]

    def sample(self, mask: Any = None, probability: Any = None) -> Any:
        uniforms = self.np_random.random((*self.shape[:-1], 1 + 2 * self.shape[-1]))  # type: ignore
        return self._set(uniforms).astype(self.dtype)

    def contains(self, x: Any) -> bool:
        if not super().contains(x):
            return False
        sizes = np.count_nonzero(np.asarray(x), axis=-1)
        return bool(((sizes >= 1) & (sizes <= self.at_most)).all())

    def _set(self, uniforms: Floats) -> Any:
        raise NotImplementedError


class Subsets(_AtMost, gym.spaces.MultiBinary):
    """`MultiBinary` space of masks (N,) that offer at most `at_most` of N products."""

    def __init__(self, n_products: int, at_most: int, *, batch: tuple[int, ...] = ()) -> None:
        self.settings, self.at_most = (n_products, at_most), at_most
        super().__init__([*batch, n_products])

    def _set(self, uniforms: Floats) -> Any:
        return _levels(uniforms, self.at_most, 1)


class PricedSubsets(_AtMost, gym.spaces.MultiDiscrete):
    """`MultiDiscrete` space of price numbers (N,) of N products, 1 to P, 0 if not offered."""

    def __init__(
        self, n_products: int, at_most: int, levels: int, *, batch: tuple[int, ...] = ()
    ) -> None:
        self.settings, self.at_most = (n_products, at_most, levels), at_most
        super().__init__(np.full((*batch, n_products), levels + 1))

    def _set(self, uniforms: Floats) -> Any:
        return _levels(uniforms, self.at_most, self.settings[2])


class FreelyPricedSubsets(_AtMost, gym.spaces.Box):
    """`Box` space of prices (N,) of N products in [low, high], 0 if not offered."""

    def __init__(
        self, n_products: int, at_most: int, low: float, high: float, *, batch: tuple[int, ...] = ()
    ) -> None:
        self.settings, self.at_most = (n_products, at_most, low, high), at_most
        super().__init__(0.0, high, (*batch, n_products), np.float64)

    def contains(self, x: Any) -> bool:
        low = self.settings[2]
        return super().contains(x) and bool(((x == 0) | (x >= low)).all())

    def _set(self, uniforms: Floats) -> Any:
        return _prices(uniforms, *self.settings[1:])


@batch_space.register(_AtMost)
def _batch(space: Any, n: int = 1) -> Any:
    """Return the space of n assortments at once, as Gymnasium's vector environments need it."""
    return type(space)(*space.settings, batch=(n,))


_SINGLE_LEVEL = np.ones(())
"""Price number 1 as an array, for products that have a single price."""


def best_levels(weight: Floats, margins: Floats, at_most: int) -> tuple[Ints, Floats]:
    """Return the best set's price numbers (..., N) of N products, 0 if not offered, and its margin.

    Args:
        weight: exp(utility) of each product at each of its P prices, (..., N, P).
        margins: margin of a sale of each product at each price, broadcast against `weight`.
        at_most: largest number of products in a set.

    >>> best_levels(np.array([[1.0], [1.0], [9.0]]), np.array([[1.0], [0.8], [0.1]]), 2)
    (array([1, 1, 0]), array(0.6))
    """

    fixed = weight.shape[-1] == 1
    every = margins if fixed else np.broadcast_to(margins, weight.shape)

    def choose(z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        gain = weight * (margins - z[..., None, None])
        if fixed:
            return gain[..., 0], _SINGLE_LEVEL, weight[..., 0], every[..., 0]
        level = gain.argmax(axis=-1)[..., None]
        v = np.take_along_axis(weight, level, axis=-1)[..., 0]
        r = np.take_along_axis(every, level, axis=-1)[..., 0]
        return gain.max(axis=-1), level[..., 0] + 1.0, v, r

    # near the best margin, from either side, there are fewer steps to it
    start = max(0.0, float(margins.max()) / 2)
    best, margin = _dinkelbach(choose, weight.shape[:-1], at_most, start)
    return best.astype(np.int64), margin


def best_prices(
    appeal: Floats, slope: Floats, costs: Floats, low: float, high: float, at_most: int
) -> tuple[Floats, Floats]:
    """Return the best set as prices (..., N) of N products, 0 if not offered, and its margin.

    Args:
        appeal: utilities at price 0, (..., N).
        slope: utility lost per unit of price, > 0; broadcast against `appeal`.
        costs: unit costs; broadcast against `appeal`.
        low, high: the range of prices, 0 < low <= high.
        at_most: largest number of products in a set.
    """

    def choose(z: Floats) -> tuple[Floats, Floats, Floats, Floats]:
        p = np.clip(costs + z[..., None] + 1 / slope, low, high)
        p = np.broadcast_to(p, appeal.shape)
        v, r = weights(appeal - slope * p), p - costs
        return v * (r - z[..., None]), p, v, r

    return _dinkelbach(choose, appeal.shape, at_most)


def _dinkelbach(
    choose: Callable[[Floats], tuple[Floats, Floats, Floats, Floats]],
    shape: tuple[int, ...],
    at_most: int,
    start: float = 0.0,
) -> tuple[Floats, Floats]:
    """Run Dinkelbach's steps; return prices (..., N) of N products in the best set, and its margin.

    `choose(z)` returns for each product the largest v (r - z) over its prices, with margin r and
    v = exp(utility); then the price that attains it, and v and r at that price. Steps go to the
    root of a convex, falling function, so that the first one may begin at any margin `start`.
    """
    z, best, first = np.full(shape[:-1], start), np.zeros(shape), True
    while True:
        gain, price, v, r = choose(z)
        listed = _largest(gain, at_most)
        v = np.where(listed, v, 0.0)
        margin = (v * r).sum(axis=-1) / (1 + v.sum(axis=-1))
        better = first | (margin > z)
        if not better.any():
            return best, z
        np.copyto(best, listed * price, where=better[..., None])
        np.copyto(z, margin, where=better)
        first = False


def _largest(gain: Floats, at_most: int) -> Bools:
    """Return a mask (..., N) of the `at_most` largest positive gains, the first ones of ties."""
    n = gain.shape[-1]
    if at_most >= n:
        return gain > 0
    limits = np.partition(gain, (n - at_most - 1, n - at_most), axis=-1)
    left_out, last = limits[..., n - at_most - 1, None], limits[..., n - at_most, None]
    if ((left_out < last) | (last <= 0)).all():
        return gain > np.maximum(left_out, 0.0)
    ranks = np.argsort(-gain, axis=-1, kind="stable")
    listed = gain > 0
    np.put_along_axis(listed, ranks[..., at_most:], False, axis=-1)
    return listed


MOST_PRODUCTS = 1000  # largest number of products of a problem


@dataclass(frozen=True, kw_only=True)
class ChoiceSpec(BanditSpec):
    """Assortments: offer at most S of N products to every user, who buys one of them or none.

    A round's datum is the user's context and her choice from every set. An agent observes her
    choice y in {0, ..., N - 1}, or N for none, in place of the reward, the margin of the product
    that she bought. An action has an entry for each product, 0 where it is not offered.
    """

    kind: ClassVar[str] = "assortments of products"
    feedback_name: ClassVar[str | None] = "choice"
    operator_sees_round: ClassVar[bool] = True
    nouns: ClassVar[tuple[str, str]] = ("customers", "set")
    n_products: int
    """number N of products"""
    at_most: int
    """largest number S of products in a set"""
    shared: bool = True
    """True if products have rows of features, (N, d), and share a parameter; else one row, (d,)"""
    reward_low: float = field(init=False, default=0.0)
    reward_high: float = field(init=False, default=1.0)

    def __post_init__(self) -> None:
        whole("n_products", self.n_products, 1, MOST_PRODUCTS)
        whole("at_most", self.at_most, 1, self.n_products)
        flag("shared", self.shared)
        object.__setattr__(self, "reward_high", self.largest_margin)
        super().__post_init__()

    @property
    def largest_margin(self) -> float:
        """Largest margin of a sale, the upper end of rewards."""
        raise NotImplementedError

    @property
    def context_shape(self) -> tuple[int, ...]:
        return (self.n_products, self.dim) if self.shared else (self.dim,)

    @property
    def datum_shape(self) -> tuple[int, ...]:
        return ()

    @property
    def answers(self) -> tuple[float, ...]:
        return tuple(range(self.n_products + 1))

    def _uniforms(self, streams: Streams) -> Draws:
        return streams.uniforms("exploration", 1 + 2 * self.n_products)

    def repaired(self, action: Any, mask: Bools | None = None) -> Any:
        # Sets of at most S products, of masks with more the first S; of none the default. What is
        # no assortment is handed back as it is.
        try:
            entries = reals(action)
        except ValueError:
            return action
        if entries.ndim != 2 or entries.shape[1] != self.n_products:
            return action
        many = np.cumsum(entries != 0, axis=1) > self.at_most
        fixed = np.where(many, 0.0, entries)
        return np.where(fixed.any(axis=1, keepdims=True), fixed, self.default_action)

    def answer_to(self, potential: Any, action: Any) -> Any:
        offered = (np.asarray(action) > 0) * np.arange(1, self.n_products + 1)
        return potential[np.arange(len(action)), offered.sum(axis=1) % potential.shape[1]]


@dataclass(frozen=True, kw_only=True)
class AssortmentSpec(ChoiceSpec):
    """Assortments at fixed prices; an action is a mask (R, products) of the offered products."""

    margins: tuple[float, ...]
    """margin of a sale of each product, > 0"""
    measured_as = "sets"

    def __post_init__(self) -> None:
        whole("n_products", self.n_products, 1, MOST_PRODUCTS)
        if len(self.margins) != self.n_products:
            raise InputError(
                f"Expected {len(self.margins)} margins to be as many as "
                f"n_products={self.n_products}."
            )
        if not (min(self.margins) > 0 and max(self.margins) < np.inf):
            raise InputError(f"Expected finite margins={abbrev(self.margins)} > 0.")
        super().__post_init__()

    @property
    def largest_margin(self) -> float:
        return float(max(self.margins))

    @property
    def levels(self) -> int:
        """Number P of prices of each product."""
        return 1

    @property
    def margin_table(self) -> Floats:
        """Margin of a sale of each product at each of its prices, (products, prices)."""
        return np.array(self.margins, np.float64)[:, None]

    @property
    def row_dim(self) -> int:
        """Length of a product's row of features."""
        return self.dim if self.shared else self.n_products * self.dim

    def rows(self, context: Floats) -> Floats:
        """Return rows of D features of N products at P prices, (..., N, P, D), by the context.

        Rows are no longer than `context_norm`. If products do not share a parameter (`shared`), the
        row of product j has N blocks: block j is the context, the others are 0.
        """
        if self.shared:
            return context[..., None, :]
        block = np.zeros((*context.shape[:-1], self.n_products, self.n_products, self.dim))
        every = np.arange(self.n_products)
        block[..., every, every, :] = context[..., None, :]
        return block.reshape(*block.shape[:-2], 1, self.n_products * self.dim)

    @property
    def default_action(self) -> list[int]:
        return [1] + [0] * (self.n_products - 1)

    def validate(self, action: Any, replicas: int) -> Ints:
        # Levels (R, N), whole numbers from 0, not offered, to P, of 1 to S products
        offered = _entries(self, action, replicas)
        fine = np.isfinite(offered) & (offered == np.floor(offered))
        fine &= (offered >= 0) & (offered <= self.levels)
        if not fine.all():
            raise InputError(
                f"Expected an entry of an assortment to be one of 0 to {self.levels}, 0 for what "
                f"is not offered, got {offered[~fine][0]:g}."
            )
        return _check_sizes(self, offered).astype(np.int64)

    def uniform(self, streams: Streams) -> Callable[[], Ints]:
        return partial(_fresh, self._uniforms(streams), _levels, self.at_most, self.levels)

    def action_space(self) -> gym.Space[Any]:
        return Subsets(self.n_products, self.at_most)


@dataclass(frozen=True, kw_only=True)
class PricedAssortmentSpec(AssortmentSpec):
    """Assortments of N products at P listed prices; actions (R, N) are price numbers 1 to P, or 0.

    The price enters a row as one more feature: (x, q) / sqrt(2) of the product's features x and the
    price q, scaled to lie between -`context_bound` and `context_bound`.
    """

    margins: tuple[float, ...] = field(init=False)
    """margin of each product at the highest price"""
    prices: tuple[float, ...]
    """list of increasing prices, the same for all products"""
    unit_costs: tuple[float, ...]
    """unit cost of each product, below every price"""

    def __post_init__(self) -> None:
        _check_prices(self.prices, self.unit_costs, self.n_products)
        object.__setattr__(self, "margins", tuple(max(self.prices) - c for c in self.unit_costs))
        super().__post_init__()

    @property
    def levels(self) -> int:
        return len(self.prices)

    @property
    def margin_table(self) -> Floats:
        return np.array(self.prices) - np.array(self.unit_costs)[:, None]

    @property
    def row_dim(self) -> int:
        return super().row_dim + 1

    def rows(self, context: Floats) -> Floats:
        # (x, q) / sqrt(2) of each product at each price, (..., N, P, D)
        x = super().rows(context)
        x = np.broadcast_to(x, (*x.shape[:-2], self.levels, x.shape[-1]))
        low, high = min(self.prices), max(self.prices)
        q = self.context_norm * (2 * (np.array(self.prices) - low) / (high - low) - 1)
        price = np.broadcast_to(q[:, None], (*x.shape[:-1], 1))
        return np.concatenate([x, price], axis=-1) / np.sqrt(2)

    def action_space(self) -> gym.Space[Any]:
        return PricedSubsets(self.n_products, self.at_most, self.levels)


@dataclass(frozen=True, kw_only=True)
class FreelyPricedSpec(ChoiceSpec):
    """Assortments at any prices: actions (R, N) in [low, high] for N products, 0 if not offered."""

    kind: ClassVar[str] = "assortments of products at prices that are real numbers"
    low: float
    high: float
    unit_costs: tuple[float, ...]
    """unit cost of each product, below every price"""

    def __post_init__(self) -> None:
        _check_prices((self.low, self.high), self.unit_costs, self.n_products)
        super().__post_init__()

    @property
    def largest_margin(self) -> float:
        return self.high - min(self.unit_costs)

    @property
    def default_action(self) -> list[float]:
        return [self.low] + [0.0] * (self.n_products - 1)

    def validate(self, action: Any, replicas: int) -> Floats:
        price = _entries(self, action, replicas)
        fine = (price == 0) | ((price >= self.low) & (price <= self.high))
        if not fine.all():
            raise InputError(
                f"Expected prices in [{self.low}, {self.high}], or 0 for what is not offered, got "
                f"{price[~fine][0]}."
            )
        return _check_sizes(self, price)

    def uniform(self, streams: Streams) -> Callable[[], Floats]:
        return partial(_fresh, self._uniforms(streams), _prices, self.at_most, self.low, self.high)

    def action_space(self) -> gym.Space[Any]:
        return FreelyPricedSubsets(self.n_products, self.at_most, self.low, self.high)


def _entries(spec: ChoiceSpec, action: Any, replicas: int) -> Floats:
    """Return `action` as floats, (R, products); raise `InputError` if it has no such shape."""
    try:
        entries = reals(action)
    except ValueError:
        raise InputError(
            f"Expected an assortment to be {spec.n_products} numbers, got {type(action).__name__}."
        ) from None
    shaped("assortments", entries, (replicas, spec.n_products))
    return entries


def _check_sizes(spec: ChoiceSpec, entries: Floats) -> Floats:
    sizes = np.count_nonzero(entries, axis=1)
    wrong = (sizes < 1) | (sizes > spec.at_most)
    if wrong.any():
        raise InputError(
            f"Expected assortments of 1 to at_most={spec.at_most} products, got one of "
            f"{sizes[wrong][0]}."
        )
    return entries


def _check_prices(
    prices: tuple[float, ...], unit_costs: tuple[float, ...], n_products: int
) -> None:
    fine: Bools = np.diff(prices) > 0
    if len(prices) < 2 or not fine.all() or not 0 < prices[0] < prices[-1] < np.inf:
        raise InputError(f"Expected prices={abbrev(prices)} to be positive and increasing.")
    if len(unit_costs) != n_products:
        raise InputError(
            f"Expected {len(unit_costs)} unit costs to be as many as n_products={n_products}."
        )
    if not (min(unit_costs) >= 0 and max(unit_costs) < prices[0]):
        raise InputError(
            f"Expected unit_costs={abbrev(unit_costs)} from 0 to below the lowest price, "
            f"{prices[0]:g}."
        )
