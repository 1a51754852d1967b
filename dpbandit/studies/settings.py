"""Names and settings as people write them: KEY=VALUE, and agents by their ids."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any

from dpbandit.agents import AGENTS
from dpbandit.base.checked import with_floats
from dpbandit.base.inputs import BadInput, one_of
from dpbandit.specs.protocols import AgentConfig


def parse_agent(text: str, **targets: float) -> AgentConfig:
    """ID[:KEY=VALUE...] as a config, see `agent_config`."""
    name, *settings = text.split(":")
    return agent_config(name, parse_settings(settings), **targets)


def agent_config(agent: str, settings: Mapping[str, Any], **targets: float) -> AgentConfig:
    """The config of the agent with this id; "DPUCB" and "dp_ucb" are dp-ucb.

    Args:
        agent: id of an agent, see `dpbandit agents`.
        settings: its settings, by name.
        targets: settings of those agents that have them, such as epsilon and delta.

    Raises:
        BadInput: an unknown agent or setting, or whatever the config refuses.
    """
    known = agent_id(agent)
    names = [field.name for field in fields(AGENTS[known])]
    for key in settings:
        one_of(f"setting of {known}", key, names or ["(none)"])
    defaults = {key: value for key, value in targets.items() if key in names}
    config: AgentConfig = AGENTS[known](**with_floats(AGENTS[known], {**defaults, **settings}))
    return config


def agent_id(agent: str) -> str:
    """The id that `agent` is a spelling of; raises `BadInput` where there is none."""
    plainly = {re.sub(r"[^a-z]", "", known): known for known in AGENTS}
    known = plainly.get(re.sub(r"[^a-z]", "", agent.lower()), agent)
    one_of("agent", known, AGENTS)
    return known


def parse_settings(texts: Iterable[str] | None) -> dict[str, Any]:
    """KEY=VALUE texts as a dictionary; raises `BadInput` where one is malformed or said twice."""
    pairs = [parse_setting(text) for text in texts or ()]
    keys = [key for key, _ in pairs]
    for key in keys:
        if keys.count(key) > 1:
            raise BadInput(f"Expected {key} once, got it {keys.count(key)} times.")
    return dict(pairs)


def parse_setting(text: str) -> tuple[str, Any]:
    """KEY=VALUE, the value a number, true, false, none or a word.

    >>> parse_setting("refresh_every=50"), parse_setting("alpha=theory")
    (('refresh_every', 50), ('alpha', 'theory'))
    """
    key, equals, value = text.partition("=")
    if not (key and equals and value):
        raise BadInput(f"Expected KEY=VALUE, got {text!r}.")
    words = {"true": True, "false": False, "none": None}
    if value.lower() in words:
        return key, words[value.lower()]
    for kind in (int, float):
        try:
            return key, kind(value)
        except ValueError:
            continue
    return key, value
