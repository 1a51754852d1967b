"""What a unit of stock is worth: the fluid plan, its bid price, and the bound that it gives."""

import numpy as np

from dpbandit.base.arrays import Floats, Ints

_ROUNDING = 1e-9
"""A margin that is the bid price, up to rounding, is still sold at."""


def best_price(margins: Floats, sales: Floats, bid: Floats) -> tuple[Ints, Floats]:
    """The price with the largest (margin - bid) P(sale), and that; K and 0 where none is worth it.

    `sales` (..., K), `bid` (...): a price stays open unless the bid exceeds every margin.
    """
    over = margins - bid[..., None]
    gains = over * sales
    price = gains.argmax(axis=-1)
    shut = (over < -_ROUNDING).all(axis=-1)
    best = np.take_along_axis(gains, price[..., None], axis=-1)[..., 0]
    return np.where(shut, len(margins), price), np.where(shut, 0.0, np.maximum(best, 0.0))


class BidPrices:
    """Sales a round that each bid price lets through, of a population with P(sale) (R, n, K).

    The fluid plan of Gallego and van Ryzin (1994): with c units for T customers it asks everybody
    argmax_p (margin_p - lambda) P(sale | x, p), lambda >= 0 the least at which c / T sell a round.
    """

    def __init__(self, margins: Floats, sales: Floats, *, points: int) -> None:
        self.bids: Floats = np.linspace(0, margins.max() * (1 + 1 / points), points)
        rates = np.empty((len(sales), points))
        for j, bid in enumerate(self.bids):
            price, _ = best_price(margins, sales, np.full(sales.shape[:-1], bid))
            sold = np.take_along_axis(sales, np.minimum(price, sales.shape[-1] - 1)[..., None], -1)
            rates[:, j] = np.where(price < sales.shape[-1], sold[..., 0], 0.0).mean(axis=1)
        self._rates = rates

    def __call__(self, rate: Floats) -> Floats:
        """The least bid price (R,) at which at most `rate` (R,) sell a round."""
        enough = self._rates <= np.maximum(rate, 0.0)[:, None]
        return self.bids[np.where(enough.any(axis=1), enough.argmax(axis=1), -1)]


def fluid_bound(margins: Floats, sales: Floats, stock: int, horizon: int, most: float) -> float:
    """F = min over 0 <= lambda <= `most` of lambda c + T E max(0, max_p (margin_p - lambda) P).

    No policy earns more on average, whatever it knows (weak duality); `most` is the largest margin,
    or what a unit beyond the stock costs. `sales` (n, K) of people who are equally likely. Convex
    and piecewise linear: found by golden sections to 1e-9.
    """

    def bound(bid: float) -> float:
        _, gain = best_price(margins, sales, np.full(len(sales), bid))
        return bid * stock + horizon * float(gain.mean())

    low, high, golden = 0.0, most, (5**0.5 - 1) / 2
    a, b = high - golden * (high - low), low + golden * (high - low)
    at_a, at_b = bound(a), bound(b)
    while high - low > 1e-13 * most:
        if at_a <= at_b:
            high, b, at_b = b, a, at_a
            a = high - golden * (high - low)
            at_a = bound(a)
        else:
            low, a, at_a = a, b, at_b
            b = low + golden * (high - low)
            at_b = bound(b)
    return min(at_a, at_b, bound(0.0), bound(most))
