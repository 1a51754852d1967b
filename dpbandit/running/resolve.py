"""Conversion of ids, classes and objects that users pass as agents or environments."""

from collections.abc import Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from dpbandit.base import InputError, abbrev, named
from dpbandit.results.problems import is_number
from dpbandit.running.environments import (
    ProblemMaker,
    arguments_of,
    environment_id,
    is_file,
    problem_label,
    problem_maker,
)
from dpbandit.specs import AgentConfig, Problem, Spec, check_config, checked_problem

AnyAgent: TypeAlias = str | AgentConfig
"""An id, which may have settings, or a config."""
AnyAgents: TypeAlias = AnyAgent | Iterable[AnyAgent] | Mapping[str, AnyAgent]
"""An agent, several agents, or a mapping from names to agents."""
AnyProblem: TypeAlias = str | ProblemMaker | Problem | gym.Env[Any, Any] | gym.vector.VectorEnv
"""An id, a class or function that makes problems, or a problem, also in Gymnasium form."""

_PLAIN_TYPES = (bool, int, float, str, NoneType)
"""Types of an environment's arguments that are not recorded if they equal the default."""
_DEFAULT_HORIZON = 10_000
"""Horizon of an environment that has none of its own."""


class ResolvedProblem(NamedTuple):
    """A problem with the function and arguments that make it again."""

    name: str
    """id of the environment, or name of its class"""
    make: ProblemMaker
    arguments: dict[str, Any]
    """arguments of `make`, including `horizon`"""
    label: str
    """label of the problem in titles"""
    recorded: Mapping[str, Any]
    """arguments that results record; for a function, also the fields of the problem that it made"""
    counts: bool = True
    """True if users may be drawn as counts, see `dpbandit.running.user_counts`"""
    by: str | None = None
    """column by which rounds and regret are counted, see `dpbandit.running.loop.Segments`"""


def resolve_problem(
    env: AnyProblem, *, horizon: int | None = None, env_kwargs: Mapping[str, Any] | None = None
) -> ResolvedProblem:
    """Convert an id, class, problem or Gymnasium environment to a `ResolvedProblem`.

    Args:
        env: see `AnyProblem`; a problem, or an environment that wraps one, is made again with the
            same arguments.
        horizon: number of rounds; by default the problem's own, or 10,000 for a class.
        env_kwargs: further arguments.

    Raises:
        InputError: `env` is none of these, an id or argument is unknown, or the horizon is given
            twice.
    """
    further = {} if env_kwargs is None else env_kwargs
    named("env_kwargs", further)
    if "horizon" in further:
        raise InputError("Expected horizon by --horizon (horizon=), not among env_kwargs.")
    problem: Any = getattr(_unwrapped(env), "problem", env)
    make: ProblemMaker
    if isinstance(problem, str | type) or not hasattr(problem, "step"):
        make, name = problem_maker(problem), problem if isinstance(problem, str) else _called(env)
        most = _limit_of(problem)
        if most is not None and isinstance(horizon, int) and horizon > most:
            raise InputError(
                f"Expected horizon={horizon} to be at most the max_episode_steps={most} with which "
                f"{problem!r} is registered."
            )
        known: dict[str, Any] = {"horizon": most or _DEFAULT_HORIZON}
    else:
        kind = type(problem)
        make, name, known = problem_maker(kind), _id_of(kind), _arguments(problem)
    chosen = {} if horizon is None else {"horizon": horizon}
    arguments = arguments_of(make, {**known, **further, **chosen})
    recorded = arguments
    if not isinstance(env, str | type) and problem is env and not hasattr(env, "step"):
        made = make(**arguments)  # two functions of one name may make different problems
        recorded = {**(_arguments(made) if is_dataclass(made) else {}), **arguments}
    full_id = environment_id(name) if is_file(name) else name
    return ResolvedProblem(full_id, make, arguments, problem_label(name, recorded), recorded)


def problem_at_hand(
    env: AnyProblem, horizon: int | None = None, env_kwargs: Mapping[str, Any] | None = None
) -> Problem:
    """Return a problem unchanged, or make one from an id, class or environment."""
    ready: Any = env
    if isinstance(env, str | type | gym.Env | gym.vector.VectorEnv) or not hasattr(env, "step"):
        resolved = resolve_problem(env, horizon=horizon, env_kwargs=env_kwargs)
        return resolved.make(**resolved.arguments)
    if horizon is not None or env_kwargs:
        raise InputError("Expected horizon and env_kwargs with an environment, got a problem.")
    return checked_problem(type(env).__name__, ready)


def _unwrapped(env: Any) -> Any:
    """Remove the wrappers of `gym.make`; raise `InputError` if there are others."""
    while isinstance(env, gym.Wrapper) and hasattr(env.unwrapped, "problem"):
        if not isinstance(env, OrderEnforcing | PassiveEnvChecker):
            name, steps = type(env).__name__, getattr(env, "_max_episode_steps", None)
            advice = "it is made anew" if steps is None else f"say horizon={steps}"
            raise InputError(f"Expected env without wrappers, got one in {name}: {advice}.")
        env = env.env
    return env


def resolve_spec(
    spec: Spec | AnyProblem,
    *,
    horizon: int | None = None,
    short: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> Spec:
    """Return a spec unchanged, or the spec of an environment in any form.

    An environment has `horizon` rounds, or `short` if that is None, or its default if both are.
    """
    if isinstance(spec, Spec):
        if horizon is not None or env_kwargs:
            raise InputError("Expected horizon and env_kwargs with an environment, got a spec.")
        return spec
    rounds = short if horizon is None else horizon
    resolved = resolve_problem(spec, horizon=rounds, env_kwargs=env_kwargs)
    found: Spec = resolved.make(**resolved.arguments).spec
    return found


def resolve_agent(agent: AnyAgent) -> AgentConfig:
    """Return a config unchanged, or make it from an id with settings."""
    if isinstance(agent, str):
        from dpbandit.running.settings import parse_agent  # imports 60 files: only when needed

        return parse_agent(agent)
    check_config(agent)
    return agent


def resolve_agents(agents: AnyAgents) -> dict[str, AgentConfig]:
    """Convert agents to name -> config; ids are their own names, configs are named by class.

    If several configs have one class, their names include the settings that are not defaults.

    Raises:
        InputError: an object that is no agent, an unknown id, or a repeated name.
    """
    if isinstance(agents, Mapping):
        for name in agents:
            if not isinstance(name, str):
                raise InputError(f"Expected agents to have words for names, got {abbrev(name)}.")
        return {name: resolve_agent(agent) for name, agent in agents.items()}
    if isinstance(agents, str):
        from dpbandit.running.settings import listed  # as in `resolve_agent`

        several: list[AnyAgent] = [*listed(agents)]
    elif isinstance(agents, Iterable):
        several = list(agents)
    else:
        several = [agents]
    configs = [resolve_agent(agent) for agent in several]
    kinds = [type(config) for config in configs]
    found: dict[str, AgentConfig] = {}
    for agent, config in zip(several, configs, strict=True):
        if isinstance(agent, str):
            name = agent
        else:
            name = _briefly(config) if kinds.count(type(config)) > 1 else type(config).__name__
        if name in found:
            raise InputError(f"Expected every agent once: {name} is there twice.")
        found[name] = config
    return found


def _briefly(config: Any) -> str:
    """Return a config's class and non-default settings as text, such as `FADE(epsilon=2.0)`."""
    settings = [
        f"{f.name}={getattr(config, f.name)!r}"
        for f in fields(config)
        if f.default is MISSING or getattr(config, f.name) != f.default
    ]
    return type(config).__name__ + (f"({', '.join(settings)})" if settings else "")


def _limit_of(env: Any) -> int | None:
    """Return the `max_episode_steps` of a registered environment; None if it has none."""
    known = environment_id(env) if isinstance(env, str) else ""
    entry = gym.registry.get(known.rpartition(":")[2])
    return None if entry is None else entry.max_episode_steps


def _called(env: Any) -> str:
    while isinstance(env, partial):
        env = env.func
    return str(getattr(env, "__name__", "environment"))


def _id_of(kind: type) -> str:
    """Return the id under which a class of problems is registered, or else its name."""
    name = f"dpbandit.envs:{kind.__name__}"
    ids = [i for i, entry in gym.registry.items() if entry.kwargs.get("problem") == name]
    return ids[0] if ids and kind.__module__.startswith("dpbandit.envs.") else kind.__name__


def _arguments(problem: Any) -> dict[str, Any]:
    if not is_dataclass(problem):
        raise InputError(
            f"Expected env={abbrev(problem)} to be an id, a class, or a problem that is a "
            "dataclass: it is made anew for every agent."
        )
    arguments = {f.name: getattr(problem, f.name) for f in fields(problem) if f.init}
    arguments = {
        name: value.item() if is_number(value) else value for name, value in arguments.items()
    }
    plain = {f.name: f.default for f in fields(problem) if isinstance(f.default, _PLAIN_TYPES)}
    world_names = ("world_seed", "available", "absent")  # arguments of `make_problem`
    world = {name: value for name, value in vars(problem).items() if name in world_names}
    return world | {
        name: value
        for name, value in arguments.items()
        if name == "horizon"
        or not (isinstance(value, _PLAIN_TYPES) and value == plain.get(name, problem))
    }
