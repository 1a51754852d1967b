"""How far from what nobody can beat: FADE, the yardstick of full budget, a bound. See README.md."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from dpbandit.agents import FADE, FullBudgetFADE, LinTS, LinUCB, Uniform
from dpbandit.base import write_atomically
from dpbandit.base.tables import Table
from dpbandit.envs import GLMBandit
from dpbandit.experiments.questions import (
    Found,
    Lines,
    Panels,
    RunLines,
    answers,
    command,
    draw_frontier,
    panes,
    start,
)
from dpbandit.limits import PUBLISHED, least_regret_for
from dpbandit.privacy import mu_of
from dpbandit.results.plots import Overlay, final, legend_below, style
from dpbandit.results.runs import standard_error
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration, setup_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


PRIVATE, YARDSTICK = "FADE", "not private: full budget a release"
"""Lines along epsilon, the second along that of one release"""
UNIFORM = "uniform play"


@dataclass(frozen=True, kw_only=True)
class Sizes:
    """Of both panels."""

    horizon: int = 10_000
    noises: Sequence[float] = (0.5, 0.05)
    """standard deviation of rewards whose means are at most 1"""
    epsilons: Sequence[float] = (0.2, 0.5, 1.0, 2.0, 4.0, 10.0)
    delta: float = 1e-5
    replicas: int = 20
    seed: int = 1000


QUICK = Sizes(horizon=400, epsilons=(1.0, 10.0), replicas=2)


def questions(sizes: Sizes) -> Panels:
    """A panel for each size of noise: title -> label -> configurations along epsilon."""
    return {f"noise {noise:g}": _lines(noise, sizes) for noise in sizes.noises}


def _lines(noise: float, sizes: Sizes) -> Lines:
    arguments = {"n_actions": 2, "dim": 50, "noise": noise, "tail": 8.0}
    label = f"2 arms, 50 features, noise {noise:g}"
    setup = setup_of("GLMBandit", arguments, horizon=sizes.horizon, seed=sizes.seed, label=label)
    private: list[AgentConfig] = [FADE(epsilon=e, delta=sizes.delta) for e in sizes.epsilons]
    yardstick = {
        f"full budget, epsilon {e:g}": FullBudgetFADE(release_epsilon=e, release_delta=sizes.delta)
        for e in sizes.epsilons
    }
    public: dict[str, AgentConfig] = {
        "FADE without noise": FADE(epsilon=inf),
        "LinUCB, no privacy": LinUCB(alpha=0.3, reward_noise=noise),
        "LinTS, no privacy": LinTS(scale=0.3, reward_noise=noise),
        UNIFORM: Uniform(),
    }
    alone = {name: [Configuration(setup, name, config)] for name, config in public.items()}
    return {
        PRIVATE: [Configuration(setup, PRIVATE, config) for config in private],
        YARDSTICK: [Configuration(setup, name, config) for name, config in yardstick.items()],
        **alone,
    }


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
    drawn = Table(title=title)
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


def run(sizes: Sizes, out: Path) -> Found:
    """Regret against epsilon, above a bound that no agent is below. Resumes where it stopped."""
    asked = {"limits": questions(sizes)}
    found = answers("Distance from the limit", asked, out, replicas=sizes.replicas)
    panels = found.runs["limits"]
    tables = {title: table(lines) for title, lines in panels.items()}
    frames = {"limits": pd.concat(tables.values()), "summary": found.table()}
    return Found(frames, figures(panels, out), [shown(*one) for one in tables.items()])


main = command("limits", run, Sizes(), QUICK)

if __name__ == "__main__":
    start(main)
