"""The figures: growth, signs and adversaries over the horizon, prices over epsilon."""

from collections.abc import Callable
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandit.base.arrays import Floats
from dpbandit.base.files import write_atomically
from dpbandit.experiments.convex.drawing import over_horizons
from dpbandit.experiments.convex.runs import Found, FoundPanels
from dpbandit.experiments.convex.study import Findings
from dpbandit.experiments.drawing import curve, draw, legend_below, legend_beside
from dpbandit.results.plots import Frontier, frontier

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "p-lin": r"p-lin: $f(x) = x_1$ on the unit ball of $\mathbf{R}^5$",
    "p-quad": r"p-quad: $f(x) = |x - c|^2 / 2$ on the unit ball of $\mathbf{R}^5$, c half random",
    "pricing": "ConvexPricing: three goods",
    "sees the point": "losses that see the point of this round",
    "saw the point before": "losses that saw the point of the round before",
}


def figures(findings: Findings, out: Path) -> list[Path]:
    """Write all of them into `out`."""
    drawings: dict[str, Callable[[Findings, Path], None]] = {
        "growth": _growth,
        "signs": _signs,
        "regret-p-quad": partial(
            _prices, problem="p-quad", ylabel="regret per 1,000 rounds (loss)"
        ),
        "lost-pricing": partial(
            _prices, problem="pricing", ylabel="dollars lost per 1,000 customers"
        ),
        "excess": _excess,
        "adversaries": _adversaries,
    }
    return [
        write_atomically(out / f"{name}.png", partial(drawing, findings))
        for name, drawing in drawings.items()
    ]


def _growth(findings: Findings, path: Path) -> None:
    answer, slopes = findings.answers["growth"], findings.slopes()
    horizons = np.array(findings.plan.horizons)

    def panel(axes: "Axes", place: int) -> None:
        problem, lines = list(answer.items())[place]

        def name(label: str) -> str:
            return f"{label}: {slopes[problem, label]}"

        over_horizons(axes, lines, lambda regret, rounds: regret, name)
        last = lines["without noise"][-1].regret.mean()
        guide = 0.6 * last * (horizons / horizons[-1]) ** 0.75
        axes.plot(horizons, guide, color="black", lw=1, label="a slope of 3/4")
        axes.set_yscale("log")
        axes.yaxis.set_minor_formatter("")
        axes.set_ylabel("regret after T rounds (loss)")
        legend_below(axes, "noise: slope on the larger half of T ± standard error")

    heading = "PrivateBandit at epsilon 1: how regret grows with the horizon"
    _draw(path, answer, panel, f"{heading}\n{_sample(findings)}", (13.5, 7.4))


def _signs(findings: Findings, path: Path) -> None:
    answer = findings.answers["signs"]
    heading = "PrivateBandit ascends if its step has the printed sign"
    panel = partial(_per_round_panel, answer, last=0)
    _draw(path, answer, panel, f"{heading}\n{_sample(findings)}", (10, 5.4))


def _adversaries(findings: Findings, path: Path) -> None:
    answer = findings.answers["adversaries"]
    heading = "Losses that see the point they are asked at, against one-point methods"
    panel = partial(_per_round_panel, answer, last=1)
    _draw(path, answer, panel, f"{heading}\n{_sample(findings)}", (14, 5.6))


def _per_round_panel(answer: FoundPanels, axes: "Axes", place: int, *, last: int) -> None:
    over_horizons(axes, list(answer.values())[place], lambda regret, rounds: regret / rounds)
    axes.set_ylim(-0.02, 2.02)
    axes.set_ylabel("regret / T (loss per round)")
    if place == last:
        legend_beside(axes)


def _excess(findings: Findings, path: Path) -> None:
    answer, plan = findings.answers["prices"], findings.plan

    def panel(axes: "Axes", place: int) -> None:
        problem, lines = list(answer.items())[place]
        private = (item for item in lines.items() if len(item[1]) > 1)
        for look, (label, line) in enumerate(private):
            priced = {f.run.epsilon: f.excess for f in line if f.excess is not None}
            curve(axes, look, label, list(priced), [1000 * e / plan.users for e in priced.values()])
        ticks = [epsilon for epsilon in plan.epsilons if epsilon < inf]
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xticks(ticks, [f"{epsilon:g}" for epsilon in ticks])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.set_xlabel("epsilon")
        unit = "dollars" if problem == "pricing" else "loss"
        axes.set_ylabel(f"price of privacy ({unit} per 1,000 rounds)")
        if place == len(answer) - 1:
            legend_beside(axes)

    heading = f"Regret minus that of the same agent without privacy, {plan.users:,} rounds"
    _draw(path, answer, panel, f"{heading}\n{_sample(findings)}", (14, 6))


def _prices(findings: Findings, path: Path, *, problem: str, ylabel: str) -> None:
    lines, plan = findings.answers["prices"][problem], findings.plan

    def per_1000(found: Found) -> Floats:
        return 1000 * found.regret / found.run.horizon

    private = {label: line for label, line in lines.items() if len(line) > 1}
    fronts = [
        Frontier(label, [f.run.epsilon for f in line], list(map(per_1000, line)), look)
        for look, (label, line) in enumerate(private.items())
    ]
    levels = {name: per_1000(line[0]) for name, line in lines.items() if name not in private}
    title = f"{_TITLES[problem]}\n{plan.users:,} rounds, {_sample(findings)}"
    notion = "differential privacy of all points"
    frontier(path, fronts, levels, title=title, ylabel=ylabel, notion=notion)


def _draw(
    path: Path, answer: FoundPanels, panel: Any, heading: str, size: tuple[float, float]
) -> None:
    draw(path, [_TITLES[name] for name in answer], panel, heading=heading, size=size)


def _sample(findings: Findings) -> str:
    return f"mean of {findings.plan.replicas} replicas, 95 % bands"
