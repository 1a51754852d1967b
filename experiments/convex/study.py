"""The study: all runs of the four questions, and the tables of what they found."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from dpbandit.base.files import write_csv
from dpbandit.experiments.convex.adaptivity import adversaries
from dpbandit.experiments.convex.epsilons import prices
from dpbandit.experiments.convex.horizons import growth, signs
from dpbandit.experiments.convex.plan import Plan
from dpbandit.experiments.convex.runs import Found, FoundPanels, Panels
from dpbandit.experiments.grid import run_grid
from dpbandit.results.slopes import Slope, slope

QUESTIONS: dict[str, Callable[[Plan], Panels]] = {
    "growth": growth,
    "signs": signs,
    "prices": prices,
    "adversaries": adversaries,
}


@dataclass(frozen=True)
class Findings:
    """What was found, by question."""

    plan: Plan
    answers: Mapping[str, FoundPanels]

    def slopes(self) -> dict[tuple[str, str], Slope]:
        """(problem, label) -> the exponent of its growth."""
        return {
            (problem, label): slope([f.run.horizon for f in line], [f.regret for f in line])
            for problem, lines in self.answers["growth"].items()
            for label, line in lines.items()
            if len(line) > 1
        }

    def table(self) -> pd.DataFrame:
        """One row for each run; a run that answers several questions has several."""
        rows = [
            {"question": question, "line": label, **found.row()}
            for question, panels in self.answers.items()
            for lines in panels.values()
            for label, line in lines.items()
            for found in line
        ]
        return pd.DataFrame(rows)


def study(plan: Plan, out: Path, *, progress: bool = True) -> Findings:
    """Run what is missing below `out`/cells; write summary.csv and slopes.csv into `out`."""
    panels = {question: ask(plan) for question, ask in QUESTIONS.items()}
    runs = {
        run.name: run
        for answers in panels.values()
        for lines in answers.values()
        for line in lines.values()
        for run in line
    }
    cells = {name: run.cell() for name, run in runs.items()}
    outcomes = run_grid(cells, out / "cells", progress=progress)

    def found(name: str) -> Found:
        run = runs[name]
        return Found(run, outcomes[name], outcomes.get(run.without_privacy))

    answers = {
        question: {
            problem: {label: [found(run.name) for run in line] for label, line in lines.items()}
            for problem, lines in asked.items()
        }
        for question, asked in panels.items()
    }
    findings = Findings(plan, answers)
    slopes = pd.DataFrame(
        [{"problem": p, "line": name, **s._asdict()} for (p, name), s in findings.slopes().items()]
    )
    for file, table in (("summary.csv", findings.table()), ("slopes.csv", slopes)):
        write_csv(out / file, table)
    return findings
