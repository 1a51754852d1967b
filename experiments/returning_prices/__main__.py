"""The command of the study of customers who come back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpbandit.base.tables import Table
from dpbandit.experiments.study import Found, Sizes, command, read, start
from dpbandit.results.runs import AgentRun

STUDY = read("returning_prices")
_SHOWN = ("shift", "spread", "agent", "certified_epsilon", "mean", "se")


def survey(run: AgentRun) -> Mapping[str, Any]:
    """Say what was wrong with the survey."""
    arguments = run.setup.env_kwargs
    told = {"shift": ("survey_shift", 0.0), "spread": ("survey_spread", 1.0)}
    return {name: arguments.get(*one) for name, one in told.items()}


def run(sizes: Sizes, out: Path) -> Found:
    """Regret of prices for customers who come back. Resumes where it stopped."""
    found = STUDY.measure(sizes, out)
    rows = found.table(survey)
    shown = Table(*_SHOWN, title="regret", box=None, keys=3)
    for row in rows[[*_SHOWN]].itertuples(index=False):
        shown.add_row(*(one if isinstance(one, str) else f"{one:.5g}" for one in row))
    return Found({"summary": rows}, STUDY.draw(found, sizes, out), [shown])


main = command("returning_prices", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
