"""Regret of prices for returning customers, by number of the visit. See README.md."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from dpbandit.base import Floats
from dpbandit.experiments.figure import Figure, Pane, RunLines, framed
from dpbandit.results.plots import from_zero, legend_at_the_foot, level, line
from dpbandit.results.runs import AgentRun

_VISIT_EDGES = np.array([0, 1, 2, 3, 5, 8, 12, 20, 40])
"""Edges of the intervals of visit numbers over which regret is averaged"""


def by_visit(run: AgentRun) -> Floats:
    """Return regret per visit between `_VISIT_EDGES`, (intervals, R); customers take turns."""
    people = run.setup.horizon / _VISIT_EDGES[-1]
    marks = np.concatenate([[0], run.marks])
    total = np.concatenate([np.zeros((1, run.regret.shape[1])), run.regret])
    read = np.array([np.interp(_VISIT_EDGES * people, marks, one) for one in total.T]).T
    return np.asarray(np.diff(read, axis=0) / (np.diff(_VISIT_EDGES) * people)[:, None])


def draw_visits(
    path: Path, figure: Figure, panes: Sequence[Pane], found: Mapping[str, RunLines]
) -> None:
    """Draw regret per visit against the number of the visit."""
    middle = (_VISIT_EDGES[:-1] + _VISIT_EDGES[1:] + 1) / 2
    with framed(path, list(found), figure.heading, figure.size, found) as (axes,):
        (lines,) = found.values()
        visible = {label: runs for label, runs in lines.items() if label not in figure.hidden}
        for look, (label, (run,)) in enumerate(visible.items()):
            values = by_visit(run)
            if label in figure.words:
                shade, dashes = level(0)
                how = {"color": shade, "ls": dashes, "label": figure.words[label]}
                axes.plot(middle, values.mean(axis=1), lw=1.4, **how)
            else:
                line(axes, middle.tolist(), list(values), label, look)
        axes.set_xscale("log")
        axes.set_xticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
        axes.minorticks_off()
        from_zero(axes)
        axes.set_xlabel("visit of a customer")
        axes.set_ylabel("regret a visit, cents a kWh")
        legend_at_the_foot(axes, 2)
