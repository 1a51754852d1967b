"""Pricing a limited stock: orange juice for a season, and what no more is left of."""

from dataclasses import dataclass

import numpy as np

from dpbandit.base import AnyArray, Floats, Ints, Streams, rows
from dpbandit.envs.contextual.orange_juice import demand
from dpbandit.envs.contextual.problems import ResampledChoices
from dpbandit.specs.protocols import Step
from dpbandit.specs.stock import Oversold, PublicDemand, StockSpec, fluid_bound


@dataclass(kw_only=True, eq=False)
class StockPricing(ResampledChoices):
    """Price a limited stock of orange juice, customer by customer, or close.

    Description:
        The customers and the frozen demand of `dpbandit/OJPricing-v0`, and `stock` cartons for all
        of them. Regret is measured against F / T a round, F the fluid bound of Gallego and van
        Ryzin (Management Science, 1994), which no policy can exceed on average: 2,235, 2,980, 4,319
        and 4,933 dollars for stocks of 1,500, 2,000, 3,000 and 4,000 and T = 10,000. It is not
        attained, and a round may have a negative regret, as long as there is stock.

        A truthful "sold out" is not private at any epsilon, whatever prices do: who looks after the
        last unit learns that everybody before has bought. So with `oversold="refuse"` certificates
        of agents that do not count their stock privately are "not covered".

    Action space:
        `Discrete(13)`: `env.unwrapped.prices[action]` dollars, 1.19 to 2.29; 12 is closed.

    Observation space:
        `Box`, shape (3,), as in `dpbandit/OJPricing-v0`. How much is left is not shown: an agent
        knows what it sold.

    Rewards:
        Dollars: (price - unit cost 0.80) if the customer buys, else 0; in [0, 1.49]. Who is refused
        buys nothing. Regret also has the cost of units that were ordered, of which agents are not
        told.

    Starting state:
        The first customer, and a full shelf.

    Episode end:
        Truncation after `horizon` customers, sold out or not; never terminates.

    Arguments:
        * `horizon`: rounds. `stock`: cartons.
        * `oversold`: what becomes of a sale beyond the stock: "refuse" (it is lost), or "order" (it
          is made, and the carton costs `order_cost` dollars more).

    Version history:
        * v0: first release.
    """

    horizon: int = 10_000
    stock: int = 3_000
    oversold: Oversold = "refuse"
    order_cost: float = 2.0

    def __post_init__(self) -> None:
        D = self._demand = demand()
        self._worth = D.prices - D.cost
        self._known = D.context
        self._chances = D.probability(rows(len(D.utility))[:, None], D.prices)  # (1070, 12)
        theta = np.linalg.lstsq(D.context, D.utility)[0]  # the utility is linear in the context
        self.spec = StockSpec(
            n_actions=len(D.prices),
            dim=D.context.shape[1],
            horizon=self.horizon,
            prices=tuple(D.prices.tolist()),
            unit_cost=D.cost,
            reward_high=float(self._worth.max()),
            link="other",
            reward_unit="dollars",
            stock=self.stock,
            oversold=self.oversold,
            order_cost=self.order_cost,
            public_demand=PublicDemand(
                tuple(theta.tolist()), float(D.slope), tuple(map(tuple, D.context.tolist()))
            ),
        )
        self.fluid = fluid_bound(
            self._worth, self._chances, self.stock, self.horizon, self.spec.largest_bid
        )

    @property
    def prices(self) -> Floats:
        """The price of each action but the last in dollars, (12,)."""
        return self._demand.prices

    def reset(self, streams: Streams) -> None:
        """Start an episode with a full shelf, one replica for each stream."""
        super().reset(streams)
        self.sold, self._rounds = np.zeros(len(streams), np.int64), 0

    def step(self, action: AnyArray) -> Step:
        """Ask the current customers for prices (R,), or close, and move on to the next."""
        R, K = len(self.sold), len(self._worth)
        action = self.spec.validate(action, R)
        mean, paid = self._table.mean[self._next], self._table.reward[self._next]
        self._next += 1
        self._totals += mean
        shut, price = action == K, self._offset + np.minimum(action, K - 1)
        out = self.sold >= self.stock
        refused = shut | out if self.oversold == "refuse" else shut
        reward = np.where(refused, 0.0, paid.take(price))
        expected = np.where(refused, 0.0, mean.take(price))
        if self.oversold == "order":
            buys = expected / self._worth[np.minimum(action, K - 1)]
            expected = expected - np.where(out, self.order_cost * buys, 0.0)
        self.sold = self.sold + (reward > 0)
        self._rounds += 1
        return Step(reward, expected, np.zeros(R), -expected)

    def hindsight(self) -> Floats:
        """F / T a round so far, (R,)."""
        return np.full(len(self.sold), self.fluid / self.horizon * self._rounds)

    def best_fixed(self) -> Ints:
        """The price (R,) with the largest expected total so far, no more sold than there was."""
        wanted = self._totals / self._worth
        earned = self._worth * np.minimum(wanted, self.stock)
        if self.oversold == "order":
            over = np.maximum(wanted - self.stock, 0)
            earned = self._totals - self.order_cost * over
        return np.asarray(earned.argmax(axis=1))
