"""Audits beside the runs of a sweep: every private agent, once for each environment."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit.auditing.audit import audit
from dpbandit.base.files import provenance, write_json
from dpbandit.base.inputs import InputError
from dpbandit.results.runs import describe, run_key
from dpbandit.results.store import audit_file, audit_hash, read_audit
from dpbandit.running.given import problem_maker
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies.configuration import Configuration, Study
from dpbandit.studies.file import Audit
from dpbandit.studies.folder import Found, moved_aside

Task = tuple[str, Configuration, Audit]
"""The key of an audit, and what to audit how."""


class Audited(NamedTuple):
    """One audit, as its file holds it."""

    key: str
    document: dict[str, Any]
    rounds: int
    """of both worlds together"""


def audits_of(study: Study) -> dict[str, Task]:
    """The audits that are wanted, by key: one for each private agent, target and environment."""
    if (how := study.audit) is None:
        return {}
    wanted: dict[str, Task] = {}
    for one in _private(study.configurations):
        arguments = {**one.setup.env_kwargs, "horizon": how.horizon}
        asked = {**vars(one.setup), "horizon": how.horizon, "env_kwargs": arguments}
        asked |= {"agent": one.name, "config": describe(one.config), "audit": how.runs}
        key = run_key({**asked, "source": provenance()["source"]})
        wanted[key] = (key, one, how)
    return wanted


def run_audit(key: str, one: Configuration, how: Audit) -> Audited:
    """Audit the agent of a configuration on its environment at `how.horizon`.

    Where there is no audit for it, its file says why.
    """
    arguments = {**one.setup.env_kwargs, "horizon": how.horizon}
    named: dict[str, Any] = {
        "agent": one.name,
        "problem": one.setup.problem,
        "environment": one.setup.environment,
        "env_kwargs": arguments,
        "config": describe(one.config),
        "provenance": provenance(),
    }
    try:
        spec = problem_maker(one.setup.environment)(**arguments).spec
        report = audit(one.config, spec, runs=how.runs, seed=one.setup.seed, progress=False)
        found = report.as_dict()
    except InputError as reason:
        found = {"not_audited": str(reason)}
    return Audited(key, {**found, **named}, 2 * how.runs * how.horizon)


def missing_audits(folder: Path, wanted: Mapping[str, Task], found: Found) -> list[Task]:
    """Those without a whole file; what is not what was written is moved aside, as blocks are."""
    missing = []
    for key, task in wanted.items():
        file = audit_file(folder, key)
        if file.exists() and not _whole(file):
            found.corrupt.append(moved_aside(file))
        if file.exists():
            found.files.append(file)
        else:
            missing.append(task)
    return missing


def write_audit(folder: Path, audit: Audited) -> Path:
    """One audit, under its own name, and the hash of all it says."""
    document = {**audit.document, "hash": audit_hash(audit.key, audit.document)}
    return write_json(audit_file(folder, audit.key), document)


def _whole(file: Path) -> bool:
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
