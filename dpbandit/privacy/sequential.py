"""Mechanisms that see the same rounds, as one spend: the counterpart of `spends.Parallel`."""

from dataclasses import dataclass
from functools import reduce
from math import inf
from typing import TYPE_CHECKING

from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.spends import Spend

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution as PLD


@dataclass(frozen=True)
class Sequential:
    """Everything adds up, or composes, exactly as in a `Ledger` of the parts.

    A ledger is better given the `parts` themselves: it then names them one by one.

    >>> from dpbandit.privacy.spends import GaussianSpend
    >>> Sequential((GaussianSpend(0.3, "a"), GaussianSpend(0.4, "b")), "both").mu
    0.5
    """

    parts: tuple[Spend, ...]
    note: str

    @property
    def mu(self) -> float | None:
        """The root of the sum of squares, if all are Gaussian."""
        return Ledger(self.parts).mu

    @property
    def pure(self) -> float:
        """The sum."""
        return Ledger(self.parts).pure

    @property
    def rho(self) -> float:
        """The sum."""
        return Ledger(self.parts).rho

    @property
    def step(self) -> float:
        """The smallest."""
        return min((part.step for part in self.parts), default=inf)

    def pld(self, step: float) -> "PLD | None":
        """All losses composed on one grid; None where a part has none, or there are no parts."""
        curves = [part.pld(step) for part in self.parts]
        known = [curve for curve in curves if curve is not None]
        if len(known) < len(curves) or not known:
            return None
        return reduce(lambda one, other: one.compose(other), known)

    def delta(self, epsilon: float) -> float:
        """The better of zCDP and the composed loss distribution."""
        return Ledger(self.parts).delta(epsilon)
