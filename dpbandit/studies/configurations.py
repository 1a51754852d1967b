"""Read a sweep's TOML file, and list its configurations."""

import os
import tomllib
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property, lru_cache
from itertools import product
from math import inf, prod
from typing import Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from dpbandit.agents import AGENTS
from dpbandit.base import (
    MOST_REPLICAS,
    MOST_ROUNDS,
    MOST_RUNS,
    AgentError,
    InputError,
    Ints,
    Progress,
    Seed,
    Streams,
    abbrev,
    check_length,
    read_text,
    short_path,
    whole,
    with_floats,
)
from dpbandit.privacy import Certificate
from dpbandit.results.problems import Setup
from dpbandit.results.runs import AgentRun, describe, log_marks, run_key
from dpbandit.running.compare import as_run, certify, with_baselines
from dpbandit.running.environments import arguments_of, environment_id, problem_label, problem_maker
from dpbandit.running.loop import Log, play
from dpbandit.running.settings import agent_config, agent_id, agent_kind, around, meant
from dpbandit.specs import Agent as RunningAgent, AgentConfig, Hindsight, Problem, Spec, made_agent

Value = bool | int | float | str
Values = dict[str, Value]
Choices = dict[str, Annotated[list[Value], Field(min_length=1)]]
Epsilon = Annotated[float, Field(gt=0)]
"""Privacy target epsilon > 0; infinity means no noise."""
Delta = Annotated[float, Field(ge=0, lt=1)]
Count = Annotated[int, Field(ge=1, le=MOST_REPLICAS)]
Rounds = Annotated[int, Field(ge=1, le=MOST_ROUNDS)]
Runs = Annotated[int, Field(ge=400, le=MOST_RUNS)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class Environment(_Strict):
    """An environment and its arguments."""

    id: str = Field(
        description="see `dpbandit envs`; MODULE:ID imports MODULE first, or MODULE:CLASS"
    )
    label: str | None = Field(None, description="what to call it; id and arguments if left out")
    arguments: Values = Field({}, description="arguments but for the horizon")
    grid: Choices = Field({}, description="arguments with several values each: all combinations")


class Agent(_Strict):
    """An agent and its settings; epsilon and delta come from the sweep."""

    id: str = Field(description="see `dpbandit agents`; or MODULE:NAME, of your own")
    label: str | None = Field(None, description="what to call it; id and settings if left out")
    settings: Values = Field({}, description="settings; epsilon here overrides the sweep's")
    grid: Choices = Field({}, description="settings with several values each: all combinations")


class Audit(_Strict):
    """Settings of the audits of private agents."""

    runs: Annotated[int, Field(ge=400, le=MOST_RUNS)] = Field(
        4000, description="runs of each of two worlds"
    )
    horizon: Rounds = Field(40, description="rounds of the audited problem")


class Sweep(_Strict):
    """A study: every agent on every environment, for every epsilon, delta and horizon.

    Agents without a privacy target run once for each environment and horizon. Uniform play and the
    best fixed action are added where missing. Replica r of a configuration depends on (seed, r) and
    the configuration only.
    """

    name: str = Field("sweep", description="title of the report")
    seed: Annotated[int, Field(ge=0, lt=2**32)] = 0
    replicas: Count = 20
    horizons: Annotated[list[Rounds], Field(min_length=1)] = [10_000]
    epsilons: Annotated[list[Epsilon], Field(min_length=1)] = [1.0]
    deltas: Annotated[list[Delta], Field(min_length=1)] = [1e-5]
    environments: Annotated[list[Environment], Field(min_length=1)]
    agents: Annotated[list[Agent], Field(min_length=1)]
    leave_out_unfit: bool = Field(
        False, description="leave out agents where they do not fit, and say so; else refuse them"
    )
    audit: Audit | None = Field(None, description="also audit every private agent")

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> "Sweep":
        """Read a sweep from a TOML file.

        Raises:
            InputError: if the file is missing or no TOML, or has an unknown key or a wrong value.
        """
        try:
            values = tomllib.loads(read_text(path))
        except RecursionError:
            raise InputError(
                f"Expected {short_path(path)} to be nested 5 levels at most."
            ) from None
        except InputError:
            raise
        except ValueError as error:  # no TOML, no text, or a number of 5,000 digits
            raise InputError(f"Expected {short_path(path)} to be TOML: {error}.") from None
        return cls.of(values, source=short_path(path))

    @classmethod
    def of(cls, values: Mapping[str, Any], *, source: str = "the sweep") -> "Sweep":
        """Make a sweep from the values of a TOML file; raise `InputError` on the first mistake."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            unknown = [e for e in error.errors() if e["type"] == "extra_forbidden"]
            raise InputError(_sentence([*unknown, *error.errors()][0], source)) from None


_PARTS: dict[str, type[BaseModel]] = {  # key -> model of its tables
    "environments": Environment,
    "agents": Agent,
    "audit": Audit,
}


def _sentence(error: Any, source: str) -> str:
    *place, last = error["loc"] or ("",)
    where = ".".join(str(part) for part in error["loc"])
    if error["type"] == "extra_forbidden":
        known = list(_PARTS.get(str(place[0]) if place else "", Sweep).model_fields)
        near = get_close_matches(str(last), known, n=1, cutoff=0.5)
        hint = f" (did you mean {near[0]}?)" if near else ""
        return f"Unknown key {where} in {source}{hint}: expected one of {', '.join(known)}."
    if error["type"] == "missing":
        return f"Expected {where} in {source}: it is missing."
    value = abbrev(error["input"])
    if error["loc"][-1] in ("bool", "int", "float", "str"):  # of a union
        where = where.rpartition(".")[0]
        return f"Expected {where}={value} in {source} to be a number, text, true or false."
    return f"Expected {where}={value} in {source} to be {_right(error, value)}."


def _right(error: Any, value: str) -> str:
    """Describe values that a setting may have, from Pydantic's error on the wrong `value`."""
    kind, limits = error["type"], error.get("ctx", {})
    bounds = {"greater_than": "gt", "greater_than_equal": "ge", "less_than": "lt"}
    bounds |= {"less_than_equal": "le", "too_short": "min_length", "too_long": "max_length"}
    signs = {"gt": "> {}", "ge": ">= {}", "lt": "< {}", "le": "<= {}"}
    if kind in bounds:
        limit = bounds[kind]
        return signs.get(limit, "of {} or more items").format(limits[limit])
    kinds = {"list_type": f"a list, such as [{value}]", "dict_type": "a table, { KEY = VALUE }"}
    kinds |= {"model_type": "a table: [[agents]], and below it id = 'fade'", "string_type": "text"}
    kinds |= {"int_type": "a whole number", "float_type": "a number", "bool_type": "true or false"}
    return kinds.get(kind, f"right: {error['msg'].lower()}")


TARGETS = ("delta", "epsilon")
"""Names of the settings that state an agent's privacy target."""


@dataclass(frozen=True)
class Configuration:
    """An agent on a problem, with everything on which the numbers of its replicas depend."""

    setup: Setup
    name: str
    config: AgentConfig

    @cached_property
    def key(self) -> str:
        """Hash that identifies the configuration and its runs."""
        facts = {**self.setup.facts(), "agent": self.name, "config": describe(self.config)}
        return run_key(facts)

    def __hash__(self) -> int:
        return hash(self.key)  # the arguments of its environment are a dictionary

    @property
    def marks(self) -> Ints:
        """Numbers of the rounds to be logged, from `log_marks`; subclasses log fewer."""
        return log_marks(self.setup.horizon)

    def problem(self) -> Problem:
        """Make the problem anew, in its state before the first round."""
        return problem_maker(self.setup.environment)(**self.setup.env_kwargs)

    def play(
        self, first: int, last: int, advance: Callable[[int], None] = lambda rounds: None
    ) -> AgentRun:
        """Play replicas `first` to `last` - 1; the result does not depend on other replicas.

        `advance` is called with the number of rounds played since its last call.
        """
        setup, proof = self.setup, certificate_of(self)
        seeds = [(setup.seed, r) for r in range(first, last)]
        how: dict[str, Any] = {"marks": self.marks, "advance": advance}
        log = play_any(self.problem(), self.config, seeds, **how)
        return as_run(setup, self.name, self.config, proof, [log], first=first, marks=self.marks)


@dataclass(frozen=True)
class AgentRecorder:
    """Config that makes agents by another config and stores them, so that they can be examined."""

    config: AgentConfig
    agents: list[RunningAgent] = field(default_factory=list)

    def make(self, spec: Spec, streams: Streams) -> RunningAgent:
        self.agents.append(self.config.make(spec, streams))
        return self.agents[-1]


class AgentFailure(NamedTuple):
    """A configuration whose agent failed: it raised an error, or took too long."""

    key: str
    """key of the configuration"""
    agent: str
    problem: str
    epsilon: float
    """claimed epsilon; infinity without a claim"""
    message: str
    """the error, the agent's method and the round in words, without the agent's name"""
    trace: str = ""
    """Python's traceback; empty if it adds nothing to `message`"""

    def __str__(self) -> str:
        at = "" if self.epsilon == inf else f" at epsilon {self.epsilon:g}"
        return f"{self.agent} on {self.problem}{at} {self.message}."


def failure_of(one: Configuration, error: InputError) -> AgentFailure:
    """Return the failure of a configuration whose agent raised `error`."""
    if isinstance(error, AgentError):
        message, trace = error.message, error.trace
    else:
        message, trace = f"failed: {str(error).removesuffix('.')}", ""
    claim = getattr(one.config, "epsilon", inf)
    return AgentFailure(one.key, one.name, one.setup.problem, claim, message, trace)


class LastRound(Configuration):
    """Configuration that logs only the last round, where the best fixed action is slow to find."""

    @property
    def marks(self) -> Ints:
        return super().marks[-1:]


@lru_cache(maxsize=64)
def certificate_of(one: Configuration) -> Certificate:
    """Return a configuration's certificate, cached, as it may take longer than playing."""
    return certify(one.config, one.problem().spec, accountants=False)


def setup_of(
    environment: str,
    arguments: Mapping[str, Any],
    *,
    horizon: int,
    seed: int = 0,
    label: str | None = None,
) -> Setup:
    """Return the setup of a problem: environment, arguments, horizon, seed, unit and label.

    Args:
        environment: id; "dpbandit/" and "-v0" may be left out.
        arguments: arguments of the environment other than the horizon.
        horizon: number T >= 1 of rounds.
        seed: seed of the users' randomness.
        label: name of the problem; by default id and arguments.

    Raises:
        InputError: if an id or argument is unknown, or a value is wrong.
    """
    known = environment_id(environment)
    make = problem_maker(environment)
    resolved = arguments_of(make, {**arguments, "horizon": horizon})
    return Setup(
        environment=known,
        env_kwargs=resolved,
        horizon=horizon,
        seed=seed,
        reward_unit=make(**resolved).spec.reward_unit,
        problem=label or problem_label(environment, resolved),
    )


@dataclass(frozen=True, kw_only=True)
class Study:
    """Configurations for `run_sweep`, from a sweep file (see `plan`) or made in Python.

    Raises `InputError` if two different configurations have the same labels, as plots would mix
    their runs.
    """

    configurations: tuple[Configuration, ...]
    replicas: int = 20
    name: str = "sweep"
    """title of the report"""
    audit: Audit | None = None
    """settings of an audit of every private agent; None if none is to be audited"""
    request: Mapping[str, Any] = field(default_factory=dict)
    """contents of the sweep file, to be stored beside the results"""

    def __post_init__(self) -> None:
        whole("replicas", self.replicas, 1, MOST_REPLICAS)
        for one in self.configurations:
            check_length("the name of an agent", one.name)
            check_length("the label of an environment", one.setup.problem)
        _refuse_twins(self.configurations)


def _refuse_twins(configurations: Iterable[Configuration]) -> None:
    seen: dict[Any, Configuration] = {}
    for one in configurations:
        target = tuple(getattr(one.config, name, None) for name in TARGETS)
        place = (one.setup.problem, one.setup.horizon, one.name, *target)
        other = seen.setdefault(place, one)
        if other.key != one.key:
            raise InputError(
                f"Expected one agent {one.name!r} on one problem {one.setup.problem!r}, got "
                f"{one.config} on {one.setup.env_kwargs} and {other.config} on "
                f"{other.setup.env_kwargs}: give them labels of their own."
            )


MOST_CONFIGURATIONS = 100_000
"""Largest number of configurations of a sweep, as each is made once before the first round."""


Agents = Sequence[tuple[str, AgentConfig]]


def plan(sweep: Sweep, *, progress: bool = False) -> Study:
    """List all configurations of a sweep and the baselines, each once.

    Every agent is made once, so that one that does not fit is found before the first round. With
    `leave_out_unfit`, unfit agents are left out, and a warning lists them with the reasons.

    Args:
        sweep: see `Sweep.read`.
        progress: show a bar once it takes longer than two seconds.

    Raises:
        InputError: if an id, argument or setting is unknown, an agent does not fit a problem (with
            `leave_out_unfit`: fits none), or two configurations have the same name.
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
    with Progress(len(problems) * len(agents), visible=progress) as bar:
        bar.working_on("planning", rate=1)
        for entry, arguments in problems:
            for configuration in _configurations_on(sweep, entry, arguments, agents, unfit, bar):
                found[configuration.key] = configuration
    _report_unfit(unfit, {one.name for one in found.values()})
    _check_names(found.values())
    request = sweep.model_dump(mode="json")
    return Study(
        configurations=tuple(found.values()),
        replicas=sweep.replicas,
        name=sweep.name,
        audit=sweep.audit,
        request=request,
    )


def _report_unfit(unfit: Mapping[tuple[str, str], InputError], fitting: Collection[str]) -> None:
    """Warn of agents left out on some problems; raise `InputError` for one that fits none."""
    for (name, problem), mistake in unfit.items():
        if name not in fitting:
            raise InputError(f"{name} on {problem}: {mistake}") from mistake
    if unfit:
        reasons = "; ".join(
            f"{name} on {problem} ({why})" for (name, problem), why in unfit.items()
        )
        warnings.warn(f"Left out where they do not fit: {reasons}.", stacklevel=3)


def _refuse_too_many(sweep: Sweep) -> None:
    many = len(sweep.horizons) * len(sweep.epsilons) * len(sweep.deltas)
    for entries in (sweep.environments, sweep.agents):
        many *= sum(prod(map(len, entry.grid.values())) for entry in entries)
    if many > MOST_CONFIGURATIONS:
        raise InputError(
            f"Expected at most {MOST_CONFIGURATIONS:,} combinations of environments, agents, "
            f"epsilons, deltas and horizons, got {abbrev(many)}."
        )


def _configurations_on(
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
        except AgentError:  # reported as a failure when it is played; other agents go on
            yield Configuration(setup, name, config)
        except InputError as mistake:
            if not sweep.leave_out_unfit:
                raise InputError(f"{name} on {setup.problem}: {mistake}") from mistake
            unfit.setdefault((name, setup.problem), mistake)
        else:
            yield Configuration(setup, name, config)
    numbered = {f"{name} {number}": config for number, (name, config) in enumerate(agents)}
    for name, config in with_baselines(numbered, spec).items():
        if name not in numbered:
            yield Configuration(setup, name, config)


def _agents(sweep: Sweep, entry: Agent) -> Iterable[tuple[str, AgentConfig]]:
    """Return (name, config) for all settings and targets (epsilon, delta); names omit targets."""
    found = dict[str, tuple[str, AgentConfig]]()
    for written in _combinations(entry.settings, entry.grid, "settings"):
        known = agent_id(entry.id)
        settings = with_floats(agent_kind(around(meant(known, written))[1]), written)
        varied = [key for key in settings if key not in TARGETS]
        varied = [key for key in varied if key in entry.grid] if entry.label else varied
        first = entry.label or _BASELINES.get(known, known)
        name = " ".join([first, *(f"{key}={settings[key]}" for key in varied)])
        for epsilon, delta in product(sweep.epsilons, sweep.deltas):
            try:
                config = agent_config(known, settings, epsilon=epsilon, delta=delta)
            except InputError as mistake:
                raise InputError(f"{name}: {mistake}") from mistake
            described = {"name": name, **describe(config)}
            if described.get("epsilon") == inf:
                described["delta"] = None  # without noise there is none
            found.setdefault(run_key(described), (name, config))
    return found.values()


_BASELINES = {"uniform": "Uniform", "best-fixed": "BestFixed", "centre": "Centre"}
"""Id of a baseline -> its name, the same whether the sweep lists it or `plan` adds it."""


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
    """Raise `InputError` if agents with different settings share a name, as plots mix these."""
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


def play_any(
    problem: Problem,
    config: AgentConfig,
    seeds: Sequence[Seed],
    *,
    marks: Ints,
    advance: Callable[[int], None] = lambda rounds: None,
    answer_from: Ints | None = None,
) -> Log:
    """Play any agent; for an oracle, first find the best action by a run of Uniform on these users.

    This action is the best one up to the last of the rounds `answer_from`, by default `marks`.
    """
    if isinstance(config, Hindsight):
        from dpbandit.agents import Uniform

        uniform_log = play(
            problem, Uniform(), seeds, marks=marks if answer_from is None else answer_from
        )
        config = config.with_answer(uniform_log.best_fixed)
    return play(problem, config, seeds, marks=marks, advance=advance)
