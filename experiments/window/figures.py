"""The figures: regret against W and T, dollars against epsilon, seconds a round."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from matplotlib.ticker import NullLocator

from dpbandit.base.arrays import Floats
from dpbandit.base.files import write_atomically
from dpbandit.experiments.panels import DASHES, curve, draw, legend_below, legend_beside
from dpbandit.experiments.window.costs import Timing
from dpbandit.experiments.window.runs import Found, FoundLines
from dpbandit.experiments.window.study import Findings

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "cocop-ball": r"quadratic losses on the unit ball of $\mathbf{R}^5$",
    "cocol-simplex": r"quadratic losses on the simplex of $\mathbf{R}^{10}$",
    "simplex": "simplex: an exact projection",
    "flows": "flows: no exact projection",
}


def figures(findings: Findings, out: Path) -> list[Path]:
    """Write all of them into `out`."""
    drawings: dict[str, Callable[[Findings, Path], None]] = {
        "windows": _windows,
        "horizons": _horizons,
        "retention": _retention,
        "costs": _costs,
    }
    return [
        write_atomically(out / f"{name}.png", partial(drawing, findings))
        for name, drawing in drawings.items()
    ]


def _windows(findings: Findings, path: Path) -> None:
    answer, plan = findings.answers["windows"], findings.plan

    def panel(axes: "Axes", place: int) -> None:
        _lines(axes, list(answer.values())[place], lambda found: found.regret)
        _logarithmic(axes, plan.windows)
        axes.set_xlabel("window W (rounds for which a user is protected; W = T: for ever)")
        axes.set_ylabel(f"regret after {plan.horizon:,} rounds (loss)")
        legend_below(axes, "noise and tree, and the privacy it is for")

    heading = f"What a window saves, epsilon {plan.epsilon:g}\n{_sample(findings)}"
    draw(path, _named(answer), panel, heading=heading, size=(14, 8.6))


def _horizons(findings: Findings, path: Path) -> None:
    answer, slopes = findings.answers["horizons"], findings.slopes()

    def panel(axes: "Axes", place: int) -> None:
        problem, lines = list(answer.items())[place]
        names = {
            label: f"{label}: {slopes[problem, label].value:.3f}"
            for p, label in slopes
            if p == problem
        }
        _lines(axes, lines, lambda found: found.regret, names)
        _logarithmic(axes, findings.plan.horizons[::2])
        axes.set_xlabel("horizon T (rounds)")
        axes.set_ylabel("regret after T rounds (loss)")
        legend_below(axes, "agent (its privacy): exponent on the larger half of T")

    heading = f"Growth with the horizon, epsilon {findings.plan.epsilon:g}\n{_sample(findings)}"
    draw(path, _named(answer), panel, heading=heading, size=(16, 8.6))


def _retention(findings: Findings, path: Path) -> None:
    plan, lines = findings.plan, findings.answers["retention"]["pricing"]

    def panel(axes: "Axes", place: int) -> None:
        _lines(axes, lines, lambda found: 1000 * found.regret / found.run.horizon)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(list(plan.epsilons), [f"{epsilon:g}" for epsilon in plan.epsilons])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.set_xlabel("epsilon, for the privacy named in the legend")
        axes.set_ylabel("dollars lost per 1,000 customers")
        legend_beside(axes)

    heading = f"Prices where customers expire\n{plan.customers:,} customers, {_sample(findings)}"
    draw(path, ["ConvexPricing: three goods"], panel, heading=heading, size=(13, 6))


def _costs(findings: Findings, path: Path) -> None:
    kinds = list(dict.fromkeys(timing.kind for timing in findings.timings))

    def panel(axes: "Axes", place: int) -> None:
        by_agent: dict[str, list[Timing]] = {}
        for timing in findings.timings:
            if timing.kind == kinds[place]:
                by_agent.setdefault(timing.agent, []).append(timing)
        for look, (agent, line) in enumerate(by_agent.items()):
            promise = line[0].cost.protected or "no privacy"
            sizes = [timing.cost.size for timing in line]
            values = [1000 * timing.cost.seconds for timing in line]
            curve(axes, look, f"{agent} ({promise})", sizes, values)
        _logarithmic(axes, sizes)
        axes.set_xlabel("coordinates N of a point")
        axes.set_ylabel("milliseconds a round, one replica")
        legend_below(axes, "agent (its privacy)")

    plan = findings.plan
    heading = f"What a round costs: mean of {plan.timed_runs} runs, 95 % bands"
    draw(path, [_TITLES[kind] for kind in kinds], panel, heading=heading, size=(13, 6.6))


def _lines(
    axes: "Axes",
    lines: FoundLines,
    value: Callable[[Found], Floats],
    names: dict[str, str] | None = None,
) -> None:
    """Every line along its axis; yardsticks, one run each, as levels."""
    names = names or {}
    learners = {label: line for label, line in lines.items() if len(line) > 1}
    for place, (label, line) in enumerate(learners.items()):
        where = [found.run.at for found in line]
        curve(axes, place, names.get(label, label), where, [value(found) for found in line])
    levels = [label for label in lines if label not in learners]
    for place, label in enumerate(levels):
        mean = value(lines[label][0]).mean()
        shade, dashes = str(0.25 * (place % 3)), DASHES[1 + place % 3]
        axes.axhline(mean, color=shade, ls=dashes, lw=1 + place // 3, label=label)


def _logarithmic(axes: "Axes", ticks: Sequence[int]) -> None:
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(ticks), [f"{tick:,}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter("{x:,.6g}")


def _named(problems: Iterable[str]) -> list[str]:
    return [_TITLES[name] for name in problems]


def _sample(findings: Findings) -> str:
    return f"mean of {findings.plan.replicas} replicas, 95 % bands"
