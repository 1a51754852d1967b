"""Who computes a sweep: processes or threads of this machine, or a cluster."""

import os
import time
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from importlib import import_module
from threading import Thread
from typing import Any
from warnings import catch_warnings

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from dpbandit.inputs import BadInput

BACKENDS = ("loky", "dask", "threading")
_GLANCE = 1.0
"""Seconds between a worker's looks at whether the sweep still runs."""


@contextmanager
def workers(
    backend: str, jobs: int, scheduler: str | None
) -> Iterator[Callable[[Any, Sequence[tuple[Any, ...]]], Generator[Any, None, None]]]:
    """What runs a function on many arguments and yields what is done, in any order."""
    parent = os.getpid() if backend == "loky" else None
    with _cluster(backend, jobs, scheduler), threadpool_limits(1), parallel_config(backend=backend):

        def run(function: Any, tasks: Sequence[tuple[Any, ...]]) -> Generator[Any, None, None]:
            parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            results = parallel(delayed(_work)(parent, function, *task) for task in tasks)
            try:
                for one in results:  # noqa: UP028  `yield from` would close it with a warning
                    yield one
            finally:
                with catch_warnings(action="ignore"):  # that what is under way is given up
                    results.close()

        yield run


def _work(parent: int | None, function: Callable[..., Any], *task: Any) -> Any:
    if parent == os.getppid():
        _end_with_parent(parent)
    with threadpool_limits(1):  # more never pays here, and may change a last bit
        return function(*task)


@cache
def _end_with_parent(parent: int) -> None:
    """Let this process end with the one that sweeps, which cannot tell it if it is killed."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_GLANCE)
        os._exit(1)  # the main thread may wait for ever to hand over a result

    Thread(target=watch, daemon=True).start()


def _cluster(backend: str, jobs: int, scheduler: str | None) -> AbstractContextManager[Any]:
    if backend != "dask":
        return nullcontext()
    try:
        client: Any = import_module("distributed").Client
    except ImportError:
        raise BadInput("The dask backend needs `pip install '.[dask]'` in a checkout.") from None
    if scheduler is None:
        return client(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
    try:
        return client(scheduler, timeout="20s")
    except (OSError, ValueError) as error:
        raise BadInput(f"Cannot reach the Dask scheduler at {scheduler!r}: {error}.") from None
