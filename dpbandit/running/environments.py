"""Environments by name: what makes their problems."""

from collections.abc import Callable, Mapping
from functools import partial
from importlib import import_module
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.envs.registration import load_env_creator

from dpbandit.base.checked import with_floats
from dpbandit.base.inputs import InputError, one_of
from dpbandit.envs.adapters import make_problem
from dpbandit.specs.protocols import Problem

ProblemMaker: TypeAlias = Callable[..., Problem]
"""A class, or a function, of keyword arguments."""


def problem_maker(env: str | ProblemMaker) -> ProblemMaker:
    """What makes the problem behind a registered id; "dpbandit/" and "-v0" may be left out.

    Raises:
        InputError: an unknown id, a module that cannot be imported, an environment of somebody
        else,
            what can make nothing.
    """
    if not isinstance(env, str):
        if not callable(env):
            raise InputError(f"Expected env={env!r} to be an id (see `dpbandit envs`) or a class.")
        return env
    name = environment_id(env).rpartition(":")[2]
    return partial(make_problem, **gym.registry[name].kwargs)


def arguments_of(make: ProblemMaker, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments for what `problem_maker` made; as settings of agents, 1 and 1.0 are the same."""
    known = make.keywords.get("problem") if isinstance(make, partial) else None
    return with_floats(load_env_creator(known) if known else make, given)


def environment_id(env: str) -> str:
    """The whole id: "OJPricing" is "dpbandit/OJPricing-v0"; MODULE:ID imports MODULE first.

    Raises:
        InputError: as `problem_maker`.
    """
    module, colon, name = env.rpartition(":")
    if module.startswith("."):
        raise InputError(f"Expected environment {env!r} to give the full name of its module.")
    if module:
        try:
            import_module(module)  # registers its environments
        except ImportError as error:
            raise InputError(f"Cannot import {module!r} of environment {env!r}: {error}.") from None
    ids = [i for i, entry in gym.registry.items() if "problem" in entry.kwargs]
    if name in gym.registry and name not in ids:
        raise InputError(
            f"Environment {name!r} reports no regret: wrap it in dpbandit.clients.FromGymnasium, "
            "which asks how it is measured."
        )
    candidates = (name, f"dpbandit/{name}", f"dpbandit/{name}-v0")
    found = next((candidate for candidate in candidates if candidate in ids), name)
    one_of("environment", found, ids)
    return f"{module}{colon}{found}"


def problem_label(environment: str, env_kwargs: Mapping[str, Any]) -> str:
    """What to call a problem: its id without ornament, and its arguments but for the horizon.

    >>> problem_label("dpbandit/GLMBandit-v0", {"dim": 5, "horizon": 10})
    'GLMBandit dim=5'
    """
    plainly = environment.removeprefix("dpbandit/").removesuffix("-v0")
    given = [f"{key}={value}" for key, value in env_kwargs.items() if key != "horizon"]
    return " ".join([plainly, *given])
