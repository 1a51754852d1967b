"""Agents of somebody's own, by the name of their class: MODULE:CLASS."""

from dataclasses import is_dataclass
from typing import Any

from dpbandit.agents import AGENTS
from dpbandit.base.fields import imported
from dpbandit.base.inputs import InputError, one_of


def agent_kind(agent: str) -> Any:
    """The config class behind an id, or MODULE:CLASS, which imports MODULE.

    Raises:
        InputError: MODULE cannot be imported, or has no such class of configs.
    """
    return AGENTS[agent] if agent in AGENTS else _own(agent)


def _own(agent: str) -> Any:
    module, _, name = agent.partition(":")
    there = vars(imported(module, f"agent {agent!r}"))
    if name not in there:
        configs = [word for word, thing in there.items() if _is_config(thing)]
        one_of(f"config of {module}", name, configs or ["(none)"])
    kind = there[name]
    if not _is_config(kind):
        raise InputError(
            f"Expected {name} of {module} to be a class under @dataclass(frozen=True, "
            "kw_only=True) with a method make(spec, streams)."
        )
    return kind


def _is_config(thing: Any) -> bool:
    return isinstance(thing, type) and is_dataclass(thing) and hasattr(thing, "make")
