"""The command of the study of experts."""

from pathlib import Path

from dpbandit.experiments.experts import tables
from dpbandit.experiments.study import Found, Sizes, command, read, start

STUDY = read("experts")


def run(sizes: Sizes, out: Path) -> Found:
    """Regret against T, d and epsilon where one expert never errs. Resumes where it stopped."""
    found = STUDY.measure(sizes, out)
    frames = {"summary": found.table(), "slopes": STUDY.slopes(found)}
    every = [*STUDY.tables(found, sizes), *tables(found)]
    return Found(frames, STUDY.draw(found, sizes, out), every)


main = command("experts", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
