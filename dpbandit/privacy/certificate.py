"""Certificates, which hold the epsilon that an agent's noise guarantees and the one it claims."""

from dataclasses import dataclass, fields, is_dataclass
from math import inf
from numbers import Real
from typing import Any, cast

from dpbandit.base import InputError, abbrev, as_declared, html_lines, inside, made, rounded
from dpbandit.privacy.calibrated import PrefixSlots
from dpbandit.privacy.factors import Honaker, Hybrid, Independent, KAry, Window
from dpbandit.privacy.fading import FadingSlots
from dpbandit.privacy.ledger import Ledger, Sequential
from dpbandit.privacy.notion import Notion
from dpbandit.privacy.prefix_sums import BLT, Banded, Factorisation, Padded, SquareRoot, Tree
from dpbandit.privacy.pure import BoundedRangeSpend, KNormSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import Expiring, GaussianSpend, Parallel, Repeated
from dpbandit.privacy.wishart import WishartSpend
from dpbandit.shelf import from_shelf, open_shelves

HONESTY = (  # caveat printed with certificates
    "Proofs are for real numbers; these samplers are seeded and not floating-point safe "
    "(Mironov 2012): a simulator for research and teaching, not a release mechanism for real users."
)


_OLDEST_AGE = 10**9
"""Age in rounds that is larger than any horizon, so that all later releases are included"""


@dataclass(frozen=True, repr=False)
class Certificate:
    """Certified privacy of one agent, computed from its ledger alone.

    `epsilon` is certified at `claimed_delta` (at delta = 0 without a claim), `delta` at
    `claimed_epsilon`. `accountants` maps names of accountants to their epsilon at `claimed_delta`;
    `pure` epsilon and `rho` (zCDP) are infinite where there are none, `mu` (GDP) is None unless
    every mechanism is Gaussian.
    """

    claimed_epsilon: float
    claimed_delta: float
    epsilon: float
    delta: float
    pure: float
    rho: float
    mu: float | None
    accountants: dict[str, float]
    ledger: Ledger

    @property
    def notion(self) -> Notion:
        """Notion of privacy (unit, conditions) for which the epsilon holds."""
        return self.ledger.notion

    @property
    def holds(self) -> bool:
        """True if the certified epsilon is at most the claimed one."""
        return self.epsilon <= self.claimed_epsilon

    def __add__(self, other: "Certificate") -> "Certificate":
        """Return the certificate of two agents on the same people, by `Ledger + Ledger`.

        Claimed epsilons and deltas add up; epsilon is certified at the sum of the claimed deltas.
        The notion is the weaker of both; raises `InputError` if the two cannot be compared.
        """
        if not isinstance(other, Certificate):
            return NotImplemented
        claim = (
            self.claimed_epsilon + other.claimed_epsilon,
            min(1.0, self.claimed_delta + other.claimed_delta),
        )
        return certificate(self.ledger + other.ledger, claim=claim, accountants=False)

    def beside(self, other: "Certificate") -> "Certificate":
        """Return the certificate of two agents whose people are disjoint (`Ledger.beside`), with
        "nobody is with both agents" as a condition of the notion."""
        claim = (
            max(self.claimed_epsilon, other.claimed_epsilon),
            max(self.claimed_delta, other.claimed_delta),
        )
        return certificate(self.ledger.beside(other.ledger), claim=claim, accountants=False)

    def by_age(self, age: int) -> float:
        """Return an upper bound of epsilon, at the claimed delta, against observers of all releases
        up to `age` rounds after a user's round (0 is her own round).

        The age must be fixed beforehand: an observer who chooses it by the releases learns more, as
        with `spent`. The bound grows with age to `epsilon`; if the notion protects a window of
        rounds only, it is infinite beyond the window. It is exact for fading sums, gradual sums,
        binary trees and Gaussian prefix sums other than `KAry`, `Honaker` and `Hybrid`; the whole
        cost of any other mechanism, or for a person who returns, is included from age 0 on.
        """
        least = inf if self.notion.window else self.epsilon
        return min(self.ledger.within(age).epsilon(self.claimed_delta), least)

    def spent(self, rounds: int) -> float:
        """Return an upper bound of epsilon, at the claimed delta, of all releases in the first
        `rounds` rounds, a number fixed beforehand. See `Ledger.spent`.

        This is no odometer: an observer who stops at the first round whose loss exceeds the bound
        may find three times the stated delta. `epsilon` holds at any stopping time.
        """
        return min(self.ledger.spent(rounds).epsilon(self.claimed_delta), self.epsilon)

    def ages(self) -> list[tuple[int, float]]:
        """Return pairs (age, `by_age(age)`) at ages 0, 1, 2, 5, 10, 20, ... and at the ends of a
        window, up to the age after which no cost is added; none if the bound is always the same."""
        found: list[tuple[int, float]] = []
        ever, window = self.ledger.within(_OLDEST_AGE), self.notion.window
        if self.ledger.within(0) == ever:
            return found
        ends = set() if window is None else {window - 1, window}
        for age in sorted({0, *ends, *(step * 10**k for k in range(9) for step in (1, 2, 5))}):
            found.append((age, self.by_age(age)))
            if self.ledger.within(age) == ever:
                break
        return found

    def _by_age(self) -> list[str]:
        """Return a text line with epsilon by age; no line unless all noise is Gaussian or pure."""
        quick = self.claimed_delta == 0 if self.mu is None else self.claimed_delta > 0
        ages = self.ages() if quick and self.epsilon < inf else []
        first: dict[str, int] = {}
        for age, value in ages:
            first.setdefault(rounded(value), age)
        texts = [f"{value} after {age:,}" for value, age in first.items()]
        texts = texts[:: max(1, len(texts) // 4)]
        fixed = "rounds, each fixed beforehand"
        return [f"by age      epsilon {', '.join(texts)} {fixed}"] if texts else []

    def as_dict(self) -> dict[str, Any]:
        """Return plain values for JSON; `certificate_from_dict` is the inverse."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "notion": str(self.notion), "ledger": ledger_as_dict(self.ledger)}

    def __repr__(self) -> str:
        excess = "" if self.holds else ", EXCEEDS THE CLAIM"
        claimed = f"{rounded(self.claimed_epsilon, 6)}{excess}"
        certified = f"{rounded(self.epsilon, 6)} at delta {rounded(self.claimed_delta, 6)}"
        return f"Certificate(epsilon {certified}, claimed {claimed}: {self.notion})"

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def __str__(self) -> str:
        at = f"at delta {rounded(self.claimed_delta, 6)}"
        at += f" ({self.ledger.brief})" if self.ledger.brief else ""
        lines = [
            f"notion      {self.notion}",
            f"claimed     epsilon {rounded(self.claimed_epsilon, 6)} {at}",
            f"certified   epsilon {rounded(self.epsilon, 6)} {at}"
            + ("" if self.holds else "   EXCEEDS THE CLAIM"),
            *(
                f"  {name:<12}epsilon {rounded(value, 6)}"
                for name, value in self.accountants.items()
            ),
            *self._by_age(),
            *(f"mechanism   {spend.note}" for spend in self.ledger.spends),
            HONESTY,
        ]
        return "\n".join(lines)


def certificate(
    ledger: Ledger, *, claim: tuple[float, float] | None, accountants: bool = True
) -> Certificate:
    """Certify a ledger against `claim` = (epsilon, delta), by default its epsilon at delta = 0.

    `accountants=False` leaves out the epsilons by accountant, as some accountants import slowly.
    """
    nothing = (ledger.epsilon(0.0), 0.0)
    claimed_epsilon, claimed_delta = nothing if claim is None else claim
    inside("delta", claimed_delta, 0, 1, ends=True)
    if not (isinstance(claimed_epsilon, Real) and claimed_epsilon >= 0):
        raise InputError(
            f"Expected epsilon={abbrev(claimed_epsilon)} of a claim to be a number >= 0, or inf."
        )
    epsilon, delta = ledger.epsilon(claimed_delta), ledger.delta(claimed_epsilon)
    if delta <= claimed_delta:  # the claim itself is certified, whatever the root is rounded to
        epsilon = min(epsilon, claimed_epsilon)
    return Certificate(
        claimed_epsilon=claimed_epsilon,
        claimed_delta=claimed_delta,
        epsilon=epsilon,
        delta=delta,
        pure=ledger.pure,
        rho=ledger.rho,
        mu=ledger.mu,
        accountants=ledger.accountants(claimed_delta) if accountants else {},
        ledger=ledger,
    )


def certificate_from_dict(values: dict[str, Any]) -> Certificate:
    """Return the certificate of the ledger and the claim in a dict of `Certificate.as_dict`.

    Raises `ValueError` for values of the wrong type.
    """
    claim = as_declared(tuple[float, float], [values[f"claimed_{x}"] for x in _CLAIMED], "claim")
    inside("claimed_delta", claim[1], 0, 1, ends=True)
    computed = bool(values["accountants"])
    return certificate(ledger_from_dict(values["ledger"]), claim=claim, accountants=computed)


_CLAIMED = ("epsilon", "delta")  # stored as claimed_epsilon and claimed_delta


SPEND_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(GaussianSpend, LaplaceSpend, KNormSpend, PureSpend, BoundedRangeSpend, WishartSpend),
        *(Parallel, Expiring, Repeated, Sequential),
    )
}
"""Class of a spend by its name in a stored ledger; optional modules add their classes"""

SLOTS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(PrefixSlots, FadingSlots, BLT, Banded, Honaker, Hybrid, Independent, KAry, Padded),
        *(SquareRoot, Tree, Window),
    )
}
"""Class of a release plan by its name in a stored ledger; optional modules add their classes"""


def ledger_as_dict(ledger: Ledger) -> dict[str, Any]:
    """Return a ledger as plain values for JSON; `ledger_from_dict` is the inverse."""
    return {"spends": _as_dict(ledger.spends), "notion": ledger.notion.to_dict()}


def ledger_from_dict(values: dict[str, Any]) -> Ledger:
    """Return the ledger of a dict of `ledger_as_dict`, also after a round trip through JSON.

    Ledgers of format 1 state their notion in a sentence. Raises `ValueError` for values that are no
    ledger and for a sentence that states no notion.
    """
    if "scope" in values:
        notion = from_shelf("privacy", "notion_in_words", "ledger in words")(values)
    else:
        notion = Notion.from_dict(values["notion"])
    open_shelves("privacy.certificate")
    return made(Ledger, {"spends": _from_dict(values["spends"]), "notion": notion})


def _as_dict(value: Any) -> Any:
    """Return a spend or a release plan as its class name and fields, and so all that is in it."""
    if isinstance(value, tuple):
        return [_as_dict(one) for one in value]
    if not (is_dataclass(value) or isinstance(value, Factorisation)):
        return value
    inner = {name: _as_dict(one) for name, one in vars(value).items() if name[0] != "_"}
    return {"kind": type(value).__name__, **inner}


def _from_dict(value: Any) -> Any:
    """Return the spend or the release plan of a dict of `_as_dict`."""
    if isinstance(value, list | tuple):
        return tuple(map(_from_dict, value))
    if not isinstance(value, dict):
        return value
    kind: Any = (SPEND_KINDS | SLOTS)[value["kind"]]
    inner = {name: _from_dict(one) for name, one in value.items()}
    return made(cast(type[Any], kind), inner) if is_dataclass(kind) else kind()
