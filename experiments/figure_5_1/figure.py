"""The figure: three panels over the same rounds."""

from collections.abc import Iterable, Iterator, Mapping
from math import isinf
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import seaborn as sns
from matplotlib.figure import Figure

from dpbandit.base.arrays import Floats, Ints
from dpbandit.base.files import write_atomically
from dpbandit.experiments.figure_5_1.study import PUBLISHED, ROUNDS, Found
from dpbandit.results.drawing import half_band

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_DASHES = ("solid", (0, (5, 2)), (0, (1, 1.2)), (0, (5, 1.5, 1, 1.5)))
_COLORS = [sns.color_palette("colorblind")[place] for place in (0, 1, 2, 3, 4, 5, 6, 9)]
_CERTIFIED = r"regret in the end; $\epsilon$ certified at $\delta$ = 1/T"
_HEADINGS = {"a": "regret in the end", "b": _CERTIFIED, "c": _CERTIFIED}
_TITLES = {
    "a": "(a) As printed: straight lines that coincide with uniform play,\n"
    r"DP-UCB's over contexts of $\ell_\infty$ norm 1, DP-HDB's of $\ell_1$ norm 1",
    "b": "(b) As specified, with the paper's constants: neither is told from uniform play",
    "c": r"(c) As certified: what is possible at the same ($\epsilon$, $\delta$)",
}


class Curve(NamedTuple):
    """What is drawn of a run, or of a printed curve."""

    label: str
    marks: Ints
    mean: Floats
    half: Floats
    """half the width of its band"""


Styled: TypeAlias = tuple[Curve, Any, Any]
"""A curve, its colour and its dashes."""


def draw(path: Path, found: Mapping[str, Found]) -> Path:
    """Draw all panels to `path` (.png, .svg or .pdf)."""
    return write_atomically(path, lambda partial: _draw(partial, found))


def _draw(path: Path, found: Mapping[str, Found]) -> None:
    some = next(iter(found.values())).outcome
    with sns.axes_style("ticks"), sns.plotting_context("notebook", font_scale=0.9):
        figure = Figure(figsize=(11, 12.5), layout="constrained")
        panels: Any = figure.subplots(3, 1, sharex=True, height_ratios=(1, 1, 1.5))
        for letter, axes in zip("abc", panels, strict=True):
            _panel(axes, letter, [one for one in found.values() if letter in one.line.panels])
        panels[-1].set_xlim(0, int(some.marks[-1]))
        panels[-1].set_xlabel("round (one user each)")
        panels[-1].xaxis.set_major_formatter("{x:,.0f}")
        figure.suptitle(
            "Figure 5.1, private bandits in high dimension, examined again\n"
            rf"d = 50, 2 arms, claim $\epsilon$ = 1, $\delta$ = 1/T;  "
            f"mean of {some.regret.shape[1]} runs with 95 % bands of the mean",
            x=0.01,
            ha="left",
        )
        figure.savefig(path, dpi=90)


def _panel(axes: "Axes", letter: str, runs: list[Found]) -> None:
    curves = sorted(map(_curve, runs), key=lambda curve: -curve.mean[-1])
    lines = list(_styled(curves))
    if letter == "a":
        lines += _published(curves[0].marks)
    for line in lines:
        _line(axes, *line)
    axes.set_ylim(bottom=0)
    if letter == "a":
        lower = [line for line in lines if line[0].mean[-1] < curves[0].mean[-1] / 2]
        _inset(axes, "the lower ones", lower).set_ylim(bottom=0)
    if letter == "b":
        _inset(axes, "less uniform play, which meets the same users", _differences(runs, lines))
    if letter == "c":
        axes.set_yscale("log")
        axes.set_yticks([3, 10, 30, 100, 300, 1000])
        axes.minorticks_off()
        axes.set_ylim(2, 1.5 * curves[0].mean[-1])
    axes.yaxis.set_major_formatter("{x:,.6g}")
    axes.set_ylabel("cumulative regret (reward)" + (", log scale" if letter == "c" else ""))
    axes.set_title(_TITLES[letter], loc="left", pad=10)
    axes.grid(axis="y", alpha=0.35)
    sns.despine(ax=axes)
    axes.legend(
        title=_HEADINGS[letter],
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        frameon=False,
        alignment="left",
    )


def _styled(curves: list[Curve]) -> Iterator[Styled]:
    """Yardsticks in black, the others in colours and dashes of their own."""
    colors, public = iter(_COLORS), iter((_DASHES[3], _DASHES[1]))
    for place, curve in enumerate(curves):
        if curve.label.startswith("uniform"):
            yield curve, "black", _DASHES[2] if "ell_1" in curve.label else "solid"
        elif "not private" in curve.label:
            yield curve, "black", next(public)
        else:
            yield curve, next(colors), _DASHES[place % 3]


def _published(marks: Ints) -> Iterator[Styled]:
    for (name, regret, reading), color in zip(PUBLISHED, _COLORS, strict=False):
        label = f"{name}, published (read off): {regret:.0f} ± {reading:.0f}"
        share = marks / ROUNDS
        yield Curve(label, marks, regret * share, reading * share), color, _DASHES[1]


def _differences(runs: list[Found], lines: list[Styled]) -> Iterator[Styled]:
    """The lines minus that of uniform play, replica by replica."""
    uniform = next(one for one in runs if one.line.agent == "uniform").outcome.regret
    by_label = {_curve(one).label: one.outcome for one in runs}
    for curve, color, dashes in lines:
        difference = by_label[curve.label].regret - uniform
        yield _banded(curve.label, curve.marks, difference), color, dashes


def _inset(axes: "Axes", title: str, lines: Iterable[Styled]) -> "Axes":
    """What the axis of the whole panel presses flat."""
    inset = axes.inset_axes((0.08, 0.54, 0.38, 0.38))
    for line in lines:
        _line(inset, *line)
        inset.set_xlim(0, int(line[0].marks[-1]))
    inset.set_xticks([])
    inset.tick_params(labelsize="small")
    inset.set_title(title, fontsize="small", loc="left", pad=3)
    return inset


def _line(axes: "Axes", curve: Curve, color: Any, dashes: Any) -> None:
    low, high = curve.mean - curve.half, curve.mean + curve.half
    axes.plot(curve.marks, curve.mean, color=color, ls=dashes, lw=2, label=curve.label)
    axes.fill_between(curve.marks, low, high, color=color, alpha=0.2, lw=0)


def _curve(found: Found) -> Curve:
    regret = found.outcome.regret
    return _banded(f"{_name(found)}: {regret[-1].mean():.3g}", found.outcome.marks, regret)


def _banded(label: str, marks: Ints, values: Floats) -> Curve:
    return Curve(label, marks, values.mean(axis=1), half_band(values))


def _name(found: Found) -> str:
    label, epsilon = found.line.label, found.proof.epsilon
    if epsilon == 0:
        return label
    return f"{label} (" + ("not private)" if isinf(epsilon) else rf"$\epsilon$ = {epsilon:.2g})")
