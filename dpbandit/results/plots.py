"""Figures of regret, frontiers and certificates."""

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
from matplotlib.ticker import LogLocator, MaxNLocator
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from dpbandit.base import Floats, Ints, rounded
from dpbandit.results.runs import AgentRun, as_text, restricted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis


Band: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Function from values (..., R) to the ends of a confidence band of their mean over replicas."""

_STYLE: dict[Any, Any] = {
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
"""Matplotlib settings of all figures that differ from the defaults."""
COLOURS = (
    *("#0173b2", "#de8f05", "#029e73", "#d55e00", "#cc78bc"),
    *("#ca9161", "#fbafe4", "#949494", "#ece133", "#56b4e9"),
)
"""Colours that colour-blind readers can tell apart, after seaborn (Waskom, JOSS 2021)."""
# line styles, dashes as Matplotlib's (offset, (on, off, ...))
DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))
_MARKERS = "osD^vPXp*h"  # Matplotlib's letters for the markers of lines
_MAX_COLUMN_LETTERS = 40
"""Letters of the longest label below which a legend has two columns."""
_MAX_DENSE_DECADES = 3
"""Number of decades of a log axis below which it has ticks at 1, 2 and 5 in each decade."""
_UNDATED: dict[str, dict[str, None]] = {  # format -> metadata that leave out the date
    ".png": {},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
DOTS = 160
"""Resolution of a PNG in dots per inch."""
_TEXT = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}  # metadata of figures


@contextmanager
def figure_style() -> Iterator[None]:
    """Use dpbandit's Matplotlib settings in a `with` block, whatever the caller's settings are."""
    with rc_context():
        rcdefaults()
        rcParams.update(_STYLE)
        yield


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF, without a date, with its text (`words`) as metadata."""
    metadata = {**_UNDATED[path.suffix], _TEXT[path.suffix]: words(figure)}
    with rc_context({"svg.hashsalt": "dpbandit"}):
        figure.savefig(path, dpi=DOTS, metadata=metadata)
    if path.suffix == ".png":
        few_colours(path)


def few_colours(path: Path) -> None:
    """Reduce a PNG file to 256 colours, which takes a quarter of the bytes and looks the same."""
    with Image.open(path) as image:
        metadata = PngInfo()
        for name, text in image.info.items():
            if isinstance(text, str):
                metadata.add_itxt(str(name), text)
        # a median cut would merge the colours of thin lines where bands overlap
        palette = image.convert("RGB").quantize(256, Image.Quantize.FASTOCTREE)
    palette.save(path, optimize=True, pnginfo=metadata)


def words(figure: Figure) -> str:
    """Describe a figure by its titles and lines' end points, for readers who cannot see it."""
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
    """Return colour and dashes of line number `look`; after 10, colours repeat in other dashes."""
    turn, place = divmod(look, 10)
    return COLOURS[place], DASHES[(place + turn) % len(DASHES)]


def level(place: int) -> tuple[str, Any]:
    """Return the grey and dashes of horizontal line number `place`; the first 18 are distinct."""
    turn, dashes = divmod(place, len(DASHES))
    return str(0.2 + 0.2 * ((dashes + turn) % 3)), DASHES[dashes]


def despine(axes: "Axes") -> None:
    """Remove the upper and right lines of the axes' frame."""
    axes.spines[["top", "right"]].set_visible(False)


def from_zero(axes: "Axes") -> None:
    """Let the vertical axis begin just below zero, so that lines at zero are visible."""
    axes.set_ylim(bottom=min(-0.015 * axes.get_ylim()[1], 1.05 * axes.dataLim.ymin))


def line_count(labels: Sequence[str]) -> int:
    """Count the lines of text in all labels together; a label may have several."""
    return sum(1 + label.count("\n") for label in labels)


def student_band(values: Floats) -> tuple[Floats, Floats]:
    """Compute Student's 95 % confidence interval of the mean along the last axis."""
    mean, half = values.mean(axis=-1), half_band(values)
    return mean - half, mean + half


def half_band(values: Floats) -> Floats:
    """Compute half the width of `student_band`, for two or more values."""
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
    """Draw a line through the replicas' means at `where`, with 95 % bars for several replicas.

    If a value of `where` occurs twice, its second point is drawn apart from the line.
    """
    color, dashes = style(look)
    marker = _MARKERS[(look + look // 10) % len(_MARKERS)]  # lines of one colour differ in marker
    how: dict[str, Any] = {"color": color, "linestyle": dashes, "linewidth": 1.8}
    how |= {"marker": marker, "markersize": 6, "markeredgewidth": 0.75}
    for layer, places in enumerate(_layers(where)):
        at, label = [float(where[place]) for place in places], "_unlisted" if layer else name
        means = np.array([np.mean(values[place]) for place in places])
        if len(values[places[0]]) == 1:
            axes.plot(at, means, label=label, **how)
            continue
        low, high = np.transpose([band(np.asarray(values[place])) for place in places])
        ends = np.maximum([means - low, high - means], 0)  # equal values may differ by rounding
        bars: dict[str, Any] = {"elinewidth": 1.5, "capsize": 3, "capthick": 1.0}
        axes.errorbar(at, means, yerr=ends, label=label, **bars, **how)


def _layers(where: Sequence[float]) -> list[list[int]]:
    """Split the indices of `where` into as few lists as possible, each without a repeated value.

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
    """Draw the mean of `values` (rounds, R) at the rounds `marks`, with a 95 % band if R > 1."""
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
    """Yield axes, one for each title; at the end of the `with` block save the figure to `path`."""
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
    """Yield a figure's axes; at the end of the `with` block add a legend and save it to `path`."""
    with panels(path, [as_text(title)], size=(9.5, 6.2)) as (axes,):
        yield axes
        figure: Any = axes.figure
        _, labels = axes.get_legend_handles_labels()
        columns = 2 if max(map(len, labels), default=0) < _MAX_COLUMN_LETTERS else 1
        figure.set_figheight(5.2 + 0.26 * line_count(labels) / columns)
        legend_at_the_foot(axes, columns)


def legend_at_the_foot(axes: "Axes", columns: int = 2) -> None:
    """Draw the legend of the axes at the bottom of the figure."""
    figure: Any = axes.figure
    entries = axes.get_legend_handles_labels()
    how: dict[str, Any] = {"ncols": columns, "frameon": False, "handlelength": 3.2}
    figure.legend(*entries, loc="outside lower left", **how)


def log_ticks(axis: "Axis") -> None:
    """Set ticks of a log axis to 1, 2 and 5 of each decade, or powers of 10 for many decades."""
    low, high = axis.get_view_interval()
    dense = log10(high / low) < _MAX_DENSE_DECADES
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if dense else (1,)))


_MAX_LINES_INSIDE = 8
"""Largest number of lines with which the legend is inside the axes."""


class Curve(NamedTuple):
    """Cumulative regret of an agent, drawn as a line."""

    label: str
    regret: Floats
    """cumulative regret at the logged rounds, (rounds, replicas)"""
    look: int | None = None
    """index of colour and dashes in `style`; by default the rank by regret, worst first"""


def draw_regret(
    axes: "Axes",
    marks: Ints,
    curves: Sequence[Curve],
    *,
    title: str,
    unit: str,
    band: Band = student_band,
    few: int = _MAX_LINES_INSIDE,
) -> None:
    """Draw regret curves on axes; with more than `few` curves the legend is below them."""
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
    """Write a figure of mean cumulative regret by round with 95 % bands, worst agent first.

    Args:
        path: file to write, .png, .svg or .pdf.
        marks: logged rounds, in increasing order.
        curves: one curve for each agent.
        title, unit: title of the figure, and unit of regret.
        band: function from regrets (rounds, R) to lower and upper ends; by default Student's band.
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
    """Write a figure of the certified curve delta(epsilon), with the claim and certificate marked.

    `curve` labels the curve, with the kind of privacy unless it is ordinary DP. `ages` are pairs
    (rounds since a visit, epsilon towards an observer of these rounds), drawn on further axes.
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
    """Write a figure of a certificate's trade-off curve and of the bound that an audit proves.

    Args:
        path: file to write, .png, .svg or .pdf.
        allowed: false positive rates -> largest true positive rates that the certificate allows.
        proven: false positive rates -> lower bounds on true positive rates, from the audit.
        point: the audit's (upper bound of false positive rate, lower bound of true positive rate).
        title: title of the figure.
        certified, measured: labels of the two curves.
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
"""Range of certified epsilons drawn as points; runs below it use no data, runs above no privacy."""
_OVERLAY_POINTS = 25
"""Number of points at which an `Overlay`'s curve is computed."""
_EPSILON_SETTING = re.compile(r":epsilon=[^:]*")
"""Pattern of the setting epsilon in an agent's id with settings."""


class Front(NamedTuple):
    """Runs of an agent at several claimed epsilons, drawn as a line over certified epsilon."""

    label: str
    runs: Sequence[AgentRun]
    look: int
    """index that selects colour and dashes (see `style`) and marker"""


class Overlay(NamedTuple):
    """Theoretical curve beside measured ones, such as a lower bound on regret."""

    label: str
    at: Callable[[float], float]
    """function from epsilon to regret, at the figure's delta"""
    dashes: Any = "solid"
    color: Any = "black"


def final(run: AgentRun) -> Floats:
    """Return regret after the last round, (R,)."""
    return run.regret[-1]


def placed(run: AgentRun) -> bool:
    """Return True if a run's certified epsilon can be drawn on a logarithmic axis."""
    return _SMALLEST < run.certificate.epsilon < _LARGEST


def fronts_of(runs: Iterable[AgentRun]) -> tuple[list[Front], list[tuple[str, Floats]]]:
    """Split runs into a `Front` per agent that claims an epsilon, and other runs' (label, regret).

    Names that differ in epsilon alone, such as fade:epsilon=1 and fade:epsilon=3, form one line.
    A line's label includes limits of the agent's privacy, such as "last 9" for 9 rounds.
    """
    lines: dict[str, list[AgentRun]] = {}
    for run in runs:
        lines.setdefault(_EPSILON_SETTING.sub("", run.name), []).append(run)
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
    """Draw agents' regret, or another value, over certified (never claimed) epsilon.

    Runs with an infinite certified epsilon are points at the right end, apart from the lines; runs
    with epsilon 0 are horizontal lines.

    Args:
        axes: axes to draw on; the horizontal one is labelled with delta and the kind of privacy.
        fronts: one line for each agent.
        levels: labels and values (R,) of agents without epsilon, drawn as horizontal lines.
        value: run -> values to draw, (R,).
        band: function that returns 95 % intervals of the mean.
        overlays: theoretical curves to draw beside the runs.
    """
    sorted_fronts = [front._replace(runs=sorted(front.runs, key=_epsilon)) for front in fronts]
    every = [run for front in sorted_fronts for run in front.runs]
    beyond = 2.5 * max((_epsilon(run) for run in every if placed(run)), default=1.0)
    none = [(one.label, value(run)) for one in sorted_fronts for run in one.runs if _is_zero(run)]
    for front in sorted_fronts:
        label = front.label
        within = [run for run in front.runs if placed(run)]
        without = [run for run in front.runs if not (placed(run) or _is_zero(run))]
        for runs, where in (
            (within, list(map(_epsilon, within))),
            (without, [beyond] * len(without)),
        ):
            if runs:
                line(axes, where, [value(run) for run in runs], label, front.look, band=band)
                label = "_unlisted"  # labels that begin with _ are in no legend
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
    axes.set_xlabel(_epsilon_label(list(filter(placed, every))))


def _draw_overlays(axes: "Axes", overlays: Iterable[Overlay], epsilons: Sequence[float]) -> None:
    """Draw each overlay from the smallest to the largest of `epsilons`."""
    for overlay in overlays:
        where = np.geomspace(min(epsilons), max(epsilons), _OVERLAY_POINTS)
        values = [overlay.at(float(epsilon)) for epsilon in where]
        how: dict[str, Any] = {"color": overlay.color, "ls": overlay.dashes, "lw": 1.8}
        axes.plot(where, values, label=overlay.label, **how)


def claims(run: AgentRun) -> bool:
    """Return True if a run claims a positive, finite epsilon."""
    return 0 < run.certificate.claimed_epsilon < inf


def _epsilon(run: AgentRun) -> float:
    return run.certificate.epsilon


def _is_zero(run: AgentRun) -> bool:
    return _epsilon(run) <= _SMALLEST


def _epsilon_label(runs: Sequence[AgentRun]) -> str:
    """Return the axis label, with delta and the kind of privacy if all runs agree in them."""
    notions = {run.certificate.notion.kind for run in runs}
    deltas = {run.certificate.claimed_delta for run in runs}
    at = f" at delta {rounded(deltas.pop(), 6)}" if len(deltas) == 1 else ""
    of = f",\n{notions.pop()}" if len(notions) == 1 else ""
    return f"certified epsilon{at}{of}"
