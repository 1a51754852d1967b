"""How lines with bands are drawn, several panels side by side, to be told apart without colour."""

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure

from dpbandit.base.arrays import Floats
from dpbandit.results.drawing import half_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_COLORS = [sns.color_palette("colorblind")[place] for place in (0, 1, 2, 3, 4, 9, 5, 6)]
_MARKERS = "osD^vPXp"


def draw(
    path: Path,
    titles: Iterable[str],
    panel: Callable[["Axes", int], None],
    *,
    heading: str,
    size: tuple[float, float],
) -> None:
    """A row of panels, one for each title, to `path` (.png, .svg or .pdf)."""
    names = list(titles)
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=size, layout="constrained")
        row: Any = figure.subplots(1, len(names), squeeze=False)
        for place, (axes, title) in enumerate(zip(row[0], names, strict=True)):
            panel(axes, place)
            axes.set_title(title, loc="left", pad=8, fontsize="medium")
            axes.grid(axis="y", alpha=0.35)
            sns.despine(ax=axes)
        figure.suptitle(heading, x=0.01, ha="left")
        figure.savefig(path, dpi=120)


def curve(
    axes: "Axes", place: int, label: str, where: Sequence[float], values: Sequence[Floats]
) -> None:
    """Means with 95 % bands; `place` picks colour, dashes and marker."""
    mean = np.array([one.mean() for one in values])
    half = np.array([float(half_band(one)) for one in values])
    turn, hue = divmod(place, len(_COLORS))  # of colours: the second one has other dashes, marks
    color, dashes = _COLORS[hue], DASHES[(hue + turn) % len(DASHES)]
    axes.plot(
        where,
        mean,
        marker=_MARKERS[(hue + 3 * turn) % len(_MARKERS)],
        ms=5,
        lw=2,
        ls=dashes,
        color=color,
        label=label,
    )
    axes.fill_between(where, mean - half, mean + half, color=color, alpha=0.2, lw=0)


def legend_beside(axes: "Axes") -> None:
    """To the right of the axes."""
    axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, handlelength=3.5)


def legend_below(axes: "Axes", title: str) -> None:
    """Under the axes, in two columns."""
    axes.legend(
        title=title,
        loc="upper center",
        bbox_to_anchor=(0.48, -0.14),
        ncols=2,
        frameon=False,
        fontsize="small",
        title_fontsize="small",
        handlelength=2.6,
        columnspacing=1.5,
    )
