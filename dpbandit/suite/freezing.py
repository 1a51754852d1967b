"""Choose the best agents for every problem on some users, and measure them on others.

1. Screen: every agent that fits plays a few replicas of the selection seed, see `candidates`.
2. Choose: the best of them get more replicas, fewer agents at every stage (as in the successive
   halving of Karnin, Koren and Somekh, 2013, ICML, but none is eliminated for good).
3. Report: the chosen agents play on the report seed, which no choice has used, beside the agent
   without privacy and baselines, until the cost of privacy has a small standard error.
"""

import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import cache
from math import inf, sqrt
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple, TypeAlias, TypeVar

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
from dpbandit.running.answers import WITHOUT_PRIVACY_FACTOR
from dpbandit.running.environments import problem_maker
from dpbandit.running.loop import consecutive, replicas_at_once
from dpbandit.studies.workers import workers
from dpbandit.suite.candidates import Cell, Group, candidates, cell, groups
from dpbandit.suite.catalogue import SuiteProblem, epsilons, problems
from dpbandit.suite.examining import examined
from dpbandit.suite.outcomes import Outcome, joined
from dpbandit.suite.replaying import replays
from dpbandit.suite.sources import program_of

K = TypeVar("K")  # key of a job's result
T = TypeVar("T")  # value of a job's result
SCREEN_REPLICAS = 4
"""Number of replicas that every agent plays in the first stage."""
CLOSE_REPLICAS, CLOSE_CANDIDATES = 128, 3
"""Replicas from which a stage is for unclear choices alone, and number of agents in it."""
STAGES = ((8, 10), (32, 5), (CLOSE_REPLICAS, CLOSE_CANDIDATES), (400, CLOSE_CANDIDATES))
"""Number of replicas at each stage, and number of best agents that play them."""
SHORTLIST = 8
"""Number of best agents at epsilon 1, and at infinity, that compete at the other epsilons."""
CLEAR_ERRORS = 3.0
"""The choice between agents is clear if mean regrets differ by more standard errors than this."""
TIE_ERROR = 0.1
"""Agents tie if the standard error of their difference is below this share of least regret."""
MIN_REPLICAS, MAX_REPLICAS = 40, 400
"""Range of the number of replicas that the chosen agents play on the report seed."""
COST_ERROR = 0.1
"""Relative standard error of the cost of privacy at which no more replicas are played."""


Findings: TypeAlias = Mapping[str, Mapping[str, Any]]
"""Results by chosen private agent, with `failed`, why its tests fail or "", and `audit`."""


class Choice(NamedTuple):
    """The agents that competed on a problem at one epsilon, and the one that was chosen."""

    screened: Mapping[str, Outcome]
    """outcome of every agent by name, with all its replicas on the selection seed"""
    finalists: tuple[str, ...]
    """names of agents that were compared after the first stage, the chosen one first"""
    unfit: Mapping[str, str]
    """names of agents that could not be played to the end, each with the reason"""

    @property
    def chosen(self) -> str:
        """Name of the agent with the least mean regret, or without a guarantee close to it."""
        return self.finalists[0]


class Frozen(NamedTuple):
    """Results of `freeze_suite`: choices, runs on the report seed, tests and audits."""

    choices: Mapping[Group, Choice]
    reported: tuple[AgentRun, ...]
    """runs of the chosen agents and of baselines on the report seed"""
    findings: Findings


class Blocks:
    """Player of configurations that stores blocks of replicas in a folder and reuses them.

    A stored block is reused if the program has not changed, or if playing its first rounds again
    gives the stored numbers (`replays`).
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
        """Play this many replicas of each configuration; return outcomes and failures, by key."""
        once = {one.key: one for one in cells}
        reusable = self._reusable(once)
        reasons = {key: self._unfit_file(one) for key, one in once.items()}
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

    def play_all(self, cells: Sequence[Cell], replicas: int, what: str) -> dict[str, Outcome]:
        """Play as `play` does; raise `InputError` if a configuration fails."""
        runs, unfit = self.play(cells, replicas, what)
        if unfit:
            raise InputError(f"Expected all that was chosen to play: {next(iter(unfit.values()))}")
        return runs

    def examine(self, agents: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return results of agents' tests and audits; this program's stored ones are reused."""
        found = dict[str, dict[str, Any]]()
        missing = []
        for agent in agents:
            file = self._findings(agent)
            if file.is_file():
                found[agent] = parse_json(read_text(file))
            else:
                missing.append(agent)
        for agent, findings in self.each(_examined, [(agent,) for agent in missing], "examine"):
            write_json(self._findings(agent), findings)
            found[agent] = findings
        return {agent: found[agent] for agent in agents}

    def each(
        self, job: Callable[..., tuple[K, T]], tasks: Sequence[tuple[Any, ...]], what: str
    ) -> Iterator[tuple[K, T]]:
        """Yield the results (key, value) of a job in workers, in any order, with a progress bar."""
        with Progress(len(tasks), visible=self._progress) as bar, workers(*self._how) as run:
            for done in run(job, tasks):
                yield done
                bar.working_on(what, rate=1)
                bar.advance(1)

    def _findings(self, agent: str) -> Path:
        """Return the path where this program version stores tests and audit of an agent."""
        key = run_key({"agent": agent, "source": provenance()["source"]})
        return self._folder / "findings" / f"{key}.json"

    def _unfit_file(self, one: Cell) -> Path:
        """Return the path of the file with the reason why an agent cannot play, in this version."""
        return self._folder / "unfit" / f"{one.key}-{program_hash(one)}.txt"

    def _reusable(self, cells: Mapping[str, Cell]) -> dict[str, list[Outcome]]:
        """Return the stored blocks that this program reproduces, by key; delete all others."""
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
        # The pattern leaves out partial files, .*.npz, of a process that was killed while writing
        return [Outcome.read(file) for file in sorted((self._folder / key).glob("[0-9]*.npz"))]


@cache
def program_hash(one: Cell) -> str:
    """Return the hash of the loop, the environment, the agent and all they import of dpbandit."""
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
    """Play replicas `first` to `last` - 1; return key and outcome, or error message."""
    with warnings.catch_warnings(action="ignore"):  # of late learning, which the regret shows
        try:
            run = one.play(first, last)
        except (InputError, ArithmeticError, np.linalg.LinAlgError) as reason:
            return one.key, f"{type(reason).__name__}: {reason}"
    return one.key, Outcome.of(run, program_hash(one))


def freeze_suite(names: Sequence[str], blocks: Blocks) -> Frozen:
    """Choose agents on these problems at every epsilon; play, test and audit the chosen.

    Raises:
        InputError: for an unknown problem, or if tests or an audit refute a chosen agent.
    """
    for name in names:
        one_of("problem", name, [*problems()])
    choices, reported = dict[Group, Choice](), list[AgentRun]()
    for name in names:
        choices |= choose(groups([name]), blocks)
        reported += report(problems()[name], choices, blocks)
    private = [choice.chosen for place, choice in choices.items() if place.epsilon < inf]
    return Frozen(choices, tuple(reported), examined_all(blocks, private))


def examined_all(blocks: Blocks, agents: Iterable[str]) -> Findings:
    """Test and audit chosen private agents; raise `InputError` if one of them is refuted."""
    found = blocks.examine(list(dict.fromkeys(agents)))
    for agent, findings in found.items():
        audit = findings["audit"]
        if findings["failed"] or (audit is not None and audit["flagged"]):
            why = findings["failed"] or audit["verdict"]
            raise InputError(f"Expected {agent}, which was chosen, to be private: {why}")
    return found


def choose(places: Sequence[Group], blocks: Blocks) -> dict[Group, Choice]:
    """Choose in each group the agent with the least mean regret on the selection seed.

    At epsilon infinity an agent without a guarantee wins near ties (`_Played.ranked`).

    A stage ends when the best of ALL agents have played its number of replicas, so an agent that
    looked worse after few replicas returns if others turn out worse after more.
    """
    played = _Played(blocks)
    entered = _screened(places, played)
    for replicas, most in STAGES:
        early = replicas < CLOSE_REPLICAS
        left = [some for some in entered.values() if early or played.is_close_call(some)]
        while missing := [
            one
            for some in left
            for one in played.ranked(some)[:most]
            if played.replicas(one) < replicas
        ]:
            played.add(missing, replicas, "compare" if replicas < CLOSE_REPLICAS else "decide")
    found = {}
    for place, some in entered.items():
        order = played.ranked(some, without_privacy=place.epsilon == inf)
        if not order:
            raise InputError(f"Expected an agent that plays {place.problem!r}, of {len(some)}.")
        found[place] = Choice(
            {one.name: played.runs[one.key] for one in order},
            tuple(one.name for one in order if played.replicas(one) > SCREEN_REPLICAS),
            {one.name: played.unfit[one.key] for one in some if one.key in played.unfit},
        )
    return found


class _Played:
    """Outcomes and failures of agents on the selection seed so far, by key."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self.runs = dict[str, Outcome]()
        self.unfit = dict[str, str]()

    def add(self, cells: Sequence[Cell], replicas: int, what: str) -> None:
        """Play configurations up to this number of replicas; record outcomes and failures."""
        runs, unfit = self._blocks.play(cells, replicas, what)
        self.runs |= runs
        self.unfit |= unfit

    def ranked(self, cells: Iterable[Cell], *, without_privacy: bool = False) -> list[Cell]:
        """Return the configurations that could be played, sorted by mean regret, least first.

        If `without_privacy`, means of private agents with infinite epsilon are multiplied by
        `WITHOUT_PRIVACY_FACTOR`, so that agents without privacy win near ties.
        """

        def place(one: Cell) -> float:
            noiseless = without_privacy and one.name.endswith(":epsilon=inf")
            return float(self._final(one).mean()) * (WITHOUT_PRIVACY_FACTOR if noiseless else 1.0)

        there = [one for one in cells if one.key in self.runs and one.key not in self.unfit]
        return sorted(there, key=place)

    def replicas(self, one: Cell) -> int:
        """Return the number of replicas that were played of a configuration."""
        return len(self._final(one))

    def is_close_call(self, cells: Iterable[Cell]) -> bool:
        """Return True if more replicas may change which of the best agents has the least regret.

        A choice is close if the regret of a runner-up exceeds the least by at most `CLEAR_ERRORS`
        paired standard errors, and this standard error exceeds `TIE_ERROR` times the least regret.
        """
        ranked = self.ranked(cells)[:CLOSE_CANDIDATES]
        for one in ranked[1:]:
            least = abs(float(self._final(ranked[0]).mean()))
            more = self._excess(one, ranked[0])
            error = float(more.std(ddof=1)) / sqrt(len(more))
            if more.mean() <= CLEAR_ERRORS * error and error > TIE_ERROR * least:
                return True
        return False

    def _excess(self, one: Cell, best: Cell) -> Floats:
        """Return the regret of `one` minus that of `best`, on the replicas that both have played.

        An agent without an epsilon competes at several epsilons, and may have played more replicas.
        """
        many = min(len(self._final(each)) for each in (one, best))
        return self._final(one)[:many] - self._final(best)[:many]

    def _final(self, one: Cell) -> Floats:
        return self.runs[one.key].regret[-1]


def _screened(places: Sequence[Group], played: _Played) -> dict[Group, tuple[Cell, ...]]:
    """Play a few replicas of every agent; return the agents that compete in each group.

    At epsilons other than 1 and infinity, only the best `SHORTLIST` agents at these two compete.
    """
    entered = {place: candidates(place) for place in places if place.epsilon in (1.0, inf)}
    played.add([one for some in entered.values() for one in some], SCREEN_REPLICAS, "screen")
    for place in places:
        if place not in entered:
            short = {
                one.name.removesuffix(":epsilon=inf")
                for epsilon in (1.0, inf)
                for one in played.ranked(entered[place._replace(epsilon=epsilon)])[:SHORTLIST]
            }
            entered[place] = tuple(one for one in candidates(place) if one.name in short)
    played.add([one for some in entered.values() for one in some], SCREEN_REPLICAS, "screen")
    return entered


def report(
    one: SuiteProblem, choices: Mapping[Group, Choice], blocks: Blocks
) -> tuple[AgentRun, ...]:
    """Play the agents chosen for a problem, and baselines, on the report seed."""
    setup = one.setup("small")
    free = cell(one, setup, choices[Group(one.name, inf)].chosen, inf)
    private = [
        cell(one, setup, choices[Group(one.name, epsilon)].chosen, epsilon)
        for epsilon in epsilons()
    ]
    baselines = ["uniform", "best-fixed"]
    if free.problem().spec.measured_as.endswith(("by value", "by datum")):
        baselines.append("centre")
    cells = [free, *private, *(cell(one, setup, name, inf) for name in baselines)]
    replicas = MIN_REPLICAS
    while True:
        runs = blocks.play_all(cells, replicas, "report")
        base = runs[free.key].regret[-1]
        errors = [relative_error(runs[each.key].regret[-1], base) for each in private]
        if max(errors) <= COST_ERROR or replicas >= MAX_REPLICAS:
            return tuple(runs[each.key].as_run(each) for each in cells)
        replicas = min(2 * replicas, MAX_REPLICAS)


def relative_error(regret: Floats, base: Floats) -> float:
    """Return the relative standard error of the ratio of two mean regrets, paired by replica."""
    per_replica = regret / regret.mean() - base / base.mean()
    return float(per_replica.std(ddof=1) / sqrt(len(regret)))
