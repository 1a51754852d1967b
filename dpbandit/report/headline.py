"""The headline of a report: what everybody lost in the end, beside the best baseline."""

from pathlib import Path
from typing import TYPE_CHECKING

from dpbandit.base.arrays import Floats
from dpbandit.base.files import write_atomically
from dpbandit.report.figures import ProblemRuns
from dpbandit.results.comparisons import differences

if TYPE_CHECKING:
    import pandas as pd

BASELINES = ("Uniform", "BestFixed")
"""Random play, and the best single action in hindsight."""
_COLUMNS = ["problem", "agent", "horizon", "regret", "se", "claimed_epsilon", "certified_epsilon"]
_COLUMNS += ["delta", "difference", "low", "high", "baseline"]


def headline(problem: ProblemRuns) -> "pd.DataFrame":
    """One row a run of the largest horizon, least regret first.

    `regret` is the mean, `se` its standard error, `difference` that from the `baseline` with the
    least regret of those that were run, on the same users, with a 95 % interval `low` to `high`;
    without a baseline there is none.
    """
    import pandas as pd

    longest = problem.longest
    rows = [
        {
            "problem": problem.name,
            "agent": run.name,
            "horizon": run.setup.horizon,
            "regret": float(run.regret[-1].mean()),
            "se": _standard_error(run.regret[-1]),
            "claimed_epsilon": run.certificate.claimed_epsilon,
            "certified_epsilon": run.certificate.epsilon,
            "delta": run.certificate.claimed_delta,
        }
        for run in longest.runs
    ]
    table = pd.DataFrame(rows, columns=_COLUMNS)
    means = {run.name: run.regret[-1].mean() for run in longest.runs if run.name in BASELINES}
    if means:
        best = min(means, key=lambda name: means[name])
        found = differences(longest, best).set_index(["agent", "epsilon", "delta"])
        where = pd.MultiIndex.from_frame(table[["agent", "claimed_epsilon", "delta"]])
        for column in ("difference", "low", "high"):
            table[column] = found[column].reindex(where).to_numpy()
        table["baseline"] = best
    return table.sort_values("regret", kind="stable", ignore_index=True)


def write_table(table: "pd.DataFrame", folder: Path, name: str) -> list[Path]:
    """A table as CSV and as LaTeX (booktabs)."""
    latex = table.to_latex(index=False, float_format="%.4g", escape=True, na_rep="--")
    return [
        write_atomically(folder / f"{name}.csv", lambda p: table.to_csv(p, index=False)),
        write_atomically(folder / f"{name}.tex", lambda p: p.write_text(latex, "utf-8")),
    ]


def _standard_error(values: Floats) -> float:
    return float(values.std(ddof=1) / len(values) ** 0.5) if len(values) > 1 else float("nan")
