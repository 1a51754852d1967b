"""The command of the study of experts."""

from collections.abc import Iterator
from pathlib import Path

from dpbandit.base.tables import Table
from dpbandit.experiments.experts import verdicts
from dpbandit.experiments.study import Answers, Found, Sizes, command, read, start, tabulated

STUDY = read("experts")  # contents of the folder's study.toml


def run(sizes: Sizes, out: Path) -> Found:
    """Measure regret against T, d and epsilon if one expert never errs. Resumes where it
    stopped."""
    found = STUDY.measure(sizes, out)
    frames = {"summary": found.table(), "slopes": STUDY.slopes(found)}
    every = [*STUDY.tables(found, sizes), *tables(found)]
    return Found(frames, STUDY.draw(found, sizes, out), every)


def tables(found: Answers) -> Iterator[Table]:
    """Yield tables of switches, and of measured regret beside the lower bound."""
    rows = [
        (f"{panel}: {label}", f"{run.switches[-1].mean():.2f}", f"{run.switches[-1].max():.0f}")
        for panel, lines in found.runs["switches"].items()
        for label, (run,) in lines.items()
    ]
    yield tabulated("switches on halving", ("agent", "mean", "most"), rows)
    judgements = []
    for panel, judged in verdicts(found.runs["tails"]).items():
        for label, one in judged.items():
            numbers = (f"{number:.2f}" for number in (one.mean, one.upper, one.least))
            caught = "claim refuted" if one.refuted else ""
            judgements.append((f"{panel}: {label}", f"{one.judged_at:.3g}", *numbers, caught))
    headings = ("agent", "at epsilon", "mean regret", "upper limit", "lower bound", "")
    yield tabulated("the lower bound's instance: no private agent is below", headings, judgements)


main = command("experts", run, {}, STUDY.quick)

if __name__ == "__main__":
    start(main)
