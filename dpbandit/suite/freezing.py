"""Choose the best agents for every problem on some users, and measure them on others.

1. Screen: every candidate plays a few replicas of the selection seed, see `candidates`.
2. Choose: the best get more replicas, fewer of them at every stage (as in the successive halving of
   Karnin, Koren and Somekh, 2013, ICML, but nobody is out for good).
3. Report: the chosen play on the report seed, which no choice has seen, beside the agent without
   privacy and play that learns nothing, until the interval of the cost of privacy is small.
"""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from functools import cache
from math import inf, sqrt
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np

from dpbandit.base import (
    Floats,
    InputError,
    Progress,
    one_of,
    parse_json,
    provenance,
    read_text,
    write_atomically,
    write_json,
)
from dpbandit.results.runs import AgentRun, run_key
from dpbandit.running.compare import consecutive, replicas_at_once
from dpbandit.running.environments import problem_maker
from dpbandit.studies.run import workers
from dpbandit.suite.candidates import Cell, Group, candidates, cell, groups
from dpbandit.suite.catalogue import SuiteProblem, epsilons, problems
from dpbandit.suite.examining import examined
from dpbandit.suite.outcomes import Outcome, joined
from dpbandit.suite.replaying import replays
from dpbandit.suite.sources import program_of

SCREEN, DECIDE, DECIDED = 4, 128, 3
"""Replicas of every candidate, and from which on replicas, of so many, are for close calls alone"""
STAGES = ((8, 10), (32, 5), (DECIDE, DECIDED), (400, DECIDED))
"""Replicas, and of how many candidates that are the best at that time"""
SHORTLIST = 8
"""Candidates from epsilon 1, and as many from infinity, that are screened at other epsilons"""
CLEAR = 3.0
"""Standard errors of the difference from which it is clear who is better"""
ALIKE = 0.1
"""Standard error of the difference, relative to the least regret, at which no more is played"""
FEWEST, MOST = 40, 400
"""Replicas of what is reported"""
PRECISE = 0.1
"""Standard error of the cost of privacy, relative to it, at which there are enough replicas"""


class Choice(NamedTuple):
    """Who competed for a place, and who has it."""

    screened: Mapping[str, Outcome]
    """every candidate by name, with all replicas that it played on the selection seed"""
    finalists: tuple[str, ...]
    """names of those that were compared, the chosen first"""
    unfit: Mapping[str, str]
    """candidates that could not be played to the end, and why"""

    @property
    def chosen(self) -> str:
        """Name of the agent."""
        return self.finalists[0]


class Frozen(NamedTuple):
    """What `freeze_suite` measured."""

    choices: Mapping[Group, Choice]
    reported: tuple[AgentRun, ...]
    """on the report seed, of the chosen and of play that learns nothing"""
    findings: Mapping[str, Mapping[str, Any]]
    """of each private agent that was chosen `failed`, why its tests fail, and its `audit`"""


class Blocks:
    """Plays cells, and keeps what they did in a folder, where the next call finds it.

    A block is kept where its program is the same as today's, or where its first rounds come out as
    they are stored (`replays`).
    """

    def __init__(
        self,
        folder: Path,
        *,
        jobs: int = 1,
        backend: str = "loky",
        scheduler: str | None = None,
        progress: bool = True,
    ) -> None:
        self._folder, self._progress = folder, progress
        self._how = (backend, jobs, scheduler)

    def play(
        self, cells: Sequence[Cell], replicas: int, what: str
    ) -> tuple[dict[str, Outcome], dict[str, str]]:
        """Replicas 0 to `replicas` - 1 of each cell by key, and why others cannot be played."""
        once = {one.key: one for one in cells}
        reusable = self._reusable(once)
        reasons = {key: self._why(one) for key, one in once.items()}
        unfit = {key: read_text(file) for key, file in reasons.items() if file.is_file()}
        tasks = []
        for key, one in once.items():
            done = {r for block in reusable[key] for r in block.replicas.tolist()}
            missing = [r for r in range(replicas) if r not in done]
            if key not in unfit:
                size = replicas_at_once(one.problem().spec)
                tasks += [(one, *some) for some in consecutive(missing, size)]
        rounds = sum(one.setup.horizon * (last - first) for one, first, last in tasks)
        with (
            Progress(rounds, visible=self._progress) as bar,
            workers(*self._how) as run,
            closing(run(_played, tasks)) as played,
        ):
            for key, done in played:
                where = f"{what}: {once[key].name} on {once[key].setup.problem}"
                if isinstance(done, str):
                    unfit[key] = done
                    write_atomically(reasons[key], lambda p, t=done: p.write_text(t, "utf-8"))
                    continue
                done.write(self._folder / key)
                reusable[key].append(done)
                bar.working_on(where, rate=len(done.replicas))
                bar.advance(once[key].setup.horizon)
                bar.say(where)
        found = {
            key: joined(some).first(replicas) for key, some in reusable.items() if key not in unfit
        }
        return found, unfit

    def examine(self, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
        """What tests and audits find of agents, once for each program."""
        found = dict[str, dict[str, Any]]()
        missing = []
        for agent in agents:
            file = self._findings(agent)
            if file.is_file():
                found[agent] = parse_json(read_text(file))
            else:
                missing.append(agent)
        with Progress(len(missing), visible=self._progress) as bar, workers(*self._how) as run:
            for agent, findings in run(_examined, [(agent,) for agent in missing]):
                write_json(self._findings(agent), findings)
                found[agent] = findings
                bar.working_on(f"examine: {agent}", rate=1)
                bar.advance(1)
                bar.say(f"examine: {agent}")
        return {agent: found[agent] for agent in agents}

    def _findings(self, agent: str) -> Path:
        """The file of what was found of an agent of this program."""
        key = run_key({"agent": agent, "source": provenance()["source"]})
        return self._folder / "findings" / f"{key}.json"

    def _why(self, one: Cell) -> Path:
        """The file that says why this program cannot play a cell; another one is asked again."""
        return self._folder / "unfit" / f"{one.key}-{program_hash(one)}.txt"

    def _reusable(self, cells: Mapping[str, Cell]) -> dict[str, list[Outcome]]:
        """Blocks of cells by key that this program would play again as they are."""
        blocks = {key: self._there(key) for key in cells}
        changed = [
            (cells[key], some[0])
            for key, some in blocks.items()
            if some and some[0].source != program_hash(cells[key])
        ]
        with workers(*self._how) as run:
            for key, same in run(_replayed, changed):
                if same:
                    source = program_hash(cells[key])
                    blocks[key] = [block._replace(source=source) for block in blocks[key]]
                    for block in blocks[key]:
                        block.write(self._folder / key)
                else:
                    blocks[key] = []
                    rmtree(self._folder / key)
        return blocks

    def _there(self, key: str) -> list[Outcome]:
        # Not half a file, .*.npz, of a process that was killed while it wrote.
        return [Outcome.read(file) for file in sorted((self._folder / key).glob("[0-9]*.npz"))]


@cache
def program_hash(one: Cell) -> str:
    """The hash of all of dpbandit that a cell is played by."""
    modules = ["dpbandit.running.loop", problem_maker(one.setup.environment).__module__]
    config: Any = one.config
    while config is not None:
        modules.append(type(config).__module__)
        config = getattr(config, "agent", None)
    return program_of(*modules)


def _replayed(one: Cell, block: Outcome) -> tuple[str, bool]:
    return one.key, replays(one, block)


def _examined(agent: str) -> tuple[str, dict[str, Any]]:
    found = examined(agent, "small", progress=False)
    return agent, {"failed": found["failed"], "audit": found["audit"]}


def _played(one: Cell, first: int, last: int) -> tuple[str, Outcome | str]:
    """What some replicas did, or why they cannot be played; no agent ends the whole."""
    with warnings.catch_warnings(action="ignore"):  # that it learns late, which its regret shows
        try:
            run = one.play(first, last)
        except (InputError, ArithmeticError, np.linalg.LinAlgError) as reason:
            return one.key, f"{type(reason).__name__}: {reason}"
    return one.key, Outcome.of(run, program_hash(one))


def freeze_suite(names: Sequence[str], blocks: Blocks) -> Frozen:
    """Choose for every epsilon, and without privacy, on these problems, report, and examine.

    Raises:
        InputError: an unknown problem, or an agent was chosen whose tests fail or which an audit
            refutes.
    """
    for name in names:
        one_of("problem", name, [*problems()])
    choices, reported = dict[Group, Choice](), list[AgentRun]()
    for name in names:
        choices |= choose(groups([name]), blocks)
        reported += report(problems()[name], choices, blocks)
    private = [choice.chosen for place, choice in choices.items() if place.epsilon < inf]
    found = blocks.examine(list(dict.fromkeys(private)))
    for agent, findings in found.items():
        audit = findings["audit"]
        if findings["failed"] or (audit is not None and audit["flagged"]):
            why = findings["failed"] or audit["verdict"]
            raise InputError(f"Expected {agent}, which was chosen, to be private: {why}")
    return Frozen(choices, tuple(reported), found)


def choose(places: Sequence[Group], blocks: Blocks) -> dict[Group, Choice]:
    """Choose the candidate of each place that loses least on the selection seed.

    At every stage the best of ALL candidates get more replicas, until the best have them: whoever
    looked worse after few replicas comes back when those before it turn out to be worse.
    """
    played = _Played(blocks)
    entered = _screened(places, played)
    for replicas, most in STAGES:
        left = [
            some for some in entered.values() if replicas < DECIDE or played.is_close_call(some)
        ]
        while missing := [
            one
            for some in left
            for one in played.ranked(some)[:most]
            if played.replicas(one) < replicas
        ]:
            played.add(missing, replicas, "compare" if replicas < DECIDE else "decide")
    found = {}
    for place, some in entered.items():
        order = played.ranked(some)
        if not order:
            raise InputError(f"Expected an agent that plays {place.problem!r}, of {len(some)}.")
        found[place] = Choice(
            {one.name: played.runs[one.key] for one in order},
            tuple(one.name for one in order if played.replicas(one) > SCREEN),
            {one.name: played.unfit[one.key] for one in some if one.key in played.unfit},
        )
    return found


class _Played:
    """What was played so far on the selection seed."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.runs = dict[str, Outcome]()
        self.unfit = dict[str, str]()

    def add(self, cells: Sequence[Cell], replicas: int, what: str) -> None:
        """Play some cells, or more replicas of them."""
        runs, unfit = self._blocks.play(cells, replicas, what)
        self.runs |= runs
        self.unfit |= unfit

    def ranked(self, cells: Iterable[Cell]) -> list[Cell]:
        """Those that could be played, the least mean regret first."""
        there = [one for one in cells if one.key in self.runs and one.key not in self.unfit]
        return sorted(there, key=lambda one: float(self._final(one).mean()))

    def replicas(self, one: Cell) -> int:
        """Replicas that a cell has played."""
        return len(self._final(one))

    def is_close_call(self, cells: Iterable[Cell]) -> bool:
        """True if more replicas could tell the first from the next ones by more than `ALIKE`.

        Not where these lose more by `CLEAR` paired standard errors.
        """
        ranked = self.ranked(cells)[:DECIDED]
        for one in ranked[1:]:
            least = abs(float(self._final(ranked[0]).mean()))
            more = self._more(one, ranked[0])
            error = float(more.std(ddof=1)) / sqrt(len(more))
            if more.mean() <= CLEAR * error and error > ALIKE * least:
                return True
        return False

    def _more(self, one: Cell, best: Cell) -> Floats:
        """How much more `one` loses than `best`, on the replicas that both have played.

        An agent without an epsilon is one cell in several places, and may have played more.
        """
        many = min(len(self._final(each)) for each in (one, best))
        return self._final(one)[:many] - self._final(best)[:many]

    def _final(self, one: Cell) -> Floats:
        return self.runs[one.key].regret[-1]


def _screened(places: Sequence[Group], played: _Played) -> dict[Group, tuple[Cell, ...]]:
    """The candidates of every place, after a few replicas of each.

    At epsilons other than 1 only those compete that were among the best at 1 or at infinity.
    """
    entered = {place: candidates(place) for place in places if place.epsilon in (1.0, inf)}
    played.add([one for some in entered.values() for one in some], SCREEN, "screen")
    for place in places:
        if place not in entered:
            short = {
                one.name.removesuffix(":epsilon=inf")
                for epsilon in (1.0, inf)
                for one in played.ranked(entered[place._replace(epsilon=epsilon)])[:SHORTLIST]
            }
            entered[place] = tuple(one for one in candidates(place) if one.name in short)
    played.add([one for some in entered.values() for one in some], SCREEN, "screen")
    return entered


def report(
    one: SuiteProblem, choices: Mapping[Group, Choice], blocks: Blocks
) -> tuple[AgentRun, ...]:
    """Play what was chosen for a problem, and play that learns nothing, on the report seed."""
    setup = one.setup("small")
    free = cell(one, setup, choices[Group(one.name, inf)].chosen, inf)
    private = [
        cell(one, setup, choices[Group(one.name, epsilon)].chosen, epsilon)
        for epsilon in epsilons()
    ]
    zeros = ["uniform", "best-fixed"]
    if free.problem().spec.measured_as.endswith(("by value", "by datum")):
        zeros.append("centre")
    cells = [free, *private, *(cell(one, setup, name, inf) for name in zeros)]
    replicas = FEWEST
    while True:
        runs, unfit = blocks.play(cells, replicas, "report")
        if unfit:
            raise InputError(f"Expected all that was chosen to play: {next(iter(unfit.values()))}")
        base = runs[free.key].regret[-1]
        errors = [relative_error(runs[each.key].regret[-1], base) for each in private]
        if max(errors) <= PRECISE or replicas >= MOST:
            return tuple(runs[each.key].as_run(each) for each in cells)
        replicas = min(2 * replicas, MOST)


def relative_error(regret: Floats, base: Floats) -> float:
    """Standard error of the quotient of two means over it, of replicas with the same users."""
    per_replica = regret / regret.mean() - base / base.mean()
    return float(per_replica.std(ddof=1) / sqrt(len(regret)))
