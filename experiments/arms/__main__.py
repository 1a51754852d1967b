"""`python -m dpbandit.experiments.arms [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

import pandas as pd

from dpbandit.base import check_writable
from dpbandit.experiments.arms.figure import figures, table
from dpbandit.experiments.questions import Out, Quick, Replicas, measured, sized, start, tell
from dpbandit.studies import Sweep

QUICK = {"horizons": [60, 90], "replicas": 2, "epsilons": [1.0, 4.0]}


def main(quick: Quick = False, out: Out = Path("out/arms"), replicas: Replicas = None) -> None:
    """Instances x epsilon x rounds. Resumes where it stopped."""
    update = sized(QUICK if quick else {}, replicas)
    check_writable(out / "summary.csv")
    study = Sweep.read(Path(__file__).with_name("study.toml")).model_copy(update=update)
    results = measured(study, out)
    found: pd.DataFrame = table(results)
    print(found[["means", "horizon", "agent", "claimed_epsilon", "mean", "se"]].to_string())
    tell((), figures(results, out), {"summary": found}, out)


if __name__ == "__main__":
    start(main)
