"""List of all agents from a table, so that listings need not import them."""

import csv
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

START, RECONSTRUCTED = "start here", "reconstructed"
"""Marks: the best of its problem, and one that was rebuilt from an abstract or a sketch."""


class Entry(NamedTuple):
    """An agent in a line."""

    id: str
    config: str
    """its class"""
    plays: str
    """the kind of problem, in words"""
    told: str
    """what it learns from after each action"""
    privacy: str
    page: str
    """of docs/algorithms"""
    mark: str
    line: str
    """the first line of its class"""


@cache
def entries() -> tuple[Entry, ...]:
    """Every agent, in the order of the catalogue."""
    text = (files("dpbandit.agents") / "catalogue.csv").read_text(encoding="utf-8")
    return tuple(Entry(**row) for row in csv.DictReader(text.splitlines()))


def is_reconstructed(config: Any) -> bool:
    """Whether a described config, or one that it wraps, is marked so."""
    if not isinstance(config, Mapping):
        return False
    rebuilt = {one.config for one in entries() if one.mark == RECONSTRUCTED}
    return config.get("agent") in rebuilt or any(map(is_reconstructed, config.values()))
