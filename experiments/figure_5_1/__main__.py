"""`python -m dpbandit.experiments.figure_5_1 [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from dpbandit.base import check_writable, write_csv
from dpbandit.experiments.figure_5_1 import LINES, draw, study
from dpbandit.experiments.questions import Out, Quick, Replicas, measured, sized, start

QUICK = {"horizon": 500, "replicas": 3}


def main(
    quick: Quick = False, out: Out = Path("out/figure_5_1"), replicas: Replicas = None
) -> None:
    """Figure 5.1 as printed, as specified and as certified. Resumes where it stopped."""
    asked = study(**sized(QUICK if quick else {}, replicas))
    check_writable(out / "figure_5_1.png")
    results = measured(asked, out)
    runs = {run.name: run for run in results.runs}
    for name in LINES:
        regret, proof = runs[name].regret[-1].mean(), runs[name].certificate
        print(f"{name:14} regret {regret:7.1f}   certified epsilon {proof.epsilon:.3g}")
    print(f"Written to {write_csv(out / 'summary.csv', results.summary())}.")
    print(f"Written to {draw(out / 'figure_5_1.png', {name: runs[name] for name in LINES})}.")


if __name__ == "__main__":
    start(main)
