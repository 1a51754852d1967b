"""Lookup of environments by id or in TOML files, and making of their problems."""

import json
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from dpbandit.base import (
    InputError,
    abbrev,
    imported,
    one_of,
    read_text,
    short_path,
    with_floats,
    write_atomically,
)
from dpbandit.envs.adapters import make_problem
from dpbandit.results.problems import as_words, is_number, label_of, short_id
from dpbandit.specs import Problem

ENDING = ".toml"  # of environment files
_KEYS = ("id", "arguments")  # of an environment file


class EnvironmentFile(NamedTuple):
    """Content of a TOML file that names an environment and its arguments."""

    id: str
    arguments: dict[str, Any]
    """arguments of the environment; paths `frame` and `path` are relative to the current folder"""


def is_file(environment: str) -> bool:
    """Return True if `environment` names a TOML file."""
    return environment.endswith(ENDING)


def read_environment(path: str) -> EnvironmentFile:
    """Read a TOML file with the `id` of an environment and a table of its `arguments`.

    In the file, paths of data tables are relative to the file's folder.

    Raises:
        InputError: the file does not exist, is no TOML, or has another key.
    """
    try:
        parsed = tomllib.loads(read_text(path))
    except InputError:
        raise
    except (ValueError, RecursionError) as error:
        raise InputError(f"Expected {short_path(path)} to be TOML: {error}.") from None
    if unknown := [key for key in parsed if key not in _KEYS]:
        raise InputError(
            f"Expected {short_path(path)} to hold id and [arguments] of an environment, got "
            f"{unknown[0]!r}"
            + (": a sweep is run by `dpbandit sweep`." if "agents" in parsed else ".")
        )
    name, arguments = parsed.get("id"), parsed.get("arguments", {})
    if not isinstance(name, str) or is_file(name) or not isinstance(arguments, Mapping):
        raise InputError(
            f"Expected {short_path(path)} to hold id, of an environment, and a table [arguments], "
            f"got {abbrev(parsed)}."
        )
    if "horizon" in arguments:
        raise InputError(
            f"Expected the horizon by --horizon (horizon=), not in {short_path(path)}."
        )
    found = dict(arguments)
    for key in ("frame", "path"):
        if isinstance(found.get(key), str):
            found[key] = os.path.join(os.path.dirname(path), found[key])
    return EnvironmentFile(name, found)


def write_environment(path: Path, name: str, arguments: Mapping[str, Any]) -> Path:
    """Write an environment file; leave out arguments that are None; `frame` becomes relative."""
    values = {key: value for key, value in arguments.items() if value is not None}
    if isinstance(values.get("frame"), str | os.PathLike):
        values["frame"] = os.path.relpath(values["frame"], path.parent)
    lines = [f"id = {_toml(name)}", "", "[arguments]"]
    lines += [f"{_key(k)} = {_toml(v)}" for k, v in values.items() if not isinstance(v, Mapping)]
    for key, table in values.items():
        if isinstance(table, Mapping):
            lines += ["", f"[arguments.{_key(key)}]"]
            lines += [f"{_key(k)} = {_toml(v)}" for k, v in table.items()]
    text = "\n".join(lines) + "\n"
    return write_atomically(path, lambda partial: partial.write_text(text, encoding="utf-8"))


def _key(key: str) -> str:
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else _toml(key)


def _toml(value: Any) -> str:
    """Format a number, word, truth value or list for TOML, where it has the form of JSON."""
    return json.dumps(value, ensure_ascii=False)


ProblemMaker: TypeAlias = Callable[..., Problem]
"""Class or function that makes a problem from keyword arguments."""


def problem_maker(env: str | ProblemMaker) -> ProblemMaker:
    """Return the function that makes the problems of an id, a TOML file, a class or a function.

    "dpbandit/" and "-v0" are optional in ids.

    Raises:
        InputError: the id is unknown, its module cannot be imported, another package registered the
            environment, or the object is not callable.
    """
    if not isinstance(env, str):
        if not callable(env):
            table = hasattr(env, "columns")
            raise InputError(
                f"Expected env={abbrev(env)} to be an id (see `dpbandit envs`) or a class."
                + (" Of a table of prices PricingFromLog makes one." if table else "")
            )
        if isinstance(env, partial) and not env.args:  # record its keywords as arguments
            return partial(problem_maker(env.func), **env.keywords)
        return partial(make_problem, problem=env)
    if is_file(env):
        parsed = read_environment(env)
        return partial(problem_maker(parsed.id), **parsed.arguments)
    known = environment_id(env)
    name = known.rpartition(":")[2]
    if name not in gym.registry:  # MODULE:CLASS
        return partial(make_problem, problem=known)
    return partial(make_problem, **gym.registry[name].kwargs)


def arguments_of(make: ProblemMaker, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Merge arguments with those that a problem maker already contains, as Python values.

    Integers become floats where the maker declares floats; NumPy's numbers become Python's.
    """
    defaults = dict(make.keywords) if isinstance(make, partial) else {}
    defaults.pop("problem", None)
    every = {
        name: value.item() if is_number(value) else value
        for name, value in {**defaults, **arguments}.items()
    }
    return with_floats(_inside(make), every)


def without_defaults(make: ProblemMaker, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Leave out arguments that equal the defaults of a problem maker."""
    defaults = {name: one.default for name, one in signature(_inside(make)).parameters.items()}
    return {
        name: value
        for name, value in arguments.items()
        if name not in defaults or as_words(value) != as_words(defaults[name])
    }


def _inside(make: ProblemMaker) -> Any:
    """Return the class or function of problems that a problem maker calls."""
    problem = make.keywords["problem"] if isinstance(make, partial) else make
    return load_env_creator(problem) if isinstance(problem, str) else problem


def environment_id(env: str) -> str:
    """Complete an id: "OJPricing" becomes "dpbandit/OJPricing-v0".

    For MODULE:ID, MODULE is imported first; MODULE:CLASS names a class of problems in it. For a
    TOML file the id in it is completed. Errors are those of `problem_maker`.
    """
    if is_file(env):
        return environment_id(read_environment(env).id)
    module, colon, name = env.rpartition(":")
    user_module = imported(module, f"environment {env!r}") if module or colon else None
    ids = [i for i, entry in gym.registry.items() if "problem" in entry.kwargs]
    if name in gym.registry and name not in ids:
        raise InputError(
            f"Environment {name!r} reports no regret: wrap it in dpbandit.clients.FromGymnasium, "
            "which asks how it is measured."
        )
    candidates = (name, f"dpbandit/{name}", f"dpbandit/{name}-v0")
    found = next((candidate for candidate in candidates if candidate in ids), name)
    if found not in ids and user_module is not None:
        one_of(f"environment of {module}", name, _classes(user_module) or ["(none)"])
        return env
    if found not in ids:
        _refuse_agent(name)
    one_of("environment", found, ids, short=environment_label, see="dpbandit envs")
    return f"{module}{colon}{found}"


def _classes(module: Any) -> list[str]:
    """Return the names of the classes of problems that a module defines."""
    return [
        name
        for name, thing in vars(module).items()
        if isinstance(thing, type) and thing.__module__ == module.__name__ and "step" in dir(thing)
    ]


def _refuse_agent(name: str) -> None:
    from dpbandit.agents import AGENTS  # imports 60 files: only when needed

    if name in AGENTS:
        raise InputError(
            f"Expected an environment, got the agent {name!r}: compare and play take the "
            "environment first, certify and audit the agent."
        )


def environment_label(environment: str) -> str:
    """Shorten an id for display, without "dpbandit/" and "-v0", or a file's name, without folder.

    >>> environment_label("dpbandit/OJPricing-v0"), environment_label("here/shop.toml")
    ('OJPricing', 'shop')
    """
    return Path(environment).stem if is_file(environment) else short_id(environment)


def problem_label(environment: str, env_kwargs: Mapping[str, Any]) -> str:
    """Name a problem for display: its short id and its arguments, without the horizon.

    Data tables, and arguments that are in the environment's TOML file, are left out.

    >>> problem_label("dpbandit/GLMBandit-v0", {"dim": 5, "horizon": 10})
    'GLMBandit dim=5'
    """
    in_file = read_environment(environment).arguments if is_file(environment) else {}
    varied = {
        key: value
        for key, value in as_words(env_kwargs).items()
        if not (key in in_file and in_file[key] == value)
    }
    return label_of(environment_label(environment), varied)
