"""Regret over epsilon above the bound, and beside published shapes: two figures, a table."""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd
from rich.table import Table

from dpbandit.base.files import write_atomically
from dpbandit.envs import GLMBandit
from dpbandit.experiments.drawing import draw_frontier, panes
from dpbandit.experiments.limits.study import PRIVATE, UNIFORM, YARDSTICK
from dpbandit.experiments.questions import RunLines
from dpbandit.limits import PUBLISHED, least_regret_for
from dpbandit.privacy.curves import mu_of
from dpbandit.results.plots import Overlay, final, legend_below, style
from dpbandit.results.runs import standard_error

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_VACUOUS = 10.0
"""Times that the best agent loses more than a bound says, from which on the bound says nothing"""
_DOTTED = (0, (1, 1.5))
"""What was published and is drawn for its shape"""
_LEGEND = "agent, or line that nobody measured"


def table(lines: RunLines) -> pd.DataFrame:
    """One row for each epsilon of a panel: FADE, the yardstick, the bound, and their ratios."""
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


def shown(title: str, found: pd.DataFrame) -> Table:
    """`table` for a console."""
    drawn = Table(title=title, title_justify="left")
    ratios = ("FADE / full budget", "FADE / bound")
    for column in ("epsilon", "FADE", "full budget", "nobody is below", *ratios):
        drawn.add_column(column, justify="right")
    for row in found.to_dict("records"):
        drawn.add_row(
            f"{row['epsilon']:.3g}",
            f"{row['FADE']:.0f} ± {row['FADE se']:.0f}",
            f"{row['full budget']:.0f} ± {row['full budget se']:.0f}",
            f"{row['bound']:.1f}",
            f"{row['FADE / full budget']:.2f}",
            f"{row['FADE / bound']:.1f}",
        )
    return drawn


def bound_of(lines: RunLines) -> Callable[[float], float]:
    """Certified epsilon -> regret below which no mu-GDP agent is, on average over parameters."""
    run = lines[PRIVATE][0]
    problem, delta = GLMBandit(**run.setup.env_kwargs), run.certificate.claimed_delta
    return lambda epsilon: least_regret_for(problem, mu_of(epsilon, delta))


def figures(found: Mapping[str, RunLines], out: Path) -> Iterator[Path]:
    """Write limits.png and shapes.png into `out`."""
    yield write_atomically(out / "limits.png", partial(_limits, found=found))
    first = dict(list(found.items())[:1])
    yield write_atomically(out / "shapes.png", partial(_shapes, found=first))


def _limits(path: Path, found: Mapping[str, RunLines]) -> None:
    heading = "Two arms, 50 features: what is lost, and what nobody avoids"
    with panes(path, found, heading, (13, 7)) as row:
        for axes, lines in zip(row, found.values(), strict=True):
            _draw(axes, lines, [_through(lines), Overlay(_named(lines), bound_of(lines))])


def _shapes(path: Path, found: Mapping[str, RunLines]) -> None:
    heading = "Published bounds as shapes: without constants, for worst cases,\n"
    heading += "scaled to touch FADE at its largest epsilon"
    with panes(path, found, heading, (9.5, 8)) as row:
        for axes, lines in zip(row, found.values(), strict=True):
            few = {name: lines[name] for name in (PRIVATE, UNIFORM)}
            bound = Overlay(_named(lines), bound_of(lines))
            _draw(axes, few, [*_published(lines), bound])


def _draw(axes: "Axes", lines: RunLines, overlays: list[Overlay]) -> None:
    measured = {name: runs for name, runs in lines.items() if name != YARDSTICK}
    draw_frontier(axes, measured, log=True, overlays=overlays)
    axes.set_ylabel("regret in the end")
    legend_below(axes, _LEGEND)


def _through(lines: RunLines) -> Overlay:
    """Straight from one mean of the yardstick to the next, over the epsilon of one release."""
    found = table(lines)
    where, means = np.log(found["epsilon"]), found["full budget"]
    return Overlay(
        YARDSTICK, lambda epsilon: float(np.interp(np.log(epsilon), where, means)), (0, (5, 2))
    )


def _named(lines: RunLines) -> str:
    """The bound's place in the legend, which says how near it is."""
    ratios = table(lines)["FADE / bound"]
    times = f"FADE has {min(ratios):.1f} to {max(ratios):.1f} times it"
    return f"vacuous: {times}" if min(ratios) > _VACUOUS else f"nobody is below; {times}"


def _published(lines: RunLines) -> Iterator[Overlay]:
    """Through what FADE has at its largest epsilon."""
    run = max(lines[PRIVATE], key=lambda run: run.certificate.epsilon)
    problem = GLMBandit(**run.setup.env_kwargs)
    size = {"horizon": problem.horizon, "dim": problem.dim, "n_actions": problem.n_actions}
    for look, shape in enumerate(PUBLISHED, start=1):
        at = shape.touching(
            run.certificate.epsilon,
            float(final(run).mean()),
            delta=run.certificate.claimed_delta,
            **size,
        )
        yield Overlay(f"shape only: {shape.name}", at, _DOTTED, style(look)[0])
