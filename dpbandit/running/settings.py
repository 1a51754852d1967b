"""Parsing of agents that users write as ids or classes with settings."""

import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import gymnasium as gym

from dpbandit.agent import Agent
from dpbandit.agents import AGENTS
from dpbandit.agents.catalogue import Kinds, wrappers
from dpbandit.base import InputError, imported, missing_fields, one_of, parse_settings, with_floats
from dpbandit.shelf import from_shelf, homes
from dpbandit.specs import AgentConfig


def agent_kind(agent: str) -> Any:
    """Find the config class of an id, or of MODULE:NAME, which imports MODULE.

    NAME is a class of configs, or an object that `running.strangers` turns into an agent.

    Raises:
        InputError: MODULE cannot be imported, or has no such name.
    """
    return AGENTS[agent] if agent in AGENTS else _class_named(agent)


def _class_named(agent: str) -> Any:
    module, _, name = agent.partition(":")
    there = vars(imported(module, f"agent {agent!r}"))
    if name not in there:
        names = {word: thing for word, thing in there.items() if not word.startswith("_")}
        some = [w for w, thing in names.items() if _is_config(thing) or _may_play(thing, module)]
        some = [w for w in some if getattr(names[w], "__module__", "") != Agent.__module__]  # bases
        one_of(f"agent of {module}", name, some or ["(none)"])
    if _is_config(there[name]):
        return there[name]
    return from_shelf("running", "stranger", f"agent {agent}, which is no dpbandit.Agent")(agent)


def _is_config(thing: Any) -> bool:
    return isinstance(thing, type) and is_dataclass(thing) and hasattr(thing, "make")


def _may_play(thing: Any, module: str) -> bool:
    here = "is_foreign" in homes("running") and getattr(thing, "__module__", module) == module
    return here and from_shelf("running", "is_foreign", "agents of others")(thing)


WRAPPER_KINDS = Kinds(wrappers())
"""Prefix of an id, with its colon -> class of the wrapper's config; the outermost comes first."""
_WRAPPER_WORDS = f"{', '.join([*WRAPPER_KINDS][:-1])} and {[*WRAPPER_KINDS][-1]}"  # for messages


def around(agent: str) -> tuple[str, str]:
    """Split an id into its prefixes that name wrappers, such as "priced:", and the rest.

    >>> around("guarded:priced:dp-ucb"), around("fade")
    (('guarded:priced:', 'dp-ucb'), ('', 'fade'))
    """
    bare = agent
    for word in WRAPPER_KINDS:
        bare = bare.removeprefix(word)
    return agent.removesuffix(bare) if bare else agent, bare


def listed(text: str) -> list[str]:
    """Split a list of agents at its commas, except for commas in brackets.

    >>> listed("linucb, module:Agent:knots=[1,10]:depth=1,")
    ['linucb', 'module:Agent:knots=[1,10]:depth=1']
    """
    parts = re.split(r",(?![^\[]*\])", text)
    return [part.strip() for part in parts if part.strip()]


def parse_agent(text: str, **targets: float) -> AgentConfig:
    """Make a config from the text ID[:KEY=VALUE...], which may begin with wrappers ("priced:")."""
    words, name, settings = _split(text)
    known = agent_id(words + name)  # an unknown id is reported before its settings
    return agent_config(known, parse_settings(settings), **targets)


def module_of(text: str) -> str | None:
    """Return the module that `parse_agent` imports for an agent; None for dpbandit's agents.

    >>> module_of("guarded:mine.agents:Agent:epsilon=2"), module_of("guarded:fade")
    ('mine.agents', None)
    """
    _, name, _ = _split(text)
    return name.partition(":")[0] if ":" in name else None


def plainly_spelt(text: str) -> str:
    """Replace an agent's id by its spelling in `dpbandit agents`; keep the settings after it.

    >>> plainly_spelt("guarded:FADE 2:epsilon=2")
    'guarded:fade:epsilon=2'
    """
    words, name, settings = _split(text)
    return ":".join([agent_id(words + name), *settings])


def _split(text: str) -> tuple[str, str, list[str]]:
    """Split an agent's text into wrappers, id or MODULE:NAME, and settings KEY=VALUE."""
    words, bare = around(text)
    name, *settings = bare.split(":")
    if settings and "=" not in settings[0] and _spelt(name) not in AGENTS:  # MODULE:NAME
        name = f"{name}:{settings.pop(0)}"
    return words, name, settings


def agent_config(agent: str, settings: Mapping[str, Any], **targets: float) -> AgentConfig:
    """Make the config of the agent with this id; "DPUCB" and "dp_ucb" mean dp-ucb.

    MODULE:NAME is a foreign agent, which is imported, see `dpbandit.running.strangers`. Prefixes
    are wrappers with their own settings: "priced:" learns a model of demand (`Priced`), "guarded:"
    vetoes arms that are surely worse (`Guard`), "per-person:" plays people who return, "mapped:"
    plays on public features (`Mapped`). With calibration=paper dp-ucb and dp-hdb are their papers'
    algorithms.

    Args:
        agent: id of an agent, see `dpbandit agents`.
        settings: settings of the agent and its wrappers, by name.
        targets: further settings, such as epsilon and delta, ignored by agents without them.

    Raises:
        InputError: an unknown agent or setting, or a value that the config refuses.
    """
    known = meant(agent, settings)
    words, bare = around(known)
    kind, names = agent_kind(bare), setting_names(known)
    for key in settings:
        one_of(f"setting of {known}", key, names or ["(none)"])
    defaults = {key: value for key, value in targets.items() if key in names}
    every = with_floats(kind, {**defaults, **settings})
    by_wrapper = {
        word: {key: every.pop(key) for key in _settings_of_wrapper(word) if key in every}
        for word in _of(words)
    }
    for name in missing_fields(kind, every):
        hint = getattr(kind, "hint_on_settings", "")
        raise InputError(f"Expected {known}:{name}=VALUE: this setting has no default.{hint}")
    config: AgentConfig = kind(**every)
    for word in reversed(by_wrapper):
        config = WRAPPER_KINDS[word](config, **by_wrapper[word])
    return config


def setting_names(agent: str) -> list[str]:
    """Return the names of the settings of an agent, given its id, and of its wrappers."""
    words, bare = around(agent)
    by_wrapper = [field.name for field in fields(agent_kind(bare)) if field.init]
    return by_wrapper + [name for word in _of(words) for name in _settings_of_wrapper(word)]


AS_PRINTED = {"dp-ucb": "shariff-sheffet-ucb", "dp-hdb": "dp-hdb-choices"}
"""Id of an agent -> id of its paper's original algorithm, played with calibration=paper."""


def _of(words: str) -> list[str]:
    return [word for word in WRAPPER_KINDS if word in words]


def _settings_of_wrapper(word: str) -> list[str]:
    """Return the names of a wrapper's settings, except the agent that it wraps."""
    return [field.name for field in fields(WRAPPER_KINDS[word]) if field.name != "agent"]


def meant(agent: str, settings: Mapping[str, Any]) -> str:
    """Return the id of the agent to play; with calibration=paper, the paper's algorithm.

    >>> meant("priced:DPUCB", {"calibration": "paper"}), meant("DPUCB", {})
    ('priced:shariff-sheffet-ucb', 'dp-ucb')
    """
    words, bare = around(agent_id(agent))
    if settings.get("calibration") == "paper":
        bare = AS_PRINTED.get(bare, bare)
    return words + bare


def agent_id(agent: str) -> str:
    """Return the id that `agent` spells, such as dp-ucb for DPUCB; raise `InputError` if none."""
    words, bare = around(agent)
    if around(bare)[0]:
        raise InputError(f"Expected {_WRAPPER_WORDS} once, in this order, got {agent!r}.")
    if words:
        return words + agent_id(bare)
    known = _spelt(agent)
    if known in AGENTS:
        return known
    if re.search(":.*=", agent):
        raise InputError(f"Expected agent={agent!r} to be an id alone: settings stand beside it.")
    if ":" in agent:
        agent_kind(agent)
        return agent
    if agent in ("", *(word.rstrip(":") for word in WRAPPER_KINDS)):
        raise InputError(f"Expected an agent behind {_WRAPPER_WORDS}, such as guarded:fade.")
    if "," in agent:
        raise InputError(f"Expected agent={agent!r} to be one, got several.")
    if "=" in agent.partition(" ")[0].partition("(")[0]:
        raise InputError(
            f"Expected an agent, got {agent!r}: arguments of an environment are --set {agent}, "
            "and settings of an agent stand behind its id, as in fade:epsilon=2."
        )
    if meant := re.fullmatch(r"([\w-]+)[ (,](.*=.*?)\)?", agent):
        raise InputError(f"Expected agent={agent!r} to be {meant[1]}:KEY=VALUE, with colons.")
    bare = agent.removeprefix("dpbandit/").removesuffix("-v0")
    if f"dpbandit/{bare}-v0" in gym.registry:
        raise InputError(
            f"Expected an agent, got the environment {agent!r}: certify and audit take the "
            "agent first, compare and play the environment."
        )
    one_of("agent", known, AGENTS, see="dpbandit agents")
    return known


def _spelt(agent: str) -> str:
    """Return the id that equals `agent` up to case and punctuation, or else `agent` itself."""
    plainly = {re.sub(r"[^a-z]", "", known): known for known in AGENTS}
    return plainly.get(re.sub(r"[^a-z]", "", agent.lower()), agent)
