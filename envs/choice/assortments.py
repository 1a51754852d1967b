"""Assortments under a multinomial logit, and `ChoiceProblem`, the base of all problems of choice.

Users are drawn ahead. A round's user has a context and a probability to buy each product of any
set. Her choice is the inverse of the distribution function, products in order, at one uniform
number per round, so that agents who offer the same set sell the same product.

The best fixed set for all users so far is found by enumeration if there are few sets, else by
exchanging products. Products have fixed margins, prices of a list, or any price of a range.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, sqrt
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np

from dpbandit.base import (
    MOST_DIM,
    AnyArray,
    Floats,
    InputError,
    Ints,
    Streams,
    abbrev,
    at_least,
    inside,
    norms,
    one_of,
    positive,
    rows,
    vector,
    whole,
)
from dpbandit.envs.nonstationarity import Delay, Tides
from dpbandit.specs import Step
from dpbandit.specs.choice import (
    MOST_PRODUCTS,
    AssortmentSpec,
    ChoiceSpec,
    FreelyPricedSpec,
    PricedAssortmentSpec,
    best_levels,
    best_prices,
    chances,
    weights,
)

MOST_SETS = 10_000
"""Largest number of sets that are enumerated to find the best fixed one; else exchanges are used"""
_SEARCH_USERS = 500
"""Number of an episode's first users on whose mean margin the exchange search improves a set"""
_MIN_GAIN = 1e-12  # smallest increase of the mean margin for an exchange


class SetSearch(Protocol):
    """Search for the best fixed set of one episode."""

    def add(self, taste: AnyArray) -> None:
        """Add n users per replica, given by `Crowd.taste`, (n, R, ...)."""
        ...

    def best(self) -> Ints:
        """Return the best set for users so far, (R, products), by price levels; 0 is left out."""
        ...


class ExhaustiveSearch:
    """Exact search, which sums the expected margins of every set.

    Args:
        sets: all sets of N products, as price levels, 0 if left out, (n_sets, N).
        revenues: function that maps users (n, R, ...) to the total margin of each set, (R, n_sets).
        replicas: number of replicas R.
    """

    def __init__(self, sets: Ints, revenues: Callable[[Any], Floats], replicas: int) -> None:
        self._sets, self._revenues = sets, revenues
        self._totals = np.zeros((replicas, len(sets)))

    def add(self, taste: AnyArray) -> None:
        self._totals += self._revenues(taste)

    def best(self) -> Ints:
        return self._sets[self._totals.argmax(axis=1)]


class ExchangeSearch:
    """Local search: exchanges one product at a time while the mean margin of 500 users increases.

    The best set of a mixture of logits is NP-hard to find; the result is a local optimum.

    Args:
        weights: function of users (n, R, ...) that returns exp(utility), (n, R, products, prices).
        margins: margin of each product at each price, (products, prices).
        at_most: largest number of products of a set.
    """

    def __init__(
        self, weights: Callable[[Any], Floats], margins: Floats, at_most: int, replicas: int
    ) -> None:
        self._weights, self._margins, self._most = weights, margins, at_most
        self._sampled: list[Floats] = []
        self._replicas, self._users = replicas, 0

    def add(self, taste: AnyArray) -> None:
        # users beyond the first 500 are ignored
        taste = taste[: _SEARCH_USERS - self._users]
        if len(taste):
            self._users += len(taste)
            self._sampled.append(self._weights(taste))

    def best(self) -> Ints:
        # without users: the set of the first product alone
        if not self._sampled:
            first = np.zeros((self._replicas, len(self._margins)), np.int64)
            first[:, 0] = 1
            return first
        users = np.concatenate(self._sampled)
        return np.array([self._climb(users[:, r]) for r in range(users.shape[1])])

    def _climb(self, v: Floats) -> Ints:
        """Return a replica's best set by exchanges; v (users, products, prices) is exp(utility)."""
        N, P = self._margins.shape
        earned = v * self._margins
        levels, best_value = np.zeros(N, np.int64), 0.0
        while True:
            best = None
            members = np.flatnonzero(levels)
            rests = [members] if len(members) < self._most else []
            rests += [members[members != i] for i in members]
            for rest in rests:  # the products that stay; one more may be added
                at = (slice(None), rest, levels[rest] - 1)
                more = earned[at].sum(axis=1)[:, None, None] + earned
                value = (more / (1 + v[at].sum(axis=1)[:, None, None] + v)).mean(axis=0)  # (N, P)
                value[rest] = -1.0
                j, p = divmod(int(value.argmax()), P)
                if value[j, p] > best_value + _MIN_GAIN:
                    best_value = float(value[j, p])
                    best = np.where(np.isin(np.arange(N), rest), levels, 0)
                    best[j] = p + 1
            if best is None:
                return levels
            levels = best


def every_set(n_products: int, at_most: int, levels: int = 1) -> Ints:
    """Return all sets of 1 to `at_most` products as price levels, 0: left out, (sets, products)."""
    found = np.zeros((count_sets(n_products, at_most, levels), n_products), np.int64)
    place = 0
    for size in range(1, at_most + 1):
        for members in combinations(range(n_products), size):
            for chosen in product(range(1, levels + 1), repeat=size):
                found[place, list(members)] = chosen
                place += 1
    return found


def count_sets(n_products: int, at_most: int, levels: int = 1) -> int:
    """Return the number of sets of 1 to `at_most` products, each at one of `levels` prices."""
    return sum(comb(n_products, k) * levels**k for k in range(1, at_most + 1))


_VALUES_AHEAD = 1 << 15
"""Entries of contexts drawn at once, for all replicas; changes speed, never values"""


class Crowd(NamedTuple):
    """Users of n rounds for R replicas."""

    context: Floats
    """Contexts of the users, `(n, R, *context_shape)`"""
    taste: AnyArray
    """Parameters of each user's purchase probabilities (utilities or an index), (n, R, ...)"""
    oracle: Floats
    """Largest expected margin of any set, (n, R)"""


class ChoiceProblem(ABC):
    """A `Problem` of assortments; a subclass sets `spec`, draws users, and computes sales."""

    spec: ChoiceSpec

    @abstractmethod
    def _start(self, streams: Streams) -> None: ...

    @abstractmethod
    def _users(self, count: int) -> Crowd: ...

    @abstractmethod
    def _sales(self, taste: AnyArray, action: AnyArray) -> tuple[Floats, Floats]:
        """Return products' purchase probabilities and margins, (R, products), for sets `action`."""

    @abstractmethod
    def _search(self, replicas: int) -> SetSearch:
        """Return a search for the best fixed set of one episode."""

    def _fixed(self, levels: Ints) -> AnyArray:
        """Return sets that a search found, price levels (R, products), as actions."""
        return levels

    def reset(self, streams: Streams) -> None:
        R = len(streams)
        self._start(streams)
        self._uniforms = streams.uniforms("purchases")
        self._ahead = max(1, _VALUES_AHEAD // (R * int(np.prod(self.spec.context_shape))))
        self._sets_so_far, self._replicas = self._search(R), R
        self._next = self._drawn = self._counted = 0
        self._late = [Delay(self.spec.delay, R) for _ in range(2)]

    def context(self) -> Floats:
        if self._next == self._drawn:
            self._count()
            self._crowd = self._users(self._ahead)
            self._next = self._counted = 0
            self._drawn = self._ahead
        return self._crowd.context[self._next]

    def step(self, action: AnyArray) -> Step:
        offered = self.spec.validate(action, self._replicas)
        i = self._next
        self._next = i + 1
        chance, margin = self._sales(self._crowd.taste[i], offered)
        expected = np.vecdot(chance, margin)
        choice = (self._uniforms()[:, None] >= chance.cumsum(axis=1)).sum(axis=1)  # N for none
        reward = np.where(
            choice < self.spec.n_products,
            margin[rows(len(choice)), np.minimum(choice, self.spec.n_products - 1)],
            0.0,
        )
        oracle = np.maximum(self._crowd.oracle[i], expected)  # against rounding
        reward, feedback = (
            late(x) for late, x in zip(self._late, (reward, 1.0 * choice), strict=True)
        )
        return Step(reward, expected, oracle, oracle - expected, feedback)

    def best_fixed(self) -> AnyArray:
        self._count()
        return self._fixed(self._sets_so_far.best())

    def hindsight(self) -> float:
        return 0.0

    def _count(self) -> None:
        """Add users of the rounds since the last call to the search for the best fixed set."""
        if self._counted < self._next:
            self._sets_so_far.add(self._crowd.taste[self._counted : self._next])
            self._counted = self._next


_MOST_LIST_PRICES, _LEAST_LIST_PRICES = 100, 5
"""Bounds of the length of the price list on which `FreeSales` searches the best fixed set"""
_BLOCK_ENTRIES = 1 << 20
"""Largest number of rounds x replicas x sets computed at once, unless a round has more; changes
speed and the last bits of totals, never the regret"""


class ListedSales:
    """Sales at prices of a list; a product's utility is its appeal minus that lost by its price.

    Args:
        margins: margin of each of N products at each of P prices, (N, P).
        lost: utility lost at each price, (P,); without prices a single 0.
        at_most: largest number of products of a set.
    """

    def __init__(self, margins: Floats, lost: Floats, at_most: int) -> None:
        self._margins, self._lost, self._most = margins, lost, at_most
        N, P = margins.shape
        self._sets = None
        if count_sets(N, at_most, P) <= MOST_SETS:
            self._sets = every_set(N, at_most, P)
            chosen = self._sets[:, :, None] == np.arange(1, P + 1)  # (n_sets, N, P)
            self._chosen = np.ascontiguousarray(1.0 * chosen.reshape(len(self._sets), -1).T)

    @classmethod
    def of(cls, spec: AssortmentSpec, lost: Floats) -> "ListedSales":
        """Return the sales model of the products of `spec`; a price costs the utility `lost`."""
        return cls(spec.margin_table, lost, spec.at_most)

    def best(self, appeal: Floats) -> Floats:
        """Return the largest expected margin of any set for users with `appeal` (..., N)."""
        return best_levels(self._weights(appeal), self._margins, self._most)[1]

    def sales(self, appeal: Floats, action: Ints) -> tuple[Floats, Floats]:
        """Return products' purchase probabilities and margins, (R, products), for sets `action`."""
        level = np.maximum(action - 1, 0)
        chance = chances(weights(appeal - self._lost[level]), action > 0)
        margin = np.take_along_axis(self._margins[None], level[..., None], axis=-1)[..., 0]
        return chance, margin

    def search(self, replicas: int) -> SetSearch:
        """Return a search for the best fixed set, exhaustive up to `MOST_SETS` sets."""
        if self._sets is None:
            return ExchangeSearch(self._weights, self._margins, self._most, replicas)
        return ExhaustiveSearch(self._sets, self._revenues, replicas)

    def fixed(self, levels: Ints) -> Ints:
        """Return sets that a search found, price levels (R, products), as actions."""
        return levels

    def _revenues(self, appeal: Floats) -> Floats:
        total = np.zeros((appeal.shape[1], self._chosen.shape[1]))
        at_once = max(1, _BLOCK_ENTRIES // total.size)
        for first in range(0, len(appeal), at_once):
            w = self._weights(appeal[first : first + at_once])
            earned = (w * self._margins).reshape(*w.shape[:2], -1) @ self._chosen
            total += (earned / (1 + w.reshape(*w.shape[:2], -1) @ self._chosen)).sum(axis=0)
        return total

    def _weights(self, appeal: Floats) -> Floats:
        return weights(appeal[..., None] - self._lost)


class FreeSales:
    """Sales at any price of a range; utility is a product's appeal - slope (price - middle).

    The best fixed set is searched on a list of 5 to 100 prices, as many as `MOST_SETS` allows.
    """

    def __init__(self, spec: FreelyPricedSpec, slope: float) -> None:
        self._spec, self._slope, self._middle = spec, slope, (spec.low + spec.high) / 2
        self._costs = np.array(spec.unit_costs)
        N, S, fine = spec.n_products, spec.at_most, _LEAST_LIST_PRICES
        while fine < _MOST_LIST_PRICES and count_sets(N, S, fine + 1) <= MOST_SETS:
            fine += 1
        self._list = np.linspace(spec.low, spec.high, fine)
        self._listed = ListedSales(
            self._list - self._costs[:, None], slope * (self._list - self._middle), S
        )

    def best(self, appeal: Floats) -> Floats:
        """Return the largest expected margin of any set for users with `appeal` (..., N)."""
        S, b = self._spec, np.array(self._slope)
        at_zero = appeal + self._slope * self._middle
        return best_prices(at_zero, b, self._costs, S.low, S.high, S.at_most)[1]

    def sales(self, appeal: Floats, action: Floats) -> tuple[Floats, Floats]:
        """Return products' purchase probabilities and margins, (R, products), at given prices."""
        w = weights(appeal - self._slope * (action - self._middle))
        return chances(w, action > 0), action - self._costs

    def search(self, replicas: int) -> SetSearch:
        """Return a search for the best fixed set at prices of the list, for one episode."""
        return self._listed.search(replicas)

    def fixed(self, levels: Ints) -> Floats:
        """Return sets that a search found, levels of the list (R, products), as prices."""
        return np.where(levels > 0, self._list[np.maximum(levels - 1, 0)], 0.0)


@dataclass(kw_only=True, eq=False)
class AssortmentBandit(ChoiceProblem):
    """Offer at most S of N products; the user buys one of them, or none, by a multinomial logit.

    Description:
        Each round a fresh user arrives; each product j has a row of features x_j for her. Of a set
        A she buys product j with probability v_j / (1 + sum over A of v), v_j = exp(x_j . theta),
        and none with the remaining probability. The parameter is drawn anew for every episode.
        Products have fixed margins, or prices, which the agent chooses with the set.

    Action space:
        `MultiBinary(n_products)`: 1 for each of 1 to `at_most` offered products. With `prices`
        `MultiDiscrete`: the number of a price from 1 on, or 0. With `price_range` a `Box`: a price,
        or 0. Samples of the space are uniform over such sets. From a set with more products the
        Gymnasium environments offer the first `at_most`, and product 0 for an empty set; the
        problem raises `InputError` for both.

    Observation space:
        `Box`, shape (n_products, dim): the products' features, rows of Euclidean norm at most 1.

    Rewards:
        The margin of the product bought, 0 if none; `info["choice"]` is the product, n_products for
        none. The expected and the oracle reward in `info` are exact: the best set and its prices
        are found by Dinkelbach's steps. The best fixed set is exact if there are at most 10,000
        sets; else it is a set that no exchange of a product improves for the first 500 users. With
        `price_range` its prices are from a list of 5 to 100.

    Starting state:
        A new parameter and the first user's features.

    Arguments:
        * `n_products`, `at_most`, `horizon`: N, S, rounds.
        * `contexts`: `"sphere"`, rows (u_j, 1) / sqrt(2) with u_j uniform on the unit sphere, and
          utilities `signal` u_j . w + `appeal`, w a random unit vector; `"constant"`, rows are unit
          vectors, the same for everybody, and utilities are normal of mean `appeal` and stddev
          `signal`.
        * `dim`: length of a row of `"sphere"`, default 5; n_products for `"constant"`.
        * `signal`: default 3 for `"sphere"`, 0.7 for `"constant"`. `appeal`: mean utility.
        * `margins`: margin of each product; default: equally spaced from 0.2 to 1.
        * `prices`: prices to choose from, for all products; or `price_range`, (lowest, highest).
        * `unit_costs`: with prices, cost of each product; default: equally spaced from 0 to half
          the lowest price.
        * `price_weight`: with prices, decrease of utility from the lowest price to the highest;
          `appeal` is the utility at the middle of the range.
        * `season`, `drift`, `shock`: shifts of all utilities: (amplitude, period) adds amplitude
          sin(2 pi t / period) in round t; (step, range) a reflected random walk; (round, size)
          `size` from that round on. The oracle knows them.
        * `delay`: rounds until a choice is seen; until then the agent observes product 0 and a
          reward of 0.
    """

    n_products: int = 10
    at_most: int = 4
    dim: int | None = None
    horizon: int = 10_000
    contexts: Literal["sphere", "constant"] = "sphere"
    signal: float | None = None
    appeal: float = -1.0
    margins: Sequence[float] | None = None
    prices: Sequence[float] | None = None
    price_range: Sequence[float] | None = None
    unit_costs: Sequence[float] | None = None
    price_weight: float = 4.0
    season: Sequence[float] | None = None
    drift: Sequence[float] | None = None
    shock: Sequence[float] | None = None
    delay: int = 0

    def __post_init__(self) -> None:
        whole("n_products", self.n_products, 1, MOST_PRODUCTS)
        one_of("contexts", self.contexts, ("sphere", "constant"))
        self._dim = self._features()
        usual = 3.0 if self.contexts == "sphere" else 0.7
        self._signal = usual if self.signal is None else self.signal
        at_least("signal", self._signal, 0)
        inside("appeal", self.appeal, -20, 20, ends=True)
        positive("price_weight", self.price_weight)
        self._tides = Tides(season=self.season, drift=self.drift, shock=self.shock)
        facts: dict[str, Any] = {
            "n_products": self.n_products,
            "at_most": self.at_most,
            "dim": self._dim,
            "horizon": self.horizon,
            "delay": self.delay,
        }
        if self.prices is not None and self.price_range is not None:
            raise InputError("Expected prices or price_range, not both.")
        if self.prices is None and self.price_range is None:
            if self.unit_costs is not None:
                raise InputError("Expected unit_costs only with prices or price_range.")
            margins = self._each("margins", self.margins, 0.2, 1.0)
            self.spec: AssortmentSpec | FreelyPricedSpec = AssortmentSpec(margins=margins, **facts)
            self._products: ListedSales | FreeSales = ListedSales.of(self.spec, np.zeros(1))
        else:
            self._with_prices(facts)

    def _with_prices(self, facts: dict[str, Any]) -> None:
        if self.margins is not None:
            raise InputError("Expected margins only without prices: they follow from unit_costs.")
        if self.price_range is not None:
            low, high = vector("price_range", self.price_range, 2).tolist()
            costs = self._each("unit_costs", self.unit_costs, 0.0, low / 2)
            free = FreelyPricedSpec(low=low, high=high, unit_costs=costs, **facts)
            self.spec = free
            self._products = FreeSales(free, self.price_weight / (high - low))
            return
        listed_prices: Any = self.prices
        if not isinstance(listed_prices, list | tuple | np.ndarray):
            raise InputError(f"Expected prices={abbrev(listed_prices)} to be a list of numbers.")
        prices = vector("prices", listed_prices, len(listed_prices))
        costs = self._each("unit_costs", self.unit_costs, 0.0, float(prices.min(initial=0)) / 2)
        listed = PricedAssortmentSpec(prices=tuple(prices.tolist()), unit_costs=costs, **facts)
        self.spec = listed
        along = (prices - prices[0]) / (prices[-1] - prices[0]) - 0.5
        self._products = ListedSales.of(listed, self.price_weight * along)

    def _features(self) -> int:
        if self.contexts == "constant":
            if self.dim is not None:
                raise InputError("Expected dim only with contexts='sphere'.")
            return self.n_products
        dim = 5 if self.dim is None else self.dim
        whole("dim", dim, 2, MOST_DIM)
        return dim

    def _each(self, name: str, numbers: Any, low: float, high: float) -> tuple[float, ...]:
        """Check and return a number for each product; by default equally spaced, low to high."""
        values = np.linspace(low, high, self.n_products)
        if numbers is not None:
            values = vector(name, numbers, self.n_products)
        return tuple(values.tolist())

    def _start(self, streams: Streams) -> None:
        N, d = self.n_products, self._dim
        sphere = self.contexts == "sphere"
        self._tide = self._tides.start(streams)
        self._directions = streams.normals("contexts", N, d - 1) if sphere else None
        theta = streams.world.normals("parameters", d - 1 if sphere else N)()
        self._theta = self._signal * (theta / norms(theta) if sphere else theta)  # (R, d - 1 or N)

    def _users(self, count: int) -> Crowd:
        N, R = self.n_products, len(self._theta)
        if self._directions is None:
            context = np.broadcast_to(np.eye(N), (count, R, N, N))
            appeal = np.broadcast_to(self.appeal + self._theta, (count, R, N))
        else:
            u = self._directions.take(count)
            u = u / norms(u)
            context = np.concatenate([u, np.ones((count, R, N, 1))], axis=-1) / sqrt(2)
            appeal = self.appeal + np.vecdot(u, self._theta[:, None])
        appeal = appeal + self._tide.take(count)[..., None]
        return Crowd(context, appeal, self._products.best(appeal))

    def _sales(self, taste: Any, action: AnyArray) -> tuple[Floats, Floats]:
        return self._products.sales(taste, action)

    def _search(self, replicas: int) -> SetSearch:
        return self._products.search(replicas)

    def _fixed(self, levels: Ints) -> AnyArray:
        return self._products.fixed(levels)
