"""Audits beside the runs of a sweep: every private agent, once for each environment."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from dpbandit.auditing.audit import audit
from dpbandit.evaluate import problem_maker
from dpbandit.inputs import BadInput
from dpbandit.protocols import AgentConfig
from dpbandit.provenance import provenance
from dpbandit.runs import describe, run_key
from dpbandit.sweeps.file import Audit, Sweep
from dpbandit.sweeps.plan import Configuration

AUDITS = "audits"
"""Folder of the audits below that of the sweep."""


class Audited(NamedTuple):
    """One audit, as its file holds it."""

    key: str
    document: dict[str, Any]
    rounds: int
    """of both worlds together"""


def audits_of(
    sweep: Sweep, configurations: Sequence[Configuration]
) -> dict[str, tuple[str, Configuration, Audit]]:
    """The audits that are wanted, by key: one for each private agent, target and environment."""
    if sweep.audit is None:
        return {}
    wanted: dict[str, tuple[str, Configuration, Audit]] = {}
    for one in _private(configurations):
        arguments = {**one.setup.env_kwargs, "horizon": sweep.audit.horizon}
        asked = {**vars(one.setup), "horizon": sweep.audit.horizon, "env_kwargs": arguments}
        asked |= {"agent": one.name, "config": describe(one.config), "audit": sweep.audit.runs}
        key = run_key({**asked, "source": provenance()["source"]})
        wanted[key] = (key, one, sweep.audit)
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
    except BadInput as reason:
        found = {"not_audited": str(reason)}
    return Audited(key, {**found, **named}, 2 * how.runs * how.horizon)


def audit_file(folder: Path, key: str) -> Path:
    """Where an audit's file is."""
    return folder / AUDITS / f"{key}.json"


def _private(configurations: Sequence[Configuration]) -> Iterator[Configuration]:
    for one in configurations:
        config: AgentConfig = one.config
        if 0 < getattr(config, "epsilon", 0) < float("inf"):
            yield one
