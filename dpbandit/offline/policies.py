"""Frozen policies, which is what can be evaluated; learners are refused."""

from typing import Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.inputs import InputError, shaped, shown
from dpbandit.offline.list_policies import ListLaw
from dpbandit.offline.logged_prices import LoggedPrices
from dpbandit.offline.logs import Logged
from dpbandit.offline.rows import is_law, numbers_in, refuse_row
from dpbandit.specs.protocols import Hindsight, is_running


def asked(policy: Any, method: str, context: Floats) -> Any:
    """What the policy's method says at the log's contexts; arrays are the answer themselves.

    Raises:
        InputError: it learns: what it would play depends on what it would have seen.
    """
    if isinstance(policy, Hindsight):
        raise InputError(f"Expected a policy, got {shown(policy)}: hindsight needs all rewards.")
    if hasattr(policy, "make") and not is_running(policy):
        raise InputError(
            f"Expected a frozen policy, got the learner {shown(policy)}: dpbandit.offline.replay "
            "is for those, or a snapshot of one that was trained on other rows."
        )
    if hasattr(policy, "act") and hasattr(policy, "update"):
        raise InputError(
            f"Expected a frozen policy, got the running agent {type(policy).__name__}: take a "
            "snapshot of one that was trained on other rows, say the first half of the log."
        )
    if callable(getattr(policy, method, None)):
        return getattr(policy, method)(context)
    if not isinstance(policy, list | tuple | ListLaw) and not hasattr(policy, "__array__"):
        raise InputError(
            f"Expected policy={shown(policy)} to have {method}(contexts), as snapshots do, or to "
            "be an array."
        )
    return policy


def arm_policy(policy: Any, log: Logged) -> Floats:
    """Probabilities (n, K) of arms."""
    law = numbers_in("policy", asked(policy, "probabilities", log.context))
    shaped("the policy's probabilities", law, (len(log.action), log.spec.n_actions))
    refuse_row("probabilities that sum to 1", is_law(law), "a policy")
    return law


def price_policy(policy: Any, log: LoggedPrices) -> Floats:
    """Prices (draws, n) in the range of the spec."""
    n, spec = len(log.price), log.spec
    prices = numbers_in("policy", asked(policy, "prices", log.context))
    if prices.shape[-1:] != (n,) or prices.ndim > 2 or not prices.size:
        raise InputError(f"Expected prices of shape ({n},) or (draws, {n}), got {prices.shape}.")
    prices = np.atleast_2d(prices)
    fine = (prices >= spec.low) & (prices <= spec.high)
    refuse_row(f"prices from {spec.low:g} to {spec.high:g}", fine.all(axis=0), "a policy")
    return prices
