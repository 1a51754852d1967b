"""Three figures: SubOpt against the step scale, the time it takes, and the number of users."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpbandit.base.files import write_atomically
from dpbandit.experiments.questions import RunLines
from dpbandit.experiments.sgd.printed import Row
from dpbandit.experiments.sgd.study import Entry, beside, rows_of, sample
from dpbandit.results.plots import legend_beside, line, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PRINTED = "as printed in the paper"
_SIZE = (14.5, 5.8)
_CROWD = ("noisy-sgd", "phased-sgd", "snowball-sgd", "local-md", "dp-ftrl")
"""Competitors above 0.3 or so at d = 20, where a line of each would hide the others."""


def figures(found: Sequence[Entry], scales: Mapping[str, RunLines], out: Path) -> list[Path]:
    """Write all of them into `out`; they show the OFW rows of the largest d."""
    drawings: dict[str, Callable[[Path], None]] = {
        "sensitivity": partial(_sensitivity, scales),
        "time": partial(_time, found),
        "growth": partial(_growth, found),
    }
    return [write_atomically(out / f"{name}.png", draw) for name, draw in drawings.items()]


def _sensitivity(scales: Mapping[str, RunLines], path: Path) -> None:
    one = next(run for lines in scales.values() for runs in lines.values() for run in runs)
    heading = f"SubOpt against the step scale\n{_bands(len(one.replicas))}"
    with panels(path, list(scales), heading=heading, size=_SIZE) as row:
        for axes, lines in zip(row, scales.values(), strict=True):
            for look, (label, runs) in enumerate(lines.items()):
                values = [run.measures["suboptimality"] for run in runs]
                line(axes, [run.config["step"] for run in runs], values, label, look)
            axes.set_yscale("log")
            axes.set_xlabel("step scale c")
            axes.set_ylabel("SubOpt")
        legend_beside(axes)


def _time(found: Sequence[Entry], path: Path) -> None:
    def seconds(entries: Sequence[Entry]) -> list[float]:
        return [entry.seconds for entry in entries]

    def printed(rows: Sequence[Row]) -> list[float]:
        return [row.seconds for row in rows]

    heading = (
        "SubOpt and processor time, T growing along each line (printed: seconds of one run at a "
        f"time, ours: a replica's share of {sample(found)})"
    )
    _over(found, path, seconds, printed, ("OFW", "NoisySGD"), "seconds of one run", heading)


def _growth(found: Sequence[Entry], path: Path) -> None:
    def users(entries: Sequence[Entry]) -> list[float]:
        return [entry.row.setting.users for entry in entries]

    def printed(rows: Sequence[Row]) -> list[float]:
        return [row.setting.users for row in rows]

    heading = "SubOpt against the number of users"
    _over(found, path, users, printed, ("OFW",), "users T", heading, but=_CROWD)


def _over(
    found: Sequence[Entry],
    path: Path,
    where: Callable[[Sequence[Entry]], list[float]],
    where_printed: Callable[[Sequence[Row]], list[float]],
    algorithms: Sequence[str],
    xlabel: str,
    heading: str,
    *,
    but: Sequence[str] = (),
) -> None:
    rows = rows_of(found, "OFW")
    dim = max(row.setting.dim for row in rows)
    orders = sorted({row.setting.p for row in rows})

    titles = [f"p = {p:g}, d = {dim}" for p in orders]
    heading = f"{heading}\n{_sample(found)}"
    with panels(path, titles, heading=heading, size=_SIZE) as panes:
        for axes, order in zip(panes, orders, strict=True):
            shown = [row for row in rows if row.setting[:2] == (order, dim)]
            lines = {k: v for k, v in _series(found, shown).items() if k not in but}
            for look, (label, entries) in enumerate(lines.items()):
                values = [entry.suboptimality for entry in entries]
                line(axes, where(entries), values, label, look)
            for shade, algorithm in enumerate(algorithms):
                same = rows_of(found, algorithm)
                _as_printed(
                    axes,
                    [row for row in same if row.setting[:2] == (order, dim)],
                    where_printed,
                    label=f"{algorithm}, {_PRINTED}",
                    gray=str(0.45 * shade),
                )
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter("")
            axes.set_yscale("log")
            axes.set_xlabel(xlabel)
            axes.set_ylabel("SubOpt")
        legend_beside(axes)


def _series(found: Sequence[Entry], rows: Sequence[Row]) -> Mapping[str, list[Entry]]:
    """label -> its entries beside these rows."""
    series: dict[str, list[Entry]] = {}
    for row in rows:
        for label, entry in beside(found, row).items():
            series.setdefault(label, []).append(entry)
    return series


def _as_printed(
    axes: "Axes",
    rows: Sequence[Row],
    where: Callable[[Sequence[Row]], list[float]],
    *,
    label: str,
    gray: str,
) -> None:
    if not rows:
        return
    axes.errorbar(
        where(rows),
        [row.suboptimality for row in rows],
        yerr=[1.96 * row.se for row in rows],
        color=gray,
        marker="x",
        ms=7,
        lw=1.2,
        capsize=3,
        label=label,
    )


def _sample(found: Sequence[Entry]) -> str:
    readings = "printed, stated, online Frank-Wolfe: the best of the paper's step scales"
    return f"{_bands(sample(found))}; {readings}"


def _bands(replicas: int) -> str:
    return f"mean of {replicas} replicas, 95 % intervals"
