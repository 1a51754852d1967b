"""What is printed: the rows of each algorithm, certificates, everybody at once, and their time."""

from collections.abc import Callable, Iterator, Sequence
from math import isnan
from typing import NamedTuple

from rich.table import Table

from dpbandit.base.arrays import Floats
from dpbandit.experiments.sgd.printed import Row, standard_error_of_runs
from dpbandit.experiments.sgd.readings import COMPETITORS, DP_TOFW, FLOOR, LOCALISED
from dpbandit.experiments.sgd.study import Entry, beside, rows_of, sample
from dpbandit.results.runs import standard_error

_ABREAST = 4


class Column(NamedTuple):
    """A column of the printed table."""

    heading: str
    printed: Callable[[Row], str]
    cell: Callable[[Entry], str]
    caption: str
    """with {} for our replicas"""


_TITLES = {
    "OFW": "OFW: tree-based online Frank-Wolfe (DP-TOFW)",
    "NoisySFW": "NoisySFW",
    "NoisySGD": "NoisySGD",
}


def tables(found: Sequence[Entry]) -> Iterator[Table]:
    """All of them, of the rows and readings that were asked for."""
    for algorithm, title in _TITLES.items():
        rows = rows_of(found, algorithm)
        if rows and (labels := _labels(found, rows, others=algorithm != "OFW")):
            for column in (_SUBOPT, _RISK, _SECONDS):
                yield _beside(found, rows, labels, title, column)
            yield _certificates(found, rows, labels, title)
    rows = rows_of(found, "OFW")
    everybody = (LOCALISED, DP_TOFW, *COMPETITORS, FLOOR)
    present = _labels(found, rows, others=True)
    labels = [label for label in everybody if label in present]
    if len(labels) > 3:  # more than the rows of OFW have shown
        for some in _parts(labels):
            yield _everybody(found, rows, some)


def _parts(labels: Sequence[str]) -> Iterator[Sequence[str]]:
    """As many as fit beside each other on 80 columns."""
    for first in range(0, len(labels), _ABREAST):
        yield labels[first : first + _ABREAST]


def _labels(found: Sequence[Entry], rows: Sequence[Row], *, others: bool) -> list[str]:
    """The columns of these rows, without the competitors and the floor unless asked for."""
    labels = {label: None for row in rows for label in beside(found, row)}
    extra = (*COMPETITORS, FLOOR)
    return [label for label in labels if others or label not in extra]


def _beside(
    found: Sequence[Entry], rows: Sequence[Row], labels: Sequence[str], title: str, column: Column
) -> Table:
    caption = column.caption.format(sample(found))
    if any(row.sparse for row in rows):
        caption += ". †: printed on another theta*, 5-sparse, and not to be compared"
    table = _table(f"{title}: {column.heading}", caption)
    table.add_column("printed", justify="right")
    for label in labels:
        table.add_column(_heading(found, rows, label), justify="right", overflow="fold")
    for row in rows:
        entries = beside(found, row)
        printed = f"{column.printed(row)}{' †' if row.sparse else ''}"
        cells = (column.cell(entries[label]) if label in entries else "" for label in labels)
        table.add_row(*_place(row), printed, *cells)
    return table


def _certificates(
    found: Sequence[Entry], rows: Sequence[Row], labels: Sequence[str], title: str
) -> Table:
    caption = (
        "printed claim: (1, 1/T)-DP; inf: nothing is proved, or no privacy. In brackets: as the "
        "program ran, without our clip to the sensitivity it states"
    )
    table = _table(f"{title}: certified epsilon at delta = 1/T", caption)
    for label in labels:
        table.add_column(label, justify="right", overflow="fold")
    for row in rows:
        entries = beside(found, row)
        table.add_row(*_place(row), *(_epsilon(entries[label]) for label in labels))
    return table


def _everybody(found: Sequence[Entry], rows: Sequence[Row], labels: Sequence[str]) -> Table:
    caption = (
        "SubOpt, one configuration for all rows, each certified at (1, 1/T) but for least squares. "
        "*: at or below the printed OFW"
    )
    table = _table("Everybody at the same true (1, 1/T)", caption)
    for label in labels:
        table.add_column(label, justify="right", overflow="fold")
    for row in rows:
        entries = beside(found, row)
        table.add_row(
            *_place(row), *(f"{e.mean:.3g}{_star(e)}" for e in map(entries.__getitem__, labels))
        )
    return table


def _table(title: str, caption: str) -> Table:
    table = Table(title=title, title_justify="left", caption=caption, caption_justify="left")
    for heading in ("row", "p", "T", "d"):
        table.add_column(heading, justify="right", no_wrap=True)
    return table


def _place(row: Row) -> tuple[str, ...]:
    p, d, T = row.setting
    return str(row.number), f"{p:g}", f"{T:,}", str(d)


def _heading(found: Sequence[Entry], rows: Sequence[Row], label: str) -> str:
    tried = sorted({len(beside(found, row)[label].tried) for row in rows})
    return label if tried == [1] else f"{label} (best of {' or '.join(map(str, tried))})"


def _suboptimality(entry: Entry) -> str:
    words = [f"{entry.mean:.3g} ± {entry.se:.2g}"]
    if len(entry.tried) > 1:
        words.append(f"({entry.scale:g})")
    if entry.line.reading == "printed" and not isnan(entry.z_printed):
        words.append(f"[{entry.z_printed:+.1f}]")
    return " ".join(words) + _star(entry)


def _epsilon(entry: Entry) -> str:
    certified, unclipped = entry.epsilon, entry.unclipped_epsilon
    return f"{certified:.3g}" + (f" ({unclipped:.3g})" if unclipped != certified else "")


def _star(entry: Entry) -> str:
    return " *" if entry.reached and entry.line.reading == "certified" else ""


_SUBOPT = Column(
    "SubOpt",
    lambda row: f"{row.suboptimality:.3g} ± {row.se:.2g}",
    _suboptimality,
    "SubOpt, printed ± standard error of 10 runs, ours ± that of {}. In square brackets: ours "
    "minus printed in combined standard errors; (c): the best of the step scales tried, chosen "
    "after looking. *: certified, and at or below the printed value",
)
_RISK = Column(
    "Risk",
    lambda row: f"{row.risk:.3g} ± {standard_error_of_runs(row.risk_sd):.2g}",
    lambda entry: _mean(entry.run.measures["risk"]),
    "risk, printed on test users ± standard error of 10 runs, ours exact ± that of {}; 0.0025 is "
    "the least",
)
_SECONDS = Column(
    "Time",
    lambda row: f"{row.seconds:,.3g} ± {standard_error_of_runs(row.seconds_sd):.2g}",
    lambda entry: f"{entry.seconds:.2g}",
    "seconds of one run, printed on another machine ± standard error of 10 runs; ours: processor "
    "time, a replica's share of {}; users are drawn in it, too",
)


def _mean(values: Floats) -> str:
    return f"{values.mean():.3g} ± {standard_error(values):.2g}"
