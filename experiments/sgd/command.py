"""Table 5.1, as the command `dpbandit reproduce sgd/table-5-1` measures it."""

from pathlib import Path

from dpbandit.base.files import plain
from dpbandit.experiments.paper_table import Reproduced
from dpbandit.experiments.sgd.figures import figures
from dpbandit.experiments.sgd.printed import chosen_rows
from dpbandit.experiments.sgd.study import FULL, Plan, study
from dpbandit.experiments.sgd.tables import tables


def reproduce(
    readings: tuple[str, ...], rows: str, *, replicas: int, seed: int, out: Path, drawn: bool
) -> Reproduced:
    """The rows chosen, under these readings; all of it with figures if `drawn`."""
    plan = Plan(
        rows=chosen_rows(rows),
        readings=readings,
        scales_at=FULL.scales_at if drawn else (),
        replicas=replicas,
        seed=seed,
    )
    findings = study(plan, out)
    drawings = figures(findings, out) if drawn else []
    records = [plain(entry.record()) for entry in findings.entries]
    return Reproduced(list(tables(findings)), records, [out / "summary.csv", *drawings])
