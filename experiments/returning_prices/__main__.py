"""`python -m dpbandit.experiments.returning_prices [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from dpbandit.base import check_writable
from dpbandit.experiments.questions import Out, Quick, Replicas, measured, sized, start, tell
from dpbandit.experiments.returning_prices import figures, table
from dpbandit.studies import Sweep

HERE = Path(__file__).parent
QUICK = {"replicas": 2, "horizons": [400]}


def main(
    quick: Quick = False, out: Out = Path("out/returning_prices"), replicas: Replicas = None
) -> None:
    """Regret of prices for customers who come back. Resumes where it stopped."""
    update = sized(QUICK if quick else {}, replicas)
    check_writable(out / "summary.csv")
    studies = []
    for name, folder in (("study.toml", out), ("wrong.toml", out / "wrong")):
        study = Sweep.read(HERE / name).model_copy(update=update)
        if quick:
            few = [
                world.model_copy(update={"arguments": {**world.arguments, "people": 10}})
                for world in study.environments
            ]
            study = study.model_copy(update={"environments": few})
        studies.append(measured(study, folder))
    found = table(*studies)
    print(found[["shift", "spread", "agent", "certified_epsilon", "mean", "se"]].to_string())
    tell((), figures(studies[0], out), {"summary": found}, out)


if __name__ == "__main__":
    start(main)
