"""`python -m dpbandit.experiments.convex [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from dpbandit.experiments.convex import QUICK, Sizes, figures, questions, slopes, tables
from dpbandit.experiments.questions import (
    Out,
    Quick,
    Replicas,
    answers,
    chosen,
    slopes_table,
    start,
    tell,
)


def main(quick: Quick = False, out: Out = Path("out/convex"), replicas: Replicas = None) -> None:
    """Regret against T and epsilon on convex problems. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas, out)
    found = answers("Points of a convex domain", questions(sizes), out, replicas=sizes.replicas)
    frames = {"summary": found.table(), "slopes": slopes_table(slopes(found))}
    tell(tables(found), figures(found, out), frames, out)


if __name__ == "__main__":
    start(main)
