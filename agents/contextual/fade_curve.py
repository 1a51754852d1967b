"""FADE's agent for price lists whose demand may be a line or any curve of the price."""

from collections.abc import Callable
from functools import partial
from math import ceil, sqrt
from typing import Any, NamedTuple, cast

import numpy as np
from scipy.special import expit

from dpbandit.agents.contextual.demand import CURVE_CROSSED
from dpbandit.agents.contextual.fade_prices import (
    CROSSED_WIDTH,
    IMAGINED_CUSTOMERS,
    LEAST_SLOPE,
    MIN_DRAW_WIDTH,
    STEPS,
    ScoredSales,
    falling,
)
from dpbandit.agents.contextual.fading import spec_after
from dpbandit.agents.contextual.released_scores import (
    Counts,
    Faded,
    ReleasedScores,
    Scores,
    in_ball,
)
from dpbandit.agents.contextual.shrunk_effects import averaged, ridge_of
from dpbandit.base import Floats, Ints, rows
from dpbandit.privacy import Parallel
from dpbandit.privacy.batches import CountedSums
from dpbandit.specs import Prior, SellingSpec, posterior

_BEND_PRIOR, _LINE_BEND_PRIOR = 4.0, 1e-3
"""Prior standard deviations of the parameters of `bends`, in the fit of a curve and of a line"""
_FIRST_OFFERS, _FIRST_OFFERS_NOISE = 5, 10
"""Rounds for which each price is offered at first, the first number plus the second / epsilon^.75;
chosen on problems of seeds 3 to 5 of experiments/choosing"""
_SALE_VARIANCE = 0.2
"""Rough variance of the number of sales in one round"""
_CLEAR_LOG_ODDS, _RELEASES_TO_REFIT = 6.0, 4
"""Log odds of one shape from which the other is fitted to every fourth release only"""


def first_offers(spec: SellingSpec, epsilon: float) -> int:
    """Return the rounds in which each price is offered at first, at most T / 10 for all."""
    offers = ceil(_FIRST_OFFERS + _FIRST_OFFERS_NOISE / epsilon**0.75)
    return min(offers, spec.horizon // (10 * spec.n_actions))


class Shape(NamedTuple):
    """Prior of the shape of demand, a line in the price or a curve."""

    bends: tuple[float, ...]
    """prior standard deviations of the parameters of `bends`"""
    admissible: Callable[[Floats], Floats]
    """map of parameters (R, D) to the nearest ones that are allowed"""
    below: float | None
    """upper end of the price slope, if it has one"""


class FadeCurve(ScoredSales):
    """Play price lists by a model of demand that may be any curve of the price.

    FADE's model of prices of one product, unless a known link makes utility linear in the price::

        first            offer each price n times, in blocks of random order; only the sales of each
                         price are released from these customers (`CountedSums`)
        each round       sum scores of sales and the customer's moments, as `FadePrices` does
        after a release  fit a line and a curve (a line and `bends`) to all releases and the counts,
                         both with effects of features that are shrunk as by `FadePrices`; a random
                         draw chooses between them, the curve with its posterior probability
                         (Laplace's approximation, even odds a priori, and a line that has to fall);
                         at odds of 400 the other is fitted to every fourth release only
        play             argmax_a margin_a logistic(phi_a . played), phi_a of `demand_rows`, played
                         drawn once a batch from the posterior of the chosen fit

    A customer moves one count by 1, which needs much less noise than a vector. A curve fits the
    average sales at each price, whatever the shape of demand; a line needs fewer customers. All
    customers have the same bends, and each her own level and slope.

    Guarantee:
        The guarantee of `Fading`, with sensitivity sqrt(4 + 4.5 0.5^2). Customers whose sales are
        counted, with Laplace noise of the whole epsilon, are not summed, so that all releases cost
        the larger cost of the two mechanisms (`Parallel`). The order of first offers is public, and
        a sale is counted for the price in turn, even if a `Guard` offered another. All else is a
        function of releases, public coins and the customer's own context.

    **Limits.** In a few of a hundred runs the line explains the sales at one price so well that
    other prices are hardly tried, most often where demand rises with the price up to a peak.

    >>> from dpbandit import certify
    >>> certify(FadeCurve(epsilon=1.0), "OJPricing").epsilon <= 1
    True
    """

    # turns are public coins, and a sale is counted for the price in turn, not for `action`
    own_coins = ("_counts",)
    features = cast(Any, "curve")
    # no wider without noise, as the first offers have tried every price
    _shared_width = MIN_DRAW_WIDTH

    def begin(self) -> None:
        spec, streams, R, K = self.spec, self.streams, self.R, self.spec.n_actions
        self._each = first_offers(spec, self.epsilon)
        self._before = K * self._each  # first rounds, whose sales are counted and not summed
        self._counts = CountedSums(
            streams.child("counts"),
            K,
            low=0,
            high=1,
            epsilon=self.epsilon,
            uses=max(1, self._before),
        )
        self.statistic = self.sales_statistic()
        later = spec_after(spec, self._before)
        first = self.releases.first(later, 5 * sqrt(spec.dim + 1), least=7.5)
        self.sums = self.releases.sums(self.statistic, later, streams, first)
        spend = Parallel((self.sums.spend, self._counts.spend), "counted or summed")
        self.ledger = self.releases.ledger(spend)
        self.fit_sales(CROSSED_WIDTH)
        self._noise = 2 / self.epsilon**2  # variance of the Laplace noise of a count
        self._turns, self._coin = streams.uniforms("turns", K), streams.uniforms("bent")
        self._offered, self._orders = 0, list[Ints]()  # orders (R, K) of the turns so far
        self._sales: Floats = np.zeros((R, K))
        line = partial(falling, at=cast(int, self._shared_slope))
        self._shapes = (
            Shape((_LINE_BEND_PRIOR,) * self._bends, line, -LEAST_SLOPE),
            Shape((_BEND_PRIOR,) * self._bends, in_ball, None),
        )
        self._modes = np.zeros((2, R, self.statistic.dim))  # of the last fits of both shapes
        self._bent = np.zeros(R, bool)
        # of both shapes, by all releases or, if the other is clearly likelier, by earlier ones
        self._thetas = np.stack([self._theta] * 2)
        self._precisions = np.stack([self._precision] * 2)
        self._log_odds = np.zeros(R)  # of a curve
        self._admissible = self._allowed

    @property
    def rounds_to_release(self) -> int:
        return super().rounds_to_release if self.round >= self._before else 1

    def act(self, context: Floats) -> Ints:
        # Prices (R,), or (n, R), as places on the list; by turns at first
        # a customer to whom another agent (a `Guard`) made the offer has used up a turn, too
        turn = self.round + self.spec.delay if self.round else self._offered
        if turn >= self._before:
            return super().act(context)
        self._offered += 1
        return self._in_turn(turn)

    def _in_turn(self, round: int) -> Ints:
        """Return indices (R,) of prices for round `round` of the first offers, counted from 0."""
        block, place = divmod(round, self.spec.n_actions)
        while len(self._orders) <= block:
            self._orders.append(self._turns().argsort(axis=1))
        return self._orders[block][:, place].copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        # Count sales at first, sum scores later; fit after every release
        if self.round >= self._before:
            return super().update(context, action, feedback)
        price = self._in_turn(self.round)
        self.round += 1
        sold = self.spec.share_sold(context, action, feedback)
        at_release = np.full(self._sales.shape, self.round == self._before)
        release = self._counts(sold, price, at_release)
        if release is not None:
            self._sales = release
            self._theta, self._precision = self._posterior()
            self._draw()
        return None

    def _posterior(self) -> tuple[Floats, Floats]:
        past, dim, R = self._faded(), self.spec.dim, rows(self.R)
        clear = np.abs(self._log_odds) > _CLEAR_LOG_ODDS
        if len(self._ends) % _RELEASES_TO_REFIT == 0:
            clear[:] = False
        evidence = np.zeros((2, self.R))
        for some in self._blocks():
            scores = ReleasedScores(
                *self._score_sums(past, some),
                ridge=self._ridge,
                admissible=in_ball,
                counts=self._released_counts(past, some),
            )
            for k, shape in enumerate(self._shapes):
                fitted = ~clear[some] | ((self._log_odds[some] > 0) == k)
                ridge = ridge_of(dim, self.statistic.dim, bends=shape.bends)
                model = scores.of_replicas(fitted).under(ridge, shape.admissible)
                at = k, R[some][fitted]
                fit = model.maximise(self._modes[at], STEPS)
                found = averaged(fit, dim, bends=shape.bends, below=shape.below)
                self._modes[at] = fit.theta
                evidence[at] = model.log_evidence(fit) + found.evidence
                self._thetas[at] = shape.admissible(found.mean)
                self._precisions[at] = found.precision
        self._log_odds = np.where(clear, self._log_odds, evidence[1] - evidence[0])
        self._bent = self._coin() < expit(self._log_odds)
        chosen = self._bent.astype(np.int64), R
        return self._thetas[chosen], self._precisions[chosen]

    def learned(self, replica: int = 0) -> Prior:
        """Return the posterior of demand that is a line, as a prior of features="shrunk"."""
        length = self.statistic.dim - self._bends
        scale = np.where(rows(length) < length - self.spec.dim, 1.0, CURVE_CROSSED)
        theta, precision = self._thetas[0, replica], self._precisions[0, replica]
        covariance = np.linalg.inv(precision)[:length, :length] * np.outer(scale, scale)
        return posterior(scale * theta[:length], np.linalg.inv(covariance))

    def _score_sums(self, past: Faded, some: slice) -> tuple[Scores, Floats, Floats]:
        if len(self._ends):
            return super()._score_sums(past, some)
        none = np.zeros((len(self._sales[some]), 0, IMAGINED_CUSTOMERS, self.statistic.dim))
        return Scores(none, none[..., 0], none[..., 0], none), np.eye(0), none[:, :, 0]

    def _released_counts(self, past: Faded, some: slice) -> Counts:
        """Return the released sales of each price, which expect synthetic customers' sales."""
        sales, K = self._sales[some], self.spec.n_actions
        customers: Floats = np.zeros((len(sales), IMAGINED_CUSTOMERS, self.spec.dim))
        if len(self._ends):  # else moments of customers are not released yet
            customers = self._imagined(past, some)
        each = np.broadcast_to(rows(K)[:, None], (*sales.shape, IMAGINED_CUSTOMERS))
        phi = self._rows(customers, each)  # (R, K, N, D)
        stddev = sqrt(self._noise + _SALE_VARIANCE * max(1, self._each))
        return Counts(phi, self._each / stddev, sales / stddev)

    def _mirrored(self, draw: Floats) -> Floats:
        return np.where(self._bent[:, None], draw, super()._mirrored(draw))

    def _allowed(self, theta: Floats) -> Floats:
        line, curve = (shape.admissible(theta) for shape in self._shapes)
        return np.where(self._bent[:, None], curve, line)
