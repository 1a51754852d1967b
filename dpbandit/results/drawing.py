"""How everything is drawn: lines and levels that differ, bands, axes with their legend, files."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import seaborn as sns
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator
from PIL import Image
from PIL.PngImagePlugin import PngInfo
from scipy.stats import t as student

from dpbandit.base.arrays import Floats, Ints
from dpbandit.results.labels import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

Band: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Lower and upper ends of a band of the mean over the last axis"""

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
_TEXT = {".png": "Description", ".svg": "Description", ".pdf": "Subject"}


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure as PNG, SVG or PDF: of the same numbers the same bytes, with `words` of it."""
    metadata = {**_UNDATED[path.suffix], _TEXT[path.suffix]: words(figure)}
    with rc_context({"svg.hashsalt": "dpbandit"}):
        figure.savefig(path, dpi=160, metadata=metadata)
    if path.suffix == ".png":
        few_colours(path)


def few_colours(path: Path) -> None:
    """Store a PNG with a palette of 64 colours: a quarter of the bytes, to the eye the same."""
    with Image.open(path) as image:
        said = PngInfo()
        for name, text in image.info.items():
            if isinstance(text, str):
                said.add_itxt(str(name), text)
        palette = image.convert("RGB").quantize(64, Image.Quantize.MEDIANCUT)
    palette.save(path, optimize=True, pnginfo=said)


def words(figure: Figure) -> str:
    """What a figure says to who cannot see it: its titles, and where each line of a legend ends."""
    said = []
    for axes in figure.axes:
        said.append(axes.get_title(loc="left") or axes.get_title())
        for line in axes.get_lines():
            label, points = str(line.get_label()), np.asarray(line.get_xydata())
            if len(points) and not label.startswith("_"):
                said.append(f"{label}: {points[-1, 1]:.6g} at {points[-1, 0]:.6g}")
    text = "\n".join(" ".join(text.split()) for text in said if text)
    return "".join(letter for letter in text if letter == "\n" or letter.isprintable())


def style(look: int) -> tuple[Any, Any]:
    """Colour and dashes: ten colours, and the second ten have other dashes."""
    turn, place = divmod(look, 10)
    return sns.color_palette("colorblind", 10)[place], DASHES[(place + turn) % len(DASHES)]


def level(place: int) -> tuple[str, Any]:
    """Grey and dashes of a horizontal line: 18 that differ."""
    turn, dashes = divmod(place, len(DASHES))
    return str(0.2 + 0.2 * ((dashes + turn) % 3)), DASHES[dashes]


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
    half: Floats = student.ppf(0.975, replicas - 1) * values.std(axis=-1, ddof=1)
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
    """Means of the replicas' `values` with 95 % bars, where there are replicas."""
    mean = np.array([one.mean() for one in values])
    error = None
    if len(values[0]) > 1:
        error = np.abs(np.array([band(one) for one in values]).T - mean)
    color, dashes = style(look)
    axes.errorbar(
        where,
        mean,
        yerr=error,
        color=color,
        ls=dashes,
        marker=_MARKERS[(look + look // 10) % len(_MARKERS)],  # of the same colour another
        ms=6,
        lw=1.8,
        capsize=3,
        label=name,
    )


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
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
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
            sns.despine(ax=axes)
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
