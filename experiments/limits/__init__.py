"""Regret of FADE, of an agent that spends the whole budget on every release, and a bound."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from dpbandit.base.tables import Table
from dpbandit.envs import GLMBandit
from dpbandit.experiments.figure import RunLines
from dpbandit.experiments.study import Found, Sizes, read, tabulated
from dpbandit.limits import PUBLISHED, least_regret_for
from dpbandit.privacy import mu_of
from dpbandit.results.plots import Overlay, final, style
from dpbandit.results.runs import standard_error

STUDY = read("limits")  # contents of the folder's study.toml
PRIVATE, YARDSTICK = "FADE", "not private: full budget a release"
"""Labels of two curves against epsilon; for the second, epsilon is the budget of each release"""
_RATIOS = ("FADE / full budget", "FADE / bound")  # columns of `table`
_VACUOUS_RATIO = 10.0
"""The lower bound is called vacuous if FADE's regret exceeds it by more than this factor"""
_DOTTED = (0, (1, 1.5))
"""Dash pattern of published bounds, of which only the shape is drawn"""


def table(lines: RunLines) -> pd.DataFrame:
    """Tabulate regret of `PRIVATE` and `YARDSTICK`, a lower bound, and their ratios, by epsilon."""
    bound = bound_of(lines)
    rows = []
    for private, yardstick in zip(lines[PRIVATE], lines[YARDSTICK], strict=True):
        epsilon, regret, least = private.certificate.epsilon, final(private), final(yardstick)
        rows.append(
            {
                "problem": private.setup.problem,
                "epsilon": epsilon,
                "FADE": regret.mean(),
                "FADE se": standard_error(regret),
                "full budget": least.mean(),
                "full budget se": standard_error(least),
                "bound": bound(epsilon),
                "FADE / full budget": regret.mean() / least.mean(),
                "FADE / bound": regret.mean() / bound(epsilon),
            }
        )
    return pd.DataFrame(rows)


def report(title: str, found: pd.DataFrame) -> Table:
    """Format the rows of `table` for a console."""
    headings = ("epsilon", "FADE", "full budget", "nobody is below", *_RATIOS)
    rows = [
        (
            f"{row['epsilon']:.3g}",
            f"{row['FADE']:.0f} ± {row['FADE se']:.0f}",
            f"{row['full budget']:.0f} ± {row['full budget se']:.0f}",
            f"{row['bound']:.1f}",
            *(f"{row[ratio]:.{2 - place}f}" for place, ratio in enumerate(_RATIOS)),
        )
        for row in found.to_dict("records")
    ]
    return tabulated(title, headings, rows, left={""})


def bound_of(lines: RunLines) -> Callable[[float], float]:
    """Return the lower bound on regret averaged over theta as a function of certified epsilon."""
    run = lines[PRIVATE][0]
    problem, delta = GLMBandit(**run.setup.env_kwargs), run.certificate.claimed_delta
    return lambda epsilon: least_regret_for(problem, mu_of(epsilon, delta))


def bounds(lines: RunLines, x: str) -> Iterator[Overlay]:
    """Yield two lines: regret of `YARDSTICK` by the epsilon of a release, and the lower bound."""
    found = table(lines)
    where, means = np.log(found["epsilon"]), found["full budget"]
    straight = (0, (5, 2))
    yield Overlay(YARDSTICK, lambda e: float(np.interp(np.log(e), where, means)), straight)
    yield _named(lines)


def _named(lines: RunLines) -> Overlay:
    ratios = table(lines)["FADE / bound"]
    times = f"FADE has {min(ratios):.1f} to {max(ratios):.1f} times it"
    vacuous = min(ratios) > _VACUOUS_RATIO
    label = f"vacuous: {times}" if vacuous else f"nobody is below; {times}"
    return Overlay(label, bound_of(lines))


def shapes(lines: RunLines, x: str) -> Iterator[Overlay]:
    """Yield published lower bounds, scaled to FADE's regret at its largest epsilon, and ours."""
    run = max(lines[PRIVATE], key=lambda run: run.certificate.epsilon)
    problem = GLMBandit(**run.setup.env_kwargs)
    size = {"horizon": problem.horizon, "dim": problem.dim, "n_actions": problem.n_actions}
    where = run.certificate.epsilon, float(final(run).mean())
    for look, shape in enumerate(PUBLISHED, start=1):
        at = shape.touching(*where, delta=run.certificate.claimed_delta, **size)
        yield Overlay(f"shape only: {shape.name}", at, _DOTTED, style(look)[0])
    yield _named(lines)


def run(sizes: Sizes, out: Path) -> Found:
    """Compare regret with a lower bound for all agents, by epsilon. Resumes where it stopped."""
    found = STUDY.measure(sizes, out)
    tables = {title: table(lines) for title, lines in found.runs["limits"].items()}
    frames = {"limits": pd.concat(tables.values()), "summary": found.table()}
    drawn = STUDY.draw(found, sizes, out)
    return Found(frames, drawn, [report(*one) for one in tables.items()])
