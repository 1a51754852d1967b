"""Pictures of labs: curves of regret, a mean against a setting, and sliders.

Colours and the frame are seaborn's, which is imported when something is drawn; lines differ in
dashes, too. Bands and bars are 95 % confidence intervals of a mean over replicas, whose number
stands below the axis.
"""

import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from importlib import import_module
from inspect import signature
from math import inf
from textwrap import fill
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandit.base import Floats
from dpbandit.results.plots import DASHES, half_band
from dpbandit.results.runs import AgentRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SPAN_OF_LOGARITHMS = 10
"""Largest value over the smallest one from which a setting has a logarithmic axis."""
_INCHES = (6.8, 4.4)
"""Size of a picture, which fills a page of the documentation and can be read on a telephone."""
_TITLE_LETTERS = 58
"""Letters of a title in a line."""
_MAX_TICKS = 8
"""Number of values of a setting up to which each has a tick of its own."""


def curves(
    runs: Iterable[AgentRun] | Mapping[str, Floats],
    *,
    rounds: Sequence[int] | None = None,
    labels: Mapping[str, str] | None = None,
    ax: "Axes | None" = None,
    **settings: Any,
) -> "Axes":
    """Draw mean cumulative regret against the round, with bands; return the axes.

    Args:
        runs: results of `compare`, or the regret (rounds, replicas) of each name.
        rounds: logged rounds of such arrays; None if they are 1, 2, ...
        labels: names in the legend, and their order; None for all in the given order.
        ax: axes to draw on, new ones by default.
        settings: further ones of the axes, such as `title` or `yscale`.
    """
    lines: dict[str, tuple[Any, Floats]]
    if isinstance(runs, Mapping):
        lines = {name: (rounds, regret) for name, regret in runs.items()}
    else:
        lines = {run.name: (run.marks, run.regret) for run in runs}
    labels = dict(zip(lines, lines, strict=True)) if labels is None else labels
    ax = ax or _axes()
    for place, (name, label) in enumerate(labels.items()):
        rounds, regret = lines[name]
        marks = np.arange(1, len(regret) + 1) if rounds is None else np.asarray(rounds)
        mean, half = regret.mean(axis=1), half_band(regret)
        dashes = DASHES[place % len(DASHES)]
        (line,) = ax.plot(marks, mean, ls=dashes, lw=2.5, label=label)
        ax.fill_between(marks, mean - half, mean + half, color=line.get_color(), alpha=0.2, lw=0)
    about = {"xlabel": "round (one user each)", "ylabel": "cumulative regret", **settings}
    limits: dict[str, Any] = {"xlim": (int(about.get("xscale") == "log"), marks[-1])}
    limits["ylim"] = (None if about.get("yscale") == "log" else 0, None)
    ax.legend()
    return _finished(ax, limits | about, {lines[name][1].shape[1] for name in labels})


def against(
    lines: Mapping[str, Sequence[Floats] | Floats],
    setting: Mapping[str, Sequence[Any]],
    *,
    ax: "Axes | None" = None,
    **settings: Any,
) -> "Axes":
    """Draw means over replicas against a setting, with bars; return the axes.

    >>> axes = against({"regret": [[9.0, 11.0], [4.0, 6.0]]}, {"epsilon": [0.1, 1.0]})
    >>> axes.get_xlabel().splitlines(), axes.get_xscale()
    (['epsilon', '(means of 2, with 95 % intervals)'], 'log')

    Args:
        lines: for each name one array of replicas for each value of the setting.
        setting: label of the axis, and the values, numbers or words: `{"epsilon": [0.1, 1, inf]}`.
            On a logarithmic axis 0 is at the left end, and infinity is always at the right one.
        ax: axes to draw on, new ones by default.
        settings: further ones of the axes, such as `title` or `ylabel`.
    """
    ((name, steps),) = setting.items()
    ax = ax or _axes()
    worded = isinstance(steps[0], str)
    scale, places = _placed(steps)
    arrays = {label: np.asarray(replicas, dtype=np.float64) for label, replicas in lines.items()}
    for place, (label, array) in enumerate(arrays.items()):
        aside = 0.15 * (place - (len(lines) - 1) / 2) * worded
        ax.errorbar(
            np.add(places, aside),
            array.mean(axis=1),
            half_band(array),
            marker="o",
            ls="none" if worded else DASHES[place % len(DASHES)],
            capsize=3,
            label=label,
        )
    ax.set_xscale(scale)
    if len(steps) <= _MAX_TICKS:
        ax.set_xticks(places, [_text(step) for step in steps])
        ax.minorticks_off()
    if len(lines) > 1:
        ax.legend()
    least = min(array.mean(axis=1).min() for array in arrays.values())
    if settings.get("yscale") != "log" and least >= 0:  # what is drawn later may still be higher
        ax.update_datalim([(places[0], 0)])
        edges: Any = ax.lines[0].sticky_edges.y
        edges.append(0)
        ax.autoscale_view()
    about = {"xlabel": name, **settings}
    return _finished(ax, about, {array.shape[1] for array in arrays.values()})


def _placed(steps: Sequence[Any]) -> tuple[str, list[float]]:
    """Return the scale of an axis for these values, and their places on it."""
    if isinstance(steps[0], str):
        return "linear", [float(place) for place in range(len(steps))]
    positive = [step for step in steps if 0 < step < inf]
    least, most = min(positive), max(step for step in steps if step < inf)
    logarithmic = min(steps) >= 0 and most >= _SPAN_OF_LOGARITHMS * least
    ends = {inf: 3 * most, **({0.0: least / 3} if logarithmic else {})}
    return "log" if logarithmic else "linear", [ends.get(step, step) for step in steps]


def _text(step: Any) -> str:
    """Return a value of a setting as a label."""
    return "∞" if step == inf else step if isinstance(step, str) else f"{step:,g}"


def sliders(draw: Callable[..., Any], **values: Sequence[Any]) -> None:
    """Show a slider for each of these arguments of `draw` in a notebook; elsewhere draw once.

    The defaults of the arguments are where sliders begin, and what is drawn elsewhere. Sliders
    need ipywidgets, which the extra `labs` installs.
    """
    if not _in_notebook():
        draw()
        return
    widgets = import_module("ipywidgets")
    known = signature(draw).parameters
    each = {
        name: widgets.SelectionSlider(
            options=[(_text(step), step) for step in steps],
            value=known[name].default,
            continuous_update=False,
        )
        for name, steps in values.items()
    }

    def show(**chosen: Any) -> None:
        draw(**chosen)  # what it returns is not shown

    widgets.interact(show, **each)


def _in_notebook() -> bool:
    """Return whether a notebook's kernel runs this, and ipywidgets is installed."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    try:
        import_module("ipywidgets")
    except ImportError:
        return False
    return hasattr(shell, "kernel")


def _axes() -> "Axes":
    pyplot = import_module("matplotlib.pyplot")
    axes: Axes = pyplot.subplots(figsize=_INCHES, layout="constrained")[1]
    return axes


def _finished(ax: "Axes", settings: dict[str, Any], counts: Collection[int]) -> "Axes":
    """Set properties of the axes, with the title at the left, and remove the frame's upper half.

    The label below says of how many replicas means are.
    """
    if title := settings.pop("title", ""):
        ax.set_title(
            fill(title, _TITLE_LETTERS) if len(title) > _TITLE_LETTERS else title, loc="left"
        )
    ax.set(**settings)
    several = " and ".join(f"{count:,}" for count in sorted(counts))
    ax.set_xlabel(f"{ax.get_xlabel()}\n(means of {several}, with 95 % intervals)")
    import_module("seaborn").despine(ax=ax)
    return ax
