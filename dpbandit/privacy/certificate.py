"""Certificates: the epsilon of an agent's noise beside its claim, by every accountant."""

from dataclasses import dataclass, fields
from typing import Any

from dpbandit.base import html_lines, inside, made
from dpbandit.privacy.aggregated import BitSpend
from dpbandit.privacy.generalised import GeneralisedGaussianSpend
from dpbandit.privacy.ledger import Ledger
from dpbandit.privacy.pure import BoundedRangeSpend, KNormSpend, LaplaceSpend, PureSpend
from dpbandit.privacy.spends import Expiring, GaussianSpend, Parallel, Repeated, Spend
from dpbandit.privacy.subsampling import SampledGaussianSpend
from dpbandit.privacy.wishart import WishartSpend

HONESTY = (
    "Proofs are for real numbers; these samplers are seeded and not floating-point safe "
    "(Mironov 2012): a simulator for research and teaching, not a release mechanism for real users."
)


@dataclass(frozen=True, repr=False)
class Certificate:
    """Privacy of one agent, computed from its ledger alone.

    `epsilon` is certified at `claimed_delta` (at delta = 0 where nothing is claimed), `delta` at
    `claimed_epsilon`. `accountants` maps a name to the epsilon it gives at that delta; `pure` and
    `rho` (zCDP) are infinite where there are none, `mu` (GDP) is None unless all is Gaussian.
    """

    claimed_epsilon: float
    claimed_delta: float
    epsilon: float
    delta: float
    pure: float
    rho: float
    mu: float | None
    accountants: dict[str, float]
    notion: str
    ledger: Ledger

    @property
    def holds(self) -> bool:
        """Whether the certificate is within the claim."""
        return self.epsilon <= self.claimed_epsilon

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON; `ledger_from_dict` takes the ledger back."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {**values, "ledger": ledger_as_dict(self.ledger)}

    def __repr__(self) -> str:
        excess = "" if self.holds else ", EXCEEDS THE CLAIM"
        return (
            f"Certificate(epsilon {self.epsilon:.6g} at delta {self.claimed_delta:g}, claimed "
            f"{self.claimed_epsilon:g}{excess}: {self.notion})"
        )

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def __str__(self) -> str:
        at = f"at delta {self.claimed_delta:g}"
        at += f" ({self.ledger.brief})" if self.ledger.brief else ""
        lines = [
            f"notion      {self.notion}",
            f"claimed     epsilon {self.claimed_epsilon:g} {at}",
            f"certified   epsilon {self.epsilon:.6g} {at}"
            + ("" if self.holds else "   EXCEEDS THE CLAIM"),
            *(f"  {name:<12}epsilon {value:.6g}" for name, value in self.accountants.items()),
            *(f"mechanism   {spend.note}" for spend in self.ledger.spends),
            HONESTY,
        ]
        return "\n".join(lines)


def certificate(
    ledger: Ledger, *, claim: tuple[float, float] | None, accountants: bool = True
) -> Certificate:
    """Certify a ledger against `claim` = (epsilon, delta), or against itself without a claim.

    `accountants=False` leaves out the side-by-side figures, of which some are slow to import.
    """
    nothing = (ledger.epsilon(0.0), 0.0)
    claimed_epsilon, claimed_delta = nothing if claim is None else claim
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
        notion=ledger.notion,
        ledger=ledger,
    )


def certificate_from_dict(values: dict[str, Any]) -> Certificate:
    """The inverse of `Certificate.as_dict`; raises `ValueError` for what is of another type."""
    proof = made(Certificate, {**values, "ledger": ledger_from_dict(values["ledger"])})
    for name in ("claimed_delta", "delta"):
        inside(name, getattr(proof, name), 0, 1, ends=True)
    return proof


_KINDS: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        GaussianSpend,
        LaplaceSpend,
        KNormSpend,
        GeneralisedGaussianSpend,
        PureSpend,
        BoundedRangeSpend,
        WishartSpend,
        BitSpend,
        SampledGaussianSpend,
        Parallel,
        Expiring,
        Repeated,
    )
}


def ledger_as_dict(ledger: Ledger) -> dict[str, Any]:
    """A ledger as plain values, which `ledger_from_dict` takes back unchanged."""
    visits = None if ledger.visits is None else vars(ledger.visits)
    spends = [_spend_as_dict(spend) for spend in ledger.spends]
    return {**vars(ledger), "visits": visits, "spends": spends}


def ledger_from_dict(values: dict[str, Any]) -> Ledger:
    """The inverse of `ledger_as_dict`, also after a journey through JSON."""
    return made(Ledger, {**values, "spends": tuple(map(_spend_from_dict, values["spends"]))})


def _spend_as_dict(spend: Spend) -> dict[str, Any]:
    held = {
        name: value for name, value in vars(spend).items() if name[0] != "_" and name != "slots"
    }
    values: dict[str, Any] = {"kind": type(spend).__name__, **held}
    if isinstance(spend, Parallel):
        values["parts"] = [_spend_as_dict(part) for part in spend.parts]
    if isinstance(spend, Expiring | Repeated):
        values["part"] = _spend_as_dict(spend.part)
    return values


def _spend_from_dict(values: dict[str, Any]) -> Any:
    given = dict(values)
    kind = _KINDS[given.pop("kind")]
    if kind is Parallel:
        given["parts"] = tuple(map(_spend_from_dict, given["parts"]))
    if kind in (Expiring, Repeated):
        given["part"] = _spend_from_dict(given["part"])
    return made(kind, given)
