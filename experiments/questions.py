"""A study of several questions: lines of configurations, what was found along them, and tables."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import floor, log10
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from rich.table import Table

from dpbandit.base.arrays import Floats
from dpbandit.experiments.command import measured
from dpbandit.results.results import Results
from dpbandit.results.runs import AgentRun, Slope, slope, standard_error
from dpbandit.studies import Configuration, Study

Lines: TypeAlias = Mapping[str, Sequence[Configuration]]
"""label -> configurations along an axis; one alone is a baseline"""
Panels: TypeAlias = Mapping[str, Lines]
"""title -> its lines"""
RunLines: TypeAlias = Mapping[str, Sequence[AgentRun]]
Place: TypeAlias = Callable[[AgentRun], float]
"""Where on its line a run stands"""


@dataclass(frozen=True)
class Answers:
    """What was found: question -> panel -> label -> its runs."""

    runs: Mapping[str, Mapping[str, RunLines]]

    def lines(self) -> Iterator[tuple[str, str, str, Sequence[AgentRun]]]:
        """Question, panel, label and runs of every line."""
        for question, panels in self.runs.items():
            for panel, lines in panels.items():
                for label, line in lines.items():
                    yield question, panel, label, line

    def slopes(self, question: str, place: Place) -> dict[tuple[str, str], Slope]:
        """(panel, label) -> the exponent of regret, of lines of three places or more."""
        return {
            (panel, label): slope([place(run) for run in line], [run.regret[-1] for run in line])
            for asked, panel, label, line in self.lines()
            if asked == question and len({place(run) for run in line}) > 2
        }

    def table(self, more: Callable[[AgentRun], Mapping[str, Any]] = lambda run: {}) -> pd.DataFrame:
        """The summary of every run, once for each question that it answers."""
        return pd.DataFrame(
            [
                {"question": question, "panel": panel, "line": label, **row, **more(run)}
                for question, panel, label, line in self.lines()
                for run in line
                for row in Results((run,)).summary().to_dict("records")
            ]
        )


def answers(
    name: str, questions: Mapping[str, Panels], out: Path, *, replicas: int, progress: bool = True
) -> Answers:
    """Run what is missing of all questions, in the folder `out`; what several ask for runs once."""
    asked = {
        one.key: one
        for panels in questions.values()
        for lines in panels.values()
        for line in lines.values()
        for one in line
    }
    study = Study(name=name, configurations=tuple(asked.values()), replicas=replicas)
    found = {run.key: run for run in measured(study, out, progress=progress).runs}
    return Answers(
        {
            question: {
                panel: {label: [found[one.key] for one in line] for label, line in lines.items()}
                for panel, lines in panels.items()
            }
            for question, panels in questions.items()
        }
    )


def slopes_table(slopes: Mapping[tuple[str, str], Slope], **more: Any) -> pd.DataFrame:
    """One row for each exponent."""
    rows = [{**more, "panel": p, "line": name, **s._asdict()} for (p, name), s in slopes.items()]
    return pd.DataFrame(rows)


def along(
    title: str,
    lines: RunLines,
    heading: Callable[[AgentRun], str],
    cell: Callable[[AgentRun], str],
    *,
    last: tuple[str, Mapping[str, str]] | None = None,
    every: int = 1,
) -> Table:
    """A row for each line, a column for every so many places of the longest from its last one.

    `last` is the heading of one column more, and its cells by label.
    """
    table = Table(title=title, title_justify="left")
    table.add_column("agent", no_wrap=True)
    longest = max(lines.values(), key=len)
    headings = [heading(run) for run in longest[::-every][::-1]]
    for words in [*headings, *([last[0]] if last else [])]:
        table.add_column(words, justify="right")
    for label, line in lines.items():
        cells = {heading(run): cell(run) for run in line}
        if len(line) == 1 and headings[-1] not in cells:  # a baseline that has no place
            cells = {headings[-1]: cell(line[0])}
        row = [cells.get(words, "") for words in headings]
        table.add_row(label, *row, *([last[1].get(label, "")] if last else []))
    return table


def mean(values: Floats) -> str:
    """With its standard error, to two digits of that.

    >>> mean(np.array([1.0, 1.2, 1.4]))
    '1.20 ± 0.12'
    """
    error = standard_error(values)
    digits = max(0, 1 - floor(log10(error))) if 0 < error < np.inf else 4
    return f"{values.mean():,.{digits}f} ± {error:,.{digits}f}"


def per_1000(run: AgentRun) -> Floats:
    """Regret in the end for every 1,000 rounds, (R,)."""
    rate: Floats = 1000 * run.regret[-1] / run.setup.horizon
    return rate


def claim(run: AgentRun) -> str:
    """A heading of what is claimed, which is not what is certified."""
    return f"claims {run.certificate.claimed_epsilon:g}"


def horizon(run: AgentRun) -> float:
    """T."""
    return run.setup.horizon
