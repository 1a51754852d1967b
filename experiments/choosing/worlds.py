"""Environments of the generated problems whose kinds no shipped environment has.

All numbers of an environment that its arguments do not give are drawn from `world`, a seed. Its
users are `_USERS` rows of a table, drawn with replacement.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt
from typing import Literal, get_args

import numpy as np
import pandas as pd
from scipy.special import expit, logit, stdtr, stdtrit
from scipy.stats import binom, poisson

from dpbandit.base import Floats, Ints, norms, one_of, rows
from dpbandit.envs import RecommendationFromLog
from dpbandit.envs.contextual.problems import Resampled, ResampledChoices, Users, UserTable
from dpbandit.specs import ContextualSpec, PriceListSpec

_USERS = 2048
"""Number of rows of the table from which users are drawn with replacement"""
_FREEDOM = 3.0
"""Degrees of freedom of Student noise"""

Contexts = Literal["ball", "skewed", "factors", "cube"]
Law = Literal["binary", "scores", "units", "uniform", "student"]


def contexts_of(kind: Contexts, g: np.random.Generator, dim: int) -> Floats:
    """Draw the contexts of all users, (users, dim), of Euclidean norm at most 1.

    Args:
        kind: "ball" is a constant and Gaussian features; "skewed" the same with log-normal
            features, of which few are large; "factors" indicators of the values of up to 3 factors;
            "cube" uniform features in [-1, 1].
        g, dim: generator and number of features.
    """
    if kind == "cube":
        return g.uniform(-1, 1, (_USERS, dim)) / sqrt(dim)
    if kind == "factors":
        owner = np.sort(rows(dim) % min(3, dim // 2))  # factor to which each indicator belongs
        popularity = g.gumbel(size=(_USERS, dim)) + g.normal(0, 0.7, dim)
        best = [popularity[:, owner == f].max(axis=1) for f in range(owner[-1] + 1)]
        return 1.0 * (popularity == np.stack(best, axis=1)[:, owner]) / sqrt(len(best))
    z = g.standard_normal((_USERS, dim - 1))
    z = np.exp(0.7 * z) - 1 if kind == "skewed" else z
    return np.column_stack([np.ones(_USERS), z / norms(z).max()]) / sqrt(2)


def surface_of(kind: Contexts, g: np.random.Generator, x: Floats, arms: int) -> Floats:
    """Draw functions of contexts, one for each arm, with values in [-1, 1], (users, arms).

    They are linear, or on contexts "cube" Friedman's function of 5 features, other ones for each
    arm (Annals of Statistics 1991).
    """
    if kind != "cube":
        theta = g.standard_normal((x.shape[1], arms))
        theta[0] *= g.uniform(0.05, 0.5)  # levels of arms may say more than contexts, or less
        score = x @ theta
    else:
        z = (x * sqrt(x.shape[1]) + 1) / 2
        columns = [z[:, g.permutation(x.shape[1])[:5]].T for _ in range(arms)]
        score = np.stack(
            [
                10 * np.sin(np.pi * a * b) + 20 * (c - 0.5) ** 2 + 10 * d + 5 * e
                for a, b, c, d, e in columns
            ],
            axis=1,
        )
        score -= score.mean()
    return score / np.abs(score).max()


@dataclass(kw_only=True, eq=False)
class Numbers(Resampled):
    """Problem of arms whose mean rewards are level + spread x a function in [-1, 1] of contexts.

    `law` is the distribution of rewards: "binary" 1 or 0; "scores" binomial in 0, ..., 10; "units"
    a margin of the arm times a Poisson count of at most 6; "uniform" or "student" noise of scale
    `noise`, truncated so that rewards are between `low` and `high`. Means of "units" are
    margin x exp(level + spread x function), apart from the truncation.
    """

    n_actions: int = 5
    dim: int = 5
    contexts: Contexts = "ball"
    law: Law = "binary"
    level: float = 0.5
    spread: float = 0.4
    noise: float = 1.0
    low: float = 0.0
    high: float = 1.0
    world: int = 0
    horizon: int = 10_000

    def __post_init__(self) -> None:
        one_of("law", self.law, get_args(Law))
        g = np.random.default_rng(self.world)
        self._known = contexts_of(self.contexts, g, self.dim)
        function = surface_of(self.contexts, g, self._known, self.n_actions)
        self._means = self.level + self.spread * function
        self._unit = np.ones(self.n_actions)
        low, high = self.low, self.high
        if self.law == "units":
            self._unit = g.uniform(0.5, 1.5, self.n_actions)
            low, high = 0.0, 6 * float(self._unit.max())
            self._cdf = poisson.cdf(rows(6), np.exp(self._means)[..., None])
        elif self.law in ("binary", "scores"):
            low, high = 0.0, 1.0 if self.law == "binary" else 10.0
            self._cdf = binom.cdf(rows(int(high)), int(high), self._means[..., None] / high)
        else:
            self._room = float(min(high - self._means.max(), self._means.min() - low))
        if self._discrete:
            self._means = (1 - self._cdf).sum(axis=2) * self._unit
        self.spec = ContextualSpec(
            n_actions=self.n_actions,
            dim=self.dim,
            horizon=self.horizon,
            reward_low=low,
            reward_high=high,
            link="other",
        )

    @property
    def _discrete(self) -> bool:
        return self.law in ("binary", "scores", "units")

    @property
    def user_table(self) -> UserTable | None:  # type: ignore[override]
        if not self._discrete:
            return None
        chance = np.diff(self._cdf, axis=2, prepend=0.0, append=1.0)
        count = rows(chance.shape[2])
        reward = np.broadcast_to(self._unit[:, None] * count, chance.shape)
        return UserTable(self._known, np.full(_USERS, 1 / _USERS), chance, reward)

    def _answers(self, row: Ints, uniforms: Floats) -> Users:
        mean, u = self._means[row], uniforms[..., None]
        if self._discrete:
            count = (u[..., None] >= self._cdf[row]).sum(axis=-1)
            return Users(self._known[row], mean, self._unit * count)
        if self.law == "uniform":
            half = min(self.noise, self._room)
            return Users(self._known[row], mean, mean + half * (2 * u - 1))
        tail = stdtr(_FREEDOM, -self._room / self.noise)
        z = stdtrit(_FREEDOM, tail + u * (1 - 2 * tail))
        return Users(self._known[row], mean, mean + (self.noise * z).clip(-self._room, self._room))


def _linear(g: np.random.Generator) -> Callable[[Floats, Floats, Floats], Floats]:
    base, slope, tilt = g.uniform(0.5, 2), g.uniform(2, 6), g.uniform(0, 0.6)
    return lambda z, u, v: expit(base + 1.5 * u - slope * (1 + tilt * v) * z)


def _kinds(g: np.random.Generator) -> Callable[[Floats, Floats, Floats], Floats]:
    share, cheap, dear, steep = (
        g.uniform(*ends) for ends in ((0.3, 0.7), (0.1, 0.3), (0.6, 0.9), (10, 25))
    )
    return lambda z, u, v: (
        share * expit(steep * (cheap + 0.1 * u - z))
        + (1 - share) * expit(steep * (dear + 0.1 * v - z))
    )


def _plateau(g: np.random.Generator) -> Callable[[Floats, Floats, Floats], Floats]:
    cliff, chance = g.uniform(0.3, 0.8), g.uniform(0.3, 0.7)
    return lambda z, u, v: chance * expit(60 * (cliff + 0.06 * u - z)) + 0 * v


def _luxury(g: np.random.Generator) -> Callable[[Floats, Floats, Floats], Floats]:
    base, more, peak, width = (
        g.uniform(*ends) for ends in ((0.1, 0.3), (0.2, 0.4), (0.6, 0.95), (0.1, 0.25))
    )
    return lambda z, u, v: base + more * np.exp(-((z - peak - 0.06 * v) ** 2) / width**2) + 0 * u


def _elastic(g: np.random.Generator) -> Callable[[Floats, Floats, Floats], Floats]:
    power, start = g.uniform(1.5, 3), g.uniform(0.05, 0.25)
    return lambda z, u, v: np.minimum(
        1, ((1 + 2 * z) / (1 + 2 * start + 0.2 * u + 0.1 * v)) ** -power
    )


SHAPES: Mapping[
    str, Callable[[np.random.Generator], Callable[[Floats, Floats, Floats], Floats]]
] = {
    "kinds": _kinds,
    "plateau": _plateau,
    "luxury": _luxury,
    "elastic": _elastic,
    "linear": _linear,
}
"""Name -> function that draws a demand curve, which gives P(sale) from z, u and v, the price on a
scale from 0 to 1 within the list and two features of the customer in [-1, 1]"""


@dataclass(kw_only=True, eq=False)
class Prices(ResampledChoices):
    """Problem of a list of prices from 1 to 3 times the lowest one, with demand of a drawn shape.

    `buyers` is the share of customers who consider a purchase; the others buy at no price.
    """

    shape: str = "kinds"
    n_actions: int = 11
    dim: int = 3
    lowest: float = 1.0
    cost: float = 0.5
    buyers: float = 1.0
    world: int = 0
    horizon: int = 10_000

    def __post_init__(self) -> None:
        one_of("shape", self.shape, tuple(SHAPES))
        g = np.random.default_rng(self.world)
        known = g.uniform(-1, 1, (_USERS, self.dim - 1))
        self._known = np.column_stack([np.ones(_USERS), known]) / sqrt(self.dim)
        z = np.linspace(0, 1, self.n_actions)
        demand = SHAPES[self.shape](g)(z, known[:, :1], known[:, 1:2])
        self._chances = self.buyers * demand
        prices = self.lowest * (1 + 2 * z)
        self._margins = prices - self.cost
        self.spec = PriceListSpec(
            n_actions=self.n_actions,
            dim=self.dim,
            horizon=self.horizon,
            prices=tuple(prices.tolist()),
            unit_cost=self.cost,
            reward_high=float(self._margins.max()),
            link="other",
            reward_unit="dollars",
        )


@dataclass(kw_only=True, eq=False)
class Offers(ResampledChoices):
    """Problem of offers, each one of `products` at one of `levels` prices; tastes are half known.

    A customer's utility of a product is its appeal and her taste for it, and falls with the price
    faster for some. Contexts are noisy linear functions of tastes.
    """

    products: int = 3
    levels: int = 5
    dim: int = 9
    world: int = 0
    horizon: int = 10_000

    def __post_init__(self) -> None:
        g = np.random.default_rng(self.world)
        taste = g.standard_normal((_USERS, self.products + 1))
        seen = taste @ g.standard_normal((self.products + 1, self.dim - 1)) / 2
        seen += g.standard_normal(seen.shape)
        self._known = np.column_stack([np.ones(_USERS), seen / norms(seen).max()]) / sqrt(2)
        price, cost = np.linspace(0.8, 2.8, self.levels), g.uniform(0.3, 0.7, self.products)
        appeal = g.normal(1.0, 0.6, self.products) + 1.1 * taste[:, :-1]
        slope = np.exp(0.3 + 0.4 * taste[:, -1:])
        utility = appeal[:, :, None] - slope[:, :, None] * (price - price[0])
        self._chances = expit(utility).reshape(_USERS, -1)
        self._margins = (price - cost[:, None]).ravel()
        self.spec = ContextualSpec(
            n_actions=len(self._margins),
            dim=self.dim,
            horizon=self.horizon,
            reward_high=float(self._margins.max()),
            link="other",
            reward_unit="dollars",
        )


@lru_cache(maxsize=4)
def clicks(world: int, items: int, base_rate: float) -> pd.DataFrame:
    """Draw a log of 20,000 clicks on items that are shown by popularity, whoever comes.

    People have three features in [-1, 1]; a person clicks on an item by a logit whose constant is
    near that of `base_rate`.
    """
    g, n = np.random.default_rng(world), 20_000
    popularity = g.dirichlet(np.full(items, 4.0)) / 2 + 1 / (2 * items)
    item, x = g.choice(items, n, p=popularity), g.uniform(-1, 1, (n, 3))
    level, taste = g.normal(0, 0.5, items), g.normal(0, 0.8, (items, 3))
    score = logit(base_rate) + level[item] + (x * taste[item]).sum(axis=1)
    table = {f"x{i}": x[:, i] for i in range(3)}
    return pd.DataFrame({"item": item, "click": 1 * (g.random(n) < expit(score)), **table})


@dataclass(eq=False, repr=False, kw_only=True)
class ClickLog(RecommendationFromLog):
    """`RecommendationFromLog` on `clicks`."""

    world: int = 0
    n_items: int = 12
    base_rate: float = 0.1

    def __post_init__(self) -> None:
        self.frame = clicks(self.world, self.n_items, self.base_rate)
        self.items, self.features = range(self.n_items), {f"x{i}": (-1, 1) for i in range(3)}
        super().__post_init__()
