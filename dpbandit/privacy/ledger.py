"""Ledgers: the privacy costs of an agent's mechanisms, complete before round 1.

A `Ledger` composes the spends of all mechanisms of an agent, in the `Notion` of privacy that they
are stated in; `most` and `least_noise` invert it: from a privacy target to the mechanism that just
meets the target.
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
"""Bound on the relative excess of a user's change of a sum over the sensitivity by rounding errors,
for sums of 1,700 numbers in any order. Every epsilon and delta of a ledger covers it."""
_EXCESS = 1 + MOVEMENT_ROUNDING  # factor on epsilon and mu that covers rounding errors
SMALLEST_DOUBLE = 5e-324
"""Smallest positive double, the delta of an event too rare for doubles"""
_NAMED_PARTS, _TABLE_ROWS = 3, 20
"""Largest number of mechanisms named in a line, and of rows in a table of a ledger"""
_MAX_GRID_MU = 50.0
"""Bound on mu (epsilon about 1,000), from which on dp-accounting is not run, as GDP is exact"""


@dataclass(frozen=True, repr=False)
class Ledger:
    """Privacy costs of one agent's mechanisms, and the notion of privacy they are stated in.

    >>> Ledger((GaussianSpend(0.3, "a"), GaussianSpend(0.4, "b"))).mu
    0.5
    """

    spends: tuple[Spend, ...] = ()
    notion: Notion = JOINT_DP
    """notion of privacy of the costs; a certificate has the notion of the agent on its problem"""

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
        notes = [repr(spend.note) for spend in self.spends[:_NAMED_PARTS]]
        more = (
            [f"and {len(self.spends) - _NAMED_PARTS} more"]
            if len(self.spends) > _NAMED_PARTS
            else []
        )
        return ", ".join([*notes, *more]) or "nothing"

    def _repr_html_(self) -> str:
        head = ("mechanism", "pure epsilon", "rho (zCDP)", "mu (GDP)")
        rows = [(s.note, *map(_number, (s.pure, s.rho, s.mu))) for s in self.spends[:_TABLE_ROWS]]
        more = len(self.spends) - len(rows)
        rows += [(f"and {more} more", "", "", "")] if more else []
        rows.append(("all", *map(_number, (self.pure, self.rho, self.mu))))
        return html_table(head, rows, str(self.notion))

    @property
    def brief(self) -> str:
        """Restrictions of the notion in few words, for legends and table cells; empty if none."""
        return self.notion.brief

    def on(self, problem: Facts) -> "Ledger":
        """Return this ledger with its notion adapted to a problem, see `Notion.on`."""
        notion = self.notion.on(problem)
        world = () if notion.covers or not self.notion.covers else (_WORLD_SPEND,)
        return replace(self, spends=(*self.spends, *world), notion=notion)

    @property
    def mu(self) -> float | None:
        """GDP parameter of the composition; None with a spend that is not Gaussian, infinite if the
        notion covers nothing."""
        if not self.notion.covers:
            return inf
        mus = [spend.mu for spend in self.spends]
        return None if None in mus else sqrt(sum(mu * mu for mu in mus if mu is not None))

    @property
    def pure(self) -> float:
        """Pure epsilon of the composition, the sum over spends."""
        return sum(spend.pure for spend in self.spends) if self.notion.covers else inf

    @property
    def rho(self) -> float:
        """zCDP parameter of the composition, the sum over spends."""
        return sum(spend.rho for spend in self.spends) if self.notion.covers else inf

    def __add__(self, other: "Ledger") -> "Ledger":
        """Return the ledger of two agents on the same people: costs compose, in the weaker notion.

        Guarantee:
            Spends hold for adaptively chosen data, and mechanisms that answer in turns compose as
            those that answer one after the other (Vadhan and Zhang, "Concurrent composition
            theorems for differential privacy", STOC 2023), so that agents may observe each other.
            Neighbours may differ in a user's rounds with both.

        Raises `InputError` where the notions cannot be compared.

        >>> (Ledger((GaussianSpend(0.3, "a"),)) + Ledger((GaussianSpend(0.4, "b"),))).mu
        0.5
        """
        if not isinstance(other, Ledger):
            return NotImplemented
        return Ledger((*self.spends, *other.spends), self.notion.weaker(other.notion))

    def beside(self, other: "Ledger") -> "Ledger":
        """Return the ledger of two agents whose people are disjoint: the larger of both costs.

        Guarantee:
            If nobody is with both, which the notion states as a condition, neighbours differ in
            rounds with one agent alone, and the other agent depends on its releases and on others'
            data alone.

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
        """Return the certified delta at `epsilon`: exact for Gaussians, else an upper bound.

        It is 0 from the pure epsilon on; a positive one that underflows is the smallest double.
        """
        if epsilon >= self.pure * _EXCESS:
            return 0.0
        if self.mu is not None:
            return max(SMALLEST_DOUBLE, delta_of(self.mu * _EXCESS, epsilon))
        by_zcdp = zcdp_delta_of(self.rho * _EXCESS**2, epsilon)  # less for many of bounded range
        return max(SMALLEST_DOUBLE, min(by_zcdp, self._joint_spend.delta(epsilon / _EXCESS)))

    def epsilon(self, delta: float) -> float:
        """Return the certified epsilon at `delta`, rounded up; infinity if there is none."""
        if self.mu is not None:
            return epsilon_of(self.mu * _EXCESS, delta)
        pure = self.pure * _EXCESS
        if delta <= 0:
            return pure
        by_zcdp = zcdp_epsilon_of(self.rho * _EXCESS**2, delta)
        return min(pure, by_zcdp, self._joint_spend.least_epsilon(delta) * _EXCESS)

    def within(self, age: int) -> "Ledger":
        """Return a ledger against observers of releases up to `age` rounds after a user's round.

        The age is fixed beforehand; age 0 has the releases in her own round. For a person who may
        return, the whole cost is counted at any age.
        """
        whole("age", age, 0)
        if self.notion.visits:
            gone = age >= (self.notion.window or inf)
            return no_privacy("an older person") if gone else self
        spends = tuple(within(s, age) for s in self.spends)
        return replace(self, spends=spends, notion=replace(self.notion, window=None))

    def spent(self, rounds: int) -> "Ledger":
        """Return an upper bound of the ledger of the first `rounds` rounds, fixed beforehand.

        The notion stays the same. For running sums, the releases so far are counted; for persons
        and other mechanisms, the whole cost is counted from the beginning.
        """
        whole("rounds", rounds, 0)
        spends = self.spends if self.notion.visits else tuple(spent(s, rounds) for s in self.spends)
        return replace(self, spends=spends)

    @property
    def _joint_spend(self) -> "Spend | Composition | _BasicSum":
        """The only spend, or the composition of the privacy losses of all spends; spends without a
        loss distribution are added by basic composition."""
        if len(self.spends) == 1:
            return self.spends[0]
        curve = composed(*self.spends)
        if curve is not None:
            return curve
        known = tuple(spend for spend in self.spends if composed(spend) is not None)
        alone = tuple(spend for spend in self.spends if composed(spend) is None)
        return _BasicSum((*((Ledger(known),) if known else ()), *(Ledger((s,)) for s in alone)))

    def accountants(self, delta: float) -> dict[str, float]:
        """Return the epsilon at `delta` by every accountant that applies, keyed by name."""
        found = {"pure": self.pure} if self.pure < inf else {}
        if delta > 0:
            if self.rho < inf:
                found["zCDP (BS)"] = loose_epsilon(self.rho, delta)
                found["zCDP (CKS)"] = zcdp_epsilon_of(self.rho, delta)
            curve = composed(*self.spends) if self.mu is None else None
            if curve is not None:
                found["PLD"] = curve.least_epsilon(delta)
            elif self.mu is not None and 0 < self.mu < _MAX_GRID_MU:
                found |= _by_dp_accounting(self.mu, delta)
        if self.mu is not None:
            found["GDP"] = epsilon_of(self.mu, delta)
        return found or {"curve": self.epsilon(delta)}


@dataclass(frozen=True)
class _BasicSum:
    """Basic composition of ledgers: epsilons add up, each at an equal share of delta."""

    parts: tuple[Ledger, ...]

    def least_epsilon(self, delta: float) -> float:
        return sum(part.epsilon(delta / len(self.parts)) for part in self.parts)

    def delta(self, epsilon: float) -> float:
        low, high = log(_MIN_DELTA), 0.0
        while high - low > 1e-9:
            middle = (low + high) / 2
            enough = self.least_epsilon(exp(middle)) <= epsilon
            low, high = (low, middle) if enough else (middle, high)
        return exp(high)


_MIN_DELTA = 1e-300
"""Least delta that is tried in basic composition of ledgers"""


def _by_dp_accounting(mu: float, delta: float) -> dict[str, float]:
    """Return the epsilon of dp-accounting for a Gaussian with our replace-one sensitivity.

    REPLACE_ONE in dp-accounting doubles the sensitivity in one accountant and not in another, so it
    is not used. Beyond epsilon 700, where e^epsilon overflows there, the result is empty.
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
    """Return the number of rounds for which a user is protected, infinite if nothing expires."""
    if isinstance(spend, Expiring):
        return min(spend.window, lasts(spend.part))
    return min(map(lasts, getattr(spend, "parts", ())), default=inf)


def _number(value: float | None) -> str:
    return "-" if value is None or value == inf else rounded(value, 4)


def no_data() -> Ledger:
    """Return the ledger of an agent that uses no data: epsilon 0."""
    return Ledger((), NO_DATA)


def no_privacy(what: str) -> Ledger:
    """Return the ledger of an agent without privacy, epsilon infinity; `what` is its note."""
    return Ledger((GaussianSpend(inf, what),), NO_PRIVACY)


_WORLD_SPEND = GaussianSpend(inf, "the world's answers")  # if they reveal users' data


def ledger_of(
    epsilon: float, *spends: Spend, notion: Notion = JOINT_DP, without: str = "sums without noise"
) -> Ledger:
    """Return the ledger of noise calibrated to `epsilon`; at infinity, of no noise and no privacy.

    >>> ledger_of(1.0, GaussianSpend(0.3, "a sum")).mu, ledger_of(inf, GaussianSpend(inf, "")).mu
    (0.3, inf)
    """
    return no_privacy(without) if epsilon == inf else Ledger(spends, notion)


@dataclass(frozen=True)
class Sequential:
    """Cost of mechanisms that see the same rounds, as one spend: the counterpart of `Parallel`.

    Costs compose exactly as in a `Ledger` of the parts. Give a ledger the `parts` themselves where
    possible: it then names each of them.

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


_MAX_TRIES = 60  # largest number of ledgers that `most` evaluates
_MIN_DELTA_RATIO = 0.01
"""Ratio delta / epsilon of a target above which `most` searches by delta, as epsilon may be 0"""


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
    """Return the largest x in [low, high] whose ledger meets the target, up to a factor `close`.

    Costs must grow with x, about as a power of x with exponent `slope` near `start` (`low` if
    None). Search is by secant steps in logarithms of epsilon at the given delta, or of delta where
    it is large; a step beyond `high` is replaced by it once, others off the bracket by its middle.
    `low` has to meet the target; every other x returned has been tried.

    >>> ledger = lambda mu: Ledger((GaussianSpend(mu, "a sum"),))
    >>> round(most(ledger, epsilon=1.0, delta=1e-5, low=0.01, high=10.0, close=0.9999), 3)
    0.268
    """
    by_delta = delta > _MIN_DELTA_RATIO * epsilon
    target = delta if by_delta else epsilon
    x, aim = start or low, log((1 + close) / 2 * target)
    before: tuple[float, float] | None = None
    high_untried = high
    for _ in range(_MAX_TRIES):
        made = ledger(x)
        found = made.delta(epsilon) if by_delta else made.epsilon(delta)
        low, high = (max(x, low), high) if found <= target else (low, min(x, high))
        if close * target <= found <= target or high <= low / close:
            break
        at = log(x), log(min(max(found, target / 1e3), target * 1e3))  # from 0 to infinity
        if before is not None and at[1] != before[1]:
            slope = max((at[1] - before[1]) / (at[0] - before[0]), 0.1)
        before, x = at, exp(at[0] + (aim - at[1]) / slope)
        if x >= high == high_untried:
            x, high_untried = high, inf
        elif not low < x < high:
            x = sqrt(low) * sqrt(high)
    return low


_TARGET_PRECISION = 1 - 1e-6
"""Share of the target epsilon at which the search of `least_noise` ends; in closed form, the ratio
of two noises between which the least one lies"""
_MAX_NOISE = 1e12
"""Largest noise that `least_noise` tries; the smallest is 1 divided by it"""


def least_noise(spend: Callable[[float], Spend], *, epsilon: float, delta: float) -> float:
    """Return the least noise whose certificate meets the target, rounded up by up to 1e-6.

    Args:
        spend: function from a noise > 0 to the spend of a mechanism; less noise costs more.
        epsilon: target > 0; infinity needs no noise.
        delta: target in [0, 1).
    """
    privacy_target(epsilon, delta)
    if epsilon == inf:
        return 0.0
    least = _closed_form_noise(spend, epsilon, delta)
    if delta == 0:
        return least

    def ledger(x: float) -> Ledger:
        return Ledger((spend(1 / x),))

    low, high, close = 1 / least, _MAX_NOISE, _TARGET_PRECISION
    x = most(ledger, epsilon=epsilon, delta=delta, low=low, high=high, close=close)
    return 1 / x


def _closed_form_noise(spend: Callable[[float], Spend], epsilon: float, delta: float) -> float:
    """Return the least noise that meets the target by pure DP or by zCDP, in closed form."""

    def enough(noise: float) -> bool:
        made = spend(noise)
        pure = made.pure <= epsilon * (1 - 1e-12)  # with rounding, see `MOVEMENT_ROUNDING`
        return pure or (delta > 0 and zcdp_delta_of(made.rho, epsilon) <= delta)

    low, high = 1 / _MAX_NOISE, _MAX_NOISE
    if not enough(high):
        raise InputError(f"Expected epsilon={epsilon!r} at delta={delta!r} to be within reach.")
    while low < _TARGET_PRECISION * high:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
