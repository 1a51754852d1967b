"""Figures of Table 5.1, training curves over users and seconds, and the commands for them.

Figures 5.2 and 5.3 of Han et al.: training curves by step scale, and SubOpt against seconds.

Under two readings: "printed" has the laws of the program that made Table 5.1 (see `readings`), and
for NoisySGD the printed noise, with 10 T of its T^2 steps; "certified" is truly (1, 1/T)-DP.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from dpbandit.agents import DPTOFW, NoisySFW
from dpbandit.base import Floats, InputError, plain, whole, write_atomically, write_csv
from dpbandit.base.tables import Table
from dpbandit.experiments.figure import RunLines
from dpbandit.experiments.paper_tables import Asked, Reproduced
from dpbandit.experiments.releases import (
    CurveConfiguration,
    ReleaseConfiguration,
    looks,
    seconds,
    suboptimality,
)
from dpbandit.experiments.sgd import (
    QUICK,
    SCALES,
    Entry,
    Sizes,
    beside,
    entries,
    measure,
    rows_of,
    sample,
    setup_of_regression,
    summary,
    tables,
)
from dpbandit.experiments.sgd.printed import (
    BATCH_SCALES,
    FRANK_WOLFE_SCALES,
    Row,
    Setting,
    StoppedSGD,
    chosen_rows,
    printed_agent,
    rows,
)
from dpbandit.experiments.study import Found, command, grouped, runs_of, start
from dpbandit.results.plots import legend_beside, line, log_ticks, panels, style
from dpbandit.results.runs import AgentRun, standard_error
from dpbandit.specs import AgentConfig
from dpbandit.studies import Configuration

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
            axes.set(xlabel="step scale c", ylabel="SubOpt")
        legend_beside(axes)


def _time(found: Sequence[Entry], path: Path) -> None:
    heading = (
        "SubOpt and processor time, T growing along each line (printed: seconds of one run at a "
        f"time, ours: a replica's share of {sample(found)})"
    )
    algorithms, axis = ("OFW", "NoisySGD"), "seconds of one run"
    _over(found, path, lambda one: one.seconds, lambda row: row.seconds, algorithms, axis, heading)


def _growth(found: Sequence[Entry], path: Path) -> None:
    def users(one: Entry) -> float:
        return one.row.setting.users

    def printed(row: Row) -> float:
        return row.setting.users

    heading = "SubOpt against the number of users"
    _over(found, path, users, printed, ("OFW",), "users T", heading, but=_CROWD)


def _over(
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
                line(axes, [where(entry) for entry in entries], values, label, look)
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
            axes.set(xlabel=xlabel, ylabel="SubOpt")
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
    where: Callable[[Row], float],
    *,
    label: str,
    gray: str,
) -> None:
    if not rows:
        return
    axes.errorbar(
        [where(row) for row in rows],
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


_SGD_SCALES = (0.1, 0.2, 0.5, 1.0, 2.0)
_PASSES, _STOPS, _FEWEST = 10, 5, 16
_FIGURE_5_2 = (Setting(1.5, 10, 2000), Setting(inf, 10, 2000))
_FIGURE_5_3 = (Setting(1.5, 5, 1000), Setting(1.5, 10, 2000))


class Curve(NamedTuple):
    """A line of a panel: an agent with one step scale."""

    algorithm: str
    setting: Setting
    reading: str
    scale: float
    configurations: Sequence[Configuration]
    """one, or for NoisySGD one for each place where it is stopped"""

    @property
    def panel(self) -> str:
        """Its title."""
        return f"{self.algorithm}, p = {self.setting.p:g}, {self.reading}"


class Drawn(NamedTuple):
    """What was measured of it."""

    curve: Curve
    where: Sequence[float]
    """users, or steps"""
    values: Sequence[Floats]
    """SubOpt there, (R,) each"""
    seconds: Sequence[Floats]
    run: AgentRun
    """the last one, whose certificate is that of the curve"""

    @property
    def end(self) -> Floats:
        """SubOpt when all users have come, (R,)."""
        return self.values[-1]

    def records(self) -> Iterator[dict[str, object]]:
        """Rows of the file."""
        for where, values, spent in zip(self.where, self.values, self.seconds, strict=True):
            yield {
                "algorithm": self.curve.algorithm,
                "p": self.curve.setting.p,
                "d": self.curve.setting.dim,
                "T": self.curve.setting.users,
                "reading": self.curve.reading,
                "scale": self.curve.scale,
                "after": where,
                "of": "steps" if self.curve.algorithm == "NoisySGD" else "users",
                "suboptimality": float(values.mean()),
                "suboptimality_se": standard_error(values),
                "suboptimality_sd": float(values.std(ddof=1)),
                "seconds": float(spent.mean()),
                "certified_epsilon": self.run.certificate.epsilon,
            }


def _agent(algorithm: str, setting: Setting, reading: str, scale: float) -> AgentConfig:
    if reading == "printed":
        return printed_agent(algorithm, setting, scale)
    kinds: dict[str, Callable[[], AgentConfig]] = {
        "NoisySFW": lambda: NoisySFW(delta=setting.delta, scale=scale),
        "DP-TOFW": lambda: DPTOFW(delta=setting.delta, step=scale),
    }
    return kinds[algorithm]()


def _curves(algorithm: str, setting: Setting, asked: Asked) -> Iterator[Curve]:
    setup = setup_of_regression(setting, seed=asked.seed, theta=asked.theta)
    scales = {"NoisySFW": BATCH_SCALES, "NoisySGD": _SGD_SCALES}
    for reading in asked.readings:
        for scale in scales.get(algorithm, FRANK_WOLFE_SCALES[setting.p]):
            name = f"{algorithm}, {reading}, {scale:g}"
            some: list[Configuration] = []
            if algorithm == "NoisySGD":
                calibration: Any = "paper" if reading == "printed" else "certified"
                for made in _stops(setting):
                    stopped = StoppedSGD(
                        delta=setting.delta,
                        calibration=calibration,
                        steps=_PASSES * setting.users,
                        scale=scale,
                        refit="once",
                        made=made,
                    )
                    some.append(ReleaseConfiguration(setup, f"{name}, {made} steps", stopped))
            else:
                config = _agent(algorithm, setting, reading, scale)
                some.append(CurveConfiguration(setup, name, config))
            yield Curve(algorithm, setting, reading, scale, some)


def _stops(setting: Setting) -> list[int]:
    """Steps after which NoisySGD is stopped."""
    return [_PASSES * setting.users * j // _STOPS for j in range(1, _STOPS + 1)]


def _measured(name: str, curves: Sequence[Curve], asked: Asked) -> list[Drawn]:
    whole("replicas", asked.replicas, 2)  # there are bands
    every = (one for curve in curves for one in curve.configurations)
    found = runs_of(name, every, asked.out, replicas=asked.replicas)
    drawn = []
    for curve in curves:
        runs = [found[one.key] for one in curve.configurations]
        if curve.algorithm == "NoisySGD":
            values = [run.measures["suboptimality"] for run in runs]
            spent = [run.measures["seconds"] for run in runs]
            drawn.append(Drawn(curve, _stops(curve.setting), values, spent, runs[-1]))
        else:
            (run,) = runs
            where = looks(curve.setting.users).tolist()
            drawn.append(Drawn(curve, where, suboptimality(run), seconds(run), run))
    return drawn


def figure_5_2(asked: Asked) -> Reproduced:
    """Four agents by step scale, T = 2,000, d = 10."""
    small, large = _settings(_FIGURE_5_2, asked.rows)
    pairs = (("NoisySFW", small), ("DP-TOFW", small), ("NoisySGD", large), ("DP-TOFW", large))
    curves = [curve for pair in pairs for curve in _curves(*pair, asked)]
    found = _measured("Figure 5.2", curves, asked)
    return _reproduced(found, asked, "figure-5-2", _draw_scales)


def figure_5_3(asked: Asked) -> Reproduced:
    """DP-TOFW beside NoisySFW at p = 1.5, each at its best step scale, over processor time."""
    curves = [
        curve
        for setting in _settings(_FIGURE_5_3, asked.rows)
        for algorithm in ("NoisySFW", "DP-TOFW")
        for curve in _curves(algorithm, setting, asked)
    ]
    found = _measured("Figure 5.3", curves, asked)
    best: dict[tuple[str, Setting, str], Drawn] = {}
    for one in sorted(found, key=lambda one: float(one.end.mean())):
        best.setdefault((one.curve.algorithm, one.curve.setting, one.curve.reading), one)
    shown = [one for one in found if one in best.values()]
    return _reproduced(shown, asked, "figure-5-3", _draw_seconds)


def _settings(printed: Sequence[Setting], rows: str) -> list[Setting]:
    """The problems as printed, or ("T=200") with that many users at most."""
    most = re.fullmatch(r"T=([0-9]{1,9})", rows)
    if most is None and rows != "all":
        raise InputError(f"Expected rows to be all, or T=200 for fewer users, got {rows!r}.")
    if most is None:
        return list(printed)
    whole("T", int(most[1]), _FEWEST)
    return [at._replace(users=min(at.users, int(most[1]))) for at in printed]


def _reproduced(
    found: Sequence[Drawn],
    asked: Asked,
    name: str,
    drawing: Callable[[Sequence[Drawn], Path], None],
) -> Reproduced:
    records = [plain(record) for one in found for record in one.records()]
    written = [write_csv(asked.out / f"{name}.csv", pd.DataFrame(records))]
    if asked.kept:
        path = asked.out / f"{name}.png"
        written.append(write_atomically(path, lambda partial: drawing(found, partial)))
    return Reproduced([_table(found)], records, written)


def _table(found: Sequence[Drawn]) -> Table:
    caption = (
        f"{len(found[0].end)} replicas; printed: in Table 5.1; seconds: processor time of one run "
        "(NoisySGD: its share of all); epsilon: certified at delta = 1/T, inf: nothing is proved"
    )
    table = Table(title="SubOpt after all users", caption=caption, keys=4)
    table.add_column("agent")
    for heading in ("p", "T", "d"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("scale", "SubOpt", "printed", "seconds", "epsilon"):
        table.add_column(heading, justify="right", no_wrap=True)
    for one in found:
        (p, d, T), printed = one.curve.setting, _curve_as_printed(one.curve)
        table.add_row(
            f"{one.curve.algorithm}, {one.curve.reading}",
            *(f"{p:g}", f"{T:,}", str(d), f"{one.curve.scale:g}"),
            f"{one.end.mean():.3g} ± {standard_error(one.end):.2g}",
            "" if printed is None else f"{printed:g}",
            f"{one.seconds[-1].mean():.2g}",
            f"{one.run.certificate.epsilon:.3g}",
        )
    return table


def _curve_as_printed(curve: Curve) -> float | None:
    """SubOpt of the row of Table 5.1, of the best scale."""
    name = {"DP-TOFW": "OFW"}.get(curve.algorithm, curve.algorithm)
    same = [row for row in rows() if (row.setting, row.algorithm) == (curve.setting, name)]
    return same[0].suboptimality if same else None


def _draw_scales(found: Sequence[Drawn], path: Path) -> None:
    readings = grouped(found, lambda one: one.curve.reading)
    ordered = [one for some in readings.values() for one in some]
    groups = grouped(ordered, lambda one: one.curve.panel)
    heading = (
        f"Training curves by step scale (legends), T = {found[0].curve.setting.users:,}, d = 10\n"
        f"mean of {len(found[0].end)} replicas, bands of 1 standard deviation"
    )
    how: dict[str, Any] = {"rows": len(readings), "size": (19.0, 1 + 4.4 * len(readings))}
    with panels(path, list(groups), heading=heading, **how) as grid:
        for axes, some in zip(grid, groups.values(), strict=True):
            for look, one in enumerate(some):
                sgd = one.curve.algorithm == "NoisySGD"
                where = [place / (_PASSES if sgd else 1) for place in one.where]
                _band(axes, where, one.values, f"{one.curve.scale:g}", look)
            _level(axes, some[0].curve)
            _logarithmic(axes)
            axes.set_xlabel(f"steps / {_PASSES}" if sgd else "users")
            axes.xaxis.set_major_formatter("{x:,.0f}")
            axes.tick_params(labelbottom=True)
            axes.legend(fontsize="small", ncols=2, framealpha=0.9, edgecolor="none")


def _draw_seconds(found: Sequence[Drawn], path: Path) -> None:
    groups = grouped(found, lambda one: str(one.curve.setting))
    titles = [
        f"T = {some[0].curve.setting.users:,}, d = {some[0].curve.setting.dim}"
        for some in groups.values()
    ]
    heading = (
        "SubOpt and processor time of one run, p = 1.5, each agent at its best step scale\n"
        f"mean of {len(found[0].end)} replicas, bands of 1 standard deviation"
    )
    with panels(path, titles, heading=heading, size=(14.5, 5.6)) as grid:
        for axes, some in zip(grid, groups.values(), strict=True):
            for look, one in enumerate(some):
                where = [float(spent.mean()) for spent in one.seconds]
                label = f"{one.curve.algorithm}, {one.curve.reading}"
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
    """A mean with a band of one standard deviation, as the paper's shadows."""
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


def _level(axes: "Axes", curve: Curve) -> None:
    printed = _curve_as_printed(curve)
    if printed is not None:
        axes.axhline(printed, color="0.4", ls=(0, (1, 1.2)), lw=1.4, label="Table 5.1")


def reproduce(asked: Asked) -> Reproduced:
    """The rows chosen, under these readings; all of it with figures if they are to be drawn."""
    out = asked.out
    sizes = Sizes(
        rows=chosen_rows(asked.rows),
        readings=asked.readings,
        theta=asked.theta,
        replicas=asked.replicas,
        seed=asked.seed,
    )
    found = measure(sizes if asked.drawn else replace(sizes, scales_at=()), out)
    beside = entries(sizes, found)
    written = [write_csv(out / "summary.csv", summary(beside))]
    drawings = figures(beside, found.runs[SCALES], out) if asked.drawn else []
    records = [plain(entry.record()) for entry in beside]
    return Reproduced(list(tables(beside)), records, [*written, *drawings])


def run(sizes: Sizes, out: Path) -> Found:
    """Table 5.1 as printed, as stated, without privacy and as certified; three figures.

    Resumes where it stopped.
    """
    found = measure(sizes, out)
    beside = entries(sizes, found)
    drawn = figures(beside, found.runs[SCALES], out)
    return Found({"summary": summary(beside)}, drawn, tables(beside))


main = command("sgd", run, Sizes(), QUICK)

if __name__ == "__main__":
    start(main)
