"""The study: all runs of the five questions, and the tables of what they found."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpbandit.base.files import write_csv
from dpbandit.experiments.grid import run_grid
from dpbandit.experiments.window.costs import Timing, timings
from dpbandit.experiments.window.plan import Plan
from dpbandit.experiments.window.questions import horizons, retention, windows
from dpbandit.experiments.window.runs import Found, FoundPanels, Panels
from dpbandit.experiments.window.table_1 import READINGS, Entry, Selection, Size, measure
from dpbandit.results.slopes import Slope, slope

QUESTIONS: dict[str, Callable[[Plan], Panels]] = {
    "windows": windows,
    "horizons": horizons,
    "retention": retention,
}


@dataclass(frozen=True)
class Findings:
    """What was found, by question."""

    plan: Plan
    answers: Mapping[str, FoundPanels]
    timings: Sequence[Timing]
    table_1: Sequence[Entry]

    def slopes(self) -> dict[tuple[str, str], Slope]:
        """(problem, label) -> the exponent of its growth in T."""
        return {
            (problem, label): slope([f.run.horizon for f in line], [f.regret for f in line])
            for problem, lines in self.answers["horizons"].items()
            for label, line in lines.items()
            if len(line) > 1
        }

    def table(self) -> pd.DataFrame:
        """One row for each run; a run that answers several questions has several."""
        rows = [
            {"question": question, "line": label, "at": found.run.at, **found.row()}
            for question, panels in self.answers.items()
            for lines in panels.values()
            for label, line in lines.items()
            for found in line
        ]
        return pd.DataFrame(rows)


def study(plan: Plan, out: Path, *, progress: bool = True) -> Findings:
    """Run what is missing below `out`/cells; write four tables (.csv) into `out`."""
    panels = {question: ask(plan) for question, ask in QUESTIONS.items()}
    runs = {
        f"{question}/{run.name}": run
        for question, answers in panels.items()
        for lines in answers.values()
        for line in lines.values()
        for run in line
    }
    cells = {name: run.cell() for name, run in runs.items()}
    outcomes = run_grid(cells, out / "cells", progress=progress)
    answers = {
        question: {
            problem: {
                label: [Found(run, outcomes[f"{question}/{run.name}"]) for run in line]
                for label, line in lines.items()
            }
            for problem, lines in asked.items()
        }
        for question, asked in panels.items()
    }
    size = Size(plan.horizon, plan.fixed_windows[-1], plan.epsilon, plan.delta)
    entries = measure(
        Selection(size=size),
        READINGS,
        out / "cells" / "table-1",
        replicas=plan.replicas,
        seed=plan.seed,
        progress=progress,
    )
    found = Findings(
        plan, answers, timings(plan, out / "cells" / "costs", progress=progress), entries
    )
    slopes = [
        {"problem": p, "line": name, **s._asdict()} for (p, name), s in found.slopes().items()
    ]
    tables = {
        "summary": found.table(),
        "slopes": pd.DataFrame(slopes),
        "costs": pd.DataFrame([timing.row() for timing in found.timings]),
        "table-1": pd.DataFrame([entry.record() for entry in entries]),
    }
    for name, table in tables.items():
        write_csv(out / f"{name}.csv", table)
    return found
