"""A progress bar for anything that takes longer than two seconds."""

import time
from types import TracebackType

from rich import progress
from rich.console import Console

_PATIENCE = 2.0


class Progress:
    """Counts replica-rounds of a comparison; appears on stderr after two seconds."""

    def __init__(self, total: int, *, shown: bool = True) -> None:
        self._shown, self._visible = shown, False
        self._start, self._rate = time.perf_counter(), 1
        self._bar = progress.Progress(
            progress.TextColumn("{task.description:<24}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("left"),
            progress.TimeRemainingColumn(),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._bar.add_task("", total=total)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._visible:
            self._bar.stop()

    def working_on(self, name: str, *, rate: int) -> None:
        """Name what runs now; each round counts `rate` replicas."""
        self._rate = rate
        self._bar.update(self._task, description=name)

    def advance(self, rounds: int) -> None:
        """`rounds` more rounds are done."""
        self._bar.advance(self._task, rounds * self._rate)
        if self._shown and not self._visible and time.perf_counter() - self._start > _PATIENCE:
            self._visible = True
            self._bar.start()
