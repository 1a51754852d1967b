"""A sweep, written out: one configuration for each agent, target, environment and horizon."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import inf, prod
from typing import Any

from dpbandit.agents import AGENTS
from dpbandit.agents.contextual.demand import PRICED
from dpbandit.base.checked import with_floats
from dpbandit.base.inputs import BadInput, shown
from dpbandit.base.progress import Progress
from dpbandit.base.streams import Streams
from dpbandit.privacy.certificate import Certificate
from dpbandit.results.marks import log_marks
from dpbandit.results.runs import AgentRun, Setup, describe, run_key
from dpbandit.running.baselines import play_any, with_baselines
from dpbandit.running.certify import certify
from dpbandit.running.compare import as_run
from dpbandit.running.environments import (
    arguments_of,
    environment_id,
    problem_label,
    problem_maker,
)
from dpbandit.specs.protocols import AgentConfig, Problem
from dpbandit.studies.file import Agent, Environment, Sweep
from dpbandit.studies.settings import agent_config, spelt_now

MOST_CONFIGURATIONS = 100_000
"""Of a sweep: each is made once before the first round."""


@dataclass(frozen=True)
class Configuration:
    """One agent on one problem: what a run is a run of."""

    setup: Setup
    name: str
    config: AgentConfig

    @property
    def key(self) -> str:
        """The key of its runs."""
        asked = {**vars(self.setup), "agent": self.name, "config": describe(self.config)}
        return run_key(asked)

    def __hash__(self) -> int:
        return hash(self.key)  # the arguments of its environment are a dictionary

    def problem(self) -> Problem:
        """A new problem, as it is before the first round."""
        return problem_maker(self.setup.environment)(**self.setup.env_kwargs)

    def play(self, first: int, last: int) -> AgentRun:
        """Replicas `first` to `last` - 1: depends on nothing but the configuration and them."""
        setup, proof = self.setup, _certificate(self)
        seeds = [(setup.seed, r) for r in range(first, last)]
        log = play_any(self.problem(), self.config, seeds, marks=log_marks(setup.horizon))
        return as_run(setup, self.name, self.config, proof, [log], first=first)


@lru_cache(maxsize=64)
def _certificate(one: Configuration) -> Certificate:
    """Once for all blocks of a configuration: some take longer to certify than to play."""
    return certify(one.config, one.problem().spec, accountants=False)


Agents = Sequence[tuple[str, AgentConfig]]


def plan(sweep: Sweep, *, progress: bool = False) -> tuple[Configuration, ...]:
    """All configurations of a sweep, each once, yardsticks included.

    Every agent is made once, so that one that does not fit is found before the first round.

    Args:
        sweep: see `Sweep.read`.
        progress: show a bar once it takes longer than two seconds.

    Raises:
        BadInput: an unknown id, argument or setting, an agent that does not fit a problem, two
            configurations of the same name.
    """
    _refuse_too_many(sweep)
    agents = [chosen for entry in sweep.agents for chosen in _agents(sweep, entry)]
    problems = [
        (entry, arguments_of(problem_maker(entry.id), {**arguments, "horizon": horizon}))
        for entry, horizon in product(sweep.environments, sweep.horizons)
        for arguments in _combinations(entry.arguments, entry.grid, "arguments")
    ]
    found: dict[str, Configuration] = {}
    with Progress(len(problems) * len(agents), shown=progress) as bar:
        bar.working_on("planning", rate=1)
        for entry, arguments in problems:
            for configuration in _on(sweep, entry, arguments, agents, bar):
                found[configuration.key] = configuration
    _check_names(found.values())
    return tuple(found.values())


def _refuse_too_many(sweep: Sweep) -> None:
    many = len(sweep.horizons) * len(sweep.epsilons) * len(sweep.deltas)
    for entries in (sweep.environments, sweep.agents):
        many *= sum(prod(map(len, entry.grid.values())) for entry in entries)
    if many > MOST_CONFIGURATIONS:
        raise BadInput(
            f"Expected at most {MOST_CONFIGURATIONS:,} combinations of environments, agents, "
            f"epsilons, deltas and horizons, got {shown(many)}."
        )


def _on(
    sweep: Sweep, entry: Environment, arguments: dict[str, Any], agents: Agents, bar: Progress
) -> Iterator[Configuration]:
    environment = environment_id(entry.id)
    problem = problem_maker(environment)(**arguments)
    varied = [f"{key}={value}" for key, value in arguments.items() if key in entry.grid]
    setup = Setup(
        environment=environment,
        env_kwargs=arguments,
        horizon=arguments["horizon"],
        seed=sweep.seed,
        reward_unit=problem.spec.reward_unit,
        problem=" ".join([entry.label, *varied])
        if entry.label
        else problem_label(environment, arguments),
    )
    for name, config in agents:
        try:
            config.make(problem.spec, Streams([0]))  # does it fit?
        except BadInput as mistake:
            raise BadInput(f"{name} on {setup.problem}: {mistake}") from mistake
        bar.advance(1)
        yield Configuration(setup, name, config)
    given = {f"{name} {number}": config for number, (name, config) in enumerate(agents)}
    for name, config in with_baselines(given, problem.spec).items():
        if name not in given:
            yield Configuration(setup, name, config)


def _agents(sweep: Sweep, entry: Agent) -> Iterable[tuple[str, AgentConfig]]:
    """The configs of an entry, each once, under a name that does not tell the privacy target."""
    found = dict[str, tuple[str, AgentConfig]]()
    for written in _combinations(entry.settings, entry.grid, "settings"):
        known, told_now = spelt_now(entry.id, written)
        settings = with_floats(AGENTS[known.removeprefix(PRICED)], told_now)
        told = [key for key in settings if key not in _TARGETS]
        told = [key for key in told if key in entry.grid] if entry.label else told
        first = entry.label or _YARDSTICKS.get(known, known)
        name = " ".join([first, *(f"{key}={settings[key]}" for key in told)])
        for epsilon, delta in product(sweep.epsilons, sweep.deltas):
            try:
                config = agent_config(known, settings, epsilon=epsilon, delta=delta)
            except BadInput as mistake:
                raise BadInput(f"{name}: {mistake}") from mistake
            asked = {"name": name, **describe(config)}
            if asked.get("epsilon") == inf:
                asked["delta"] = None  # without noise there is none
            found.setdefault(run_key(asked), (name, config))
    return found.values()


_TARGETS = {"epsilon", "delta"}
_YARDSTICKS = {"uniform": "Uniform", "best-fixed": "BestFixed", "centre": "Centre"}
"""Called the same whether listed or added."""


def _combinations(
    fixed: Mapping[str, Any], grid: Mapping[str, list[Any]], what: str
) -> Iterator[dict[str, Any]]:
    for key in grid:
        if key in fixed:
            raise BadInput(f"Expected {key} among {what} or in the grid, not both.")
    if "horizon" in {*fixed, *grid} and what == "arguments":
        raise BadInput("Expected the horizon among `horizons` of the sweep, not among arguments.")
    for values in product(*grid.values()):
        yield {**fixed, **dict(zip(grid, values, strict=True))}


def _check_names(configurations: Iterable[Configuration]) -> None:
    """Two agents of one name would be one line in every plot and one row of the differences."""
    called: dict[str, Mapping[str, Any]] = {
        name: describe(AGENTS[known]()) for known, name in _YARDSTICKS.items()
    }
    seen: dict[Any, Configuration] = {}
    for one in configurations:
        config = {key: value for key, value in describe(one.config).items() if key not in _TARGETS}
        if called.setdefault(one.name, config) != config:
            raise BadInput(
                f"Expected one agent to be called {one.name!r}, got {_words(called[one.name])} and "
                f"{_words(config)}: give them labels of their own."
            )
        target = tuple(getattr(one.config, name, None) for name in sorted(_TARGETS))
        place = (one.setup.problem, one.setup.horizon, one.name, *target)
        if place in seen:
            raise BadInput(
                f"Expected one agent {one.name!r} on one problem {one.setup.problem!r}, got "
                f"{one.config} on {one.setup.env_kwargs} and {seen[place].config} on "
                f"{seen[place].setup.env_kwargs}: give them labels of their own."
            )
        seen[place] = one


def _words(config: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items() if key != "agent")
    return f"{config['agent']}({settings})"
