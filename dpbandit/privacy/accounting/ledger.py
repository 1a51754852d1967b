"""What was promised: a value without data and without a replica axis, complete before round 1."""

from dataclasses import dataclass, replace
from math import exp, inf, log, sqrt
from typing import Literal, TypeAlias

import numpy as np

from dpbandit.base.html import html_table
from dpbandit.base.inputs import InputError, inside, whole
from dpbandit.privacy.accounting import gdp, zcdp
from dpbandit.privacy.accounting.composition import Composition
from dpbandit.privacy.accounting.spends import GaussianSpend, Spend, composed, lasts
from dpbandit.privacy.accounting.visits import Visits

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
        conditional = ["conditional"] if self.condition else []
        person = [f"person, {self.visits.cap} rounds"] if self.visits else []
        trust = [] if self.trust == "central" else [str(self.trust)]
        trust += [f"{100 * self.honest:g} % honest"] if self.honest < 1 else []
        return ", ".join([*window, *public, *uncovered, *conditional, *person, *trust])

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
            return max(LEAST, gdp.delta_of(self.mu * _GROWN, epsilon))
        by_zcdp = zcdp.delta_of(self.rho * _GROWN**2, epsilon)  # less for many of bounded range
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
            return gdp.epsilon_of(self.mu * _GROWN, delta)
        pure = self.pure * _GROWN
        if delta <= 0:
            return pure
        by_zcdp = zcdp.epsilon_of(self.rho * _GROWN**2, delta)
        return min(pure, by_zcdp, self._together.least_epsilon(delta) * _GROWN)

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
                found["zCDP (BS)"] = zcdp.loose_epsilon(self.rho, delta)
                found["zCDP (CKS)"] = zcdp.epsilon_of(self.rho, delta)
            curve = composed(*self.spends) if self.mu is None else None
            if curve is not None:
                found["PLD"] = curve.least_epsilon(delta)
            elif self.mu is not None and 0 < self.mu < _DENSE:
                found |= _by_dp_accounting(self.mu, delta)
        if self.mu is not None:
            found["GDP"] = gdp.epsilon_of(self.mu, delta)
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


def _both_ways(epsilon: float) -> float:
    """1 + e^epsilon, what a slip costs; a number, however large."""
    return 1 + exp(min(epsilon, 700.0))


def _number(value: float | None) -> str:
    return "-" if value is None or value == inf else f"{value:.4g}"


def no_data() -> Ledger:
    """The ledger of an agent that never looks: epsilon 0."""
    return Ledger((), NO_DATA)


def no_privacy(what: str) -> Ledger:
    """The ledger of an agent that lets exact data through: epsilon infinity."""
    return Ledger((GaussianSpend(inf, what),), NO_PRIVACY)


def not_covered(ledger: Ledger) -> Ledger:
    """What `ledger` promises where the world itself tells users of others: nothing."""
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
    """The ledger of noise calibrated to `epsilon`: at inf there is none, and no privacy.

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
