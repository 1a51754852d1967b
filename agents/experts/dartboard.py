"""How often the shrinking dartboard may draw, and how steeply, for a privacy target."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import ceil, inf, log, sqrt

import numpy as np

from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.pure import BoundedRangeSpend, PureSpend
from dpbandit.privacy.accounting.zcdp import rho_of
from dpbandit.privacy.choices.redraw_bits import redraw_probability

_SHARES = tuple(np.linspace(0.05, 0.95, 19).tolist())
"""Of epsilon, for a bit. The best h hardly depends on it."""
_DOWN = 1 - 1e-9
"""The rate is rounded down, so that sums of rounded numbers stay within their budget."""


@dataclass(frozen=True)
class Plan:
    """The public numbers of a private shrinking dartboard."""

    rate: float
    """h: experts are drawn with weights exp(-h S)"""
    bit_epsilon: float
    """what a user pays for the one bit she decides, >= h"""
    redraws: int
    """K, after which the expert stays"""

    @property
    def probability(self) -> float:
        """p, of drawing anew for no reason."""
        return redraw_probability(self.rate, self.bit_epsilon)

    @property
    def ledger(self) -> Ledger:
        """One bit and K draws of bounded range 2 h."""
        return Ledger(
            (
                PureSpend.of("a bit", [self.bit_epsilon]),
                BoundedRangeSpend.of("draws", [2 * self.rate] * self.redraws),
            )
        )


@cache
def steepest(
    n_experts: int, horizon: int, *, epsilon: float, delta: float, best_loss: float = 0.0
) -> Plan:
    """The plan with the largest h, over the share of epsilon that pays for a bit.

    With m = (T - 1) p + ln d + h L* + 2, more redraws than are expected, K = m + 3 sqrt(m) + 3, or
    T - 1 if that is less.
    The share is the best where draws are rho-zCDP (at delta = 0, 2 h K-DP) in what is left of
    epsilon; then h is the largest for which the composed losses of bit and draws meet the target.

    >>> plan = steepest(16, 1000, epsilon=1.0, delta=1e-6)
    >>> round(plan.rate, 3), round(plan.probability, 2)
    (0.017, 0.05)
    """
    if epsilon == inf:
        return Plan(inf, inf, horizon)

    def at(rate: float, bit: float) -> Plan:
        p = redraw_probability(rate, bit)
        m = (horizon - 1) * p + log(n_experts) + rate * best_loss + 2
        return Plan(rate, bit, min(horizon - 1, ceil(m + 3 * sqrt(m) + 3)))

    def largest(bit: float, fits: Callable[[Plan], bool]) -> Plan:
        low, high = 0.0, bit
        while high - low > 1e-4 * high and high > 1e-12:
            middle = (low + high) / 2
            low, high = (middle, high) if fits(at(middle * _DOWN, bit)) else (low, middle)
        return at(low * _DOWN, bit)  # which was tried: a ledger jumps where its grid is rounded

    def affordable(plan: Plan) -> bool:
        left, K, h = epsilon - plan.bit_epsilon, plan.redraws, plan.rate
        return 2 * h * K <= left or K * h * h / 2 <= rho_of(left, delta)

    plans = [largest(share * epsilon, affordable) for share in _SHARES]
    bit = max(plans, key=lambda plan: plan.rate).bit_epsilon
    return largest(bit, lambda plan: plan.ledger.delta(epsilon) <= delta)
