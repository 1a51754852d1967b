"""What is printed: a table for each panel of each question."""

from collections.abc import Iterator

from rich.table import Table

from dpbandit.experiments.experts.runs import Found, FoundLines
from dpbandit.experiments.experts.study import QUESTIONS, Findings, place
from dpbandit.results.runs import standard_error

_TITLES = {
    "growth": "regret against T at epsilon 1, {plan.n_experts} experts",
    "sizes": "regret against d at epsilon 1, T = {plan.sizes_horizon:,}",
    "prices": "regret against epsilon after {last:,} rounds",
    "counterexample": "Algorithm 5 and Algorithm 1",
    "points": "DP-FTRL and points as experts: regret against T",
    "policies": "clicks lost per 1,000 of {plan.users:,} users, {plan.rankers} rankers",
}


def tables(findings: Findings) -> Iterator[Table]:
    """All of them."""
    for question, title in _TITLES.items():
        words = title.format(plan=findings.plan, last=findings.plan.horizons[-1])
        for panel, lines in findings.answers[question].items():
            yield _lines(f"{words}: {panel}", question, panel, lines, findings)
    yield _switches(findings)
    yield _verdicts(findings)


def _lines(title: str, question: str, panel: str, lines: FoundLines, findings: Findings) -> Table:
    """A row for each agent, a column for each place on the axis."""
    axis, slopes = QUESTIONS[question].axis, findings.slopes()
    table = _table(title)
    learners = [line for line in lines.values() if len({place(f.run, axis) for f in line}) > 1]
    for found in learners[0]:
        table.add_column(_heading(found, axis), justify="right")
    table.add_column(f"exponent in {axis}", justify="right")
    for label, line in lines.items():
        exponent = slopes.get((question, panel, label))
        cells = [_mean(found, per_1000=question == "policies") for found in line]
        table.add_row(
            label, *cells, "" if exponent is None else f"{exponent[0]:.3f} ± {exponent[1]:.3f}"
        )
    return table


def _heading(found: Found, axis: str) -> str:
    if axis == "T":
        return f"T = {found.run.horizon:,}"
    if axis == "epsilon":
        return f"epsilon {found.run.epsilon:g}"
    return f"d = {found.run.problem.n_experts:,}"


def _switches(findings: Findings) -> Table:
    table = _table(f"switches on halving, {findings.plan.users:,} rounds")
    for heading in ("mean", "most"):
        table.add_column(heading, justify="right")
    for panel, lines in findings.answers["switches"].items():
        for label, (found,) in lines.items():
            mean, se = found.switches.mean(), standard_error(found.switches)
            most = f"{found.switches.max():.0f}"
            table.add_row(f"{panel}: {label}", f"{mean:.2f} ± {se:.2f}", most)
    return table


def _verdicts(findings: Findings) -> Table:
    table = _table("the lower bound's instance: nobody private is below")
    for heading in ("at epsilon", "mean regret", "upper limit", "lower bound", ""):
        table.add_column(heading, justify="right")
    for (panel, label), found in findings.verdicts().items():
        table.add_row(
            f"{panel}: {label}",
            f"{found.judged_at:.3g}",
            f"{found.mean:.2f}",
            f"{found.upper:.2f}",
            f"{found.least:.2f}",
            "not as private as that" if found.refuted else "",
        )
    return table


def _table(title: str) -> Table:
    table = Table(title=title, title_justify="left")
    table.add_column("agent", no_wrap=True)
    return table


def _mean(found: Found, *, per_1000: bool) -> str:
    values = found.regret * (1000 / found.run.horizon if per_1000 else 1.0)
    mean, se = values.mean(), standard_error(values)
    return f"{mean:.{_digits(se)}f} ± {se:.{_digits(se)}f}"


def _digits(se: float) -> int:
    """Behind the point: two of the error's own."""
    return 0 if se >= 10 else 1 if se >= 1 else 2
