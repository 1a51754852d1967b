"""What was promised: a value without data and without a replica axis, complete before round 1."""

from dataclasses import dataclass
from math import inf, sqrt
from typing import Literal

from dpbandit.inputs import BadInput, whole
from dpbandit.privacy import gdp, zcdp
from dpbandit.privacy.spends import ROUNDING, GaussianSpend, Spend, composed, lasts

JOINT_DP = "joint DP under continual observation, {} one user's round"
ALL_ACTIONS = "DP of all actions under continual observation, {} one user's round"
NO_DATA = "plays without looking at any user's data"
NO_PRIVACY = "none: exact data reaches later actions"

_LARGE = 100.0
"""From this epsilon on the losses of unlike mechanisms are not composed on a grid, which grows with
epsilon: zCDP bounds them."""
_DENSE = 50.0
"""From this mu on (epsilon beyond 1,000) a grid of losses is not worth its memory; GDP is exact."""


@dataclass(frozen=True)
class Ledger:
    """The spends of one agent, composed, and the notion of privacy they are stated in.

    `adjacency` is how neighbouring streams differ at one round: its user is replaced by any other,
    or zeroed out. `window` = W promises it only for the users of the last W rounds, read at every
    round (window DP; Lou and Cheung 2020): what is released later may reveal them completely. None
    protects every user for ever. `condition` is a fact about the losses that the promise rests on
    and no clip enforces. Whoever shows an epsilon of this ledger shows `notion` or `brief` beside
    it: neither restriction may be read as ordinary DP.

    >>> Ledger((GaussianSpend(0.3, "a"), GaussianSpend(0.4, "b"))).mu
    0.5
    """

    spends: tuple[Spend, ...] = ()
    scope: str = JOINT_DP
    """what is promised, in words; a certificate has the problem's in place of `JOINT_DP`"""
    adjacency: Literal["replace", "zero out"] = "replace"
    window: int | None = None
    condition: str = ""

    def __post_init__(self) -> None:
        if self.window is not None:
            whole("window", self.window, 1)
        for spend in self.spends:
            if not (self.window or inf) <= lasts(spend):
                raise BadInput(
                    f"Expected window={self.window} of the ledger to be at most {lasts(spend)}, "
                    f"as long as this lasts: {spend.note}."
                )

    @property
    def notion(self) -> str:
        """The notion of privacy in words."""
        words = self.scope.format(self.adjacency)
        if self.window is not None:
            words = f"window DP ({words}) for the last {self.window} rounds only "
            words += "(older data may be revealed completely)"
        return words + (f"; CONDITIONAL: {self.condition}" if self.condition else "")

    @property
    def brief(self) -> str:
        """What restricts the promise, for legends and cells; empty where nothing does."""
        window = [] if self.window is None else [f"window-DP, last {self.window}"]
        return ", ".join([*window, *(["conditional"] if self.condition else [])])

    @property
    def mu(self) -> float | None:
        """The GDP parameter of the composition, None when a spend is not Gaussian."""
        mus = [spend.mu for spend in self.spends]
        return None if None in mus else sqrt(sum(mu * mu for mu in mus if mu is not None))

    @property
    def pure(self) -> float:
        """Pure epsilon: the plain sum."""
        return sum(spend.pure for spend in self.spends)

    @property
    def rho(self) -> float:
        """zCDP: the plain sum."""
        return sum(spend.rho for spend in self.spends)

    def delta(self, epsilon: float) -> float:
        """The certified delta at `epsilon`: exact for Gaussians, else an upper bound."""
        if self.mu is not None:
            return gdp.delta_of(self.mu, epsilon)
        if epsilon >= self.pure:
            return 0.0
        by_zcdp = zcdp.delta_of(self.rho, epsilon)  # less for many selections of bounded range
        if len(self.spends) == 1:
            return min(by_zcdp, self.spends[0].delta(epsilon))
        if epsilon > _LARGE:
            return by_zcdp
        curve = composed(*self.spends)
        if curve is None:
            raise BadInput("These spends have no common loss distribution to compose.")
        return min(by_zcdp, float(curve.get_delta_for_epsilon(epsilon)) + ROUNDING)

    def epsilon(self, delta: float) -> float:
        """The certified epsilon at `delta`, rounded up; infinity where none can be given."""
        if self.mu is not None:
            return gdp.epsilon_of(self.mu, delta)
        if delta <= 0:
            return self.pure
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

    def accountants(self, delta: float) -> dict[str, float]:
        """The epsilon at `delta` by every accountant that applies, by its name."""
        found = {"pure": self.pure} if self.pure < inf else {}
        if delta > 0:
            if self.rho < inf:
                found["zCDP (BS)"] = zcdp.loose_epsilon(self.rho, delta)
                found["zCDP (CKS)"] = zcdp.epsilon_of(self.rho, delta)
            wanted = self.spends and (self.mu or 0.0) < _DENSE
            curve = composed(*self.spends) if wanted else None
            if curve is not None:
                found["PLD"] = float(curve.get_epsilon_for_delta(delta))
        if self.mu is not None:
            found["GDP"] = gdp.epsilon_of(self.mu, delta)
        return found or {"curve": self.epsilon(delta)}


def no_data() -> Ledger:
    """The ledger of an agent that never looks: epsilon 0."""
    return Ledger((), NO_DATA)


def no_privacy(what: str) -> Ledger:
    """The ledger of an agent that lets exact data through: epsilon infinity."""
    return Ledger((GaussianSpend(inf, what),), NO_PRIVACY)
