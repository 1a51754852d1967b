"""Customers who compare a price with another one: that of a list, or what was paid lately."""

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt
from scipy.special import expit, logit

from dpbandit.base.arrays import Floats, Ints, pick, rows
from dpbandit.base.inputs import inside, one_of
from dpbandit.base.random_streams import Streams
from dpbandit.envs.contextual.orange_juice import demand
from dpbandit.envs.contextual.problems import Users
from dpbandit.envs.contextual.resampled import ResampledChoices
from dpbandit.specs.protocols import PriceListSpec, Step


@dataclass(kw_only=True, eq=False)
class ReferencePricing(ResampledChoices):
    """Choose prices for customers of orange juice who compare them with a reference price.

    Description:
        The customers and the frozen demand of `dpbandit/OJPricing-v0`; a price p adds
        `weight` (r - p) to the logit of a purchase, r the reference. With `reference="list"` that
        is a public list price, for ever. With `reference="paid"` it is what customers were asked
        lately, r_1 the list price and then r = memory r + (1 - memory) p: prices are personal, so
        what one customer showed reaches LATER CUSTOMERS' ANSWERS through the world, though no agent
        remembers anything. No certificate covers that; they say "not covered".

    Action space:
        `Discrete(12)`: `env.unwrapped.prices[action]` dollars, as in `dpbandit/OJPricing-v0`.

    Observation space:
        `Box`, shape (3,), as there.

    Rewards:
        Dollars: (price - unit cost 0.80) if the customer buys, else 0; in [0, 1.49]. Regret is
        against the best price for this customer at this reference: what a price does to later
        references is not in the oracle, and a regret of 0 is attainable.

    Starting state:
        The first customer, the list price as reference.

    Episode end:
        Truncation after `horizon` customers; never terminates.

    Arguments:
        * `reference`: "list" or "paid". `list_price`: dollars.
        * `weight`: of a dollar below the reference, in the logit. `memory`: above, in [0, 1).
        * `horizon`: rounds.

    Version history:
        * v0: first release.
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
        self.prices, self._worth, self._known = D.prices, D.prices - D.cost, D.context
        self._logits = logit(D.probability(rows(len(D.utility))[:, None], D.prices))  # (1070, 12)
        self._chances = self._against(self._logits, np.array(self.list_price))
        self.spec = PriceListSpec(
            n_actions=len(D.prices),
            dim=D.context.shape[1],
            horizon=self.horizon,
            prices=tuple(D.prices.tolist()),
            unit_cost=D.cost,
            reward_high=float(self._worth.max()),
            link="other",
            reward_unit="dollars",
            followed=self.reference == "paid",
        )

    def _start(self, streams: Streams) -> None:
        super()._start(streams)
        self._paid: Floats = np.full(len(streams), float(self.list_price))
        self._always: Floats = np.full(len(self.prices), float(self.list_price))
        """the reference if a price is asked throughout"""

    def step(self, action: npt.NDArray[Any]) -> Step:
        """Ask the current customers for prices (R,) and move on to the next."""
        if self.reference == "list":
            return super().step(action)
        action, i = self.spec.validate(action, len(self._totals)), self._next
        self._next = i + 1
        logits = self._logits[self._row[i]]
        chance = self._against(logits, self._paid[:, None])  # (R, 12)
        mean, price = self._worth * chance, self.prices[action]
        self._totals += self._worth * self._against(logits, self._always)
        self._always = self.memory * self._always + (1 - self.memory) * self.prices
        expected, oracle = pick(mean, action), mean.max(axis=1)
        reward = self._worth[action] * (self._lucky[i] < pick(chance, action))
        self._paid = self.memory * self._paid + (1 - self.memory) * price
        return Step(reward, expected, oracle, oracle - expected)

    def _answers(self, row: Ints, luck: Floats) -> Users:
        self._row, self._lucky = row, luck
        return super()._answers(row, luck)

    def _against(self, logits: Floats, reference: Floats) -> Floats:
        """P(sale) at every price, where utilities are `logits` without a reference."""
        return np.asarray(expit(logits + self.weight * (reference - self.prices)))
