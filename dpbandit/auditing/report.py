"""What an audit reports, and its picture."""

from dataclasses import asdict, dataclass
from math import inf
from pathlib import Path
from typing import Any

import numpy as np

from dpbandit.auditing.bounds import Claim
from dpbandit.auditing.views import View
from dpbandit.base.arrays import Floats
from dpbandit.base.files import html_lines, write_atomically
from dpbandit.base.inputs import one_of

_SLACK = 1e-6
"""By which a certificate, rounded up, may exceed its claim."""


@dataclass(frozen=True, kw_only=True, repr=False)
class AuditReport:
    """What `runs` runs of each of two neighbouring worlds prove about an agent.

    `eps_lower` bounds epsilon at `delta` from below; `mu_lower` bounds GDP, where that is claimed.
    `eps_lower_gdp` is the epsilon of Gaussian noise with that mu; other noise may have less.
    (`fpr`, `tpr`) is a point that any attack-proof curve must stay above with the stated
    confidence; `above_curve`: the certificate's does not. All statements together are wrong with
    probability at most `failure`.
    """

    agent: str
    config: str
    problem: str
    view: View
    claimed_epsilon: float
    certified_epsilon: float
    restricted: str
    """what restricts the certificate, see `Ledger.brief`"""
    delta: float
    certified_mu: float | None
    eps_lower: float
    eps_lower_gdp: float | None
    mu_lower: float | None
    fpr: float
    tpr: float
    above_curve: bool
    flagged: bool
    """the certificate is refuted"""
    breaks_claim: bool
    """the claim is, whatever is certified"""
    failure: float
    pair: str
    score: str
    direction: str
    runs: int
    seed: int
    seconds: float
    claim: Claim
    """the certificate that was tested, with its curve"""

    @property
    def verdict(self) -> str:
        """Certificate and claim in a few words; what is worst comes first.

        Over-noised: the certificate is below half of the claim. That the certificate exceeds the
        claim is known from accounting; that the claim is broken, from runs.
        """
        if self.claimed_epsilon == inf:
            return "nothing is claimed"
        found = []
        if self.flagged:
            found.append("FLAGGED: certificate refuted")
        if self.breaks_claim:
            found.append("CLAIM BROKEN by measurement")
        elif self.certified_epsilon > self.claimed_epsilon * (1 + _SLACK):
            found.append("certificate exceeds claim")
        elif self.certified_epsilon < self.claimed_epsilon / 2:
            found.append("over-noised")
        return ", ".join(found or ["not refuted"])

    def proven(self, fpr: Floats) -> Floats:
        """The least TPR that the curve of the agent may have at `fpr`, elementwise.

        With a claim of GDP that is the curve of `mu_lower`. Any other curve is concave, symmetric
        since neighbours are, and not below the point: so not below the lines from (0, 0) by the
        point and its mirror image to (1, 1).
        """
        if self.mu_lower is not None:
            return Claim(self.eps_lower, self.delta, self.mu_lower).highest(fpr)
        if self.tpr <= self.fpr:
            return fpr
        point, mirrored = (self.fpr, self.tpr), (1 - self.tpr, 1 - self.fpr)
        x, y = np.array(sorted([(0.0, 0.0), point, mirrored, (1.0, 1.0)])).T
        return np.asarray(np.interp(fpr, x, y))

    def as_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        return asdict(self) | {"verdict": self.verdict}

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return html_lines(str(self))

    def __str__(self) -> str:
        gdp = ""
        if self.mu_lower is not None:
            gdp = f", mu >= {self.mu_lower:.3f} (certified {self.certified_mu:.3f})"
        if self.eps_lower_gdp is not None:
            gdp += f", as Gaussian noise epsilon >= {self.eps_lower_gdp:.3f}"
        return "\n".join(
            [
                f"claimed     epsilon {self.claimed_epsilon:g} at delta {self.delta:g}",
                f"certified   epsilon {self.certified_epsilon:.6g}"
                + (f" ({self.restricted})" if self.restricted else ""),
                f"measured    epsilon >= {self.eps_lower:.3f}{gdp}",
                f"point       TPR >= {self.tpr:.4f} at FPR <= {self.fpr:.4f}",
                f"verdict     {self.verdict}",
                f"pair        {self.pair}; score: {self.score}, {self.direction}",
                f"runs        {self.runs:,} of each world, view {self.view}; anything here is "
                f"wrong with probability <= {self.failure:g}; {self.seconds:.1f} s",
            ]
        )


SUFFIXES = (".png", ".svg", ".pdf")
"""Of a picture."""


def plot_audit(report: AuditReport, path: Path, *, title: str) -> Path:
    """The certificate's trade-off curve, the measured point and what it rules out."""
    one_of("suffix of the plot", path.suffix, SUFFIXES)
    from dpbandit.results.plots import tradeoff

    what = f"epsilon below {report.eps_lower:.3f}, curves below this"
    if report.mu_lower is not None:
        what = f"GDP below {report.mu_lower:.3f}"
    return write_atomically(
        path,
        lambda p: tradeoff(
            p,
            report.claim.highest,
            report.proven,
            (report.fpr, report.tpr),
            title=title,
            certified=f"certified: epsilon {report.certified_epsilon:.3g}, delta {report.delta:g}",
            measured=f"ruled out: {what}",
        ),
    )
