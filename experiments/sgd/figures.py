"""Three figures: SubOpt against the step scale, the time it takes, and the number of users."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dpbandit.base.files import write_atomically
from dpbandit.experiments.sgd.printed import Row
from dpbandit.experiments.sgd.study import Entry, Findings
from dpbandit.results.drawing import legend_beside, line, panels

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PRINTED = "as printed in the paper"
_SIZE = (14.5, 5.8)
_CROWD = ("noisy-sgd", "phased-sgd", "snowball-sgd", "local-md", "dp-ftrl")
"""Competitors above 0.3 or so at d = 20, where a line of each would hide the others."""


def figures(findings: Findings, out: Path) -> list[Path]:
    """Write all of them into `out`; they show the OFW rows of the largest d."""
    drawings: dict[str, Callable[[Findings, Path], None]] = {
        "sensitivity": _sensitivity,
        "time": _time,
        "growth": _growth,
    }
    return [
        write_atomically(out / f"{name}.png", partial(drawing, findings))
        for name, drawing in drawings.items()
    ]


def _sensitivity(findings: Findings, path: Path) -> None:
    found = findings.sensitivity
    titles = [f"p = {at.p:g}, d = {at.dim}, T = {at.users:,}" for at in found]
    heading = f"SubOpt against the step scale\n{_bands(findings)}"
    with panels(path, titles, heading=heading, size=_SIZE) as row:
        for axes, lines in zip(row, found.values(), strict=True):
            for look, (label, runs) in enumerate(lines.items()):
                line(axes, list(runs), [run.suboptimality for run in runs.values()], label, look)
            axes.set_yscale("log")
            axes.set_xlabel("step scale c")
            axes.set_ylabel("SubOpt")
        legend_beside(axes)


def _time(findings: Findings, path: Path) -> None:
    def seconds(entries: Sequence[Entry]) -> list[float]:
        return [entry.found.seconds for entry in entries]

    def printed(rows: Sequence[Row]) -> list[float]:
        return [row.seconds for row in rows]

    heading = (
        "SubOpt and processor time, T growing along each line (printed: seconds of one run at a "
        f"time, ours: a replica's share of {findings.plan.replicas})"
    )
    _over(findings, path, seconds, printed, ("OFW", "NoisySGD"), "seconds of one run", heading)


def _growth(findings: Findings, path: Path) -> None:
    def users(entries: Sequence[Entry]) -> list[float]:
        return [entry.row.problem.users for entry in entries]

    def printed(rows: Sequence[Row]) -> list[float]:
        return [row.problem.users for row in rows]

    heading = "SubOpt against the number of users"
    _over(findings, path, users, printed, ("OFW",), "users T", heading, but=_CROWD)


def _over(
    findings: Findings,
    path: Path,
    where: Callable[[Sequence[Entry]], list[float]],
    where_printed: Callable[[Sequence[Row]], list[float]],
    algorithms: Sequence[str],
    xlabel: str,
    heading: str,
    *,
    but: Sequence[str] = (),
) -> None:
    rows = findings.of("OFW")
    dim = max(row.problem.dim for row in rows)
    orders = sorted({row.problem.p for row in rows})

    titles = [f"p = {p:g}, d = {dim}" for p in orders]
    heading = f"{heading}\n{_sample(findings)}"
    with panels(path, titles, heading=heading, size=_SIZE) as panes:
        for axes, order in zip(panes, orders, strict=True):
            shown = [row for row in rows if row.problem[:2] == (order, dim)]
            lines = {k: v for k, v in _series(findings, shown).items() if k not in but}
            for look, (label, entries) in enumerate(lines.items()):
                values = [entry.found.suboptimality for entry in entries]
                line(axes, where(entries), values, label, look)
            for shade, algorithm in enumerate(algorithms):
                same = findings.of(algorithm)
                _as_printed(
                    axes,
                    [row for row in same if row.problem[:2] == (order, dim)],
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


def _series(findings: Findings, rows: Sequence[Row]) -> Mapping[str, list[Entry]]:
    """label -> its entries beside these rows."""
    found: dict[str, list[Entry]] = {}
    for row in rows:
        for label, entry in findings.beside(row).items():
            found.setdefault(label, []).append(entry)
    return found


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


def _sample(findings: Findings) -> str:
    readings = "printed, stated, online Frank-Wolfe: the best of the paper's step scales"
    return f"{_bands(findings)}; {readings}"


def _bands(findings: Findings) -> str:
    return f"mean of {findings.plan.replicas} replicas, 95 % intervals"
