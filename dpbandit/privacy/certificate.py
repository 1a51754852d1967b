"""A claim beside what the noise really buys, by every accountant that applies."""

from dataclasses import asdict, dataclass
from math import inf, log, sqrt
from typing import Any

from dpbandit.privacy import gdp
from dpbandit.privacy.ledger import Ledger

HONESTY = (
    "Proofs are for real numbers; these samplers are seeded and not floating-point safe "
    "(Mironov 2012): a simulator for research and teaching, not a release mechanism for real users."
)


@dataclass(frozen=True)
class Certificate:
    """The privacy of one agent, computed from its ledger and nothing else.

    `epsilon` is certified at `claimed_delta` (at delta = 0 where nothing is claimed), `delta` at
    `claimed_epsilon`. `accountants` maps a name to the epsilon it gives at that delta; `mu` and
    `rho` are None when some mechanism is not Gaussian.
    """

    claimed_epsilon: float
    claimed_delta: float
    epsilon: float
    delta: float
    mu: float | None
    rho: float | None
    accountants: dict[str, float]
    notion: str
    mechanisms: tuple[str, ...]

    @property
    def holds(self) -> bool:
        """Whether the certificate is within the claim."""
        return self.epsilon <= self.claimed_epsilon

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self)

    def __str__(self) -> str:
        at = f"at delta {self.claimed_delta:g}"
        lines = [
            f"notion      {self.notion}",
            f"claimed     epsilon {self.claimed_epsilon:g} {at}",
            f"certified   epsilon {self.epsilon:.6g} {at}"
            + ("" if self.holds else "   EXCEEDS THE CLAIM"),
            *(f"  {name:<10}epsilon {value:.6g}" for name, value in self.accountants.items()),
            *(f"mechanism   {note}" for note in self.mechanisms),
            HONESTY,
        ]
        return "\n".join(lines)


def certificate(
    ledger: Ledger, *, claim: tuple[float, float] | None, accountants: bool = True
) -> Certificate:
    """Certify a ledger against `claim` = (epsilon, delta), or against itself where none is made.

    `accountants=False` leaves out the side-by-side figures, of which one is slow to import.
    """
    nothing = (ledger.epsilon(0.0), 0.0)
    claimed_epsilon, claimed_delta = nothing if claim is None else claim
    mu = ledger.mu
    epsilon, delta = ledger.epsilon(claimed_delta), ledger.delta(claimed_epsilon)
    if delta <= claimed_delta:  # the claim itself is certified, whatever the root is rounded to
        epsilon = min(epsilon, claimed_epsilon)
    return Certificate(
        claimed_epsilon=claimed_epsilon,
        claimed_delta=claimed_delta,
        epsilon=epsilon,
        delta=delta,
        mu=mu,
        rho=None if mu is None else gdp.rho_of(mu),
        accountants=_accountants(ledger, epsilon, claimed_delta) if accountants else {},
        notion=ledger.notion,
        mechanisms=tuple(spend.note for spend in ledger.spends),
    )


def _accountants(ledger: Ledger, epsilon: float, delta: float) -> dict[str, float]:
    mu = ledger.mu
    if mu is None:
        return {"PLD": epsilon}
    if mu in (0, inf) or delta == 0:
        return {"GDP": epsilon}
    return {"GDP": epsilon, "PLD": _pld_epsilon(mu, delta), "zCDP": _zcdp_epsilon(mu, delta)}


def _pld_epsilon(mu: float, delta: float) -> float:
    """The same Gaussian by dp-accounting's discretised loss, rounded pessimistically.

    The noise multiplier is ours, for OUR replace-one sensitivity: dp-accounting's own REPLACE_ONE
    doubles the sensitivity in one accountant and not in another.
    """
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism

    step = min(1e-2, mu / 2000)
    pld = from_gaussian_mechanism(1 / mu, value_discretization_interval=step)
    return float(pld.get_epsilon_for_delta(delta))


def _zcdp_epsilon(mu: float, delta: float) -> float:
    """Bun and Steinke (TCC 2016), Proposition 1.3: rho + 2 sqrt(rho ln(1/delta)), the loose one."""
    rho = gdp.rho_of(mu)
    return rho + 2 * sqrt(rho * log(1 / delta))
