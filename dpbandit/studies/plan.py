"""A sweep, written out: one configuration for each agent, target, environment and horizon."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import product
from math import inf, prod
from typing import Any

from dpbandit.agents import AGENTS
from dpbandit.base.fields import with_floats
from dpbandit.base.inputs import InputError, shown
from dpbandit.base.progress import Progress
from dpbandit.base.random_streams import Streams
from dpbandit.results.runs import describe, run_key
from dpbandit.running.compare import with_baselines
from dpbandit.running.given import arguments_of, problem_maker
from dpbandit.running.settings import agent_config, agent_id, agent_kind, around, meant
from dpbandit.specs.contract import made_agent
from dpbandit.specs.protocols import AgentConfig
from dpbandit.studies.configuration import TARGETS, Configuration, Study, setup_of
from dpbandit.studies.file import Agent, Environment, Sweep

MOST_CONFIGURATIONS = 100_000
"""Of a sweep; each is made once before the first round."""


Agents = Sequence[tuple[str, AgentConfig]]


def plan(sweep: Sweep, *, progress: bool = False) -> Study:
    """All configurations of a sweep, each once, baselines included.

    Every agent is made once, so that one that does not fit is found before the first round. With
    `leave_out_unfit` it is left out there, and a warning says which ones are and why.

    Args:
        sweep: see `Sweep.read`.
        progress: show a bar once it takes longer than two seconds.

    Raises:
        InputError: an unknown id, argument or setting, an agent that does not fit a problem (or any
            at all), two configurations of the same name.
    """
    _refuse_too_many(sweep)
    agents = [chosen for entry in sweep.agents for chosen in _agents(sweep, entry)]
    problems = [
        (entry, arguments_of(problem_maker(entry.id), {**arguments, "horizon": horizon}))
        for entry, horizon in product(sweep.environments, sweep.horizons)
        for arguments in _combinations(entry.arguments, entry.grid, "arguments")
    ]
    found: dict[str, Configuration] = {}
    unfit: dict[tuple[str, str], InputError] = {}
    with Progress(len(problems) * len(agents), shown=progress) as bar:
        bar.working_on("planning", rate=1)
        for entry, arguments in problems:
            for configuration in _on(sweep, entry, arguments, agents, unfit, bar):
                found[configuration.key] = configuration
    _tell_unfit(unfit, {one.name for one in found.values()})
    _check_names(found.values())
    asked = sweep.model_dump(mode="json")
    return Study(
        configurations=tuple(found.values()),
        replicas=sweep.replicas,
        name=sweep.name,
        audit=sweep.audit,
        asked=asked,
    )


def _tell_unfit(unfit: Mapping[tuple[str, str], InputError], fitting: Collection[str]) -> None:
    """Warn of what is left out; raise the mistake of an agent that fits nowhere."""
    for (name, problem), mistake in unfit.items():
        if name not in fitting:
            raise InputError(f"{name} on {problem}: {mistake}") from mistake
    if unfit:
        told = "; ".join(f"{name} on {problem} ({why})" for (name, problem), why in unfit.items())
        warnings.warn(f"Left out where they do not fit: {told}.", stacklevel=3)


def _refuse_too_many(sweep: Sweep) -> None:
    many = len(sweep.horizons) * len(sweep.epsilons) * len(sweep.deltas)
    for entries in (sweep.environments, sweep.agents):
        many *= sum(prod(map(len, entry.grid.values())) for entry in entries)
    if many > MOST_CONFIGURATIONS:
        raise InputError(
            f"Expected at most {MOST_CONFIGURATIONS:,} combinations of environments, agents, "
            f"epsilons, deltas and horizons, got {shown(many)}."
        )


def _on(
    sweep: Sweep,
    entry: Environment,
    arguments: dict[str, Any],
    agents: Agents,
    unfit: dict[tuple[str, str], InputError],
    bar: Progress,
) -> Iterator[Configuration]:
    varied = [f"{key}={value}" for key, value in arguments.items() if key in entry.grid]
    label = " ".join([entry.label, *varied]) if entry.label else None
    setup = setup_of(
        entry.id, arguments, horizon=arguments["horizon"], seed=sweep.seed, label=label
    )
    spec = problem_maker(setup.environment)(**setup.env_kwargs).spec
    for name, config in agents:
        bar.advance(1)
        try:
            made_agent(config, spec, Streams([0]))  # does it fit?
        except InputError as mistake:
            if not sweep.leave_out_unfit:
                raise InputError(f"{name} on {setup.problem}: {mistake}") from mistake
            unfit.setdefault((name, setup.problem), mistake)
        else:
            yield Configuration(setup, name, config)
    given = {f"{name} {number}": config for number, (name, config) in enumerate(agents)}
    for name, config in with_baselines(given, spec).items():
        if name not in given:
            yield Configuration(setup, name, config)


def _agents(sweep: Sweep, entry: Agent) -> Iterable[tuple[str, AgentConfig]]:
    """The configs of an entry, each once, under a name that does not tell the privacy target."""
    found = dict[str, tuple[str, AgentConfig]]()
    for written in _combinations(entry.settings, entry.grid, "settings"):
        known = agent_id(entry.id)
        settings = with_floats(agent_kind(around(meant(known, written))[1]), written)
        told = [key for key in settings if key not in TARGETS]
        told = [key for key in told if key in entry.grid] if entry.label else told
        first = entry.label or _BASELINES.get(known, known)
        name = " ".join([first, *(f"{key}={settings[key]}" for key in told)])
        for epsilon, delta in product(sweep.epsilons, sweep.deltas):
            try:
                config = agent_config(known, settings, epsilon=epsilon, delta=delta)
            except InputError as mistake:
                raise InputError(f"{name}: {mistake}") from mistake
            asked = {"name": name, **describe(config)}
            if asked.get("epsilon") == inf:
                asked["delta"] = None  # without noise there is none
            found.setdefault(run_key(asked), (name, config))
    return found.values()


_BASELINES = {"uniform": "Uniform", "best-fixed": "BestFixed", "centre": "Centre"}
"""Called the same whether listed or added."""


def _combinations(
    fixed: Mapping[str, Any], grid: Mapping[str, list[Any]], what: str
) -> Iterator[dict[str, Any]]:
    for key in grid:
        if key in fixed:
            raise InputError(f"Expected {key} among {what} or in the grid, not both.")
    if "horizon" in {*fixed, *grid} and what == "arguments":
        raise InputError("Expected the horizon among `horizons` of the sweep, not among arguments.")
    for values in product(*grid.values()):
        yield {**fixed, **dict(zip(grid, values, strict=True))}


def _check_names(configurations: Iterable[Configuration]) -> None:
    """Two agents of one name would be one line in every plot and one row of the differences."""
    called: dict[str, Mapping[str, Any]] = {
        name: describe(AGENTS[known]()) for known, name in _BASELINES.items()
    }
    for one in configurations:
        config = {key: value for key, value in describe(one.config).items() if key not in TARGETS}
        if called.setdefault(one.name, config) != config:
            raise InputError(
                f"Expected one agent to be called {one.name!r}, got {_words(called[one.name])} and "
                f"{_words(config)}: give them labels of their own."
            )


def _words(config: Mapping[str, Any]) -> str:
    settings = ", ".join(f"{key}={value!r}" for key, value in config.items() if key != "agent")
    return f"{config['agent']}({settings})"
