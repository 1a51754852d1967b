"""Mechanisms that see the same rounds, as one spend: the counterpart of `spends.Parallel`."""

from dataclasses import dataclass
from math import inf

from dpbandit.privacy.accounting.ledger import Ledger
from dpbandit.privacy.accounting.privacy_loss import PrivacyLoss
from dpbandit.privacy.accounting.spends import Spend


@dataclass(frozen=True)
class Sequential:
    """Everything adds up, or composes, exactly as in a `Ledger` of the parts.

    A ledger is better given the `parts` themselves: it then names them one by one.

    >>> from dpbandit.privacy.accounting.spends import GaussianSpend
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
        """Pure epsilons add up."""
        return Ledger(self.parts).pure

    @property
    def rho(self) -> float:
        """zCDP parameters add up."""
        return Ledger(self.parts).rho

    @property
    def step(self) -> float:
        """The finest grid that a part asks for."""
        return min((part.step for part in self.parts), default=inf)

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        """Those of all parts; None where a part has none."""
        each = [part.losses(step) for part in self.parts]
        known = [losses for losses in each if losses is not None]
        return tuple(loss for losses in known for loss in losses) if known == each else None

    def delta(self, epsilon: float) -> float:
        """The better of zCDP and the composed loss distribution."""
        return Ledger(self.parts).delta(epsilon)

    def least_epsilon(self, delta: float) -> float:
        """The least epsilon at `delta`, by the better of the two."""
        return Ledger(self.parts).epsilon(delta)
