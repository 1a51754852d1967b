"""Private experts where one never errs: a lower bound that can refute claims of privacy."""

from collections.abc import Mapping, Sequence
from math import exp, expm1, floor, inf, log, sqrt
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dpbandit.base import privacy_target, whole
from dpbandit.results.plots import COLOURS, panels
from dpbandit.results.runs import AgentRun

if TYPE_CHECKING:
    from dpbandit.experiments.figure import Figure, Pane, RunLines


def news(n: int, epsilon: float) -> int:
    """Return floor(ln n / epsilon) + 1, the number of rounds with losses 1 that raise the bound."""
    whole("n", n, 1)
    privacy_target(epsilon, 0.0)
    return floor(log(n) / epsilon) + 1


def least_regret(n: int, epsilon: float, delta: float = 0.0, *, tail: int | None = None) -> float:
    """Return a lower bound on regret of (epsilon, delta)-DP algorithms if one expert never errs.

    Asi, Feldman, Koren and Talwar, "Near-optimal algorithms for private online optimization in the
    realizable regime", ICML 2023, Theorem 5, with every round counted. First all losses are 0; in
    the last k rounds they are 1 but for one of n experts, j, drawn uniformly. Regret is at least::

        sum over m = 0..k-1 of  max(0, 1 - e^(m epsilon) / n - delta c_m),

        c_m = (e^(m epsilon) - 1) / (e^epsilon - 1),

    about (ln n - 1) / epsilon.

    *Proof.* At the (m+1)-st such round the stream with good expert j differs in m rounds from the
    stream of zeros, on which experts are followed with probabilities q_j of sum 1. By group privacy
    j is followed with probability at most e^(m epsilon) q_j + delta c_m; an agent that follows
    another expert loses 1. The mean over j is the bound.

    Args:
        n: number of experts.
        epsilon, delta: guarantee of the algorithm for all its output when one round is replaced.
        tail: number k of last rounds, with losses 1; by default floor(ln n / epsilon) + 1 (`news`).

    >>> round(least_regret(256, 1.0), 3)
    5.085
    """
    privacy_target(epsilon, delta)
    k = news(n, epsilon) if tail is None else tail
    whole("tail", k, 0)
    most = floor(log(n) / epsilon)  # later terms are 0
    total = (1 - 1 / n) * (k > 0)
    for m in range(1, min(k - 1, most) + 1):
        grown = expm1(m * epsilon) / expm1(epsilon)
        total += max(0.0, 1 - exp(m * epsilon) / n - delta * grown)
    return total


FAILURE = 0.01
"""Upper bound on the probability that the study wrongly refutes some private agent"""


class Verdict(NamedTuple):
    """Mean regret of an agent beside the lower bound for its certified privacy."""

    judged_at: float
    """Certified epsilon; without a certificate, the epsilon by which the losses were chosen"""
    mean: float
    upper: float
    """Upper confidence limit of the agent's expected regret"""
    least: float
    """Lower bound on the regret of agents with this epsilon"""

    @property
    def refuted(self) -> bool:
        """True if regret is significantly below the bound, which refutes the claimed privacy."""
        return self.upper < self.least


def verdict(run: AgentRun, statements: int) -> Verdict:
    """Compare a run's regret with the lower bound, when `statements` runs are compared in all.

    Regret lies in [0, k] for k rounds with losses 1. By Hoeffding's inequality its expectation
    exceeds the mean of R replicas by k sqrt(ln(statements / `FAILURE`) / 2 R) with probability at
    most `FAILURE` / statements.
    """
    d, instance = run.setup.env_kwargs["n_actions"], run.setup.env_kwargs["epsilon"]
    k, proof, regret = news(d, instance), run.certificate, run.regret[-1]
    epsilon = proof.epsilon if 0 < proof.epsilon < inf else instance
    mean = float(regret.mean())
    margin = k * sqrt(log(statements / FAILURE) / (2 * len(regret)))
    least = least_regret(d, epsilon, proof.claimed_delta, tail=k)
    return Verdict(epsilon, mean, mean + margin, least)


def verdicts(tails: "Mapping[str, RunLines]") -> dict[str, dict[str, Verdict]]:
    """Compare every agent of every panel with the bound: panel -> label -> verdict."""
    statements = sum(len(lines) for lines in tails.values())
    return {
        panel: {label: verdict(line[0], statements) for label, line in lines.items()}
        for panel, lines in tails.items()
    }


def draw_switches(
    path: Path, figure: "Figure", panes: "Sequence[Pane]", found: "Mapping[str, RunLines]"
) -> None:
    """Draw a histogram of the number of changes of action (switches), for each panel."""
    run = next(iter(next(iter(found.values())).values()))[0]
    heading = f"{figure.heading.format(**panes[0].at)}\n{len(run.replicas)} runs"
    with panels(path, list(found), heading=heading, size=figure.size) as row:
        for axes, lines in zip(row, found.values(), strict=True):
            most = max(int(run.switches[-1].max()) for (run,) in lines.values())
            for look, (label, (run,)) in enumerate(lines.items()):
                many = run.switches[-1]
                share = np.bincount(many, minlength=most + 1)
                axes.bar(
                    np.arange(most + 1) + 0.4 * (look - 0.5),
                    share / share.sum(),
                    0.4,
                    color=COLOURS[look],
                    edgecolor="black",
                    hatch=("", "//")[look],
                    label=f"{label}: mean {many.mean():.2f}",
                )
            axes.set_xticks(range(0, most + 1, max(1, most // 8)))
            axes.set(xlabel="switches in one run", ylabel="share of runs")
            axes.legend(frameon=False, fontsize="small", loc="upper right")
            axes.set_ylim(top=1.25 * axes.get_ylim()[1])


def draw_tails(
    path: Path, figure: "Figure", panes: "Sequence[Pane]", found: "Mapping[str, RunLines]"
) -> None:
    """Draw agents' mean regrets, upper confidence limits and lower bounds, by panel."""
    with panels(path, list(found), heading=figure.heading, size=figure.size) as row:
        for place, (axes, rows) in enumerate(zip(row, verdicts(found).values(), strict=True)):
            for height, v in enumerate(rows.values()):
                color = COLOURS[3] if v.refuted else COLOURS[0]
                axes.plot([v.mean, v.upper], [height] * 2, color=color, lw=1.8)
                axes.plot([v.mean], [height], "Xo"[not v.refuted], color=color, ms=7)
                axes.plot([v.least], [height], "|", color="black", ms=15, mew=2)
            axes.set_yticks(range(len(rows)), list(rows) if place == 0 else [""] * len(rows))
            axes.invert_yaxis()
            axes.set_xlim(left=0)
            axes.set_xlabel("regret (loss)")
