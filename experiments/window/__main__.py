"""The command of the study of privacy that expires, with Table I and times of rounds."""

from pathlib import Path

import pandas as pd

from dpbandit.experiments.study import Answers, Found, Sizes, command, read, start
from dpbandit.experiments.window import READINGS, ROWS, Size, costs, costs_table, measure, report
from dpbandit.results.runs import AgentRun, protected

STUDY = read("window")  # contents of the folder's study.toml


def run(sizes: Sizes, out: Path) -> Found:
    """Measure regret against W, T and epsilon where privacy expires, and times of rounds.

    Resumes where it stopped.
    """
    found, known = STUDY.measure(sizes, out), {**STUDY.sizes, **sizes}
    timed = STUDY.panes(STUDY.questions["costs"], sizes), found.runs["costs"]
    size = Size(known["horizon"], known["fixed_windows"][-1], known["epsilon"], known["delta"])
    where, how = out / "table-1", {"replicas": known["replicas"], "seed": 0}
    entries = measure(ROWS, size, READINGS, where, **how)
    frames = {
        "summary": Answers({**found.runs, "costs": {}}).table(_more),
        "slopes": STUDY.slopes(found),
        "costs": costs(*timed),
        "table-1": pd.DataFrame([entry.record() for entry in entries]),
    }
    tables = [*STUDY.tables(found, sizes), costs_table(*timed), *report(entries)]
    return Found(frames, STUDY.draw(found, sizes, out), tables)


def _more(run: AgentRun) -> dict[str, str]:
    return {"algorithm": run.config["agent"], "protected": protected(run)}


main = command("window", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
