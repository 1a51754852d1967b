"""List of all agents from a table, so that listings need not import them."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from dpbandit.base import abbrev, described, first_line, html_table
from dpbandit.lazy import catalogue

RECONSTRUCTED = "reconstructed"
"""Mark of an agent that was rebuilt from an abstract or a sketch."""


class Entry(NamedTuple):
    """An agent in a line."""

    id: str
    config: str
    """its class"""
    file: str
    """that has it, as a module of `dpbandit.agents`"""
    plays: str
    """the kind of problem, in words"""
    feedback: str
    """what it learns from after each action"""
    privacy: str
    page: str
    """of docs/algorithms"""
    mark: str
    line: str
    """the first line of its class"""


class Kinds(Mapping[str, Any]):
    """Ids -> classes of agents, each imported when it is asked for."""

    def __init__(self, some: Iterable[Entry]) -> None:
        self._names = {one.id: one.config for one in some}

    def __getitem__(self, agent: str) -> Any:
        return getattr(import_module("dpbandit.agents"), self._names[agent])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __contains__(self, agent: object) -> bool:
        return agent in self._names


def _rows() -> list[Entry]:
    return [Entry(**row) for row in catalogue("dpbandit.agents")]


def entries() -> tuple[Entry, ...]:
    """Every agent, in the order of the catalogue."""
    return tuple(one for one in _rows() if not one.id.endswith(":"))


def wrappers() -> tuple[Entry, ...]:
    """What can be put around an agent, the outermost first; the word before its id is theirs."""
    return tuple(one for one in _rows() if one.id.endswith(":"))


def is_reconstructed(config: Any) -> bool:
    """Whether a described config, or one that it wraps, is marked so."""
    if not isinstance(config, Mapping):
        return False
    rebuilt = {one.config for one in entries() if one.mark == RECONSTRUCTED}
    return config.get("agent") in rebuilt or any(map(is_reconstructed, config.values()))


def tabulate(kind: Any) -> None:
    """Let the configs of a class be tables in a notebook; in text they stay what makes them."""
    kind._repr_html_ = _as_html


def _as_html(config: Any) -> str:
    """A row for each setting, a * where it is not the default."""
    rows = []
    for one in described(type(config)):
        value = getattr(config, one.name)
        plain = {True: "true", False: "false", None: "none"}
        written = plain[value] if value is None or isinstance(value, bool) else abbrev(value)
        usual = written.strip("'\"") == one.default
        rows.append((one.name, written + ("" if usual else " *"), one.text))
    head = ("setting", "value, * not the default", "what it is")
    return html_table(head, rows, f"{type(config).__name__}: {first_line(type(config))}")
