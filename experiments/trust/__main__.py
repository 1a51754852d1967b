"""`python -m dpbandit.experiments.trust [--quick] [--out DIR] [--replicas R]`."""

from math import inf
from pathlib import Path

import pandas as pd
from rich.console import Console

from dpbandit.base import check_writable, write_csv
from dpbandit.experiments.questions import (
    Out,
    Quick,
    Replicas,
    along,
    claim,
    mean,
    measured,
    sized,
    start,
)
from dpbandit.experiments.trust import by_problem, by_visits, figures, visits
from dpbandit.results.plots import final
from dpbandit.results.runs import AgentRun
from dpbandit.studies import Sweep

HERE = Path(__file__).parent
QUICK = {"replicas": 2}
QUICK_PEOPLE = {"people": 20, "visits": 20}
QUICK_TRUST = {"horizons": [400], "epsilons": [1.0, inf]}


def main(quick: Quick = False, out: Out = Path("out/trust"), replicas: Replicas = None) -> None:
    """Regret under four models of trust, and of people who return. Resumes where it stopped."""
    update = sized(QUICK if quick else {}, replicas)
    check_writable(out / "summary.csv")
    study = Sweep.read(HERE / "study.toml")
    trust = measured(study.model_copy(update=update | (QUICK_TRUST if quick else {})), out)
    people = Sweep.read(HERE / "returning.toml").model_copy(update=update)
    if quick:
        few = people.environments[0].model_copy(update={"arguments": QUICK_PEOPLE})
        rounds = QUICK_PEOPLE["people"] * QUICK_PEOPLE["visits"]
        people = people.model_copy(update={"environments": [few], "horizons": [rounds]})
    returning = measured(people, out / "returning")
    tables = {f"regret, {name}": (found, claim) for name, found in by_problem(trust).items()}
    tables["regret of people who return, epsilon 1"] = by_visits(returning), _often
    for title, (found, heading) in tables.items():
        every = 2 if heading is claim else 1  # a terminal holds three
        Console().print(along(title, found, heading, lambda run: mean(final(run)), every=every))
    for path in figures(trust, returning, out):
        print(f"Written to {path}.")
    rows = pd.concat([trust.summary(), returning.summary()])
    print(f"Written to {write_csv(out / 'summary.csv', rows)}.")


def _often(run: AgentRun) -> str:
    return f"{visits(run):g} visits"


if __name__ == "__main__":
    start(main)
