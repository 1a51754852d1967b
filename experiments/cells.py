"""Work that may be interrupted: every cell of it is a file of its own, written when it is done.

Started again, work reads the cells it finds and does the others. A file knows what it is a run of;
if that is not what is asked for now (another config, seed, size or source), it is run anew.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pandas as pd

from dpbandit.base.files import check_readable, write_atomically
from dpbandit.base.progress import Progress


class AnyCell(Protocol):
    """Something to run."""

    @property
    def work(self) -> int:
        """Rounds of all replicas, for the bar."""
        ...

    def identity(self) -> dict[str, Any]:
        """Everything the numbers depend on, as plain values."""
        ...


class Kept(NamedTuple):
    """What a cell found, as its file holds it."""

    frame: pd.DataFrame
    facts: Mapping[str, Any]
    """plain values"""


def run_cells(
    cells: Mapping[str, AnyCell],
    folder: Path,
    run: Callable[[str, Progress], Kept],
    *,
    progress: bool = True,
) -> dict[str, Kept]:
    """What all cells found, read from or written to `folder`/NAME.parquet.

    Args:
        cells: name -> cell; a name may contain slashes, for folders.
        folder: where the files are.
        run: finds out what is missing; advances the bar.
        progress: show a bar over the cells that are missing, after two seconds.

    Raises:
        InputError: a file cannot be written; whatever `run` raises.
    """
    files = {name: folder / f"{name}.parquet" for name in cells}
    identities = {name: cell.identity() for name, cell in cells.items()}
    read = {name: _read(files[name], identities[name]) for name in cells}
    found = {name: kept for name, kept in read.items() if kept is not None}
    missing = [name for name in cells if name not in found]
    with Progress(sum(cells[name].work for name in missing), shown=progress) as bar:
        for name in missing:
            found[name] = run(name, bar)
            _write(files[name], identities[name], found[name])
    return {name: found[name] for name in cells}


def seed_blocks(seed: int, replicas: int, size: int) -> Iterator[Sequence[tuple[int, int]]]:
    """The seeds of the replicas, `size` at a time: replica r depends on (seed, r) only."""
    for first in range(0, replicas, size):
        yield [(seed, r) for r in range(first, min(replicas, first + size))]


def _write(path: Path, identity: Mapping[str, Any], kept: Kept) -> None:
    frame = kept.frame.copy(deep=False)
    frame.attrs = {"cell": identity, "facts": kept.facts}
    write_atomically(path, lambda partial: frame.to_parquet(partial, index=False))


def _read(path: Path, identity: Mapping[str, Any]) -> Kept | None:
    """What `path` holds, if it is a whole file and a run of just this cell."""
    try:
        check_readable(path)
        frame = pd.read_parquet(path)
    except (OSError, ValueError):  # not there, no file, or not parquet
        return None
    if frame.attrs.get("cell") != identity or "facts" not in frame.attrs:
        return None
    return Kept(frame, frame.attrs["facts"])
