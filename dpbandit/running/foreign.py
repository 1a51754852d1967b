"""Time limits of runs, and separate processes for runs of foreign agents."""

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

from dpbandit.base import AgentError, TimeLimit, one_thread, positive
from dpbandit.specs import AgentConfig

_PARENT_CHECK_SECONDS = 1.0
"""Seconds between a worker's checks that its parent process still runs."""
_GRACE_SECONDS = 60.0
"""Seconds after the time limit of a run at which its process is killed."""
_EXIT_CODES = re.compile(r"\{(.*)\}")
"""Pattern of the exit codes in loky's message about a worker that ended."""

PATIENT = TimeLimit(float("inf"), 600.0)
"""Default time limits of foreign agents, infinite for a run, ten minutes for a call of a method."""


def limit_of(minutes: float | None) -> TimeLimit:
    """Return limits of `minutes` for a run, and of 1/60 of that for a call; `PATIENT` for None.

    Raises `InputError` unless `minutes` is > 0.
    """
    if minutes is None:
        return PATIENT
    positive("minutes", minutes)
    return TimeLimit(60 * minutes, minutes)


def is_of_others(config: AgentConfig) -> bool:
    """Return True if the code of an agent, or of an agent that it wraps, is not dpbandit's."""
    inner = getattr(config, "agent", None)
    is_ours = type(config).__module__.partition(".")[0] == "dpbandit"
    return not is_ours or (inner is not None and is_of_others(inner))


def limit_for(config: AgentConfig, limit: TimeLimit | None) -> TimeLimit | None:
    """Return `limit`, but None for dpbandit's own agents if it is the default `PATIENT`."""
    return limit if limit != PATIENT or is_of_others(config) else None


def end_with(parent: int) -> None:
    """Start a thread that ends this process once its parent has ended, even if it was killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_CHECK_SECONDS)
        os._exit(1)  # the main thread may wait for ever to return a result

    Thread(target=watch, daemon=True).start()


def each_apart(
    function: Callable[..., Any],
    tasks: Sequence[tuple[Any, ...]],
    jobs: int,
    limit: TimeLimit,
    callbacks: Sequence[Callable[[], object]] = (),
) -> Iterator[Any]:
    """Yield the function's result for each task, in order, or an `AgentError` if its process died.

    Up to `jobs` tasks run at a time, each alone in a worker process. So a process that ends or
    exceeds the limit belongs to a known task, and another process replaces it. `callbacks` has a
    function for each task, which a thread calls when the task has ended.
    """
    idle: SimpleQueue[Any] = SimpleQueue()
    started: list[Any] = []
    for _ in range(min(jobs, len(tasks))):
        idle.put(None)

    def played(task: tuple[Any, ...], callback: Callable[[], object]) -> Any:
        worker = idle.get() or _worker(started)
        try:
            done = worker.submit(partial(_with_one_thread, function), *task)
            return done.result(None if isinf(limit.run) else limit.run + _GRACE_SECONDS)
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
            callback()

    threads = ThreadPoolExecutor(max(1, min(jobs, len(tasks))))
    try:
        yield from threads.map(played, tasks, callbacks or [lambda: None] * len(tasks))
    finally:  # also after Ctrl-C: workers end first, then the threads that wait for them
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
