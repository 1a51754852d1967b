"""Progress of several processes: each keeps count in a file of its own, and one shows them all."""

import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from typing import Any

from dpbandit.base import progress

_EVERY = 0.3
"""Seconds between two looks at the files, and between two of a worker's notes."""


class Note:
    """What a worker writes down: replica-rounds done, and what it is at. It goes to the process."""

    def __init__(self, path: Path) -> None:
        self._path, self._done, self._next, self._rate, self._name = path, 0, 0.0, 1, ""

    def working_on(self, name: str, *, rate: int) -> None:
        """Name what runs now; each round counts `rate` replicas."""
        self._rate, self._name = rate, name

    def finish(self, name: str) -> None:
        """Nothing: lines are the process's that asked."""

    def advance(self, rounds: int) -> None:
        """`rounds` more rounds are done."""
        self._done += rounds * self._rate
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _EVERY
            with suppress(OSError):  # nobody waits any more
                self._path.write_text(f"{self._done} {self._name}", encoding="utf-8")


class Board:
    """A bar for all and one for each part that a worker is at, on stderr after two seconds.

    Args:
        parts: what they are called, and their replica-rounds.
        shown: whether to show it.

    >>> with Board({"replicas 0 to 4": 50}, shown=False) as board:
    ...     note = board.note("replicas 0 to 4")
    ...     note.working_on("fade", rate=5)
    ...     note.advance(3)
    ...     board.counts()
    {'replicas 0 to 4': (15, 'fade')}
    """

    def __init__(self, parts: Mapping[str, int], *, shown: bool = True) -> None:
        self._parts, self._shown = parts, shown
        self._folder = TemporaryDirectory(prefix="dpbandit-")
        self._files = {part: Path(self._folder.name, str(k)) for k, part in enumerate(parts)}
        self._finished, self._over = set[str](), Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._start = time.perf_counter()
        self._bar: Any = None

    def __enter__(self) -> "Board":
        if self._shown:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._shown:
            self._thread.join()
        if self._bar is not None:
            self._bar.stop()
        self._folder.cleanup()

    def note(self, part: str) -> Note:
        """Where the worker of this part keeps count."""
        return Note(self._files[part])

    def finish(self, part: str) -> None:
        """This part is done."""
        self._finished.add(part)
        seconds = time.perf_counter() - self._start
        if self._shown and seconds > progress.PATIENCE:
            progress.say_without_terminal(f"{part}: done after {seconds:.0f} s")

    def counts(self) -> dict[str, tuple[int, str]]:
        """Of every part that is under way, how much is done, and at what it is."""
        found = {}
        for part, file in self._files.items():
            with suppress(OSError, ValueError):  # not begun, or half written
                done, _, name = file.read_text(encoding="utf-8").partition(" ")
                found[part] = int(done), name
        return {part: count for part, count in found.items() if part not in self._finished}

    def _watch(self) -> None:
        if self._over.wait(progress.PATIENCE):
            return
        self._bar = progress.started_bar(sum(self._parts.values()))
        (total,), rows = self._bar.task_ids, dict[str, Any]()
        while not self._over.wait(_EVERY):
            counts = self.counts()
            for part in rows.keys() - counts.keys():
                self._bar.remove_task(rows.pop(part))
            for part, (done, name) in counts.items():
                if part not in rows:
                    rows[part] = self._bar.add_task("", total=self._parts[part])
                self._bar.update(rows[part], completed=done, description=f"  {part}: {name}")
            done = sum(self._parts[part] for part in self._finished)
            done += sum(done for done, _ in counts.values())
            self._bar.update(total, completed=done, description="all")
