"""Privacy costs of mechanisms for one user, as frozen values without data."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import inf
from numbers import Real
from typing import ClassVar, Protocol, cast

from dpbandit.base import InputError, abbrev, inside, whole
from dpbandit.privacy.curves import MAX_Z, delta_of, deltas_of, epsilon_of, error_of, rho_of_mu
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss, connected, constant
from dpbandit.privacy.premises import Hearing


class Spend(Protocol):
    """Protocol of a mechanism's privacy cost for one user: pure, zCDP, GDP and exact curves."""

    def __hash__(self) -> int: ...

    @property
    def note(self) -> str:
        """Name of the mechanism, for ledgers and messages."""
        ...

    @property
    def mu(self) -> float | None:
        """Exact Gaussian-DP parameter; None for a mechanism that is not Gaussian."""
        ...

    @property
    def pure(self) -> float:
        """Pure epsilon; infinite if there is none."""
        ...

    @property
    def rho(self) -> float:
        """zCDP parameter; infinite if there is none."""
        ...

    @property
    def step(self) -> float:
        """Grid step at which rounding up the privacy loss adds little; infinite if any will do."""
        ...

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        """Return independent privacy losses whose sum dominates the mechanism's, on grids of `step`
        or coarser ones; None if only `delta` is known."""
        ...

    def delta(self, epsilon: float) -> float:
        """Return an upper bound of delta at `epsilon` >= 0."""
        ...

    def least_epsilon(self, delta: float) -> float:
        """Return an upper bound of epsilon at `delta` > 0; infinity if there is none."""
        ...


class Slots(Protocol):
    """Protocol of a release plan, which lists the releases that a round enters with its weights."""

    @property
    def moving(self) -> float:
        """Cost of moving a user to another time slot, divided by that of replacing her, 1 to 2; see
        `dpbandit.privacy.mechanism.moving`."""
        ...

    def person_norm(self, cap: int, separation: int) -> float:
        """Return a bound on the l_2 change of releases by `cap` rounds of one person, any two
        `separation` apart, per unit of change of a round."""
        ...

    def early_norm(self, age: int) -> float:
        """Return a bound on the change by one round of the releases up to `age` rounds after it,
        the largest over rounds, per unit of its change; in l_2 for Gaussian noise, else in l_1."""
        ...

    def past_norm(self, rounds: int) -> float:
        """Return a bound, as in `early_norm`, on one round's change of releases up to `rounds`."""
        ...


def check_loss(name: str, value: float) -> None:
    """Raise `InputError` unless `value` is a number >= 0, infinite where no noise is added."""
    if not (isinstance(value, Real) and value >= 0):
        raise InputError(
            f"Expected {name}={abbrev(value)} of a spend to be a number >= 0, or inf without noise."
        )


def check_parts(name: str, parts: object) -> None:
    """Raise `InputError` unless `parts` is a tuple of spends: a generator would be empty, and so of
    no cost, when read again."""
    fits = isinstance(parts, tuple) and all(hasattr(part, "pure") for part in parts)
    if not fits:
        raise InputError(
            f"Expected {name}={abbrev(parts)} to be a tuple of spends, such as (mechanism.spend,)."
        )


class Composed:
    """Mixin for spends with `losses`: delta and epsilon by composition."""

    def delta(self: Spend, epsilon: float) -> float:
        """Return an upper bound of delta at `epsilon`; 0 from the pure epsilon on."""
        curve = composed(self) if epsilon < self.pure else None
        return 0.0 if curve is None else curve.delta(epsilon)

    def least_epsilon(self: Spend, delta: float) -> float:
        """Return an upper bound of epsilon at `delta`; at most the pure epsilon."""
        curve = composed(self) if delta > 0 else None
        return self.pure if curve is None else min(self.pure, curve.least_epsilon(delta))


@dataclass(frozen=True)
class GaussianSpend:
    """Cost of a mechanism whose calls are mu-GDP together, mu = L2 movement / noise stddev.

    A running sum that is called once in every round has a release plan `slots`, for the cost of
    several rounds of one person. A mechanism that is called in some rounds only must not have one:
    `replace(spend, slots=None)`.
    """

    mu: float
    note: str
    slots: Slots | None = field(default=None, compare=False, repr=False)
    """release plan; without one, several rounds of a person cost group privacy"""

    def __post_init__(self) -> None:
        check_loss("mu", self.mu)

    @property
    def pure(self) -> float:
        return inf if self.mu else 0.0

    @property
    def rho(self) -> float:
        return rho_of_mu(self.mu)

    @property
    def step(self) -> float:
        return self.mu / 100 if self.mu else inf

    def losses(self, step: float) -> tuple[PrivacyLoss, ...]:
        mu = self.mu
        if mu in (0, inf):
            return (constant(mu, step=step),)
        curve, reach = partial(deltas_of, mu), mu * (mu / 2 + MAX_Z)
        return (connected(curve, reach=reach, step=step, rounding=error_of(mu)),)

    def delta(self, epsilon: float) -> float:
        return delta_of(self.mu, epsilon)

    def least_epsilon(self, delta: float) -> float:
        return epsilon_of(self.mu, delta)


def largest_epsilon(curves: Iterable[Spend | Composition], delta: float) -> float:
    """Return the largest epsilon of `curves` at `delta`, without inverting lower curves."""
    largest = 0.0
    for curve in curves:
        if curve.delta(largest) > delta:
            largest = max(largest, curve.least_epsilon(delta))
    return largest


@dataclass(frozen=True)
class Parallel:
    """Cost of mechanisms that see disjoint sets of rounds, the cost of the most expensive one."""

    needs: ClassVar[frozenset[Hearing]] = frozenset({Hearing.APART})
    """facts on calls of the parts, checked by `LedgerCheck`"""
    parts: tuple[Spend, ...]
    note: str = "parallel over disjoint rounds"

    def __post_init__(self) -> None:
        check_parts("parts", self.parts)

    @property
    def mu(self) -> float | None:
        mus = [part.mu for part in self.parts]
        return None if None in mus else max((mu for mu in mus if mu is not None), default=0.0)

    @property
    def pure(self) -> float:
        # Nobody pays for more than one part; the largest pure epsilon
        return max((part.pure for part in self.parts), default=0.0)

    @property
    def rho(self) -> float:
        # Nobody pays for more than one part; the largest zCDP parameter
        return max((part.rho for part in self.parts), default=0.0)

    @property
    def step(self) -> float:
        return min((part.step for part in self.parts), default=inf)

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        # those of the only part, or of the largest Gaussian; None if no part dominates all
        mu = self.mu
        if mu is not None:
            return GaussianSpend(mu, self.note).losses(step)
        return self.parts[0].losses(step) if len(self.parts) == 1 else None

    def delta(self, epsilon: float) -> float:
        return max((part.delta(epsilon) for part in self.parts), default=0.0)

    def least_epsilon(self, delta: float) -> float:
        return largest_epsilon(self.parts, delta)


class _Priced(ABC):
    """Base class of spends whose numbers are all those of another spend, `priced`."""

    @property
    @abstractmethod
    def priced(self) -> Spend:
        """Spend of the same cost."""

    @property
    def mu(self) -> float | None:
        return self.priced.mu

    @property
    def pure(self) -> float:
        return self.priced.pure

    @property
    def rho(self) -> float:
        return self.priced.rho

    @property
    def step(self) -> float:
        return self.priced.step

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        return self.priced.losses(step)

    def delta(self, epsilon: float) -> float:
        return self.priced.delta(epsilon)

    def least_epsilon(self, delta: float) -> float:
        return self.priced.least_epsilon(delta)


@dataclass(frozen=True)
class Repeated(_Priced):
    """Cost of a Gaussian mechanism for a person who enters it in `times` rounds.

    However her rounds depend on releases, together they move the mechanism at most `times` times as
    far as one round (group privacy), or `factor` times as far if the release plan is known.
    """

    part: Spend
    times: int
    factor: float | None = None
    """change by all rounds of a person divided by the change by one round; None for `times`"""

    def __post_init__(self) -> None:
        whole("times", self.times, 1)
        if self.factor is not None:
            inside("factor", self.factor, 1, self.times, ends=True)  # one round is hers
        if self.part.mu is None:
            raise InputError(f"Expected Gaussian noise to repeat, got {self.part.note}.")

    @property
    def needs(self) -> frozenset[Hearing]:
        """Facts on calls; a `factor` is for visits that are as far apart in calls as in rounds."""
        return frozenset() if self.factor is None else frozenset({Hearing.EVERY})

    @property
    def parts(self) -> tuple[Spend, ...]:
        """Cost of the mechanism for a single round, as a tuple."""
        return (self.part,)

    @property
    def note(self) -> str:
        as_many = "" if self.factor is None else f", which count as {self.factor:.4g}"
        return f"{self.part.note}, {self.times} rounds of a person{as_many}"

    @property
    def priced(self) -> GaussianSpend:
        # the cost of all rounds of a person
        factor = self.times if self.factor is None else self.factor
        return GaussianSpend(factor * (self.part.mu or 0.0), self.note)


@dataclass(frozen=True)
class Expiring(_Priced):
    """Cost of a mechanism that protects a user for `window` rounds only.

    A ledger with this spend needs a privacy notion that protects at most the last `window` rounds.
    """

    part: Spend
    window: int

    def __post_init__(self) -> None:
        whole("window", self.window, 1)

    @property
    def note(self) -> str:
        return f"{self.part.note}, each user for {self.window} rounds"

    @property
    def priced(self) -> Spend:
        return self.part


def different(spends: Iterable[Spend]) -> tuple[Spend, ...]:
    """Return the distinct spends; equal ones with different release plans are distinct."""
    return tuple({(spend, getattr(spend, "slots", None)): spend for spend in spends}.values())


def within(spend: Spend, age: int) -> Spend:
    """Return an upper bound of the cost of releases up to `age` rounds after a user's round.

    A release plan bounds the change of a running sum's first releases; for other mechanisms the
    whole cost is included. An `Expiring` spend protects up to age window - 1, and not beyond.
    """
    if isinstance(spend, Expiring):
        return within(spend.part, age) if age < spend.window else GaussianSpend(inf, spend.note)
    return _part(spend, lambda slots: slots.early_norm(age), lambda part: within(part, age))


def spent(spend: Spend, rounds: int) -> Spend:
    """Return an upper bound of the cost of the releases in the first `rounds` rounds; under an
    expiring guarantee, for users whom it still protects."""
    if isinstance(spend, Expiring):
        return replace(spend, part=spent(spend.part, rounds))
    return _part(spend, lambda slots: slots.past_norm(rounds), lambda part: spent(part, rounds))


def _part(spend: Spend, norm: Callable[[Slots], float], inside: Callable[[Spend], Spend]) -> Spend:
    """Return the part of `spend` for releases that `norm` counts in its release plan, if any."""
    if isinstance(spend, Parallel):
        return replace(spend, parts=tuple(map(inside, spend.parts)))
    slots: Slots | None = getattr(spend, "slots", None)
    if slots is None or spend.pure == 0 or spend.mu == inf:
        return spend
    if not isinstance(spend, GaussianSpend):
        return cast(_Divisible, spend).for_share(norm(slots) / slots.early_norm(_MAX_AGE))
    share = norm(slots) / slots.person_norm(1, 1)
    return replace(spend, mu=min(1.0, share * (1 + NORM_ROUNDING)) * spend.mu if share else 0.0)


class _Divisible(Spend, Protocol):
    """Protocol of a spend of several noises, of which a share can be paid for."""

    def for_share(self, share: float) -> Spend:
        """Return the cost of a `share` of the noises, in the norm in which their costs add up."""
        ...


NORM_ROUNDING = 1e-12
"""Relative margin for rounding errors of a norm of the release plan divided by another"""
_MAX_AGE = 10**12
"""Age in rounds that is larger than any horizon, so that all releases are included"""


@lru_cache(maxsize=16)
def composed(*spends: Spend) -> Composition | None:
    """Return the sum of all privacy losses of `spends`, on the finest grid; None if unknown."""
    step = min((spend.step for spend in spends), default=inf)
    parts: list[PrivacyLoss] = []
    for spend in spends:
        losses = spend.losses(step if step < inf else 1.0)
        if losses is None:
            return None
        parts += losses
    return Composition(parts or [constant(0.0, step=1.0)])
