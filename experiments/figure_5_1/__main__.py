"""`python -m dpbandit.experiments.figure_5_1 [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from dpbandit.base.files import check_writable
from dpbandit.experiments.command import Out, Quick, Replicas, chosen, start
from dpbandit.experiments.figure_5_1.figure import draw
from dpbandit.experiments.figure_5_1.study import QUICK, Plan, study


def main(
    quick: Quick = False, out: Out = Path("out/figure_5_1"), replicas: Replicas = None
) -> None:
    """Figure 5.1 as printed, as specified and as certified. Resumes where it stopped."""
    plan = chosen(QUICK if quick else Plan(), replicas)
    check_writable(out / "figure_5_1.png")
    found = study(plan, out)
    for name, (_, outcome, proof) in found.items():
        regret = outcome.regret[-1].mean()
        print(f"{name:14} regret {regret:7.1f}   certified epsilon {proof.epsilon:.3g}")
    print(f"Written to {out / 'certificates.json'}.")
    print(f"Written to {draw(out / 'figure_5_1.png', found)}.")


if __name__ == "__main__":
    start(main)
