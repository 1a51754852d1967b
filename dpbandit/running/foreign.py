"""Limits of runs, and processes in which agents of others play, one run at a time."""

import os
import re
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor, TimeoutError as NotDone
from functools import partial
from math import isinf
from queue import SimpleQueue
from threading import Thread
from typing import Any

from dpbandit.base import AgentError, TimeLimit, positive
from dpbandit.base.arrays import one_thread
from dpbandit.specs import AgentConfig

_GLANCE = 1.0
"""Seconds between a worker's looks at whether the program that started it still runs."""
_GRACE = 60.0
"""Seconds beyond the limit of a run after which its process is killed"""
_EXIT_CODES = re.compile(r"\{(.*)\}")
"""Exit codes in what loky says of a worker that ended"""

PATIENT = TimeLimit(float("inf"), 600.0)
"""Limit for agents of others unless another is asked for; long runs are played to the end"""


def limit_of(minutes: float | None) -> TimeLimit:
    """Limit a run to so many minutes, and one call to a sixtieth; None is `PATIENT`.

    Raises `InputError` unless the minutes are > 0.
    """
    if minutes is None:
        return PATIENT
    positive("minutes", minutes)
    return TimeLimit(60 * minutes, minutes)


def is_of_others(config: AgentConfig) -> bool:
    """Return whether the code of an agent, or of one inside it, is not dpbandit's own."""
    inner = getattr(config, "agent", None)
    is_ours = type(config).__module__.partition(".")[0] == "dpbandit"
    return not is_ours or (inner is not None and is_of_others(inner))


def limit_for(config: AgentConfig, limit: TimeLimit | None) -> TimeLimit | None:
    """The limit of one agent: `PATIENT` is none for dpbandit's own, which come back."""
    return limit if limit != PATIENT or is_of_others(config) else None


def end_with(parent: int) -> None:
    """Let this process end with the one that started it, which cannot tell it if it is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        os._exit(1)  # the main thread may wait for ever to hand over a result

    Thread(target=watch, daemon=True).start()


def each_apart(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    jobs: int,
    limit: TimeLimit,
) -> Iterator[Any]:
    """Yield what the function returns for each task, in order, or the `AgentError` of its end.

    Up to `jobs` tasks are played at a time, each alone in a worker process: of one that ends, or
    does not come back in time, it is known whose it was. The next task has a new one.
    """
    idle: SimpleQueue[Any] = SimpleQueue()
    started: list[Any] = []
    for _ in range(min(jobs, len(tasks))):
        idle.put(None)

    def played(task: tuple[Any, ...]) -> Any:
        worker = idle.get() or _worker(started)
        try:
            done = worker.submit(partial(_with_one_thread, function), *task)
            return done.result(None if isinf(limit.run) else limit.run + _GRACE)
        except BrokenExecutor as error:
            found = _EXIT_CODES.search(str(error))
            _end(worker)
            worker = None
            return AgentError("It", "ended its process", "its run", None, found[1] if found else "")
        except NotDone:
            _end(worker)
            worker = None
            return AgentError("It", f"took more than {limit.run:g} s", "its run", None, "killed")
        finally:
            idle.put(worker)

    threads = ThreadPoolExecutor(max(1, min(jobs, len(tasks))))
    try:
        yield from threads.map(played, tasks)
    finally:  # also where the user interrupts it: workers end first, then those that wait for them
        threads.shutdown(wait=False, cancel_futures=True)
        for worker in started:
            _end(worker)


def _worker(started: list[Any]) -> Any:
    from joblib.externals.loky import ProcessPoolExecutor  # not before: slow to import

    started.append(ProcessPoolExecutor(1, initializer=end_with, initargs=(os.getpid(),)))
    return started[-1]


def _end(worker: Any) -> None:
    worker.shutdown(wait=False, kill_workers=True)


def _with_one_thread(function: Callable[..., Any], *task: Any) -> Any:
    with one_thread():
        return function(*task)
