"""Lines of runs over their horizons."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dpbandit.base.arrays import Floats
from dpbandit.experiments.convex.runs import FoundLines
from dpbandit.experiments.drawing import DASHES, curve

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def over_horizons(
    axes: "Axes",
    lines: FoundLines,
    value: Callable[[Floats, Any], Floats],
    name: Callable[[str], str] = str,
) -> None:
    """Every line of runs over their horizons; yardsticks, one run each, over its rounds.

    Args:
        axes: where.
        lines: label -> runs.
        value: (regret, rounds) -> what is drawn.
        name: label -> the legend's words.
    """
    learners = {label: line for label, line in lines.items() if len(line) > 1}
    first = min(line[0].run.horizon for line in learners.values())
    for place, (label, line) in enumerate(learners.items()):
        horizons = [found.run.horizon for found in line]
        values = [value(found.regret, found.run.horizon) for found in line]
        curve(axes, place, name(label), horizons, values)
    dumb = (label for label in lines if label not in learners)
    for place, label in enumerate(dumb):
        marks, regret = lines[label][0].outcome.marks, lines[label][0].outcome.regret
        shown = marks >= first
        mean = value(regret, marks[:, None])[shown].mean(axis=1)
        axes.plot(
            marks[shown], mean, color=str(0.3 * place), ls=DASHES[1 + place], lw=1.4, label=label
        )
    axes.set_xscale("log", base=2)
    axes.set_xlabel("horizon T (rounds)")
