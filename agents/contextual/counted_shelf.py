"""The counted shelf: a stock that is known by a private count, and opened by quota."""

from dataclasses import dataclass
from math import exp, inf, log, sqrt
from typing import Literal

import numpy as np
from scipy.optimize import brentq
from scipy.special import log_ndtr, logsumexp

from dpbandit.agents.contextual.shelf_learners import KnownDemand, LearnedDemand
from dpbandit.base import Floats, InputError, Ints, Streams, gaussian_target, inside, one_of, whole
from dpbandit.privacy import Ledger, SquareRoot, mu_of, no_privacy
from dpbandit.privacy.calibrated import noisy_prefix_sum
from dpbandit.privacy.ledger import COUNTED
from dpbandit.privacy.prefix_sums import coefficients, leaves
from dpbandit.privacy.sales import SalesCount
from dpbandit.specs import Spec, StockSpec, fits

_SLIP = 0.1
"""Of delta, at most, for what a shop that refuses customers may say."""
_BATCH = 50
_MOST = 20.0
"""An epsilon beyond which delta could not pay e^epsilon times a slip that is worth planning."""
_ROUNDING = 1e-12
"""Of mu, so that no certificate exceeds its claim by the last digit."""


@dataclass(frozen=True, kw_only=True)
class CountedShelf:
    """Sell a stock at its bid price, and know what is left by a private count alone.

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

    Code:
        Played by `CountedShelfAgent`; demand comes from `KnownDemand` or `LearnedDemand`
        (shelf_learners.py), bid prices are `dpbandit.specs.stock.BidPrices`. What is learned
        is FADE's: `FadingPrices` (fade_residuals.py), on `FadingReleases` (fading_releases.py),
        builds `ResidualPricing` (residual_pricing.py) on `demand_rows` (demand.py), with
        `ImaginedCustomers` (imagined_customers.py) and `in_force` (policies.py), and fits by
        `ReleasedScores` (released_scores.py) without a prior, `NoPrior` (public_prior.py).

    Differs from the paper:
        It is this project's own; the fluid plan is that of Gallego and van Ryzin (1994). A customer
        who reads "closed" tells the learner what it predicted of her, which says nothing.

    >>> from dpbandit import certify
    >>> proof = certify(CountedShelf(), "StockPricing", accountants=False)
    >>> round(proof.epsilon, 6), proof.ledger.slip < 1e-6
    (1.0, True)
    """

    epsilon: float = 1.0
    """> 0; inf counts exactly"""
    delta: float = 1e-5
    """in (0, 1)"""
    demand: Literal["learned", "known"] = "learned"
    """by FADE; known demand shows what the count alone costs"""
    counting: float = 0.1
    """share of mu^2 for the counter, in (0, 1); all of it where demand is known"""
    batch: int | None = None
    """rounds from one count to the next; if None, 50, in short runs T / 8"""
    oversold: float = 1e-6
    """chance that more is sold than there is, at most"""

    def __post_init__(self) -> None:
        gaussian_target(self.epsilon, self.delta)
        if _MOST < self.epsilon < inf:
            raise InputError(
                f"Expected epsilon={self.epsilon} to be at most {_MOST:g}, or inf: for refusals "
                "delta pays e^epsilon times the chance of being oversold."
            )
        one_of("demand", self.demand, ("learned", "known"))
        inside("counting", self.counting, 0, 1, ends=False)
        if self.batch is not None:
            whole("batch", self.batch, 1)
        inside("oversold", self.oversold, 0, 0.5, ends=False)

    def make(self, spec: Spec, streams: Streams) -> "CountedShelfAgent":
        """A running agent; raises `InputError` for anything but prices of a stock."""
        return CountedShelfAgent(self, fits(self, spec, StockSpec), streams)

    def slip(self, spec: StockSpec) -> float:
        """beta, the chance of being oversold that is planned for."""
        if self.epsilon == inf or not spec.carries:
            return self.oversold
        return min(self.oversold, _SLIP * self.delta / (1 + exp(self.epsilon)))


class CountedShelfAgent:
    """See `CountedShelf`."""

    def __init__(self, config: CountedShelf, spec: StockSpec, streams: Streams) -> None:
        slip = config.slip(spec)
        self._batch = config.batch or max(1, min(_BATCH, spec.horizon // 8))
        mu = inf
        if config.epsilon < inf:
            told = slip * (1 + exp(config.epsilon)) if spec.carries else 0.0
            mu = mu_of(config.epsilon, config.delta - told) * (1 - _ROUNDING)
        share = 1.0 if config.demand == "known" else config.counting
        multiplier = 0.0
        if mu < inf:
            released = leaves(spec.horizon, self._batch)
            multiplier = SquareRoot().column_norm(released) / (sqrt(share) * mu)
        self._counter = noisy_prefix_sum(
            SquareRoot(),
            SalesCount(),
            streams,
            horizon=spec.horizon,
            refresh_every=self._batch,
            noise_multiplier=multiplier,
        )
        self._demand: KnownDemand | LearnedDemand
        if config.demand == "known":
            self._demand = KnownDemand(spec)
        else:
            rest = sqrt(1 - share) * mu if mu < inf else inf
            self._demand = LearnedDemand(spec, streams, mu=rest, delta=config.delta)
        self._margin = safety_margin(multiplier, self._counter.leaves, slip)
        spends = (self._counter.spend, *self._demand.ledger.spends)
        self.ledger = no_privacy("exact counts")
        if mu < inf:
            self.ledger = Ledger(spends, scope=COUNTED, slip=slip if spec.carries else 0.0)
        self._spec = spec
        R = len(streams)
        self._round = 0
        self._rem: Floats = np.full(R, spec.stock - self._margin)
        self._bid: Floats = self._bid_prices()

    def act(self, context: Floats) -> Ints:
        """Prices (R,), as places on the list, or `closed` beyond the quota."""
        price = self._demand.act(context, self._bid)
        opened = np.floor(self._rem.clip(0, self._batch)) > self._round % self._batch
        return np.where(opened, price, self._spec.closed)

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Count a sale, and learn demand from it."""
        self._demand.update(context, action, feedback)
        sold = np.nan_to_num(feedback, nan=0.0) > 0
        release = self._counter(1.0 * (sold & (action != self._spec.closed))[:, None])
        self._round += 1
        if release is not None:
            self._rem = self._spec.stock - release[:, 0] - self._margin
        if self._round % self._batch == 0:
            self._bid = self._bid_prices()

    def _bid_prices(self) -> Floats:
        left = max(1, self._spec.horizon - self._round)
        return self._demand.bid(self._rem / left).clip(0, self._spec.largest_bid)


def safety_margin(multiplier: float, releases: int, beta: float) -> float:
    """m with sum over releases of Phi(-m / sd_k) = beta; sd_k of the noise of release k."""
    if not multiplier or not releases:
        return 0.0
    sd = multiplier * np.sqrt(np.cumsum(np.square(coefficients(releases))))
    most = 40.0 * float(sd[-1])
    return float(brentq(lambda m: logsumexp(log_ndtr(-m / sd)) - log(beta), 0.0, most, xtol=1e-9))
