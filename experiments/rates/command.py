"""The tables of rates, as the commands `dpbandit reproduce TABLE` measure them."""

import pandas as pd

from dpbandit.base.files import plain, write_csv
from dpbandit.experiments.paper_table import Asked, Reproduced
from dpbandit.experiments.rates import online, realizable, stochastic
from dpbandit.experiments.rates.rate import Rate
from dpbandit.experiments.rates.study import draw, measure, selected, shown

_TABLES: dict[str, tuple[tuple[Rate, ...], int]] = {
    "sgd/table-1-1": (stochastic.TABLE_1_1, 2**14),
    "sgd/table-1-2": (stochastic.TABLE_1_2, 2**14),
    "convex/table-1": (online.TABLE_1, 2**15),
    "convex/table-2": (online.TABLE_2, 2**16),
    "experts/table-1": (realizable.TABLE_1, 2**15),
}
"""name -> its rows, and the longest horizon unless another is asked for"""


def reproduce(name: str, asked: Asked) -> Reproduced:
    """The rows chosen under these readings; with a figure if it is to be drawn."""
    rates, longest = _TABLES[name]
    selection = selected(rates, asked.rows, longest)
    entries = measure(
        name, selection, asked.readings, asked.out, replicas=asked.replicas, seed=asked.seed
    )
    records = [plain(entry.record()) for entry in entries]
    written = [write_csv(asked.out / "rates.csv", pd.DataFrame(records))]
    if asked.drawn:
        written.append(draw(asked.out / "rates.png", entries))
    return Reproduced(list(shown(selection, entries)), records, written)
