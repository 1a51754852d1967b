"""`python -m dpbandit.experiments.private_pricing [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from dpbandit.experiments.private_pricing import QUICK, Sizes, figures, questions, slopes, tables
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


def main(
    quick: Quick = False, out: Out = Path("out/private_pricing"), replicas: Replicas = None
) -> None:
    """Regret of private pricing against T, beside proved rates. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas, out)
    found = answers("Private pricing", questions(sizes), out, replicas=sizes.replicas)
    frames = {"summary": found.table(), "slopes": slopes_table(slopes(found))}
    tell(tables(found), figures(found, out), frames, out)


if __name__ == "__main__":
    start(main)
