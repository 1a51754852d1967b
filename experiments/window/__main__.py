"""`python -m dpbandit.experiments.window [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

import pandas as pd

from dpbandit.experiments.questions import (
    Out,
    Quick,
    Replicas,
    answers,
    chosen,
    slopes_table,
    start,
    tell,
)
from dpbandit.experiments.window import QUICK, Sizes, questions, timings
from dpbandit.experiments.window.figure import Findings, figures, promised, slopes, tables
from dpbandit.experiments.window.table_1 import READINGS, Selection, Size, measure, shown
from dpbandit.results.runs import AgentRun, protected


def _more(run: AgentRun) -> dict[str, str]:
    return {"algorithm": run.config["agent"], "protected": protected(run)}


def main(quick: Quick = False, out: Out = Path("out/window"), replicas: Replicas = None) -> None:
    """Regret where privacy expires, against W, T and epsilon, and what rounds cost.

    Resumes where it stopped.
    """
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas, out)
    found = answers("Privacy that expires", questions(sizes), out, replicas=sizes.replicas)
    findings = Findings(promised(found), timings(sizes, out / "costs"))
    size = Size(sizes.horizon, sizes.fixed_windows[-1], sizes.epsilon, sizes.delta)
    where = out / "table-1"
    entries = measure(Selection(size=size), READINGS, where, replicas=sizes.replicas, seed=0)
    written = {
        "summary": findings.answers.table(_more),
        "slopes": slopes_table(slopes(findings.answers)),
        "costs": pd.DataFrame([timing.row() for timing in findings.timings]),
        "table-1": pd.DataFrame([entry.record() for entry in entries]),
    }
    tell([*tables(findings), *shown(entries)], figures(findings, out), written, out)


if __name__ == "__main__":
    start(main)
