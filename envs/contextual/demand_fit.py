"""A logit of sales on features and price: its fit to a log, what is refused, and what is said."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.inputs import InputError
from dpbandit.envs.contextual.held_out import HeldOut, hold_out
from dpbandit.envs.contextual.log_checks import CHOSEN, FUNCTION, WHO_IS_PROTECTED, Log
from dpbandit.envs.contextual.log_fits import covariance, explained, fit_logit, refuse_separated

_LEAST_Z = 2.0
_MOST_RISING = 0.1
_FLATTEST = -0.05
"""Slope of the logit for half the price range, where demand is made to fall"""

WHY_PRICES = (
    "A log cannot show why prices were what they were. If they followed demand, the curve below is "
    "wrong and no diagnostic here can tell."
)


class Prices(NamedTuple):
    """What was asked, and what can be."""

    logged: Floats
    """(n,)"""
    low: float
    high: float
    """the public range"""
    grid: Floats
    """(K,)"""
    cost: float
    unit: str
    """what prices are in"""

    @property
    def half(self) -> float:
        """Half the range."""
        return (self.high - self.low) / 2

    def scaled(self, price: Floats) -> Floats:
        """On [-1, 1]."""
        return (price - self.low) / self.half - 1


@dataclass(frozen=True, kw_only=True)
class PricingDiagnostics:
    """How well a log of prices tells demand; exact functions of the log, so not private."""

    rows: int
    sales: int
    distinct_prices: int
    coefficients: Mapping[str, float]
    """of the logit, features and price on [-1, 1] or 0 and 1"""
    slope: float
    """of the logit for one unit of the price, averaged over rows"""
    unit: str
    """what prices are in"""
    z: float
    """slope over its standard error, a sandwich by rows"""
    z_clustered: float | None
    """the same by clusters"""
    rising: float
    """share of rows whose own slope is not below 0, before any is clipped"""
    r_squared: float
    """of the price on the features"""
    r_squared_p: float
    """p-value of its F test, small where prices followed features"""
    held_out: HeldOut
    outside: Mapping[str, float]
    """share of rows outside the bounds of each feature, and clipped"""
    curve: tuple[tuple[float, float, float], ...]
    """price, share of customers who buy at it, and margin a customer"""
    oracle: float
    """margin a customer at the best price for each"""
    cautions: tuple[str, ...]
    """what was warned of"""

    def __str__(self) -> str:
        best = max(self.curve, key=lambda point: point[2])
        uniform = sum(margin for *_, margin in self.curve) / len(self.curve)
        errors = "" if self.z_clustered is None else f", by clusters {self.z_clustered:.2f}"
        outside = ", ".join(f"{name} {100 * s:.2g} %" for name, s in self.outside.items() if s)
        points = [f"    {p:8.2f} {share:14.3f} {margin:16.3f}" for p, share, margin in self.curve]
        return "\n".join(
            [
                WHO_IS_PROTECTED,
                WHY_PRICES,
                f"{self.rows} offers, {self.sales} sales, {self.distinct_prices} different prices",
                f"slope {self.slope:.3f} (prices in {self.unit}), z {self.z:.2f}{errors}; demand "
                f"rises with the price in {100 * self.rising:.2g} % of rows",
                f"R2 of price on features {self.r_squared:.3f} (F test p = {self.r_squared_p:.2g})",
                str(self.held_out),
                f"clipped to public bounds: {outside or 'nothing'}",
                *(f"Caution: {caution}" for caution in self.cautions),
                f"margin a customer, fitted: random price {uniform:.3f}, best fixed price "
                f"{best[2]:.3f} (at {best[0]:.2f}), best for each {self.oracle:.3f}",
                "       price  share who buy  margin a customer",
                *points,
            ]
        )


class FrozenDemand(NamedTuple):
    """What a log became."""

    context: Floats
    """(n, 1 + d)"""
    chances: Floats
    """(n, K), P(the customer of a row buys at a price)"""
    diagnostics: PricingDiagnostics


def fit_demand(
    log: Log, yes: Floats, prices: Prices, penalty: Floats, *, sold: str, clip: bool
) -> FrozenDemand:
    """The logit of `yes`, fitted; `clip` makes demand fall for everybody.

    Raises:
        InputError: the log cannot tell what a price does.
    """
    F, q = log.design, prices.scaled(prices.logged)
    n, k = F.shape
    _refuse_prices(prices)
    G = F if len(penalty) == 2 * k else np.ones((n, 1))  # what the price's slope depends on
    x = np.column_stack([F, G * q[:, None]])
    known = ("1", *log.features.names)
    names = (*known, *(["price", *(f"price x {f}" for f in known[1:])][: G.shape[1]]))
    refuse_separated(x, yes, names, name=sold, lone=log.levels)
    share, p_value = explained(prices.logged, log.features.rows)
    if share > FUNCTION:
        raise InputError(
            f"Expected prices that differ where features do not, got R2 = {share:.5f} of the price "
            "on the features: what a price does cannot be told from what they do."
        )
    b = fit_logit(x, yes, penalty)
    average = np.concatenate([np.zeros(k), G.mean(axis=0)])
    z = _slope_z(x, yes, penalty, b, average, None)
    clustered = None if log.groups is None else _slope_z(x, yes, penalty, b, average, log.groups)
    slopes = G @ b[k:]
    rising = float((slopes >= 0).mean())
    _refuse_slopes(float(average @ b), z if clustered is None else clustered, rising, clip)
    if clip:
        slopes = np.minimum(slopes, _FLATTEST)
    chances = expit((F @ b[:k])[:, None] + slopes[:, None] * prices.scaled(prices.grid))
    margins = (prices.grid - prices.cost) * chances  # (n, K)
    held = hold_out(x, yes, penalty, log.groups)
    means = zip(prices.grid, chances.mean(axis=0), margins.mean(axis=0), strict=True)
    said = [*log.cautions(), *_cautions(prices, share, p_value, rising, held)]
    diagnostics = PricingDiagnostics(
        rows=n,
        sales=int(yes.sum()),
        distinct_prices=len(np.unique(prices.logged)),
        coefficients=dict(zip(names, b.tolist(), strict=True)),
        slope=float(slopes.mean()) / prices.half,
        unit=prices.unit,
        z=z,
        z_clustered=clustered,
        rising=rising,
        r_squared=share,
        r_squared_p=p_value,
        held_out=held,
        outside={name: count / n for name, count in log.features.outside.items()},
        curve=tuple((float(p), float(s), float(m)) for p, s, m in means),
        oracle=float(margins.max(axis=1).mean()),
        cautions=tuple(said),
    )
    return FrozenDemand(log.features.context, chances, diagnostics)


def _slope_z(
    x: Floats, yes: Floats, penalty: Floats, b: Floats, a: Floats, groups: Ints | None
) -> float:
    return float(a @ b / np.sqrt(a @ covariance(x, yes, penalty, b, groups) @ a))


def _refuse_prices(prices: Prices) -> None:
    asked = prices.logged
    if np.ptp(asked) == 0:
        raise InputError(
            f"Expected more than one price in the log, all are {asked[0]:g}: it says nothing about "
            "any other."
        )
    beyond = (asked < prices.low) | (asked > prices.high)
    if beyond.any():
        raise InputError(
            f"Expected every price in price_range=({prices.low:g}, {prices.high:g}), got "
            f"{asked[beyond][0]:g}, and {int(beyond.sum())} rows outside."
        )


def _refuse_slopes(mean: float, z: float, rising: float, clip: bool) -> None:
    if mean >= 0:
        raise InputError(
            "Expected demand to fall with the price, it rises in this log: prices were confounded "
            "with demand, or there is a sign error."
        )
    if z > -_LEAST_Z:
        raise InputError(
            f"Expected a price slope with z at most -{_LEAST_Z:g}, got {z:.2f}: what a price does "
            "is not told apart from 0."
        )
    if rising > _MOST_RISING and not clip:
        raise InputError(
            f"Expected demand to fall with the price for nine in ten customers, it rises for "
            f"{100 * rising:.0f} %: leave out features or interactions, or say monotone='clip'."
        )


def _cautions(
    prices: Prices, share: float, p_value: float, rising: float, held: HeldOut
) -> list[str]:
    asked, said = prices.logged, []
    far = prices.grid[(prices.grid < asked.min()) | (prices.grid > asked.max())]
    if len(far):
        said.append(
            f"Demand at {len(far)} of {len(prices.grid)} prices extrapolates: {far[0]:.4g} lies "
            f"outside the logged {asked.min():.4g} to {asked.max():.4g}."
        )
    if p_value < CHOSEN:
        said.append(
            f"Prices were not randomised: they follow features (R2 = {share:.3f}, p = "
            f"{p_value:.1g}), and perhaps what was not recorded."
        )
    if rising > 0:
        said.append(f"Demand rises with the price in {100 * rising:.2g} % of rows.")
    if not held.calibrated:
        said.append(held.caution)
    return said
