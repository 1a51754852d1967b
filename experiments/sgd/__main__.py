"""`python -m dpbandit.experiments.sgd [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from dpbandit.experiments.questions import Out, Quick, Replicas, chosen, start, tell
from dpbandit.experiments.sgd import QUICK, SCALES, Sizes, entries, measure, summary, tables
from dpbandit.experiments.sgd.figures import figures


def main(quick: Quick = False, out: Out = Path("out/sgd"), replicas: Replicas = None) -> None:
    """Table 5.1 as printed, as stated, without privacy and as certified; three figures.

    Resumes where it stopped.
    """
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas, out)
    found = measure(sizes, out)
    beside = entries(sizes, found)
    drawn = figures(beside, found.runs[SCALES], out)
    tell(tables(beside), drawn, {"summary": summary(beside)}, out)


if __name__ == "__main__":
    start(main)
