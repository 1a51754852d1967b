"""Figures a person wants to look at: colour-blind safe, labelled, with bands."""

from collections.abc import Callable, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import seaborn as sns
from matplotlib.ticker import MaxNLocator

from dpbandit.base.arrays import Floats, Ints
from dpbandit.results.drawing import (
    DASHES,
    Band,
    from_zero,
    line_count,
    panels,
    rounds,
    student_band,
    style,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    axes.set_xlabel("round (one user each)")
    axes.set_ylabel(f"cumulative regret ({unit})")
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
) -> None:
    """The certified curve delta(epsilon) with the claimed and the certified point, to `path`.

    `curve` is its label, which says what privacy it is of where that is not ordinary DP.
    """
    most = 1.5 * max(certified, min(claim[0], 100.0)) if certified < inf else 3 * claim[0]
    epsilons = np.linspace(0, most, 200)
    deltas = np.array([delta_at(float(epsilon)) for epsilon in epsilons])
    with panels(path, [title], size=(8, 5)) as (axes,):
        colors = sns.color_palette("colorblind", 3)
        shown = deltas > 0
        axes.plot(epsilons[shown], deltas[shown], color=colors[0], lw=2, label=curve)
        axes.plot(*claim, "s", color=colors[1], ms=9, label=f"claimed: epsilon {claim[0]:g}")
        if certified < inf:
            label = f"certified: epsilon {certified:.3g}"
            axes.plot(certified, claim[1], "o", color=colors[2], ms=8, label=label)
        axes.axhline(claim[1], color="0.6", lw=1, ls=(0, (4, 3)))
        axes.set_xlim(0, most)
        axes.set_ylim(max(1e-12, claim[1] * 1e-4), 1)  # before the scale, which asks for limits
        axes.set_yscale("log")
        axes.set_xlabel("epsilon")
        axes.set_ylabel("delta")
        axes.legend()


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
        blue, orange = sns.color_palette("colorblind", 2)
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
