"""The command of the study of customers who come back."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpbandit.base.tables import Table
from dpbandit.experiments.study import Found, Sizes, command, read, start
from dpbandit.results.runs import AgentRun

STUDY = read("returning_prices")  # contents of the folder's study.toml
_TABLE_COLUMNS = ("shift", "spread", "agent", "certified_epsilon", "mean", "se")  # to print


def survey(run: AgentRun) -> Mapping[str, Any]:
    """Return bias and spread of the customer survey on which agents' priors rest."""
    arguments = run.setup.env_kwargs
    settings = {"shift": ("survey_shift", 0.0), "spread": ("survey_spread", 1.0)}
    return {name: arguments.get(*one) for name, one in settings.items()}


def run(sizes: Sizes, out: Path) -> Found:
    """Measure regret of prices for returning customers. Resumes where it stopped."""
    found = STUDY.measure(sizes, out)
    rows = found.table(survey)
    summary = Table(*_TABLE_COLUMNS, title="regret", box=None, keys=3)
    for row in rows[[*_TABLE_COLUMNS]].itertuples(index=False):
        summary.add_row(*(one if isinstance(one, str) else f"{one:.5g}" for one in row))
    return Found({"summary": rows}, STUDY.draw(found, sizes, out), [summary])


main = command("returning_prices", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
