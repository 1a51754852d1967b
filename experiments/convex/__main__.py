"""What privacy costs when points of a convex domain are played. See README.md."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandit.agents import FTAL, OGD, PFTAL
from dpbandit.base import Floats, whole, write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.questions import (
    Answers,
    Found,
    Lines,
    Panels,
    RunLines,
    agent_of,
    agents_in,
    along,
    answers,
    claim,
    command,
    draw_frontier,
    draw_lines,
    horizon,
    mean,
    panes,
    per_1000,
    slopes_table,
    start,
)
from dpbandit.results.plots import legend_at_the_foot, legend_below
from dpbandit.results.runs import AgentRun, Slope
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, setup_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_WORDS = agents_in("convex")
_TOLD_DATA = (FTAL, OGD, PFTAL)
_PROBLEMS: Mapping[str, Mapping[str, Any]] = {
    "p-lin": {"instance": "p-lin"},
    "p-quad": {"instance": "p-quad"},
    "sees the point": {"instance": "strongly-adaptive"},
    "saw the point before": {"loss": "offset-quadratic", "dim": 1, "adversary": "adaptive"},
    "partition matroid": {"instance": "partition-matroid"},
    "flows": {"instance": "flows"},
}


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of the five questions."""

    horizons: Sequence[int] = tuple(2**j for j in range(10, 18))
    """of regret against T"""
    adaptive_horizons: Sequence[int] = (2**10, 2**12, 2**14, 2**16)
    """of the adversary that sees the point"""
    users: int = 20_000
    """rounds of regret against epsilon"""
    epsilons: Sequence[float] = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, inf)
    delta: float = 1e-6
    """of Gaussian noise"""
    replicas: int = 20

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 2)  # there are standard errors
        whole("horizons", len(self.horizons), 4)  # a slope needs two in the larger half


QUICK = Sizes(
    horizons=(128, 256, 512, 1024),
    adaptive_horizons=(256, 1024),
    users=500,
    epsilons=(0.5, 5.0, inf),
    replicas=3,
)


def questions(sizes: Sizes) -> dict[str, Panels]:
    """All of them."""
    over = {
        "growth": ("p-lin", "p-quad"),
        "signs": ("p-lin",),
        "adversaries": ("sees the point", "saw the point before"),
        "sets": ("partition matroid", "flows"),
    }
    found: dict[str, Panels] = {
        question: {problem: _over(problem, question, sizes) for problem in problems}
        for question, problems in over.items()
    }
    prices = {problem: _prices(problem, sizes) for problem in ("p-quad", "pricing")}
    return {name: found.get(name, prices) for name in _QUESTIONS}


_QUESTIONS = ("growth", "signs", "prices", "adversaries", "sets")


def on(problem: str, name: str, config: AgentConfig, horizon: int) -> Configuration:
    """An agent on a problem; those that learn from data meet the one that tells them."""
    data = isinstance(config, _TOLD_DATA)
    environment = "OnlineConvex" if data else "ConvexBandit"
    arguments = _PROBLEMS.get(problem, {})
    if problem == "pricing":
        environment, arguments = "ConvexPricing", {"feedback": "datum"} if data else {}
    setup = setup_of(environment, arguments, horizon=horizon, label=problem)
    return Configuration(setup, name, config)


def _over(problem: str, question: str, sizes: Sizes) -> Lines:
    """Agents of a question against T."""
    horizons = sizes.adaptive_horizons if question == "adversaries" else sizes.horizons
    lines = _baselines(problem, horizons[-1])
    for label, words in _WORDS[question].items():
        lines[label] = [
            on(problem, label, agent_of(words, delta=sizes.delta, step=min(0.5, T ** (-1 / 3))), T)
            for T in horizons
        ]
    return lines


def _prices(problem: str, sizes: Sizes) -> Lines:
    """Private agents at every epsilon, and then without privacy; beside public ones."""
    lines, T = _baselines(problem, sizes.users), sizes.users
    without = on(problem, "without noise", agent_of("garber-kretzu"), T)
    bandits = _WORDS["bandits"]
    for label, words in {**bandits, **_WORDS["leaders"]}.items():
        lines[label] = [
            without
            if label in bandits and epsilon == inf
            else on(problem, label, agent_of(words, epsilon=epsilon, delta=sizes.delta), T)
            for epsilon in sizes.epsilons
        ]
    for label, words in _WORDS["public"].items():
        lines[label] = [on(problem, label, agent_of(words), T)]
    return lines


def _baselines(problem: str, horizon: int) -> dict[str, list[Configuration]]:
    return {
        label: [on(problem, label, agent_of(words), horizon)]
        for label, words in _WORDS["baselines"].items()
    }


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
        "regret-p-quad": partial(_draw_prices, "p-quad", answers),
        "lost-pricing": partial(_draw_prices, "pricing", answers),
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


def _draw_prices(problem: str, answers: Answers, path: Path) -> None:
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
    return per_1000(run) - per_1000(line[-1])


def run(sizes: Sizes, out: Path) -> Found:
    """Regret against T and epsilon on convex problems. Resumes where it stopped."""
    found = answers("Points of a convex domain", questions(sizes), out, replicas=sizes.replicas)
    frames = {"summary": found.table(), "slopes": slopes_table(slopes(found))}
    return Found(frames, figures(found, out), tables(found))


main = command("convex", run, Sizes(), QUICK)

if __name__ == "__main__":
    start(main)
