"""Ledgers: the privacy costs of an agent's mechanisms, complete before round 1.

A `Ledger` composes the spends of all mechanisms of an agent, beside the `Notion` of privacy that
they are stated in; `most` and `least_noise` go back from a privacy target to the mechanism that
just meets it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt

import numpy as np

from dpbandit.base import InputError, abbrev, html_table, privacy_target, rounded, whole
from dpbandit.privacy.curves import (
    delta_of,
    epsilon_of,
    loose_epsilon,
    zcdp_delta_of,
    zcdp_epsilon_of,
)
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss
from dpbandit.privacy.notion import JOINT_DP, NO_DATA, NO_PRIVACY, Facts, Notion
from dpbandit.privacy.spends import (
    Expiring,
    GaussianSpend,
    Parallel,
    Spend,
    check_parts,
    composed,
    spent,
    within,
)

MOVEMENT_ROUNDING = 1e-13
"""What a mechanism adds may move by so much more than its sensitivity, relatively, because sums and
norms are rounded, those of 1,700 numbers by less, in whatever order they are added. Every epsilon
and delta of a ledger is for movements that are so much larger, on any processor."""
_GROWN = 1 + MOVEMENT_ROUNDING
LEAST = 5e-324
"""The smallest double above 0."""
_MAX_PARTS, _ROWS = 3, 20
"""Mechanisms that a line names, and that a table has; an agent may have thousands"""
_DENSE = 50.0
"""From this mu on (epsilon beyond 1,000) a grid of losses is not worth its memory; GDP is exact."""


@dataclass(frozen=True, repr=False)
class Ledger:
    """The spends of one agent, composed, and the notion of privacy they are stated in.

    >>> Ledger((GaussianSpend(0.3, "a"), GaussianSpend(0.4, "b"))).mu
    0.5
    """

    spends: tuple[Spend, ...] = ()
    notion: Notion = JOINT_DP
    """what the costs are a promise of; a certificate has that of the agent on its problem"""

    def __post_init__(self) -> None:
        check_parts("spends", self.spends)
        if type(self.notion) is not Notion:  # a subclass may compare and read otherwise
            raise InputError(f"Expected notion={abbrev(self.notion)} of a ledger to be a Notion.")
        for spend in self.spends:
            if not (self.notion.window or inf) <= lasts(spend):
                raise InputError(
                    f"Expected window={self.notion.window} of the ledger to be at most "
                    f"{lasts(spend)}, as long as this lasts: {spend.note}."
                )

    def __repr__(self) -> str:
        return f"Ledger({self._names}: {self.notion})"

    @property
    def _names(self) -> str:
        notes = [repr(spend.note) for spend in self.spends[:_MAX_PARTS]]
        more = (
            [f"and {len(self.spends) - _MAX_PARTS} more"] if len(self.spends) > _MAX_PARTS else []
        )
        return ", ".join([*notes, *more]) or "nothing"

    def _repr_html_(self) -> str:
        head = ("mechanism", "pure epsilon", "rho (zCDP)", "mu (GDP)")
        rows = [(s.note, *map(_number, (s.pure, s.rho, s.mu))) for s in self.spends[:_ROWS]]
        more = len(self.spends) - len(rows)
        rows += [(f"and {more} more", "", "", "")] if more else []
        rows.append(("all", *map(_number, (self.pure, self.rho, self.mu))))
        return html_table(head, rows, str(self.notion))

    @property
    def brief(self) -> str:
        """The restrictions of the promise, for legends and cells; empty where there are none."""
        return self.notion.brief

    def on(self, problem: Facts) -> "Ledger":
        """The ledger of an agent that has met its problem, see `Notion.on`."""
        notion = self.notion.on(problem)
        world = () if notion.covers or not self.notion.covers else (_WORLD_SPEND,)
        return replace(self, spends=(*self.spends, *world), notion=notion)

    @property
    def mu(self) -> float | None:
        """The GDP parameter of the composition, None with a spend that is not Gaussian; infinite
        where nothing is covered."""
        if not self.notion.covers:
            return inf
        mus = [spend.mu for spend in self.spends]
        return None if None in mus else sqrt(sum(mu * mu for mu in mus if mu is not None))

    @property
    def pure(self) -> float:
        """Pure epsilon, the plain sum."""
        return sum(spend.pure for spend in self.spends) if self.notion.covers else inf

    @property
    def rho(self) -> float:
        """zCDP, the plain sum."""
        return sum(spend.rho for spend in self.spends) if self.notion.covers else inf

    def __add__(self, other: "Ledger") -> "Ledger":
        """The ledger of two agents on the same people: costs compose, in the weaker notion.

        Guarantee:
            Spends hold for adaptively chosen data, and mechanisms that answer in turns compose as
            those that answer one after the other (Vadhan and Zhang, "Concurrent composition
            theorems for differential privacy", STOC 2023), so that agents may see what the other
            one does. A user differs in her round with either.

        Raises `InputError` where the notions cannot be compared.

        >>> (Ledger((GaussianSpend(0.3, "a"),)) + Ledger((GaussianSpend(0.4, "b"),))).mu
        0.5
        """
        if not isinstance(other, Ledger):
            return NotImplemented
        return Ledger((*self.spends, *other.spends), self.notion.weaker(other.notion))

    def beside(self, other: "Ledger") -> "Ledger":
        """The ledger of two agents whose people are disjoint: each pays for the dearer one.

        Guarantee:
            If nobody is with both, which the notion states as a condition, neighbours differ with
            one agent alone, and what the other does is a function of its releases and of others'
            data.

        Raises `InputError` where the notions cannot be compared.

        >>> one = Ledger((GaussianSpend(0.3, "a"),)).beside(Ledger((GaussianSpend(0.4, "b"),)))
        >>> one.mu, one.notion.conditions
        (0.4, ('nobody is with both agents',))
        """
        notion = self.notion.weaker(other.notion).conditional_on("nobody is with both agents")
        parts = tuple(
            each.spends[0] if len(each.spends) == 1 else Sequential(each.spends, each._names)
            for each in (self, other)
        )
        spend = Parallel(parts, "two agents with disjoint people")
        return Ledger((spend,), notion)

    def delta(self, epsilon: float) -> float:
        """The certified delta at `epsilon`: exact for Gaussians, else an upper bound.

        It is 0 from the pure epsilon on and nowhere else, even where no double is small enough.
        """
        if epsilon >= self.pure * _GROWN:
            return 0.0
        if self.mu is not None:
            return max(LEAST, delta_of(self.mu * _GROWN, epsilon))
        by_zcdp = zcdp_delta_of(self.rho * _GROWN**2, epsilon)  # less for many of bounded range
        return max(LEAST, min(by_zcdp, self._together.delta(epsilon / _GROWN)))

    def epsilon(self, delta: float) -> float:
        """The certified epsilon at `delta`, rounded up; infinity where none can be given."""
        if self.mu is not None:
            return epsilon_of(self.mu * _GROWN, delta)
        pure = self.pure * _GROWN
        if delta <= 0:
            return pure
        by_zcdp = zcdp_epsilon_of(self.rho * _GROWN**2, delta)
        return min(pure, by_zcdp, self._together.least_epsilon(delta) * _GROWN)

    def within(self, age: int) -> "Ledger":
        """Bound what observers of releases up to `age` rounds after a user's own learn of her.

        The age is fixed beforehand.

        Age 0 are releases in her own round. A person who may return counts in full at any age.
        """
        whole("age", age, 0)
        if self.notion.visits:
            gone = age >= (self.notion.window or inf)
            return no_privacy("an older person") if gone else self
        spends = tuple(within(s, age) for s in self.spends)
        return replace(self, spends=spends, notion=replace(self.notion, window=None))

    def spent(self, rounds: int) -> "Ledger":
        """The ledger of the first so many rounds, a number fixed beforehand, from above;
        the promise is the same.

        Running sums know when they release; anything else, and persons, count in full from the
        beginning.
        """
        whole("rounds", rounds, 0)
        spends = self.spends if self.notion.visits else tuple(spent(s, rounds) for s in self.spends)
        return replace(self, spends=spends)

    @property
    def _together(self) -> "Spend | Composition | _Basic":
        """A bound on all spends as one: the only spend, or their composed losses; by basic
        composition those that have none."""
        if len(self.spends) == 1:
            return self.spends[0]
        curve = composed(*self.spends)
        if curve is not None:
            return curve
        known = tuple(spend for spend in self.spends if composed(spend) is not None)
        alone = tuple(spend for spend in self.spends if composed(spend) is None)
        return _Basic((*((Ledger(known),) if known else ()), *(Ledger((s,)) for s in alone)))

    def accountants(self, delta: float) -> dict[str, float]:
        """The epsilon at `delta` by every accountant that applies, by its name."""
        found = {"pure": self.pure} if self.pure < inf else {}
        if delta > 0:
            if self.rho < inf:
                found["zCDP (BS)"] = loose_epsilon(self.rho, delta)
                found["zCDP (CKS)"] = zcdp_epsilon_of(self.rho, delta)
            curve = composed(*self.spends) if self.mu is None else None
            if curve is not None:
                found["PLD"] = curve.least_epsilon(delta)
            elif self.mu is not None and 0 < self.mu < _DENSE:
                found |= _by_dp_accounting(self.mu, delta)
        if self.mu is not None:
            found["GDP"] = epsilon_of(self.mu, delta)
        return found or {"curve": self.epsilon(delta)}


@dataclass(frozen=True)
class _Basic:
    """Ledgers whose epsilons and deltas add up, each at the same share of delta."""

    parts: tuple[Ledger, ...]

    def least_epsilon(self, delta: float) -> float:
        return sum(part.epsilon(delta / len(self.parts)) for part in self.parts)

    def delta(self, epsilon: float) -> float:
        low, high = log(_LEAST_DELTA), 0.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            enough = self.least_epsilon(exp(middle)) <= epsilon
            low, high = (low, middle) if enough else (middle, high)
        return exp(high)


_LEAST_DELTA = 1e-300
"""Start of a search for delta"""


def _by_dp_accounting(mu: float, delta: float) -> dict[str, float]:
    """The epsilon that dp-accounting finds for a Gaussian, told OUR replace-one sensitivity.

    Its own REPLACE_ONE doubles the sensitivity in one accountant and not in another. From 700 on
    e^epsilon overflows there: it finds infinity, which is left out.
    """
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    tail = min(-50.0, log(delta) - 10)
    with np.errstate(over="ignore"):
        curve = from_gaussian_mechanism(
            1 / mu, value_discretization_interval=mu / 2000, log_mass_truncation_bound=tail
        )
        epsilon = float(curve.get_epsilon_for_delta(delta))
    return {"PLD": epsilon} if epsilon < inf else {}


def lasts(spend: Spend) -> float:
    """For how many rounds a user is protected: infinity, unless there is an `Expiring` inside."""
    if isinstance(spend, Expiring):
        return min(spend.window, lasts(spend.part))
    return min(map(lasts, getattr(spend, "parts", ())), default=inf)


def _number(value: float | None) -> str:
    return "-" if value is None or value == inf else rounded(value, 4)


def no_data() -> Ledger:
    """Ledger of an agent that uses no data: epsilon 0."""
    return Ledger((), NO_DATA)


def no_privacy(what: str) -> Ledger:
    """Ledger of an agent without privacy: epsilon infinity."""
    return Ledger((GaussianSpend(inf, what),), NO_PRIVACY)


_WORLD_SPEND = GaussianSpend(inf, "the world's answers")


def ledger_of(
    epsilon: float,
    *spends: Spend,
    notion: Notion = JOINT_DP,
    without: str = "sums without noise",
) -> Ledger:
    """Ledger of noise calibrated to `epsilon`; infinity is no noise and no privacy.

    >>> ledger_of(1.0, GaussianSpend(0.3, "a sum")).mu, ledger_of(inf, GaussianSpend(inf, "")).mu
    (0.3, inf)
    """
    return no_privacy(without) if epsilon == inf else Ledger(spends, notion)


@dataclass(frozen=True)
class Sequential:
    """Mechanisms that see the same rounds, as one spend: the counterpart of `Parallel`.

    Everything adds up, or composes, exactly as in a `Ledger` of the parts.

    A ledger is better given the `parts` themselves: it then names them one by one.

    >>> Sequential((GaussianSpend(0.3, "a"), GaussianSpend(0.4, "b")), "both").mu
    0.5
    """

    parts: tuple[Spend, ...]
    note: str

    def __post_init__(self) -> None:
        check_parts("parts", self.parts)

    @property
    def mu(self) -> float | None:
        return Ledger(self.parts).mu

    @property
    def pure(self) -> float:
        return Ledger(self.parts).pure

    @property
    def rho(self) -> float:
        return Ledger(self.parts).rho

    @property
    def step(self) -> float:
        return min((part.step for part in self.parts), default=inf)

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        each = [part.losses(step) for part in self.parts]
        known = [losses for losses in each if losses is not None]
        return tuple(loss for losses in known for loss in losses) if known == each else None

    def delta(self, epsilon: float) -> float:
        return Ledger(self.parts).delta(epsilon)

    def least_epsilon(self, delta: float) -> float:
        # The least epsilon at `delta`, by the better of the two
        return Ledger(self.parts).epsilon(delta)


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
    slope: float = 1.0,
    close: float,
) -> float:
    """The largest x between low and high whose ledger meets the target, to the ratio `close`.

    More x, more of either epsilon or delta, and about as a power of it, `slope` at the beginning:
    secants in logarithms, from `start` or `low` on, of epsilon at the given delta, or of delta
    where that is large. A try beyond `high` is replaced by `high`, once; one that leaves the
    bracket of those before, by its middle. `low` is known to meet the target; nothing is returned
    that has not been tried.

    >>> ledger = lambda mu: Ledger((GaussianSpend(mu, "a sum"),))
    >>> round(most(ledger, epsilon=1.0, delta=1e-5, low=0.01, high=10.0, close=0.9999), 3)
    0.268
    """
    by_delta = delta > _FLAT * epsilon
    target = delta if by_delta else epsilon
    x, aim = start or low, log((1 + close) / 2 * target)
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
        pure = made.pure <= epsilon * (1 - 1e-12)  # with rounding, see `MOVEMENT_ROUNDING`
        return pure or (delta > 0 and zcdp_delta_of(made.rho, epsilon) <= delta)

    low, high = 1 / _LARGEST, _LARGEST
    if not enough(high):
        raise InputError(f"Expected epsilon={epsilon!r} at delta={delta!r} to be within reach.")
    while low < _CLOSE * high:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
