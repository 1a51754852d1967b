"""What was promised: a value without data and without a replica axis, complete before round 1."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Protocol

from dpbandit.inputs import BadInput
from dpbandit.privacy import gdp

JOINT_DP = "joint DP under continual observation, replace one user's round"
NO_DATA = "plays without looking at any user's data"
NO_PRIVACY = "none: exact data reaches later actions"


class Spend(Protocol):
    """The privacy cost of everything one mechanism will ever release about one user."""

    @property
    def note(self) -> str:
        """The mechanism in words."""
        ...

    @property
    def mu(self) -> float | None:
        """The Gaussian-DP parameter, or None for a mechanism that is not Gaussian."""
        ...

    def delta(self, epsilon: float) -> float:
        """An upper bound of the curve delta(epsilon)."""
        ...


@dataclass(frozen=True)
class GaussianSpend:
    """A mechanism whose whole life is mu-GDP: L2 movement over noise standard deviation."""

    mu: float
    note: str

    def delta(self, epsilon: float) -> float:
        """The exact delta at `epsilon`."""
        return gdp.delta_of(self.mu, epsilon)


@dataclass(frozen=True)
class Ledger:
    """The spends of one agent, composed, and the notion of privacy they are stated in.

    >>> Ledger((GaussianSpend(0.3, "a"), GaussianSpend(0.4, "b"))).mu
    0.5
    """

    spends: tuple[Spend, ...] = ()
    notion: str = JOINT_DP

    def __post_init__(self) -> None:
        if self.mu is None and len(self.spends) > 1:
            raise BadInput("Several spends compose only when all of them are Gaussian.")

    @property
    def mu(self) -> float | None:
        """The GDP parameter of the composition, None when a spend is not Gaussian."""
        parts = [spend.mu for spend in self.spends]
        if any(mu is None for mu in parts):
            return None
        return sqrt(sum(mu * mu for mu in parts if mu is not None))

    def delta(self, epsilon: float) -> float:
        """The certified delta at `epsilon`: exact for Gaussians, else an upper bound."""
        mu = self.mu
        return self.spends[0].delta(epsilon) if mu is None else gdp.delta_of(mu, epsilon)

    def epsilon(self, delta: float) -> float:
        """The certified epsilon at `delta`, rounded up; infinity where none can be given."""
        mu = self.mu
        if mu is not None:
            return gdp.epsilon_of(mu, delta)
        if delta <= 0:
            return inf
        high = 1.0
        while self.delta(high) > delta:
            high *= 2
            if high > 1e4:
                return inf
        low = 0.0
        while high - low > 1e-6 * high and self.delta(low) > delta:
            middle = (low + high) / 2
            low, high = (low, middle) if self.delta(middle) <= delta else (middle, high)
        return high if self.delta(low) > delta else low


def no_data() -> Ledger:
    """The ledger of an agent that never looks: epsilon 0."""
    return Ledger((), NO_DATA)


def no_privacy(what: str) -> Ledger:
    """The ledger of an agent that lets exact data through: epsilon infinity."""
    return Ledger((GaussianSpend(inf, what),), NO_PRIVACY)
