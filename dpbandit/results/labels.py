"""What runs are called in legends."""

from collections.abc import Iterable
from math import inf, isinf
from textwrap import fill

from dpbandit.results.runs import AgentRun


def label(run: AgentRun) -> str:
    """A run's name and the privacy it certifiably has, for legends."""
    proof, name = run.certificate, as_text(run.name)
    if isinf(proof.epsilon):
        return f"{name} ({proof.ledger.brief or 'not private'})"
    if proof.pure == 0:  # epsilon is 0 at delta = 0 too, so no law of an action depends on data
        return f"{name} (no data used)"
    brief = f"{proof.ledger.brief}: " if proof.ledger.brief else ""
    delta = short(proof.claimed_delta)
    return rf"{name} ({brief}$\epsilon$ = {proof.epsilon:.3g}, $\delta$ = {delta})"


def restricted(name: str, runs: Iterable[AgentRun]) -> str:
    """A name, and in brackets what restricts the promises of its runs, without any epsilon."""
    briefs = dict.fromkeys(run.certificate.ledger.brief for run in runs)
    words = "; ".join(filter(None, briefs))
    return f"{name} ({words})" if words else name


def protected(run: AgentRun) -> str:
    """What its promise is of: "window-DP, last W", "conditional", "DP"; nothing without one."""
    proof = run.certificate
    return "" if proof.epsilon in (0.0, inf) else proof.ledger.brief or "DP"


def short(value: float) -> str:
    """A number of few digits.

    >>> short(1e-5)
    '1e-5'
    """
    return f"{value:g}".replace("e-0", "e-")


def as_text(name: str) -> str:
    """A name for a figure: no formula, and lines that fit."""
    return fill(name.replace("$", r"\$"), 60)
