"""Pricing of orange juice, with demand by a model of 1,070 real purchases.

`ReferencePricing` has customers who compare a price with a list price or with recent prices.
"""

import csv
import gzip
import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

import numpy as np
import scipy

from dpbandit.base import AnyArray, Floats, Ints, Streams, inside, one_of, pick, rows
from dpbandit.envs.contextual.problems import ResampledChoices, TidalChoices, Users, row_of
from dpbandit.envs.nonstationarity import Delay, Tides
from dpbandit.specs import PriceListSpec, PriceSpec, Step


class Demand(NamedTuple):
    """Demand model, fitted once to purchases in `envs/data/oj.csv.gz` (`envs/data/README.md`)."""

    context: Floats
    """1, rival's price and loyalty to it (scaled to [-1, 1]), divided by sqrt(3), (rows, 3)"""
    utility: Floats
    """Logit of each customer's probability to buy at price 0, (rows,)"""
    slope: float
    """Decrease of the logit per dollar, positive"""
    prices: Floats
    """Prices that can be chosen, dollars, (12,)"""
    cost: float
    """Unit cost, dollars per carton"""

    def margin(self, row: Ints, price: Floats, tide: Floats | float = 0.0) -> Floats:
        """Return the expected margin in dollars, (price - cost) P(the customer of `row` buys)."""
        return (price - self.cost) * self.probability(row, price, tide)

    def probability(self, row: Ints, price: Floats, tide: Floats | float = 0.0) -> Floats:
        """Return P(the customer of `row` buys at `price`); all logits are shifted by `tide`."""
        logits = self.utility[row] + tide - self.slope * price
        return np.asarray(1 / (1 + np.exp(-logits)))  # SciPy's takes as long to import as the rest


@cache
def demand() -> Demand:
    """Read the table of purchases and the stored coefficients of the demand model."""
    folder = files("dpbandit.envs") / "data"
    frozen = json.loads((folder / "oj_demand.json").read_text())
    table = gzip.decompress((folder / "oj.csv.gz").read_bytes()).decode()
    data = list(csv.DictReader(table.splitlines()))
    intercept, slope_own, rival, loyalty = frozen["coefficients"]
    rival_price, loyal = (np.array([float(row[name]) for row in data]) for name in _FEATURES)
    context = np.stack([np.ones(len(data)), _scaled(rival_price), _scaled(loyal)], axis=1)
    return Demand(
        context=context / np.sqrt(3),
        utility=intercept + rival * rival_price + loyalty * loyal,
        slope=-slope_own,
        prices=np.array(frozen["prices"]),
        cost=frozen["unit_cost"],
    )


_FEATURES = ("SalePriceCH", "LoyalCH")  # columns: price of Citrus Hill, loyalty to it


def _scaled(x: Floats) -> Floats:
    """Scale the values of `x` linearly so that their range is [-1, 1]."""
    return 2 * (x - x.min()) / (x.max() - x.min()) - 1


@dataclass(kw_only=True, eq=False)
class OJPricing(TidalChoices):
    """Choose one of 12 prices for a carton of orange juice, customer by customer.

    Description:
        Customers are rows of the orange-juice data (1,070 purchases of Minute Maid or Citrus Hill,
        in the `ISLP` package; see `envs/data/README.md`), resampled with replacement. Each sees the
        price that the agent sets and buys by a logit that was fitted once to those purchases. On
        average over customers a uniformly random price earns 0.393 dollars per round, the best
        fixed price 0.442 and the best price for every context 0.514. "Best" means under the fitted
        model, not in the real world. There is no outside option, as every purchase of the data is
        of one of the two brands: a customer who does not buy Minute Maid buys the rival.

    Action space:
        `Discrete(12)`: `env.unwrapped.prices[action]` dollars, 1.19 to 2.29 in steps of 0.10.

    Observation space:
        `Box`, shape (3,): (1, rival's sale price, loyalty to the rival) / sqrt(3), the last two
        scaled to [-1, 1] from [1.39, 2.09] dollars and [0, 1]; Euclidean norm at most 1.

    Rewards:
        Dollars: (price - unit cost 0.80) if the customer buys, else 0; in [0, 1.49].

    Arguments:
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; the reward is 0 until then.
        * `season`, `drift`, `shock`: shifts of everybody's utility of a purchase: (amplitude,
          period) adds amplitude sin(2 pi t / period) in round t; (step, range) a reflected random
          walk; (round, size) `size` from that round on. The oracle knows them, and is exact.
          `clock`: True if contexts include the season's phase, (x, sin, cos) / sqrt(2).
    """

    horizon: int = 20_000
    delay: int = 0

    def __post_init__(self) -> None:
        self._demand = demand()
        self._margins = self.prices - self._demand.cost
        self._known = self._demand.context
        self._chances = self._demand.probability(rows(len(self._known))[:, None], self.prices)
        self.spec = PriceListSpec(
            n_actions=len(self.prices),
            dim=self._dim(),
            horizon=self.horizon,
            prices=tuple(self.prices.tolist()),
            unit_cost=self._demand.cost,
            reward_high=float(self._margins.max()),
            link="other",
            delay=self.delay,
            reward_unit="dollars",
        )

    @property
    def prices(self) -> Floats:
        """Price of each action, dollars, (12,)."""
        return self._demand.prices


@dataclass(kw_only=True, eq=False)
class OJContinuousPricing:
    """Choose any price in a range for a carton of orange juice, customer by customer.

    Description:
        The customers and the demand model of `dpbandit/OJPricing-v0`, where the price is a real
        number.

    Action space:
        `Box(1.19, 2.29, ())`: the price, in dollars.

    Observation space:
        `Box`, shape (3,), as in `dpbandit/OJPricing-v0`.

    Rewards:
        Dollars: (price - unit cost 0.80) if the customer buys, else 0; in [0, 1.49]. The oracle
        price is exact: cost + (1 + W(exp(utility - slope cost - 1))) / slope with Lambert's W,
        clipped to the range. The best fixed price is searched over whole cents.

    Arguments:
        * `horizon`: rounds. `delay`: rounds until a purchase is seen; the reward is 0 until then.
        * `season`, `drift`, `shock`: as in `dpbandit/OJPricing-v0`.
    """

    horizon: int = 20_000
    season: Sequence[float] | None = None
    drift: Sequence[float] | None = None
    shock: Sequence[float] | None = None
    delay: int = 0

    def __post_init__(self) -> None:
        self._tides = Tides(season=self.season, drift=self.drift, shock=self.shock)
        D = self._demand = demand()
        low, high = float(D.prices[0]), float(D.prices[-1])
        self.spec = PriceSpec(
            dim=D.context.shape[1],
            horizon=self.horizon,
            reward_high=high - D.cost,
            delay=self.delay,
            reward_unit="dollars",
            low=low,
            high=high,
        )
        every = rows(len(D.utility))
        self._oracle = self._best_margin(every, 0.0)
        self._cents = np.arange(round(100 * low), round(100 * high) + 1) / 100
        self._margin_table = D.margin(every[:, None], self._cents)  # (1070, 111)

    def reset(self, streams: Streams) -> None:
        self._rows = streams.uniforms("customers")
        self._uniforms = streams.uniforms("purchases")
        self._delay = Delay(self.delay, len(streams))
        self._tide = self._tides.start(streams)
        self._totals = np.zeros((len(streams), len(self._cents)))
        self._fresh = True

    def context(self) -> Floats:
        if self._fresh:
            self._row, self._fresh = row_of(self._rows(), len(self._oracle)), False
        return self._demand.context[self._row]

    def step(self, action: AnyArray) -> Step:
        price = self.spec.validate(action, len(self._totals))
        row, self._fresh = self._row, True
        tide = self._tide.take(1)[0]
        if self._tides == Tides():
            oracle, margins = self._oracle[row], self._margin_table[row]
        else:
            oracle = self._best_margin(row, tide)
            margins = self._demand.margin(row[:, None], self._cents, tide[:, None])
        self._totals += margins
        margin = price - self._demand.cost
        buys = self._demand.probability(row, price, tide)
        expected = margin * buys
        reward = self._delay(margin * (self._uniforms() < buys))
        return Step(reward, expected, oracle, oracle - expected)

    def best_fixed(self) -> Floats:
        return self._cents[self._totals.argmax(axis=1)]

    def hindsight(self) -> float:
        return 0.0

    def _best_margin(self, row: Ints, tide: Floats | float) -> Floats:
        """Return the expected margin at the best price for each customer of `row`, (R,)."""
        D = self._demand
        # the margin has one peak in the price, so the best price in the range is the clipped peak
        surplus = scipy.special.lambertw(np.exp(D.utility[row] + tide - D.slope * D.cost - 1)).real
        best = np.asarray(D.cost + (1 + surplus) / D.slope).clip(self.spec.low, self.spec.high)
        return D.margin(row, best, tide)


@dataclass(kw_only=True, eq=False)
class ReferencePricing(ResampledChoices):
    """Price orange juice for customers who compare each price with a reference price.

    Description:
        The customers and the demand model of `dpbandit/OJPricing-v0`; a price p adds `weight` (r -
        p) to the logit of a purchase, where r is the reference price. With `reference="list"` it is
        a fixed public list price. With `reference="paid"` it is an average of recent prices: the
        list price in round 1, then memory r + (1 - memory) p. Prices are personal, so one
        customer's price affects LATER CUSTOMERS' ANSWERS directly, even if the agent has no memory.
        Certificates do not cover this and say "not covered".

    Action space:
        `Discrete(12)`: `env.unwrapped.prices[action]` dollars, as in `dpbandit/OJPricing-v0`.

    Observation space:
        `Box`, shape (3,), as in `dpbandit/OJPricing-v0`.

    Rewards:
        Dollars: (price - unit cost 0.80) if the customer buys, else 0; in [0, 1.49]. Regret is
        measured against the best price for this customer at this reference price: the oracle
        ignores the effect of a price on later references, and a regret of 0 is attainable.

    Starting state:
        The first customer, the list price as reference.

    Arguments:
        * `reference`: "list" or "paid". `list_price`: dollars.
        * `weight`: increase of the logit per dollar below the reference. `memory`: weight of the
          last reference in the next, in [0, 1).
        * `horizon`: rounds.
    """

    reference: Literal["list", "paid"] = "list"
    list_price: float = 1.99
    weight: float = 1.0
    memory: float = 0.9
    horizon: int = 20_000

    def __post_init__(self) -> None:
        one_of("reference", self.reference, ("list", "paid"))
        inside("list_price", self.list_price, 0, 100, ends=True)
        inside("weight", self.weight, 0, 100, ends=True)
        inside("memory", self.memory, 0, 1, ends=True)
        D = demand()
        self.prices, self._margins, self._known = D.prices, D.prices - D.cost, D.context
        chances = D.probability(rows(len(D.utility))[:, None], D.prices)  # (1070, 12)
        self._logits = scipy.special.logit(chances)
        self._chances = self._reference_chances(self._logits, np.array(self.list_price))
        self.spec = PriceListSpec(
            n_actions=len(D.prices),
            dim=D.context.shape[1],
            horizon=self.horizon,
            prices=tuple(D.prices.tolist()),
            unit_cost=D.cost,
            reward_high=float(self._margins.max()),
            link="other",
            reward_unit="dollars",
            followed=self.reference == "paid",
        )

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._paid: Floats = np.full(len(streams), float(self.list_price))
        self._always: Floats = np.full(len(self.prices), float(self.list_price))
        """reference if each price had been charged in all rounds so far, (12,)"""

    def step(self, action: AnyArray) -> Step:
        if self.reference == "list":
            return super().step(action)
        action, i = self.spec.validate(action, len(self._totals)), self._next
        self._next = i + 1
        logits = self._logits[self._row[i]]
        chance = self._reference_chances(logits, self._paid[:, None])  # (R, 12)
        mean, price = self._margins * chance, self.prices[action]
        self._totals += self._margins * self._reference_chances(logits, self._always)
        self._always = self.memory * self._always + (1 - self.memory) * self.prices
        expected, oracle = pick(mean, action), mean.max(axis=1)
        reward = self._margins[action] * (self._sale_uniforms[i] < pick(chance, action))
        self._paid = self.memory * self._paid + (1 - self.memory) * price
        return Step(reward, expected, oracle, oracle - expected)

    def _answers(self, row: Ints, uniforms: Floats) -> Users:
        self._row, self._sale_uniforms = row, uniforms
        return super()._answers(row, uniforms)

    def _reference_chances(self, logits: Floats, reference: Floats) -> Floats:
        """Return P(sale) at every price; `logits` are those at a price equal to the reference."""
        return np.asarray(scipy.special.expit(logits + self.weight * (reference - self.prices)))
