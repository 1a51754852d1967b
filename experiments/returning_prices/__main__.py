"""Regret of prices for customers who come back, and of a survey that is wrong. See README.md."""

from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from dpbandit.base import Floats, write_atomically
from dpbandit.base.tables import Table
from dpbandit.experiments.questions import Found, command, measured, panes, start
from dpbandit.results.plots import from_zero, legend_at_the_foot, level, line
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun
from dpbandit.studies import Sweep

HERE = Path(__file__).parent
QUICK: Mapping[str, Any] = {"replicas": 2, "horizons": [400], "people": 10}
_SHOWN = ("shift", "spread", "agent", "certified_epsilon", "mean", "se")
_EDGES = np.array([0, 1, 2, 3, 5, 8, 12, 20, 40])
"""Visits after which regret is read"""
_FAR = ("Uniform", "fade on demand, told first visits")
"""Not drawn: they lose about twice as much as the others"""
_LEVELS = {"BestFixed": "best fixed price"}


def by_visit(run: AgentRun) -> Floats:
    """Regret a visit between two of `_EDGES`, of a run in which all take turns: (n, R)."""
    people = run.setup.horizon / _EDGES[-1]
    marks = np.concatenate([[0], run.marks])
    total = np.concatenate([np.zeros((1, run.regret.shape[1])), run.regret])
    read = np.array([np.interp(_EDGES * people, marks, one) for one in total.T]).T
    return np.asarray(np.diff(read, axis=0) / (np.diff(_EDGES) * people)[:, None])


def table(*results: Results) -> pd.DataFrame:
    """Summaries, each row with what was wrong with the survey."""
    frames = []
    for one in results:
        said = [run.setup.env_kwargs for run in one.runs]
        shift = [each.get("survey_shift", 0.0) for each in said]
        spread = [each.get("survey_spread", 1.0) for each in said]
        frames.append(one.summary().assign(shift=shift, spread=spread))
    return pd.concat(frames)


def figures(results: Results, out: Path) -> Iterator[Path]:
    """Write visits.png into `out`."""
    yield write_atomically(out / "visits.png", partial(_visits, results=results))


def _visits(path: Path, results: Results) -> None:
    lines = {run.name: [run] for run in results.runs if run.name not in _FAR}
    panel = {"500 customers, 40 visits, epsilon 1 a person": lines}
    middle = (_EDGES[:-1] + _EDGES[1:] + 1) / 2
    with panes(path, panel, "What a customer's own history is worth", (7.6, 6.2)) as (axes,):
        for look, (name, (run,)) in enumerate(lines.items()):
            values = by_visit(run)
            if name in _LEVELS:
                shade, dashes = level(0)
                mean = values.mean(axis=1)
                axes.plot(middle, mean, color=shade, ls=dashes, lw=1.4, label=_LEVELS[name])
            else:
                line(axes, middle.tolist(), list(values), name, look)
        axes.set_xscale("log")
        axes.set_xticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
        axes.minorticks_off()
        from_zero(axes)
        axes.set_xlabel("visit of a customer")
        axes.set_ylabel("regret a visit, cents a kWh")
        legend_at_the_foot(axes, 2)


def run(sizes: Mapping[str, Any], out: Path) -> Found:
    """Regret of prices for customers who come back. Resumes where it stopped."""
    update = {key: value for key, value in sizes.items() if key != "people"}
    studies = []
    for name, folder in (("study.toml", out), ("wrong.toml", out / "wrong")):
        study = Sweep.read(HERE / name).model_copy(update=update)
        if people := sizes.get("people"):
            few = [
                world.model_copy(update={"arguments": {**world.arguments, "people": people}})
                for world in study.environments
            ]
            study = study.model_copy(update={"environments": few})
        studies.append(measured(study, folder))
    rows = table(*studies)
    shown = Table(*_SHOWN, title="regret", box=None, keys=3)
    for row in rows[[*_SHOWN]].itertuples(index=False):
        shown.add_row(*(one if isinstance(one, str) else f"{one:.5g}" for one in row))
    return Found({"summary": rows}, figures(studies[0], out), [shown])


main = command("returning_prices", run, {}, QUICK)

if __name__ == "__main__":
    start(main)
