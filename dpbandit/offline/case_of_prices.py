"""Logs of prices from a continuum, made ready: kernels, and what half the bandwidth says."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.fields import takes
from dpbandit.base.inputs import InputError, one_of, positive, shaped
from dpbandit.offline.cases import Case, refuse_rewards
from dpbandit.offline.intervals import standard_error
from dpbandit.offline.logged_prices import LoggedPrices
from dpbandit.offline.policies import price_policy
from dpbandit.offline.price_estimators import KERNELS, PRICES, PriceRows
from dpbandit.offline.reward_models import PriceModel
from dpbandit.offline.rows import MOST, numbers_in, refuse_row
from dpbandit.offline.settings import Settings
from dpbandit.offline.terms import Terms

_LEAST_BANDWIDTH = 1e-9
"""Of the range of prices; squares of distances in narrower ones overflow"""


def case_of_prices(policy: Any, log: LoggedPrices, settings: Settings) -> Case:
    """What can be said of a policy of prices."""
    bounds = log.spec.reward_low, log.spec.reward_high
    refuse_rewards(log.reward, bounds)
    one_of("kernel", settings.kernel, KERNELS)
    positive("bandwidth", settings.bandwidth)
    if settings.bandwidth is None:  # for type checkers, `positive` refuses it
        raise InputError("Expected bandwidth=None to be a finite number > 0.")
    if settings.bandwidth < _LEAST_BANDWIDTH * (log.spec.high - log.spec.low):
        raise InputError(
            f"Expected bandwidth={settings.bandwidth} to be at least {_LEAST_BANDWIDTH:g} of the "
            f"range of prices, {log.spec.low:g} to {log.spec.high:g}."
        )
    rows = PriceRows(
        price=log.price,
        reward=log.reward,
        density=log.density,
        policy=price_policy(policy, log),
        model=_model(log, settings),
        bandwidth=settings.bandwidth,
        kernel=settings.kernel,
    )
    return Case(
        estimators={name: partial(terms, rows) for name, terms in PRICES.items()},
        bounds=bounds,
        adaptive=log.adaptive,
        notes={name: partial(_half, name, rows) for name in PRICES},
    )


def _half(name: str, rows: PriceRows, terms: Terms) -> str:
    """The kernel's bias is in no interval, so the estimate at half the bandwidth is said, too."""
    fine = replace(rows, bandwidth=rows.bandwidth / 2, model=lambda: rows.q)
    estimate, se = PRICES[name](fine).estimate, standard_error(terms)
    note = f"{estimate:.4g} at bandwidth {fine.bandwidth:.3g}"
    if np.isnan(estimate):
        note = f"no price is near that of the policy at bandwidth {fine.bandwidth:.3g}"
    elif abs(estimate - terms.estimate) > se + 1e-9 * abs(estimate):
        note += ", more than a standard error away: the kernel's bias is in no interval"
    if terms.weights_are_off:
        note += (
            f"; mean weight {terms.weight.mean():.4g}: densities wrong, or the bandwidth reaches "
            "beyond the range of prices"
        )
    return note


def _model(log: LoggedPrices, settings: Settings) -> Callable[[], Callable[[Floats], Floats]]:
    """q at the rows' contexts, when it is asked for."""
    spec, n, q = log.spec, len(log.price), settings.q

    def given() -> Callable[[Floats], Floats]:
        if not callable(q):
            raise InputError("Expected q to be a function of contexts (n, d) and prices (n,).")
        takes("q", q, "contexts", "prices")
        return at

    def at(price: Floats) -> Floats:
        found = numbers_in("q", q(log.context, price))
        shaped("q", found, (n,))
        refuse_row(f"q up to {MOST:g} in size", np.abs(found) <= MOST)
        return found

    def fitted() -> Callable[[Floats], Floats]:
        parts = settings.parts(n, log.adaptive)
        middle = (spec.reward_low + spec.reward_high) / 2  # what is predicted before any row
        ends = np.array([spec.low, spec.high])
        model = PriceModel(log.context, log.price, log.reward - middle, ends, parts)
        return lambda price: np.clip(model(price) + middle, spec.reward_low, spec.reward_high)

    return fitted if q is None else given
