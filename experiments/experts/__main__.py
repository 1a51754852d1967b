"""`python -m dpbandit.experiments.experts [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console

from dpbandit.base import check_writable, write_csv
from dpbandit.experiments.experts import QUICK, Sizes, questions
from dpbandit.experiments.experts.figure import figures, slopes_csv, tables
from dpbandit.experiments.questions import Answers, Out, Quick, Replicas, answers, chosen, start


def main(quick: Quick = False, out: Out = Path("out/experts"), replicas: Replicas = None) -> None:
    """Regret against T, d and epsilon where one expert never errs. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas)
    check_writable(out / "summary.csv")
    found = measure(sizes, out)
    write_csv(out / "summary.csv", found.table())
    write_csv(out / "slopes.csv", slopes_csv(found))
    for table in tables(found):
        Console().print(table)
    for path in figures(found, out):
        print(f"Written to {path}.")
    print(f"Written to {out / 'summary.csv'} and {out / 'slopes.csv'}.")


def measure(sizes: Sizes, out: Path, *, progress: bool = True) -> Answers:
    """All questions; those with many replicas in a folder of their own."""
    few, many = questions(sizes)
    name = "Experts, one of whom never errs"
    one = answers(name, few, out, replicas=sizes.replicas, progress=progress)
    other = answers(name, many, out / "audited", replicas=sizes.audited, progress=progress)
    return Answers({**one.runs, **other.runs})


if __name__ == "__main__":
    start(main)
