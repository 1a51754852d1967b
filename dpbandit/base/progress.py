"""A progress bar for anything that takes longer than two seconds."""

import sys
import time
from types import TracebackType
from typing import Any

PATIENCE = 2.0
"""Seconds before there is a bar."""


class Progress:
    """Counts replica-rounds of a comparison; appears on stderr after two seconds."""

    def __init__(self, total: int, *, shown: bool = True) -> None:
        self._shown, self._total, self._done = shown, total, 0
        self._start, self._rate, self._name = time.perf_counter(), 1, ""
        self._bar: Any = None

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def working_on(self, name: str, *, rate: int) -> None:
        """Name what runs now; each round counts `rate` replicas."""
        self._rate, self._name = rate, name

    def say(self, line: str) -> None:
        """Print a line where there is no terminal for a bar."""
        if self._shown:
            say_without_terminal(line)

    def finish(self, name: str) -> None:
        """This one is done: a line, where there is no terminal and it is no matter of seconds."""
        seconds = time.perf_counter() - self._start
        if seconds > PATIENCE:
            self.say(f"{name}: done after {seconds:.0f} s")

    def advance(self, rounds: int) -> None:
        """`rounds` more rounds are done."""
        self._done += rounds * self._rate
        if self._bar is None and self._shown and time.perf_counter() - self._start > PATIENCE:
            self._bar = started_bar(self._total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done, description=self._name)


def say_without_terminal(line: str) -> None:
    """Print a line on stderr where that is no terminal."""
    if not sys.stderr.isatty():
        print(line, file=sys.stderr, flush=True)


def started_bar(total: int) -> Any:
    """A visible bar; Rich is slow to import, and most runs end before they need one."""
    from rich import progress
    from rich.console import Console

    bar = progress.Progress(
        progress.TextColumn("{task.description:<24}", markup=False),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )
    bar.add_task("", total=total)
    bar.start()
    return bar
