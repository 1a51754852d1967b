"""Run a sweep: on this machine or on a cluster, and go on after an interruption."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from dpbandit.base.files import check_writable, write_json
from dpbandit.base.inputs import MOST_JOBS, BadInput, one_of, whole
from dpbandit.base.progress import Progress
from dpbandit.base.provenance import cpu_of, provenance
from dpbandit.running.compare import replicas_at_once
from dpbandit.studies.audits import AUDITS, audits_of, missing_audits, run_audit, write_audit
from dpbandit.studies.file import Sweep
from dpbandit.studies.folder import (
    BLOCKS,
    SWEEP,
    Found,
    blocks,
    check_program,
    consecutive,
    survey,
    write_block,
)
from dpbandit.studies.plan import Configuration, plan
from dpbandit.studies.workers import BACKENDS, workers

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
        jobs: workers, 1 to 1024; on a remote cluster those it has.
        scheduler: address of a Dask scheduler; with none "dask" starts a cluster on this machine.
        block: replicas of a task >= 1; by default what fits the cache, 25 at most.
        resume: go on in a folder that has blocks; those that are there are verified and kept.
        progress: show a bar once it takes longer than two seconds; without a terminal, print a line
            for each block.

    Raises:
        BadInput: a number out of range, whatever `plan` refuses, a folder with blocks but not
            `resume`, a block or a worker of another program, a cluster that cannot be reached, a
            worker or cluster that is lost, a file that cannot be written, a folder that disappears.
    """
    one_of("backend", backend, BACKENDS)
    whole("jobs", jobs, 1, MOST_JOBS)
    if block is not None:
        whole("block", block, 1)
    if scheduler is not None and backend != "dask":
        raise BadInput(f"Expected scheduler={scheduler!r} only with backend='dask'.")
    if not os.fspath(out):
        raise BadInput(f"Expected out={out!r} to name a folder (the current one is '.').")
    folder = Path(out)
    if not resume and blocks(folder):
        raise BadInput(f"Expected out={str(out)!r} to hold no blocks yet, or resume (--resume).")
    configurations = plan(sweep, progress=progress)
    keys = sorted(one.key for one in configurations)
    found = survey(folder, keys, progress=progress)
    tasks = list(_tasks(sweep, configurations, found, block))
    wanted = audits_of(sweep, configurations)
    document = {**sweep.model_dump(mode="json"), "configurations": keys, "audits": sorted(wanted)}
    for place in (BLOCKS, *([AUDITS] if wanted else [])):
        check_writable(folder / place / "any")
    write_json(folder / SWEEP, document)
    if tasks and scheduler is None:
        found.met(cpu_of(provenance()))
    audits = missing_audits(folder, wanted, found)
    missing = sum(last - first for _, first, last in tasks)
    rounds = sum(one.setup.horizon * (last - first) for one, first, last in tasks)
    rounds += sum(2 * how.runs * how.horizon for _, _, how in audits)
    written = 0
    with Progress(rounds, shown=progress) as bar, workers(backend, jobs, scheduler) as run:
        with closing(run(Configuration.play, tasks)) as played:
            for done in played:
                check_program(done, "what a worker sends")
                found.check_folder(folder)
                found.met(cpu_of(done.provenance))
                found.files.append(write_block(folder, done))
                written += len(done.replicas)
                bar.working_on(done.name, rate=len(done.replicas))
                bar.advance(done.setup.horizon)
                where = f"{done.name} on {done.setup.problem}, {done.setup.horizon:,} rounds"
                bar.say(f"{written:,} of {missing:,} replicas: {where}")
        with closing(run(run_audit, audits)) as audited:
            for audit in audited:
                found.check_folder(folder)
                found.files.append(write_audit(folder, audit))
                what = f"audit of {audit.document['agent']}"
                bar.working_on(what, rate=1)
                bar.advance(audit.rounds)
                bar.say(f"{what} on {audit.document['problem']}")
    found.check_files(folder)
    total = len(configurations) * sweep.replicas
    return Swept(folder, len(configurations), missing, total - missing, found)


def _tasks(
    sweep: Sweep, configurations: Sequence[Configuration], found: Found, block: int | None
) -> Iterator[tuple[Configuration, int, int]]:
    for one in configurations:
        size = block or min(_MOST_AT_ONCE, replicas_at_once(one.problem().spec))
        for first, last in consecutive(found.missing(one, sweep.replicas), size):
            yield one, first, last
