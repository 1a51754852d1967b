"""Table I, as the command `dpbandit reproduce window/table-1` measures it."""

from pathlib import Path

import pandas as pd

from dpbandit.base.files import plain, write_csv
from dpbandit.experiments.paper_table import Reproduced
from dpbandit.experiments.window.table_1 import measure, selected, shown


def reproduce(
    readings: tuple[str, ...], rows: str, *, replicas: int, seed: int, out: Path, drawn: bool
) -> Reproduced:
    """The rows chosen, at the sizes chosen, under these readings; there is no figure."""
    entries = measure(selected(rows), readings, out, replicas=replicas, seed=seed)
    records = [plain(entry.record()) for entry in entries]
    path = out / "table-1.csv"
    write_csv(path, pd.DataFrame(records))
    return Reproduced(list(shown(entries)), records, [path])
