"""Play, test and audit agents on the suite; write runs and test results into two files."""

import os
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from importlib.resources import as_file, files
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import (
    InputError,
    abbrev,
    is_there,
    parse_json,
    read_text,
    write_json,
)
from dpbandit.results import Results
from dpbandit.results.runs import AgentRun
from dpbandit.results.store import read_runs, write_runs
from dpbandit.running.foreign import limit_of
from dpbandit.running.settings import parse_agent
from dpbandit.studies import AgentFailure, Study, run_sweep
from dpbandit.suite.catalogue import Size, assignment_of, study_for, suite, version
from dpbandit.suite.examining import examined
from dpbandit.suite.sources import source_of

RUNS, FINDINGS = "suite.parquet", "suite.json"
"""Names of a submission's files: runs, and results of tests and audits ("findings")."""
MINUTES = 60.0
"""Default time limit, in minutes, of an agent for a block of replicas at one epsilon."""
_SOURCES = "agents.json"
"""Name of the file with hashes of the agents' source files, written when they first play."""


class Submission(NamedTuple):
    """Runs of `run_suite`, and the results of its tests and audits."""

    size: Size
    runs: tuple[AgentRun, ...]
    findings: dict[str, dict[str, Any]]
    """for each agent the result of `examined`, and under `raised` the errors while it was made and
    played, see `raised_by`"""


def frozen_file(size: Size) -> Any:
    """Return the path of the shipped runs, which log `early_marks`; the file may be missing."""
    return files("dpbandit.suite").joinpath(f"frozen-{size}.parquet")


def frozen(size: Size) -> tuple[AgentRun, ...]:
    """Return the shipped runs of best agents and baselines on the report seed; maybe none."""
    return tuple(run for run in _everything(size) if run.setup.seed == suite().seed)


def finalists() -> tuple[AgentRun, ...]:
    """Return the shipped runs among which the best agents were chosen, on the selection seed."""
    return tuple(run for run in _everything("small") if run.setup.seed != suite().seed)


def findings_file() -> Any:
    """Return the path of shipped tests and audits of best private agents; it may be missing."""
    return files("dpbandit.suite").joinpath("frozen-small.json")


def findings() -> dict[str, dict[str, Any]]:
    """Return for each best private agent `failed`, why its tests failed or "", and `audit`."""
    there = findings_file()
    return {**parse_json(there.read_text(encoding="utf-8"))} if there.is_file() else {}


@cache
def _everything(size: Size) -> tuple[AgentRun, ...]:
    there = frozen_file(size)
    if not there.is_file():
        return ()
    with as_file(there) as path:
        return tuple(read_runs(path))


def run_suite(
    agents: Sequence[str],
    out: str | os.PathLike[str],
    *,
    size: Size = "small",
    jobs: int | None = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    progress: bool = True,
    with_references: bool | None = None,
    minutes: float = MINUTES,
) -> Submission:
    """Play, certify, test and audit agents on the suite; results in `out` are reused.

    Args:
        agents: ids with settings, or MODULE:NAME.
        out: folder for the blocks of replicas, `suite.parquet` and `suite.json`.
        size: "small" or "full".
        jobs, backend, scheduler: arguments of `run_sweep`; the backend "dask" is a cluster.
        progress: show a bar after two seconds.
        with_references: also run uniform play and the best agents without privacy, which define
            the scores 0 and 1; by default only if the package ships no results of these.
        minutes: limit of an agent's time for a block of replicas of one problem at one epsilon; a
            sixtieth of it for one call of make, act or update. Slower agents are stopped.

    An agent's error, or being stopped, ends only its runs on that problem at that epsilon, and is
    reported on its card.

    Raises:
        InputError: if no agent is given, or one that is unknown, fits no problem, or whose files
            have changed; if `out` has results of another program version or from elsewhere.
    """
    folder, agents = Path(out), [*dict.fromkeys(agents)]
    if not agents:
        raise InputError("Expected agents to be one or more, such as fade or mine:Agent.")
    if with_references is None:
        with_references = not frozen(size)
    limit = limit_of(minutes)
    assignments = {agent: assignment_of(agent, size, limit) for agent in agents}
    study = study_for(assignments.values(), size, with_references=with_references)
    _refuse_foreign(folder)
    _record_sources(folder / _SOURCES, agents)
    how: dict[str, Any] = {"backend": backend, "scheduler": scheduler, "progress": progress}
    played = play_study(study, folder / "runs", jobs=jobs, limit=limit, **how)
    findings = {
        agent: examined(agent, size, assignment=assignment, limit=limit, progress=progress)
        | {"raised": raised_by(agent, assignment.failed + played.failed)}
        for agent, assignment in assignments.items()
    }
    return write_submission(Submission(size, played.runs, findings), folder)


def raised_by(agent: str, failures: Iterable[AgentFailure]) -> list[dict[str, Any]]:
    """List an agent's failures: problem, epsilon (None: no claim), `told` (message), traceback."""
    return [
        {
            "problem": one.problem,
            "epsilon": None if one.epsilon == inf else one.epsilon,
            "told": one.message,
            "trace": one.trace,
        }
        for one in failures
        if one.agent == agent
    ]


class Played(NamedTuple):
    """Complete runs of `play_study`, and the configurations whose agent failed."""

    runs: tuple[AgentRun, ...]
    failed: tuple[AgentFailure, ...]


def play_study(study: Study, folder: Path, **how: Any) -> Played:
    """Play the replicas of a study that its folder lacks; `how` has arguments of `run_sweep`.

    The provenance of runs has the suite's version. Runs whose agent failed are left out.
    """
    swept = run_sweep(study, folder, resume=True, **how)
    keys = {one.key for one in study.configurations} - {one.key for one in swept.failed}
    with warnings.catch_warnings():
        if swept.failed:  # which leaves the sweep unfinished
            warnings.simplefilter("ignore", UserWarning)
        there = Results.load(folder).runs if swept.found.files else ()
    found = [run for run in there if run.key in keys]
    return Played(tuple(replace(run, provenance=stamped(run)) for run in found), swept.failed)


def write_submission(done: Submission, folder: Path) -> Submission:
    """Write a submission as `suite.parquet` and `suite.json`; return it unchanged."""
    if done.runs:
        write_runs(folder / RUNS, done.runs)
    document = {"version": version(), "size": done.size, "agents": done.findings}
    write_json(folder / FINDINGS, document)
    return done


def _refuse_foreign(folder: Path) -> None:
    """Raise `InputError` if the folder has results that are not those of its own runs."""
    foreign = f"{folder} to hold no results but its own: choose another folder (--out)."
    if any(is_there(folder / name) for name in (RUNS, FINDINGS)) and not is_there(
        folder / _SOURCES
    ):
        raise InputError(f"Expected {foreign}")
    if is_there(folder / RUNS):
        played = {run.key: run for run in Results.load(folder / "runs").runs}
        for run in read_runs(folder / RUNS):
            here = played.get(run.key)
            if here is None or not np.array_equal(here.regret, run.regret):
                raise InputError(f"Expected {foreign} {RUNS} has others of {run.name}.")


def _record_sources(file: Path, agents: Sequence[str]) -> None:
    """Store hashes of the agents' source files; raise `InputError` if a stored one has changed."""
    with _checking_format(file):
        known = {**parse_json(read_text(file))} if is_there(file) else {}
    now = {agent: source_of(parse_agent(agent)) for agent in agents}
    for agent, source in now.items():
        if known.get(agent, source) != source:
            raise InputError(
                f"Expected the files of {agent} to be as they were for the runs in {file.parent}: "
                "choose another folder (--out)."
            )
    write_json(file, known | now)


def stamped(run: AgentRun) -> dict[str, str]:
    """Return a run's provenance, with the suite's version and a hash of the agent's source."""
    source = source_of(parse_agent(run.name))
    return {**run.provenance, "suite": str(version()), "agent": source}


def check_version(stated: object, where: Path) -> None:
    """Raise `InputError` unless the version stated in the file `where` is that of this suite."""
    if str(stated) != str(version()):
        raise InputError(
            f"Expected {where} to be of version {version()} of the suite, got {abbrev(stated)}: "
            "run its agents again. Scores on problems that both versions have are the same."
        )


def read_submission(folder: str | os.PathLike[str]) -> Submission:
    """Read what `run_suite` wrote; raise `InputError` if it is damaged or of another version."""
    file, there = Path(folder) / FINDINGS, Path(folder) / RUNS
    nothing = is_there(file) and not is_there(there)  # if the agent failed everywhere
    runs = () if nothing else tuple(read_runs(there))
    with _checking_format(file):
        document = parse_json(read_text(file))
        check_version(document["version"], file)
        return Submission(document["size"], runs, {**document["agents"]})


@contextmanager
def _checking_format(file: Path) -> Iterator[None]:
    """Context that turns errors in a file's content into an `InputError` on its format."""
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, ValueError):
        raise InputError(f"Expected {file} to be written by `dpbandit suite run`.") from None
