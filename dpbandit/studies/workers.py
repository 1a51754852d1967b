"""Who computes a sweep: processes or threads of this machine, or a cluster."""

import asyncio
import logging
import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import BrokenExecutor, ThreadPoolExecutor
from contextlib import contextmanager
from importlib import import_module
from threading import Thread
from typing import Any
from warnings import catch_warnings, warn

from joblib import Parallel, delayed, parallel_config

from dpbandit.base.arrays import one_thread
from dpbandit.base.inputs import InputError

BACKENDS = ("loky", "dask", "threading")
HTTP = {"dashboard_address": "127.0.0.1:0"}
"""Any free port of this machine, for else Dask asks for 8787 and warns where that is taken."""
_GLANCE = 1.0
"""Seconds between a worker's looks at whether the sweep still runs."""


@contextmanager
def workers(
    backend: str, jobs: int, scheduler: str | None
) -> Iterator[Callable[[Any, Sequence[tuple[Any, ...]]], Generator[Any, None, None]]]:
    """What runs a function on many arguments and yields what is done, in any order.

    Raises `InputError` where a cluster cannot be reached, and where workers or cluster are lost.
    """
    watched = {"initializer": _end_with, "initargs": (os.getpid(),)} if backend == "loky" else {}
    cluster = [_cluster(jobs, scheduler)] if backend == "dask" else []
    for one in cluster:
        tell_of_one_thread(one)

    def run(function: Any, tasks: Sequence[tuple[Any, ...]]) -> Generator[Any, None, None]:
        at_once = max(1, min(jobs, len(tasks)))
        parallel = Parallel(n_jobs=at_once, return_as="generator_unordered", batch_size=1)
        with _loss_in_one_sentence():
            results = parallel(delayed(_work)(function, *task) for task in tasks)
            try:
                for one in results:  # noqa: UP028  `yield from` would close it with a warning
                    yield one
            finally:
                with catch_warnings(action="ignore"):  # that what is under way is given up
                    results.close()

    try:
        with one_thread(), parallel_config(backend=backend, **watched):
            yield run
    finally:
        for one in cluster:
            one.close()


def tell_of_one_thread(cluster: Any) -> None:
    """Warn where joblib sees no reason to send a task away."""
    if sum(cluster.ncores().values()) == 1:
        warn(
            "The Dask cluster has one thread: blocks are played in this process, not on it; give "
            "it two or more.",
            stacklevel=4,
        )


def _work(function: Callable[..., Any], *task: Any) -> Any:
    with one_thread():
        return function(*task)


def _end_with(parent: int) -> None:
    """Let this process end with the one that sweeps, which cannot tell it if it is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        os._exit(1)  # the main thread may wait for ever to hand over a result

    Thread(target=watch, daemon=True).start()


@contextmanager
def _loss_in_one_sentence() -> Iterator[None]:
    """One sentence in place of what joblib and Dask raise when somebody is killed."""
    try:
        yield
    except Exception as error:
        if isinstance(error, BrokenExecutor):
            who = "A worker process was killed, perhaps for want of memory"
        elif isinstance(error, MemoryError):
            who = f"Not enough memory for a block, a smaller --block may do ({error})"
        elif type(error).__module__.startswith("distributed"):
            who = "The Dask cluster was lost, or a worker of it killed"
        elif "DaskDistributedBackend has no worker" in str(error):
            who = "The Dask cluster has no workers"
        else:
            raise
        raise InputError(f"{who}: what is written is kept, go on with --resume.") from error


def _cluster(jobs: int, scheduler: str | None) -> Any:
    """A client of the scheduler, or of a new cluster on this machine."""
    try:
        distributed: Any = import_module("distributed")
    except ImportError:
        raise InputError("The dask backend needs `pip install '.[dask]'` in a checkout.") from None
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # what is lost is told once, by us
    if scheduler is None:
        quiet: dict[str, Any] = {"dashboard_address": None, "scheduler_kwargs": HTTP}
        return distributed.Client(n_workers=jobs, threads_per_worker=1, **quiet)
    try:
        with ThreadPoolExecutor(1) as knocking:
            knocking.submit(asyncio.run, _knock(distributed, scheduler)).result()
        return distributed.Client(scheduler, timeout="20s")
    except Exception as error:  # of as many kinds as there are transports
        why = " ".join(str(error).split()) or type(error).__name__
        raise InputError(f"Cannot reach the Dask scheduler at {scheduler!r}: {why}.") from None


async def _knock(distributed: Any, scheduler: str) -> None:
    """Raise unless somebody answers: a client that fails to start may never end."""
    safe = distributed.Security().get_connection_args("client")
    comm = await distributed.comm.connect(scheduler, timeout=20, **safe)
    comm.abort()
