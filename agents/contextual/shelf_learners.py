"""Where a counted shelf has its demand from: told, or learned by FADE from releases."""

from math import inf
from typing import cast

import numpy as np

from dpbandit.agents.contextual.fade import FADE
from dpbandit.agents.contextual.residual_pricing import ResidualPricing
from dpbandit.base import Floats, InputError, Ints, Streams
from dpbandit.privacy import epsilon_of, no_data
from dpbandit.specs import BidPrices, StockSpec, best_price

_FINE, _COARSE = 2001, 49
"""Bid prices that are tried, once, and when they are asked for after a release."""
_EVERY = 3
"""Of the imagined customers, one in so many is asked at every bid price."""


class KnownDemand:
    """The public demand and population of the problem: nothing is learned."""

    def __init__(self, spec: StockSpec) -> None:
        if spec.public_demand is None:
            raise InputError(
                "Expected demand='learned': the specification of this problem tells no demand."
            )
        self.ledger = no_data()
        self._spec, self._told = spec, spec.public_demand
        people = self._told.sales(np.array(self._told.people), spec.prices)
        self._bids = BidPrices(spec.margins, people[None], points=_FINE)

    def act(self, context: Floats, bid: Floats) -> Ints:
        """Prices (R,) for contexts (R, d) at bid prices (R,)."""
        return best_price(self._spec.margins, self._told.sales(context, self._spec.prices), bid)[0]

    def bid(self, rate: Floats) -> Floats:
        """The bid prices (R,) at which `rate` (R,) sell a round."""
        return self._bids(rate)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Nothing."""


class LearnedDemand:
    """FADE's demand; its imagined customers are the population, so that nobody is looked at.

    Guarantee:
        mu-GDP, as its learner; all else is a function of releases.
    """

    def __init__(self, spec: StockSpec, streams: Streams, *, mu: float, delta: float) -> None:
        epsilon = inf if mu == inf else epsilon_of(mu, delta)
        learner = FADE(epsilon=epsilon, delta=delta, model="prices")
        self._learner = cast(ResidualPricing, learner.make(spec, streams))
        self.ledger = self._learner.ledger
        self._spec = spec
        self._bids: BidPrices | None = None
        self._seen = 0

    def act(self, context: Floats, bid: Floats) -> Ints:
        """Prices (R,) for contexts (R, d) at bid prices (R,); at random before a release."""
        if not self._learner.releases:
            return self._learner.act(context)
        sales = self._learner.scores(context) / self._spec.margins
        return best_price(self._spec.margins, sales, bid)[0]

    def bid(self, rate: Floats) -> Floats:
        """The bid prices (R,) at which `rate` (R,) sell a round; 0 before a release."""
        if self._learner.releases > self._seen:
            self._seen = self._learner.releases
            sales = self._learner.imagined_sales()[:, ::_EVERY]
            self._bids = BidPrices(self._spec.margins, sales, points=_COARSE)
        return np.zeros(len(rate)) if self._bids is None else self._bids(rate)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn from who was asked a price; who was not says what was predicted of her."""
        shut = action == self._spec.closed
        predicted = self._learner.scores(context)[:, 0]
        said = np.where(shut, predicted, feedback)
        self._learner.update(context, np.where(shut, 0, action), said)
