"""The command of Table 5.1, with its figures and Figures 5.2 and 5.3 (training curves).

Figures 5.2 and 5.3 of Han et al. show training curves by step scale, and SubOpt against seconds.
Their points are evaluated within a run, which study.toml cannot express; it defines only agents.

Agents are set up in two ways. "printed" has the noise laws of the program behind Table 5.1, except
that NoisySGD has the paper's noise, and 10 T steps instead of T^2. "certified" is (1, 1/T)-DP.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.base import Floats, whole, write_atomically
from dpbandit.experiments.figure import legend_beside
from dpbandit.experiments.paper_tables import Reproduced, Request, reproduced, selected
from dpbandit.experiments.releases import CurveConfiguration, ReleaseConfiguration, curve, looks
from dpbandit.experiments.sgd import (
    PROBLEMS,
    STUDY,
    Entry,
    beside,
    entries,
    rows_of,
    setup_of_regression,
    tables,
)
from dpbandit.experiments.sgd.printed import Row, Setting, chosen_rows, rows
from dpbandit.experiments.study import (
    Answers,
    Found,
    Sizes,
    command,
    grouped,
    runs_of,
    start,
    tabulated,
)
from dpbandit.results.plots import line, log_ticks, panels, style
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.studies import Configuration

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SIZE = (14.5, 5.8)  # width and height of figures in inches
_CROWDED_LINES = ("noisy-sgd", "phased-sgd", "snowball-sgd", "local-md", "dp-ftrl")
"""Agents that are not drawn: at d = 20 their suboptimality above 0.3 would squeeze other lines"""


def _draw_time(found: Sequence[Entry], path: Path) -> None:
    heading = (
        "SubOpt and processor time, T growing along each line (printed: seconds of one run at a "
        f"time, ours: a replica's share of {len(found[0].run.replicas)})"
    )
    places = lambda one: one.seconds, lambda row: row.seconds
    _draw_over(found, path, *places, ("OFW", "NoisySGD"), "seconds of one run", heading)


def _draw_growth(found: Sequence[Entry], path: Path) -> None:
    places = lambda one: one.row.setting.users, lambda row: row.setting.users
    heading = "SubOpt against the number of users"
    _draw_over(found, path, *places, ("OFW",), "users T", heading, but=_CROWDED_LINES)


def _draw_over(
    found: Sequence[Entry],
    path: Path,
    where: Callable[[Entry], float],
    where_printed: Callable[[Row], float],
    algorithms: Sequence[str],
    xlabel: str,
    heading: str,
    *,
    but: Sequence[str] = (),
) -> None:
    """Draw measured and printed suboptimality of OFW at the largest d, a panel for each norm p."""
    rows = rows_of(found, "OFW")
    dim = max(row.setting.dim for row in rows)
    orders = sorted({row.setting.p for row in rows})
    titles = [f"p = {p:g}, d = {dim}" for p in orders]
    heading += (
        f"\nmean of {len(found[0].run.replicas)} replicas, 95 % intervals; printed, stated, online "
        "Frank-Wolfe: the best of the paper's step scales"
    )
    with panels(path, titles, heading=heading, size=_SIZE) as panes:
        for axes, order in zip(panes, orders, strict=True):
            same_dim = [row for row in rows if row.setting[:2] == (order, dim)]
            every = (one for row in same_dim for one in beside(found, row).values())
            lines = grouped((one for one in every if one.label not in but), lambda one: one.label)
            for look, (label, some) in enumerate(lines.items()):
                values = [entry.suboptimality for entry in some]
                line(axes, [where(entry) for entry in some], values, label, look)
            for shade, algorithm in enumerate(algorithms):
                same = [r for r in rows_of(found, algorithm) if r.setting[:2] == (order, dim)]
                if same:
                    axes.errorbar(
                        [where_printed(row) for row in same],
                        [row.suboptimality for row in same],
                        yerr=[1.96 * row.se for row in same],
                        color=str(0.45 * shade),
                        label=f"{algorithm}, as printed in the paper",
                        marker="x",
                        ms=7,
                        lw=1.2,
                        capsize=3,
                    )
            axes.set_xscale("log")
            axes.xaxis.set_minor_formatter("")
            axes.set_yscale("log")
            axes.set(xlabel=xlabel, ylabel="SubOpt")
        legend_beside(axes)


_PASSES, _STOPS = 10, 5  # steps of NoisySGD per user, and number of points of its curves
_MIN_USERS = 16  # smallest T to which the figures may be shortened
_FIGURE_5_2 = (Setting(1.5, 10, 2000), Setting(inf, 10, 2000))
_FIGURE_5_3 = (Setting(1.5, 5, 1000), Setting(1.5, 10, 2000))
"""Problems of a figure of the paper, each by its norm p, dimension and number of users"""


class Curve(NamedTuple):
    """Relative suboptimality during the run of an agent with one step scale (factor of steps)."""

    algorithm: str
    setting: Setting
    reading: str
    scale: float
    where: Sequence[float]
    """Positions in the run, as numbers of users or of steps"""
    values: Sequence[Floats]
    """Relative suboptimality at each position, (R,) each"""
    seconds: Sequence[Floats]
    run: AgentRun
    """Run up to the last position; its certificate holds for the whole curve"""

    @property
    def panel(self) -> str:
        """Title of the curve's panel."""
        return f"{self.algorithm}, p = {self.setting.p:g}, {self.reading}"

    @property
    def end(self) -> Floats:
        """Relative suboptimality after all users, (R,)."""
        return self.values[-1]

    @property
    def printed(self) -> float | None:
        """Suboptimality printed in Table 5.1 for the best step scale; None without such a row."""
        name = {"DP-TOFW": "OFW"}.get(self.algorithm, self.algorithm)
        same = [row for row in rows() if (row.setting, row.algorithm) == (self.setting, name)]
        return same[0].suboptimality if same else None

    def records(self) -> Iterator[dict[str, object]]:
        """Yield the rows of the CSV file."""
        for where, values, spent in zip(self.where, self.values, self.seconds, strict=True):
            yield {
                "algorithm": self.algorithm,
                "p": self.setting.p,
                "d": self.setting.dim,
                "T": self.setting.users,
                "reading": self.reading,
                "scale": self.scale,
                "after": where,
                "of": "steps" if self.algorithm == "NoisySGD" else "users",
                "suboptimality": float(values.mean()),
                "suboptimality_se": standard_error(values),
                "suboptimality_sd": float(values.std(ddof=1)),
                "seconds": float(spent.mean()),
                "certified_epsilon": self.run.certificate.epsilon,
            }


def _scales(algorithm: str, p: float) -> Sequence[float]:
    name = {"NoisySFW": "batch_scales", "NoisySGD": "sgd_scales"}.get(algorithm)
    scales: Sequence[float] = STUDY.sizes[name or ("small_p_scales" if p < 2 else "large_p_scales")]
    return scales


def _configurations(
    algorithm: str, setting: Setting, reading: str, scale: float, request: Request
) -> list[Configuration]:
    """Return one configuration, or for NoisySGD a configuration for each number of steps."""
    setup = setup_of_regression(setting, seed=request.seed, theta=request.theta)
    words, name = STUDY.words[f"{algorithm}, {reading}"], f"{algorithm}, {reading}, {scale:g}"
    if (algorithm, reading) == ("DP-TOFW", "certified"):
        words = STUDY.agents["scaled"][f"{algorithm}, {reading}"]  # in the table it has its own
    known: dict[str, Any] = {"c": scale, "delta": setting.delta, "steps": _PASSES * setting.users}
    known |= {"law": "printed" if setting.p < 2 else "corrected"}
    if algorithm != "NoisySGD":
        return [CurveConfiguration(setup, name, STUDY.config(words, known))]
    return [
        ReleaseConfiguration(
            setup, f"{name}, {made} steps", STUDY.config(words, {**known, "made": made})
        )
        for made in _stops(setting)
    ]


def _stops(setting: Setting) -> list[int]:
    """Return the numbers of steps after which NoisySGD is stopped."""
    return [_PASSES * setting.users * j // _STOPS for j in range(1, _STOPS + 1)]


def _measured(name: str, pairs: Sequence[tuple[str, Setting]], request: Request) -> list[Curve]:
    whole("replicas", request.replicas, 2)  # there are bands
    names = [
        (algorithm, setting, reading, scale)
        for algorithm, setting in pairs
        for reading in request.readings
        for scale in _scales(algorithm, setting.p)
    ]
    curves = {name: _configurations(*name, request) for name in names}
    every = (one for some in curves.values() for one in some)
    found = runs_of(name, every, request.out, replicas=request.replicas)
    return [_curve(*name, [found[one.key] for one in some]) for name, some in curves.items()]


def _curve(
    algorithm: str, setting: Setting, reading: str, scale: float, runs: Sequence[AgentRun]
) -> Curve:
    if algorithm == "NoisySGD":
        values = [run.measures["suboptimality"] for run in runs]
        spent, where = [run.measures["seconds"] for run in runs], _stops(setting)
    else:
        values, spent = (curve(runs[0], name) for name in ("suboptimality", "seconds"))
        where = looks(setting.users).tolist()
    return Curve(algorithm, setting, reading, scale, where, values, spent, runs[-1])


def figure_5_2(request: Request) -> Reproduced:
    """Measure training curves of four agents by step scale, for T = 2,000 and d = 10."""
    small, large = _settings(_FIGURE_5_2, request)
    pairs = (("NoisySFW", small), ("DP-TOFW", small), ("NoisySGD", large), ("DP-TOFW", large))
    return _reproduced(_measured("Figure 5.2", pairs, request), request, "figure-5-2", _draw_scales)


def figure_5_3(request: Request) -> Reproduced:
    """Measure DP-TOFW and NoisySFW at p = 1.5, each at its best step scale, over processor time."""
    settings = _settings(_FIGURE_5_3, request)
    pairs = [(algorithm, at) for at in settings for algorithm in ("NoisySFW", "DP-TOFW")]
    found = _measured("Figure 5.3", pairs, request)
    best: dict[tuple[str, Setting, str], Curve] = {}
    for one in sorted(found, key=lambda one: float(one.end.mean())):
        best.setdefault((one.algorithm, one.setting, one.reading), one)
    best_lines = [one for one in found if any(one is other for other in best.values())]
    return _reproduced(best_lines, request, "figure-5-3", _draw_seconds)


def _settings(printed: Sequence[Setting], request: Request) -> list[Setting]:
    """Return the settings `printed`, with at most T users if the request selects rows by T."""
    _, values = selected(request.name, request.rows, {}, {"T": int})
    (most,) = values.get("T", [printed[-1].users])
    whole("T", most, _MIN_USERS)
    return [at._replace(users=min(at.users, most)) for at in printed]


def _reproduced(
    found: Sequence[Curve],
    request: Request,
    name: str,
    drawing: Callable[[Sequence[Curve], Path], None],
) -> Reproduced:
    records = [record for one in found for record in one.records()]
    drawings = {name: partial(drawing, found)} if request.saved else {}
    return reproduced(request, name, records, [_table(found)], drawings)


def _table(found: Sequence[Curve]) -> Any:
    caption = (
        f"{len(found[0].end)} replicas; printed: in Table 5.1; seconds: processor time of one run "
        "(NoisySGD: its share of all); epsilon: certified at delta = 1/T, inf: nothing is proved"
    )
    headings = ["agent", "p", "T", "d", "scale", "SubOpt", "printed", "seconds", "epsilon"]
    cells = []
    for one in found:
        p, d, T = one.setting
        place = [f"{one.algorithm}, {one.reading}", f"{p:g}", f"{T:,}", str(d), f"{one.scale:g}"]
        value = f"{one.end.mean():.3g} ± {standard_error(one.end):.2g}"
        printed = "" if one.printed is None else f"{one.printed:g}"
        last = [f"{one.seconds[-1].mean():.2g}", f"{one.run.certificate.epsilon:.3g}"]
        cells.append([*place, value, printed, *last])
    return tabulated("SubOpt after all users", headings, cells, caption=caption, keys=4)


def _draw_scales(found: Sequence[Curve], path: Path) -> None:
    readings = grouped(found, lambda one: one.reading)
    ordered = [one for some in readings.values() for one in some]
    groups = grouped(ordered, lambda one: one.panel)
    heading = (
        f"Training curves by step scale (legends), T = {found[0].setting.users:,}, d = 10\n"
        f"mean of {len(found[0].end)} replicas, bands of 1 standard deviation"
    )
    how: dict[str, Any] = {"rows": len(readings), "size": (19.0, 1 + 4.4 * len(readings))}
    with panels(path, list(groups), heading=heading, **how) as grid:
        for axes, some in zip(grid, groups.values(), strict=True):
            for look, one in enumerate(some):
                sgd = one.algorithm == "NoisySGD"
                where = [place / (_PASSES if sgd else 1) for place in one.where]
                _band(axes, where, one.values, f"{one.scale:g}", look)
            if (printed := some[0].printed) is not None:
                dotted = (0, (1, 1.2))
                axes.axhline(printed, color="0.4", ls=dotted, lw=1.4, label="Table 5.1")
            _logarithmic(axes)
            axes.set_xlabel(f"steps / {_PASSES}" if sgd else "users")
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.tick_params(labelbottom=True)
            axes.legend(fontsize="small", ncols=2, framealpha=0.9, edgecolor="none")


def _draw_seconds(found: Sequence[Curve], path: Path) -> None:
    groups = grouped(found, lambda one: str(one.setting))
    titles = [
        f"T = {some[0].setting.users:,}, d = {some[0].setting.dim}" for some in groups.values()
    ]
    heading = (
        "SubOpt and processor time of one run, p = 1.5, each agent at its best step scale\n"
        f"mean of {len(found[0].end)} replicas, bands of 1 standard deviation"
    )
    with panels(path, titles, heading=heading, size=(14.5, 5.6)) as grid:
        for axes, some in zip(grid, groups.values(), strict=True):
            for look, one in enumerate(some):
                where = [float(spent.mean()) for spent in one.seconds]
                label = f"{one.algorithm}, {one.reading}"
                _band(axes, where, one.values, label, look)
            axes.set_xscale("log")
            _logarithmic(axes)
            log_ticks(axes.xaxis)
            axes.xaxis.set_major_formatter("{x:g}")
            axes.xaxis.set_minor_formatter("")
            axes.set_xlabel("seconds of one run")
        legend_beside(axes)


def _band(
    axes: "Axes", where: Sequence[float], values: Sequence[Floats], label: str, look: int
) -> None:
    """Draw a mean with a band of one standard deviation, like the shading in the paper."""
    color, dashes = style(look)
    centre = np.array([one.mean() for one in values])
    spread = np.array([one.std(ddof=1) for one in values])
    axes.plot(where, centre, color=color, ls=dashes, lw=1.8, label=label)
    low = np.maximum(centre - spread, 0.1 * centre)
    axes.fill_between(where, low, centre + spread, color=color, alpha=0.15, lw=0)


def _logarithmic(axes: "Axes") -> None:
    axes.set_yscale("log")
    log_ticks(axes.yaxis)
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("")
    axes.set_ylabel("SubOpt")


def reproduce(request: Request) -> Reproduced:
    """Measure the requested rows of Table 5.1, with the requested agents; draw if requested."""
    whole("replicas", request.replicas, 2)  # there are standard errors
    sizes = {"rows": chosen_rows(request.rows), "readings": request.readings, "seed": request.seed}
    sizes |= {"problem": PROBLEMS[request.theta], "replicas": request.replicas}
    found = STUDY.measure(sizes if request.drawn else {**sizes, "scales_at": []}, request.out)
    some = entries(sizes, found)
    drawn = [*_drawn(found, some, sizes, request.out)] if request.drawn else []
    made = reproduced(request, "summary", [one.record() for one in some], tables(some))
    return made._replace(files=[*made.files, *drawn])


def run(sizes: Sizes, out: Path) -> Found:
    """Reproduce Table 5.1: printed, stated, public and certified agents; draw three figures.

    Resumes where it stopped.
    """
    found = STUDY.measure(sizes, out)
    some = entries(sizes, found)
    frames = {"summary": pd.DataFrame([entry.record() for entry in some])}
    return Found(frames, _drawn(found, some, sizes, out), tables(some))


def _drawn(found: Answers, some: Sequence[Entry], sizes: Sizes, out: Path) -> list[Path]:
    drawings = {"time": _draw_time, "growth": _draw_growth}
    further = [write_atomically(out / f"{n}.png", partial(f, some)) for n, f in drawings.items()]
    return [*STUDY.draw(found, sizes, out), *further]


# sizes of a quick run (`--quick`), with its rows of Table 5.1
QUICK_SIZES = {**STUDY.quick, "rows": chosen_rows("T=1000,d=5")}
main = command("sgd", run, {}, QUICK_SIZES)

if __name__ == "__main__":
    start(main)
