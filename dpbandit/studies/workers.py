"""Workers that run tasks: processes or threads of this machine, or a Dask cluster."""

import asyncio
import logging
import os
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib import import_module
from itertools import islice
from typing import Any
from warnings import catch_warnings, warn

from joblib import Parallel, delayed, parallel_config

from dpbandit.base import InputError, not_installed
from dpbandit.base.arrays import one_thread
from dpbandit.running.foreign import end_with

BACKENDS = ("loky", "dask", "threading")  # of joblib, on which workers run
HTTP = {"dashboard_address": "127.0.0.1:0"}
"""Options by which Dask's dashboard takes any free port, and does not warn if 8787 is taken."""
_QUIET_WORKERS = {
    "distributed.worker.profile.enabled": False,
    "distributed.worker.memory.monitor-interval": "2s",
    "distributed.admin.tick.interval": "1s",
    # unset: with it, memory of every larger array is returned to the system and asked for again
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": None,
}
"""Settings of Dask without which its workers take up to twice the time of other processes."""
_TASKS_PER_THREAD = 2
"""Number of tasks that a worker of a Dask cluster has at once: one to play and the next one."""
_WORKER_SECONDS = 10
"""Seconds in which a worker has to join a Dask cluster."""


@contextmanager
def workers(
    backend: str, jobs: int, scheduler: str | None
) -> Iterator[Callable[[Any, Sequence[tuple[Any, ...]]], Generator[Any, None, None]]]:
    """Yield a function of (function, tasks) that runs tasks on workers; results come in any order.

    Raises `InputError` if a cluster cannot be reached, or if a worker or the cluster is lost.
    """
    tied_to_parent = (
        {"initializer": end_with, "initargs": (os.getpid(),)} if backend == "loky" else {}
    )
    cluster = [_cluster(jobs, scheduler)] if backend == "dask" else []

    def results_of(function: Any, tasks: Sequence[tuple[Any, ...]]) -> Iterator[Any]:
        if cluster:
            return _on_cluster(cluster[0], function, tasks)
        at_once = max(1, min(jobs, len(tasks)))
        parallel = Parallel(n_jobs=at_once, return_as="generator_unordered", batch_size=1)
        found: Iterator[Any] = parallel(delayed(_work)(function, *task) for task in tasks)
        return found

    def run(function: Any, tasks: Sequence[tuple[Any, ...]]) -> Generator[Any, None, None]:
        with _reporting_lost_workers():
            results: Any = results_of(function, tasks)
            try:
                for one in results:  # noqa: UP028  `yield from` would close it with a warning
                    yield one
            finally:
                with catch_warnings(action="ignore"):  # joblib's, of tasks that are cancelled
                    results.close()

    on = nullcontext() if cluster else parallel_config(backend=backend, **tied_to_parent)
    try:
        with one_thread(), on:
            yield run
    finally:
        for one in cluster:
            one.close()


def _on_cluster(
    client: Any, function: Callable[..., Any], tasks: Sequence[tuple[Any, ...]]
) -> Generator[Any, None, None]:
    """Yield results of tasks on a Dask cluster, whose scheduler moves those of lost workers.

    Each worker has two tasks at most, so that neither it nor the scheduler holds all of them.
    """
    distributed: Any = import_module("distributed")
    waiting, done = iter(tasks), distributed.as_completed(with_results=True)
    client.wait_for_workers(1, timeout=_WORKER_SECONDS)
    there: set[str] = set()
    try:
        while True:
            now = set(threads := client.ncores())
            if lost := len(there - now):
                warn(
                    f"{lost} of {len(there)} workers of the Dask cluster were lost; other workers "
                    "play their tasks again.",
                    stacklevel=4,
                )
            there = now
            room = _TASKS_PER_THREAD * max(1, sum(threads.values())) - done.count()
            for task in islice(waiting, max(0, room)):
                done.add(client.submit(_work, function, *task, pure=False))
            if done.is_empty():
                return
            future, result = next(done)
            future.release()
            yield result
    finally:
        done.clear()


def _work(function: Callable[..., Any], *task: Any) -> Any:
    with one_thread():
        return function(*task)


@contextmanager
def _reporting_lost_workers() -> Iterator[None]:
    """Context that turns errors of joblib and Dask on killed workers into an `InputError`."""
    try:
        yield
    except Exception as error:
        if isinstance(error, BrokenExecutor):
            who = "A worker process was killed, perhaps for want of memory"
        elif isinstance(error, MemoryError):
            who = f"Not enough memory for a block, a smaller --block may do ({error})"
        elif type(error).__module__.startswith("distributed"):
            who = "The Dask cluster was lost, or a worker of it killed"
        elif "workers arrived after" in str(error):
            who = "The Dask cluster has no workers"
        else:
            raise
        raise InputError(f"{who}: what is written is kept, go on with --resume.") from error


def _cluster(jobs: int, scheduler: str | None) -> Any:
    """Return a Dask client of the scheduler at this address, or of a new cluster here."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise not_installed("distributed", "the dask backend", "dask") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # we report losses, once
    if scheduler is None:
        silent_options: dict[str, Any] = {"dashboard_address": None, "scheduler_kwargs": HTTP}
        with import_module("dask.config").set(_QUIET_WORKERS):
            return distributed.Client(n_workers=jobs, threads_per_worker=1, **silent_options)
    try:
        with ThreadPoolExecutor(1) as knocking:
            knocking.submit(asyncio.run, _try_connecting(distributed, scheduler)).result()
        return distributed.Client(scheduler, timeout="20s")
    except Exception as error:  # of as many kinds as there are transports
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"Cannot reach the Dask scheduler at {scheduler!r}: {why}.") from None


async def _try_connecting(distributed: Any, scheduler: str) -> None:
    """Raise if the scheduler does not answer, as a client that cannot connect may never return."""
    safe = distributed.Security().get_connection_args("client")
    comm = await distributed.comm.connect(scheduler, timeout=20, **safe)
    comm.abort()
