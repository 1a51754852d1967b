"""Play those shipped runs again that this program no longer plays as they are stored.

It is for changes of the program after which agents' numbers differ but not their law, such as the
order in which random numbers are drawn: the choices stay, and nothing is chosen on reported users.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from math import inf
from typing import NamedTuple

import numpy as np

from dpbandit.base import InputError
from dpbandit.results.runs import AgentRun
from dpbandit.running.answers import CANDIDATE, HORIZON, Answer, answers, chosen
from dpbandit.suite.candidates import Cell, cell
from dpbandit.suite.catalogue import epsilons, problems
from dpbandit.suite.freezing import Blocks, Findings, examined_all
from dpbandit.suite.playing import finalists, frozen
from dpbandit.suite.replaying import REPLAY_TOLERANCE
from dpbandit.suite.tabulating import answer_row

REPLAYED = 4
"""Number of replicas of a run that show whether the program still plays it as stored."""


class Renewed(NamedTuple):
    """Results of `renew`: all shipped runs and rows, of which some were made again."""

    runs: tuple[AgentRun, ...]
    rows: tuple[Answer, ...]
    findings: Findings
    """results of tests and audits of the chosen agents whose runs were played again"""
    played: tuple[str, ...]
    """names of problems with runs that were played again"""
    doubtful: tuple[str, ...]
    """problems on which a chosen agent no longer has the least mean regret of those compared"""


def renew(names: Iterable[str], blocks: Blocks) -> Renewed:
    """Play runs of these problems again that are stale, and make their rows again.

    Raises:
        InputError: if an agent cannot be played, or tests or an audit refute a chosen one.
    """
    wanted = {*names}
    stored = [*frozen("small"), *finalists()]
    cells = {id(run): cell_of(run) for run in stored if run.setup.problem in wanted}
    stale = _stale([run for run in stored if id(run) in cells], cells, blocks)
    again = dict[int, AgentRun]()
    for replicas in sorted({len(run.replicas) for run in stale}):
        same = [run for run in stale if len(run.replicas) == replicas]
        played = blocks.play_all([cells[id(run)] for run in same], replicas, "again")
        for run in same:
            one = cells[id(run)]
            again[id(run)] = played[one.key].as_run(one)
    runs = tuple(again.get(id(run), run) for run in stored)
    changed = [run.setup.problem for run in stale]
    agents = {(run.setup.problem, run.name) for run in stale}
    by_key = {cell_of(run).key: run for run in runs if run.setup.problem in changed}
    rows = [
        _row(old, by_key) if old.problem in changed and old.role != HORIZON else old
        for old in answers()
    ]
    private = [
        row.agent
        for (name, epsilon), row in chosen().items()
        if epsilon < inf and (name, row.agent) in agents
    ]
    return Renewed(
        runs,
        tuple(rows),
        examined_all(blocks, private),
        tuple(dict.fromkeys(changed)),
        tuple(dict.fromkeys(_doubtful(rows, changed))),
    )


def cell_of(run: AgentRun) -> Cell:
    """Return the configuration that a shipped run is of."""
    epsilon = run.certificate.claimed_epsilon or inf  # 0 of what uses nobody's data
    return cell(problems()[run.setup.problem], run.setup, run.name, epsilon)


def _stale(runs: Sequence[AgentRun], cells: Mapping[int, Cell], blocks: Blocks) -> list[AgentRun]:
    """Return the runs of which some replicas come out otherwise."""
    tasks = [
        (id(run), cells[id(run)], run.only(np.arange(min(REPLAYED, len(run.replicas)))))
        for run in runs
    ]
    changed = {key for key, same in blocks.each(_played_as_stored, tasks, "replay") if not same}
    return [run for run in runs if id(run) in changed]


def _played_as_stored(key: int, one: Cell, run: AgentRun) -> tuple[int, bool]:
    """Play a run again to the last round, as a change may show after the first rounds alone."""
    with warnings.catch_warnings(action="ignore"):  # of late learning, which the regret shows
        try:
            again = one.play(0, len(run.replicas))
        except InputError:
            return key, False
    pairs = ((getattr(again, name), getattr(run, name)) for name in ("regret", "reward"))
    return key, all(np.allclose(*pair, rtol=REPLAY_TOLERANCE, atol=1e-9) for pair in pairs)


def _row(old: Answer, by_key: Mapping[str, AgentRun]) -> Answer:
    """Return a row made of its run; the ratios alone, if its run was too short to be shipped."""
    one = problems()[old.problem]
    setup = one.selection() if old.role == CANDIDATE else one.setup("small")
    free = chosen()[old.problem, inf].agent
    report = one.setup("small")
    ends = [by_key[cell(one, setup, free, inf).key]] + [
        by_key[cell(one, report, name, inf).key] for name in ("uniform", "best-fixed")
    ]
    regrets = [run.regret[-1] for run in ends]
    run = by_key.get(cell(one, setup, old.agent, _target(old)).key)
    if run is not None:
        return answer_row(setup, old.role, old.epsilon, old.agent, run.regret[-1], *regrets)
    base, uniform = (float(some.mean()) for some in regrets[:2])
    return old._replace(times=old.mean / base, score=(uniform - old.mean) / (uniform - base))


def _target(row: Answer) -> float:
    return row.epsilon if row.epsilon in epsilons() else inf


def _doubtful(rows: Iterable[Answer], changed: Iterable[str]) -> Iterable[str]:
    """Yield problems whose choice these rows do not support."""
    least = dict[tuple[str, float], Answer]()
    for row in rows:
        place = row.problem, row.epsilon
        if row.role == CANDIDATE and row.problem in changed:
            least[place] = min(least.get(place, row), row, key=lambda one: one.mean)
    for place, best in least.items():
        if best.agent != chosen()[place].agent:
            yield f"{place[0]} at epsilon {place[1]:g}"
