"""`python -m dpbandit.experiments.experts [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from dpbandit.experiments.experts import QUICK, Sizes, questions
from dpbandit.experiments.experts.figure import figures, slopes_csv, tables
from dpbandit.experiments.questions import (
    Answers,
    Out,
    Quick,
    Replicas,
    answers,
    chosen,
    start,
    tell,
)


def main(quick: Quick = False, out: Out = Path("out/experts"), replicas: Replicas = None) -> None:
    """Regret against T, d and epsilon where one expert never errs. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas, out)
    found = measure(sizes, out)
    frames = {"summary": found.table(), "slopes": slopes_csv(found)}
    tell(tables(found), figures(found, out), frames, out)


def measure(sizes: Sizes, out: Path, *, progress: bool = True) -> Answers:
    """All questions; those with many replicas in a folder of their own."""
    few, many = questions(sizes)
    name = "Experts, one of whom never errs"
    one = answers(name, few, out, replicas=sizes.replicas, progress=progress)
    other = answers(name, many, out / "audited", replicas=sizes.audited, progress=progress)
    return Answers({**one.runs, **other.runs})


if __name__ == "__main__":
    start(main)
