"""What privacy costs in lists: catalogue size x list length x epsilon. See README.md."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pandas as pd

from dpbandit.base import Floats, write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.questions import (
    Found,
    command,
    draw_frontier,
    draw_lines,
    grouped,
    panes,
    start,
    swept,
)
from dpbandit.results.plots import final, legend_at_the_foot, log_ticks, loglog
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, standard_error

_LEVELS = {
    "Uniform": "uniform lists",
    "BestFixed": "best fixed list",
    "cascade-ucb": "cascade-ucb, no privacy",
    "ranked-linucb": "ranked-linucb, no privacy",
}
"""Runs without an epsilon, and what they are called"""
Size = tuple[int, int]
"""List length, items of the catalogue"""


def by_size(results: Results) -> dict[Size, list[AgentRun]]:
    """The runs on each problem, shortest lists and smallest catalogues first."""
    found = grouped(results.runs, lambda run: (_size("length", run), _size("n_items", run)))
    return dict(sorted(found.items()))


def share(run: AgentRun, uniform: AgentRun) -> Floats:
    """Regret in the end in per cent of what uniform lists have on average, (R,)."""
    return 100 * final(run) / float(final(uniform).mean())


def uniform_of(runs: Sequence[AgentRun]) -> AgentRun:
    """The run of uniform lists."""
    (found,) = (run for run in runs if run.name == "Uniform")
    return found


def table(runs: Sequence[AgentRun]) -> pd.DataFrame:
    """The summary of all runs on one problem, with its sizes and their shares."""
    uniform, sizes = uniform_of(runs), runs[0].setup.env_kwargs
    shares = [share(run, uniform) for run in runs]
    more = pd.DataFrame(
        {
            "length": sizes["length"],
            "n_items": sizes["n_items"],
            "share": [values.mean() for values in shares],
            "share_se": [standard_error(values) for values in shares],
        }
    )
    return pd.concat([more, Results(tuple(runs)).summary()], axis=1)


def figures(results: Results, out: Path) -> Iterator[Path]:
    """Write epsilon.png and sizes.png into `out`."""
    found = by_size(results)
    yield write_atomically(out / "epsilon.png", partial(_epsilon, found=found))
    yield write_atomically(out / "sizes.png", partial(_sizes, found=found))


def _epsilon(path: Path, found: Mapping[Size, list[AgentRun]]) -> None:
    rows = len({length for length, _ in found})
    columns = len(found) // rows
    panel = {f"{m} of {n:,} items": grouped(runs, _name) for (m, n), runs in found.items()}
    heading = "Lists in a cascade: regret in per cent of uniform lists'"
    size = 4.2 * columns, 2.9 * rows + 1.4
    with panes(path, panel, heading, size, rows=rows) as grid:
        for place, (axes, runs) in enumerate(zip(grid, found.values(), strict=True)):
            value = partial(share, uniform=uniform_of(runs))
            draw_frontier(axes, grouped(runs, _name), value, log=True)
            if place < len(grid) - columns:
                axes.set_xlabel("")
            if place % columns == 0:
                axes.set_ylabel("per cent")
        legend_at_the_foot(grid[0], 3)


def _name(run: AgentRun) -> str:
    return _LEVELS.get(run.name, run.name)


def _name_and_claim(run: AgentRun) -> str:
    claimed = f"{run.certificate.claimed_epsilon:g}".replace("inf", "∞")
    return _LEVELS.get(run.name, f"{run.name}, epsilon {claimed}")


def _sizes(path: Path, found: Mapping[Size, list[AgentRun]]) -> None:
    """Over the catalogue at the middle length, over the length in the largest catalogue."""
    lengths, items = (sorted({size[place] for size in found}) for place in (0, 1))
    middle, largest = lengths[len(lengths) // 2], items[-1]
    at_middle = (run for n in items for run in found[middle, n])
    of_largest = (run for m in lengths for run in found[m, largest])
    panel = {
        f"lists of {middle}": grouped(at_middle, _name_and_claim),
        f"{largest:,} items": grouped(of_largest, _name_and_claim),
    }
    heading = f"Lists in a cascade, {found[middle, largest][0].setup.horizon:,} users"
    axis = {"n_items": "items in the catalogue", "length": "items on a list"}
    with panes(path, panel, heading, (11, 6.4)) as row:
        for axes, lines, (size, name) in zip(row, panel.values(), axis.items(), strict=True):
            draw_lines(axes, lines, partial(_size, size), grey=_LEVELS.values())
            loglog(axes, items if size == "n_items" else lengths)
            log_ticks(axes.yaxis)
            axes.minorticks_off()
            axes.set(xlabel=name, ylabel="regret (lists with a click)")
        legend_at_the_foot(row[0], 3)


def _size(name: str, run: AgentRun) -> int:
    return int(run.setup.env_kwargs[name])


QUICK = {"horizons": [200], "replicas": 2, "epsilons": [1.0, inf]}


def run(sizes: Mapping[str, Any], out: Path) -> Found:
    """Catalogue size x list length x epsilon, in a cascade. Resumes where it stopped."""
    results = swept(Path(__file__).with_name("study.toml"), sizes, out)
    tables = {size: table(runs) for size, runs in by_size(results).items()}
    drawn = (
        shown(found, f"Lists of {length} of {items:,} items")
        for (length, items), found in tables.items()
    )
    return Found({"summary": pd.concat(tables.values())}, figures(results, out), drawn)


def shown(found: pd.DataFrame, title: str) -> Table:
    """`table` for a console."""
    drawn = Table(title=title)
    drawn.add_column("agent", no_wrap=True)
    for column in ("epsilon", "regret", "% of uniform lists'"):
        drawn.add_column(column, justify="right")
    for row in found.to_dict("records"):
        drawn.add_row(
            row["agent"],
            f"{row['certified_epsilon']:.3g}",
            f"{row['mean']:,.0f} ± {row['se']:,.0f}",
            f"{row['share']:.1f} ± {row['share_se']:.1f}",
        )
    return drawn


main = command("lists", run, {}, QUICK)

if __name__ == "__main__":
    start(main)
