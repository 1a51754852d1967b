"""How a figure of a report is drawn: axes with a legend below, lines with bars, ticks."""

from collections.abc import Sequence
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator

from dpbandit.base.arrays import Floats
from dpbandit.results.comparisons import bootstrap_band
from dpbandit.results.plots import line_count, save_figure, style
from dpbandit.results.results import as_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

_MARKERS = "osD^vPXp*h"
_NARROW = 40
"""Letters of a label, two of which stand side by side"""
_FEW = 5
"""Decades of an axis with room for 1, 2 and 5 of each"""


class drawn:
    """One pair of axes with the legend below, saved to `path` at the end."""

    def __init__(self, path: Path, title: str) -> None:
        self._path, self._title = path, title
        self._styles: list[Any] = [sns.axes_style("ticks"), sns.plotting_context("notebook")]

    def __enter__(self) -> "Axes":
        for setting in self._styles:
            setting.__enter__()
        self._figure = Figure(figsize=(9.5, 6.2), layout="constrained")
        self._axes = self._figure.add_subplot()
        return self._axes

    def __exit__(self, *error: Any) -> None:
        if error[0] is None:
            self._axes.grid(alpha=0.35)
            self._axes.set_title(as_text(self._title), loc="left", pad=12)
            sns.despine(ax=self._axes)
            _, labels = self._axes.get_legend_handles_labels()
            columns = 2 if max(map(len, labels), default=0) < _NARROW else 1
            self._figure.set_figheight(5.2 + 0.26 * line_count(labels) / columns)
            how: dict[str, Any] = {"ncols": columns, "frameon": False, "handlelength": 3.2}
            self._figure.legend(loc="outside lower left", **how)
            save_figure(self._figure, self._path)
        for setting in reversed(self._styles):
            setting.__exit__(*error)


def line(
    axes: "Axes", where: Sequence[float], values: Sequence[Floats], name: str, look: int
) -> None:
    """Means of the replicas' `values` with 95 % bootstrap bars, where there are replicas."""
    mean = np.array([one.mean() for one in values])
    if len(values[0]) > 1:
        ends = np.array([bootstrap_band(one) for one in values]).T
        error = np.abs(ends - mean)
    else:
        error = None
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


def log_ticks(axis: "Axis") -> None:
    """Ticks of a logarithmic axis whose data is drawn: 1, 2, 5 of each decade, 1 of many."""
    low, high = axis.get_view_interval()
    axis.set_major_locator(LogLocator(subs=(1, 2, 5) if log10(high / low) < _FEW else (1,)))
