"""The figures: lines over T, d and epsilon, a histogram of switches, the lower bound."""

from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from dpbandit.base.files import write_atomically
from dpbandit.experiments.experts.families import PUBLIC
from dpbandit.experiments.experts.runs import Found, FoundLines
from dpbandit.experiments.experts.study import Findings
from dpbandit.experiments.panels import DASHES, curve, draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_GREYS = ("0.0", "0.35", "0.6", "0.45")
_DUMB = (*PUBLIC, "centre")
_AXES: dict[str, tuple[str, Callable[[Found], float]]] = {
    "T": ("horizon T (rounds)", lambda found: found.run.horizon),
    "d": ("number of experts d", lambda found: found.run.problem.n_experts),
    "epsilon": ("epsilon", lambda found: found.run.epsilon),
}


def figures(findings: Findings, out: Path) -> list[Path]:
    """Write all of them into `out`."""
    plan = findings.plan
    lines: dict[str, tuple[str, str, str, tuple[float, float]]] = {
        "growth": (
            "T",
            f"Regret at epsilon 1, {plan.n_experts} experts, one of whom never errs",
            "regret after T rounds (loss)",
            (14.5, 7.6),
        ),
        "sizes": (
            "d",
            f"Regret at epsilon 1 after {plan.sizes_horizon:,} rounds",
            "regret (loss)",
            (14.5, 7.6),
        ),
        "prices": (
            "epsilon",
            f"Regret after {plan.horizons[-1]:,} rounds, one expert never errs",
            "regret (loss)",
            (8.5, 7.4),
        ),
        "counterexample": (
            "T",
            "The potential's test (Algorithm 5) and the test of one's own loss (Algorithm 1)",
            "regret after T rounds (loss)",
            (17, 7.2),
        ),
        "points": (
            "T",
            "DP-FTRL where its bound holds and where it does not, and points as experts",
            "regret after T rounds (loss)",
            (17, 7.0),
        ),
        "policies": (
            "epsilon",
            f"Following the best of {plan.rankers} rankers, {plan.users:,} users",
            "clicks lost per 1,000 users",
            (13.5, 7.2),
        ),
    }
    drawings: dict[str, Callable[[Findings, Path], None]] = {
        name: partial(_lines, question=name, axis=axis, heading=heading, unit=unit, size=size)
        for name, (axis, heading, unit, size) in lines.items()
    }
    drawings |= {"switches": _switches, "tails": _tails}
    return [
        write_atomically(out / f"{name}.png", partial(drawing, findings))
        for name, drawing in drawings.items()
    ]


def _lines(
    findings: Findings,
    path: Path,
    *,
    question: str,
    axis: str,
    heading: str,
    unit: str,
    size: tuple[float, float],
) -> None:
    answer, slopes = findings.answers[question], findings.slopes()
    name, where = _AXES[axis]

    def panel(axes: "Axes", place: int) -> None:
        title, lines = list(answer.items())[place]
        _panel(axes, lines, where, per_1000=question == "policies")
        handles, labels = axes.get_legend_handles_labels()
        exponents = [slopes.get((question, title, label)) for label in labels]
        if question != "policies":  # an exponent there says nothing
            labels = [
                label if s is None else f"{label}: {s.value:.2f} ± {s.se:.2f}"
                for label, s in zip(labels, exponents, strict=True)
            ]
        axes.legend(
            handles,
            labels,
            title="agent"
            if question == "policies"
            else f"exponent of {'ln d' if axis == 'd' else axis} on the larger half ± error",
            loc="upper center",
            bbox_to_anchor=(0.46, -0.13),
            ncols=2,
            frameon=False,
            fontsize="x-small",
            title_fontsize="x-small",
            handlelength=2.6,
            columnspacing=1.2,
        )
        axes.set_xscale("log")
        axes.set_yscale("log")
        ticks = sorted({where(f) for line in lines.values() for f in line} - {inf})
        axes.set_xticks(ticks, [f"{tick:,g}" for tick in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.set_xlabel(name)
        axes.set_ylabel(unit)

    draw(path, answer, panel, heading=f"{heading}\n{_sample(findings)}", size=size)


def _panel(
    axes: "Axes", lines: FoundLines, where: Callable[[Found], float], *, per_1000: bool
) -> None:
    """Learners in colour with bands, whoever is not private or learns nothing in grey."""
    learners = {label: line for label, line in lines.items() if label not in _DUMB}
    for place, (label, line) in enumerate(learners.items()):
        curve(axes, place, label, [where(f) for f in line], [_shown(f, per_1000) for f in line])
    at = [where(f) for f in next(iter(learners.values()))]
    for place, (label, line) in enumerate(
        (label, line) for label, line in lines.items() if label in _DUMB
    ):
        means = [_shown(f, per_1000).mean() for f in line]
        axes.plot(
            at, means, color=_GREYS[place % 4], ls=DASHES[place % 4], lw=1.3, label=label, zorder=1
        )


def _shown(found: Found, per_1000: bool) -> np.ndarray:
    return found.regret * (1000 / found.run.horizon if per_1000 else 1.0)


def _switches(findings: Findings, path: Path) -> None:
    answer = findings.answers["switches"]

    def panel(axes: "Axes", place: int) -> None:
        lines = list(answer.values())[place]
        most = max(int(f.switches.max()) for line in lines.values() for f in line)
        for look, (label, (found,)) in enumerate(lines.items()):
            share = np.bincount(found.switches.astype(int), minlength=most + 1)
            axes.bar(
                np.arange(most + 1) + 0.4 * (look - 0.5),
                share / share.sum(),
                0.4,
                color=("#0173b2", "#de8f05")[look],
                edgecolor="black",
                hatch=("", "//")[look],
                label=f"{label}: mean {found.switches.mean():.2f}",
            )
        axes.set_xticks(range(0, most + 1, max(1, most // 8)))
        axes.set_xlabel("switches in one run")
        axes.set_ylabel("share of runs")
        axes.legend(frameon=False, fontsize="small", loc="upper right")
        axes.set_ylim(top=1.25 * axes.get_ylim()[1])

    heading = f"How often lazy agents change on halving, epsilon 1, {findings.plan.users:,} rounds"
    sample = f"{findings.plan.audited} runs"
    draw(path, answer, panel, heading=f"{heading}\n{sample}", size=(15, 5.2))


def _tails(findings: Findings, path: Path) -> None:
    verdicts = findings.verdicts()
    panels = list(findings.answers["tails"])

    def panel(axes: "Axes", place: int) -> None:
        rows = {label: v for (title, label), v in verdicts.items() if title == panels[place]}
        for height, v in enumerate(rows.values()):
            color = "#d55e00" if v.refuted else "#0173b2"
            axes.plot([v.mean, v.upper], [height] * 2, color=color, lw=1.8)
            axes.plot([v.mean], [height], "Xo"[not v.refuted], color=color, ms=7)
            axes.plot([v.least], [height], "|", color="black", ms=15, mew=2)
        axes.set_yticks(range(len(rows)), list(rows) if place == 0 else [""] * len(rows))
        axes.invert_yaxis()
        axes.set_xlim(left=0)
        axes.set_xlabel("regret (loss)")

    heading = "The lower bound as an audit: a dot is a mean, its line ends at the upper limit"
    more = "a bar is what an agent as private as that loses at least; crosses are caught"
    draw(path, panels, panel, heading=f"{heading};\n{more}", size=(16, 7.2))


def _sample(findings: Findings) -> str:
    return f"mean of {findings.plan.replicas} replicas, 95 % bands"
