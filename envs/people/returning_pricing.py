"""Prices of electricity for customers who come back and compare them with those of rivals.

Tastes are drawn from a population fitted to real people (see `envs/data/electricity.md`).
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from dpbandit.base import AnyArray, Floats, Ints, Streams, inside, pick, positive, rows
from dpbandit.envs.arrivals import Visitors
from dpbandit.envs.nonstationarity import Arrivals
from dpbandit.specs import Prior, Step
from dpbandit.specs.people import NOBODY
from dpbandit.specs.rivals import RivalsSpec

_OFFER = (0.0, 1.0, 0.0, 0.0, 0.0)
"""Attributes of the agent's contract (no lock-in, local but not well known, fixed price)"""
_RIVALS = 3  # number of rivals' contracts at a visit
_RATE_COST_CENTS = 8.0
"""Guessed mean price of rates by time of day or season, cents per kWh; fixed prices are 7 or 9"""


@cache
def frozen() -> dict[str, Any]:
    """Read the population in `envs/data/electricity_population.json`, and the rivals' contracts."""
    text = (files("dpbandit.envs") / "data" / "electricity_population.json").read_text()
    population: dict[str, Any] = json.loads(text)
    return population


def guessed() -> Prior:
    """Return a weak prior of people's part-worths for agents without a survey.

    Utility falls by about 1 for each cent of price; attributes are worth a few cents at most. Rates
    by time of day or season cost about as much as fixed prices, so their part-worths correlate with
    the price coefficient.
    """
    covariance = np.diag([0.5, 3.0, 3.0, 4.0, 4.0, 1.0]) ** 2
    by_price = np.zeros(6)
    by_price[3:5], by_price[5] = -_RATE_COST_CENTS / 2, 0.0
    covariance[3:5, 3:5] += np.outer(by_price, by_price)[3:5, 3:5]
    covariance[5, 3:5] = covariance[3:5, 5] = by_price[3:5]
    mean = (0.0, 0.0, 0.0, -_RATE_COST_CENTS, -_RATE_COST_CENTS, 0.0)
    return Prior(mean, covariance)


@dataclass(kw_only=True, eq=False)
class ReturningPricing:
    """Quote electricity prices to customers who come back; rivals' contracts are public.

    Description:
        361 people chose among contracts in a survey; a mixed logit was fitted to their choices, and
        every episode draws `people` anew from it (see `envs/data/electricity.md`). A customer's
        taste is constant. At each visit she compares the agent's contract, at one of 9 prices, with
        three contracts of rivals, drawn from the questions of the survey, and chooses one of the
        four by her own logit. In cents per kWh and visit, a random price earns 1.42, the best fixed
        one (8 cents) 1.93, the best for each set of rivals 1.98, for each person 2.26, and for each
        person and set of rivals 2.46; regret is measured against this last one. "Best" means under
        the fitted model.

    Action space:
        `Discrete(9)`: a price of 5, 6, ..., 13 cents per kWh.

    Observation space:
        `Box`, shape (20,): the person's number in [0, people), -1 if nobody comes; then 1 and
        the rivals' contracts, three rows of length in years, local, well known, rates by time of
        day, by season, and fixed price (0 if there are rates), each divided by its largest value,
        all divided by sqrt(19); zeros in an empty slot. `spec.visit.offers` returns rows.

    Rewards:
        (price - `cost`) if she chooses the agent's contract, else 0, in cents per kWh. Regret is
        measured against the best price for her, given the rivals; it is 0 in an empty slot.

    Starting state:
        New people and the first slot.

    Arguments:
        * `people`, `visits`, `horizon`: people, largest number of visits of each, slots (rounds).
        * `arrivals`: "robin" in turns; "exactly" `visits` random slots for each; "poisson" by a
          rate drawn for each; "loyal" as "exactly", but half as often after a visit without a sale.
        * `empty`: probability that a slot's candidate does not come, whatever happened before.
        * `cost`: cents per kWh, below 5; an assumption.
        * `survey_shift`, `survey_spread`: error of the public survey in the spec: the mean of the
          logarithm of the price coefficient is `survey_shift` standard deviations too large, its
          covariance is multiplied by `survey_spread`. Customers do not change.

    Privacy protects a person, as in `ReturningUsers`. `spec.visit.survey` is the population that a
    public survey found, `spec.visit.guess` a weak prior for agents without it.
    """

    people: int = 500
    visits: int = 40
    horizon: int = 20_000
    arrivals: Arrivals = "robin"
    empty: float = 0.0
    cost: float = 4.0
    survey_shift: float = 0.0
    survey_spread: float = 1.0

    def __post_init__(self) -> None:
        levels: Sequence[float] = tuple(float(p) for p in range(5, 14))
        inside("cost", self.cost, 0, levels[0], ends=False)
        inside("survey_shift", self.survey_shift, -5, 5, ends=True)
        positive("survey_spread", self.survey_spread)
        mean, covariance = (np.array(frozen()[name]) for name in ("mean", "covariance"))
        self._mean, self._root = mean, np.linalg.cholesky(covariance)
        self._offers = np.array(frozen()["rivals"], float).reshape(-1, _RIVALS, len(mean))
        self._design_cdf = np.cumsum(frozen()["times"]) / np.sum(frozen()["times"])
        found = mean.copy()
        found[-1] += self.survey_shift * covariance[-1, -1] ** 0.5
        visit = RivalsSpec(
            n_actions=len(levels),
            horizon=self.horizon,
            prices=tuple(levels),
            unit_cost=self.cost,
            reward_high=levels[-1] - self.cost,
            link="other",
            reward_unit="cents a kWh",
            rivals=_RIVALS,
            offer=_OFFER,
            largest=tuple(self._offers.max(axis=(0, 1)).tolist()),
            survey=Prior(found, self.survey_spread * covariance),
            guess=guessed(),
        )
        self._visit = visit
        self._visitors = Visitors(self)
        self.spec = self._visitors.spec(visit)

    def reset(self, streams: Streams) -> None:
        R, D = len(streams), len(self._mean)
        self._visitors.start(streams)
        self._designs, self._uniforms = streams.uniforms("rivals"), streams.uniforms("sales")
        normals = streams.world.normals("tastes", self.people, D)()
        self._theta = self._mean + normals @ self._root.T  # (R, N, D)
        self._totals = np.zeros((R, self._visit.n_actions))
        self._ready = False

    def context(self) -> Floats:
        if not self._ready:
            self._person, self._ready = self._visitors.next(), True
            place = np.searchsorted(self._design_cdf, self._designs(), side="right")
            self._rival_offers = self._offers[np.minimum(place, len(self._offers) - 1)]
            seen = self._visit.context_of(self._rival_offers) * (self._person != NOBODY)[:, None]
            self._context = self.spec.context(self._person, seen)
        return self._context

    def step(self, action: AnyArray) -> Step:
        self.context()
        here, R = self._person != NOBODY, len(self._person)
        action = self.spec.validate(action, R)
        parameters = self._theta[rows(R), np.maximum(self._person, 0)]
        chances = self._visit.sales(parameters[:, None], self._rival_offers)[:, 0]  # (R, K)
        mean = self._visit.margins * chances * here[:, None]
        self._totals += mean
        expected, oracle = pick(mean, action), mean.max(axis=1)
        sold = here & (self._uniforms() < pick(chances, action))
        reward = np.where(sold, self._visit.margins[action], 0.0)
        self._visitors.rewarded(reward, self._visit.margins[0])
        self._ready = False
        return Step(reward, expected, oracle, oracle - expected)

    def best_fixed(self) -> Ints:
        return self._totals.argmax(axis=1)

    def hindsight(self) -> float:
        return 0.0
