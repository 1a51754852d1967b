"""Standard output and error whose own failures do not end what a program does."""

import os
import sys
from collections.abc import Callable
from contextlib import suppress
from errno import EPIPE
from typing import Any, NoReturn

_UNREAD = 141
"""Exit code of a program that SIGPIPE ended, 128 + 13."""


class SafeStream:
    """A text stream that swallows its own errors: from the first one on, text is not written.

    A reader that closes its pipe, as `head` does, and a full disk are such errors. A stream that
    was closed before the program began is None, and takes everything.
    """

    def __init__(self, stream: Any) -> None:
        self._stream: Any = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115
        self._unwritten: list[str] = []
        self.error: OSError | None = None
        """why nothing more is written, None while all is well"""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    @property
    def unwritten(self) -> str:
        """Text since the last flush that was done."""
        return "".join(self._unwritten)

    def write(self, text: str) -> int:
        """Write the text, or note it as unwritten; returns its length."""
        self._unwritten.append(text)
        self._try(self._stream.write, text)
        return len(text)

    def flush(self) -> None:
        """Flush, after which nothing is unwritten, unless that fails."""
        self._try(self._stream.flush)
        if self.error is None:
            self._unwritten.clear()

    def _try(self, what: Any, *given: Any) -> None:
        if self.error is None:
            try:
                what(*given)
            except OSError as error:
                self.error = error
                self._discard()

    def _discard(self) -> None:
        """Let what the stream has in its memory go nowhere, or Python complains when it ends."""
        with suppress(OSError, ValueError):  # a stream of a test has no number
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, self._stream.fileno())
            os.close(nowhere)


def exit_with(program: Callable[[], int]) -> NoReturn:
    """Run a program, and end with the exit code that it returns, whatever becomes of its output.

    Where standard output broke, one sentence says why and which files are written, as lines that
    begin with "Written" say; nothing is said of a list that its reader, such as `head`, had enough
    of. The exit code is 141 then, and 2 for other errors, unless the program's own is not 0.
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
            code = code or (_UNREAD if unread else 2)
    finally:
        out.flush()
        errors.flush()
        sys.stdout, sys.stderr = before
    sys.exit(code)
