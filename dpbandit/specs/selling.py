"""Public facts of problems that sell: prices, or premiums on a price, and what a unit earns."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, ClassVar, Self

import numpy as np

from dpbandit.base import (
    MOST_ROUNDS,
    Floats,
    InputError,
    Ints,
    clip_norm,
    clip_range,
    positive,
    whole,
)
from dpbandit.specs.protocols import ContextualSpec


@dataclass(frozen=True, kw_only=True)
class SellingSpec(ContextualSpec):
    """Base class of arms whose reward is units sold times a margin, public given the context."""

    kind: ClassVar[str] = "a list of prices"
    priced: ClassVar[bool] = True

    @property
    def levels(self) -> tuple[float, ...]:
        """Price, or premium, of each arm in dollars, by which the arms differ."""
        raise NotImplementedError

    @property
    def n_products(self) -> int:
        """Number of different products that arms sell."""
        return 1

    def margins_at(self, context: Floats) -> Floats:
        """Return each arm's dollars per unit, (..., K), for contexts (..., d)."""
        raise NotImplementedError

    def largest_margins(self, context: Floats) -> Floats:
        """Return each arm's dollars for all units that a customer may buy, (..., K).

        The shape is (K,) if all contexts have the same margins.
        """
        raise NotImplementedError

    def share_sold(self, context: Floats, action: Ints, reward: Floats) -> Floats:
        """Return units sold, divided by the most a customer may buy, from a round's dollars.

        The share is clipped to [0, 1], and 0 if the reward is not finite.
        """
        margins = self.largest_margins(context)
        dollars = clip_range(reward, 0.0, float(margins.max()))  # else a division may overflow
        if margins.ndim == 1:
            largest = margins[action]
        else:
            largest = np.take_along_axis(margins, action[..., None], axis=-1)[..., 0]
        return np.minimum(dollars / largest, 1.0)


@dataclass(frozen=True, kw_only=True)
class PricedArmsSpec(SellingSpec):
    """Base class of arms with one price each, whose margins are the same for all contexts."""

    prices: tuple[float, ...]
    """price of each arm in dollars"""
    most_units: int = 1
    """largest number of units that a customer buys"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.prices) != self.n_actions:
            raise InputError(
                f"Expected {len(self.prices)} prices to be as many as n_actions={self.n_actions}."
            )
        whole("most_units", self.most_units, 1, MOST_ROUNDS)

    @property
    def cost_of_units(self) -> float | tuple[float, ...]:
        """Cost of a unit in dollars, one for all arms or one for each."""
        raise NotImplementedError

    @property
    def margins(self) -> Floats:
        """Margin in dollars, of each arm, of all units that a customer may buy, (K,)."""
        return _margins(self.prices, self.cost_of_units, self.most_units)

    def with_features(self, dim: int) -> Self:
        # Margins do not depend on contexts: arms keep their prices
        return replace(self, dim=dim, context_bound=1.0, context_order=2)

    @property
    def levels(self) -> tuple[float, ...]:
        return self.prices

    def margins_at(self, context: Floats) -> Floats:
        # the same for all contexts
        margins = np.array(self.prices) - np.array(self.cost_of_units)
        return np.full((*context.shape[:-1], self.n_actions), margins)

    def largest_margins(self, context: Floats) -> Floats:
        return self.margins


@cache
def _margins(prices: tuple[float, ...], cost: float | tuple[float, ...], most_units: int) -> Floats:
    margins = most_units * (np.array(prices) - np.array(cost))
    margins.flags.writeable = False  # the cache hands out one array
    return margins


@dataclass(frozen=True, kw_only=True)
class PriceListSpec(PricedArmsSpec):
    """Arms that are prices: the reward is units sold, mostly 0 or 1, times price - unit cost.

    An agent may treat prices as unrelated arms, or use the margins and learn only the demand.
    """

    nouns: ClassVar[tuple[str, str]] = ("customers", "price")
    unit_cost: float = 0.0
    """cost of a unit in dollars, below every price"""
    followed: bool = False
    """True if customers' purchases depend on the prices of earlier customers"""
    measured_as = "prices"
    operator_sees_round: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (-np.inf < self.unit_cost < min(self.prices) and max(self.prices) < np.inf):
            raise InputError(
                f"Expected finite prices={self.prices} above unit_cost={self.unit_cost}."
            )

    @property
    def carries(self) -> bool:
        return self.followed

    @property
    def cost_of_units(self) -> float:
        return self.unit_cost


@dataclass(frozen=True, kw_only=True)
class PremiumSpec(SellingSpec):
    """Arms that are premiums on a base price in the context; the reward is margin x units sold.

    The margin of a unit is premium + x . `base_margin`, a public function of the context x. An
    agent may treat premiums as unrelated arms, or use the margins and learn only the demand.
    """

    kind: ClassVar[str] = ContextualSpec.kind
    measured_as = "prices"
    premiums: tuple[float, ...]
    """premium of each arm in dollars"""
    base_margin: tuple[float, ...]
    """coefficient of each feature in the margin without a premium"""
    least_margin: float
    """smallest margin of a unit in dollars, above 0"""
    most_units: int = 1
    """largest number of units that a customer buys"""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.shared or len(self.base_margin) != self.dim:
            raise InputError(
                f"Expected base_margin={self.base_margin} to have a number for each of the "
                f"dim={self.dim} features of one context, shared=False."
            )
        if len(self.premiums) != self.n_actions or not np.isfinite(self.premiums).all():
            raise InputError(
                f"Expected premiums={self.premiums} to be n_actions={self.n_actions} finite "
                "numbers."
            )
        positive("least_margin", self.least_margin)
        whole("most_units", self.most_units, 1)

    @property
    def levels(self) -> tuple[float, ...]:
        return self.premiums

    def margins_at(self, context: Floats) -> Floats:
        # contexts are clipped to their public bound; rows that are not finite count as zeros
        base = np.vecdot(clip_norm(context, self.context_norm), np.array(self.base_margin))
        return np.maximum(base[..., None] + np.array(self.premiums), self.least_margin)

    def largest_margins(self, context: Floats) -> Floats:
        margins = self.margins_at(context)
        return margins if self.most_units == 1 else self.most_units * margins


@dataclass(frozen=True, kw_only=True)
class OfferSpec(PricedArmsSpec):
    """Arms that are offers of a product at a price; the reward is units sold times the margin.

    A customer buys what she is offered, or nothing. An agent may treat offers as unrelated arms, or
    use the margins and learn the demand for all products at all prices.
    """

    kind: ClassVar[str] = ContextualSpec.kind
    unit_costs: tuple[float, ...]
    """cost in dollars of a unit of each arm's product, below the arm's price"""
    products: tuple[int, ...]
    """number of each arm's product, from 0 on, none left out"""

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("unit_costs", "products"):
            if len(getattr(self, name)) != self.n_actions:
                raise InputError(
                    f"Expected {name}={getattr(self, name)} to have one number for each of "
                    f"n_actions={self.n_actions} arms."
                )
        pairs = zip(self.unit_costs, self.prices, strict=True)
        if not all(-np.inf < cost < price < np.inf for cost, price in pairs):
            raise InputError(
                f"Expected finite prices={self.prices} above unit_costs={self.unit_costs}."
            )
        for product in self.products:
            whole("each of products", product, 0)
        if max(self.products) >= len({*self.products}):
            raise InputError(
                f"Expected products={self.products} to be numbered from 0, none left out."
            )

    @property
    def cost_of_units(self) -> tuple[float, ...]:
        return self.unit_costs

    @property
    def n_products(self) -> int:
        return max(self.products) + 1


@dataclass(frozen=True, kw_only=True)
class CostSpec(PremiumSpec):
    """Arms that are prices of units whose cost varies: it is a feature of the context.

    The margin of a unit, price - cost, is thus a public function of the context, see `of`.
    """

    kind: ClassVar[str] = "a list of prices of units whose costs vary"
    nouns: ClassVar[tuple[str, str]] = ("customers", "price")
    operator_sees_round: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        prices: Sequence[float],
        costs: Sequence[float],
        *,
        feature: int,
        length: float,
        **facts: Any,
    ) -> "CostSpec":
        """Return the spec of prices, if contexts are (1, features) / `length`.

        Args:
            prices: price of each arm, above both ends of `costs`.
            costs: (low, high), the public range of a unit's cost, scaled to [-1, 1] as a feature.
            feature: place of the cost in a context, 1 or more.
            length: number by which contexts are divided.
            facts: other facts, such as `dim` and `most_units`.
        """
        low, high = costs
        base = np.zeros(facts["dim"])
        base[0], base[feature] = -(low + high) / 2, -(high - low) / 2
        most = facts.get("most_units", 1) * (max(prices) - low)
        facts = {"reward_high": float(most), "link": "other", **facts}
        return cls(
            n_actions=len(prices),
            premiums=tuple(map(float, prices)),
            base_margin=tuple((length * base).tolist()),
            least_margin=float(min(prices) - high),
            **facts,
        )

    @property
    def prices(self) -> tuple[float, ...]:
        """Price of each arm in dollars."""
        return self.premiums
