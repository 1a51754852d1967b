"""Play the suite with some agents, examine them, and keep all of it in two files."""

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
"""Files of a submission: what was played, and what was found besides."""
MINUTES = 60.0
"""That an agent may take for some replicas of a problem at one epsilon"""
_SOURCES = "agents.json"
"""What the files of the agents were when they were played first"""


class Submission(NamedTuple):
    """What `run_suite` wrote."""

    size: Size
    runs: tuple[AgentRun, ...]
    findings: dict[str, dict[str, Any]]
    """of each agent `unfit` (problem -> why), `tests` (lines), `failed`, `audit` and `raised`, what
    it raised while it was made and played, see `raised_by`"""


def frozen_file(size: Size) -> Any:
    """What `dpbandit suite freeze` measured, round `EARLY` and the last one; may be missing."""
    return files("dpbandit.suite").joinpath(f"frozen-{size}.parquet")


def frozen(size: Size) -> tuple[AgentRun, ...]:
    """The chosen agents on the report seed, and play that learns nothing; none if not shipped."""
    return tuple(run for run in _everything(size) if run.setup.seed == suite().seed)


def finalists() -> tuple[AgentRun, ...]:
    """Agents that were compared for a place on the selection seed, the chosen among them."""
    return tuple(run for run in _everything("small") if run.setup.seed != suite().seed)


def findings_file() -> Any:
    """What tests and audits found of the chosen private agents."""
    return files("dpbandit.suite").joinpath("frozen-small.json")


def findings() -> dict[str, dict[str, Any]]:
    """Of each of them `failed`, why its tests fail, and `audit`."""
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
    jobs: int = 1,
    backend: str = "loky",
    scheduler: str | None = None,
    progress: bool = True,
    with_references: bool | None = None,
    minutes: float = MINUTES,
) -> Submission:
    """Play, certify, test and audit agents on the suite; what is in `out` already is kept.

    Args:
        agents: ids with settings, or MODULE:NAME.
        out: folder for the blocks of replicas, `suite.parquet` and `suite.json`.
        size: "small" or "full".
        jobs, backend, scheduler: as of `run_sweep`; "dask" is a cluster.
        progress: show a bar after two seconds.
        with_references: also play uniform play and the best agents without privacy, which score all
            others; by default where the package ships no results of theirs.
        minutes: that an agent may take for some replicas of one problem at one epsilon; a
            sixtieth of it for one call of make, act or update. What takes longer is stopped.

    Whatever an agent raises ends its runs on one problem at one epsilon alone, and is a row of its
    card, as is being stopped.

    Raises:
        InputError: no agent, one that does not exist, fits nothing or whose files have changed, a
            folder of another program, or with results that were not played in it.
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
    _keep_sources(folder / _SOURCES, agents)
    how: dict[str, Any] = {"backend": backend, "scheduler": scheduler, "progress": progress}
    played = play_study(study, folder / "runs", jobs=jobs, limit=limit, **how)
    findings = {
        agent: examined(agent, size, assignment=own, limit=limit, progress=progress)
        | {"raised": raised_by(agent, own.failed + played.failed)}
        for agent, own in assignments.items()
    }
    return write_submission(Submission(size, played.runs, findings), folder)


def raised_by(agent: str, failures: Iterable[AgentFailure]) -> list[dict[str, Any]]:
    """List what an agent raised: `problem`, `epsilon` (None without a claim), `told`, `trace`."""
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
    """What `play_study` returns."""

    runs: tuple[AgentRun, ...]
    failed: tuple[AgentFailure, ...]


def play_study(study: Study, folder: Path, **how: Any) -> Played:
    """Play what is missing in a folder of blocks; `how` is for `run_sweep`.

    Runs have the provenance of submissions, see `stamped`. A run of which a block failed is none.
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
    """Write `suite.parquet` and `suite.json`, and return what is in them."""
    if done.runs:
        write_runs(folder / RUNS, done.runs)
    document = {"version": version(), "size": done.size, "agents": done.findings}
    write_json(folder / FINDINGS, document)
    return done


def _refuse_foreign(folder: Path) -> None:
    """Raise `InputError` where a result would be overwritten that was not played in this folder."""
    foreign = f"{folder} to hold no results but its own: choose another folder (--out)."
    if any(is_there(folder / name) for name in (RUNS, FINDINGS)) and not is_there(
        folder / _SOURCES
    ):
        raise InputError(f"Expected {foreign}")
    if is_there(folder / RUNS):
        played = {run.key: run for run in Results.load(folder / "runs").runs}
        for run in read_runs(folder / RUNS):
            own = played.get(run.key)
            if own is None or not np.array_equal(own.regret, run.regret):
                raise InputError(f"Expected {foreign} {RUNS} has others of {run.name}.")


def _keep_sources(file: Path, agents: Sequence[str]) -> None:
    """Note what is played; raises `InputError` where an agent's files are not what they were."""
    with _whole(file):
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
    """The provenance of a run, the suite's version, and a hash of the files of its agent."""
    source = source_of(parse_agent(run.name))
    return {**run.provenance, "suite": str(version()), "agent": source}


def check_version(stated: object, where: Path) -> None:
    """Raise `InputError` unless a result is of this version of the suite."""
    if str(stated) != str(version()):
        raise InputError(
            f"Expected {where} to be of version {version()} of the suite, got {abbrev(stated)}: "
            "run its agents again. Scores on problems that both versions have are the same."
        )


def read_submission(folder: str | os.PathLike[str]) -> Submission:
    """What `run_suite` wrote; raises `InputError` where it is damaged or of another version."""
    file, there = Path(folder) / FINDINGS, Path(folder) / RUNS
    nothing = is_there(file) and not is_there(there)  # as of an agent that raised everywhere
    runs = () if nothing else tuple(read_runs(there))
    with _whole(file):
        document = parse_json(read_text(file))
        check_version(document["version"], file)
        return Submission(document["size"], runs, {**document["agents"]})


@contextmanager
def _whole(file: Path) -> Iterator[None]:
    """Raise `InputError` where a file is not what was written."""
    try:
        yield
    except InputError:
        raise
    except (LookupError, TypeError, ValueError):
        raise InputError(f"Expected {file} to be written by `dpbandit suite run`.") from None
