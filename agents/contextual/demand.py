"""Pricing with a demand model, so that all prices learn from every customer.

To an agent of finitely many arms, twelve prices are twelve unrelated arms. But the reward of a
price list is margin x sale, the margin is public, and P(sale | context, price) changes smoothly
with the price. So any agent that scores arms with one shared parameter can predict the probability
of a sale, which is multiplied by the margin. The same holds where a customer may buy several units
and where the margin is a public function of her context.
"""

from collections.abc import Callable
from dataclasses import field
from functools import cache
from math import ceil, sqrt
from typing import Any, Literal, TypeAlias, cast, get_args

import numpy as np
from scipy.linalg import helmert

from dpbandit.agent import Around, Count0, Inner
from dpbandit.base import (
    Bools,
    Floats,
    InputError,
    Ints,
    best_allowed,
    clip_norm,
    norms,
    one_of,
    random_allowed,
)
from dpbandit.privacy.premises import ALL_FACTS, Fact
from dpbandit.specs import AgentConfig, ContextualSpec, OfferSpec, ScoringAgent, SellingSpec

Features: TypeAlias = Literal["additive", "interactions", "shrunk", "curve"]
_FEATURES = get_args(Features)  # choices of `features`, see `demand_rows`
_MAX_BENDS = 8
"""Largest number of principal components that describe a curve's deviation from a line"""
_COMMON_SIZE, _CROSSED_SIZE = 0.2, sqrt(0.92)
"""Factors, in "shrunk" rows, of the constant and the price, and of the price times each feature"""
CURVE_CROSSED = sqrt(0.8 / 0.92)
"""Price times a feature in "curve" rows, divided by that in "shrunk" rows"""
_BENDS_SIZE = sqrt(0.12)
"""Largest norm of an arm's `bends`"""

_EXPLORATION = 0.3
"""Factor 0.3 in the probability 0.3 explore / t of a random price in round t, see `Priced`"""


def demand_spec(spec: SellingSpec, features: Features = "additive") -> ContextualSpec:
    """Return the spec of predicting sales: arms are prices, each with a row of features.

    The reward is the number of units sold divided by the largest number that a customer may buy,
    so mostly 0 or 1; rows have Euclidean norm at most 1, see `demand_rows`.

    >>> from dpbandit.specs import PriceListSpec
    >>> spec = PriceListSpec(n_actions=2, dim=3, horizon=9, prices=(1.0, 2.0))
    >>> demand_spec(spec).context_shape, demand_spec(spec, "interactions").context_shape
    ((2, 4), (2, 6))
    """
    one_of("features", features, _FEATURES)
    return ContextualSpec(
        n_actions=spec.n_actions,
        dim=demand_rows(spec, np.zeros((1, spec.dim)), features).shape[-1],
        horizon=spec.horizon,
        shared=True,
        link="logistic",
        delay=spec.delay,
        reward_unit="sales",
        masks=spec.masks,
    )


def demand_rows(
    spec: SellingSpec,
    context: Floats,
    features: Features = "additive",
    *,
    price: Ints | None = None,
) -> Floats:
    """Return m features of customers at every price: contexts (..., d) -> rows (..., K, m).

    With `price`, indices (...) of one price for each customer, rows are (..., m).

    Rows have norm at most 1. With x the context, clipped to its public bound and divided by it, and
    p~ the price (of a `PremiumSpec` the premium), scaled linearly to [-1, 1]::

        additive       (x, p~) / sqrt(2)        utility is linear in the price, one slope for all
        interactions   (x, p~ x) / sqrt(2)      the slope in the price depends on the customer
        shrunk         (x, 0.2, 0.2 p~, sqrt(0.92) p~ x) / sqrt(2): both, and a constant
        curve          (x, 0.2, 0.2 p~, sqrt(0.8) p~ x, bends(p)) / sqrt(2)     a curve, see `bends`

    With several products (`OfferSpec`) (p~, direction of the product) / sqrt(2) is in place of p~,
    and each of its numbers is multiplied by x, so that customers may differ in what they like.

    Only "shrunk" and "curve" add a constant; otherwise contexts should hold one, as in `OJPricing`.
    A context with a NaN (no user came) has rows of zeros, which add nothing to a sum.

    >>> from dpbandit.specs import PriceListSpec
    >>> spec = PriceListSpec(n_actions=2, dim=2, horizon=9, prices=(1.0, 2.0))
    >>> demand_rows(spec, np.array([[0.6, 0.8]])).round(2).tolist()
    [[[0.42, 0.57, -0.71], [0.42, 0.57, 0.71]]]
    """
    x = clip_norm(context, spec.context_norm)
    if spec.context_norm != 1.0:
        x /= spec.context_norm
    extra = price_features(spec, features)
    if price is None:
        x = x[..., None, :]  # (..., 1, d)
    else:
        extra = extra[price]
    level, slope = customer_features(x, features)
    if slope is not None:
        bends = bends_of(spec, features)
        extra, bent = extra[..., : extra.shape[-1] - bends], extra[..., extra.shape[-1] - bends :]
        pairs = extra[..., :, None] * slope[..., None, :]
        extra = pairs.reshape(*pairs.shape[:-2], pairs.shape[-2] * pairs.shape[-1])
        bent = np.broadcast_to(bent, (*extra.shape[:-1], bends))
        extra = np.concatenate([extra, bent], axis=-1)
    lead = context.shape[:-1] if price is not None else (*context.shape[:-1], spec.n_actions)
    d = level.shape[-1]
    rows = np.empty((*lead, d + extra.shape[-1]))
    rows[..., :d], rows[..., d:] = level, extra
    rows /= sqrt(2)
    finite = np.isfinite(context)
    if not finite.all():
        rows[~finite.all(axis=-1)] = 0.0
    return rows


def customer_features(x: Floats, features: Features) -> tuple[Floats, Floats | None]:
    """Return customers' features in the level of utility and in its slope in the price, (..., m).

    The latter is None if all customers have the same slope, or curve. `x` (..., d) has norm <= 1.
    """
    if features not in ("shrunk", "curve"):
        return x, x if features == "interactions" else None
    common = np.full((*x.shape[:-1], 1), _COMMON_SIZE)
    size = _CROSSED_SIZE * (CURVE_CROSSED if features == "curve" else 1.0)
    crossed = np.concatenate([common, size * x], axis=-1)
    return np.concatenate([x, common], axis=-1), crossed


def shared_slope(dim: int, features: Features) -> int | None:
    """Return the index in `demand_rows` of the price slope that all customers share, if any."""
    if features == "interactions":
        return None
    return dim if features == "additive" else dim + 1


def bends_of(spec: SellingSpec, features: Features) -> int:
    """Return the number of `bends` among the features of an arm, which are the last ones."""
    return bends(spec.levels).shape[1] if features == "curve" else 0


def price_features(spec: SellingSpec, features: Features) -> Floats:
    """Return the features of each arm of which `demand_rows` are made, times sqrt(2), (K, e)."""
    several = spec.n_products > 1
    if features == "curve" and several:
        raise InputError(
            f"Expected prices of one product for a curve, got {spec.n_products} products: choose "
            "features='shrunk'."
        )
    line = _line(spec.levels)
    if features == "curve":
        return np.hstack([line, bends(spec.levels)])
    if not several:
        return line
    return np.hstack([line, _directions(cast(OfferSpec, spec).products)]) * sqrt(0.5)


@cache
def _directions(products: tuple[int, ...]) -> Floats:
    """Return a direction for each arm's product among n, all at the same angle, (K, n - 1)."""
    n = max(products) + 1
    return helmert(n).T[list(products)] / sqrt(1 - 1 / n)


@cache
def bends(prices: tuple[float, ...]) -> Floats:
    """Return basis functions of a curve over K prices, beside a line, (K, m), of norm <= 0.35.

    Columns are up to eight principal components, largest first, of a random walk over the prices
    whose linear fit is subtracted.

    >>> bends((1.0, 2.0, 3.0)).round(2).tolist()
    [[0.17], [-0.35], [0.17]]
    """
    p = _line(prices)[:, 0]
    line = np.column_stack([np.ones_like(p), p])
    off = np.eye(len(p)) - line @ np.linalg.pinv(line)
    values, U = np.linalg.eigh(off @ np.minimum(p[:, None], p) @ off)
    found = (U * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, : min(_MAX_BENDS, len(p) - 2)]
    found = found * np.where(found[-1:] < 0, -1.0, 1.0)  # a sign that does not depend on LAPACK
    return found * (_BENDS_SIZE / max(float(norms(found).max()), 1e-9)) if found.size else found


@cache
def _line(prices: tuple[float, ...]) -> Floats:
    """Return prices mapped linearly onto [-1, 1], (K, 1), or 0 if all are equal."""
    price = np.array(prices)[:, None]
    middle, half = (price.max() + price.min()) / 2, (price.max() - price.min()) / 2
    return (price - middle) / half if half else np.zeros_like(price)


class Priced(Around[Any]):
    """Wrapper by which an agent that scores arms learns the demand at each price of a list.

    Plays argmax_a margin_a x P(sale at price a), a probability that the inner agent learns::

        act      until `explore` rewards have been seen: a uniformly random price;
                 after t rewards, with probability 0.3 explore / t: a random price, too;
                 else: argmax_a margin_a clip(s_a, 0, 1), s = inner.scores(rows)     (R, K)
        update   inner.update(rows, action, sold),  sold = clip(reward / margin_a, 0, 1)

    `rows` are `demand_rows`, s_a the inner agent's score of price a, and margin_a the margin of all
    units that a customer may buy, mostly one; with a `PremiumSpec` margin_a is a public function of
    the context. Settings of the inner agent that are None get its class's defaults for demand.

    Random prices come first because an agent without data scores all prices alike, would always
    play the highest, and could never separate slope and level of demand. The inner agent's `act` is
    never called, so that it explores only as far as its scores do.

    Guarantee:
        The guarantee and the ledger of the inner agent: if it is (epsilon, delta)-joint DP for any
        actions, so is the wrapper: `rows` and `sold` are functions of one user's round and of
        public constants, a changed user changes one inner round, and the wrapper stores only the
        number of rounds. Margins and prices are public, or public functions of the user's context.

    >>> from dpbandit.agents import DPUCB
    >>> config = Priced(DPUCB(epsilon=0.5))
    >>> config.epsilon, config.learner.shift
    (0.5, 0.05)
    >>> from dpbandit.base import Streams
    >>> from dpbandit.envs import OJPricing
    >>> config.make(OJPricing().spec, Streams([0, 1])).scores(np.zeros((2, 3))).shape
    (2, 12)
    """

    # "The inner agent's `act` is never called"
    hands_on = ALL_FACTS - {Fact.AS_CHOSEN}

    agent: Inner = field(kw_only=False)
    """config of the agent that learns P(sale | context, price)"""
    features: Features = "additive"
    """features of a price, for one slope, one slope per customer, or a curve (`demand_rows`)"""
    explore: Count0 | None = None
    """rounds of random prices at first, a public number; if None, ceil(horizon / 100)"""
    inner = cast(ScoringAgent, None)

    def check(self) -> None:
        _ = self.learner  # raises if the agent's settings are wrong

    @property
    def learner(self) -> AgentConfig:
        """Config `agent`, with its defaults for a model of demand."""
        ready: Callable[[], AgentConfig] = getattr(self.agent, "for_demand", lambda: self.agent)
        return ready()

    def start(self) -> None:
        spec, name = self.spec, type(self.agent).__name__
        if not spec.priced:
            raise InputError(
                f"Priced({name}) plays a list of prices (dpbandit/OJPricing-v0), got a "
                f"{type(spec).__name__}: use {name} alone."
            )
        demand = demand_spec(spec, self.features)
        self.inner = cast(ScoringAgent, self.learner.make(demand, self.streams.child("demand")))
        if not hasattr(self.inner, "scores"):
            raise InputError(f"Expected an agent that scores arms, got {name}.")
        self.uniforms, self.round = self.streams.uniforms("prices", 2), 0
        self.rounds = ceil(spec.horizon / 100) if self.explore is None else self.explore
        self.ledger = self.inner.ledger
        vars(self).update(masks=getattr(self.inner, "masks", ()))

    def act(self, context: Floats) -> Ints:
        coin, which = self.uniforms().T
        random = (which * self.spec.n_actions).astype(np.int64)
        if self.round < self.rounds:
            return random
        lost = coin < _EXPLORATION * self.rounds / max(1, self.round)
        return np.where(lost, random, self.scores(context).argmax(axis=1))

    def act_among(self, context: Floats, mask: Bools) -> Ints:
        coin, which = self.uniforms().T
        random = random_allowed(which, mask)
        if self.round < self.rounds:
            return random
        lost = coin < _EXPLORATION * self.rounds / max(1, self.round)
        return np.where(lost, random, best_allowed(self.scores(context), mask))

    def scores(self, context: Floats) -> Floats:
        sale = self.inner.scores(demand_rows(self.spec, context, self.features))
        return np.asarray(self.spec.largest_margins(context) * np.clip(sale, 0.0, 1.0))

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        self.round += 1
        rows = demand_rows(self.spec, context, self.features)
        self.inner.update(rows, action, self.spec.share_sold(context, action, feedback))
