"""Tables and figures: growth, signs and adversaries over the horizon, prices over epsilon."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from rich.table import Table

from dpbandit.base.arrays import Floats
from dpbandit.base.files import write_atomically
from dpbandit.experiments.drawing import draw_frontier, draw_lines, panes
from dpbandit.experiments.questions import Answers, RunLines, along, claim, horizon, mean, per_1000
from dpbandit.results.plots import legend_at_the_foot, legend_below
from dpbandit.results.runs import AgentRun, Slope

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_TITLES = {
    "p-lin": r"p-lin: $f(x) = x_1$ on the unit ball of $\mathbf{R}^5$",
    "p-quad": r"p-quad: $f(x) = |x - c|^2 / 2$ on the unit ball of $\mathbf{R}^5$, c half random",
    "pricing": "ConvexPricing: three goods",
    "sees the point": "losses that see the point of this round",
    "saw the point before": "losses that saw the point of the round before",
    "partition matroid": "partition matroid: 2 of 4 items in each of 3 groups, half of them good",
    "flows": "flows: 9 paths through 2 layers of 3 nodes, one of them faster",
}
_WIDE = 7.6
"""Inches, of which a telephone shows the letters, too"""
_LOST = {"p-quad": "loss per 1,000 rounds", "pricing": "dollars lost per 1,000 customers"}


def slopes(answers: Answers) -> dict[tuple[str, str], Slope]:
    """(problem, label) -> the exponent of growth."""
    return answers.slopes("growth", horizon) | answers.slopes("sets", horizon)


def tables(answers: Answers) -> Iterator[Table]:
    """One for each problem of each question."""
    found = slopes(answers)
    for question, problem, lines in _panels(answers):
        if question == "prices":
            title = f"{problem}: regret per 1,000 rounds"
            yield along(title, lines, claim, lambda run: mean(per_1000(run)))
            continue
        exponents = {label: str(s) for (p, label), s in found.items() if p == problem}
        yield along(
            f"{question}, {problem}: regret / T",
            lines,
            lambda run: f"T = {run.setup.horizon:,}",
            lambda run: mean(per_1000(run) / 1000),
            last=("exponent", exponents) if exponents else None,
            every=max(1, max(map(len, lines.values())) // 3),
        )


def figures(answers: Answers, out: Path) -> Iterator[Path]:
    """Write all of them into `out`."""
    drawings: dict[str, Callable[[Path], None]] = {
        "growth": partial(_growth, answers=answers),
        "signs": partial(
            _rates, answers.runs["signs"], "PrivateBandit ascends if its step has the printed sign"
        ),
        "regret-p-quad": partial(_prices, "p-quad", answers),
        "lost-pricing": partial(_prices, "pricing", answers),
        "excess": partial(_excess, answers),
        "adversaries": partial(
            _rates,
            answers.runs["adversaries"],
            "Losses that see the point they are asked at, against one-point methods",
        ),
        "sets": partial(
            _rates,
            answers.runs["sets"],
            "PrivateBandit on a matroid and on flows at epsilon 1 (best fixed point: 0)",
            most=1.0,
        ),
    }
    for name, draw in drawings.items():
        yield write_atomically(out / f"{name}.png", draw)


def _panels(answers: Answers) -> Iterator[tuple[str, str, RunLines]]:
    for question, found in answers.runs.items():
        for problem, lines in found.items():
            yield question, problem, lines


def _growth(path: Path, answers: Answers) -> None:
    found, exponents = answers.runs["growth"], slopes(answers)
    heading = "PrivateBandit at epsilon 1: how regret grows with the horizon"
    with panes(path, found, heading, (_WIDE, 13), _TITLES, rows=len(found)) as column:
        for axes, (problem, lines) in zip(column, found.items(), strict=True):
            names = {label: f"{label}: {s}" for (p, label), s in exponents.items() if p == problem}
            draw_lines(axes, lines, horizon, names=names)
            line = lines["without noise"]
            horizons = np.array([run.setup.horizon for run in line])
            guide = 0.6 * line[-1].regret[-1].mean() * (horizons / horizons[-1]) ** 0.75
            axes.plot(horizons, guide, color="black", lw=1, label="a slope of 3/4")
            axes.set_yscale("log")
            axes.yaxis.set_minor_formatter("")
            _over_horizons(axes, "regret after T rounds (loss)")
            legend_below(axes, "noise: slope on the larger half of T ± standard error")


def _rates(found: Mapping[str, RunLines], heading: str, path: Path, most: float = 2.0) -> None:
    size = (_WIDE, 2 + 4.4 * len(found))
    with panes(path, found, heading, size, _TITLES, rows=len(found)) as column:
        for axes, lines in zip(column, found.values(), strict=True):
            draw_lines(axes, lines, horizon, lambda regret, rounds: regret / rounds)
            axes.set_ylim(-0.02, most + 0.02)
            _over_horizons(axes, "regret / T (loss per round)")
        legend_at_the_foot(axes)


def _over_horizons(axes: "Axes", ylabel: str) -> None:
    axes.set_xscale("log", base=2)
    axes.set_xlabel("horizon T (rounds)")
    axes.tick_params(labelbottom=True)  # of every panel
    axes.set_ylabel(ylabel)


def _prices(problem: str, answers: Answers, path: Path) -> None:
    lines = answers.runs["prices"][problem]
    rounds = lines["centre"][0].setup.horizon
    with panes(path, {problem: lines}, f"{rounds:,} rounds", (_WIDE, 7), _TITLES) as (axes,):
        draw_frontier(axes, lines, per_1000)
        axes.set_ylabel(_LOST[problem])
        legend_at_the_foot(axes)


def _excess(answers: Answers, path: Path) -> None:
    found = answers.runs["prices"]
    rounds = found["pricing"]["centre"][0].setup.horizon
    heading = f"Regret minus that of the same agent without privacy, {rounds:,} rounds"
    with panes(path, found, heading, (_WIDE, 11), _TITLES, rows=len(found)) as column:
        for axes, (problem, lines) in zip(column, found.items(), strict=True):
            noisy = {label: line[:-1] for label, line in lines.items() if len(line) > 1}
            draw_frontier(axes, noisy, partial(_excess_per_1000, lines), log=True)
            unit = "dollars" if problem == "pricing" else "loss"
            axes.set_ylabel(f"price of privacy ({unit} per 1,000 rounds)")
            axes.tick_params(labelbottom=True)
        legend_at_the_foot(axes)


def _excess_per_1000(lines: RunLines, run: AgentRun) -> Floats:
    """Regret minus that of the last run of its line, without privacy on the same users, (R,)."""
    (line,) = (line for line in lines.values() if any(run is other for other in line))
    gap: Floats = per_1000(run) - per_1000(line[-1])
    return gap
