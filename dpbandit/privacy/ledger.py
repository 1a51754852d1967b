"""Ledgers: the privacy costs of an agent's mechanisms, complete before round 1.

A `Ledger` composes the spends of all mechanisms of an agent; `Visits` says how often one person may
come; `most` and `least_noise` go back from a privacy target to the mechanism that just meets it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base import InputError, html_table, inside, privacy_target, whole
from dpbandit.privacy.curves import (
    delta_of,
    epsilon_of,
    loose_epsilon,
    zcdp_delta_of,
    zcdp_epsilon_of,
)
from dpbandit.privacy.loss_distributions import Composition, PrivacyLoss
from dpbandit.privacy.spends import (
    Expiring,
    GaussianSpend,
    Spend,
    composed,
    spent,
    within,
)


@dataclass(frozen=True)
class Visits:
    """The public facts on one person's rounds: at most `cap` of them, any two `separation` apart.

    Neighbouring streams differ in one PERSON, in everything she sends or would send. Where the
    pattern is private her slots are replaced as well: those she leaves become empty, those she
    takes were empty, all others keep theirs. `cap` = 1 with a public pattern is a user's round.

    >>> str(Visits(20, 100))
    'one person, of at most 20 rounds, 100 or more apart, which may move'
    """

    cap: int = 1
    """rounds of a person that anybody learns from, at most"""
    separation: int = 1
    """slots between two of them, at least; 1 is any"""
    pattern: Literal["private", "public"] = "private"
    """whether neighbours may differ in when she comes"""

    def __post_init__(self) -> None:
        whole("cap", self.cap, 1)
        whole("separation", self.separation, 1)
        if self.pattern not in ("private", "public"):
            raise InputError(f"Expected pattern={self.pattern!r} to be 'private' or 'public'.")

    @property
    def rounds(self) -> int:
        """In how many slots neighbours differ at most; those she leaves count too."""
        return self.cap if self.pattern == "public" else 2 * self.cap

    def __str__(self) -> str:
        rounds = "1 round" if self.cap == 1 else f"at most {self.cap} rounds"
        apart = f", {self.separation} or more apart" if min(self.separation, self.cap) > 1 else ""
        moves = ", which may move" if self.pattern == "private" else ""
        return f"one person, of {rounds}{apart}{moves}"


_ROUND = "one user's round"
JOINT_DP = f"joint DP under continual observation, {{}} {_ROUND}"
COUNTED = f"{JOINT_DP}, of actions and of refusals"
ALL_ACTIONS = f"DP of all actions under continual observation, {{}} {_ROUND}"
NOT_COVERED = (
    "not covered: what one user does changes what the world answers later ones, and no mechanism "
    "stands between"
)
Trust: TypeAlias = Literal["central", "aggregated", "shuffled", "local"]
TRUSTED: dict[Trust, str] = {
    "central": "",
    "aggregated": "the server sees noisy sums of batches alone",
    "shuffled": "the server sees the messages of a batch in random order",
    "local": "the server sees private messages alone",
}
"""What the server sees, by who is trusted (itself, whoever adds up or mixes, nobody)"""
NO_DATA = "plays without looking at any user's data"
OWN_DATA = "a person's own data reach her own actions and nobody else's"
NO_PRIVACY = "none: exact data reaches later actions"
MASKED = {
    "none": "",
    "public": "; which actions there are in a round is public",
    "user": "; which actions there are for her is part of her round",
}
"""What is said of actions that come and go, by whose data that is"""

ROUNDING = 1e-13
"""What a mechanism adds may move by so much more than its sensitivity, relatively, because sums and
norms are rounded, those of 1,700 numbers by less, in whatever order they are added. Every epsilon
and delta of a ledger is for movements that are so much larger, on any processor."""
_GROWN = 1 + ROUNDING
LEAST = 5e-324
"""The smallest double above 0."""
_SHOWN, _ROWS = 3, 20
"""Mechanisms that a line names, and that a table has; an agent may have thousands"""
_ROUNDS = 100
_DENSE = 50.0
"""From this mu on (epsilon beyond 1,000) a grid of losses is not worth its memory; GDP is exact."""


@dataclass(frozen=True, repr=False)
class Ledger:
    """The spends of one agent, composed, and the notion of privacy they are stated in.

    `adjacency` is how neighbouring streams differ at one round: its user is replaced by any other,
    or zeroed out. `window` = W promises it only for the users of the last W rounds, read at every
    round (window DP; Lou and Cheung 2020): what is released later may reveal them completely. None
    protects every user for ever. `condition` is a fact about the losses that the promise rests on
    and no clip enforces. Whoever shows an epsilon of this ledger shows `notion` or `brief` beside
    it: no restriction may be read as ordinary DP.

    >>> Ledger((GaussianSpend(0.3, "a"), GaussianSpend(0.4, "b"))).mu
    0.5
    """

    spends: tuple[Spend, ...] = ()
    scope: str = JOINT_DP
    """what is promised, in words; a certificate has the problem's in place of `JOINT_DP`"""
    adjacency: Literal["replace", "zero out"] = "replace"
    window: int | None = None
    condition: str = ""
    public_contexts: bool = False
    """promised for a user's answers alone; neighbours agree in her context, which all may see"""
    slip: float = 0.0
    """a bound on the probability, for any users, that the world says what no mechanism released"""
    visits: Visits | None = None
    """what is protected is a PERSON, who comes so often; None is one user's round"""
    trust: Trust = "central"
    """who sees exact data (the server, or no more than her own device), see `TRUSTED`"""
    honest: float = 1.0
    """the fraction of devices that add the noise they should, of people who return that of slots;
    of the others nothing is expected"""

    def __post_init__(self) -> None:
        if self.window is not None:
            whole("window", self.window, 1)
        inside("honest", self.honest, 0, 1, ends=True)
        if self.visits is not None and self.trust != "central":  # the server sees who sends
            object.__setattr__(self, "visits", replace(self.visits, pattern="public"))
        for spend in self.spends:
            if not (self.window or inf) <= lasts(spend):
                raise InputError(
                    f"Expected window={self.window} of the ledger to be at most {lasts(spend)}, "
                    f"as long as this lasts: {spend.note}."
                )

    def __repr__(self) -> str:
        notes = [spend.note for spend in self.spends[:_SHOWN]]
        more = [f"and {len(self.spends) - _SHOWN} more"] if len(self.spends) > _SHOWN else []
        return f"Ledger({', '.join([*map(repr, notes), *more]) or 'nothing'}: {self.notion})"

    def _repr_html_(self) -> str:
        head = ("mechanism", "pure epsilon", "rho (zCDP)", "mu (GDP)")
        rows = [(s.note, *map(_number, (s.pure, s.rho, s.mu))) for s in self.spends[:_ROWS]]
        more = len(self.spends) - len(rows)
        rows += [(f"and {more} more", "", "", "")] if more else []
        rows.append(("all", *map(_number, (self.pure, self.rho, self.mu))))
        return html_table(head, rows, self.notion)

    @property
    def notion(self) -> str:
        """The notion of privacy in words."""
        words = self.scope.format(self.adjacency)
        if self.visits is not None:
            words = words.replace(_ROUND, str(self.visits))
        if self.window is not None:
            words = f"window DP ({words}) for the last {self.window} rounds only "
            words += "(older data may be revealed completely)"
        if self.public_contexts:
            words += ", for her answers alone: contexts are public"
        if self.trust != "central":
            words += f"; {TRUSTED[self.trust]}"
            words += " and who sends in which slot" * (self.visits is not None)
            share = f"{100 * self.honest:g} % of" if self.honest < 1 else "all"
            if self.visits is not None and self.trust != "local":
                words += f", if a device adds its noise in {share} slots, empty ones included"
            elif self.honest < 1:
                words += f", if {share} devices are honest"
        return words + (f"; CONDITIONAL: {self.condition}" if self.condition else "")

    @property
    def brief(self) -> str:
        """What restricts the promise, for legends and cells; empty where nothing does."""
        window = [] if self.window is None else [f"window-DP, last {self.window}"]
        public = ["contexts public"] if self.public_contexts else []
        uncovered = ["not covered"] if self.scope == NOT_COVERED else []
        own = ["own data alone"] if self.scope.startswith(OWN_DATA) else []
        conditional = ["conditional"] if self.condition else []
        person = [f"person, {self.visits.cap} rounds"] if self.visits else []
        trust = [] if self.trust == "central" else [str(self.trust)]
        trust += [f"{100 * self.honest:g} % honest"] if self.honest < 1 else []
        return ", ".join([*window, *public, *uncovered, *own, *conditional, *person, *trust])

    @property
    def mu(self) -> float | None:
        """The GDP parameter of the composition, None with slips or a spend that is not Gaussian."""
        if self.slip:
            return None
        mus = [spend.mu for spend in self.spends]
        return None if None in mus else sqrt(sum(mu * mu for mu in mus if mu is not None))

    @property
    def pure(self) -> float:
        """Pure epsilon, the plain sum."""
        return sum(spend.pure for spend in self.spends)

    @property
    def rho(self) -> float:
        """zCDP, the plain sum."""
        return sum(spend.rho for spend in self.spends)

    def delta(self, epsilon: float) -> float:
        """The certified delta at `epsilon`: exact for Gaussians, else an upper bound.

        It is 0 from the pure epsilon on and nowhere else, even where no double is small enough.
        """
        if self.slip:  # within this total variation of private actions, for both neighbours
            private = replace(self, slip=0.0).delta(epsilon)
            return min(1.0, private + self.slip * _both_ways(epsilon))
        if epsilon >= self.pure * _GROWN:
            return 0.0
        if self.mu is not None:
            return max(LEAST, delta_of(self.mu * _GROWN, epsilon))
        by_zcdp = zcdp_delta_of(self.rho * _GROWN**2, epsilon)  # less for many of bounded range
        return max(LEAST, min(by_zcdp, self._together.delta(epsilon / _GROWN)))

    def epsilon(self, delta: float) -> float:
        """The certified epsilon at `delta`, rounded up; infinity where none can be given."""
        if self.slip:
            private, epsilon = replace(self, slip=0.0), 0.0
            for _ in range(_ROUNDS):  # to the least fixed point, from below
                left = delta - self.slip * _both_ways(epsilon)
                if left <= 0:
                    return inf
                before, epsilon = epsilon, private.epsilon(left)
                if epsilon <= before * (1 + 1e-12):
                    return epsilon * (1 + 1e-12)
            return inf
        if self.mu is not None:
            return epsilon_of(self.mu * _GROWN, delta)
        pure = self.pure * _GROWN
        if delta <= 0:
            return pure
        by_zcdp = zcdp_epsilon_of(self.rho * _GROWN**2, delta)
        return min(pure, by_zcdp, self._together.least_epsilon(delta) * _GROWN)

    def within(self, age: int) -> "Ledger":
        """What those know who watch releases up to `age` rounds after a user's own, from above.

        Age 0 are releases in her own round. A person who may return counts in full at any age.
        """
        whole("age", age, 0)
        if self.visits:
            gone = age >= (self.window or inf)
            return replace(no_privacy("an older person"), visits=self.visits) if gone else self
        return replace(self, spends=tuple(within(s, age) for s in self.spends), window=None)

    def spent(self, rounds: int) -> "Ledger":
        """What has been spent by the end of so many rounds, from above; the promise is the same.

        Running sums know when they release; anything else, and persons, count in full from the
        beginning.
        """
        whole("rounds", rounds, 0)
        spends = self.spends if self.visits else tuple(spent(s, rounds) for s in self.spends)
        return replace(self, spends=spends)

    @property
    def _together(self) -> Spend | Composition:
        """What bounds all spends as one: the only spend, or their composed losses."""
        if len(self.spends) == 1:
            return self.spends[0]
        curve = composed(*self.spends)
        if curve is None:
            raise InputError("These spends have no common loss distribution to compose.")
        return curve

    def accountants(self, delta: float) -> dict[str, float]:
        """The epsilon at `delta` by every accountant that applies, by its name."""
        if self.slip:
            epsilon = self.epsilon(delta)
            left = delta - self.slip * _both_ways(epsilon)
            return replace(self, slip=0.0).accountants(left) if left > 0 else {"curve": inf}
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


def _both_ways(epsilon: float) -> float:
    """1 + e^epsilon, what a slip costs; a number, however large."""
    return 1 + exp(min(epsilon, 700.0))


def _number(value: float | None) -> str:
    return "-" if value is None or value == inf else f"{value:.4g}"


def no_data() -> Ledger:
    """Ledger of an agent that uses no data: epsilon 0."""
    return Ledger((), NO_DATA)


def no_privacy(what: str) -> Ledger:
    """Ledger of an agent without privacy: epsilon infinity."""
    return Ledger((GaussianSpend(inf, what),), NO_PRIVACY)


def not_covered(ledger: Ledger) -> Ledger:
    """Ledger that promises nothing, for environments that tell users about others."""
    told = GaussianSpend(inf, "the world's answers")
    return replace(ledger, spends=(*ledger.spends, told), scope=NOT_COVERED)


def check_honest(honest: float, trust: Trust) -> None:
    """Raise `InputError` for no fraction above 0, or one below 1 where devices share no noise."""
    inside("honest", honest, 0, 1, ends=True)
    if honest == 0 or (honest < 1 and trust not in ("aggregated", "shuffled")):
        raise InputError(
            f"Expected honest={honest} to be 1, or between 0 and 1 with "
            f"trust='aggregated' or 'shuffled', got trust={trust!r}."
        )


def ledger_of(
    epsilon: float,
    *spends: Spend,
    without: str = "sums without noise",
    window: int | None = None,
    condition: str = "",
    public_contexts: bool = False,
    visits: Visits | None = None,
    trust: Trust = "central",
    honest: float = 1.0,
) -> Ledger:
    """Ledger of noise calibrated to `epsilon`; infinity is no noise and no privacy.

    >>> ledger_of(1.0, GaussianSpend(0.3, "a sum")).mu, ledger_of(inf, GaussianSpend(inf, "")).mu
    (0.3, inf)
    """
    if epsilon == inf:
        return no_privacy(without)
    return Ledger(
        spends,
        window=window,
        condition=condition,
        public_contexts=public_contexts,
        visits=visits,
        trust=trust,
        honest=honest,
    )


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
        pure = made.pure <= epsilon * (1 - 1e-12)  # with rounding, see `ROUNDING`
        return pure or (delta > 0 and zcdp_delta_of(made.rho, epsilon) <= delta)

    low, high = 1 / _LARGEST, _LARGEST
    if not enough(high):
        raise InputError(f"Expected epsilon={epsilon!r} at delta={delta!r} to be within reach.")
    while low < _CLOSE * high:
        middle = sqrt(low * high)
        low, high = (low, middle) if enough(middle) else (middle, high)
    return high
