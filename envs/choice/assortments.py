"""Assortments under a multinomial logit, with contexts or without."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import sqrt
from typing import Any, Literal

import numpy as np

from dpbandit.base import (
    MOST_DIM,
    AnyArray,
    Floats,
    InputError,
    Ints,
    Streams,
    at_least,
    inside,
    norms,
    one_of,
    positive,
    shown,
    vector,
    whole,
)
from dpbandit.envs.choice.problems import ChoiceProblem, Contest, Crowd, FreeSales, ListedSales
from dpbandit.envs.dynamics import Tides
from dpbandit.specs.choice import (
    MOST_PRODUCTS,
    AssortmentSpec,
    FreelyPricedSpec,
    PricedAssortmentSpec,
)


@dataclass(kw_only=True, eq=False)
class AssortmentBandit(ChoiceProblem):
    """Offer at most S of N products; the user buys one of them, or none, by a multinomial logit.

    Description:
        Each round a fresh user arrives who sees a row of features x_j of each product. Of a set A
        she buys j with probability v_j / (1 + sum over A of v), v_j = exp(x_j . theta), and nothing
        else with what is left. The parameter is drawn anew for every episode. Products earn
        margins; or they have prices, which the agent chooses with the set.

    Action space:
        `MultiBinary(n_products)`: 1 for what is offered; 1 to `at_most` products. With `prices`
        `MultiDiscrete`: the number of a price from 1 on, or 0. With `price_range` a `Box`: a price,
        or 0. Samples of the space are such sets, each as likely as any other. Of a mask with more
        products the Gymnasium environments offer the first `at_most`, and product 0 for an empty
        one; the problem refuses both.

    Observation space:
        `Box`, shape (n_products, dim): the rows, of Euclidean norm at most 1.

    Rewards:
        The margin of what was bought, 0 if nothing was; `info["choice"]` says what, n_products for
        nothing. The expected and the oracle reward in `info` are exact: the best set, and its
        prices, by Dinkelbach's steps. The best fixed set is the best of all where there are at
        most 10,000; else it is one that no exchange of a product improves for the first 500 users.
        With `price_range` it is at prices of a list, of 5 to 100.

    Starting state:
        A new parameter and the first user's rows.

    Episode end:
        Truncation after `horizon` rounds; never terminates.

    Arguments:
        * `n_products`, `at_most`, `horizon`: N, S, rounds.
        * `contexts`: `"sphere"`, rows (u_j, 1) / sqrt(2) with u_j uniform on the unit sphere, and
          utilities `signal` u_j . w + `appeal`, w a direction; `"constant"`, rows are unit vectors,
          the same for everybody, and utilities are normal of mean `appeal` and stddev `signal`.
        * `dim`: the length of a row of `"sphere"`, 5 if not said; else it is n_products.
        * `signal`: if not said, 3, without contexts 0.7. `appeal`: of an average product.
        * `margins`: what each product earns; if not said, equally spaced from 0.2 to 1.
        * `prices`: a list, the same for all products; or `price_range`, (lowest, highest).
        * `unit_costs`: with prices, of each product; if not said, equally spaced from 0 to half the
          lowest price.
        * `price_weight`: with prices, the utility that is lost from the lowest to the highest;
          `appeal` is that at the middle of the range.
        * `season`, `drift`, `shock`: what is added to all utilities as time goes on: (amplitude,
          period), amplitude sin(2 pi t / period); (step, range), a reflected random walk; (round,
          size), from that round on. The oracle knows.
        * `delay`: rounds until a choice is seen; before there are any, product 0 and a reward of 0
          are handed out.

    Version history:
        * v0: first release.
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
        given: Any = self.prices
        if not isinstance(given, list | tuple | np.ndarray):
            raise InputError(f"Expected prices={shown(given)} to be a list of numbers.")
        prices = vector("prices", given, len(given))
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

    def _each(self, name: str, given: Any, low: float, high: float) -> tuple[float, ...]:
        """What was given for each product, or equally spaced numbers."""
        values = np.linspace(low, high, self.n_products)
        if given is not None:
            values = vector(name, given, self.n_products)
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

    def _contest(self, replicas: int) -> Contest:
        return self._products.contest(replicas)

    def _fixed(self, levels: Ints) -> AnyArray:
        return self._products.fixed(levels)
