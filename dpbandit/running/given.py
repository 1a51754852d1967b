"""Agents and problems in whatever form people have them at hand."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from functools import partial
from pathlib import Path
from types import NoneType
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker

from dpbandit.base import (
    InputError,
    imported,
    one_of,
    read_text,
    shown,
    shown_path,
    with_floats,
    write_atomically,
)
from dpbandit.envs.adapters import make_problem
from dpbandit.specs import AgentConfig, Problem, Spec, check_config, checked_problem

ENDING = ".toml"
_KEYS = ("id", "arguments")


class EnvironmentFile(NamedTuple):
    """What such a file says."""

    id: str
    arguments: dict[str, Any]
    """paths among them, under `frame` and `path`, as seen from here"""


def is_file(environment: str) -> bool:
    """Whether an environment is named by a file."""
    return environment.endswith(ENDING)


def read_environment(path: str) -> EnvironmentFile:
    """The environment in a file: `id`, and a table `arguments`.

    Paths of tables are relative to the file, whoever reads it from wherever.

    Raises:
        InputError: no such file, no TOML, another key.
    """
    try:
        told = tomllib.loads(read_text(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"Expected {shown_path(path)} to be TOML: {error}.") from None
    if unknown := [key for key in told if key not in _KEYS]:
        raise InputError(
            f"Expected {shown_path(path)} to hold id and [arguments] of an environment, got "
            f"{unknown[0]!r}"
            + (": a sweep is run by `dpbandit sweep`." if "agents" in told else ".")
        )
    name, arguments = told.get("id"), told.get("arguments", {})
    if not isinstance(name, str) or is_file(name) or not isinstance(arguments, Mapping):
        raise InputError(
            f"Expected {shown_path(path)} to hold id, of an environment, and a table [arguments], "
            f"got {shown(told)}."
        )
    found = dict(arguments)
    for key in ("frame", "path"):
        if isinstance(found.get(key), str):
            found[key] = os.path.join(os.path.dirname(path), found[key])
    return EnvironmentFile(name, found)


def write_environment(path: Path, name: str, arguments: Mapping[str, Any]) -> Path:
    """Such a file; what is None is left out, and the path `frame` is made relative to it."""
    told = {key: value for key, value in arguments.items() if value is not None}
    if isinstance(told.get("frame"), str | os.PathLike):
        told["frame"] = os.path.relpath(told["frame"], path.parent)
    lines = [f"id = {_toml(name)}", "", "[arguments]"]
    lines += [f"{_key(k)} = {_toml(v)}" for k, v in told.items() if not isinstance(v, Mapping)]
    for key, table in told.items():
        if isinstance(table, Mapping):
            lines += ["", f"[arguments.{_key(key)}]"]
            lines += [f"{_key(k)} = {_toml(v)}" for k, v in table.items()]
    text = "\n".join(lines) + "\n"
    return write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """Numbers, words, truth and lists are written as in JSON."""
    return json.dumps(value, ensure_ascii=False)


ProblemMaker: TypeAlias = Callable[..., Problem]
"""A class, or a function, of keyword arguments."""


def problem_maker(env: str | ProblemMaker) -> ProblemMaker:
    """What makes the problem behind an id, or of a class; "dpbandit/" and "-v0" may be left out.

    A file that ends in .toml holds an id, and arguments.

    Raises:
        InputError: an unknown id, a module that cannot be imported, an environment of somebody
            else, what can make nothing.
    """
    if not isinstance(env, str):
        if not callable(env):
            table = hasattr(env, "columns")
            raise InputError(
                f"Expected env={shown(env)} to be an id (see `dpbandit envs`) or a class."
                + (" Of a table of prices PricingFromLog makes one." if table else "")
            )
        return partial(make_problem, problem=env)
    if is_file(env):
        told = read_environment(env)
        return partial(problem_maker(told.id), **told.arguments)
    known = environment_id(env)
    name = known.rpartition(":")[2]
    if name not in gym.registry:  # MODULE:CLASS
        return partial(make_problem, problem=known)
    return partial(make_problem, **gym.registry[name].kwargs)


def arguments_of(make: ProblemMaker, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for what `problem_maker` made, those that it has itself among them.

    As settings of agents, 1 and 1.0 are the same.
    """
    own = dict(make.keywords) if isinstance(make, partial) else {"problem": make}
    problem = own.pop("problem")
    every = {**own, **given}
    return with_floats(load_env_creator(problem) if isinstance(problem, str) else problem, every)


def environment_id(env: str) -> str:
    """The whole id: "OJPricing" is "dpbandit/OJPricing-v0".

    MODULE:ID imports MODULE first, MODULE:CLASS is a class of problems there; of a file it is the
    id in it.

    Raises:
        InputError: as `problem_maker`.
    """
    if is_file(env):
        return environment_id(read_environment(env).id)
    module, colon, name = env.rpartition(":")
    own = imported(module, f"environment {env!r}") if module or colon else None
    ids = [i for i, entry in gym.registry.items() if "problem" in entry.kwargs]
    if name in gym.registry and name not in ids:
        raise InputError(
            f"Environment {name!r} reports no regret: wrap it in dpbandit.clients.FromGymnasium, "
            "which asks how it is measured."
        )
    candidates = (name, f"dpbandit/{name}", f"dpbandit/{name}-v0")
    found = next((candidate for candidate in candidates if candidate in ids), name)
    if found not in ids and own is not None:
        one_of(f"environment of {module}", name, _classes(own) or ["(none)"])
        return env
    if found not in ids:
        _refuse_agent(name)
    one_of("environment", found, ids, short=environment_label, see="dpbandit envs")
    return f"{module}{colon}{found}"


def _classes(module: Any) -> list[str]:
    """Of problems, that this module defines."""
    return [
        name
        for name, thing in vars(module).items()
        if isinstance(thing, type) and thing.__module__ == module.__name__ and "step" in dir(thing)
    ]


def _refuse_agent(name: str) -> None:
    from dpbandit.agents import AGENTS  # not before: 60 files

    if name in AGENTS:
        raise InputError(
            f"Expected an environment, got the agent {name!r}: compare and play are told the "
            "environment first, certify and audit the agent."
        )


def environment_label(environment: str) -> str:
    """An id without ornament; a file by its name.

    >>> environment_label("dpbandit/OJPricing-v0"), environment_label("here/shop.toml")
    ('OJPricing', 'shop')
    """
    if is_file(environment):
        return Path(environment).stem
    return environment.removeprefix("dpbandit/").removesuffix("-v0")


def problem_label(environment: str, env_kwargs: Mapping[str, Any]) -> str:
    """What to call a problem: its id without ornament, and its arguments but for the horizon.

    Tables, and what a file says itself, are left out.

    >>> problem_label("dpbandit/GLMBandit-v0", {"dim": 5, "horizon": 10})
    'GLMBandit dim=5'
    """
    own = read_environment(environment).arguments if is_file(environment) else {}
    given = [
        f"{key}={value}"
        for key, value in env_kwargs.items()
        if key != "horizon" and not (is_table(value) or (key in own and own[key] == value))
    ]
    return " ".join([environment_label(environment), *given])


def is_table(value: Any) -> bool:
    """Whether an argument is an array, a frame or a mapping of columns: too long for a line."""
    return hasattr(value, "shape") or isinstance(value, Mapping)


def as_words(value: Any) -> Any:
    """An argument as results keep it: of arrays and frames their size and a hash."""
    if isinstance(value, Mapping):
        return {key: as_words(item) for key, item in value.items()}
    if hasattr(value, "shape"):
        from joblib import hash as digest  # not before: slow to import

        return f"{type(value).__name__} {tuple(value.shape)} {digest(value)}"
    return value


AnyAgent: TypeAlias = str | AgentConfig
"""An id, which may have settings, or a config."""
AnyAgents: TypeAlias = AnyAgent | Iterable[AnyAgent] | Mapping[str, AnyAgent]
"""One, several, or several with names of their own."""
AnyProblem: TypeAlias = str | ProblemMaker | Problem | gym.Env[Any, Any] | gym.vector.VectorEnv
"""An id, a class or function that makes problems, a problem, or a Gymnasium environment of ours."""

_PLAIN = (bool, int, float, str, NoneType)
"""Kinds of arguments that are left out where they are the default"""
_HORIZON = 10_000
"""Of what does not say its own"""


class Given(NamedTuple):
    """A problem that can be made anew."""

    name: str
    """its id, or what its class is called"""
    make: ProblemMaker
    arguments: dict[str, Any]
    """`horizon` among them"""
    label: str
    """for titles"""


def problem_given(
    env: AnyProblem, *, horizon: int | None = None, env_kwargs: Mapping[str, Any] | None = None
) -> Given:
    """How to make the problem that `env` names or is.

    Args:
        env: see `AnyProblem`; a problem, or an environment around one, is made anew with the
            arguments that it has.
        horizon: rounds; by default those of the problem, or 10,000 where only a class is known.
        env_kwargs: further arguments.

    Raises:
        InputError: none of these, an unknown id or argument, a horizon said twice.
    """
    further = dict(env_kwargs or {})
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
        own: dict[str, Any] = {"horizon": most or _HORIZON}
    else:
        kind = type(problem)
        make, name, own = problem_maker(kind), _id_of(kind), _arguments(problem)
    chosen = {} if horizon is None else {"horizon": horizon}
    arguments = arguments_of(make, {**own, **further, **chosen})
    label = problem_label(name, arguments)
    return Given(environment_id(name) if is_file(name) else name, make, arguments, label)


def problem_at_hand(
    env: AnyProblem, horizon: int | None = None, env_kwargs: Mapping[str, Any] | None = None
) -> Problem:
    """A problem as it is, or one that is made, see `problem_given`."""
    ready: Any = env
    if isinstance(env, str | type | gym.Env | gym.vector.VectorEnv) or not hasattr(env, "step"):
        given = problem_given(env, horizon=horizon, env_kwargs=env_kwargs)
        return given.make(**given.arguments)
    if horizon is not None or env_kwargs:
        raise InputError("Expected horizon and env_kwargs with an environment, got a problem.")
    return checked_problem(type(env).__name__, ready)


def _unwrapped(env: Any) -> Any:
    """What is inside the wrappers of `gym.make`; others would be lost without a word."""
    while isinstance(env, gym.Wrapper) and hasattr(env.unwrapped, "problem"):
        if not isinstance(env, OrderEnforcing | PassiveEnvChecker):
            name, steps = type(env).__name__, getattr(env, "_max_episode_steps", None)
            advice = "it is made anew" if steps is None else f"say horizon={steps}"
            raise InputError(f"Expected env without wrappers, got one in {name}: {advice}.")
        env = env.env
    return env


def spec_given(
    spec: Spec | AnyProblem,
    *,
    horizon: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> Spec:
    """The public facts: a spec as it is, or those of the problem that is named or given."""
    if isinstance(spec, Spec):
        if horizon is not None or env_kwargs:
            raise InputError("Expected horizon and env_kwargs with an environment, got a spec.")
        return spec
    given = problem_given(spec, horizon=horizon, env_kwargs=env_kwargs)
    found: Spec = given.make(**given.arguments).spec
    return found


def agent_given(agent: AnyAgent) -> AgentConfig:
    """A config as it is, or the one that an id with settings stands for."""
    if isinstance(agent, str):
        from dpbandit.running.settings import parse_agent  # not before: 60 files

        return parse_agent(agent)
    check_config(agent)
    return agent


def agents_given(agents: AnyAgents) -> dict[str, AgentConfig]:
    """Name -> config. Without a name an id is called as it is written, a config by its class.

    Configs of one class are told apart by the settings that are not the defaults.

    Raises:
        InputError: something else, an unknown id, the same name twice.
    """
    if isinstance(agents, Mapping):
        for name in agents:
            if not isinstance(name, str):
                raise InputError(f"Expected agents to have words for names, got {shown(name)}.")
        return {name: agent_given(agent) for name, agent in agents.items()}
    if isinstance(agents, str):
        from dpbandit.running.settings import listed  # not before, as in `agent_given`

        several: list[AnyAgent] = [*listed(agents)]
    elif isinstance(agents, Iterable):
        several = list(agents)
    else:
        several = [agents]
    configs = [agent_given(agent) for agent in several]
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
    """`FADE(epsilon=2.0)`: its class and what is not a default."""
    said = [
        f"{f.name}={getattr(config, f.name)!r}"
        for f in fields(config)
        if f.default is MISSING or getattr(config, f.name) != f.default
    ]
    return type(config).__name__ + (f"({', '.join(said)})" if said else "")


def _limit_of(env: Any) -> int | None:
    """The rounds after which a registered environment ends, if it was told."""
    known = environment_id(env) if isinstance(env, str) else ""
    entry = gym.registry.get(known.rpartition(":")[2])
    return None if entry is None else entry.max_episode_steps


def _called(env: Any) -> str:
    return str(getattr(env, "__name__", "environment"))


def _id_of(kind: type) -> str:
    """The id under which a class of problems is registered, or what it is called."""
    name = f"dpbandit.envs:{kind.__name__}"
    ids = [i for i, entry in gym.registry.items() if entry.kwargs.get("problem") == name]
    return ids[0] if ids and kind.__module__.startswith("dpbandit.envs.") else kind.__name__


def _arguments(problem: Any) -> dict[str, Any]:
    if not is_dataclass(problem):
        raise InputError(
            f"Expected env={shown(problem)} to be an id, a class, or a problem that is a "
            "dataclass: it is made anew for every agent."
        )
    given = {f.name: getattr(problem, f.name) for f in fields(problem) if f.init}
    plain = {f.name: f.default for f in fields(problem) if isinstance(f.default, _PLAIN)}
    world = {name: value for name, value in vars(problem).items() if name == "world_seed"}
    return world | {
        name: value
        for name, value in given.items()
        if name == "horizon"
        or not (isinstance(value, _PLAIN) and value == plain.get(name, problem))
    }
