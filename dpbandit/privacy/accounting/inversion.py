"""From a privacy target back to the mechanism that just meets it."""

from collections.abc import Callable
from math import exp, inf, log, sqrt

from dpbandit.privacy.accounting.ledger import Ledger

_TRIES = 60
_FLAT = 0.01
"""From this delta / epsilon on it is delta that changes smoothly: epsilon may well be 0."""


def most(
    ledger: Callable[[float], Ledger],
    *,
    epsilon: float,
    delta: float,
    low: float,
    high: float,
    start: float | None = None,
    close: float,
) -> float:
    """The largest x between low and high whose ledger meets the target, to the ratio `close`.

    More x, more of either epsilon or delta, and about as a power of it: secants in logarithms,
    from `start` or `low` on, of epsilon at the given delta, or of delta where that is large. A try
    beyond `high` is replaced by `high`, once; one that leaves the bracket of those before, by its
    middle. `low` is known to meet the target; nothing is returned that has not been tried.

    >>> from dpbandit.privacy.accounting.spends import GaussianSpend
    >>> ledger = lambda mu: Ledger((GaussianSpend(mu, "a sum"),))
    >>> round(most(ledger, epsilon=1.0, delta=1e-5, low=0.01, high=10.0, close=0.9999), 3)
    0.268
    """
    by_delta = delta > _FLAT * epsilon
    target = delta if by_delta else epsilon
    x, slope, aim = start or low, 1.0, log((1 + close) / 2 * target)
    before: tuple[float, float] | None = None
    untried = high
    for _ in range(_TRIES):
        made = ledger(x)
        found = made.delta(epsilon) if by_delta else made.epsilon(delta)
        low, high = (max(x, low), high) if found <= target else (low, min(x, high))
        if close * target <= found <= target or high <= low / close:
            break
        at = log(x), log(min(max(found, target / 1e3), target * 1e3))  # from 0 to infinity
        if before is not None and at[1] != before[1]:
            slope = max((at[1] - before[1]) / (at[0] - before[0]), 0.1)
        before, x = at, exp(at[0] + (aim - at[1]) / slope)
        if x >= high == untried:
            x, untried = high, inf
        elif not low < x < high:
            x = sqrt(low) * sqrt(high)
    return low
