"""List of all agents, read from `agents/catalogue.csv` so that listing imports none of them."""

from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from typing import Any, NamedTuple

from dpbandit.base import abbrev, described, first_line, html_table
from dpbandit.lazy import catalogue

RECONSTRUCTED = "reconstructed"
"""Mark of an agent that was rebuilt from an abstract or a sketch."""


class Entry(NamedTuple):
    """Row of `agents/catalogue.csv`: an agent, or a wrapper of agents."""

    id: str
    config: str
    """name of the class"""
    file: str
    """module below `dpbandit.agents` that defines the class"""
    plays: str
    """kind of problem, in words"""
    feedback: str
    """feedback after each action, in words"""
    privacy: str
    page: str
    """page in docs/algorithms, without a suffix"""
    mark: str
    line: str
    """first line of the class's docstring"""


class Kinds(Mapping[str, Any]):
    """Mapping from agent ids to classes, each imported on first access."""

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
    """Return all agents in the order of the catalogue, without wrappers."""
    return tuple(one for one in _rows() if not one.id.endswith(":"))


def wrappers() -> tuple[Entry, ...]:
    """Return the wrappers of agents, outermost first; a wrapper's id ends with a colon."""
    return tuple(one for one in _rows() if one.id.endswith(":"))


def is_reconstructed(config: Any) -> bool:
    """Return True if a config, or one that it wraps, is of an agent marked as reconstructed."""
    if not isinstance(config, Mapping):
        return False
    rebuilt = {one.config for one in entries() if one.mark == RECONSTRUCTED}
    return config.get("agent") in rebuilt or any(map(is_reconstructed, config.values()))


def tabulate(kind: Any) -> None:
    """Display configs of class `kind` as tables in notebooks; their text form does not change."""
    kind._repr_html_ = _as_html


def _as_html(config: Any) -> str:
    """Return an HTML table of a config's settings; * marks values that are not the default."""
    rows = []
    for one in described(type(config)):
        value = getattr(config, one.name)
        plain = {True: "true", False: "false", None: "none"}
        written = plain[value] if value is None or isinstance(value, bool) else abbrev(value)
        usual = written.strip("'\"") == one.default
        rows.append((one.name, written + ("" if usual else " *"), one.text))
    head = ("setting", "value, * not the default", "what it is")
    return html_table(head, rows, f"{type(config).__name__}: {first_line(type(config))}")
