"""Run a sweep: on this machine or on a cluster, and go on after an interruption."""

import os
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple
from warnings import catch_warnings

from joblib import Parallel, delayed, parallel_config
from threadpoolctl import threadpool_limits

from dpbandit.evaluate import problem_maker, replicas_at_once
from dpbandit.files import write_json
from dpbandit.inputs import BadInput, one_of, whole
from dpbandit.progress import Progress
from dpbandit.runs import AgentRun
from dpbandit.sweeps.audits import audit_file, audits_of, run_audit
from dpbandit.sweeps.file import Sweep
from dpbandit.sweeps.folder import Found, blocks, check_program, consecutive, survey, write_block
from dpbandit.sweeps.plan import Configuration, plan

BACKENDS = ("loky", "dask", "threading")
_MOST_AT_ONCE = 25
"""Replicas of a block, at most: what a killed sweep may lose of each worker."""


class Swept(NamedTuple):
    """What `run_sweep` did."""

    folder: Path
    configurations: int
    run: int
    """replicas that were run now"""
    kept: int
    """replicas that were there"""
    found: Found


def run_sweep(
    sweep: Sweep,
    out: str | os.PathLike[str],
    *,
    backend: str = "loky",
    jobs: int = 1,
    scheduler: str | None = None,
    block: int | None = None,
    resume: bool = False,
    progress: bool = True,
) -> Swept:
    """Run every configuration of a sweep, one file for each block of replicas.

    A replica depends on its configuration, the seed and its number only: numbers are the same, bit
    for bit, for every backend, number of jobs, block size and order. Blocks are computed by workers
    and written here, each to a temporary name and renamed: whenever the process is killed, what is
    lost is the blocks in flight.

    Args:
        sweep: see `Sweep.read`.
        out: folder of the results; `Results.load` reads it.
        backend: "loky" (processes), "threading", or "dask" (a cluster).
        jobs: workers >= 1; on a remote cluster those it has.
        scheduler: address of a Dask scheduler; with none "dask" starts a cluster on this machine.
        block: replicas of a task >= 1; by default what fits the cache, 25 at most.
        resume: go on in a folder that has blocks; those that are there are verified and kept.
        progress: show a bar once it takes longer than two seconds.

    Raises:
        BadInput: a number out of range, whatever `plan` refuses, a folder with blocks but not
            `resume`, a block or a worker of another program, a cluster that cannot be reached, a
            file that cannot be written.
    """
    one_of("backend", backend, BACKENDS)
    whole("jobs", jobs, 1)
    if block is not None:
        whole("block", block, 1)
    if scheduler is not None and backend != "dask":
        raise BadInput(f"Expected scheduler={scheduler!r} only with backend='dask'.")
    folder = Path(out)
    if not resume and blocks(folder):
        raise BadInput(f"Expected out={str(out)!r} to hold no blocks yet, or resume (--resume).")
    configurations = plan(sweep)
    keys = sorted(one.key for one in configurations)
    found = survey(folder, keys)
    tasks = list(_tasks(sweep, configurations, found, block))
    wanted = audits_of(sweep, configurations)
    document = {**sweep.model_dump(mode="json"), "configurations": keys, "audits": sorted(wanted)}
    write_json(folder / "sweep.json", document)
    audits = [task for key, task in wanted.items() if not audit_file(folder, key).exists()]
    missing = sum(last - first for _, first, last in tasks)
    rounds = sum(one.setup.horizon * (last - first) for one, first, last in tasks)
    rounds += sum(2 * how.runs * how.horizon for _, _, how in audits)
    with Progress(rounds, shown=progress) as bar, _workers(backend, jobs, scheduler) as run:
        with closing(run(_play, tasks)) as played:
            for done in played:
                check_program(done, "what a worker sends")
                write_block(folder, done)
                bar.working_on(done.name, rate=len(done.replicas))
                bar.advance(done.setup.horizon)
        with closing(run(run_audit, audits)) as audited:
            for audit in audited:
                write_json(audit_file(folder, audit.key), audit.document)
                bar.working_on(f"audit of {audit.document['agent']}", rate=1)
                bar.advance(audit.rounds)
    total = len(configurations) * sweep.replicas
    return Swept(folder, len(configurations), missing, total - missing, found)


def _tasks(
    sweep: Sweep, configurations: Sequence[Configuration], found: Found, block: int | None
) -> Iterator[tuple[Configuration, int, int]]:
    for one in configurations:
        spec = problem_maker(one.setup.environment)(**one.setup.env_kwargs).spec
        size = block or min(_MOST_AT_ONCE, replicas_at_once(spec))
        for first, last in consecutive(found.missing(one, sweep.replicas), size):
            yield one, first, last


def _play(configuration: Configuration, first: int, last: int) -> AgentRun:
    with threadpool_limits(1):  # more never pays here, and may change a last bit
        return configuration.play(first, last)


@contextmanager
def _workers(
    backend: str, jobs: int, scheduler: str | None
) -> Iterator[Callable[[Any, Sequence[tuple[Any, ...]]], Generator[Any, None, None]]]:
    """What runs a function on many arguments and yields what is done, in any order."""
    with _cluster(backend, jobs, scheduler), threadpool_limits(1), parallel_config(backend=backend):

        def run(function: Any, tasks: Sequence[tuple[Any, ...]]) -> Generator[Any, None, None]:
            parallel = Parallel(n_jobs=jobs, return_as="generator_unordered", batch_size=1)
            results = parallel(delayed(function)(*task) for task in tasks)
            try:
                for one in results:  # noqa: UP028  `yield from` would close it with a warning
                    yield one
            finally:
                with catch_warnings(action="ignore"):  # that what is under way is given up
                    results.close()

        yield run


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
