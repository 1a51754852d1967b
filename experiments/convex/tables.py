"""What is printed: one table for each question."""

from collections.abc import Iterator

from rich.table import Table

from dpbandit.base.arrays import Floats
from dpbandit.experiments.convex.runs import Found, FoundLines
from dpbandit.experiments.convex.study import Findings
from dpbandit.results.runs import standard_error


def tables(findings: Findings) -> Iterator[Table]:
    """All of them."""
    yield from _growth(findings)
    yield _over_horizons("The printed sign", findings.answers["signs"]["p-lin"])
    for problem, lines in findings.answers["prices"].items():
        yield _prices(problem, lines, findings)
    for problem, lines in findings.answers["adversaries"].items():
        yield _over_horizons(f"The adversary {problem}", lines)


def _growth(findings: Findings) -> Iterator[Table]:
    slopes = findings.slopes()
    for problem, lines in findings.answers["growth"].items():
        horizon = findings.plan.horizons[-1]
        table = _table(f"{problem}: PrivateBandit at epsilon 1 over {horizon:,} rounds")
        for heading in ("certified epsilon", "slope", "regret / T", "minus that without noise"):
            table.add_column(heading, justify="right")
        for label, line in lines.items():
            last = line[-1]
            table.add_row(
                label,
                f"{last.outcome.epsilon:.3g}",
                str(slopes.get((problem, label), "-")),
                _mean(last.regret / last.run.horizon),
                "-" if last.excess is None else _mean(last.excess / last.run.horizon),
            )
        yield table


def _over_horizons(title: str, lines: FoundLines) -> Table:
    """Some of the horizons, the last one among them, which is the yardsticks' only one."""
    table = _table(f"{title}: regret / T")
    step = max(1, max(map(len, lines.values())) // 3)
    horizons = sorted({f.run.horizon for line in lines.values() for f in line[::-step]})
    for horizon in horizons:
        table.add_column(f"T = {horizon:,}", justify="right")
    for label, line in lines.items():
        means = {f.run.horizon: _mean(f.regret / f.run.horizon) for f in line}
        table.add_row(label, *(means.get(horizon, "") for horizon in horizons))
    return table


def _prices(problem: str, lines: FoundLines, findings: Findings) -> Table:
    epsilons = findings.plan.epsilons
    table = _table(f"{problem}: regret per 1,000 of {findings.plan.users:,} rounds")
    for epsilon in epsilons:
        table.add_column(f"epsilon {epsilon:g}", justify="right")
    for label, line in lines.items():
        table.add_row(label, *(_per_1000(found) for found in line))
    return table


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("agent", no_wrap=True)
    return table


def _per_1000(found: Found) -> str:
    values = 1000 * found.regret / found.run.horizon
    return f"{values.mean():.1f} ± {standard_error(values):.1f}"


def _mean(values: Floats) -> str:
    return f"{values.mean():.4f} ± {standard_error(values):.4f}"
