"""Run a sweep on this machine or on a cluster, and resume it after an interruption."""

import os
import warnings
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from joblib import cpu_count

from dpbandit.agents import Uniform
from dpbandit.auditing.audit import audit
from dpbandit.base import (
    MOST_REPLICAS,
    PROGRAM,
    AgentError,
    InputError,
    OverTime,
    Progress,
    TimeLimit,
    check_guarded,
    check_jobs,
    check_picklable,
    cpu_of,
    is_picklable,
    one_of,
    provenance,
    time_limit,
    useful_jobs,
    whole,
    write_json,
)
from dpbandit.results.problems import as_words
from dpbandit.results.runs import AgentRun, describe, merged, run_key
from dpbandit.results.store import (
    FORMAT,
    PACKED,
    CorruptFileError,
    Damaged,
    ForeignFileError,
    audit_file,
    audit_hash,
    block_file,
    block_files,
    check_places,
    is_pack,
    key_of,
    pack,
    plan_file,
    planned,
    read_audit,
    read_runs,
    write_runs,
)
from dpbandit.running.compare import REPLICA_SECONDS, rough_seconds
from dpbandit.running.environments import problem_maker
from dpbandit.running.foreign import each_apart, is_of_others, limit_for
from dpbandit.running.loop import consecutive, replicas_at_once
from dpbandit.specs import AgentConfig
from dpbandit.studies.configurations import (
    AgentFailure,
    Audit,
    Configuration,
    Study,
    Sweep,
    failure_of,
    plan,
)
from dpbandit.studies.workers import BACKENDS, workers


@dataclass
class Found:
    """Files of a sweep that its folder already holds."""

    replicas: dict[str, set[int]] = field(default_factory=dict)
    """indices of finished replicas, by key of the configuration"""
    corrupt: list[Path] = field(default_factory=list)
    """damaged files, renamed to end in .corrupt"""
    foreign: list[Path] = field(default_factory=list)
    """files of other sweeps, which stay unchanged"""
    files: list[Path] = field(default_factory=list)
    """undamaged files of this sweep, written now or earlier"""

    cpus: set[str] = field(default_factory=set)
    """types of CPU on which blocks were played"""

    def record_cpu(self, cpu: str) -> None:
        """Record the CPU type of a block, and warn if earlier blocks have another one."""
        if self.cpus and cpu not in self.cpus:
            warnings.warn(
                f"Blocks are made on {' and '.join(sorted(self.cpus))} and on {cpu}: between types "
                "of CPU numbers may differ in their last bits.",
                stacklevel=3,
            )
        self.cpus.add(cpu)

    def missing(self, configuration: Configuration, replicas: int) -> list[int]:
        """Return the indices of a configuration's replicas that are still to be played."""
        done = self.replicas.get(configuration.key, set())
        return [r for r in range(replicas) if r not in done]

    def check_folder(self, folder: Path) -> None:
        """Raise `InputError` if the folder has disappeared, as writing would make a new one."""
        if not plan_file(folder).exists():
            self.check_files(folder)
            raise InputError(f"Expected {folder} to stay: it disappeared. Go on with --resume.")

    def check_files(self, folder: Path) -> None:
        """Raise `InputError` if one of `files` has disappeared."""
        left = sum(file.exists() for file in self.files)
        if left < len(self.files):
            raise InputError(
                f"Expected {folder} to keep what is written: {left} of {len(self.files)} files "
                "are left. Go on with --resume."
            )


def survey(folder: Path, keys: Collection[str], *, progress: bool) -> Found:
    """Read and verify the blocks in `folder` of configurations with these keys; delete nothing.

    Raises:
        InputError: if another version of the program, whose numbers may differ, made a block.
    """
    found, files = Found(), block_files(folder)
    with Progress(len(files), visible=progress) as bar:
        bar.working_on("verifying", rate=1)
        for file in files:
            _survey_file(file, keys, found)
            bar.advance(1)
    return found


def _survey_file(file: Path, keys: Collection[str], found: Found) -> None:
    key, several = key_of(file), is_pack(file)
    if not several and key not in keys:
        found.foreign.append(file)
        return
    try:
        runs = read_runs(file)
    except (CorruptFileError, ForeignFileError):
        runs = []
    if not runs or not (several or [run.key for run in runs] == [key]):
        found.corrupt.append(moved_aside(file))
        return
    ours = [run for run in runs if run.key in keys]
    if not ours:
        found.foreign.append(file)
        return
    found.files.append(file)
    for run in ours:
        check_program(run, file)
        found.record_cpu(cpu_of(run.provenance))
        found.replicas.setdefault(run.key, set()).update(run.replicas.tolist())


def check_program(run: AgentRun, source: Path | str) -> None:
    """Raise `InputError` if another program version made the run, as its numbers may differ."""
    ours = provenance()
    for part in PROGRAM:
        if run.provenance[part] != ours[part]:
            raise InputError(
                f"Expected {source} to be made with {part} {ours[part]}, as this program is, got "
                f"{run.provenance[part]}: choose another --out, or run that program again."
            )


def write_block(folder: Path, run: AgentRun) -> Path:
    """Write a block of replicas to its file in `folder`; return the path."""
    first, last = int(run.replicas[0]), int(run.replicas[-1])
    return write_runs(block_file(folder, run.key, first, last), [run])


def moved_aside(file: Path) -> Path:
    """Rename a damaged file to a free name that ends in .corrupt; return the new path."""
    aside = file.with_name(f"{file.name}.corrupt")
    number = 1
    while aside.exists():
        number += 1
        aside = file.with_name(f"{file.name}.{number}.corrupt")
    return file.rename(aside)


Task = tuple[str, Configuration, Audit]
"""Triple of an audit's key, the configuration to audit, and the settings of the audit."""


class Audited(NamedTuple):
    """A finished audit, with its key and the document (JSON object) that its file stores."""

    key: str
    document: dict[str, Any]
    rounds: int
    """number of rounds played on both neighbouring data sets together"""


def audits_of(study: Study) -> dict[str, Task]:
    """Return a study's audits by key: one for each private agent, target and environment."""
    if (how := study.audit) is None:
        return {}
    wanted: dict[str, Task] = {}
    for one in _private(study.configurations):
        arguments = {**one.setup.env_kwargs, "horizon": how.horizon}
        world = {"horizon": how.horizon, "env_kwargs": as_words(arguments)}
        facts = {**one.setup.facts(), **world}
        facts |= {"agent": one.name, "config": describe(one.config), "audit": how.runs}
        key = run_key({**facts, "source": provenance()["source"]})
        wanted[key] = (key, one, how)
    return wanted


def run_audit(key: str, one: Configuration, how: Audit) -> Audited:
    """Audit the agent of a configuration on its environment at `how.horizon`.

    If the agent cannot be audited, the document has the reason under "not_audited".
    """
    arguments = {**one.setup.env_kwargs, "horizon": how.horizon}
    named: dict[str, Any] = {
        "agent": one.name,
        "problem": one.setup.problem,
        "environment": one.setup.environment,
        "env_kwargs": as_words(arguments),
        "config": describe(one.config),
        "provenance": provenance(),
    }
    try:
        spec = problem_maker(one.setup.environment)(**arguments).spec
        report = audit(one.config, spec, runs=how.runs, seed=one.setup.seed, progress=False)
        found = report.as_dict()
    except InputError as reason:  # also what an agent raised
        found = {"not_audited": str(reason)}
    return Audited(key, {**found, **named}, 2 * how.runs * how.horizon)


def missing_audits(folder: Path, wanted: Mapping[str, Task], found: Found) -> list[Task]:
    """Return the audits still to run; damaged files are renamed and count as missing."""
    missing = []
    for key, task in wanted.items():
        file = audit_file(folder, key)
        if file.exists() and not _undamaged(file):
            found.corrupt.append(moved_aside(file))
        if file.exists():
            found.files.append(file)
        else:
            missing.append(task)
    return missing


def write_audit(folder: Path, audit: Audited) -> Path:
    """Write an audit, with the hash of its document, to its file in `folder`; return the path."""
    document = {**audit.document, "hash": audit_hash(audit.key, audit.document)}
    return write_json(audit_file(folder, audit.key), document)


def _undamaged(file: Path) -> bool:
    try:
        read_audit(file)
    except InputError:
        return False
    return True


def _private(configurations: Sequence[Configuration]) -> Iterator[Configuration]:
    for one in configurations:
        config: AgentConfig = one.config
        if 0 < getattr(config, "epsilon", 0) < float("inf"):
            yield one


_MAX_BLOCK = 100
"""Largest number of replicas in a block; a killed sweep loses at most one block per worker."""


class Swept(NamedTuple):
    """Summary of what `run_sweep` did."""

    folder: Path
    configurations: int
    run: int
    """number of replicas that were played now"""
    reused: int
    """number of replicas that the folder already had"""
    found: Found
    failed: tuple[AgentFailure, ...]
    """failures of agents, at most one for each configuration"""


def run_sweep(
    sweep: Sweep | Study,
    out: str | os.PathLike[str],
    *,
    backend: str = "loky",
    jobs: int | None = 1,
    scheduler: str | None = None,
    block: int | None = None,
    resume: bool = False,
    progress: bool = True,
    limit: TimeLimit | None = None,
) -> Swept:
    """Run every configuration of a sweep, in files of one block of replicas or a thousand.

    A replica depends on its configuration, the seed and its number only, so the numbers are the
    same, bit for bit, for every backend, number of jobs, block size and order. Workers compute
    blocks; this process writes each under a temporary name and renames it. If it is killed, only
    the blocks in progress are lost.

    Args:
        sweep: a sweep, see `Sweep.read`, or a study with configurations made in Python.
        out: folder for the results; `Results.load` reads it.
        backend: "loky" (processes), "threading", or "dask" (a cluster).
        jobs: largest number of workers, 1 to 1024; None for the number of cores, or for 1 if
            something cannot be sent to processes. With "loky" a run that ends sooner in this
            process starts none; a remote cluster uses all its workers.
        scheduler: address of a Dask scheduler; without one, "dask" starts a cluster here.
        block: number of replicas in a task, >= 1; by default as many as fit the cache, at most 100.
        resume: continue in a folder that holds blocks; they are verified and reused.
        progress: show a progress bar after two seconds; without a terminal, print a line for each
            block.
        limit: seconds that an agent may take; unlimited by default. With a limit and the backend
            "loky" agents that are not dpbandit's own play in separate processes.

    An agent that raises an error or takes too long is listed in `failed`, and other agents' runs go
    on. The same holds for an agent that ends its process, if it is a separate process.

    Raises:
        InputError: if a number is out of range, or `plan` refuses the sweep; if `out` has blocks
            but `resume` is False, or files of an unknown format; if another program version made a
            block or runs on a worker; if a cluster cannot be reached, a worker or the cluster is
            lost, a file cannot be written, or the folder disappears.
    """
    one_of("backend", backend, BACKENDS)
    check_jobs(jobs)
    if block is not None:
        whole("block", block, 1)
    if scheduler is not None and backend != "dask":
        raise InputError(f"Expected scheduler={scheduler!r} only with backend='dask'.")
    if not os.fspath(out):
        raise InputError(f"Expected out={out!r} to name a folder (the current one is '.').")
    folder = Path(out)
    if not resume and block_files(folder):
        raise InputError(f"Expected out={str(out)!r} to hold no blocks yet, or resume (--resume).")
    with suppress(Damaged):  # a damaged plan file is written anew below
        planned(folder)
    if backend == "dask" and scheduler is None:
        check_guarded("run_sweep with backend='dask'")
    study = plan(sweep, progress=progress) if isinstance(sweep, Sweep) else sweep
    if backend == "dask" or ((jobs or 1) > 1 and backend == "loky"):
        how = f"jobs={jobs}" if scheduler is None else "scheduler="
        for one in study.configurations:
            check_picklable(f"agent {one.name!r} on {one.setup.problem!r}", one, how)
    keys = list(dict.fromkeys(one.key for one in study.configurations))  # as the file has them
    found = survey(folder, keys, progress=progress)
    failed = dict[str, AgentFailure]()
    timed = _tasks(study, found, block)
    tasks = [(one, a, b, limit_for(one.config, limit)) for _, one, a, b in timed]
    wanted = audits_of(study)
    check_places(folder, audits=bool(wanted))
    found.files = pack(found.files, rest=True)
    write_json(plan_file(folder), _document(study, keys, sorted(wanted)))
    if tasks and scheduler is None:
        found.record_cpu(cpu_of(provenance()))
    audits = missing_audits(folder, wanted, found)
    if backend == "loky" and jobs is None and not all(map(is_picklable, study.configurations)):
        jobs = 1
    times = [seconds for seconds, *_ in timed]
    times += [2 * how.runs * how.horizon * REPLICA_SECONDS for *_, how in audits]
    jobs = useful_jobs(jobs, times) if backend == "loky" else jobs or cpu_count()
    missing = sum(last - first for _, first, last, _ in tasks)
    rounds = sum(one.setup.horizon * (last - first) for one, first, last, _ in tasks)
    rounds += sum(2 * how.runs * how.horizon for _, _, how in audits)
    written = blocks = 0
    with Progress(rounds, visible=progress) as bar, workers(backend, jobs, scheduler) as run:
        with closing(_played(run, tasks, jobs, limit if backend == "loky" else None)) as played:
            for done in played:
                if isinstance(done, AgentFailure):
                    failed.setdefault(done.key, done)
                    bar.say(str(done))
                    continue
                check_program(done, "what a worker sends")
                found.check_folder(folder)
                found.record_cpu(cpu_of(done.provenance))
                found.files.append(write_block(folder, done))
                blocks += 1
                if blocks % PACKED == 0:
                    found.check_files(folder)
                    found.files = pack(found.files)
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
    found.files = pack(found.files, rest=True)
    total = len(keys) * study.replicas
    return Swept(folder, len(keys), written, total - missing, found, tuple(failed.values()))


def _played(
    run: Callable[..., Generator[Any, None, None]],
    tasks: Sequence[tuple[Any, ...]],
    jobs: int,
    limit: TimeLimit | None,
) -> Generator[AgentRun | AgentFailure, None, None]:
    """Yield results of `_play` for tasks; with a limit, others' agents get separate processes."""
    in_pool, apart = list[Any](), list[Any]()
    for task in tasks:
        (apart if limit is not None and is_of_others(task[0].config) else in_pool).append(task)
    yield from run(_play, in_pool)
    if limit is not None:
        for task, done in zip(apart, each_apart(_play, apart, jobs, limit), strict=True):
            yield failure_of(task[0], done) if isinstance(done, AgentError) else done


def play_all(one: Configuration, replicas: int, *, progress: bool = True) -> AgentRun:
    """Play all replicas of a configuration in this process, without writing files."""
    whole("replicas", replicas, 1, MOST_REPLICAS)
    size, parts = replicas_at_once(one.problem().spec, one.config), []
    with Progress(one.setup.horizon * replicas, visible=progress) as bar:
        for first, last in consecutive(range(replicas), size):
            bar.working_on(one.name, rate=last - first)
            parts.append(one.play(first, last, bar.advance))
    return merged(parts)


def _document(study: Study, keys: Sequence[str], audits: Sequence[str]) -> dict[str, Any]:
    """Return the contents of the plan file that describes a study in its folder."""
    return {
        "format": FORMAT,
        **study.request,
        "name": study.name,
        "replicas": study.replicas,
        "configurations": keys,
        "audits": audits,
    }


def _play(
    one: Configuration, first: int, last: int, limit: TimeLimit | None
) -> AgentRun | AgentFailure:
    """Return the run of replicas `first` to `last` - 1, or its failure; raise that of `Uniform`."""
    try:
        with time_limit(limit):
            return one.play(first, last)
    except InputError as error:
        if one.config == Uniform():
            raise
        return failure_of(one, error)
    except OverTime as over:
        slow = AgentError(one.name, f"took more than {over}", "its run", None, "it was stopped")
        return failure_of(one, slow)
    except MemoryError as error:
        if limit is None:
            raise
        return failure_of(one, InputError(f"Not enough memory: {error}"))


def _tasks(
    study: Study, found: Found, block: int | None
) -> list[tuple[float, Configuration, int, int]]:
    """Return tasks, longest first: a rough time in seconds, a configuration, and its replicas."""
    tasks = []
    for one in {one.key: one for one in study.configurations}.values():
        spec = one.problem().spec
        size = block or min(_MAX_BLOCK, replicas_at_once(spec, one.config))
        for ends in consecutive(found.missing(one, study.replicas), size):
            tasks.append((rough_seconds(one.config, spec, *ends), one, *ends))
    return sorted(tasks, key=lambda task: -task[0])
