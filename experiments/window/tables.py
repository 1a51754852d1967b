"""What is printed: one table for each question, and Table I."""

from collections.abc import Iterator, Sequence

import numpy as np
from rich.table import Table

from dpbandit.base.arrays import Floats
from dpbandit.experiments.window.costs import Timing
from dpbandit.experiments.window.runs import Found, FoundLines
from dpbandit.experiments.window.study import Findings
from dpbandit.experiments.window.table_1 import DIM, Entry
from dpbandit.results.runs import standard_error


def tables(findings: Findings) -> Iterator[Table]:
    """All of them."""
    plan = findings.plan
    said = f"epsilon {plan.epsilon:g}, {plan.horizon:,} rounds"
    for problem, lines in findings.answers["windows"].items():
        yield _along(f"{problem}: regret against the window W, {said}", lines, "W = {:,.0f}")
    slopes = findings.slopes()
    for problem, lines in findings.answers["horizons"].items():
        exponents = {label: str(s) for (p, label), s in slopes.items() if p == problem}
        title = f"{problem}: regret against T, epsilon {plan.epsilon:g}"
        yield _along(title, lines, "T = {:,.0f}", exponents, every=2)
    title = f"pricing: dollars lost per 1,000 of {plan.customers:,} customers"
    yield _along(title, findings.answers["retention"]["pricing"], "epsilon {:g}", per_1000=True)
    yield _costs(findings.timings, f"Quadratic losses, {plan.timed_rounds} rounds")
    yield from table_1(findings.table_1)


def _along(
    title: str,
    lines: FoundLines,
    heading: str,
    exponents: dict[str, str] | None = None,
    *,
    every: int = 1,
    per_1000: bool = False,
) -> Table:
    """Lines over their axis, every so many places from the last; yardsticks in the last column."""
    table = _table(title)
    places = max((line for line in lines.values()), key=len)[::-every][::-1]
    marks = [found.run.at for found in places]
    for mark in marks:
        table.add_column(heading.format(mark), justify="right")
    if exponents:
        table.add_column("exponent", justify="right")
    for label, line in lines.items():
        if len(line) == 1:
            cells = [""] * (len(marks) - 1) + [_value(line[0], per_1000)]
        else:
            known = {found.run.at: _value(found, per_1000) for found in line}
            cells = [known[mark] for mark in marks]
        more = [exponents.get(label, "")] if exponents else []
        table.add_row(label, *cells, *more)
    return table


def _costs(found: Sequence[Timing], title: str) -> Table:
    table = _table(f"{title}: what a round costs")
    for name in ("domain", "N"):
        table.add_column(name, no_wrap=True)
    for name in ("projections", "linear minimisations", "milliseconds", "regret"):
        table.add_column(name, justify="right")
    for timing in found:
        cost = timing.cost
        words = f"{timing.agent} ({cost.protected})" if cost.protected else timing.agent
        table.add_row(
            words,
            timing.kind,
            f"{cost.size:,}",
            f"{cost.projections:.2f}",
            f"{cost.minimisations:.1f}",
            f"{1000 * np.median(cost.seconds):.3f}",
            _mean(cost.regret),
        )
    return table


def table_1(entries: Sequence[Entry]) -> Iterator[Table]:
    """The rows as printed, and what was measured for each."""
    size = entries[0].size
    rows = {entry.row.number: entry.row for entry in entries if entry.row}
    if rows:
        printed = Table(
            title="Table I as printed, and its bounds with every constant 1", title_justify="left"
        )
        for heading in ("row", "algorithm", "privacy", "operation a round", "regret, order of"):
            printed.add_column(heading)
        printed.add_column("value", justify="right")
        for _, row in sorted(rows.items()):
            words = (row.algorithm, row.guarantee, row.operation, row.bound)
            printed.add_row(str(row.number), *words, f"{row.value(size):,.0f}")
        yield printed
    table = Table(
        title=f"Ridge regression on the simplex of R^{DIM}, T = {size.T:,}, W = {size.W:,}, "
        f"epsilon {size.epsilon:g}, delta {size.delta:g}",
        title_justify="left",
        caption="operations a round: projections + linear minimisations, local: and one call of a "
        "local linear oracle. Certified: epsilon at delta, and what it is of",
        caption_justify="left",
    )
    for heading in ("row", "reading", "agent"):
        table.add_column(heading, no_wrap=True)
    for heading in ("regret", "operations", "ms"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("certified")
    for entry in entries:
        cost = entry.cost
        local = " + local" if entry.agent == "WDPCOCOL" else ""
        table.add_row(
            str(entry.row.number) if entry.row else "",
            entry.reading,
            entry.words,
            _mean(entry.regret),
            f"{cost.projections:.0f} + {cost.minimisations:.0f}{local}",
            f"{1000 * np.median(cost.seconds):.2f}",
            f"{entry.proof.epsilon:.3g} ({entry.protected})" if entry.protected else "",
        )
    yield table


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("agent", no_wrap=True)
    return table


def _value(found: Found, per_1000: bool) -> str:
    return _mean(1000 * found.regret / found.run.horizon if per_1000 else found.regret)


def _mean(values: Floats) -> str:
    mean, error = values.mean(), standard_error(values)
    digits = 2 if mean < 10 else 1 if mean < 1000 else 0
    return f"{mean:,.{digits}f} ± {error:,.{digits}f}"
