"""Draw figures of regret, frontiers and certificates."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from math import inf, log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import scipy
from matplotlib import rc_context, rcdefaults, rcParams
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dpbandit.base import Floats, Ints, rounded
from dpbandit.results.runs import AgentRun, as_text, restricted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


Band: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Lower and upper ends of a band of the mean over the last axis"""

_LOOK: dict[Any, Any] = {
    **dict.fromkeys(("axes.edgecolor", "axes.labelcolor", "text.color"), "0.15"),
    **dict.fromkeys(("xtick.color", "ytick.color"), "0.15"),
    **dict.fromkeys(("font.size", "axes.labelsize", "axes.titlesize"), 12.0),
    **dict.fromkeys(("legend.fontsize", "xtick.labelsize", "ytick.labelsize"), 11.0),
    **dict.fromkeys(("axes.linewidth", "xtick.major.width", "ytick.major.width"), 1.25),
    **dict.fromkeys(("xtick.major.size", "ytick.major.size"), 6.0),
    **dict.fromkeys(("xtick.minor.size", "ytick.minor.size"), 4.0),
    **dict.fromkeys(("xtick.minor.width", "ytick.minor.width"), 1.0),
    "legend.title_fontsize": 12.0,
    "axes.axisbelow": True,
    "grid.color": "0.8",
    "grid.linewidth": 1.0,
    "lines.solid_capstyle": "round",
    "patch.edgecolor": "white",
    "patch.force_edgecolor": True,
}
"""What figures have other than Matplotlib's defaults"""
COLOURS = (
    *("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"),
    *("#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"),
)
"""That the colour-blind tell apart, after seaborn (Waskom, JOSS 2021)"""
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))
_MARKERS = "osD^vPXp*h"
_NARROW = 40
"""Letters of a label, two of which stand side by side"""
_DECADES = 3
"""Of an axis with room for 1, 2 and 5 of each"""
_UNDATED: dict[str, dict[str, None]] = {
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
DOTS = 160
"""of a PNG, an inch"""
_TEXT = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw like all figures, whatever style the caller has chosen."""
    with rc_context():
        rcdefaults()
        rcParams.update(_LOOK)
        yield


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF: of the same numbers the same bytes, with `words` of it."""
    metadata = {**_UNDATED[path.suffix], _TEXT[path.suffix]: words(figure)}
    with rc_context({"svg.hashsalt": "dpbandit"}):
        figure.savefig(path, dpi=DOTS, metadata=metadata)
    if path.suffix == ".png":
        few_colours(path)


def few_colours(path: Path) -> None:
    """Store a PNG with a palette of 48 colours: a quarter of the bytes, to the eye the same."""
    with Image.open(path) as image:
        metadata = PngInfo()
        for name, text in image.info.items():
            if isinstance(text, str):
                metadata.add_itxt(str(name), text)
        palette = image.convert("RGB").quantize(48, Image.Quantize.MEDIANCUT)
    palette.save(path, optimize=True, pnginfo=metadata)


def words(figure: Figure) -> str:
    """What a figure says to who cannot see it: its titles, and where each line of a legend ends."""
    phrases = []
    for axes in figure.axes:
        phrases.append(axes.get_title(loc="left") or axes.get_title())
        with_bars = [(one.get_label(), one[0]) for one in axes.containers if one[0] in axes.lines]
        for name, line in [*((one.get_label(), one) for one in axes.get_lines()), *with_bars]:
            label, points = str(name), np.asarray(line.get_xydata())
            if len(points) and not label.startswith("_"):
                phrases.append(f"{label}: {points[-1, 1]:.6g} at {points[-1, 0]:.6g}")
    text = "\n".join(" ".join(text.split()) for text in phrases if text)
    return "".join(letter for letter in text if letter == "\n" or letter.isprintable())


def style(look: int) -> tuple[Any, Any]:
    """Colour and dashes: ten colours, and the second ten have other dashes."""
    turn, place = divmod(look, 10)
    return COLOURS[place], DASHES[(place + turn) % len(DASHES)]


def level(place: int) -> tuple[str, Any]:
    """Grey and dashes of a horizontal line: 18 that differ."""
    turn, dashes = divmod(place, len(DASHES))
    return str(0.2 + 0.2 * ((dashes + turn) % 3)), DASHES[dashes]


def despine(axes: "Axes") -> None:
    """Leave the lower and the left line of a frame."""
    axes.spines[["top", "right"]].set_visible(False)


def from_zero(axes: "Axes") -> None:
    """Let the vertical axis begin just below zero, where lines may lie, or what is drawn there."""
    axes.set_ylim(bottom=min(-0.015 * axes.get_ylim()[1], 1.05 * axes.dataLim.ymin))


def line_count(labels: Sequence[str]) -> int:
    """The lines that labels take, of which long ones have several."""
    return sum(1 + label.count("\n") for label in labels)


def student_band(values: Floats) -> tuple[Floats, Floats]:
    """Student's 95 % confidence interval of the mean along the last axis."""
    mean, half = values.mean(axis=-1), half_band(values)
    return mean - half, mean + half


def half_band(values: Floats) -> Floats:
    """Half the 95 % confidence interval of the mean along the last axis, two values or more."""
    replicas = values.shape[-1]
    half: Floats = scipy.special.stdtrit(replicas - 1, 0.975) * values.std(axis=-1, ddof=1)
    return half / np.sqrt(replicas)


def line(
    axes: "Axes",
    where: Sequence[float],
    values: Sequence[Floats],
    name: str,
    look: int,
    *,
    band: Band = student_band,
) -> None:
    """Means of the replicas' `values` with 95 % bars, where there are replicas.

    Places that come twice are points of their own, apart from the line.
    """
    import seaborn  # not before: slow to import

    color, dashes = style(look)
    marker = _MARKERS[(look + look // 10) % len(_MARKERS)]  # of the same colour another
    scales = axes.get_xscale(), axes.get_yscale()
    axes.set(xscale="linear", yscale="linear")  # of logarithms it would draw the geometric mean
    for layer, places in enumerate(_layers(where)):
        some, label = [values[place] for place in places], "_the same" if layer else name
        seaborn.lineplot(
            x=np.repeat([float(where[place]) for place in places], list(map(len, some))),
            y=np.concatenate(some),
            errorbar=(lambda one: band(np.asarray(one))) if len(some[0]) > 1 else None,
            err_style="bars",
            err_kws={"capsize": 3},
            sort=False,  # replicas of all places together, as a bootstrap draws them
            estimator="mean",
            color=color,
            linestyle=dashes,
            linewidth=1.8,
            marker=marker,
            markersize=6,
            markeredgecolor=color,
            label=label,
            legend=False,
            ax=axes,
        )
        if len(some[0]) > 1:
            _one_artist(axes, label)
    axes.set(xscale=scales[0], yscale=scales[1])


def _one_artist(axes: "Axes", label: str) -> None:
    """Make seaborn's last line the data line of its error bars, and label their container."""
    container: Any = axes.containers[-1]
    data = container[0]
    (line,) = (one for one in axes.get_lines() if one.get_label() == label and one is not data)
    data.update_from(line)
    data.set_label("_nolegend_")  # the container is in the legend
    line.remove()
    container.set_label(label)


def _layers(where: Sequence[float]) -> list[list[int]]:
    """Places in as few lists as have none twice.

    >>> _layers([1.0, 2.0, 2.0])
    [[0, 1], [2]]
    """
    layers: list[list[int]] = []
    for place, at in enumerate(where):
        before = sum(other == at for other in where[:place])
        if before == len(layers):
            layers.append([])
        layers[before].append(place)
    return layers


def rounds(
    axes: "Axes",
    marks: Ints,
    values: Floats,
    name: str,
    *,
    color: Any,
    dashes: Any,
    band: Band = student_band,
) -> None:
    """The mean of `values` (marks, R) by round in a filled 95 % band, where there are replicas."""
    axes.plot(marks, values.mean(axis=1), color=color, ls=dashes, lw=2, label=name)
    if values.shape[1] > 1:
        axes.fill_between(marks, *band(values), color=color, alpha=0.2, lw=0)


@contextmanager
def panels(
    path: Path,
    titles: Sequence[str],
    *,
    size: tuple[float, float],
    heading: str = "",
    rows: int = 1,
    heights: Sequence[float] | None = None,
) -> "Iterator[list[Axes]]":
    """Axes, one for each title, saved to `path` (.png, .svg or .pdf) at the end."""
    with figure_style():
        figure = Figure(figsize=size, layout="constrained")
        columns = len(titles) // rows
        grid: Any = figure.subplots(
            rows, columns, squeeze=False, sharex=rows > 1, height_ratios=heights
        )
        yield list(grid.flat)
        for axes, title in zip(grid.flat, titles, strict=True):
            if title:
                axes.set_title(title, loc="left", pad=10)
            axes.grid(alpha=0.35)
            despine(axes)
        if heading:
            figure.suptitle(heading, x=0.01, ha="left")
        save_figure(figure, path)


@contextmanager
def drawn(path: Path, title: str) -> "Iterator[Axes]":
    """One pair of axes with its legend below, saved to `path` at the end."""
    with panels(path, [as_text(title)], size=(9.5, 6.2)) as (axes,):
        yield axes
        figure: Any = axes.figure
        _, labels = axes.get_legend_handles_labels()
        columns = 2 if max(map(len, labels), default=0) < _NARROW else 1
        figure.set_figheight(5.2 + 0.26 * line_count(labels) / columns)
        legend_at_the_foot(axes, columns)


def legend_beside(axes: "Axes", title: str | None = None) -> None:
    """To the right of the axes."""
    where: dict[str, Any] = {"loc": "upper left", "bbox_to_anchor": (1.01, 1.0)}
    axes.legend(title=title, frameon=False, handlelength=3.5, alignment="left", **where)


def legend_at_the_foot(axes: "Axes", columns: int = 2) -> None:
    """Of one pair of axes, under all that the figure has."""
    figure: Any = axes.figure
    entries = axes.get_legend_handles_labels()
    how: dict[str, Any] = {"ncols": columns, "frameon": False, "handlelength": 3.2}
    figure.legend(*entries, loc="outside lower left", **how)


def legend_below(axes: "Axes", title: str) -> None:
    """Under the axes, in two columns."""
    axes.legend(
        title=title,
        loc="upper center",
        bbox_to_anchor=(0.48, -0.16),
        ncols=2,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        handlelength=2.6,
        columnspacing=1.5,
    )


def log_ticks(axis: "Axis") -> None:
    """Ticks of a logarithmic axis whose data is drawn: 1, 2, 5 of each decade, 1 of many."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if log10(high / low) < _DECADES else (1,)))


def loglog(axes: "Axes", ticks: Sequence[float]) -> None:
    """Both axes logarithmic, with these ticks below."""
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xticks(list(ticks), [f"{tick:,g}" if tick < 1e6 else f"{tick:g}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_minor_formatter("")
    axes.yaxis.set_major_formatter("{x:,.6g}")


_FEW = 8
"""Lines that leave room for a legend among them"""


class Curve(NamedTuple):
    """One agent's line."""

    label: str
    regret: Floats
    """cumulative, (marks, replicas)"""
    look: int | None = None
    """place in palette and dashes, to look alike in several figures; by default in order"""


def draw_regret(
    axes: "Axes",
    marks: Ints,
    curves: Sequence[Curve],
    *,
    title: str,
    unit: str,
    band: Band = student_band,
    few: int = _FEW,
) -> None:
    """What `regret_curves` writes, on axes; more than a few lines have their legend below."""
    worst_first = sorted(curves, key=lambda curve: -curve.regret[-1].mean())
    for place, curve in enumerate(worst_first):
        color, dashes = style(place if curve.look is None else curve.look)
        rounds(axes, marks, curve.regret, curve.label, color=color, dashes=dashes, band=band)
    axes.set_title(title, loc="left", pad=10)
    axes.set(xlabel="round (one user each)", ylabel=f"cumulative regret ({unit})")
    axes.set_xlim(0, int(marks[-1]))
    from_zero(axes)
    axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.yaxis.set_major_formatter("{x:,.6g}")
    heading = "agent, and the privacy it certifiably has"
    if len(curves) <= few:
        axes.legend(title=heading, loc="upper left", framealpha=0.9, alignment="left")
    else:
        figure: Any = axes.figure
        figure.legend(title=heading, loc="outside lower left", frameon=False, alignment="left")


def regret_curves(
    path: Path,
    marks: Ints,
    curves: Sequence[Curve],
    *,
    title: str,
    unit: str,
    band: Band = student_band,
) -> None:
    """Mean cumulative regret by round with 95 % bands of the mean, the worst agent first.

    Args:
        path: .png, .svg or .pdf.
        marks: rounds, (marks,).
        curves: one for each agent.
        title: what was compared.
        unit: what a regret of 1 is.
        band: lower and upper ends for (marks, R); Student's if left out.
    """
    legend = 0.3 + 0.28 * line_count([curve.label for curve in curves])
    with panels(path, [""], size=(7.6, 4.8 + legend)) as (axes,):
        draw_regret(axes, marks, curves, title=title, unit=unit, band=band, few=0)


def delta_curve(
    path: Path,
    delta_at: Callable[[float], float],
    *,
    title: str,
    claim: tuple[float, float],
    certified: float,
    curve: str = "certified curve",
    ages: Sequence[tuple[int, float]] = (),
) -> None:
    """The certified curve delta(epsilon) with the claimed and the certified point, to `path`.

    `curve` is its label, which says what privacy it is of where that is not ordinary DP. Beside it,
    if there are `ages`, the epsilon of those who watch for so many rounds after a visit.
    """
    most = 1.5 * max(certified, min(claim[0], 100.0)) if certified < inf else 3 * claim[0]
    epsilons = np.linspace(0, most, 200)
    deltas = np.array([delta_at(float(epsilon)) for epsilon in epsilons])
    titles = [title, "of who watches for a while"] if ages else [title]
    with panels(path, titles, size=(12, 5) if ages else (8, 5)) as (axes, *others):
        colors = COLOURS[:3]
        for beside in others:
            _epsilon_by_age(beside, ages, certified, claim, colors)
        drawn = deltas > 0
        axes.plot(epsilons[drawn], deltas[drawn], color=colors[0], lw=2, label=curve)
        axes.plot(
            *claim, "s", color=colors[1], ms=9, label=f"claimed: epsilon {rounded(claim[0], 6)}"
        )
        if certified < inf:
            label = f"certified: epsilon {rounded(certified)}"
            axes.plot(certified, claim[1], "o", color=colors[2], ms=8, label=label)
        axes.axhline(claim[1], color="0.6", lw=1, ls=(0, (4, 3)))
        axes.set_xlim(0, most)
        axes.set_ylim(max(1e-12, claim[1] * 1e-4), 1)  # before the scale, which asks for limits
        axes.set_yscale("log")
        axes.set(xlabel="epsilon", ylabel="delta")
        axes.legend()


def _epsilon_by_age(
    axes: "Axes",
    ages: Sequence[tuple[int, float]],
    certified: float,
    claim: tuple[float, float],
    colors: Sequence[Any],
) -> None:
    known = [(age, epsilon) for age, epsilon in ages if epsilon < inf]
    x, y = zip(*known, strict=True)
    label = f"epsilon at delta {rounded(claim[1], 6)}"
    axes.step(x, y, where="pre", color=colors[0], lw=2, label=label)
    if len(known) == len(ages):
        label = f"of who watches for ever: {rounded(certified)}"
        axes.axhline(certified, color=colors[2], lw=1.5, ls=(0, (4, 3)), label=label)
    else:
        label = f"from {ages[len(x)][0]:,} rounds on no promise"
        axes.axvline(ages[len(x)][0], color=colors[1], lw=1.5, ls=(0, (4, 3)), label=label)
    axes.set_xscale("symlog", linthresh=1)
    axes.set(xlabel="rounds after a user's own, fixed beforehand", ylabel="epsilon")
    axes.set_xlim(0, max(10, x[-1] * 1.5))
    axes.set_ylim(0, 1.15 * certified)
    axes.legend(loc="lower left")


def tradeoff(
    path: Path,
    allowed: Callable[[Floats], Floats],
    proven: Callable[[Floats], Floats],
    point: tuple[float, float],
    *,
    title: str,
    certified: str,
    measured: str,
) -> None:
    """A certificate's trade-off curve beside what an audit has proven, to `path`.

    Args:
        path: .png, .svg or .pdf.
        allowed: the largest true positive rate the certificate allows at a false positive rate.
        proven: the least that the audit leaves possible.
        point: (upper bound of the false positive rate, lower bound of the true positive rate).
        title: what was audited.
        certified, measured: words for the two curves.
    """
    fpr = np.linspace(0, 1, 401)
    with panels(path, [title], size=(7, 6.4)) as (axes,):
        blue, orange, *_ = COLOURS
        axes.plot(fpr, allowed(fpr), color=blue, lw=2, label=certified)
        low = np.maximum(proven(fpr), fpr)
        axes.plot(fpr, low, color=orange, lw=1.5, ls=DASHES[1], label=measured)
        axes.fill_between(fpr, fpr, low, color=orange, alpha=0.15, lw=0)
        axes.plot(*point, "o", color=orange, ms=8, label="measured, both rates pessimistic")
        axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls=DASHES[2], label="guessing")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.01)
        axes.set_xlabel("false positive rate: one world taken for the other")
        axes.set_ylabel("true positive rate: the other recognised")
        axes.legend(loc="lower right")


_SMALLEST, _LARGEST = 1e-9, 1e9
"""Epsilons that have a place on an axis; less is none at all, and more is no privacy"""
_STEPS = 25
"""Of an overlay"""
_EPSILON = re.compile(r":epsilon=[^:]*")
"""In the name of an agent that is an id with settings"""


class Front(NamedTuple):
    """One agent's line: a run for each of its claims."""

    label: str
    runs: Sequence[AgentRun]
    look: int
    """place in palette, dashes and markers, to look alike in several figures"""


class Overlay(NamedTuple):
    """A line that nobody measured: a bound, or the shape of one."""

    label: str
    at: Callable[[float], float]
    """epsilon, at the figure's delta -> regret"""
    dashes: Any = "solid"
    color: Any = "black"


def final(run: AgentRun) -> Floats:
    """Regret after the last round, (R,)."""
    return run.regret[-1]


def placed(run: AgentRun) -> bool:
    """Whether its certified epsilon can be a place on an axis."""
    return _SMALLEST < run.certificate.epsilon < _LARGEST


def fronts_of(runs: Iterable[AgentRun]) -> tuple[list[Front], list[tuple[str, Floats]]]:
    """A line for each name that claims an epsilon, with what restricts it; all others as levels.

    Names of ids that differ in epsilon alone, fade:epsilon=1 and fade:epsilon=3, are one line.
    """
    lines: dict[str, list[AgentRun]] = {}
    for run in runs:
        lines.setdefault(_EPSILON.sub("", run.name), []).append(run)
    private = {name: line for name, line in lines.items() if any(map(claims, line))}
    levels = [
        (name, final(run)) for name, line in lines.items() if name not in private for run in line
    ]
    fronts = [
        Front(restricted(name, line), line, look)
        for look, (name, line) in enumerate(private.items())
    ]
    return fronts, levels


def frontier(
    axes: "Axes",
    fronts: Iterable[Front],
    levels: Iterable[tuple[str, Floats]] = (),
    *,
    value: Callable[[AgentRun], Floats] = final,
    band: Band = student_band,
    overlays: Iterable[Overlay] = (),
) -> None:
    """Draw what agents reach over the epsilon that is certified, never over the one claimed.

    Runs for which none is certified stand on the right, at infinity, apart from the lines; those at
    0 are levels.

    Args:
        axes: where; its label below says what epsilon is of.
        fronts: one for each agent.
        levels: labels and values (R,) of what has no epsilon, each a horizontal line.
        value: run -> what is drawn of it, (R,).
        band: 95 % intervals of the mean.
        overlays: bounds, or shapes of them.
    """
    sorted_fronts = [front._replace(runs=sorted(front.runs, key=_epsilon)) for front in fronts]
    every = [run for front in sorted_fronts for run in front.runs]
    beyond = 2.5 * max((_epsilon(run) for run in every if placed(run)), default=1.0)
    none = [(one.label, value(run)) for one in sorted_fronts for run in one.runs if _nothing(run)]
    for front in sorted_fronts:
        label = front.label
        within = [run for run in front.runs if placed(run)]
        without = [run for run in front.runs if not (placed(run) or _nothing(run))]
        for runs, where in (
            (within, list(map(_epsilon, within))),
            (without, [beyond] * len(without)),
        ):
            if runs:
                line(axes, where, [value(run) for run in runs], label, front.look, band=band)
                label = "_the same"  # in no legend
    for place, (label, values) in enumerate([*none, *levels]):
        shade, dashes = level(place)
        axes.axhline(values.mean(), color=shade, lw=1.4, ls=dashes, label=label)
    axes.set_xscale("log")
    _draw_overlays(axes, overlays, [_epsilon(run) for run in every if placed(run)])
    log_ticks(axes.xaxis)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_major_formatter("{x:,.6g}")
    axes.minorticks_off()
    if any(_epsilon(run) >= _LARGEST for run in every):
        low, high = axes.get_xlim()
        ticks = [tick for tick in axes.get_xticks() if low <= tick < beyond / 1.4]
        axes.set_xticks([*ticks, beyond], [*(f"{tick:g}" for tick in ticks), "∞"])
        axes.set_xlim(low, high)
    axes.set_xlabel(_what_epsilon(list(filter(placed, every))))


def _draw_overlays(axes: "Axes", overlays: Iterable[Overlay], epsilons: Sequence[float]) -> None:
    """From the least to the largest epsilon that somebody has."""
    for overlay in overlays:
        where = np.geomspace(min(epsilons), max(epsilons), _STEPS)
        values = [overlay.at(float(epsilon)) for epsilon in where]
        how: dict[str, Any] = {"color": overlay.color, "ls": overlay.dashes, "lw": 1.8}
        axes.plot(where, values, label=overlay.label, **how)


def claims(run: AgentRun) -> bool:
    """Whether it claims an epsilon between none and infinity."""
    return 0 < run.certificate.claimed_epsilon < inf


def _epsilon(run: AgentRun) -> float:
    return run.certificate.epsilon


def _nothing(run: AgentRun) -> bool:
    return _epsilon(run) <= _SMALLEST


def _what_epsilon(runs: Sequence[AgentRun]) -> str:
    """Of what, and at which delta, where that is one."""
    notions = {run.certificate.notion.kind for run in runs}
    deltas = {run.certificate.claimed_delta for run in runs}
    at = f" at delta {rounded(deltas.pop(), 6)}" if len(deltas) == 1 else ""
    of = f",\n{notions.pop()}" if len(notions) == 1 else ""
    return f"certified epsilon{at}{of}"
