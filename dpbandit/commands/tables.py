"""The tables that commands print."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from dpbandit.auditing.everyone import PRINTED
from dpbandit.auditing.report import AuditReport
from dpbandit.experiments import CASES
from dpbandit.experiments.paper_tables import TABLES
from dpbandit.privacy.certificate import HONESTY
from dpbandit.results.results import Results
from dpbandit.specs.bounds import CLIPPED


def screen() -> Console:
    """Where tables and sentences are printed: names may look like markup, and stay as they are."""
    return Console(markup=False, emoji=False)


def print_results(results: Results) -> None:
    """Regret, and what every agent certifiably has."""
    records, unit = results.records(), results.reward_unit
    console = screen()
    table = Table(title=f"{results.environment}: cumulative regret ({unit})", title_justify="left")
    table.add_column("agent", overflow="fold")
    columns = {"mean": "mean", "se": "se", "5 %": "q05", "median": "q50", "95 %": "q95"}
    clips = any((record["clipped"] or 0.0) > 0 for record in records)
    columns |= {"clipped": "clipped", "seconds": "seconds"} if clips else {"seconds": "seconds"}
    for column in columns:
        table.add_column(column, justify="right", no_wrap=True)  # names fold, numbers do not
    for record in records:
        numbers = [record[key] for key in columns.values()]
        table.add_row(record["agent"], *("-" if x is None else f"{x:.4g}" for x in numbers))
    console.print(table)
    if clips:
        console.print(CLIPPED, highlight=False)
    proofs = Table(title="certificates", title_justify="left")
    proofs.add_column("agent", overflow="fold")
    for column in ("claimed\nepsilon", "certified\nepsilon", "at delta"):
        proofs.add_column(column, justify="right", no_wrap=True)
    proofs.add_column("privacy")
    notions = list(dict.fromkeys(run.certificate.notion for run in results.runs))
    for run in results.runs:
        proof = run.certificate
        excess = "" if proof.holds else "EXCEEDS THE CLAIM"
        proofs.add_row(
            run.name,
            f"{proof.claimed_epsilon:g}",
            f"{proof.epsilon:.4g}",
            f"{proof.claimed_delta:g}",
            f"({notions.index(proof.notion) + 1}) {proof.ledger.brief} {excess}".strip(),
        )
    console.print(proofs)
    for number, notion in enumerate(notions, start=1):
        console.print(f"({number}) {notion}", highlight=False)
    for sentence in results.warnings:
        console.print(sentence, style="bold", highlight=False)
    console.print(HONESTY, style="dim", highlight=False)


def print_cases() -> None:
    """The tables and how to choose of them; the reference cases, their agents and numbers."""
    console = screen()
    for paper in TABLES.values():
        console.print(Text.assemble((paper.name, "bold"), f"  {paper.summary}"))
        options = Table("--reading", "what it is", box=None)
        for reading, what in {**paper.readings, "all": "side by side"}.items():
            options.add_row(reading, what)
        console.print(options)
        console.print(f"--rows: {paper.rows}", highlight=False)
        for theta, what in paper.thetas.items():
            console.print(f"--theta {theta}: {what}", highlight=False)
    for case in CASES.values():
        measured = "" if case.measure == "regret" else f" ({case.measure})"
        console.print(Text.assemble((case.name, "bold"), f"  {case.summary}{measured}"))
        table = Table("agent", "set", "reference", "horizon", "note", box=None)
        for reference in case.references:
            settings = " ".join(f"{key}={value}" for key, value in reference.settings.items())
            number = f"{reference.mean} (se {reference.se})"
            table.add_row(reference.agent, settings, number, str(reference.horizon), reference.note)
        others = [name for name in case.agents if name not in {r.agent for r in case.references}]
        for name in others:
            table.add_row(name, "", "-", "", "")
        console.print(table)


def audit_table(reports: dict[str, AuditReport]) -> Table:
    """A line for each audit, the printed calibrations below the certified ones."""
    table = Table(title="audits", title_justify="left", box=None, pad_edge=False)
    table.add_column("agent", overflow="fold")
    for column in ("claimed", "certified", "epsilon >=", "by GDP", "seconds"):
        table.add_column(column, justify="right", no_wrap=True)
    table.add_column("verdict")
    for name, report in reports.items():
        by_gdp = "-" if report.eps_lower_gdp is None else f"{report.eps_lower_gdp:.3f}"
        table.add_row(
            "  as printed" if name.endswith(PRINTED) else name,
            f"{report.claimed_epsilon:g}",
            f"{report.certified_epsilon:.4g}"
            + (f" {report.restricted}" if report.restricted else ""),
            f"{report.eps_lower:.3f}",
            by_gdp,
            f"{report.seconds:.1f}",
            report.verdict,
        )
    if reports:
        one, *_ = reports.values()
        table.caption = f"{one.runs:,} runs of each world, view {one.view}; each line wrong with "
        table.caption += f"probability <= {one.failure:.2g}"
    return table
