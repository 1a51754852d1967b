"""`python -m dpbandit.experiments.trust [--quick] [--out DIR] [--replicas R]`."""

from math import inf
from pathlib import Path

import pandas as pd

from dpbandit.base import check_writable
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
    tell,
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
    tables = [  # a terminal holds three columns
        along(f"regret, {name}", found, claim, _regret, every=2)
        for name, found in by_problem(trust).items()
    ]
    title = "regret of people who return, epsilon 1"
    tables.append(along(title, by_visits(returning), _often, _regret))
    rows = pd.concat([trust.summary(), returning.summary()])
    tell(tables, figures(trust, returning, out), {"summary": rows}, out)


def _regret(run: AgentRun) -> str:
    return mean(final(run))


def _often(run: AgentRun) -> str:
    return f"{visits(run):g} visits"


if __name__ == "__main__":
    start(main)
