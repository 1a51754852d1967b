"""`python -m dpbandit.experiments.limits [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

import pandas as pd

from dpbandit.experiments.limits import QUICK, Sizes, figures, questions, shown, table
from dpbandit.experiments.questions import Out, Quick, Replicas, answers, chosen, start, tell


def main(quick: Quick = False, out: Out = Path("out/limits"), replicas: Replicas = None) -> None:
    """Regret against epsilon, above a bound that no agent is below. Resumes where it stopped."""
    sizes: Sizes = chosen(QUICK if quick else Sizes(), replicas, out)
    name = "Distance from the limit"
    found = answers(name, {"limits": questions(sizes)}, out, replicas=sizes.replicas)
    panels = found.runs["limits"]
    tables = {title: table(lines) for title, lines in panels.items()}
    drawn = (shown(title, one) for title, one in tables.items())
    frames = {"limits": pd.concat(tables.values()), "summary": found.table()}
    tell(drawn, figures(panels, out), frames, out)


if __name__ == "__main__":
    start(main)
