"""Table 5.1, as the command `dpbandit reproduce sgd/table-5-1` measures it."""

from dataclasses import replace

from dpbandit.base.files import plain, write_csv
from dpbandit.experiments.paper_table import Asked, Reproduced
from dpbandit.experiments.sgd.figures import figures
from dpbandit.experiments.sgd.printed import chosen_rows
from dpbandit.experiments.sgd.questions import SCALES, Sizes
from dpbandit.experiments.sgd.study import entries, measure, summary
from dpbandit.experiments.sgd.tables import tables


def reproduce(asked: Asked) -> Reproduced:
    """The rows chosen, under these readings; all of it with figures if they are to be drawn."""
    out = asked.out
    sizes = Sizes(
        rows=chosen_rows(asked.rows),
        readings=asked.readings,
        theta=asked.theta,
        replicas=asked.replicas,
        seed=asked.seed,
    )
    found = measure(sizes if asked.drawn else replace(sizes, scales_at=()), out)
    beside = entries(sizes, found)
    written = [write_csv(out / "summary.csv", summary(beside))]
    drawings = figures(beside, found.runs[SCALES], out) if asked.drawn else []
    records = [plain(entry.record()) for entry in beside]
    return Reproduced(list(tables(beside)), records, [*written, *drawings])
