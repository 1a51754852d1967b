"""Table I, as the command `dpbandit reproduce window/table-1` measures it."""

import pandas as pd

from dpbandit.base.files import plain, write_csv
from dpbandit.experiments.paper_table import Asked, Reproduced
from dpbandit.experiments.window.table_1 import measure, selected, shown


def reproduce(asked: Asked) -> Reproduced:
    """The rows chosen, at the sizes chosen, under these readings; there is no figure."""
    out, selection = asked.out, selected(asked.rows)
    entries = measure(selection, asked.readings, out, replicas=asked.replicas, seed=asked.seed)
    records = [plain(entry.record()) for entry in entries]
    path = out / "table-1.csv"
    write_csv(path, pd.DataFrame(records))
    return Reproduced(list(shown(entries)), records, [path])
