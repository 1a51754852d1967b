"""Verify a submitted result: what was asked, what it promises, and a sample of it played again."""

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import (
    PROGRAM,
    Floats,
    InputError,
    Ints,
    Progress,
    cpu_of,
    is_there,
    parse_json,
    provenance,
    share,
)
from dpbandit.privacy.certificate import ledger_as_dict
from dpbandit.results.runs import AgentRun
from dpbandit.results.store import CorruptFileError, read_runs
from dpbandit.studies import Configuration
from dpbandit.studies.configurations import certificate_of
from dpbandit.suite.catalogue import SIZES, Size, asked_of, references, replicas
from dpbandit.suite.playing import FINDINGS, RUNS, check_version, examined, read_submission
from dpbandit.suite.sources import source_of

_SMALL = 0.05
"""Those that are no difference: on a mean of 8 replicas a fifth of its standard error, at most"""
_FALSE_ALARM = 0.005
"""Of each of two tests on another machine, at most"""
_PART = 0.125
"""Of the replicas, played again where bits have to be the same"""


class Verdict(NamedTuple):
    """What `verify` found."""

    agents: tuple[str, ...]
    size: str
    replayed: int
    """replicas that were played again"""
    exact: bool
    """compared bit for bit; else as differences that have no direction"""
    refused: tuple[str, ...]
    """a sentence for each thing that is wrong; if there is none, it is what it says"""


def verify(
    path: str | os.PathLike[str],
    *,
    part: float | None = None,
    seed: int | None = None,
    progress: bool = True,
) -> Verdict:
    """Check a submitted `suite.parquet`, or the folder that holds it.

    Its hash; that each agent was played on every problem that it fits, at every epsilon, with the
    suite's seeds and all replicas; that configs, certificates and ledgers are those of the agents;
    that tests and audits find what a `suite.json` beside it says; and replicas, which are played
    again: on the same program and type of CPU every number has to be equal; elsewhere see
    `apart`.

    Args:
        path: file or folder.
        part: share of replicas that is played again, in (0, 1], of every run at least one; by
            default an eighth where bits have to be the same, else all.
        seed: of the sample; by default nobody knows it before.
        progress: show a bar after two seconds.

    Raises:
        InputError: there is no such file, it cannot be read, or is of another version of the
            suite; agents that cannot be imported.
    """
    if part is not None:
        share("part", part)
    file = Path(path) / RUNS if Path(path).is_dir() else Path(path)
    try:
        runs = read_runs(file)
    except CorruptFileError as damage:
        return Verdict((), "", 0, False, (str(damage),))
    for run in runs:
        check_version(run.provenance.get("suite", "1"), file)
    size, there = _size(runs), {run.key for run in runs}
    ends = {one.key: one for one in references(size) if one.key in there}
    theirs = [run for run in runs if run.key not in ends] or runs
    names = tuple(dict.fromkeys(run.name for run in theirs))
    asked = {one.key: one for name in names for one in asked_of(name, size).configurations} | ends
    refused = [*_against_plan(runs, asked, replicas(size))]
    known = [(run, asked[run.key]) for run in runs if run.key in asked]
    refused += [line for run, one in known for line in _against_agent(run, one)]
    exact = all(_same_machine(run) for run in runs)
    if file.name == RUNS and is_there(file.with_name(FINDINGS)):
        refused += _against_findings(file.with_name(FINDINGS), names, size, exact)
    part = part or (_PART if exact else 1.0)
    rng, off = np.random.default_rng(seed), list[Difference]()
    with Progress(sum(run.setup.horizon for run, _ in known), shown=progress) as bar:
        for run, one in known:
            many = max(1, round(part * len(run.replicas)))
            places = rng.choice(len(run.replicas), many, replace=False)
            bar.working_on(f"{run.name} on {run.setup.problem}", rate=many)
            again = [one.play(r, r + 1) for r in map(int, run.replicas[places])]
            for place, played in zip(map(int, places), again, strict=True):
                if exact and not _equal(run, place, played):
                    where = f"{run.name} on {run.setup.problem}"
                    refused.append(f"Replica {run.replicas[place]} of {where} is not so.")
            here = np.array([played.regret[-1, 0] for played in again])
            target = run.certificate.claimed_epsilon
            for errors in in_errors(run.regret[-1], places, here).tolist():
                off.append(Difference(run.name, run.setup.problem, target, errors))
            bar.advance(run.setup.horizon)
    if not exact:
        refused += apart(off)
    return Verdict(names, size, len(off), exact, tuple(dict.fromkeys(refused)))


class Difference(NamedTuple):
    """Of a submitted replica from the same one played here."""

    agent: str
    problem: str
    epsilon: float
    """claimed"""
    errors: float
    """see `in_errors`"""


def in_errors(told: Floats, places: Ints, here: Floats) -> Floats:
    """How far replicas at some places are from those that were played here, (places,).

    In standard errors of the difference between two replicas. The larger of both scatters counts:
    a policy that locks in here and not there is no surprise among others that might.

    >>> in_errors(np.array([1.0, 2.0, 3.0]), np.array([0, 1]), np.array([1.0, 4.0])).round(2)
    array([ 0.  , -0.67])
    """
    scatter = max(float(x.std(ddof=1)) if len(x) > 1 else 0.0 for x in (told, here))
    off = told[places] - here
    same = np.abs(off) < 1e-9 * np.maximum(1, np.abs(here))
    return np.where(same, 0.0, off / max(sqrt(2) * scatter, 1e-12))


def apart(differences: Iterable[Difference]) -> Iterator[str]:
    """A sentence for each part of a result that is not what is played here, on another processor.

    Rounding differs, and a policy that has taken another turn may lose more or less: on either
    machine alike. Two tests, each with a chance of 0.5 % to refuse an honest result, at most.

    1. A replica, and those of a run together, are as far off as two replicas of normal law may be.
    2. Signs are fair coins, whatever the sizes, so that a sum over the root of the sum of squares
       exceeds x in size with a chance of 2 exp(-x^2 / 2), at most (Hoeffding). It is looked at for
       an agent on a problem, an agent at an epsilon, and an agent.

    Differences up to 0.05 standard errors are none. Whoever takes s standard errors off each of n
    replicas is found by the second test if s sqrt(n) > x sqrt(v + s^2), v the mean square of honest
    differences. x is about 4.4 for an agent: of a problem at three epsilons, 24 replicas, that
    finds any s where v is 0, and on thirty problems an s of 0.25 where v is 1/2. On a problem at
    one epsilon the first test finds an s of 1.8, and of 5 in one replica.
    """
    runs: dict[str, list[float]] = {}
    parts: dict[str, list[float]] = {}
    for one in differences:
        off = one.errors if abs(one.errors) > _SMALL else 0.0
        at = f" at epsilon {one.epsilon:g}"
        runs.setdefault(f"{one.agent} on {one.problem}{at}", []).append(off)
        for where in (f" on {one.problem}", at, ""):
            parts.setdefault(f"{one.agent}{where}", []).append(off)
    most = _most(sum(len(errors) + 1 for errors in runs.values()))
    for where, errors in runs.items():
        if abs(sum(errors)) > most * sqrt(len(errors)) or max(map(abs, errors)) > most:
            yield f"Replicas of {where} are not so."
    most = _most(len(parts))
    for where, errors in parts.items():
        if abs(sum(errors)) > most * float(np.linalg.norm(errors)):
            way = "less" if sum(errors) < 0 else "more"
            yield f"Replicas of {where} together lose {way} than the same ones played here."


def _most(many: int) -> float:
    """What none of so many sums exceeds, but for a chance of 0.5 %."""
    return sqrt(2 * log(2 * max(1, many) / _FALSE_ALARM))


def _size(runs: Sequence[AgentRun]) -> Size:
    """The size whose number of replicas most runs have."""
    many = int(np.median([len(run.replicas) for run in runs]))
    return min(SIZES, key=lambda size: abs(replicas(size) - many))


def _against_plan(
    runs: Sequence[AgentRun], asked: Mapping[str, Configuration], many: int
) -> Iterator[str]:
    """What was not asked, what is missing, and replicas that were left out or added."""
    times = Counter(run.key for run in runs)
    for key, one in asked.items():
        if key not in times:
            at = getattr(one.config, "epsilon", "no epsilon")
            yield f"Missing: {one.name} on {one.setup.problem} at epsilon {at} as it was asked."
    for run in runs:
        where = f"{run.name} on {run.setup.problem}"
        if times[run.key] > 1:
            yield f"Expected {where} once, got it {times[run.key]} times."
        if run.key not in asked:
            yield f"Not asked: {where} with seed {run.setup.seed} and {dict(run.config)}."
        if run.replicas.tolist() != list(range(many)):
            yield f"Expected replicas 0 to {many - 1} of {where}, got {run.replicas.tolist()}."


def _against_agent(run: AgentRun, one: Configuration) -> Iterator[str]:
    """A certificate that is not the agent's, or code that is not what was played."""
    where, proof = f"{run.name} on {run.setup.problem}", certificate_of(one)
    met = run.certificate.ledger.on(one.problem().spec)
    ours, theirs = ledger_as_dict(proof.ledger), ledger_as_dict(met)
    told = ("epsilon", "delta", "pure", "rho", "mu", "claimed_epsilon", "claimed_delta")
    if ours != theirs or any(not _alike(run.certificate, proof, name) for name in told):
        yield f"Expected the ledger and certificate of {where} to be its agent's."
    if run.provenance.get("agent") != source_of(one.config):
        yield f"Expected {where} to be played by the agent that is here: its files have changed."


def _against_findings(file: Path, agents: Sequence[str], size: Size, exact: bool) -> Iterator[str]:
    """Tests and audits that find something else than is told."""
    every = read_submission(file.parent).findings
    for agent in agents:
        told, found = every.get(agent), parse_json(json.dumps(examined(agent, size)))
        if (told != found) if exact else (_outcome(told) != _outcome(found)):
            yield f"Expected tests and audit of {agent} to find here what {file} says."


def _outcome(findings: Any) -> Any:
    """What tests and an audit find on every machine."""
    try:
        audit = findings["audit"]
        return findings["unfit"], bool(findings["failed"]), audit and audit["flagged"]
    except (KeyError, TypeError):
        return None


def _alike(one: Any, other: Any, name: str) -> bool:
    a, b = getattr(one, name), getattr(other, name)
    return a == b or (isinstance(a, float) and bool(np.isclose(a, b, rtol=1e-9)))


def _same_machine(run: AgentRun) -> bool:
    ours = provenance()
    same = all(run.provenance.get(part) == ours[part] for part in PROGRAM)
    return same and cpu_of(run.provenance) == cpu_of(ours)


def _equal(run: AgentRun, place: int, again: AgentRun) -> bool:
    """Whether a replica has the numbers of another run of it, bit for bit, at its own marks."""
    marks = len(run.marks)  # of the last round alone, perhaps
    return all(
        np.array_equal(getattr(run, what)[:, place], getattr(again, what)[-marks:, 0])
        for what in ("regret", "reward", "switches")
    )


def check(verdict: Verdict) -> None:
    """Raise `InputError` with all that is wrong, if anything is."""
    if verdict.refused:
        raise InputError(f"Refused. {' '.join(verdict.refused)}")
