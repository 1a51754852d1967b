"""The counted shelf: sell a limited stock that only a private counter knows.

Demand is told, or learned by FADE from releases.
"""

from math import exp, inf, log, sqrt
from typing import Annotated, Literal, cast

import numpy as np
from scipy.special import log_ndtr, logsumexp

from dpbandit.agent import Count, Inside01, Private
from dpbandit.agents.contextual.fade import FADE
from dpbandit.agents.contextual.residual_pricing import ResidualPricing
from dpbandit.base import Floats, InputError, Ints, Streams, inside
from dpbandit.privacy import Ledger, SquareRoot, epsilon_of, mu_of, no_data, no_privacy
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.ledger import COUNTED
from dpbandit.privacy.prefix_sums import coefficients, leaves
from dpbandit.privacy.premises import ALL, Fact
from dpbandit.privacy.sales import SalesCount
from dpbandit.specs import BidPrices, StockSpec, best_price

_SLIP = 0.1
"""Of delta, at most, for what a shop that refuses customers may say."""
_BATCH = 50
_MOST = 20.0
"""An epsilon beyond which delta could not pay e^epsilon times a slip that is worth planning."""
_ROUNDING = 1e-12
"""Of mu, so that no certificate exceeds its claim by the last digit."""
_FINE, _COARSE = 2001, 49
"""Bid prices that are tried, once, and when they are asked for after a release."""
_EVERY = 3
"""Of the imagined customers, one in so many is asked at every bid price."""


class CountedShelf(Private[StockSpec]):
    """Sell a limited stock at bid prices; a private count says how much is left.

    1. Sales are counted in batches of `batch` rounds; the counts' running sum is released with the
       correlated noise N_k of the square root of prefix sums (`SquareRoot`), of stddev sd_k.
    2. rem = c - (released sales) - m is taken to be left, m such that the sum over releases of
       Phi(-m / sd_k), the chance that noise hides more than m sales, is `oversold`.
    3. The next batch opens for its first floor(rem) customers; all others read "closed".
    4. Each is asked argmax_p (p - cost - lambda) P(sale | x, p), lambda the least bid price with
       which rem over the rounds left sell, of a population and a demand, public or released.

    Guarantee:
        (epsilon, delta)-joint DP of all actions and refusals, also where the shop refuses customers
        once all units are sold: prices and quotas are functions of releases and of the round; a
        user enters the counter and the learner, mu_1- and mu_2-GDP, sqrt(mu_1^2 + mu_2^2) together.
        A batch sells at most rem, which is no more than there is unless N_k < -m; so with
        probability 1 - beta, whoever the users are, nobody is refused, and delta pays
        (1 + e^epsilon) beta for the rest, beta at most `oversold` and a tenth of what delta has.
        Where units are ordered instead, nobody is ever refused, and delta pays nothing.

    Differs from the paper:
        It is this project's own; the fluid plan is that of Gallego and van Ryzin (1994). A customer
        who reads "closed" tells the learner what it predicted of her, which says nothing.

    >>> from dpbandit import certify
    >>> proof = certify(CountedShelf(), "StockPricing", accountants=False)
    >>> round(proof.epsilon, 6), proof.ledger.slip < 1e-6
    (1.0, True)
    """

    # who is refused is a function of releases and of the clock; rounds are passed on as they are
    hands_on = ALL

    plays = StockSpec
    epsilon: float = 1.0
    """> 0; inf counts exactly"""
    delta: float = 1e-5
    """in (0, 1)"""
    demand: Literal["learned", "known"] = "learned"
    """whether demand is learned by FADE or known; known demand shows the cost of the count alone"""
    counting: Inside01 = 0.1
    """share of mu^2 for the counter, in (0, 1); all of it where demand is known"""
    batch: Count | None = None
    """rounds from one count to the next; if None, 50, in short runs T / 8"""
    oversold: Annotated[float, lambda name, value: inside(name, value, 0, 0.5, ends=False)] = 1e-6
    """largest probability of selling more than there is"""

    def check(self) -> None:
        """Refuse delta = 0, and targets for which no slip is small enough."""
        super().check()
        if _MOST < self.epsilon < inf:
            raise InputError(
                f"Expected epsilon={self.epsilon} to be at most {_MOST:g}, or inf: for refusals "
                "delta pays e^epsilon times the chance of being oversold."
            )

    def start(self) -> None:
        """Split the budget between the counter and what learns demand."""
        spec, known, mu, slip = self.spec, self.demand == "known", inf, self.oversold
        if self.epsilon < inf:
            both = 1 + exp(self.epsilon)
            slip = min(slip, _SLIP * self.delta / both) if spec.carries else slip
            told = slip * both if spec.carries else 0.0
            mu = mu_of(self.epsilon, self.delta - told) * (1 - _ROUNDING)
        self.every = self.batch or max(1, min(_BATCH, spec.horizon // 8))
        share = 1.0 if known else self.counting
        multiplier = 0.0
        if mu < inf:
            released = leaves(spec.horizon, self.every)
            multiplier = SquareRoot().column_norm(released) / (sqrt(share) * mu)
        self.counter = noisy_prefix_sum(
            SquareRoot(),
            SalesCount(),
            self.streams,
            horizon=spec.horizon,
            refresh_every=self.every,
            noise_multiplier=multiplier,
        )
        self.sales: KnownDemand | LearnedDemand
        if known:
            self.sales = KnownDemand(spec)
        else:
            rest = sqrt(1 - share) * mu if mu < inf else inf
            self.sales = LearnedDemand(spec, self.streams, mu=rest, delta=self.delta)
        self.margin = safety_margin(multiplier, self.counter.leaves, slip)
        self.ledger = no_privacy("exact counts")
        if mu < inf:
            spends = (self.counter.spend, *self.sales.ledger.spends)
            self.ledger = Ledger(spends, scope=COUNTED, slip=slip if spec.carries else 0.0)
        self.round = 0
        self.rem: Floats = np.full(self.R, spec.stock - self.margin)
        self.bid: Floats = self.bid_prices()

    def act(self, context: Floats) -> Ints:
        """Prices (R,), as places on the list, or `closed` beyond the quota."""
        price = self.sales.act(context, self.bid)
        opened = np.floor(self.rem.clip(0, self.every)) > self.round % self.every
        return np.where(opened, price, self.spec.closed)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Count a sale, and learn demand from it."""
        self.sales.update(context, action, feedback)
        sold = (feedback > 0) & (action != self.spec.closed)  # what is no number is no sale
        release = self.counter(1.0 * sold[:, None])
        self.round += 1
        if release is not None:
            self.rem = self.spec.stock - release[:, 0] - self.margin
        if self.round % self.every == 0:
            self.bid = self.bid_prices()

    def bid_prices(self) -> Floats:
        """lambda (R,), with which what is left sells in the rounds that are left."""
        left = max(1, self.spec.horizon - self.round)
        return self.sales.bid(self.rem / left).clip(0, self.spec.largest_bid)


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

    # prices follow what is left, by the shop and not by the learner's own `act`
    hands_on = ALL - {Fact.ASKED}

    def __init__(self, spec: StockSpec, streams: Streams, *, mu: float, delta: float) -> None:
        epsilon = inf if mu == inf else epsilon_of(mu, delta)
        learner = FADE(epsilon=epsilon, delta=delta, model="prices", features="additive")
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
            sales = self._learner.imagined_sales(_EVERY)
            self._bids = BidPrices(self._spec.margins, sales, points=_COARSE)
        return np.zeros(len(rate)) if self._bids is None else self._bids(rate)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Learn from who was asked a price; who was not says what was predicted of her."""
        shut = action == self._spec.closed
        if shut.any():
            feedback = np.where(shut, self._learner.scores(context)[:, 0], feedback)
        self._learner.update(context, np.where(shut, 0, action), feedback)


def safety_margin(multiplier: float, releases: int, beta: float) -> float:
    """m with sum over releases of Phi(-m / sd_k) = beta; sd_k of the noise of release k."""
    from scipy.optimize import brentq  # not before: slow to import

    if not multiplier or not releases:
        return 0.0
    sd = multiplier * np.sqrt(np.cumsum(np.square(coefficients(releases))))
    most = 40.0 * float(sd[-1])
    return float(brentq(lambda m: logsumexp(log_ndtr(-m / sd)) - log(beta), 0.0, most, xtol=1e-9))
