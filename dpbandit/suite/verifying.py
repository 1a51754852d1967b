"""Verify a submitted result by playing all of it again, and use only the numbers played here."""

import json
import os
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import (
    PROGRAM,
    InputError,
    Ints,
    check_writable,
    cpu_of,
    is_there,
    parse_json,
    provenance,
    short_path,
)
from dpbandit.privacy.certificate import ledger_as_dict
from dpbandit.results.runs import AgentRun
from dpbandit.results.store import CorruptFileError, read_runs
from dpbandit.running.foreign import limit_of
from dpbandit.running.settings import module_of
from dpbandit.studies import Configuration, Study, certificate_of
from dpbandit.suite.card import write_card
from dpbandit.suite.catalogue import SIZES, Size, assignment_of, references, replicas
from dpbandit.suite.examining import examined
from dpbandit.suite.playing import (
    FINDINGS,
    MINUTES,
    RUNS,
    Submission,
    check_version,
    frozen,
    play_study,
    raised_by,
    read_submission,
    write_submission,
)
from dpbandit.suite.replaying import MOST_ERRORS, REPLAY_TOLERANCE, far_off
from dpbandit.suite.sources import source_of


class Verdict(NamedTuple):
    """Result of `verify`: reasons to refuse a file, or else the numbers played here."""

    agents: tuple[str, ...]
    size: str
    played: Submission | None
    """runs, tests and audits made here, to be shown instead of the file's; None if refused"""
    replayed: int
    """number of replicas that were played again, all those of the file; 0 if refused"""
    different: int
    """number of replicas whose numbers in the file differ from those played here"""
    refused: tuple[str, ...]
    """reasons to refuse the file, one sentence each; empty if it is accepted"""


def verify(
    path: str | os.PathLike[str],
    *,
    trust: bool = False,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = 1,
    minutes: float = MINUTES,
    progress: bool = True,
    tell: Callable[[str], None] = lambda line: None,
) -> Verdict:
    """Play a submitted `suite.parquet` again, in full, and compare.

    Only the names of agents are taken from the file. Certificates, tests, audits and all replicas
    of all runs are computed here and returned as `played`; the file's numbers are only compared.
    The file is refused

    1. before anything is played, if it is damaged, or if its problems, epsilons, seeds, replicas,
       configs, ledgers or certificates are not those of the suite and of its agents;
    2. if an agent fails its tests here, or an audit here refutes it, or if a `suite.json` beside
       the file states another outcome of these;
    3. if a replica differs in any bit, on the program and the type of CPU that the file states. On
       others rounding and so perhaps actions differ: there a mean that differs by more than
       `MOST_ERRORS` combined standard errors is refused, and other differences are counted.

    Args:
        path: the file, or the folder that holds it.
        trust: import the modules of agents that are not the package's own, which runs their code,
            and accept agents with a `prior`, which counts as public.
        out: new or empty folder for a submission and a card of the numbers played here, written
            unless the file is refused.
        jobs: largest number of worker processes, None for the number of cores.
        minutes: limit of an agent's time, see `run_suite`.
        progress: show a bar after two seconds.
        tell: function that gets a sentence on the expected CPU-seconds before anything is played.

    Raises:
        InputError: if the file is missing, cannot be read or is of another version of the suite;
            if `out` is not a new or empty folder; without `trust` for an agent of another module or
            with a prior; for an agent that cannot be imported.
    """
    if out is not None:
        _check_new(Path(out))
    file = Path(path) / RUNS if Path(path).is_dir() else Path(path)
    try:
        runs = read_runs(file)
    except CorruptFileError as damage:
        return Verdict((), "", None, 0, 0, (str(damage),))
    for run in runs:
        check_version(run.provenance.get("suite", "1"), file)
    size, there = _size(runs), {run.key for run in runs}
    needed = not frozen(size)  # without shipped references, the file must have them
    ends = {one.key: one for one in references(size) if needed or one.key in there}
    limit = limit_of(minutes)
    theirs = [run for run in runs if run.key not in ends] or runs
    names = tuple(dict.fromkeys(run.name for run in theirs))
    _check_trust(names, trust)
    every = {name: assignment_of(name, size, limit) for name in names}
    planned = {one.key: one for each in every.values() for one in each.configurations} | ends

    def refusal(sentences: Sequence[str]) -> Verdict:
        return Verdict(names, size, None, 0, 0, tuple(dict.fromkeys(sentences)))

    reported = _reported_failures(file)
    wanted = {
        key: one for key, one in planned.items() if key in there or _place(one) not in reported
    }
    refused = [*_against_plan(runs, planned, wanted, replicas(size))]
    known = [run for run in runs if run.key in planned]
    refused += [line for run in known for line in _against_agent(run, planned[run.key])]
    if refused:
        return refusal(refused)
    tell(
        f"Playing {len(runs)} runs of {replicas(size)} replicas again, which took about "
        f"{sum(run.seconds for run in runs):,.0f} CPU-seconds where the file was made; tests and "
        "audits come before."
    )
    findings = {
        name: examined(name, size, assignment=assignment, limit=limit, progress=progress)
        for name, assignment in every.items()
    }
    refused += [line for name, found in findings.items() for line in _broken(name, found)]
    if file.name == RUNS and is_there(file.with_name(FINDINGS)):
        refused += _against_findings(file.with_name(FINDINGS), findings)
    if refused:
        return refusal(refused)
    study = Study(configurations=tuple(planned.values()), replicas=replicas(size))
    with TemporaryDirectory() as folder:  # blocks in an existing folder might be the sender's
        how: dict[str, Any] = {"jobs": jobs, "progress": progress, "limit": limit}
        played, failed = play_study(study, Path(folder), **how)
    raised = {failure.key: failure for failure in failed}
    refused += [
        f"Expected a run of the file to be played here, too: {raised[key]}"
        for key in there & raised.keys()
    ]
    refused += [_missing(one) for key, one in planned.items() if key not in there | raised.keys()]
    for name, assignment in every.items():
        findings[name]["raised"] = raised_by(name, assignment.failed + failed)
    here, different = {run.key: run for run in played}, 0
    for run in (run for run in runs if run.key in here):
        others = differing(run, here[run.key])
        different += len(others)
        refused += _differences_in_regret(run, here[run.key], others)
    if refused:
        return refusal(refused)
    done = Submission(size, played, findings)
    if out is not None:
        write_submission(done, Path(out))
        write_card(done, out, verified=True)
    return Verdict(names, size, done, len(runs) * replicas(size), different, ())


def _check_new(folder: Path) -> None:
    """Raise `InputError` unless the folder is new or empty and can be written to."""
    if folder.is_dir() and any(folder.iterdir()):
        raise InputError(f"Expected out={short_path(folder)} to be a new folder, or an empty one.")
    check_writable(folder / RUNS)


def _check_trust(agents: Sequence[str], trust: bool) -> None:
    """Raise `InputError` for agents of other modules or with a prior, unless `trust` is True."""
    found = {agent: module for agent in agents if (module := module_of(agent)) is not None}
    if found and not trust:
        modules = ", ".join(repr(module) for module in dict.fromkeys(found.values()))
        raise InputError(
            f"Expected --trust (trust=True) to verify results of {', '.join(found)}: verifying "
            f"them imports {modules} and runs that code. Read it first."
        )
    with_prior = [
        agent for agent in agents if any(s.startswith("prior=") for s in agent.split(":"))
    ]
    if with_prior and not trust:
        raise InputError(
            f"Expected --trust (trust=True) to verify results of {', '.join(with_prior)}: a prior "
            "counts "
            "as public, and may be made of the suite's own users. See what it is made of first."
        )


def differing(run: AgentRun, played: AgentRun) -> Ints:
    """Return the replicas of a file's run that differ from those played here, at logged rounds.

    With the same program and type of CPU any different bit counts; otherwise a number has to differ
    by more than 1e-9, relatively.
    """
    marks, rounding = len(run.marks), 0.0 if _same_machine(run) else REPLAY_TOLERANCE
    same = np.ones(len(run.replicas), dtype=bool)
    for what in ("regret", "reward", "switches"):
        here = np.asarray(getattr(played, what)[-marks:], dtype=np.float64)
        scale = rounding * np.maximum(1.0, np.abs(here))
        same &= (np.abs(getattr(run, what) - here) <= scale).all(axis=0)
    return run.replicas[~same]


def _differences_in_regret(run: AgentRun, played: AgentRun, others: Ints) -> Iterator[str]:
    """Yield reasons to refuse a run: replicas that differ, or a mean far off on another CPU."""
    if _same_machine(run):
        for replica in others.tolist():
            yield f"Replica {replica} of {_where(run)} comes out otherwise here."
        return
    if far_off(run.regret[-1], played.regret[-1]):
        yield (
            f"Expected {_where(run)} to lose on average what it loses here: the file is more than "
            f"{MOST_ERRORS:g} standard errors off."
        )


def _where(run: AgentRun) -> str:
    return f"{run.name} on {run.setup.problem} at epsilon {run.certificate.claimed_epsilon:g}"


def _size(runs: Sequence[AgentRun]) -> Size:
    """Return "small" or "full", whose number of replicas is nearest to the median of the runs."""
    many = int(np.median([len(run.replicas) for run in runs]))
    return min(SIZES, key=lambda size: abs(replicas(size) - many))


def _against_plan(
    runs: Sequence[AgentRun],
    planned: Mapping[str, Configuration],
    wanted: Mapping[str, Configuration],
    many: int,
) -> Iterator[str]:
    """Yield sentences on runs that are missing, repeated, unplanned, or have wrong replicas."""
    times = Counter(run.key for run in runs)
    for key, one in wanted.items():
        if key not in times:
            yield _missing(one)
    for run in runs:
        where = f"{run.name} on {run.setup.problem}"
        if times[run.key] > 1:
            yield f"Expected {where} once, got it {times[run.key]} times."
        if run.key not in planned:
            yield f"Not in the suite: {where} with seed {run.setup.seed} and {dict(run.config)}."
        if run.replicas.tolist() != list(range(many)):
            yield f"Expected replicas 0 to {many - 1} of {where}, got {run.replicas.tolist()}."


def _missing(one: Configuration) -> str:
    at = getattr(one.config, "epsilon", "no epsilon")
    return f"Missing: {one.name} on {one.setup.problem} at epsilon {at}, as the suite has it."


def _place(one: Configuration) -> tuple[str, str, float]:
    return one.name, one.setup.problem, getattr(one.config, "epsilon", inf)


def _reported_failures(file: Path) -> set[tuple[str, str, float]]:
    """Return (agent, problem, epsilon) of failures reported in `suite.json`, which have no runs."""
    if file.name != RUNS or not is_there(file.with_name(FINDINGS)):
        return set()
    try:
        every = read_submission(file.parent).findings
        return {
            (agent, one["problem"], inf if one["epsilon"] is None else one["epsilon"])
            for agent, found in every.items()
            for one in found.get("raised", ())
        }
    except (AttributeError, KeyError, TypeError):
        return set()


def _against_agent(run: AgentRun, one: Configuration) -> Iterator[str]:
    """Yield reasons to refuse a run: certificate or source hash differs from the agent's here."""
    where, proof = f"{run.name} on {run.setup.problem}", certificate_of(one)
    ledger = run.certificate.ledger.on(one.problem().spec)
    ours, theirs = ledger_as_dict(proof.ledger), ledger_as_dict(ledger)
    stated = ("epsilon", "delta", "pure", "rho", "mu", "claimed_epsilon", "claimed_delta")
    if ours != theirs or any(not _alike(run.certificate, proof, name) for name in stated):
        yield f"Expected the ledger and certificate of {where} to be its agent's."
    if run.provenance.get("agent") != source_of(one.config):
        yield f"Expected {where} to be played by the agent that is here: its files have changed."


def _broken(agent: str, found: Mapping[str, Any]) -> Iterator[str]:
    """Yield reasons to refuse an agent: failed tests, or an audit that refutes its certificate."""
    if found["failed"]:
        yield f"Tests of {agent} fail here: {found['failed']}"
    audit = found["audit"]
    if audit is not None and audit["flagged"]:
        yield f"An audit refutes {agent} here: {audit['verdict']}."


def _against_findings(file: Path, found: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """Yield a sentence for each agent whose tests or audit differ from the submission's."""
    every = read_submission(file.parent).findings
    for agent, findings in found.items():
        if _outcome(every.get(agent)) != _outcome(parse_json(json.dumps(findings))):
            yield f"Expected tests and audit of {agent} to find here what {file} says."


def _outcome(findings: Any) -> Any:
    """Return the part of test and audit results that does not depend on the machine, or None."""
    try:
        audit = findings["audit"]
        tests = [line.partition(":")[0] for line in findings["tests"]]
        return findings["unfit"], tests, bool(findings["failed"]), audit and audit["flagged"]
    except (AttributeError, KeyError, TypeError):
        return None


def _alike(one: Any, other: Any, name: str) -> bool:
    a, b = getattr(one, name), getattr(other, name)
    return a == b or (isinstance(a, float) and bool(np.isclose(a, b, rtol=1e-9)))


def _same_machine(run: AgentRun) -> bool:
    ours = provenance()
    same = all(run.provenance.get(part) == ours[part] for part in PROGRAM)
    return same and cpu_of(run.provenance) == cpu_of(ours)


def accepted(verdict: Verdict) -> Submission:
    """Return the runs played here; raise `InputError` with all reasons if the file was refused."""
    if verdict.refused or verdict.played is None:
        raise InputError(f"Refused. {' '.join(verdict.refused)}")
    return verdict.played
