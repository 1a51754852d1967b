"""`python -m dpbandit.experiments.pricing [--quick] [--out DIR] [--replicas R]`."""

from pathlib import Path

from rich.console import Console
from rich.table import Table

from dpbandit.base.files import check_writable
from dpbandit.experiments.command import Out, Quick, Replicas, chosen, start
from dpbandit.experiments.pricing.figure import figures
from dpbandit.experiments.pricing.study import QUICK, Findings, Plan, study


def main(quick: Quick = False, out: Out = Path("out/pricing"), replicas: Replicas = None) -> None:
    """Regret against epsilon, pricing orange juice and recommending. Resumes where it stopped."""
    plan = chosen(QUICK if quick else Plan(), replicas)
    check_writable(out / "summary.csv")
    for found in study(plan, out):
        _print(found)
        for path in figures(found, out):
            print(f"Written to {path}.")
    print(f"Written to {out / 'summary.csv'}.")


def _print(found: Findings) -> None:
    title = f"{found.environment}: lost to {found.best_public[0]}, the best agent without privacy"
    table = Table(title=title, title_justify="left")
    table.add_column("agent", no_wrap=True)
    for column in ("epsilon", "regret", f"{found.unit} lost per 1,000", "beats uniform from round"):
        table.add_column(column, justify="right")
    for row in found.table().to_dict("records"):
        start = row["beats_uniform_from"]
        table.add_row(
            row["agent"],
            f"{row['epsilon']:g}" if row["agent"] in found.private else "-",
            f"{row['regret']:.0f} ± {row['regret_se']:.0f}",
            f"{row['lost_per_1000']:.1f} ± {row['lost_per_1000_se']:.1f}",
            "-" if start is None or start != start else f"{start:,.0f}",
        )
    Console().print(table)


if __name__ == "__main__":
    start(main)
