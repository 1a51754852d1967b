"""Run a sweep: on this machine or on a cluster, and go on after an interruption."""

import os
from collections.abc import Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit.base.files import cpu_of, provenance, write_json
from dpbandit.base.inputs import MOST_JOBS, MOST_REPLICAS, InputError, one_of, whole
from dpbandit.base.progress import Progress
from dpbandit.results.runs import AgentRun, merged
from dpbandit.results.store import FORMAT, Damaged, block_files, check_places, plan_file, planned
from dpbandit.running.compare import consecutive, replicas_at_once
from dpbandit.studies.audits import audits_of, missing_audits, run_audit, write_audit
from dpbandit.studies.configuration import Configuration, Study
from dpbandit.studies.file import Sweep
from dpbandit.studies.folder import Found, check_program, survey, write_block
from dpbandit.studies.plan import plan
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
    sweep: Sweep | Study,
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
        sweep: see `Sweep.read`; or a study, whose configurations come from Python.
        out: folder of the results; `Results.load` reads it.
        backend: "loky" (processes), "threading", or "dask" (a cluster).
        jobs: workers, 1 to 1024; on a remote cluster those it has.
        scheduler: address of a Dask scheduler; with none "dask" starts a cluster on this machine.
        block: replicas of a task >= 1; by default what fits the cache, 25 at most.
        resume: go on in a folder that has blocks; those that are there are verified and kept.
        progress: show a bar once it takes longer than two seconds; without a terminal, print a line
            for each block.

    Raises:
        InputError: a number out of range, whatever `plan` refuses, a folder with blocks but not
            `resume`, or of an unknown format, a block or a worker of another program, a cluster
            that cannot be reached, a worker or cluster that is lost, a file that cannot be written,
            a folder that disappears.
    """
    one_of("backend", backend, BACKENDS)
    whole("jobs", jobs, 1, MOST_JOBS)
    if block is not None:
        whole("block", block, 1)
    if scheduler is not None and backend != "dask":
        raise InputError(f"Expected scheduler={scheduler!r} only with backend='dask'.")
    if not os.fspath(out):
        raise InputError(f"Expected out={out!r} to name a folder (the current one is '.').")
    folder = Path(out)
    if not resume and block_files(folder):
        raise InputError(f"Expected out={str(out)!r} to hold no blocks yet, or resume (--resume).")
    with suppress(Damaged):  # that is written anew
        planned(folder)
    study = plan(sweep, progress=progress) if isinstance(sweep, Sweep) else sweep
    keys = list(dict.fromkeys(one.key for one in study.configurations))  # as the file has them
    found = survey(folder, keys, progress=progress)
    tasks = list(_tasks(study, found, block))
    wanted = audits_of(study)
    check_places(folder, audits=bool(wanted))
    write_json(plan_file(folder), _document(study, keys, sorted(wanted)))
    if tasks and scheduler is None:
        found.met(cpu_of(provenance()))
    audits = missing_audits(folder, wanted, found)
    missing = sum(last - first for _, first, last in tasks)
    rounds = sum(one.setup.horizon * (last - first) for one, first, last in tasks)
    rounds += sum(2 * how.runs * how.horizon for _, _, how in audits)
    written = 0
    with Progress(rounds, shown=progress) as bar, workers(backend, jobs, scheduler) as run:
        with closing(run(_play, tasks)) as played:
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
    total = len(keys) * study.replicas
    return Swept(folder, len(keys), missing, total - missing, found)


def play_all(one: Configuration, replicas: int, *, progress: bool = True) -> AgentRun:
    """All replicas of a configuration, here and now, block after block; nothing is kept."""
    whole("replicas", replicas, 1, MOST_REPLICAS)
    size, parts = replicas_at_once(one.problem().spec), []
    with Progress(one.setup.horizon * replicas, shown=progress) as bar:
        for first, last in consecutive(range(replicas), size):
            bar.working_on(one.name, rate=last - first)
            parts.append(one.play(first, last, bar.advance))
    return merged(parts)


def _document(study: Study, keys: Sequence[str], audits: Sequence[str]) -> dict[str, Any]:
    """What is told of a study in its folder."""
    return {
        "format": FORMAT,
        **study.asked,
        "name": study.name,
        "replicas": study.replicas,
        "configurations": keys,
        "audits": audits,
    }


def _play(one: Configuration, first: int, last: int) -> AgentRun:
    return one.play(first, last)


def _tasks(
    study: Study, found: Found, block: int | None
) -> Iterator[tuple[Configuration, int, int]]:
    for one in {one.key: one for one in study.configurations}.values():
        size = block or min(_MOST_AT_ONCE, replicas_at_once(one.problem().spec))
        for first, last in consecutive(found.missing(one, study.replicas), size):
            yield one, first, last
