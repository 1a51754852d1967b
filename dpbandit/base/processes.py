"""Checks before work is sent to other processes, where errors come as long tracebacks."""

import ast
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from dpbandit.base.inputs import MOST_JOBS, InputError, whole

_START_SECONDS = 1.0
"""Time in which a worker process starts and imports what agents need."""


def check_jobs(jobs: int | None) -> None:
    """Raise `InputError` unless the number of processes is None, or from 1 to 1024."""
    if jobs is not None:
        whole("jobs", jobs, 1, MOST_JOBS)


def useful_jobs(jobs: int | None, seconds: Sequence[float]) -> int:
    """Return how many processes, at most `jobs`, should share tasks that take these times.

    It is 1 unless sharing saves more than twice the start of a process. None is the number of
    cores.

    >>> useful_jobs(2, [9, 5, 1]), useful_jobs(2, [9, 1]), useful_jobs(2, [9])
    (2, 1, 1)
    """
    total, longest = sum(seconds), max(seconds, default=0.0)
    if len(seconds) < 2 or total - longest <= 2 * _START_SECONDS:
        return 1
    if jobs is None:
        from joblib import cpu_count  # not before: slow to import

        jobs = cpu_count()
    jobs = min(jobs, len(seconds))
    return jobs if total - max(longest, total / jobs) > 2 * _START_SECONDS else 1


def is_picklable(thing: Any) -> bool:
    """Return True if `thing` can be pickled and sent to another process."""
    try:
        check_picklable("it", thing, "jobs=None")
    except InputError:
        return False
    return True


def check_picklable(
    what: str, thing: Any, how: str, *, dumps: Callable[[Any], object] | None = None
) -> None:
    """Raise `InputError` if `thing` cannot be pickled and sent to another process.

    Args:
        what: name of the thing in the message.
        thing: object to be sent.
        how: argument that starts processes, such as "jobs=2".
        dumps: pickling function; by default joblib's, which accepts lambdas, too.
    """
    if dumps is None:
        from joblib.externals.loky.backend import reduction  # not before: slow to import

        dumps = reduction.dumps
    try:
        dumps(thing)
    except Exception as error:  # a user's class may raise anything
        why = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise InputError(
            f"Expected {what} to be something that can be pickled with {how}, got: {why}; "
            "say jobs=1."
        ) from error


def check_guarded(what: str) -> None:
    """Raise `InputError` if the main script starts processes outside `if __name__ == "__main__"`.

    Every new process runs the script again, and would start processes itself. The check parses the
    source and looks for the running line in an `if` on `__name__`.
    """
    main = sys.modules["__main__"]
    file = getattr(main, "__file__", None)
    top: FrameType | None = sys._getframe()
    while top and (top.f_code.co_name, top.f_code.co_filename) != ("<module>", file):
        top = top.f_back
    if top is None or file is None or top.f_globals is not vars(main):
        return  # a notebook, a thread, or a program that embeds Python
    if getattr(main.__spec__, "name", "").endswith("__main__"):
        return  # `python -m package`, which is not run again
    try:
        tree = ast.parse(Path(file).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return
    line = top.f_lineno
    if not any(
        isinstance(one, ast.If)
        and one.lineno <= line <= (one.end_lineno or line)
        and "__name__" in {part.id for part in ast.walk(one.test) if isinstance(part, ast.Name)}
        for one in ast.walk(tree)
    ):
        raise InputError(
            f"Expected {what} in line {line} of {file} to stand below `if __name__ == "
            "'__main__':`, since every new process runs this script again."
        )
