"""The study: all runs of all questions, exponents, verdicts, and the tables of what was found."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from math import log
from pathlib import Path
from typing import NamedTuple

import pandas as pd

from dpbandit.base.files import write_csv
from dpbandit.experiments.experts import questions as ask
from dpbandit.experiments.experts.audit import Verdict, verdict
from dpbandit.experiments.experts.plan import Plan
from dpbandit.experiments.experts.runs import Found, FoundPanels, Panels, Run, run_all
from dpbandit.results.slopes import Slope, slope


class Question(NamedTuple):
    """What is asked, and along which axis its exponents are taken."""

    panels: Callable[[Plan], Panels]
    axis: str = ""
    """T, "ln d" or epsilon; "" where there are no lines"""


QUESTIONS = {
    "growth": Question(ask.growth, "T"),
    "sizes": Question(ask.sizes, "ln d"),
    "prices": Question(ask.prices, "epsilon"),
    "counterexample": Question(ask.counterexample, "T"),
    "points": Question(ask.points, "T"),
    "policies": Question(ask.policies, "epsilon"),
    "switches": Question(ask.switches),
    "tails": Question(ask.tails),
}


def place(run: Run, axis: str) -> float:
    """Where on its line a run stands."""
    if axis == "ln d":
        return log(run.problem.n_experts)
    return run.horizon if axis == "T" else run.epsilon


@dataclass(frozen=True)
class Findings:
    """What was found, by question."""

    plan: Plan
    answers: Mapping[str, FoundPanels]

    def slopes(self) -> dict[tuple[str, str, str], Slope]:
        """(question, panel, label) -> the exponent, of agents whose epsilon is that of the line."""
        return {
            (question, panel, label): slope(
                [place(f.run, axis) for f in line], [f.regret for f in line]
            )
            for question, axis in self._axes()
            for panel, lines in self.answers[question].items()
            for label, line in lines.items()
            if len({place(f.run, axis) for f in line}) > 2
        }

    def verdicts(self) -> dict[tuple[str, str], Verdict]:
        """(panel, label) -> what the lower bound says."""
        tails = self.answers["tails"]
        statements = sum(len(lines) for lines in tails.values())
        return {
            (panel, label): verdict(line[0], statements)
            for panel, lines in tails.items()
            for label, line in lines.items()
        }

    def table(self) -> pd.DataFrame:
        """One row for each run; a run that answers several questions has several."""
        rows = [
            {"question": question, "panel": panel, "line": label, **found.row()}
            for question, panels in self.answers.items()
            for panel, lines in panels.items()
            for label, line in lines.items()
            for found in line
        ]
        return pd.DataFrame(rows)

    def slopes_table(self) -> pd.DataFrame:
        """One row for each exponent."""
        axes = dict(self._axes())
        return pd.DataFrame(
            [
                {"question": q, "panel": p, "line": name, "axis": axes[q], **s._asdict()}
                for (q, p, name), s in self.slopes().items()
            ]
        )

    def _axes(self) -> Iterator[tuple[str, str]]:
        return ((name, question.axis) for name, question in QUESTIONS.items() if question.axis)


def study(plan: Plan, out: Path, *, progress: bool = True) -> Findings:
    """Run what is missing below `out`/cells; write summary.csv and slopes.csv into `out`."""
    panels = {name: question.panels(plan) for name, question in QUESTIONS.items()}
    runs = {
        run.name: run
        for answers in panels.values()
        for lines in answers.values()
        for line in lines.values()
        for run in line
    }
    found: dict[str, Found] = run_all(runs, out / "cells", progress=progress)
    answers = {
        name: {
            panel: {label: [found[run.name] for run in line] for label, line in lines.items()}
            for panel, lines in asked.items()
        }
        for name, asked in panels.items()
    }
    findings = Findings(plan, answers)
    for file, table in (("summary", findings.table()), ("slopes", findings.slopes_table())):
        write_csv(out / f"{file}.csv", table)
    return findings
