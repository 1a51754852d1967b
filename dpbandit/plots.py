"""Figures a person wants to look at: colour-blind safe, labelled, with bands."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import seaborn as sns
from matplotlib.figure import Figure
from scipy.stats import t as student

from dpbandit.arrays import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))


class Curve(NamedTuple):
    """One agent's line."""

    label: str
    regret: Floats
    """cumulative, (marks, replicas)"""


def regret_curves(
    path: Path, marks: Ints, curves: Sequence[Curve], *, title: str, unit: str
) -> None:
    """Mean cumulative regret by round with 95 % bands of the mean, the worst agent first.

    Args:
        path: .png, .svg or .pdf.
        marks: rounds, (marks,).
        curves: one for each agent.
        title: what was compared.
        unit: what a regret of 1 is.
    """
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=(9.5, 5.6), layout="constrained")
        axes = figure.add_subplot()
        palette = sns.color_palette("colorblind", len(curves))
        worst_first = sorted(curves, key=lambda curve: -curve.regret[-1].mean())
        for place, curve in enumerate(worst_first):
            _draw(axes, marks, curve, color=palette[place], dashes=_DASHES[place % len(_DASHES)])
        axes.set_xlabel("round (one user each)")
        axes.set_ylabel(f"cumulative regret ({unit})")
        axes.set_xlim(0, int(marks[-1]))
        axes.set_ylim(bottom=0)
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.set_title(title, loc="left", pad=12)
        axes.grid(axis="y", alpha=0.35)
        sns.despine(ax=axes)
        heading = "agent, and the joint DP it certifiably has"
        axes.legend(title=heading, loc="upper left", framealpha=0.9, alignment="left")
        figure.savefig(path, dpi=160)


def _draw(axes: "Axes", marks: Ints, curve: Curve, *, color: Any, dashes: Any) -> None:
    mean, replicas = curve.regret.mean(axis=1), curve.regret.shape[1]
    axes.plot(marks, mean, color=color, ls=dashes, lw=2, label=curve.label)
    if replicas > 1:
        half = student.ppf(0.975, replicas - 1) * curve.regret.std(axis=1, ddof=1)
        half = half / np.sqrt(replicas)
        axes.fill_between(marks, mean - half, mean + half, color=color, alpha=0.2, lw=0)
