"""Pricing for demand of any shape: prices in turn are counted first, then a line or curve fits."""

from math import ceil

import numpy as np
from scipy.linalg import block_diag
from scipy.special import expit

from dpbandit.agents.contextual.released_scores import ReleasedScores, Scores
from dpbandit.agents.contextual.residual_pricing import (
    PRIOR,
    STEPS,
    ResidualPricing,
    falling,
    in_ball,
)
from dpbandit.base import Floats, Ints, Streams, clip_range
from dpbandit.privacy import FadingSum, Ledger
from dpbandit.privacy.batches import CountedSums
from dpbandit.privacy.residuals import SaleResiduals
from dpbandit.specs import PriceListSpec

_BEND_PRIOR = 2.0
"""Standard deviation of each bend, a priori, if there are any."""
_STRAIGHT = 1e-3
"""The same of a line, which has none."""
_EACH, _EACH_NOISY = 15, 5
"""Customers who are asked each price first: so many, and so many more over epsilon."""
_CUSTOMERS = 300
_VARIANCE = 0.2
"""Of a sale, about."""


def asked_first(spec: PriceListSpec, epsilon: float) -> int:
    """How often each price is asked before anything is learned: a tenth of the run at most."""
    return min(ceil(_EACH + _EACH_NOISY / epsilon), spec.horizon // (10 * spec.n_actions))


class CurvedPricing(ResidualPricing):
    """`ResidualPricing` whose utility may be any curve of the price, the same for all customers::

        first            each price n times, by turns in a random order; its sales are counted, and
                         nothing else of these customers (`CountedSums`)
        after a release  fit a line and a curve (`curve`) to all releases and the counts; a coin
                         chooses between them, the curve with its posterior probability (Laplace's
                         approximation, even odds a priori); a draw from the chosen one's posterior
                         is played as before

    A count of a price is one number that a customer moves by 1, so it has a small part of the noise
    of a vector. A curve makes the model right about what each price sells on average, whatever the
    shape of demand; a line needs fewer customers where it is right.

    Guarantee:
        Customers who are counted are not summed, so that all releases cost what the dearer of the
        two mechanisms does (`Parallel`). Turns are public coins. All else is a function of
        releases, public coins and the customer's own context.
    """

    def __init__(
        self,
        spec: PriceListSpec,
        sums: FadingSum,
        statistic: SaleResiduals,
        streams: Streams,
        ledger: Ledger,
        *,
        width: float,
        counts: CountedSums,
        each: int,
        noise: float,
    ) -> None:
        super().__init__(spec, sums, statistic, streams, ledger, width=width, features="curve")
        self._counts, self._each, self._before = counts, each, each * spec.n_actions
        self._noise = noise  # the variance of a released count
        self._turns, self._coin = (
            streams.uniforms("turns", spec.n_actions),
            streams.uniforms("bent"),
        )
        self._asked, self._turn = 0, np.zeros((len(streams), spec.n_actions), np.int64)
        self._sales: Floats = np.zeros((len(streams), spec.n_actions))
        bends = np.arange(statistic.dim) > spec.dim + 1
        self._ridges = [
            np.where(bends, stddev, PRIOR) ** -2.0 for stddev in (_STRAIGHT, _BEND_PRIOR)
        ]
        self._fits = [self._theta, self._theta]
        self._bent = np.zeros((len(streams), 1), bool)
        self._admissible = self._allowed

    @property
    def standing(self) -> int:
        """1 while customers are counted."""
        return super().standing if self._round >= self._before else 1

    def act(self, context: Floats) -> Ints:
        """Prices (R,), or (n, R), as places on the list; by turns at first."""
        if self._asked == self._before:
            return super().act(context)
        place = self._asked % self._spec.n_actions
        if place == 0:
            self._turn = self._turns().argsort(axis=1)
        self._asked += 1
        return self._turn[:, place].copy()

    def update(self, context: Floats, action: Ints, feedback: Floats) -> None:
        """Count at first, then feed the sums; fit when something is released."""
        if self._round >= self._before:
            return super().update(context, action, feedback)
        self._round += 1
        sold = clip_range(feedback, 0.0, float(self._margins.max())) / self._margins[action]
        due = np.full(self._sales.shape, self._round == self._before)
        release = self._counts(np.minimum(sold, 1.0), action, due)
        if release is not None:
            self._sales = release
            self._theta, self._precision = self._posterior()
            self._draw()
        return None

    def _posterior(self) -> tuple[Floats, Floats]:
        told, found = self._told(), []
        for ridge, start, allowed in zip(
            self._ridges, self._fits, (self._falling, in_ball), strict=True
        ):
            fit = ReleasedScores(*told, ridge=ridge, admissible=allowed)
            theta, precision = fit.maximise(start, STEPS)
            found.append((theta, precision, fit.log_evidence(theta, precision)))
        (line, flat, log_line), (curve, wide, log_curve) = found
        self._fits = [line, curve]
        self._bent = (self._coin() < expit(log_curve - log_line))[:, None]
        return np.where(self._bent, curve, line), np.where(self._bent[..., None], wide, flat)

    def _told(self) -> tuple[Scores, Floats, Floats]:
        """Count the sales of a price as the score of customers of whom each adds her answer."""
        (R, K), D = self._sales.shape, self._statistic.dim
        summed = len(self._ends) > 0  # else nothing is known of customers
        customers: Floats = np.zeros((R, _CUSTOMERS, self._spec.dim))
        if summed:
            customers = self._imagined(self._faded())
        phi = self._every_price(customers).swapaxes(1, 2)  # (R, K, N, D)
        nobody, first = np.zeros(phi.shape[:-1]), np.eye(D)[0]
        counted = Scores(phi, nobody, nobody + 1, np.broadcast_to(first, phi.shape))
        weight = (self._noise + _VARIANCE * max(1, self._each)) ** -0.5
        design, released = weight * self._each * np.eye(K), weight * self._sales[..., None] * first
        if not summed:
            return counted, design, released
        scores, users, sums = super()._told()
        both = (np.concatenate(pair, axis=1) for pair in zip(scores, counted, strict=True))
        return Scores(*both), block_diag(users, design), np.concatenate([sums, released], axis=1)

    def _mirrored(self, draw: Floats) -> Floats:
        rises = (self._theta + draw)[:, self._spec.dim, None] > 0
        return np.where(rises & ~self._bent, -draw, draw)

    def _falling(self, theta: Floats) -> Floats:
        return falling(theta, self._spec.dim)

    def _allowed(self, theta: Floats) -> Floats:
        return np.where(self._bent, in_ball(theta), self._falling(theta))
