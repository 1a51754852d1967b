"""The headline: what is lost in dollars, with privacy and without, wherever dollars are earned."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.base.arrays import Floats
from dpbandit.base.random_streams import Streams
from dpbandit.experiments.drawing import draw_frontier
from dpbandit.experiments.pricing.figure import best_public, called
from dpbandit.results.plots import final, legend_at_the_foot, panels
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, Setup, standard_error
from dpbandit.running.given import problem_maker

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Market(NamedTuple):
    """A problem in which money is earned."""

    title: str
    dollars: int
    """of one unit of reward"""


MARKETS = {
    "OJPricing": Market("Orange juice", 1),
    "Shop": Market("A shop of one's own", 1),
    "ApplePricing": Market("Apples", 1),
    "CameraPricing": Market("Cameras", 100),
}
"""By the problem's name in money.toml."""
_PRIVATE = {
    "certified": "fade",
    "a slope for each": "fade, interactions",
    "cells": "price-cells",
}
_LEVELS = {"best fixed": "BestFixed", "random": "Uniform"}
_WORDS = {
    "certified": "FADE",
    "a slope for each": "FADE, interactions",
    "cells": "price cells",
    "without privacy": "the best without privacy",
    "best fixed": "the best fixed price",
    "random": "random prices",
}
_USERS = 1000
"""To whom dollars are lost"""


def at_best(setup: Setup, replicas: int) -> float:
    """What the best action for every user brings in expectation, a round."""
    problem = problem_maker(setup.environment)(**setup.env_kwargs)
    problem.reset(Streams([(setup.seed, r) for r in range(replicas)]))
    anything = np.array([problem.spec.default_action] * replicas)
    total = 0.0
    for _ in range(setup.horizon):
        problem.context()
        total += float(problem.step(anything).oracle.mean())
    return total / setup.horizon


def roles(results: Results) -> dict[str, list[AgentRun]]:
    """Whom the headline shows of one problem, and as what."""
    lines: dict[str, list[AgentRun]] = {}
    for run in results.runs:
        lines.setdefault(run.name, []).append(run)
    private = {role: lines[name] for role, name in _PRIVATE.items() if name in lines}
    levels = {role: lines[name] for role, name in _LEVELS.items()}
    return {**private, "without privacy": [best_public(results)], **levels}


def dollars(run: AgentRun) -> Floats:
    """What 1,000 users bring less than at best, (R,)."""
    lost = MARKETS[run.setup.problem].dollars * final(run)
    return _USERS * lost / run.setup.horizon


def money(results: Results) -> pd.DataFrame:
    """Dollars lost on one problem per 1,000 users, and as a share of what they bring at best."""
    one = results.runs[0]
    best = _USERS * MARKETS[one.setup.problem].dollars * at_best(one.setup, len(one.replicas))
    rows = []
    for role, runs in roles(results).items():
        for run in runs:
            lost, error = float(dollars(run).mean()), standard_error(dollars(run))
            row = {
                "problem": run.setup.problem,
                "role": role,
                "agent": called(run, results) if role == "without privacy" else run.name,
                "certified_epsilon": run.certificate.epsilon,
                "delta": run.certificate.delta,
                "dollars_at_best": best,
                "dollars_lost": lost,
                "dollars_lost_se": error,
                "share_lost": lost / best,
                "share_lost_se": error / best,
            }
            rows.append(row)
    return pd.DataFrame(rows)


def draw_money(path: Path, found: Mapping[str, Results], best: Mapping[str, float]) -> None:
    """A panel for each problem: dollars on the left, shares of `best` on the right; a legend."""
    titles = [f"{MARKETS[problem].title}\n\\${best[problem]:,.0f} at best" for problem in found]
    with panels(
        path,
        titles,
        heading="Dollars lost per 1,000 customers, and share of the best",
        size=(7.2, 8.4),
        rows=2,
    ) as every:
        for axes, (problem, results) in zip(every, found.items(), strict=True):
            draw_frontier(axes, {_WORDS[r]: runs for r, runs in roles(results).items()}, dollars)
            axes.set_ylim(bottom=0)
            axes.yaxis.set_major_formatter("\\${x:,.0f}")
            axes.tick_params(labelbottom=True)
            _shares(axes, best[problem])
        legend_at_the_foot(every[0])


def _shares(axes: "Axes", best: float) -> None:
    """A second vertical axis."""
    percent = best / 100
    scales: Any = (lambda lost: lost / percent, lambda share: share * percent)
    right = axes.secondary_yaxis("right", functions=scales)
    right.yaxis.set_major_formatter("{x:g} %")
