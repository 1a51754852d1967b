"""Regret of prices for customers who come back, and of a survey that is wrong. See README.md."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from rich.table import Table

from dpbandit.experiments.questions import Found, command, measured, start
from dpbandit.experiments.returning_prices import figures, table
from dpbandit.studies import Sweep

HERE = Path(__file__).parent
QUICK: Mapping[str, Any] = {"replicas": 2, "horizons": [400], "people": 10}
_SHOWN = ("shift", "spread", "agent", "certified_epsilon", "mean", "se")


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
    shown = Table(*_SHOWN, title="regret", box=None)
    for row in rows[[*_SHOWN]].itertuples(index=False):
        shown.add_row(*(one if isinstance(one, str) else f"{one:.5g}" for one in row))
    return Found({"summary": rows}, figures(studies[0], out), [shown])


main = command("returning_prices", run, {}, QUICK)

if __name__ == "__main__":
    start(main)
