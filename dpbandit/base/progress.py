"""Output of a running program: progress bars, warnings, and streams that survive broken pipes."""

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EPIPE
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Event, Thread
from types import TracebackType
from typing import Any, NoReturn

PATIENCE = 2.0
"""Seconds of work before a progress bar appears, or lines say which agents are done."""


class Progress:
    """Progress bar of a comparison, on stderr after two seconds; counts rounds times replicas."""

    def __init__(self, total: int, *, visible: bool = True) -> None:
        self._visible, self._total, self._done = visible, total, 0
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
        """Set the name of the running agent; each of its rounds counts for `rate` replicas."""
        self._rate, self._name = rate, name

    def say(self, line: str) -> None:
        """Print a line on stderr if stderr is no terminal, and so can show no bar."""
        if self._visible:
            say_without_terminal(line)

    def finish(self, name: str) -> None:
        """Print that `name` is done if stderr is no terminal, from two seconds after the start."""
        seconds = time.perf_counter() - self._start
        if seconds > PATIENCE:
            self.say(f"{name}: done after {seconds:.0f} s")

    def advance(self, rounds: int) -> None:
        """Count `rounds` more rounds, and update the bar."""
        self._done += rounds * self._rate
        if self._bar is None and self._visible and time.perf_counter() - self._start > PATIENCE:
            self._bar = started_bar(self._total)
        if self._bar is not None:
            self._bar.update(self._bar.task_ids[0], completed=self._done, description=self._name)


def say_without_terminal(line: str) -> None:
    """Print a line on stderr if stderr is no terminal."""
    with suppress(OSError):  # a run goes on if its reader is gone
        if not sys.stderr.isatty():
            print(line, file=sys.stderr, flush=True)


def started_bar(total: int) -> Any:
    """Return a visible progress bar of `total` units."""
    from rich import progress  # slow to import, and most runs end before they need a bar
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


_POLL_SECONDS = 0.3
"""Seconds between two writes of a worker's progress file (`Note`), and between two reads of all."""


class Note:
    """File in which a worker notes its agent and the number of rounds done in all replicas."""

    def __init__(self, path: Path) -> None:
        self._path, self._done, self._next, self._rate, self._name = path, 0, 0.0, 1, ""

    def working_on(self, name: str, *, rate: int) -> None:
        """Set the name of the running agent; each of its rounds counts for `rate` replicas."""
        self._rate, self._name = rate, name

    def finish(self, name: str) -> None:
        """Do nothing: the main process prints lines."""

    def advance(self, rounds: int) -> None:
        """Count `rounds` more rounds, and write the note if 0.3 seconds have passed."""
        self._done += rounds * self._rate
        if time.monotonic() >= self._next:
            self._next = time.monotonic() + _POLL_SECONDS
            with suppress(OSError):  # the main process has ended
                self._path.write_text(f"{self._done} {self._name}", encoding="utf-8")


class Board:
    """Progress bars on stderr: one for all work, one for each part that a worker has begun.

    Args:
        parts: name of each part of the work -> its number of rounds times replicas.
        visible: draw the bars, after two seconds.

    >>> with Board({"replicas 0 to 4": 50}, visible=False) as board:
    ...     note = board.note("replicas 0 to 4")
    ...     note.working_on("fade", rate=5)
    ...     note.advance(3)
    ...     board.counts()
    {'replicas 0 to 4': (15, 'fade')}
    """

    def __init__(self, parts: Mapping[str, int], *, visible: bool = True) -> None:
        self._parts, self._visible = parts, visible
        self._folder = TemporaryDirectory(prefix="dpbandit-")
        self._files = {part: Path(self._folder.name, str(k)) for k, part in enumerate(parts)}
        self._finished, self._over = set[str](), Event()
        self._thread = Thread(target=self._watch, daemon=True)
        self._start = time.perf_counter()
        self._bar: Any = None

    def __enter__(self) -> "Board":
        if self._visible:
            self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._over.set()
        if self._visible:
            self._thread.join()
        if self._bar is not None:
            self._bar.stop()
        self._folder.cleanup()

    def note(self, part: str) -> Note:
        """Return the file (`Note`) in which the worker of this part writes its number of rounds."""
        return Note(self._files[part])

    def finish(self, part: str) -> None:
        """Count a part as done; print that as `Progress.finish` does."""
        self._finished.add(part)
        seconds = time.perf_counter() - self._start
        if self._visible and seconds > PATIENCE:
            say_without_terminal(f"{part}: done after {seconds:.0f} s")

    def counts(self) -> dict[str, tuple[int, str]]:
        """Return for each begun part the number of rounds done in all replicas, and its agent."""
        found = {}
        for part, file in self._files.items():
            with suppress(OSError, ValueError):  # not begun, or half written
                done, _, name = file.read_text(encoding="utf-8").partition(" ")
                found[part] = int(done), name
        return {part: count for part, count in found.items() if part not in self._finished}

    def _watch(self) -> None:
        if self._over.wait(PATIENCE):
            return
        self._bar = started_bar(sum(self._parts.values()))
        (total,), rows = self._bar.task_ids, dict[str, Any]()
        while not self._over.wait(_POLL_SECONDS):
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


@contextmanager
def warnings_on_stderr() -> Iterator[None]:
    """Print each distinct `UserWarning` once on stderr; other warnings are handled as usual.

    >>> from contextlib import redirect_stderr
    >>> with redirect_stderr(sys.stdout), warnings_on_stderr():
    ...     for age in (170, 180, 170):
    ...         warnings.warn(f"Somebody is {age}.", stacklevel=1)
    dpbandit: Somebody is 170.
    dpbandit: Somebody is 180.
    """
    printed, usual = set[str](), warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *where: Any, **how: Any) -> None:
        if not issubclass(category, UserWarning):
            usual(message, category, *where, **how)
        elif str(message) not in printed:
            printed.add(str(message))
            with suppress(OSError):  # the reader is gone
                print(f"dpbandit: {message}", file=sys.stderr)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


_BROKEN_PIPE_CODE = 141
"""Exit code of a program ended by SIGPIPE, 128 + 13."""


class SafeStream:
    """A text stream that raises no errors; after its first error it discards all text.

    Errors are a full disk, or a reader that closes its pipe as `head` does. A `stream` of None,
    closed before the program began, discards all text, too.
    """

    def __init__(self, stream: Any) -> None:
        self._stream: Any = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115
        self._unwritten: list[str] = []
        self.error: OSError | None = None
        """error after which text is discarded, None before"""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def unwritten(self) -> str:
        """Text since the last successful flush."""
        return "".join(self._unwritten)

    def write(self, text: str) -> int:
        """Write the text, or discard it after an error; return its length."""
        if not isinstance(text, str):  # Click tries bytes to see if a stream is binary
            raise TypeError(f"Expected text, got {type(text).__name__}.")
        self._unwritten.append(text)
        self._try(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream; if that succeeds, empty `unwritten`."""
        self._try(self._stream.flush)
        if self.error is None:
            self._unwritten.clear()

    def _try(self, what: Any, *arguments: Any) -> None:
        if self.error is None:
            try:
                what(*arguments)
            except OSError as error:
                self.error = error
                self._discard()

    def _discard(self) -> None:
        """Redirect the stream to the null device, as Python's flush at exit would fail."""
        with suppress(OSError, ValueError):  # a stream in memory has no file descriptor
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


def exit_with(program: Callable[[], int]) -> NoReturn:
    """Run a program and exit with its code, even if standard output fails.

    If output failed, one sentence on stderr gives the reason and repeats the lines that begin with
    "Written"; a reader that stops early, such as `head`, is reported only if there are such lines.
    The exit code of a program that returned 0 is then 141 for such a reader, 2 for other errors.
    """
    before = sys.stdout, sys.stderr
    out, errors = map(SafeStream, before)
    sys.stdout, sys.stderr = out, errors
    try:
        try:
            code = program()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        out.flush()
        if out.error is not None:
            unread = out.error.errno == EPIPE
            written = [line for line in out.unwritten.splitlines() if line.startswith("Written")]
            why = "The output was not read to its end"
            why = why if unread else f"Cannot print: {out.error.strerror}"
            if written or not unread:
                print(" ".join([f"dpbandit: {why}.", *written]), file=errors)
            code = code or (_BROKEN_PIPE_CODE if unread else 2)
    finally:
        out.flush()
        errors.flush()
        sys.stdout, sys.stderr = before
    sys.exit(code)
