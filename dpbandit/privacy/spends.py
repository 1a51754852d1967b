"""What everything one mechanism will ever release costs one user: frozen values, no data."""

from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Protocol

from dpbandit.privacy import gdp

if TYPE_CHECKING:
    from dp_accounting.pld.privacy_loss_distribution import PrivacyLossDistribution as PLD

ROUNDING = 1e-14
"""Added to every composed delta, for the rounding of the convolution."""


class Spend(Protocol):
    """The cost of one mechanism, by every notion that applies to it. Hashable and frozen."""

    def __hash__(self) -> int: ...

    @property
    def note(self) -> str:
        """The mechanism in words."""
        ...

    @property
    def mu(self) -> float | None:
        """The exact Gaussian-DP parameter; None for a mechanism that is not Gaussian."""
        ...

    @property
    def pure(self) -> float:
        """A pure epsilon; infinity where there is none."""
        ...

    @property
    def rho(self) -> float:
        """A zCDP parameter; infinity where there is none."""
        ...

    @property
    def step(self) -> float:
        """A grid on which rounding up its privacy loss adds little; infinity: any will do."""
        ...

    def pld(self, step: float) -> "PLD | None":
        """The privacy loss on a grid of `step`, rounded up; None where only `delta` is known."""
        ...

    def delta(self, epsilon: float) -> float:
        """An upper bound of delta at `epsilon`."""
        ...


@dataclass(frozen=True)
class GaussianSpend:
    """A mechanism whose whole life is mu-GDP: L2 movement over noise standard deviation."""

    mu: float
    note: str

    @property
    def pure(self) -> float:
        """Infinity, unless nothing is released."""
        return inf if self.mu else 0.0

    @property
    def rho(self) -> float:
        """mu^2 / 2."""
        return gdp.rho_of(self.mu)

    @property
    def step(self) -> float:
        """A 2000th of the standard deviation of the loss, which is mu."""
        return self.mu / 2000 if self.mu else inf

    def pld(self, step: float) -> "PLD | None":
        """dp-accounting's Gaussian, told OUR replace-one sensitivity.

        Its own REPLACE_ONE doubles the sensitivity in one accountant and not in another.
        """
        from dp_accounting.pld import privacy_loss_distribution as pld

        if self.mu == 0:
            return pld.identity(value_discretization_interval=step)
        if self.mu == inf:
            return None
        return pld.from_gaussian_mechanism(1 / self.mu, value_discretization_interval=step)

    def delta(self, epsilon: float) -> float:
        """The exact delta at `epsilon`."""
        return gdp.delta_of(self.mu, epsilon)


@dataclass(frozen=True)
class Parallel:
    """Mechanisms that see disjoint sets of rounds: a user pays for one of them, the dearest."""

    parts: tuple[Spend, ...]
    note: str = "parallel over disjoint rounds"

    @property
    def mu(self) -> float | None:
        """The largest, if all are Gaussian."""
        mus = [part.mu for part in self.parts]
        return None if None in mus else max((mu for mu in mus if mu is not None), default=0.0)

    @property
    def pure(self) -> float:
        """The largest."""
        return max((part.pure for part in self.parts), default=0.0)

    @property
    def rho(self) -> float:
        """The largest."""
        return max((part.rho for part in self.parts), default=0.0)

    @property
    def step(self) -> float:
        """The smallest."""
        return min((part.step for part in self.parts), default=inf)

    def pld(self, step: float) -> "PLD | None":
        """Of the only part, or of the largest of Gaussians; None where no part dominates all."""
        mu = self.mu
        if mu is not None:
            return GaussianSpend(mu, self.note).pld(step)
        return self.parts[0].pld(step) if len(self.parts) == 1 else None

    def delta(self, epsilon: float) -> float:
        """The largest delta of a part at `epsilon`."""
        return max((part.delta(epsilon) for part in self.parts), default=0.0)


@dataclass(frozen=True)
class Expiring:
    """The spend of a mechanism that protects a user for `window` rounds only.

    A ledger must promise no more than that: see `Ledger.window`.
    """

    part: Spend
    window: int

    @property
    def note(self) -> str:
        """The mechanism in words."""
        return f"{self.part.note}, each user for {self.window} rounds"

    @property
    def mu(self) -> float | None:
        """Within the window."""
        return self.part.mu

    @property
    def pure(self) -> float:
        """Within the window."""
        return self.part.pure

    @property
    def rho(self) -> float:
        """Within the window."""
        return self.part.rho

    @property
    def step(self) -> float:
        """As without a window."""
        return self.part.step

    def pld(self, step: float) -> "PLD | None":
        """Within the window."""
        return self.part.pld(step)

    def delta(self, epsilon: float) -> float:
        """Within the window."""
        return self.part.delta(epsilon)


def lasts(spend: Spend) -> float:
    """For how many rounds a user is protected: infinity, unless there is an `Expiring` inside."""
    if isinstance(spend, Expiring):
        return min(spend.window, lasts(spend.part))
    return min(map(lasts, spend.parts), default=inf) if isinstance(spend, Parallel) else inf


@cache
def composed(*spends: Spend) -> "PLD | None":
    """One loss distribution for all of them, on the finest of their grids; None if one has none."""
    step = min((spend.step for spend in spends), default=inf)
    curves = [spend.pld(min(step, 1e-2)) for spend in spends]
    total = None
    for curve in curves:
        if curve is None:
            return None
        total = curve if total is None else total.compose(curve)
    return total
