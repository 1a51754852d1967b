"""The least noise that meets a privacy target, whatever its certificate."""

from collections.abc import Callable
from math import inf, sqrt

from dpbandit.base.inputs import InputError, privacy_target
from dpbandit.privacy.accounting import zcdp
from dpbandit.privacy.accounting.inversion import most
from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.spends import Spend

_CLOSE = 1 - 1e-6
"""How near a noise, or the epsilon it buys, is found."""
_LARGEST = 1e12
"""Of a noise, and of 1 / noise."""


def least_noise(spend: Callable[[float], Spend], *, epsilon: float, delta: float) -> float:
    """The least noise whose certificate meets the target, by inversion; rounded up by 1e-6.

    Args:
        spend: noise > 0 -> the spend of a mechanism with that much; less noise costs more.
        epsilon: target > 0; infinity needs none.
        delta: target in [0, 1).
    """
    privacy_target(epsilon, delta)
    if epsilon == inf:
        return 0.0
    least = _simply_enough(spend, epsilon, delta)
    if delta == 0:
        return least

    def ledger(x: float) -> Ledger:
        return Ledger((spend(1 / x),))

    x = most(ledger, epsilon=epsilon, delta=delta, low=1 / least, high=_LARGEST, close=_CLOSE)
    return 1 / x


def _simply_enough(spend: Callable[[float], Spend], epsilon: float, delta: float) -> float:
    """The least noise that is enough by pure DP or by zCDP, which cost nothing to ask."""

    def enough(noise: float) -> bool:
        made = spend(noise)
        return made.pure <= epsilon or (delta > 0 and zcdp.delta_of(made.rho, epsilon) <= delta)

    low, high = 1 / _LARGEST, _LARGEST
    if not enough(high):
        raise InputError(f"Expected epsilon={epsilon!r} at delta={delta!r} to be within reach.")
    while low < _CLOSE * high:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
