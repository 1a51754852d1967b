"""Privacy costs of mechanisms for one user, as frozen values without data."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from math import inf
from numbers import Real
from typing import ClassVar, Protocol, cast

from dpbandit.base import InputError, abbrev, inside, whole
from dpbandit.privacy.curves import (
    UNDERFLOW_QUANTILE,
    delta_of,
    deltas_of,
    epsilon_of,
    error_of,
    rho_of_mu,
)
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss, connected, constant
from dpbandit.privacy.premises import Hearing


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
        """A grid on which rounding up its privacy loss adds little; if infinite, any will do."""
        ...

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        """Independent privacy losses, which add up to no less than its own, on grids of `step` or
        coarser ones; None where only `delta` is known."""
        ...

    def delta(self, epsilon: float) -> float:
        """An upper bound of delta at `epsilon` >= 0."""
        ...

    def least_epsilon(self, delta: float) -> float:
        """An upper bound of epsilon at `delta` > 0; infinity where there is none."""
        ...


class Slots(Protocol):
    """How the rounds that a mechanism hears one after the other enter its releases."""

    @property
    def moving(self) -> float:
        """What a round that becomes null, and another that was, cost together, in replacements of
        one round: from 1 to 2, see `dpbandit.privacy.moments.moving`."""
        ...

    def person_norm(self, cap: int, separation: int) -> float:
        """The most that `cap` rounds of one person, any two `separation` apart, add up to, per unit
        of a round: exact, or from above."""
        ...

    def early_norm(self, age: int) -> float:
        """What one round adds up to in what is released up to `age` rounds after it, the most over
        rounds, per unit of a round: exact, or from above. In l_2 of Gaussian noises, in l_1 of
        others."""
        ...

    def past_norm(self, rounds: int) -> float:
        """The same in what is released by the end of so many rounds."""
        ...


def check_loss(name: str, value: float) -> None:
    """Raise `InputError` unless `value` is a number >= 0, infinite where no noise is added."""
    if not (isinstance(value, Real) and value >= 0):
        raise InputError(
            f"Expected {name}={abbrev(value)} of a spend to be a number >= 0, or inf without noise."
        )


def check_parts(name: str, parts: object) -> None:
    """Raise `InputError` unless `parts` is a tuple of spends; a generator is empty when it is read
    again, and then costs nothing."""
    fits = isinstance(parts, tuple) and all(hasattr(part, "pure") for part in parts)
    if not fits:
        raise InputError(
            f"Expected {name}={abbrev(parts)} to be a tuple of spends, such as (mechanism.spend,)."
        )


class Composed:
    """For spends that are known by their `losses`: delta and epsilon of their sum."""

    def delta(self: Spend, epsilon: float) -> float:
        """An upper bound of delta at `epsilon`; 0 from the pure epsilon on."""
        curve = composed(self) if epsilon < self.pure else None
        return 0.0 if curve is None else curve.delta(epsilon)

    def least_epsilon(self: Spend, delta: float) -> float:
        """An upper bound of epsilon at `delta`; at most the pure one."""
        curve = composed(self) if delta > 0 else None
        return self.pure if curve is None else min(self.pure, curve.least_epsilon(delta))


@dataclass(frozen=True)
class GaussianSpend:
    """A mechanism whose whole life is mu-GDP: L2 movement over noise standard deviation.

    A running sum that hears every round once says in `slots` what several rounds of one person add
    up to; the cost of one round does not depend on it. Whoever calls it in some rounds only has to
    leave that out, `replace(spend, slots=None)`.
    """

    mu: float
    note: str
    slots: Slots | None = field(default=None, compare=False, repr=False)
    """None is group privacy"""

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
        curve, reach = partial(deltas_of, mu), mu * (mu / 2 + UNDERFLOW_QUANTILE)
        return (connected(curve, reach=reach, step=step, rounding=error_of(mu)),)

    def delta(self, epsilon: float) -> float:
        return delta_of(self.mu, epsilon)

    def least_epsilon(self, delta: float) -> float:
        return epsilon_of(self.mu, delta)


def largest_epsilon(curves: Iterable[Spend | Composition], delta: float) -> float:
    """The largest epsilon of the curves at `delta`; one that lies below is not searched."""
    largest = 0.0
    for curve in curves:
        if curve.delta(largest) > delta:
            largest = max(largest, curve.least_epsilon(delta))
    return largest


@dataclass(frozen=True)
class Parallel:
    """Mechanisms that see disjoint sets of rounds: a user pays for the most expensive one."""

    needs: ClassVar[frozenset[Hearing]] = frozenset({Hearing.APART})
    """of its parts, held by `LedgerCheck`"""
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
        # Of the only part, or of the largest of Gaussians; None where no part dominates all
        mu = self.mu
        if mu is not None:
            return GaussianSpend(mu, self.note).losses(step)
        return self.parts[0].losses(step) if len(self.parts) == 1 else None

    def delta(self, epsilon: float) -> float:
        return max((part.delta(epsilon) for part in self.parts), default=0.0)

    def least_epsilon(self, delta: float) -> float:
        return largest_epsilon(self.parts, delta)


@dataclass(frozen=True)
class Repeated:
    """A Gaussian mechanism that one person enters in so many rounds.

    Whatever her rounds are and however they depend on releases, together they move it no further
    than the sum of their lengths, group privacy, or than `factor` of them, where it is known how
    rounds enter releases.
    """

    part: Spend
    times: int
    factor: float | None = None
    """what her rounds add up to, in rounds; None is `times`"""

    def __post_init__(self) -> None:
        whole("times", self.times, 1)
        if self.factor is not None:
            inside("factor", self.factor, 1, self.times, ends=True)  # one round is hers
        if self.part.mu is None:
            raise InputError(f"Expected Gaussian noise to repeat, got {self.part.note}.")

    @property
    def needs(self) -> frozenset[Hearing]:
        """Visits may be counted by how far apart they are only if rounds are calls."""
        return frozenset() if self.factor is None else frozenset({Hearing.EVERY})

    @property
    def parts(self) -> tuple[Spend, ...]:
        """The mechanism, as it is paid for a single round."""
        return (self.part,)

    @property
    def note(self) -> str:
        as_many = "" if self.factor is None else f", which count as {self.factor:.4g}"
        return f"{self.part.note}, {self.times} rounds of a person{as_many}"

    @property
    def together(self) -> GaussianSpend:
        """What all her rounds cost."""
        factor = self.times if self.factor is None else self.factor
        return GaussianSpend(factor * (self.part.mu or 0.0), self.note)

    @property
    def mu(self) -> float:
        return self.together.mu

    @property
    def pure(self) -> float:
        return self.together.pure

    @property
    def rho(self) -> float:
        return self.together.rho

    @property
    def step(self) -> float:
        return self.together.step

    def losses(self, step: float) -> tuple[PrivacyLoss, ...]:
        return self.together.losses(step)

    def delta(self, epsilon: float) -> float:
        return self.together.delta(epsilon)

    def least_epsilon(self, delta: float) -> float:
        return self.together.least_epsilon(delta)


@dataclass(frozen=True)
class Expiring:
    """The spend of a mechanism that protects a user for `window` rounds only.

    A ledger must promise no more than that: see `Ledger.window`.
    """

    part: Spend
    window: int

    def __post_init__(self) -> None:
        whole("window", self.window, 1)

    @property
    def note(self) -> str:
        return f"{self.part.note}, each user for {self.window} rounds"

    @property
    def mu(self) -> float | None:
        return self.part.mu

    @property
    def pure(self) -> float:
        return self.part.pure

    @property
    def rho(self) -> float:
        return self.part.rho

    @property
    def step(self) -> float:
        return self.part.step

    def losses(self, step: float) -> tuple[PrivacyLoss, ...] | None:
        return self.part.losses(step)

    def delta(self, epsilon: float) -> float:
        return self.part.delta(epsilon)

    def least_epsilon(self, delta: float) -> float:
        return self.part.least_epsilon(delta)


def different(spends: Iterable[Spend]) -> tuple[Spend, ...]:
    """Each once; spends alike whose rounds enter releases otherwise are two."""
    return tuple({(spend, getattr(spend, "slots", None)): spend for spend in spends}.values())


def within(spend: Spend, age: int) -> Spend:
    """The cost of what is released up to `age` rounds after a user's own, from above.

    A running sum knows how much of her its first releases show; anything else counts in full from
    her own round on. What expires after `window` rounds is (window - 1) rounds old at the most, and
    later there is no promise.
    """
    if isinstance(spend, Expiring):
        return within(spend.part, age) if age < spend.window else GaussianSpend(inf, spend.note)
    return _seen(spend, lambda slots: slots.early_norm(age), lambda part: within(part, age))


def spent(spend: Spend, rounds: int) -> Spend:
    """The cost of what is released by the end of so many rounds, from above; of a promise that
    expires, for those who still have it."""
    if isinstance(spend, Expiring):
        return replace(spend, part=spent(spend.part, rounds))
    return _seen(spend, lambda slots: slots.past_norm(rounds), lambda part: spent(part, rounds))


def _seen(spend: Spend, norm: Callable[[Slots], float], inside: Callable[[Spend], Spend]) -> Spend:
    """A running sum of which that much is seen; anything else counts in full."""
    if isinstance(spend, Parallel):
        return replace(spend, parts=tuple(map(inside, spend.parts)))
    slots: Slots | None = getattr(spend, "slots", None)
    if slots is None or spend.pure == 0 or spend.mu == inf:
        return spend
    if not isinstance(spend, GaussianSpend):
        return cast(_Divisible, spend).for_share(norm(slots) / slots.early_norm(_EVER))
    share = norm(slots) / slots.person_norm(1, 1)
    return replace(spend, mu=min(1.0, share * (1 + ROUNDED)) * spend.mu if share else 0.0)


class _Divisible(Spend, Protocol):
    def for_share(self, share: float) -> Spend:
        """The cost of that share of its noises, in the norm in which they add up."""
        ...


ROUNDED = 1e-12
"""Added relatively to a quotient of norms, each of which is rounded"""
_EVER = 10**12
"""An age at which nothing is left to be shown, in rounds"""


@lru_cache(maxsize=16)
def composed(*spends: Spend) -> Composition | None:
    """The sum of all their losses, on the finest of their grids; None if one has none."""
    step = min((spend.step for spend in spends), default=inf)
    parts: list[PrivacyLoss] = []
    for spend in spends:
        losses = spend.losses(step if step < inf else 1.0)
        if losses is None:
            return None
        parts += losses
    return Composition(parts or [constant(0.0, step=1.0)])
