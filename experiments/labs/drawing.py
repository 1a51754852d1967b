"""Pictures of labs: curves of regret, a mean against a setting, and sliders.

Colours and the frame are seaborn's, which is imported when something is drawn; lines differ in
dashes, too. Bands and bars are 95 % confidence intervals of a mean over replicas.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np

from dpbandit.base import Floats
from dpbandit.results.plots import DASHES, half_band
from dpbandit.results.runs import AgentRun

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_SPAN_OF_LOGARITHMS = 10
"""Largest value over the smallest one from which a setting has a logarithmic axis."""


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
        settings: further ones of the axes, such as `title` or `ylim`.
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
    ax.set(xlim=(0, marks[-1]), ylim=(0, None), xlabel="round (one user each)")
    ax.legend()
    return _finished(ax, {"ylabel": "cumulative regret", **settings})


def against(
    lines: Mapping[str, Sequence[Floats] | Floats],
    *,
    ax: "Axes | None" = None,
    setting: Mapping[str, Any] | None = None,
    **values: Sequence[float],
) -> "Axes":
    """Draw means over replicas against a setting, with bars; return the axes.

    >>> axes = against({"regret": [[9.0, 11.0], [4.0, 6.0]]}, epsilon=[0.1, 1.0])
    >>> axes.get_xlabel(), axes.get_xscale()
    ('epsilon', 'log')

    Args:
        lines: for each name one array of replicas for each value of the setting.
        ax: axes to draw on, new ones by default.
        setting: properties of the axes, such as `title` or `ylabel`.
        values: the setting and its values, `epsilon=[0.1, 1, inf]`; infinity is at the right end.
    """
    ((name, steps),) = values.items()
    finite = [float(step) for step in steps if step != inf]
    ax = ax or _axes()
    logarithmic = min(finite) > 0 and max(finite) >= _SPAN_OF_LOGARITHMS * min(finite)
    places = [3 * max(finite) if step == inf else step for step in steps]
    for place, (label, replicas) in enumerate(lines.items()):
        array = np.asarray(replicas, dtype=np.float64)
        ax.errorbar(
            places,
            array.mean(axis=1),
            half_band(array),
            marker="o",
            ls=DASHES[place % len(DASHES)],
            capsize=3,
            label=label,
        )
    if logarithmic:
        ax.set_xscale("log")
    ax.set_xticks(places, ["∞" if step == inf else f"{step:,g}" for step in steps])
    ax.minorticks_off()
    if len(lines) > 1:
        ax.legend()
    return _finished(ax, {"xlabel": name, **(setting or {})})


def sliders(draw: Callable[..., Any], **values: Sequence[Any]) -> None:
    """Show a slider for each argument of `draw` in a notebook; elsewhere draw the middle values.

    Sliders need ipywidgets, which the extra `labs` installs.
    """
    middle = {name: steps[len(steps) // 2] for name, steps in values.items()}
    if _in_notebook():
        widgets = import_module("ipywidgets")
        each = {
            name: widgets.SelectionSlider(
                options=list(steps), value=middle[name], continuous_update=False
            )
            for name, steps in values.items()
        }
        widgets.interact(draw, **each)
    else:
        draw(**middle)


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
    axes: Axes = pyplot.subplots(figsize=(8, 4.4))[1]
    return axes


def _finished(ax: "Axes", settings: dict[str, Any]) -> "Axes":
    """Set properties of the axes, with the title at the left, and remove the frame's upper half."""
    if title := settings.pop("title", ""):
        ax.set_title(title, loc="left")
    ax.set(**settings)
    import_module("seaborn").despine(ax=ax)
    return ax
