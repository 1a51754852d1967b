"""Figures a person wants to look at: colour-blind safe, labelled, with bands."""

from collections.abc import Callable, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
import seaborn as sns
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from scipy.stats import t as student

from dpbandit.base.arrays import Floats, Ints

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)), (0, (8, 2)), (0, (3, 1)))


Band: TypeAlias = Callable[[Floats], tuple[Floats, Floats]]
"""Lower and upper ends of a band of the mean over the last axis"""


_FEW = 8
"""Lines that leave room for a legend among them"""
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


class Curve(NamedTuple):
    """One agent's line."""

    label: str
    regret: Floats
    """cumulative, (marks, replicas)"""
    look: int | None = None
    """place in palette and dashes, to look alike in several figures; by default in order"""


def regret_curves(
    path: Path,
    marks: Ints,
    curves: Sequence[Curve],
    *,
    title: str,
    unit: str,
    band: Band | None = None,
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
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=(9.5, 5.6), layout="constrained")
        axes = figure.add_subplot()
        worst_first = sorted(curves, key=lambda curve: -curve.regret[-1].mean())
        for place, curve in enumerate(worst_first):
            color, dashes = style(place if curve.look is None else curve.look)
            _draw(axes, marks, curve, color=color, dashes=dashes, band=band or _student)
        axes.set_xlabel("round (one user each)")
        axes.set_ylabel(f"cumulative regret ({unit})")
        axes.set_xlim(0, int(marks[-1]))
        from_zero(axes)
        axes.xaxis.set_major_locator(MaxNLocator("auto", steps=[1, 2, 2.5, 5, 10], integer=True))
        axes.xaxis.set_major_formatter("{x:,.0f}")
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.set_title(title, loc="left", pad=12)
        axes.grid(axis="y", alpha=0.35)
        sns.despine(ax=axes)
        heading = "agent, and the privacy it certifiably has"
        if len(curves) <= _FEW:
            axes.legend(title=heading, loc="upper left", framealpha=0.9, alignment="left")
        else:
            figure.set_figheight(5.6 + 0.28 * line_count([curve.label for curve in curves]))
            figure.legend(title=heading, loc="outside lower left", frameon=False, alignment="left")
        save_figure(figure, path)


def _draw(axes: "Axes", marks: Ints, curve: Curve, *, color: Any, dashes: Any, band: Band) -> None:
    mean, replicas = curve.regret.mean(axis=1), curve.regret.shape[1]
    axes.plot(marks, mean, color=color, ls=dashes, lw=2, label=curve.label)
    if replicas > 1:
        axes.fill_between(marks, *band(curve.regret), color=color, alpha=0.2, lw=0)


def style(look: int) -> tuple[Any, Any]:
    """Colour and dashes: ten colours, and the second ten have other dashes."""
    turn, place = divmod(look, 10)
    return sns.color_palette("colorblind", 10)[place], _DASHES[(place + turn) % len(_DASHES)]


def level(place: int) -> tuple[str, Any]:
    """Grey and dashes of a horizontal line: 18 that differ."""
    turn, dashes = divmod(place, len(_DASHES))
    return str(0.2 + 0.2 * ((dashes + turn) % 3)), _DASHES[dashes]


def from_zero(axes: "Axes") -> None:
    """Let the vertical axis begin at zero, or at what is drawn below it."""
    axes.set_ylim(bottom=min(0.0, 1.05 * axes.dataLim.ymin))


def line_count(labels: Sequence[str]) -> int:
    """The lines that labels take, of which long ones have several."""
    return sum(1 + label.count("\n") for label in labels)


def _student(values: Floats) -> tuple[Floats, Floats]:
    mean, half = values.mean(axis=-1), half_band(values)
    return mean - half, mean + half


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
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=(8, 5), layout="constrained")
        axes = figure.add_subplot()
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
        axes.set_title(title, loc="left", pad=12)
        axes.grid(alpha=0.3)
        sns.despine(ax=axes)
        axes.legend()
        save_figure(figure, path)


class Frontier(NamedTuple):
    """One agent's line across privacy targets."""

    label: str
    epsilons: Sequence[float]
    """increasing; infinity, without privacy, may be the last"""
    values: Sequence[Floats]
    """for every epsilon the replicas' values, (R,), R >= 2"""
    look: int
    """place in the palette of 10, so that an agent looks alike in several figures"""


def frontier(
    path: Path,
    lines: Sequence[Frontier],
    levels: Mapping[str, Floats],
    *,
    title: str,
    ylabel: str,
    notion: str = "joint differential privacy",
) -> None:
    """What agents reach at every epsilon, with 95 % bands of the mean.

    Args:
        path: .png, .svg or .pdf.
        lines: one for each agent.
        levels: name -> values (R,) of what has no epsilon, drawn as a horizontal line.
        title: what was compared.
        ylabel: what the values are, with their unit.
        notion: what epsilon is of.
    """
    finite = sorted({e for line in lines for e in line.epsilons if e < inf})
    beyond = 2.5 * finite[-1] if finite else 1.0  # where infinity is drawn
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=(11, 5.6), layout="constrained")
        axes = figure.add_subplot()
        palette = sns.color_palette("colorblind", 10)
        for line in lines:
            where = [min(epsilon, beyond) for epsilon in line.epsilons]
            mean = np.array([values.mean() for values in line.values])
            half = np.array([float(half_band(values)) for values in line.values])
            color, dashes = palette[line.look % 10], _DASHES[line.look % len(_DASHES)]
            axes.plot(where, mean, "o", ls=dashes, lw=2, ms=5, color=color, label=line.label)
            axes.fill_between(where, mean - half, mean + half, color=color, alpha=0.15, lw=0)
        for place, (name, values) in enumerate(levels.items()):
            shade, dashes = level(place)
            axes.axhline(values.mean(), color=shade, lw=1.2, ls=dashes, label=name)
        axes.set_xscale("log")
        axes.set_xticks([*finite, beyond], [*(f"{epsilon:g}" for epsilon in finite), "∞"])
        axes.minorticks_off()
        axes.yaxis.set_major_formatter("{x:,.6g}")
        axes.set_xlabel(f"epsilon of {notion} (∞: without privacy)")
        axes.set_ylabel(ylabel)
        axes.set_title(title, loc="left", pad=12)
        axes.grid(axis="y", alpha=0.35)
        sns.despine(ax=axes)
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, handlelength=3.5)
        save_figure(figure, path)


def half_band(values: Floats) -> Floats:
    """Half the 95 % confidence interval of the mean along the last axis, two values or more."""
    replicas = values.shape[-1]
    half: Floats = student.ppf(0.975, replicas - 1) * values.std(axis=-1, ddof=1)
    return half / np.sqrt(replicas)


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
    with sns.axes_style("ticks"), sns.plotting_context("notebook"):
        figure = Figure(figsize=(7, 6.4), layout="constrained")
        axes = figure.add_subplot()
        blue, orange = sns.color_palette("colorblind", 2)
        axes.plot(fpr, allowed(fpr), color=blue, lw=2, label=certified)
        low = np.maximum(proven(fpr), fpr)
        axes.plot(fpr, low, color=orange, lw=1.5, ls=_DASHES[1], label=measured)
        axes.fill_between(fpr, fpr, low, color=orange, alpha=0.15, lw=0)
        axes.plot(*point, "o", color=orange, ms=8, label="measured, both rates pessimistic")
        axes.plot([0, 1], [0, 1], color="0.6", lw=1, ls=_DASHES[2], label="guessing")
        axes.set_xlim(0, 1)
        axes.set_ylim(0, 1.01)
        axes.set_xlabel("false positive rate: one world taken for the other")
        axes.set_ylabel("true positive rate: the other recognised")
        axes.set_title(title, loc="left", pad=12)
        axes.grid(alpha=0.3)
        sns.despine(ax=axes)
        axes.legend(loc="lower right")
        save_figure(figure, path)
